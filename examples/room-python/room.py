#!/usr/bin/env python3
"""A complete Maestro room with nothing but the standard library; docs/writing-a-room.md explains each part.

Players speak lines over TCP: `JOIN 30` plays a match of 30 seconds, `STATUS` tells how full the room is.
"""

import http.client
import json
import os
import random
import signal
import socketserver
import sys
import threading
import time
import urllib.parse

PING_INTERVAL = 10.0  # seconds; Maestro replaces a room that is silent for 240
REQUEST_TIMEOUT = 2.0
MATCHES_MAX = 1
DRAIN = 20.0  # how long running matches may go on after SIGTERM; below the recipe's terminationGracePeriod

SCHEDULER = os.environ["MAESTRO_SCHEDULER_NAME"]
ROOM = os.environ["MAESTRO_ROOM_ID"]
ROOMS_API = urllib.parse.urlsplit(os.environ["MAESTRO_ROOMS_API_URL"])
PORT = int(os.environ["MAESTRO_HOST_PORT_GAME"])  # of the recipe's port named `game`


def log(text):
    print(text, flush=True)  # stdout and stderr are the room's log


class Room:
    def __init__(self):
        self.changed = threading.Condition()
        self.matches = 0
        self.terminating = False
        self.version = 0  # counts changes, so that none goes unsaid

    def update(self, **values):
        with self.changed:
            for name, value in values.items():
                setattr(self, name, value)
            self.version += 1
            self.changed.notify_all()

    def status(self):
        if self.terminating:
            return "terminating"
        return "occupied" if self.matches else "ready"

    def join(self, seconds):
        with self.changed:
            if self.terminating or self.matches >= MATCHES_MAX:
                return None
            self.update(matches=self.matches + 1)
            joined = self.matches
        timer = threading.Timer(seconds, self.leave)
        timer.daemon = True  # a match does not outlive its room
        timer.start()
        return joined

    def leave(self):
        with self.changed:
            self.update(matches=self.matches - 1)

    def wait_drained(self):
        deadline = time.monotonic() + DRAIN
        with self.changed:
            while self.matches and time.monotonic() < deadline:
                self.changed.wait(deadline - time.monotonic())


def ping(status, matches):
    """Says how the room is. True if Maestro has accepted it."""
    body = {
        "status": status,
        "timestamp": int(time.time()),
        "runningMatches": matches,
        "metadata": {"language": "python"},
    }
    connection = http.client.HTTPConnection(ROOMS_API.hostname, ROOMS_API.port or 80, timeout=REQUEST_TIMEOUT)
    try:
        path = f"{ROOMS_API.path.rstrip('/')}/scheduler/{SCHEDULER}/rooms/{ROOM}/ping"
        connection.request("PUT", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status == 200 and json.load(answer).get("success") is True
    except (OSError, http.client.HTTPException, ValueError) as error:
        log(f"ping failed, playing on: {error}")
        return False
    finally:
        connection.close()


def keep_pinging(room):
    """At once when something changes, and again before Maestro could take the room for dead. A ping that fails is no
    reason to stop: Maestro may be restarting, and finds the room again when it pings."""
    failures = 0
    while True:
        with room.changed:
            said, status, matches = room.version, room.status(), room.matches
        failures = 0 if ping(status, matches) else failures + 1
        interval = min(0.5 * 2**failures, PING_INTERVAL) if failures else PING_INTERVAL
        interval *= random.uniform(0.8, 1.2)  # so that a whole fleet does not ping in step
        with room.changed:
            room.changed.wait_for(lambda: room.version != said, timeout=interval)


class Player(socketserver.StreamRequestHandler):
    timeout = 60

    def handle(self):
        room = self.server.room
        for line in self.rfile:
            words = line.decode(errors="replace").split()
            if words[:1] == ["STATUS"]:
                reply = f"{room.status()} {room.matches}/{MATCHES_MAX}"
            elif words[:1] == ["JOIN"] and len(words) == 2 and words[1].isdigit():
                joined = room.join(int(words[1]))
                reply = f"OK {joined}" if joined else "FULL"
            else:
                reply = "ERROR expected JOIN <seconds> or STATUS"
            self.wfile.write(f"{reply}\n".encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def main():
    room = Room()
    terminate = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: terminate.set())

    # Ready means that players can come in, so the port is open before the first ping.
    server = Server(("", PORT), Player)
    server.room = room
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=keep_pinging, args=[room], daemon=True).start()
    log(f"room {ROOM} of {SCHEDULER} listens on {PORT}")

    terminate.wait()
    log(f"told to end, {room.matches} matches running")
    room.update(terminating=True)
    room.wait_drained()
    ping("terminated", 0)
    log("ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
