//! Where in a document a field is written, by its path.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::SCHEDULER;

/// The line and the column of a field's key, `12:5`; of as much of its path as is there. `None`: it cannot be told.
pub(super) fn of(text: &str, field: &str) -> Option<String> {
    let root: Node = serde_saphyr::from_str(text).ok()?;
    let recipe = match &root {
        Node::Map(entries) if entries.len() == 1 && entries[0].0.value == SCHEDULER => &entries[0].1,
        node => node,
    };
    let place = find(recipe, field)?;
    Some(format!("{}:{}", place.line(), place.column()))
}

enum Node {
    Scalar,
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Node)>),
}

fn find(node: &Node, path: &str) -> Option<Location> {
    match node {
        Node::Scalar => None,
        Node::List(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            let item = items.get(index.parse::<usize>().ok()?)?;
            find(&item.value, rest.trim_start_matches('.')).or(Some(item.referenced))
        }
        Node::Map(entries) => {
            // Keys may contain dots themselves: the longest one that fits.
            let fits = |key: &str| {
                path.strip_prefix(key).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            let fitting = entries.iter().filter_map(|(key, value)| Some((key, value, fits(&key.value)?)));
            let (key, value, rest) = fitting.max_by_key(|(key, ..)| key.value.len())?;
            find(value, rest.trim_start_matches('.')).or(Some(key.referenced))
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::Map(entries))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Node::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Node::Scalar)
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Node, E> {
        Ok(Node::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Node, E> {
        Ok(Node::Scalar)
    }
}
