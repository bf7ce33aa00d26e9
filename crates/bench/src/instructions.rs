//! How many instructions something takes. Unlike times they hardly depend on what else the machine does, so that they
//! can be compared from one run to the next, and from one change to the next.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Runs this program with these arguments and counts what it executes, from its start to its end. `None`: there is no
/// valgrind here.
pub(crate) fn count<S: AsRef<OsStr>>(arguments: &[S]) -> anyhow::Result<Option<u64>> {
    let program = std::env::current_exe().context("finding this program")?;
    let directory = tempfile::tempdir().context("making a directory")?;
    let profile = directory.path().join("callgrind.out");
    let mut out_file = OsString::from("--callgrind-out-file=");
    out_file.push(&profile);
    let counted = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(out_file)
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let output = match counted {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        counted => counted.context("running valgrind")?,
    };
    if !output.status.success() {
        bail!("valgrind ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    let profile = std::fs::read_to_string(&profile).context("reading what valgrind counted")?;
    total(&profile).context("valgrind did not say how many instructions it counted").map(Some)
}

/// The profile's `totals:` line; instructions are what callgrind counts when nothing else is asked for.
fn total(profile: &str) -> Option<u64> {
    profile.lines().find_map(|line| line.strip_prefix("totals:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_is_found() {
        assert_eq!(total("version: 1\nevents: Ir\nsummary: 12\n\nfn=(1)\n5 7\n\ntotals: 4711\n"), Some(4711));
        assert_eq!(total("version: 1\nevents: Ir\n"), None);
    }
}
