// A matchmaker: reads players, one per line, pairs them, and prints where each pair plays.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net/http"
	"os"
	"time"
)

type room struct {
	ID, Host string
	Ports    []struct{ Port int }
}

func allocate(client *http.Client, url string, players []string) room {
	order := map[string]any{"waitMillis": 10000, "metadata": map[string]any{"players": players}}
	for order["requestId"] = newID(); ; time.Sleep(time.Second) {
		body, _ := json.Marshal(order)
		answer, err := client.Post(url, "application/json", bytes.NewReader(body))
		if err != nil {
			continue // no answer: the same request id gets the same room again
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		var allocated struct{ Allocations []room }
		switch code := answer.StatusCode; {
		case code == 200 && err == nil && json.Unmarshal(text, &allocated) == nil:
			return allocated.Allocations[0]
		case code == 409: // an earlier attempt got a room, and its time is over by now
			order["requestId"] = newID()
		case code >= 400 && code < 500 && code != 429: // neither busy nor without a free room: a mistake of ours
			log.Fatal(string(text))
		}
	}
}

func newID() string { return fmt.Sprintf("%x-%x", time.Now().UnixNano(), rand.Int63()) }

func main() {
	url := os.Args[1] + "/schedulers/" + os.Args[2] + "/allocations"
	client := &http.Client{Timeout: 20 * time.Second}
	var queue []string
	for players := bufio.NewScanner(os.Stdin); players.Scan(); {
		if queue = append(queue, players.Text()); len(queue) == 2 {
			room := allocate(client, url, queue)
			fmt.Printf("%s %s play at %s:%d %s\n", queue[0], queue[1], room.Host, room.Ports[0].Port, room.ID)
			queue = nil
		}
	}
}
