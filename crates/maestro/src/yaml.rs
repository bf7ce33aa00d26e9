//! YAML with the position of everything in it, for messages that name the line that a person wrote.

use std::{fmt, iter};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

pub(crate) enum Node {
    Map(Vec<(Spanned<String>, Node)>),
    List(Vec<Spanned<Node>>),
    /// As it would be written in an environment variable; `None` is YAML's null.
    Scalar(Option<String>),
}

impl Node {
    /// Where the key of a field is written, or of as much of its path as is there. `None`: nothing of it is.
    pub(crate) fn find(&self, path: &str) -> Option<Location> {
        match self {
            Self::Scalar(_) => None,
            Self::List(items) => {
                let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
                let item = items.get(index.parse::<usize>().ok()?)?;
                item.value.find(rest.trim_start_matches('.')).or(Some(item.referenced))
            }
            Self::Map(entries) => {
                // Keys may contain dots themselves: the longest one that fits.
                let fitting =
                    entries.iter().filter_map(|(key, value)| Some((key, value, rest(path, &key.value)?)));
                let (key, value, rest) = fitting.max_by_key(|(key, ..)| key.value.len())?;
                value.find(rest.trim_start_matches('.')).or(Some(key.referenced))
            }
        }
    }
}

/// What comes after a key in a path, which names fields in one of their two spellings, and keys of maps in quotes.
fn rest<'a>(path: &'a str, key: &str) -> Option<&'a str> {
    let quoted = format!("[{key:?}]");
    let after = [key, &camel_case(key), &quoted].into_iter().find_map(|key| path.strip_prefix(key))?;
    (after.is_empty() || after.starts_with(['.', '['])).then_some(after)
}

fn camel_case(key: &str) -> String {
    let mut words = key.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let mut letters = word.chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        name + &capital.into_iter().chain(letters).collect::<String>()
    })
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

/// What a visitor does with everything but maps and lists: nothing at all becomes `$null`, a value of one of the types `$made`.
macro_rules! visit_scalars {
    ($tree:ident, $null:expr, |$value:ident| $made:expr, $($visit:ident: $type:ty),+) => {
        fn visit_unit<E>(self) -> Result<$tree, E> {
            Ok($null)
        }

        fn visit_none<E>(self) -> Result<$tree, E> {
            Ok($null)
        }

        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<$tree, D::Error> {
            $tree::deserialize(deserializer)
        }

        $(fn $visit<E>(self, $value: $type) -> Result<$tree, E> {
            Ok($made)
        })+
    };
}
pub(crate) use visit_scalars;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        iter::from_fn(|| map.next_entry().transpose()).collect::<Result<_, _>>().map(Node::Map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        iter::from_fn(|| list.next_element().transpose()).collect::<Result<_, _>>().map(Node::List)
    }

    visit_scalars!(Node, Node::Scalar(None), |value| scalar(&value),
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128, visit_f64: f64,
        visit_str: &str
    );
}

/// An empty text counts as unset, as it does in the environment.
fn scalar(value: &impl ToString) -> Node {
    Node::Scalar(Some(value.to_string()).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use maestro_proto::document::{parse_yaml, place};

    use super::*;

    #[test]
    fn places() {
        let text = "name: arena\nspec:\n  containers:\n  - name: room\n    image_pull_policy: x\n  - {image: i}\n\
                    labels:\n  example.com/team: a\n  example: b\n";
        let root: Node = parse_yaml(text).unwrap();
        for (path, expected) in [
            ("name", Some("1:1")),
            ("spec", Some("2:1")),
            ("spec.containers[0].imagePullPolicy", Some("5:5")),
            ("spec.containers[1].image", Some("6:6")),
            // What is missing is missing in what is there.
            ("spec.containers[1].name", Some("6:5")),
            ("spec.containers[7].name", Some("3:3")),
            ("spec.region", Some("2:1")),
            (r#"labels["example.com/team"]"#, Some("8:3")),
            ("labels.example", Some("9:3")),
            ("game", None),
            ("names", None),
        ] {
            let found = root.find(path).map(|location| place(&location));
            assert_eq!(found.as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn what_is_no_yaml() {
        let error = parse_yaml::<Node>("name: arena\n  game: x\n").err().unwrap();
        assert_eq!(
            error.in_file("a.yaml"),
            "a.yaml:2:7: not valid YAML: mapping values are not allowed in this context"
        );
    }
}
