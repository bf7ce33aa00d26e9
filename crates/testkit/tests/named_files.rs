//! Every file, folder and heading that the documentation names exists.
//!
//! - A link in a page leads to a file, and its anchor to a heading of that file.
//! - A path in backticks that begins with a folder of the repository, or ends with `.rs`, is a file or folder. It is
//!   written from the root of the repository; on the first page of a crate it may also be written from its `src`.
//! - Where a page says `name` in `path`, the file has that name in it.

use std::fs;
use std::path::{Path, PathBuf};

use maestro_testkit::repository;

/// Text in backticks that begins with one of these is a path.
const FOLDERS: [&str; 6] = ["crates/", "docs/", "examples/", "proto/", "scripts/", "testdata/"];

/// What tells a template, a pattern or a command from a path.
const NOT_IN_PATHS: [char; 7] = ['*', '<', '{', '…', ' ', ':', '('];

struct Page {
    path: PathBuf,
    text: String,
}

#[test]
fn what_pages_name_exists() {
    let mut missing = Vec::new();
    for page in markdown_pages() {
        missing.extend(missing_paths(&page, &[repository()]));
        missing.extend(missing_names(&page));
        missing.extend(broken_links(&page));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn what_first_pages_of_crates_name_exists() {
    let mut missing = Vec::new();
    for page in first_pages() {
        let source = page.path.parent().unwrap_or(repository());
        missing.extend(missing_paths(&page, &[repository(), source]));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn what_is_missing_is_named() {
    let text = "# One two\n`crates/none.rs`, `Makefile`, `gone.rs`, `crates/*/src`, `docs` and\n\
                `a::repository` in\n`crates/testkit/src/lib.rs`, `no_such` in `crates/testkit/src/lib.rs`,\n\
                [a](none.md), [b](README.md#no-such-heading), [c](#one-two), [d](https://example.com)\n\
                ```\n`crates/in-a-block.rs`\n```\n";
    let page = Page { path: repository().join("page.md"), text: text.to_owned() };
    let mut missing = missing_paths(&page, &[repository()]);
    missing.extend(missing_names(&page));
    missing.extend(broken_links(&page));
    let expected = [
        "page.md:2: there is no crates/none.rs",
        "page.md:2: there is no gone.rs",
        "page.md: there is no no_such in crates/testkit/src/lib.rs",
        "page.md:5: the link none.md leads nowhere",
        "page.md:5: the link README.md#no-such-heading leads nowhere",
    ];
    assert_eq!(missing, expected);
}

/// At the root of the repository, and in `docs` and `testdata`.
fn markdown_pages() -> Vec<Page> {
    let folders = ["", "docs", "testdata"].map(|folder| repository().join(folder));
    let files = folders.iter().flat_map(|folder| files_in(folder));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).map(read).collect()
}

/// The documentation at the top of `lib.rs` or `main.rs` of every crate.
fn first_pages() -> Vec<Page> {
    let crates = files_in(&repository().join("crates"));
    let sources =
        crates.iter().flat_map(|folder| ["src/lib.rs", "src/main.rs"].map(|name| folder.join(name)));
    let documentation = |page: Page| {
        let text = page.text.lines().map(|line| line.strip_prefix("//!").unwrap_or_default());
        Page { text: text.collect::<Vec<_>>().join("\n"), ..page }
    };
    sources.filter(|path| path.exists()).map(read).map(documentation).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    files
}

fn read(path: PathBuf) -> Page {
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Page { path, text }
}

/// Lines with their numbers, without blocks of code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        (!in_block && !is_fence).then_some((index + 1, line))
    })
}

fn missing_paths(page: &Page, roots: &[&Path]) -> Vec<String> {
    let mut missing = Vec::new();
    for (number, line) in prose(&page.text) {
        let in_backticks = line.split('`').skip(1).step_by(2);
        for name in in_backticks.filter(|name| is_path(name)) {
            if !roots.iter().any(|root| root.join(name).exists()) {
                missing.push(format!("{}:{number}: there is no {name}", shown(&page.path)));
            }
        }
    }
    missing
}

/// Of what is said to be in a file.
fn missing_names(page: &Page) -> Vec<String> {
    let text: Vec<&str> = prose(&page.text).map(|(_, line)| line).collect();
    let text = text.join("\n");
    let parts: Vec<&str> = text.split('`').collect();
    let mut missing = Vec::new();
    // Every second part is in backticks.
    for three in parts[1..].windows(3).step_by(2) {
        let [name, between, path] = [three[0], three[1].trim(), three[2]];
        if between == "in" && path.ends_with(".rs") {
            let name = name.rsplit("::").next().unwrap_or(name);
            let file = fs::read_to_string(repository().join(path)).unwrap_or_default();
            if !file.contains(name) {
                missing.push(format!("{}: there is no {name} in {path}", shown(&page.path)));
            }
        }
    }
    missing
}

fn is_path(name: &str) -> bool {
    let begins_as_one = FOLDERS.iter().any(|folder| name.starts_with(folder));
    (begins_as_one || name.ends_with(".rs")) && !name.contains(NOT_IN_PATHS)
}

fn broken_links(page: &Page) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, line) in prose(&page.text) {
        let links = line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        for link in links.filter(|link| !link.contains("://")) {
            if !leads_somewhere(page, link) {
                broken.push(format!("{}:{number}: the link {link} leads nowhere", shown(&page.path)));
            }
        }
    }
    broken
}

fn leads_somewhere(page: &Page, link: &str) -> bool {
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = page.path.parent().unwrap_or(repository());
    let target = if file.is_empty() { page.path.clone() } else { folder.join(file) };
    if anchor.is_empty() {
        return target.exists();
    }
    let text = if file.is_empty() { Ok(page.text.clone()) } else { fs::read_to_string(&target) };
    text.is_ok_and(|text| prose(&text).filter_map(|(_, line)| heading(line)).any(|heading| heading == anchor))
}

/// The anchor of a heading, as GitHub makes it.
fn heading(line: &str) -> Option<String> {
    let title = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
    let kept = title.trim().chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    Some(kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect())
}

fn shown(path: &Path) -> String {
    path.strip_prefix(repository()).unwrap_or(path).display().to_string()
}
