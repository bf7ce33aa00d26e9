//! Every command block of the README and of the documentation runs as it is written, in a clean folder.
//!
//! Each page is a session: its blocks run one after another in a folder with what a fresh clone has there (`Makefile`,
//! `examples`, `scripts`), with the programs that ship. What is set differently from a user's machine: the ports of the
//! server, so that tests can run side by side, and that `make` finds everything built.
//!
//! - A `console` block is commands, `$ command`, and what they print; a `sh` or `bash` block is a script.
//! - A command must end with exit code 0, or with another one if its output is shown with a line `error: …`.
//! - Where its output is shown as a table, the command prints one with the same columns.
//! - `maestro start` and `make run` go on in the background until the page ends or starts the next one.
//! - An id of an operation or room stands for the one that a command above printed in its place. Where there was none, it
//!   stands for the newest operation, or any room, of the scheduler that is named before it.
//! - `<!-- setup: commands -->` runs before the block that follows, unseen by readers; `# stop the server` does that.
//! - `<!-- not run: reason -->` says why the block that follows cannot run. A block without one is run.

mod markdown;
mod session;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, ensure};
use maestro_e2e::until;

use markdown::Item;
use session::{PATIENCE, Session};

fn read(page: &str) -> anyhow::Result<Vec<Item>> {
    let path = maestro_testkit::repository().join(page);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    markdown::parse(&text).with_context(|| page.to_owned())
}

/// Runs all blocks of a page; the session goes on, for who wants to look at what has become of it.
fn run(page: &str) -> anyhow::Result<Session> {
    let mut session = Session::new()?;
    for item in read(page)? {
        match item {
            Item::NotRun { .. } => {}
            Item::Setup { line, script } | Item::Script { line, script } => {
                session.script(&script).with_context(|| format!("{page}:{line}"))?;
            }
            Item::Command { line, command, output } => {
                session.command(&command, &output).with_context(|| format!("{page}:{line}: {command}"))?;
            }
        }
    }
    Ok(session)
}

macro_rules! pages {
    ($($name:ident: $page:literal),+ $(,)?) => {
        const PAGES: &[&str] = &[$($page),+];
        $(
            #[test]
            fn $name() -> anyhow::Result<()> {
                run($page).map(drop)
            }
        )+
    };
}

pages! {
    api: "docs/api.md",
    autoscaling: "docs/autoscaling.md",
    benchmarks: "docs/benchmarks.md",
    events: "docs/events.md",
    find_out_why: "docs/find-out-why.md",
    locks: "docs/locks.md",
    matchmakers: "docs/matchmakers.md",
    moving: "docs/moving.md",
    operations: "docs/operations.md",
    placement: "docs/placement.md",
    production: "docs/production.md",
    regions: "docs/regions.md",
    rollouts: "docs/rollouts.md",
    running: "docs/running.md",
    security: "docs/security.md",
    simulate: "docs/simulate.md",
    simulation: "docs/simulation.md",
    watching: "docs/watching.md",
    writing_a_room: "docs/writing-a-room.md",
}

/// The fleet that the README starts has the twelve rooms that its recipe asks for.
#[test]
fn readme() -> anyhow::Result<()> {
    let session = run("README.md")?;
    until("README's own fleet to have 12 ready rooms", PATIENCE, || {
        let listed = session.output("maestro room list example -o json")?;
        let ready = listed.matches("\"ready\"").count();
        ensure!(ready == 12, "{ready} are ready: {listed}");
        Ok(())
    })
}

/// What the page about matchmakers shows is what the tests of the examples run.
#[test]
fn the_matchmakers_are_shown_as_they_are() -> anyhow::Result<()> {
    let repository = maestro_testkit::repository();
    let page = fs::read_to_string(repository.join("docs/matchmakers.md"))?;
    for (language, example) in
        [("python", "matchmaker-python/matchmaker.py"), ("go", "matchmaker-go/main.go")]
    {
        let program = fs::read_to_string(repository.join("examples").join(example))?;
        let shown =
            page.split(&format!("```{language}\n")).nth(1).and_then(|rest| rest.split("\n```").next());
        let shown = shown.with_context(|| format!("the page shows nothing in {language}"))?;
        ensure!(program.contains(shown), "the page shows something else than {example}:\n{shown}");
    }
    Ok(())
}

#[test]
fn no_page_is_forgotten() -> anyhow::Result<()> {
    let mut with_blocks = BTreeSet::new();
    for entry in fs::read_dir(maestro_testkit::repository().join("docs"))? {
        let page = format!("docs/{}", entry?.file_name().to_string_lossy());
        if page.ends_with(".md") && !read(&page)?.is_empty() {
            with_blocks.insert(page);
        }
    }
    let tested: BTreeSet<String> = PAGES.iter().map(ToString::to_string).collect();
    let forgotten: Vec<_> = with_blocks.difference(&tested).collect();
    assert!(forgotten.is_empty(), "add these pages to `pages!`: {forgotten:?}");
    Ok(())
}
