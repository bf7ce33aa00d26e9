//! What is shown on a terminal: the real binary on a pseudo terminal of a known size.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::maestro;
use crate::server::{Answer, Server, ok, refusal};

/// What appears on a terminal of 80 columns and so many rows.
fn on_terminal(script: Vec<Answer>, arguments: &str, rows: u16) -> String {
    let server = Server::start(script);
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    tcsetwinsize(&terminal, Winsize { ws_row: rows, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = maestro(arguments);
    command.env("MAESTRO_URL", &server.url).stdin(Stdio::null()).stderr(Stdio::null()).stdout(terminal);
    let mut child = command.spawn().unwrap();
    // Its copy of the terminal has to go, or reading would never come to an end.
    drop(command);
    let mut shown = Vec::new();
    // A terminal that nobody has open any more is an error to who reads from it.
    let _ = File::from(controller).read_to_end(&mut shown);
    child.wait().unwrap();
    String::from_utf8_lossy(&shown).replace("\r\n", "\n")
}

fn operations(count: u32) -> Answer {
    let operation = |number: u32| {
        serde_json::json!({
            "id": format!("01a1e37a-3bc9-7{number:03}-b0c1-18cc2bff41a0"), "status": "in_progress",
            "definitionName": "create_new_scheduler_version", "createdAt": "2026-11-15T09:06:53Z",
            "reason": "version v2.0.0 was not validated: attempt 3 of 3 failed: room arena-1 ended",
        })
    };
    let operations: Vec<_> = (0..count).map(operation).collect();
    ok(&serde_json::json!({"page": 1, "pageSize": 15, "total": count, "operations": operations}).to_string())
}

#[test]
fn rows_fit() {
    let shown = on_terminal(vec![operations(3)], "operation list arena --stage final", 24);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 4, "{shown}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(lines[1].starts_with("01a1e37a-3bc9-7000  "), "{shown}");
    assert!(lines[1].trim_end().ends_with('…'), "{shown}");
}

#[test]
fn a_list_that_is_watched_stays_on_one_screen() {
    let gone = refusal(404, "scheduler arena not found");
    let shown = on_terminal(
        vec![operations(1), operations(9), gone],
        "operation list arena --stage final --watch",
        6,
    );
    let screens: Vec<&str> = shown.split("\x1b[H").skip(1).collect();
    assert_eq!(screens.len(), 2, "{shown:?}");
    assert_eq!(screens[0].lines().count(), 3, "{shown:?}");
    assert!(screens[1].contains("… and 6 more"), "{shown:?}");
}
