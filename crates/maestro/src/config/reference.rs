//! `docs/configuration.md`, written from the table of keys.

use std::fmt::Write as _;

use super::keys::{KEYS, Key, NO_EFFECT};

const INTRODUCTION: &str = "\
# Configuration

This page is printed by `maestro config reference`; do not edit it by hand.

Maestro needs no configuration file. A value comes, the later one winning, from

1. the default below,
2. the YAML file named by `-c FILE`,
3. the environment: `MAESTRO_` and the key in capitals with its dots as underscores,
   `MAESTRO_MANAGEMENTAPI_PORT=9000`. A variable that is set to nothing counts as unset,
4. a flag.

`maestro config show` prints each value in effect and where it came from.

Keys are case-insensitive. An unknown key in a file is an error; an unknown variable is ignored. A duration is
written with its unit (`500ms`, `10s`, `2m`, `1h30m`); keys that end in `Millis` take a bare number.
";

/// The whole page.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut section = "";
    for key in KEYS {
        if key.section != section {
            section = key.section;
            // Writing to a String cannot fail.
            let _ =
                writeln!(page, "\n## {}\n\n| key | type | default | |\n|---|---|---|---|", section.trim());
        }
        page.push_str(&row(key));
    }
    page.push_str(&without_effect());
    page
}

fn row(key: &Key) -> String {
    let default = if key.default.is_empty() { "unset".to_owned() } else { format!("`{}`", key.default) };
    let mut doc = key.doc.to_owned();
    for alias in key.aliases {
        let _ = write!(doc, " Also `{alias}`.");
    }
    format!("| `{}` | {} | {default} | {doc} |\n", key.path, key.kind)
}

fn without_effect() -> String {
    let mut text = "\n## Without effect\n\nSettings of Maestro v10 that are accepted, with a warning, and do nothing here; \
                    each stands for all below it.\n\n"
        .to_owned();
    for path in NO_EFFECT {
        let _ = writeln!(text, "- `{path}`");
    }
    text
}
