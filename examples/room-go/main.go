// A complete Maestro room with nothing but the standard library; docs/writing-a-room.md explains each part.
//
// Players speak lines over TCP: `JOIN 30` plays a match of 30 seconds, `STATUS` tells how full the room is.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	pingInterval   = 10 * time.Second // Maestro replaces a room that is silent for 240 s
	requestTimeout = 2 * time.Second
	playerTimeout  = time.Minute
	matchesMax     = 1
	drain          = 20 * time.Second // after SIGTERM; below the recipe's terminationGracePeriod
)

type room struct {
	mutex       sync.Mutex
	matches     int
	terminating bool
	changed     chan struct{} // holds one element while something has changed that no ping has said
}

func (r *room) status() (string, int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch {
	case r.terminating:
		return "terminating", r.matches
	case r.matches > 0:
		return "occupied", r.matches
	default:
		return "ready", r.matches
	}
}

func (r *room) update(change func()) {
	r.mutex.Lock()
	change()
	r.mutex.Unlock()
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// How many matches run with the new one, or 0 if there is no place for it.
func (r *room) join(length time.Duration) int {
	joined := 0
	r.update(func() {
		if !r.terminating && r.matches < matchesMax {
			r.matches++
			joined = r.matches
		}
	})
	if joined > 0 {
		time.AfterFunc(length, func() { r.update(func() { r.matches-- }) })
	}
	return joined
}

type maestro struct {
	client http.Client
	url    string
}

// Says how the room is. True if Maestro has accepted it.
func (m *maestro) ping(status string, matches int) bool {
	body, err := json.Marshal(map[string]any{
		"status":         status,
		"timestamp":      time.Now().Unix(),
		"runningMatches": matches,
		"metadata":       map[string]string{"language": "go"},
	})
	if err != nil {
		log.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPut, m.url, bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := m.client.Do(request)
	if err != nil {
		log.Printf("ping failed, playing on: %v", err)
		return false
	}
	defer response.Body.Close()
	var answer struct{ Success bool }
	err = json.NewDecoder(response.Body).Decode(&answer)
	return err == nil && response.StatusCode == http.StatusOK && answer.Success
}

// At once when something changes, and again before Maestro could take the room for dead. A ping that fails is no reason
// to stop: Maestro may be restarting, and finds the room again when it pings.
func (m *maestro) keepPinging(r *room) {
	backOff := 500 * time.Millisecond
	for {
		wait := pingInterval
		if m.ping(r.status()) {
			backOff = 500 * time.Millisecond
		} else {
			wait = backOff
			if backOff *= 2; backOff > pingInterval {
				backOff = pingInterval
			}
		}
		// So that a whole fleet does not ping in step.
		wait = time.Duration(float64(wait) * (0.8 + 0.4*rand.Float64()))
		select {
		case <-r.changed:
		case <-time.After(wait):
		}
	}
}

func (r *room) serve(player net.Conn) {
	defer player.Close()
	lines := bufio.NewScanner(player)
	for {
		player.SetDeadline(time.Now().Add(playerTimeout))
		if !lines.Scan() {
			return
		}
		fmt.Fprintln(player, r.answer(strings.Fields(lines.Text())))
	}
}

func (r *room) answer(words []string) string {
	if len(words) == 1 && words[0] == "STATUS" {
		status, matches := r.status()
		return fmt.Sprintf("%s %d/%d", status, matches, matchesMax)
	}
	if len(words) == 2 && words[0] == "JOIN" {
		if seconds, err := strconv.ParseUint(words[1], 10, 16); err == nil {
			if joined := r.join(time.Duration(seconds) * time.Second); joined > 0 {
				return fmt.Sprintf("OK %d", joined)
			}
			return "FULL"
		}
	}
	return "ERROR expected JOIN <seconds> or STATUS"
}

func required(variable string) string {
	value := os.Getenv(variable)
	if value == "" {
		log.Fatalf("%s is not set: is this room started by Maestro?", variable)
	}
	return value
}

func main() {
	scheduler, id := required("MAESTRO_SCHEDULER_NAME"), required("MAESTRO_ROOM_ID")
	url := strings.TrimSuffix(required("MAESTRO_ROOMS_API_URL"), "/")
	port := required("MAESTRO_HOST_PORT_GAME") // of the recipe's port named `game`

	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)

	r := &room{changed: make(chan struct{}, 1)}
	m := &maestro{
		// A proxy for the web is not the way to Maestro.
		client: http.Client{Timeout: requestTimeout, Transport: &http.Transport{}},
		url:    fmt.Sprintf("%s/scheduler/%s/rooms/%s/ping", url, scheduler, id),
	}

	// Ready means that players can come in, so the port is open before the first ping.
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("room %s of %s listens on %s", id, scheduler, port)
	go func() {
		for {
			player, err := listener.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go r.serve(player)
		}
	}()
	go m.keepPinging(r)

	<-terminate
	log.Print("told to end")
	r.update(func() { r.terminating = true })
	for deadline := time.Now().Add(drain); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if _, matches := r.status(); matches == 0 {
			break
		}
	}
	m.ping("terminated", 0)
	log.Print("ended")
}
