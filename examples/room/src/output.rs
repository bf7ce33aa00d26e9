//! A few plain lines. Unlike `println!` these do not panic when the reader is gone: a room outlives the Maestro that
//! started it.

use std::io::{self, Write};

pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

pub(crate) fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "maestro-example-room: {line}");
}
