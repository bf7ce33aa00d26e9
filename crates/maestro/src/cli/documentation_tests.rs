//! Every command that the documentation names in its text exists, with its flags. (Blocks of commands are run.)

use std::fs;

use clap::{Command, CommandFactory};

use super::Arguments;

const PAGES: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"];

#[test]
fn what_the_documentation_names_exists() {
    let root = maestro_testkit::repository();
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = PAGES.map(|page| root.join(page)).into_iter().chain(docs);
    let mut wrong = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let in_backticks =
            text.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("maestro "));
        let problems = in_backticks.filter_map(|command| problem_with(command).err());
        wrong.extend(problems.map(|problem| format!("{}: {problem}", page.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_does_not_exist_is_named() {
    for (command, expected) in [
        ("scheduler list --game G", Ok(())),
        ("rooms arena", Ok(())),
        ("operation list --stuck", Ok(())),
        ("scheduler resize arena -20% --min-step 2", Ok(())),
        ("schedule list", Err("maestro has no command schedule")),
        ("scheduler lits", Err("scheduler has no command lits")),
        ("scheduler list --all-of-them", Err("scheduler list has no flag --all-of-them")),
    ] {
        assert_eq!(problem_with(command), expected.map_err(str::to_owned), "{command}");
    }
}

/// As far as it can be told without values: names of commands first, then values and flags in any order.
fn problem_with(written: &str) -> Result<(), String> {
    if written.starts_with(crate::LOG_KEEPER) {
        return Ok(());
    }
    let mut root = Arguments::command();
    root.build();
    let mut command = &root;
    let mut path = Vec::new();
    for word in written.split_whitespace() {
        if let Some(flag) = word.strip_prefix("--") {
            if !has_flag(command, flag) {
                return Err(format!("{} has no flag --{flag}", path.join(" ")));
            }
        } else if let Some(found) = command.find_subcommand(word) {
            command = found;
            path.push(word);
        } else if command.is_subcommand_required_set()
            && word.chars().all(|letter| letter.is_ascii_lowercase())
        {
            let parent = if path.is_empty() { "maestro".to_owned() } else { path.join(" ") };
            return Err(format!("{parent} has no command {word}"));
        }
    }
    Ok(())
}

fn has_flag(command: &Command, flag: &str) -> bool {
    let flag = flag.split('=').next().unwrap_or(flag);
    command.get_arguments().any(|argument| argument.get_long() == Some(flag))
}
