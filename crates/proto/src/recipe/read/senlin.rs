//! Senlin's policy documents: a type, a version, and properties whose types are not checked yet.

use maestro_core::policy::{DeletionPolicy, PlacementPolicy};
use serde_json::{Map, Value};

use super::field::{Field, Refused};
use super::policies::{self, RegionRead};
use crate::v1;

type Properties = Map<String, Value>;

/// Refuses a property that asks for what Maestro does not do.
type Check = fn(&Field<'_>, Option<&Value>) -> Result<(), Refused>;

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Placement,
    Deletion,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Placement, Self::Deletion];

    fn type_name(self) -> &'static str {
        match self {
            Self::Placement => PlacementPolicy::TYPE,
            Self::Deletion => DeletionPolicy::TYPE,
        }
    }

    fn versions(self) -> &'static [&'static str] {
        match self {
            Self::Placement => &["1.0"],
            Self::Deletion => &["1.0", "1.1"],
        }
    }
}

/// What the document is, by its type and version.
pub(super) fn kind(field: &Field<'_>, wire: &v1::Policy) -> Result<Kind, Refused> {
    let found = Kind::ALL.into_iter().find(|kind| kind.type_name() == wire.r#type);
    let kind = found.ok_or_else(|| {
        let types = Kind::ALL.map(Kind::type_name).join(", ");
        let reason = match wire.r#type.as_str() {
            "" => format!("is missing; one of {types} is needed"),
            "senlin.policy.scaling" => "scaling is what the recipe's autoscaling block is for".to_owned(),
            other => format!("{other:?} is not one of {types}"),
        };
        field.child("type").refuse(reason)
    })?;
    let written = wire.version.clone().map(Value::from).unwrap_or_default();
    let version = match &written {
        Value::String(text) => text.clone(),
        // YAML and protobuf take 1.0 for the number 1.
        Value::Number(number) if !number.to_string().contains('.') => format!("{number}.0"),
        other => other.to_string(),
    };
    if kind.versions().contains(&version.as_str()) {
        return Ok(kind);
    }
    let versions = kind.versions().join(" or ");
    let reason = match written {
        Value::Null => format!("is missing; {versions} is needed"),
        _ => format!("{version} is not {versions}"),
    };
    Err(field.child("version").refuse(reason))
}

pub(super) fn placement(field: &Field<'_>, properties: &Properties) -> Result<PlacementPolicy, Refused> {
    let known = only_known(field, properties, &["regions"]);
    let list = field.child("regions");
    let regions = match properties.get("regions") {
        None | Some(Value::Null) => Err(list.refuse("is missing; a list of regions is needed")),
        Some(Value::Array(regions)) => {
            let read = |(index, region)| read_region(&list.item(index), region);
            policies::regions(&list, regions.iter().enumerate().map(read).collect())
        }
        Some(other) => Err(list.refuse(format!("{other} is not a list"))),
    };
    known.and(regions)
}

fn read_region(field: &Field<'_>, region: &Value) -> RegionRead {
    let Value::Object(region) = region else {
        let name = Err(field.refuse(format!("{region} is not an object with a name")));
        return RegionRead { name, weight: Ok(None), cap: Ok(None) };
    };
    let known = only_known(field, region, &["name", "weight", "cap"]);
    let name = text(&field.child("name"), region.get("name")).map(Option::unwrap_or_default);
    RegionRead {
        name: known.and(name),
        weight: whole_number(&field.child("weight"), region.get("weight")),
        cap: whole_number(&field.child("cap"), region.get("cap")),
    }
}

/// Beside the criteria, Senlin's document says how nodes leave a cluster. Rooms are always deleted, and have
/// `spec.terminationGracePeriod` to end; removing rooms always lowers the fleet size. So these properties are read, and
/// refused where they ask for something else.
pub(super) fn deletion(field: &Field<'_>, properties: &Properties) -> Result<DeletionPolicy, Refused> {
    const OTHERS: [&str; 4] = ["destroy_after_deletion", "grace_period", "reduce_desired_capacity", "hooks"];
    let known = only_known(field, properties, &[&["criteria"], OTHERS.as_slice()].concat());
    let criteria_field = field.child("criteria");
    let criteria = text(&criteria_field, properties.get("criteria"))
        .and_then(|text| policies::criteria(&criteria_field, text.as_deref()));
    let checks: [Check; 4] = [destroys, waits, |field, value| flag(field, value).map(drop), has_no_hooks];
    let others: Vec<_> = OTHERS
        .into_iter()
        .zip(checks)
        .map(|(name, check)| check(&field.child(name), properties.get(name)))
        .collect();
    known?;
    others.into_iter().collect::<Result<(), _>>()?;
    Ok(DeletionPolicy { criteria: criteria? })
}

fn destroys(field: &Field<'_>, value: Option<&Value>) -> Result<(), Refused> {
    match flag(field, value)? {
        Some(false) => Err(field.refuse("false is not possible: a room that leaves its fleet ends")),
        Some(true) | None => Ok(()),
    }
}

fn waits(field: &Field<'_>, value: Option<&Value>) -> Result<(), Refused> {
    match whole_number(field, value)? {
        Some(seconds @ ..0) => Err(field.refuse(format!("{seconds} is not at least 0"))),
        Some(0..) | None => Ok(()),
    }
}

fn has_no_hooks(field: &Field<'_>, value: Option<&Value>) -> Result<(), Refused> {
    match value {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(hooks)) if hooks.is_empty() => Ok(()),
        Some(_) => Err(field.refuse("is not possible: nobody is asked before a room ends")),
    }
}

fn only_known(field: &Field<'_>, object: &Properties, known: &[&str]) -> Result<(), Refused> {
    let mut outcome = Ok(());
    for name in object.keys().filter(|name| !known.contains(&name.as_str())) {
        outcome = Err(field.child(name).refuse(format!("is not known; there is {}", known.join(", "))));
    }
    outcome
}

fn text(field: &Field<'_>, value: Option<&Value>) -> Result<Option<String>, Refused> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(field.refuse(format!("{other} is not a text"))),
    }
}

fn flag(field: &Field<'_>, value: Option<&Value>) -> Result<Option<bool>, Refused> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => Err(field.refuse(format!("{other} is not true or false"))),
    }
}

/// As a number or, as everywhere in a recipe, as text.
fn whole_number(field: &Field<'_>, value: Option<&Value>) -> Result<Option<i32>, Refused> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let number = text.strip_suffix(".0").unwrap_or(&text).parse().ok();
    number.map(Some).ok_or_else(|| {
        field.refuse(format!("{} is not a whole number up to {}", value.unwrap_or(&Value::Null), i32::MAX))
    })
}
