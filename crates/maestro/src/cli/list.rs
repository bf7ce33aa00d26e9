//! Lists: shown once, or again whenever they change.

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;

use super::{
    Client, Column, Context, Failure, Format, Json, Poll, Progress, Sheet, note, output, print, terminal,
};

/// Often enough to see things happen, rare enough for a list of many.
const INTERVAL: Duration = Duration::from_secs(1);

const CLEAR_SCREEN: &str = "\x1b[2J";
const CURSOR_HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

#[derive(Debug, Args)]
pub(super) struct WatchOptions {
    /// Show the list again whenever it changes, until interrupted
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// Of a list that the server gives page by page.
#[derive(Debug, Args)]
pub(super) struct PageOptions {
    /// Page of the list
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) page: Option<u32>,
    /// Number of items per page
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) page_size: Option<u32>,
}

/// The same as [`show`] for a list of pages: says if there are further `items`.
pub(super) fn show_page(
    context: &Context,
    options: &WatchOptions,
    ask: impl Fn(&Client) -> Result<Json, Failure>,
    (key, columns): (&str, &[Column]),
    items: &str,
) -> Result<(), Failure> {
    let answer = show(context, options, ask, (key, columns))?;
    if let Some(answer) = answer.filter(|_| context.output == Format::Table) {
        note_further_pages(&answer, items);
    }
    Ok(())
}

/// Shows what `ask` gets from the server, which has the items under `key`. Returns the answer unless it watches, which has
/// no end of its own.
pub(super) fn show(
    context: &Context,
    options: &WatchOptions,
    ask: impl Fn(&Client) -> Result<Json, Failure>,
    (key, columns): (&str, &[Column]),
) -> Result<Option<Json>, Failure> {
    let client = context.client()?;
    let sheet = |answer: &Json| Sheet::of(answer.get(key).items(), columns);
    if !options.watch {
        let answer = ask(&client)?;
        context.show(&answer, |answer| sheet(answer).text())?;
        return Ok(Some(answer));
    }
    let poll = Poll { client: &client, ask: &ask, timeout: None, interval: INTERVAL };
    // On a terminal the newest list takes the place of the one before; elsewhere it follows it.
    let screen_wide = context.output == Format::Table && std::io::stdout().is_terminal();
    let mut shown: Option<Sheet> = None;
    poll.run(Progress::notes(), |answer, _| {
        let sheet = sheet(answer);
        if screen_wide {
            let clear = if shown.is_none() { CLEAR_SCREEN } else { "" };
            let rows_max = terminal::size().map_or(usize::MAX, |size| size.rows.saturating_sub(1));
            print(&format!("{clear}{}", screen(&sheet.text(), rows_max)))?;
        } else if shown.as_ref().is_none_or(|shown| shown.content() != sheet.content()) {
            print_changed(context.output, answer, &sheet, shown.is_none())?;
        }
        shown = Some(sheet);
        Ok(false)
    })
}

/// Says that the answer is one page of several.
fn note_further_pages(answer: &Json, items: &str) {
    let number = |key| answer.get(key).as_u64();
    let (Some(page), Some(page_size), Some(total)) = (number("page"), number("pageSize"), number("total"))
    else {
        return;
    };
    if page.saturating_mul(page_size) < total {
        note(&format!("page {page} of {total} {items}; next: --page {}", page + 1));
    }
}

fn print_changed(format: Format, answer: &Json, sheet: &Sheet, is_first: bool) -> Result<(), Failure> {
    match format {
        Format::Table if is_first => print(&sheet.text()),
        Format::Table => print(&format!("\n{}", sheet.text())),
        // One document a line, so that a program can read them one by one.
        Format::Json => output::json_line(answer),
        Format::Yaml => {
            print("---")?;
            output::yaml(answer)
        }
        Format::Csv => Err(Failure::invalid(output::CSV_REFUSED)),
    }
}

/// Written over what was there before, no longer than the screen is.
fn screen(text: &str, rows_max: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut screen = CURSOR_HOME.to_owned();
    let shown = if lines.len() > rows_max { rows_max.saturating_sub(1) } else { lines.len() };
    for line in &lines[..shown] {
        screen.push_str(&format!("{line}{CLEAR_LINE}\n"));
    }
    if shown < lines.len() {
        screen.push_str(&format!("… and {} more{CLEAR_LINE}\n", lines.len() - shown));
    }
    screen + CLEAR_BELOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_longer_than_the_screen() {
        let visible = |rows_max| {
            let screen = screen("ID\na\nb\nc", rows_max);
            screen.replace(CURSOR_HOME, "").replace(CLEAR_LINE, "").replace(CLEAR_BELOW, "")
        };
        assert_eq!(visible(4), "ID\na\nb\nc\n");
        assert_eq!(visible(3), "ID\na\n… and 2 more\n");
    }
}
