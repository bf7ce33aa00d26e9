//! The document of a scenario, YAML or JSON, before anything is checked: from a file, with what a command line says
//! written over it.

use std::io;
use std::path::{Path, PathBuf};

use maestro_proto::document::{self, name, parse};
use serde_json::{Map, Value};

use super::ScenarioError;

/// No scenario or demand comes near it.
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
    match parse(&text) {
        Ok(Value::Object(values)) => Ok(values),
        Ok(_) => Err(ScenarioError::Content { name, reason: format!("must contain {wanted}") }),
        Err(reason) => Err(ScenarioError::Syntax { name, reason }),
    }
}

pub(super) fn read_text(path: &Path) -> Result<String, ScenarioError> {
    document::read_text(path, FILE_BYTES_MAX)
        .map_err(|source| ScenarioError::Unreadable { name: name(path), source })
}
