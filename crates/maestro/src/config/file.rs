//! The configuration file: YAML in, settings with their line numbers out. Keys are case-insensitive, as in v10.

use std::collections::{BTreeMap, BTreeSet};

use maestro_core::nearest;
use maestro_core::room::Region;
use maestro_proto::document::parse_yaml;
use serde_saphyr::Spanned;

use super::keys::{Key, NO_EFFECT, keys};
use super::regions::{RegionConfig, SECTION};
use super::settings::Origin;
use crate::yaml::Node;

/// What a file says: values by their region, if they are a region's, and key; and everything that is wrong.
#[derive(Debug, Default)]
pub(super) struct FileSettings {
    /// How messages call the file.
    name: String,
    pub(super) values: BTreeMap<(Option<Region>, &'static str), (String, Origin)>,
    pub(super) regions: BTreeSet<Region>,
    pub(super) warnings: Vec<String>,
    pub(super) violations: Vec<String>,
}

/// Reads a file's text.
pub(super) fn read(name: &str, text: &str) -> FileSettings {
    let mut settings = FileSettings { name: name.to_owned(), ..FileSettings::default() };
    match parse_yaml(text) {
        Ok(Node::Map(entries)) => settings.mapping("", entries),
        Ok(Node::Scalar(None)) => {}
        Ok(Node::Scalar(Some(_)) | Node::List(_)) => {
            settings.refuse(format!("{name}: must contain settings such as `managementApi: {{port: 8080}}`"));
        }
        Err(error) => settings.refuse(error.in_file(name)),
    }
    settings
}

/// The scalars of a list as one text with commas between them; `None` if there is anything else in it.
fn joined(items: Vec<Spanned<Node>>) -> Option<String> {
    let mut texts = Vec::new();
    for item in items {
        match item.value {
            Node::Scalar(text) => texts.extend(text),
            Node::Map(_) | Node::List(_) => return None,
        }
    }
    Some(texts.join(","))
}

type Entries = Vec<(Spanned<String>, Node)>;

impl FileSettings {
    fn mapping(&mut self, parent: &str, entries: Entries) {
        for (name, node) in entries {
            let place = self.place(&name);
            let path = if parent.is_empty() { name.value } else { format!("{parent}.{}", name.value) };
            self.entry(&path, &place, node);
        }
    }

    fn entry(&mut self, path: &str, place: &Origin, node: Node) {
        if has_no_effect(path) {
            self.warnings.push(format!("{path} has no effect here ({place})"));
        } else if path.eq_ignore_ascii_case(SECTION) {
            self.regions(place, node);
        } else if let Some(key) = find(path) {
            self.set(None, key, key.path, place, node);
        } else if is_section(path) {
            let entries = self.section(path, place, node);
            self.mapping(path, entries.unwrap_or_default());
        } else {
            self.refuse(format!("{path} ({place}): unknown key; {}", advice(path)));
        }
    }

    /// Names are as they are written; below them, keys are case-insensitive as everywhere.
    fn regions(&mut self, place: &Origin, node: Node) {
        let entries = match node {
            Node::Map(entries) => entries,
            Node::Scalar(None) => return,
            Node::Scalar(Some(_)) | Node::List(_) => {
                let example = "`regions: {us-east: {host: 10.0.0.5}, eu-west: {}}`";
                return self.refuse(format!("{SECTION} ({place}): is a map of names, such as {example}"));
            }
        };
        for (name, node) in entries {
            let place = self.place(&name);
            let path = format!("{SECTION}.{}", name.value);
            match Region::parse(&name.value) {
                Err(rule) => self.refuse(format!("{path} ({place}): {rule}")),
                Ok(region) => {
                    if let Some(entries) = self.section(&path, &place, node) {
                        self.region(region, entries);
                    }
                }
            }
        }
    }

    fn region(&mut self, region: Region, entries: Entries) {
        for (name, node) in entries {
            let place = self.place(&name);
            let path = format!("{SECTION}.{region}.{}", name.value);
            match RegionConfig::KEYS.iter().find(|key| key.path.eq_ignore_ascii_case(&name.value)) {
                Some(key) => self.set(Some(region.clone()), key, &path, &place, node),
                None => {
                    let advice = region_advice(&region, &name.value);
                    self.refuse(format!("{path} ({place}): unknown key; {advice}"));
                }
            }
        }
        self.regions.insert(region);
    }

    fn set(&mut self, region: Option<Region>, key: &'static Key, path: &str, place: &Origin, node: Node) {
        let Some(text) = self.value(path, key, place, node) else { return };
        let earlier = self.values.insert((region, key.path), (text, place.clone()));
        if let (Some((_, Origin::File { line: earlier, .. })), Origin::File { name, line }) = (earlier, place)
        {
            self.refuse(format!(
                "{path} ({name} lines {earlier} and {line}): is set twice; keep one of them"
            ));
        }
    }

    /// The entries of a section, which may be empty.
    fn section(&mut self, path: &str, place: &Origin, node: Node) -> Option<Entries> {
        match node {
            Node::Map(entries) => Some(entries),
            Node::Scalar(None) => Some(Vec::new()),
            Node::Scalar(Some(_)) | Node::List(_) => {
                self.refuse(format!("{path} ({place}): is a section: its settings go below it, indented"));
                None
            }
        }
    }

    /// What a key is set to, if it is set.
    fn value(&mut self, path: &str, key: &Key, place: &Origin, node: Node) -> Option<String> {
        let text = match node {
            Node::Scalar(text) => return text,
            Node::List(items) if key.is_list => joined(items),
            Node::Map(_) | Node::List(_) => None,
        };
        if text.is_none() {
            self.refuse(not_one_value(path, place, key));
        }
        text
    }

    fn place(&self, key: &Spanned<String>) -> Origin {
        Origin::File { name: self.name.clone(), line: key.referenced.line() }
    }

    fn refuse(&mut self, violation: String) {
        self.violations.push(violation);
    }
}

fn not_one_value(path: &str, place: &Origin, key: &Key) -> String {
    match key.is_list {
        true => format!("{path} ({place}): must be a {}, without lists or sections in it", key.kind),
        false => format!("{path} ({place}): must be one value ({}), not a list or a section", key.kind),
    }
}

fn find(path: &str) -> Option<&'static Key> {
    keys().find(|key| key.spellings().any(|spelling| spelling.eq_ignore_ascii_case(path)))
}

fn is_section(path: &str) -> bool {
    let known = keys().flat_map(Key::spellings).chain(NO_EFFECT.iter().copied());
    known.into_iter().any(|spelling| is_below(spelling, path))
}

fn has_no_effect(path: &str) -> bool {
    NO_EFFECT.iter().any(|known| known.eq_ignore_ascii_case(path) || is_below(path, known))
}

/// Whether `path` is inside the section `section`.
fn is_below(path: &str, section: &str) -> bool {
    match (path.get(..section.len()), path.get(section.len()..)) {
        (Some(head), Some(tail)) => head.eq_ignore_ascii_case(section) && tail.starts_with('.'),
        _ => false,
    }
}

fn region_advice(region: &Region, key: &str) -> String {
    let names = || RegionConfig::KEYS.iter().map(|key| key.path);
    match nearest(key, names()) {
        Some(suggestion) => format!("did you mean {SECTION}.{region}.{suggestion}?"),
        None => format!("a region has {}", names().collect::<Vec<_>>().join(", ")),
    }
}

/// What to write instead of an unknown key or section.
fn advice(path: &str) -> String {
    let mut known: Vec<&str> = keys().map(|key| key.path).chain([SECTION]).collect();
    // Each section once, so that a misspelt section is mended at its own level.
    for key in keys() {
        known.extend(key.path.match_indices('.').map(|(dot, _)| &key.path[..dot]));
    }
    match nearest(path, known.into_iter()) {
        Some(suggestion) => format!("did you mean {suggestion}?"),
        None => "`maestro config reference` lists all keys".to_owned(),
    }
}
