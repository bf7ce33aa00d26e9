//! What policies have decided so far. They pass decisions on through it, to each other and to the executor that carries
//! them out. It is stored in the operation's `data`, in Senlin's form.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Refusal;
use crate::room::{Region, RoomId};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Data {
    pub creation: Option<Part>,
    pub deletion: Option<Part>,
}

/// How many rooms, and where, and which.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    pub count: Option<u64>,
    /// `None`: nobody has decided it. Regions that get none, or give none, are left out.
    pub regions: Option<BTreeMap<Region, u64>>,
    /// The rooms to go, where a deletion policy chose them.
    pub candidates: Option<Vec<RoomId>>,
}

/// A chain's outcome as an operation keeps and shows it.
pub fn to_json(outcome: &Result<Data, Refusal>) -> Value {
    match outcome {
        Err(refusal) => json!({"status": "ERROR", "reason": refusal.to_string()}),
        Ok(Data { creation, deletion }) => {
            let mut data = Map::from_iter([("status".to_owned(), Value::from("OK"))]);
            for (key, part) in [("creation", creation), ("deletion", deletion)] {
                data.extend(part.as_ref().map(|part| (key.to_owned(), part.to_json())));
            }
            Value::Object(data)
        }
    }
}

impl Data {
    /// Reads what [`to_json`] wrote, or what another policy left. What has another form was not decided.
    pub fn from_json(data: &Value) -> Self {
        let part = |key| data.get(key).filter(|part| part.is_object()).map(Part::from_json);
        Self { creation: part("creation"), deletion: part("deletion") }
    }
}

impl Part {
    fn to_json(&self) -> Value {
        let Self { count, regions, candidates } = self;
        let regions = regions.as_ref().map(|regions| {
            regions.iter().map(|(name, rooms)| (name.to_string(), Value::from(*rooms))).collect::<Value>()
        });
        let candidates =
            candidates.as_ref().map(|rooms| rooms.iter().map(|room| Value::from(room.as_str())).collect());
        let fields = [("count", count.map(Value::from)), ("regions", regions), ("candidates", candidates)];
        fields.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }

    fn from_json(part: &Value) -> Self {
        let number = |(name, rooms): (&String, &Value)| Some((Region::parse(name).ok()?, rooms.as_u64()?));
        let regions = part.get("regions").and_then(Value::as_object);
        let candidates = part.get("candidates").and_then(Value::as_array);
        Self {
            count: part.get("count").and_then(Value::as_u64),
            regions: regions.map(|regions| regions.iter().filter_map(number).collect()),
            candidates: candidates
                .map(|rooms| rooms.iter().filter_map(Value::as_str).map(RoomId::new).collect()),
        }
    }
}
