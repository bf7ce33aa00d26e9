//! Policies: Senlin's documents, or the same in short. There is one of a kind.
//!
//! A document has a type, a version, and properties whose types are not checked yet. In short, a policy is only the
//! properties.

use maestro_core::policy::{Criteria, DeletionPolicy, PlacementPolicy, PlacementRegion, Policies};
use maestro_core::room::Region;
use serde::Serialize;
use serde_json::{Map, Value, to_value};

use super::field::{Field, Refused};
use crate::v1::{self, CreateSchedulerRequest};

type Properties = Map<String, Value>;

#[derive(Debug, Clone, Copy)]
enum Kind {
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

pub(super) fn policies(root: &Field<'_>, wire: &CreateSchedulerRequest) -> Result<Policies, Refused> {
    let (mut placements, mut deletions) = (Vec::new(), Vec::new());
    if let Some(short) = &wire.placement {
        let field = root.child("placement");
        let policy = placement(&field, &properties_of(short));
        placements.push((field, policy));
    }
    if let Some(short) = &wire.deletion {
        let field = root.child("deletion");
        let policy = deletion(&field, &properties_of(short));
        deletions.push((field, policy));
    }
    let mut refused = None;
    for (index, document) in wire.policies.iter().enumerate() {
        let field = root.child("policies").item(index);
        let properties = document.properties.clone().unwrap_or_default().into();
        let properties_field = field.child("properties");
        match kind(&field, document) {
            Ok(Kind::Placement) => placements.push((field, placement(&properties_field, &properties))),
            Ok(Kind::Deletion) => deletions.push((field, deletion(&properties_field, &properties))),
            Err(reason) => refused = Some(reason),
        }
    }
    let placement = only_one("placement", placements);
    let deletion = only_one("deletion", deletions);
    let policies = Policies { placement: placement?, deletion: deletion? };
    refused.map_or(Ok(policies), Err)
}

fn properties_of(short: &impl Serialize) -> Properties {
    match to_value(short) {
        Ok(Value::Object(properties)) => properties,
        Ok(_) | Err(_) => Properties::new(),
    }
}

/// If a policy were written twice, in either form, it would be unclear which one counts.
fn only_one<T>(kind: &str, policies: Vec<(Field<'_>, Result<T, Refused>)>) -> Result<Option<T>, Refused> {
    let mut policies = policies.into_iter();
    let Some((first, policy)) = policies.next() else {
        return Ok(None);
    };
    for (field, _) in policies {
        field.refuse(format!("there is a {kind} policy already, {first}; only one can be"));
    }
    policy.map(Some)
}

/// What the document is, by its type and version.
fn kind(field: &Field<'_>, wire: &v1::Policy) -> Result<Kind, Refused> {
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

fn placement(field: &Field<'_>, properties: &Properties) -> Result<PlacementPolicy, Refused> {
    let known = only_known(field, properties, &["regions"]);
    let list = field.child("regions");
    let regions = match properties.get("regions") {
        None | Some(Value::Null) => return Err(list.refuse("is missing; a list of regions is needed")),
        Some(Value::Array(regions)) => regions,
        Some(other) => return Err(list.refuse(format!("{other} is not a list"))),
    };
    let read: Vec<_> =
        regions.iter().enumerate().map(|(index, wire)| region(&list.item(index), wire)).collect();
    let name_of = |wire: &Value| wire["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<_> = regions.iter().map(name_of).collect();
    let listed = names.iter().zip(&read).map(|(name, (weight, _))| (name.as_str(), weight.map(u64::from)));
    list.refuse_all(PlacementPolicy::wrong_with_list(&listed.collect::<Vec<_>>()));
    let regions = read.into_iter().map(|(_, region)| region).collect::<Result<_, _>>();
    known?;
    Ok(PlacementPolicy { regions: regions? })
}

/// A region, and its weight also if something else about it is wrong.
fn region(field: &Field<'_>, wire: &Value) -> (Option<u32>, Result<PlacementRegion, Refused>) {
    let Value::Object(wire) = wire else {
        return (None, Err(field.refuse(format!("{wire} is not an object with a name"))));
    };
    let known = only_known(field, wire, &["name", "weight", "cap"]);
    let [name_field, weight_field, cap_field] = ["name", "weight", "cap"].map(|name| field.child(name));
    let name = text(&name_field, wire.get("name"))
        .and_then(|name| name_field.take(Region::parse(&name.unwrap_or_default())));
    let weight = whole_number(&weight_field, wire.get("weight")).and_then(|weight| match weight {
        None => Ok(PlacementRegion::DEFAULT_WEIGHT),
        Some(weight) => weight_field.number(weight, 0, i32::MAX),
    });
    let cap = whole_number(&cap_field, wire.get("cap")).and_then(|cap| match cap {
        None | Some(-1) => Ok(None),
        Some(cap) => u32::try_from(cap)
            .map(Some)
            .map_err(|_| cap_field.refuse(format!("{cap} is not at least 0; -1 means no limit"))),
    });
    let region = || {
        known?;
        Ok(PlacementRegion { name: name?, weight: weight?, cap: cap? })
    };
    (weight.ok(), region())
}

/// Beside the criteria, Senlin's document says how nodes leave a cluster. Rooms are always deleted, and have
/// `spec.terminationGracePeriod` to end; removing rooms always lowers the fleet size. So these properties are read, and
/// refused where they ask for something else.
fn deletion(field: &Field<'_>, properties: &Properties) -> Result<DeletionPolicy, Refused> {
    let names = ["criteria", "destroy_after_deletion", "grace_period", "reduce_desired_capacity", "hooks"];
    let known = only_known(field, properties, &names);
    let [criteria, destroys, grace_period, reduces, hooks] =
        names.map(|name| (field.child(name), properties.get(name)));
    let criteria = text(&criteria.0, criteria.1).and_then(|text| match text {
        // Senlin's default.
        None => Ok(Criteria::Random),
        Some(text) => criteria.0.choose(&text),
    });
    let destroys = flag(&destroys.0, destroys.1).and_then(|flag| match flag {
        Some(false) => Err(destroys.0.refuse("false is not possible: a room that leaves its fleet ends")),
        Some(true) | None => Ok(()),
    });
    let waits = whole_number(&grace_period.0, grace_period.1).and_then(|seconds| match seconds {
        Some(seconds @ ..0) => Err(grace_period.0.refuse(format!("{seconds} is not at least 0"))),
        Some(0..) | None => Ok(()),
    });
    let reduces = flag(&reduces.0, reduces.1);
    let hooks = match hooks.1 {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Object(hooks)) if hooks.is_empty() => Ok(()),
        Some(_) => Err(hooks.0.refuse("is not possible: nobody is asked before a room ends")),
    };
    known.and(destroys).and(waits).and(reduces).and(hooks)?;
    Ok(DeletionPolicy { criteria: criteria? })
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

/// A whole number may also be written as text, as everywhere in a recipe.
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
