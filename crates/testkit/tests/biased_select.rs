//! `select!` is `biased` in everything that the simulated world runs: a random order would not repeat with the seed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use maestro_testkit::repository;

const SELECT: &str = "select! {";

#[test]
fn every_select_is_biased() {
    let mut selects = 0;
    let mut random = Vec::new();
    for path in sources(&["crates/engine/src", "crates/simulation/src"]).unwrap() {
        let text = fs::read_to_string(&path).unwrap();
        for (start, _) in text.match_indices(SELECT) {
            selects += 1;
            if !text[start + SELECT.len()..].trim_start().starts_with("biased;") {
                let line = text[..start].lines().count();
                random.push(format!("{}:{line}", path.display()));
            }
        }
    }
    assert!(selects > 0, "no select found: is it spelled otherwise?");
    assert!(random.is_empty(), "not biased: {}", random.join(", "));
}

fn sources(folders: &[&str]) -> io::Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| repository().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false if is_rust(&path) => sources.push(path),
                false => {}
            }
        }
    }
    Ok(sources)
}

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}
