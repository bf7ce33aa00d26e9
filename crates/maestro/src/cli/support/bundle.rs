//! The file itself: a compressed tar that only its owner can read, with a manifest of what is in it and what is not.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;

use crate::cli::{Failure, Json};

/// Bytes of one file: more than anybody reads.
const FILE_BYTES_MAX: usize = 8 << 20;

/// Bytes of all files before they are compressed: a bundle is mailed, or attached to an issue.
const BUNDLE_BYTES_MAX: usize = 64 << 20;

#[derive(Default)]
pub(super) struct Bundle {
    files: Vec<(String, Vec<u8>)>,
    missing: Vec<(String, String)>,
    bytes: usize,
}

/// Which end of a file that is too long is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Beginning,
    End,
}

impl Bundle {
    pub(super) fn add_json(&mut self, name: &str, value: &Json) {
        self.add(name, serde_json::to_vec_pretty(value), Keep::Beginning);
    }

    /// Adds a file, or why there is none.
    pub(super) fn add(&mut self, name: &str, content: Result<Vec<u8>, impl Display>, keep: Keep) {
        let mut bytes = match content {
            Ok(bytes) => bytes,
            Err(error) => return self.miss(name, &error.to_string()),
        };
        let length = bytes.len();
        if length > FILE_BYTES_MAX {
            match keep {
                Keep::Beginning => bytes.truncate(FILE_BYTES_MAX),
                Keep::End => drop(bytes.drain(..length - FILE_BYTES_MAX)),
            }
            self.miss(name, &format!("only {FILE_BYTES_MAX} of {length} bytes are included"));
        }
        if self.bytes + bytes.len() > BUNDLE_BYTES_MAX {
            return self.miss(name, &format!("the bundle already has {BUNDLE_BYTES_MAX} bytes"));
        }
        self.bytes += bytes.len();
        self.files.push((plain_path(name), bytes));
    }

    pub(super) fn miss(&mut self, name: &str, why: &str) {
        self.missing.push((plain_path(name), why.to_owned()));
    }

    /// Writes everything, and says what it wrote.
    pub(super) fn write(mut self, file: &Path) -> Result<Json, Failure> {
        let manifest = self.manifest();
        self.add_json("manifest.json", &manifest);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
        let opened = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::invalid(format!("{}: the file exists already", file.display()))
            }
            _ => unwritten(file, &error),
        })?;
        self.write_to(opened).map_err(|error| {
            // Half a bundle would be taken for a whole one.
            let _ = std::fs::remove_file(file);
            unwritten(file, &error)
        })?;
        Ok(manifest)
    }

    fn write_to(&self, file: impl Write) -> io::Result<()> {
        let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
        let now = u64::try_from(Timestamp::now().as_second()).unwrap_or(0);
        for (name, bytes) in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            header.set_mtime(now);
            archive.append_data(&mut header, Path::new("maestro-support").join(name), bytes.as_slice())?;
        }
        archive.into_inner()?.finish()?.flush()
    }

    fn manifest(&self) -> Json {
        let entry = |file: &str, key, value| Json::object([("file", Json::from(file)), (key, value)]);
        let file = |(name, bytes): &(String, Vec<u8>)| entry(name, "bytes", Json::from(bytes.len() as u64));
        let missing = |(name, why): &(String, String)| entry(name, "why", Json::from(why.as_str()));
        Json::object([
            ("at", Json::from(Timestamp::now().to_string().as_str())),
            ("files", Json::Array(self.files.iter().map(file).collect())),
            ("missing", Json::Array(self.missing.iter().map(missing).collect())),
        ])
    }
}

pub(super) fn default_file() -> PathBuf {
    format!("maestro-support-{}.tar.gz", Timestamp::now().strftime("%Y%m%dT%H%M%SZ")).into()
}

fn unwritten(file: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("{}: cannot be written: {error}", file.display()))
}

/// Names come from a server's answers too, and must not lead out of the folder that somebody unpacks them into.
fn plain_path(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let segment = |segment: &str| match segment {
        "" | "." | ".." => "_".to_owned(),
        _ => segment.chars().map(plain).collect(),
    };
    name.split('/').map(segment).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        for (name, plain) in [
            ("schedulers/arena/rooms.json", "schedulers/arena/rooms.json"),
            ("schedulers/../../etc/passwd", "schedulers/_/_/etc/passwd"),
            ("/etc/a b", "_/etc/a_b"),
        ] {
            assert_eq!(plain_path(name), plain);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_and_said() {
        let mut bundle = Bundle::default();
        let mut long = vec![b'a'; FILE_BYTES_MAX];
        long.push(b'z');
        bundle.add("beginning", Ok::<_, String>(long.clone()), Keep::Beginning);
        bundle.add("end", Ok::<_, String>(long), Keep::End);
        let last = |file: usize| bundle.files[file].1.last().copied();
        assert_eq!((last(0), last(1)), (Some(b'a'), Some(b'z')));
        assert_eq!(bundle.missing.len(), 2);
        for number in 0..10 {
            bundle.add(&number.to_string(), Ok::<_, String>(vec![0; FILE_BYTES_MAX]), Keep::End);
        }
        assert!(bundle.bytes <= BUNDLE_BYTES_MAX);
        assert!(bundle.missing.iter().any(|(_, why)| why.contains("already")), "{:?}", bundle.missing);
    }
}
