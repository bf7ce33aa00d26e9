//! `maestro events`.

use expect_test::expect;
use serde_json::json;

use crate::check;
use crate::server::{Answer, answer, refusal};

fn event(number: u32, kind: &str, scheduler: &str, subject: &str, data: &serde_json::Value) -> String {
    let id = format!("01a1f01115f0beef-{number}");
    let at = "2026-11-18T19:10:14.120Z";
    let event = json!({
        "id": id, "at": at, "type": kind, "scheduler": scheduler, "subject": subject, "data": data,
    });
    format!("id: {id}\nevent: {kind}\ndata: {event}\n\n")
}

fn stream(events: &[String]) -> Answer {
    let body = format!("retry: 1000\n\n{}: keep-alive\nid: 01a1f01115f0beef-50\n\n", events.concat());
    answer(200, "Content-Type: text/event-stream", &body)
}

fn begin() -> String {
    event(1, "reset", "", "", &json!({ "reason": "the stream begins here" }))
}

fn room() -> String {
    event(2, "room", "arena", "arena-4f1c9a", &json!({ "before": "ready", "status": "occupied" }))
}

fn region() -> String {
    event(3, "region", "", "eu-west", &json!({ "reachable": false, "reason": "no answer" }))
}

#[test]
fn what_has_happened() {
    check(
        vec![stream(&[room(), region()])],
        "events arena --types room,region",
        &expect![[r#"
            > GET /events?scheduler=arena&types=room%2Cregion&lastEventId=oldest&follow=false
            AT                        TYPE    SCHEDULER  SUBJECT       WHAT
            2026-11-18T19:10:14.120Z  room    arena      arena-4f1c9a  ready → occupied
            2026-11-18T19:10:14.120Z  region  -          eu-west       reachable false, reason no answer
        "#]],
    );
    check(
        vec![stream(&[room()])],
        "events --after 01a1f01115f0beef-1 -o json",
        &expect![[r#"
            > GET /events?lastEventId=01a1f01115f0beef-1&follow=false
            {
              "events": [
                {
                  "at": "2026-11-18T19:10:14.120Z",
                  "data": {
                    "before": "ready",
                    "status": "occupied"
                  },
                  "id": "01a1f01115f0beef-2",
                  "scheduler": "arena",
                  "subject": "arena-4f1c9a",
                  "type": "room"
                }
              ]
            }
        "#]],
    );
}

/// Until the scheduler is gone.
#[test]
fn what_happens() {
    check(
        vec![
            stream(&[begin(), room()]),
            Answer::HangUp,
            stream(&[region()]),
            refusal(404, "scheduler arena not found"),
        ],
        "events arena --follow",
        &expect![[r#"
            > GET /events?scheduler=arena
            2026-11-18T19:10:14.120Z        room        arena         arena-4f1c9a                          ready → occupied
            2026-11-18T19:10:14.120Z        region      -             eu-west                               reachable false, reason no answer
            stderr: 2026-11-18T19:10:14.120Z: the stream begins here
            stderr: the server has ended the stream; connecting again
            stderr: connected again
            stderr: the server has ended the stream; connecting again
            stderr: error: scheduler arena not found
            exit 3
        "#]],
    );
    check(
        vec![stream(&[begin()]), refusal(404, "scheduler arena not found")],
        "events --follow --types room -o json",
        &expect![[r#"
            > GET /events?types=room
            {"at":"2026-11-18T19:10:14.120Z","data":{"reason":"the stream begins here"},"id":"01a1f01115f0beef-1","scheduler":"","subject":"","type":"reset"}
            stderr: the server has ended the stream; connecting again
            stderr: error: scheduler arena not found
            exit 3
        "#]],
    );
}

#[test]
fn mistakes() {
    check(
        vec![],
        "events --types rooms",
        &expect![[r#"
            stderr: error: invalid value 'rooms' for '--types <TYPES>': not a type of event; write some of room, allocation, operation, decision, rollout, region
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check(
        vec![refusal(503, "1024 streams are open, and there are no more; try again later")],
        "events --follow",
        &expect![[r#"
            > GET /events
            stderr: error: the server failed (503 Service Unavailable): 1024 streams are open, and there are no more; try again later
            exit 5
        "#]],
    );
}
