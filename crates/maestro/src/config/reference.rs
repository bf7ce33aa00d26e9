//! `docs/configuration.md`, written from the table of keys.

use std::fmt::Write as _;

use super::keys::{Key, NO_EFFECT, keys};
use super::regions::RegionConfig;

const INTRODUCTION: &str = "\
# Configuration

This page lists every setting of a server. It is printed by `maestro config reference`; do not edit it by hand.

Maestro needs no configuration file. A value comes from the following sources, where a later one overrides an earlier
one:

1. the default below;
2. the YAML file named by `-c FILE`;
3. the environment: `MAESTRO_` and the key in capitals, with underscores for dots, such as
   `MAESTRO_MANAGEMENTAPI_PORT=9000`. An empty variable counts as unset;
4. a flag.

`maestro config show` prints each value in effect and where it comes from.

Keys are case-insensitive. An unknown key in a file is an error; an unknown variable is ignored. A duration is
written with its unit (`500ms`, `10s`, `2m`, `1h30m`); keys that end in `Millis` take a bare number.
";

const REGIONS: &str = "
## Regions

The regions in which rooms run, by name; see [Spread rooms over regions](regions.md). If none is configured, there is
one, `default`, whose files are in the data directory itself. A name consists of letters, digits, `-`, `_` and `.`, and
is used exactly as written.

```yaml
regions:
  us-east: {host: 10.0.0.5}
  eu-west: {host: 10.0.0.6, directory: /srv/maestro/eu-west}
```

The file says which regions there are. The environment can set their keys, with underscores for `-` and `.` in a name:
`MAESTRO_REGIONS_US_EAST_HOST=10.0.0.7`. For what a region leaves unset, `adapters.runtime.process.*` applies.

| key | type | default | description |
|---|---|---|---|
";

const WITHOUT_EFFECT: &str = "
## Without effect

These settings of Maestro v10 are accepted with a warning and do nothing. Each stands for all keys below it.

";

/// The whole page.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut section = "";
    for key in keys() {
        if key.section != section {
            section = key.section;
            // Writing to a String cannot fail.
            let _ = writeln!(
                page,
                "\n## {}\n\n| key | type | default | description |\n|---|---|---|---|",
                section.trim()
            );
        }
        page.push_str(&row("", key));
    }
    page.push_str(REGIONS);
    page.extend(RegionConfig::KEYS.iter().map(|key| row("regions.<name>.", key)));
    page.push_str(WITHOUT_EFFECT);
    page.extend(NO_EFFECT.iter().map(|path| format!("- `{path}`\n")));
    page
}

fn row(prefix: &str, key: &Key) -> String {
    let default = if key.default.is_empty() { "unset".to_owned() } else { format!("`{}`", key.default) };
    let mut doc = key.doc.to_owned();
    for alias in key.aliases {
        let _ = write!(doc, " Also `{alias}`.");
    }
    format!("| `{prefix}{}` | {} | {default} | {doc} |\n", key.path, key.kind)
}
