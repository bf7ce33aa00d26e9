//! The document of a scenario, YAML or JSON, before anything is checked: from a file, with what a command line says
//! written over it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use maestro_proto::decimals::with_exact_decimals;
use serde_json::{Map, Value};
use serde_saphyr::UserMessageFormatter;

use super::ScenarioError;

/// No scenario or demand comes near it; a wrong path must not fill the memory.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Fields that only a recipe has: a document with one of them and no `scheduler` is a recipe by itself.
const RECIPE_FIELDS: [&str; 5] = ["name", "game", "spec", "maxSurge", "roomsReplicas"];

#[derive(Debug, Clone)]
pub struct Draft {
    pub(super) values: Map<String, Value>,
    /// The file is a recipe: its fields are named as they stand there.
    pub(super) is_recipe: bool,
    /// Where the paths in it begin.
    pub(super) directory: PathBuf,
}

impl Draft {
    /// Reads a file; `-` is stdin.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let values = read_object(path, "a simulation (`scheduler: …` and so on) or a scheduler's recipe")?;
        let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(Self::new(values, directory))
    }

    fn new(values: Map<String, Value>, directory: PathBuf) -> Self {
        let is_recipe =
            !values.contains_key("scheduler") && RECIPE_FIELDS.iter().any(|name| values.contains_key(*name));
        let values = match is_recipe {
            true => Map::from_iter([("scheduler".to_owned(), Value::Object(values))]),
            false => values,
        };
        Self { values, is_recipe, directory }
    }

    /// Writes a field over what the document says, `rooms.ready` into its block. What was wrong stays wrong.
    pub fn set(&mut self, field: &str, value: impl Into<Value>) {
        // Two ways to say one thing: the one that is written last counts.
        match field {
            "cycles" => self.values.remove("duration"),
            "duration" => self.values.remove("cycles"),
            _ => None,
        };
        match field.split_once('.') {
            None => {
                self.values.insert(field.to_owned(), value.into());
            }
            Some((block, field)) => {
                let block = self.values.entry(block).or_insert_with(|| Map::new().into());
                if let Value::Object(block) = block {
                    block.insert(field.to_owned(), value.into());
                }
            }
        }
    }

    /// `80`, `players.csv` or `spike:base=10,peak=200`; the path counts from where one is.
    pub fn set_demand(&mut self, text: &str) -> io::Result<()> {
        let demand = if text.bytes().all(|byte| byte.is_ascii_digit()) {
            Value::from(text)
        } else if Path::new(text).extension().is_some_and(|extension| extension == "csv") {
            let path = std::path::absolute(text)?;
            Map::from_iter([("csv".to_owned(), path.to_string_lossy().into())]).into()
        } else {
            let (curve, parameters) = text.split_once(':').unwrap_or((text, ""));
            let mut block = Map::from_iter([("curve".to_owned(), curve.into())]);
            for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                block.insert(name.trim().to_owned(), value.trim().into());
            }
            block.into()
        };
        self.values.insert("demand".to_owned(), demand);
        Ok(())
    }
}

/// What a file holds, if it is an object.
pub(super) fn read_object(path: &Path, wanted: &str) -> Result<Map<String, Value>, ScenarioError> {
    let text = read_text(path)?;
    let name = name(path);
    match parse(&with_exact_decimals(&text))
        .map_err(|reason| ScenarioError::Syntax { name: name.clone(), reason })?
    {
        Value::Object(values) => Ok(values),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let reason = format!("must hold {wanted}");
            Err(ScenarioError::Content { name, reason })
        }
    }
}

pub(super) fn read_text(path: &Path) -> Result<String, ScenarioError> {
    let unreadable = |source| ScenarioError::Unreadable { name: name(path), source };
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().take(FILE_BYTES_MAX).read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)
    };
    match read {
        Ok(bytes) if bytes as u64 == FILE_BYTES_MAX => {
            Err(unreadable(io::Error::other(format!("it is larger than {FILE_BYTES_MAX} bytes"))))
        }
        Ok(_) => Ok(text),
        Err(error) => Err(unreadable(error)),
    }
}

pub(super) fn name(path: &Path) -> String {
    match path {
        path if path == Path::new("-") => "stdin".to_owned(),
        path => path.display().to_string(),
    }
}

/// JSON is tried as JSON first: nearly all of it is YAML, but not its escapes for characters beyond the 16-bit ones.
fn parse(text: &str) -> Result<Value, String> {
    if let Ok(document) = serde_json::from_str(text) {
        return Ok(document);
    }
    serde_saphyr::from_str(text)
        .map_err(|error| error.without_snippet().render_with_formatter(&UserMessageFormatter))
}
