//! What a process has used, as the kernel counts it: unlike wall time, it hardly depends on the neighbours.

use std::fs;
use std::time::Duration;

use anyhow::Context as _;
use rustix::param::clock_ticks_per_second;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// Bytes that it had written to the disk. Where the directory is no disk (tmpfs), bytes that it wrote to anything.
    pub(crate) written_bytes: u64,
}

impl Usage {
    pub(super) fn of(pid: u32) -> anyhow::Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            fs::read_to_string(&path).with_context(|| format!("reading {path}"))
        };
        let cpu = cpu(&read("stat")?).context("/proc/…/stat cannot be understood")?;
        let written_bytes = written(&read("io")?).context("/proc/…/io cannot be understood")?;
        Ok(Self { cpu, written_bytes })
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
        }
    }
}

/// User and system time, of all threads that it has or had.
fn cpu(stat: &str) -> Option<Duration> {
    // The name, in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
    let ticks = fields.next()?? + fields.next()??;
    Some(Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64))
}

fn written(io: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = io.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().parse().ok()
    };
    match field("write_bytes")? {
        0 => field("wchar"),
        bytes => Some(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_anything() {
        let ticks = clock_ticks_per_second();
        let stat = format!("42 (a) b (c) S 1 1 1 0 -1 4194304 100 0 0 0 {ticks} {ticks} 0 0 20 0");
        assert_eq!(cpu(&stat), Some(Duration::from_secs(2)));
        assert_eq!(cpu("42 (short) S 1"), None);
    }

    #[test]
    fn what_reached_the_disk_counts_if_there_is_one() {
        let io = |to_disk| format!("rchar: 1\nwchar: 70\nwrite_bytes: {to_disk}\ncancelled_write_bytes: 5\n");
        assert_eq!(written(&io(4096)), Some(4096));
        assert_eq!(written(&io(0)), Some(70));
    }
}
