#!/usr/bin/env python3
"""A matchmaker: reads players, one per line, pairs them, and prints where each pair plays."""
import json, sys, time, urllib.error, urllib.request, uuid

def allocate(url, players):
    order = {"requestId": str(uuid.uuid4()), "waitMillis": 10000, "metadata": {"players": players}}
    while True:
        try:
            with urllib.request.urlopen(url, json.dumps(order).encode(), timeout=20) as answer:
                return json.load(answer)["allocations"][0]
        except urllib.error.HTTPError as error:
            if error.code == 409:  # an earlier attempt got a room, and its time is over by now
                order["requestId"] = str(uuid.uuid4())
            elif error.code < 500 and error.code != 429:  # neither busy nor without a free room: a mistake of ours
                sys.exit(error.read().decode())
        except Exception:
            pass  # no answer, or half of one: the same request id gets the same room again
        time.sleep(1)

server, scheduler = sys.argv[1:]
queue = []
for line in sys.stdin:
    queue.append(line.strip())
    if len(queue) == 2:
        room = allocate(f"{server}/schedulers/{scheduler}/allocations", queue)
        print(*queue, "play at", f"{room['host']}:{room['ports'][0]['port']}", room["id"], flush=True)
        queue = []
