//! What of a page can be run.

use anyhow::{Context, bail, ensure};

const SETUP: &str = "<!-- setup:";
const NOT_RUN: &str = "<!-- not run:";
const COMMENT_END: &str = "-->";
const PROMPT: &str = "$ ";

/// One thing to run, or not, with the line of the page where it begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Setup {
        line: usize,
        script: String,
    },
    Script {
        line: usize,
        script: String,
    },
    Command {
        line: usize,
        command: String,
        /// What the page shows as its output.
        output: String,
    },
    NotRun {
        line: usize,
        reason: String,
    },
}

/// In the order of the page.
pub(crate) fn parse(text: &str) -> anyhow::Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line)).peekable();
    let mut not_run = None;
    while let Some((number, line)) = lines.next() {
        let comment = [SETUP, NOT_RUN].into_iter().find(|begin| line.starts_with(begin));
        if let Some(begin) = comment {
            let mut body = line[begin.len()..].to_owned();
            while !body.contains(COMMENT_END) {
                let (_, more) =
                    lines.next().with_context(|| format!("{number}: the comment does not end"))?;
                body = format!("{body}\n{more}");
            }
            let body = body.split(COMMENT_END).next().unwrap_or_default().trim().to_owned();
            ensure!(!body.is_empty(), "{number}: `{begin} -->` says nothing");
            if begin == SETUP {
                items.push(Item::Setup { line: number, script: body });
            } else {
                not_run = Some((number, body));
            }
            continue;
        }
        let Some(language) = line.strip_prefix("```") else {
            if !line.trim().is_empty() {
                ensure!(not_run.is_none(), "{number}: there is no block right after `{NOT_RUN} …`");
            }
            continue;
        };
        let mut block = Vec::new();
        loop {
            match lines.next() {
                Some((_, "```")) => break,
                Some(inside) => block.push(inside),
                None => bail!("{number}: the block does not end"),
            }
        }
        match (not_run.take(), language) {
            (Some((line, reason)), "console" | "sh" | "bash") => items.push(Item::NotRun { line, reason }),
            (Some(_), _) => {
                bail!("{number}: only blocks of commands run, so this one needs no reason not to")
            }
            (None, "console") => items.extend(commands(&block)?),
            (None, "sh" | "bash") => {
                let script: Vec<&str> = block.iter().map(|(_, line)| *line).collect();
                items.push(Item::Script { line: number, script: script.join("\n") });
            }
            (None, "") if block.iter().any(|(_, line)| looks_like_a_command(line)) => {
                bail!("{number}: commands are in a block of `console`, `sh` or `bash`");
            }
            (None, _) => {}
        }
    }
    Ok(items)
}

fn looks_like_a_command(line: &str) -> bool {
    ["$ ", "maestro ", "make ", "curl ", "cargo "].iter().any(|begin| line.starts_with(begin))
}

/// A command goes on in the next line if it ends with a backslash; what follows it is what it prints.
fn commands(block: &[(usize, &str)]) -> anyhow::Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut lines = block.iter().peekable();
    while let Some((number, line)) = lines.next() {
        let Some(command) = line.strip_prefix(PROMPT) else {
            bail!("{number}: a console block begins with `{PROMPT}command`, not {line:?}");
        };
        let mut command = command.to_owned();
        while command.ends_with('\\') {
            let (_, more) = lines.next().with_context(|| format!("{number}: the command does not end"))?;
            command = format!("{command}\n{more}");
        }
        let mut output = Vec::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.starts_with(PROMPT)) {
            output.push(*line);
        }
        items.push(Item::Command { line: *number, command, output: output.join("\n") });
    }
    Ok(items)
}

#[test]
fn a_page_is_read() {
    let page = "# Title\n\n<!-- setup:\nmaestro start\n-->\n```console\n$ maestro a \\\n    b\nout\n$ maestro c\nerror: no\n```\n\n\
                ```yaml\n$ no: 1\n```\n```sh\nx\ny\n```\n<!-- not run: needs\na moon -->\n\n```bash\nz\n```\n";
    let command = |line, command: &str, output: &str| {
        let (command, output) = (command.to_owned(), output.to_owned());
        Item::Command { line, command, output }
    };
    let expected = [
        Item::Setup { line: 3, script: "maestro start".into() },
        command(7, "maestro a \\\n    b", "out"),
        command(10, "maestro c", "error: no"),
        Item::Script { line: 17, script: "x\ny".into() },
        Item::NotRun { line: 21, reason: "needs\na moon".into() },
    ];
    assert_eq!(parse(page).unwrap(), expected);
}

#[test]
fn what_is_not_run_says_why() {
    for (page, problem) in [
        ("<!-- not run: -->\n```sh\na\n```\n", "1: `<!-- not run: -->` says nothing"),
        ("<!-- not run: it is late -->\n\ntext\n", "3: there is no block right after"),
        ("<!-- not run: it is late -->\n```yaml\na\n```\n", "2: only blocks of commands run"),
        ("```console\nmaestro start\n```\n", "2: a console block begins with `$ command`"),
        ("```console\n$ maestro\n", "1: the block does not end"),
        ("```\nmaestro start\n```\n", "1: commands are in a block of"),
    ] {
        let error = parse(page).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
}
