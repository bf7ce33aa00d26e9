//! `docs/configuration.md`, written from the table of keys.

use std::fmt::Write as _;

use super::keys::{KEYS, Key, NO_EFFECT};
use super::regions::REGION_KEYS;

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

const REGIONS: &str = "
## Regions

Places where rooms run, by name; see [regions.md](regions.md). Without any there is one, `default`, which lives in the
data directory itself. A name is made of letters, digits, `-`, `_` and `.`, and is used as it is written.

```yaml
regions:
  us-east: {host: 10.0.0.5}
  eu-west: {host: 10.0.0.6, directory: /srv/maestro/eu-west}
```

The file says which regions there are; the environment sets their keys, with `-` and `.` in a name as underscores:
`MAESTRO_REGIONS_US_EAST_HOST=10.0.0.7`. What a region leaves unset is as `adapters.runtime.process.*` says for all.

| key | type | default | |
|---|---|---|---|
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
    page.push_str(&regions());
    page.push_str(&without_effect());
    page
}

fn regions() -> String {
    let mut text = REGIONS.to_owned();
    for key in REGION_KEYS {
        let default = if key.default.is_empty() { "unset".to_owned() } else { format!("`{}`", key.default) };
        let _ = writeln!(text, "| `regions.<name>.{}` | {} | {default} | {} |", key.path, key.kind, key.doc);
    }
    text
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
