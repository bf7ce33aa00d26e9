//! The containers of a room: what runs in it, with which environment, and how much it may take.

use std::collections::BTreeMap;

use super::field::{Field, Refused};
use super::ports;
use crate::scheduler::draft::{
    ContainerDraft, EnvironmentVariableDraft, ResourcesDraft, SecretKeyRefDraft, ValueFromDraft,
};
use crate::scheduler::name::parse_label;
use crate::scheduler::quantity::Quantity;
use crate::scheduler::{Container, EnvironmentValue, EnvironmentVariable, ImagePullPolicy, Resources};

/// Maestro tells a room who it is in variables of this prefix; a recipe must not be able to say something else.
const RESERVED_PREFIX: &str = "MAESTRO_";

pub(super) fn containers(field: &Field<'_>, drafts: &[ContainerDraft]) -> Result<Vec<Container>, Refused> {
    if drafts.is_empty() {
        return Err(field.refuse("is empty; a room is made of at least one container"));
    }
    let containers = field.items(drafts, container);
    check_names_unique(field, drafts);
    ports::check_names_unique(field, drafts);
    containers
}

fn check_names_unique(field: &Field<'_>, drafts: &[ContainerDraft]) {
    let mut first_use = BTreeMap::new();
    for (index, draft) in drafts.iter().enumerate().filter(|(_, draft)| !draft.name.is_empty()) {
        let name = field.item(index).child("name");
        if let Some(first) = first_use.get(&draft.name) {
            name.refuse(format!(
                "{:?} is taken by {first}; containers of a room need different names",
                draft.name
            ));
        } else {
            first_use.insert(&draft.name, field.item(index));
        }
    }
}

fn container(field: &Field<'_>, draft: &ContainerDraft) -> Result<Container, Refused> {
    let name = field.child("name").take(parse_label(&draft.name));
    let image = image(&field.child("image"), draft);
    let pull_policy = match draft.image_pull_policy.as_str() {
        "" => Ok(ImagePullPolicy::IfNotPresent),
        text => field.child("imagePullPolicy").take(ImagePullPolicy::parse(text)),
    };
    let command =
        field.child("command").items(&draft.command, |field, argument| without_nul(field, argument));
    let environment = field.child("environment").items(&draft.environment, environment_variable);
    let requests = resources(&field.child("requests"), draft.requests.as_ref());
    let limits = resources(&field.child("limits"), draft.limits.as_ref());
    if let (Ok(requests), Ok(limits)) = (&requests, &limits) {
        check_within_limits(&field.child("requests"), requests, limits);
    }
    let ports = field.child("ports").items(&draft.ports, ports::container_port);
    Ok(Container {
        name: name?,
        image: image?,
        image_pull_policy: pull_policy?,
        command: command?,
        environment: environment?,
        requests: requests?.written,
        limits: limits?.written,
        ports: ports?,
    })
}

/// A process needs none. Whether containers are run is not known here; [`Recipe::missing_for_containers`] is for them.
fn image(field: &Field<'_>, draft: &ContainerDraft) -> Result<String, Refused> {
    if draft.image.is_empty() && draft.command.is_empty() {
        return Err(field.refuse("is missing; an image or a command to run is needed"));
    }
    Ok(draft.image.clone())
}

fn environment_variable(
    field: &Field<'_>,
    draft: &EnvironmentVariableDraft,
) -> Result<EnvironmentVariable, Refused> {
    let name = variable_name(&field.child("name"), &draft.name);
    let text = draft.value.as_deref().unwrap_or_default();
    let value = match &draft.value_from {
        // Without either it is the empty text: that is how v10 prints one, so it must be readable again.
        None => without_nul(&field.child("value"), text).map(EnvironmentValue::Text),
        Some(_) if !text.is_empty() => {
            Err(field.refuse(format!("has the value {text:?} and a valueFrom; only one of them can count")))
        }
        Some(source) => value_from(&field.child("valueFrom"), source),
    };
    Ok(EnvironmentVariable { name: name?, value: value? })
}

fn variable_name(field: &Field<'_>, name: &str) -> Result<String, Refused> {
    let name = field.text(name, "the name of an environment variable")?;
    if name.contains(['=', '\0']) {
        return Err(
            field.refuse(format!("{name:?} is not the name of a variable: it may not contain = or NUL"))
        );
    }
    if name.starts_with(RESERVED_PREFIX) {
        return Err(field.refuse(format!(
            "{name:?} is set by Maestro: use a name that does not start with {RESERVED_PREFIX}"
        )));
    }
    Ok(name)
}

fn value_from(field: &Field<'_>, draft: &ValueFromDraft) -> Result<EnvironmentValue, Refused> {
    match (&draft.field_ref, &draft.secret_key_ref) {
        (Some(reference), None) => {
            let path = field
                .child("fieldRef.fieldPath")
                .text(&reference.field_path, "the path of a field of the room, such as metadata.name,")?;
            Ok(EnvironmentValue::Field { path })
        }
        (None, Some(reference)) => secret(&field.child("secretKeyRef"), reference),
        (None, None) => Err(field.refuse("is empty; a fieldRef or a secretKeyRef is needed")),
        (Some(_), Some(_)) => {
            Err(field.refuse("has a fieldRef and a secretKeyRef; only one of them can count"))
        }
    }
}

fn secret(field: &Field<'_>, draft: &SecretKeyRefDraft) -> Result<EnvironmentValue, Refused> {
    let name = field.child("name").text(&draft.name, "the name of a secret");
    let key = field.child("key").text(&draft.key, "the key in the secret");
    Ok(EnvironmentValue::Secret { name: name?, key: key? })
}

/// No process can be given a NUL, in an argument or in its environment.
fn without_nul(field: &Field<'_>, text: &str) -> Result<String, Refused> {
    if text.contains('\0') {
        Err(field.refuse(format!("{text:?} contains a NUL character")))
    } else {
        Ok(text.to_owned())
    }
}

/// What was written, and what it amounts to.
struct Amounts {
    written: Resources,
    memory: Option<Quantity>,
    cpu: Option<Quantity>,
}

fn resources(field: &Field<'_>, draft: Option<&ResourcesDraft>) -> Result<Amounts, Refused> {
    let Some(draft) = draft else {
        return Ok(Amounts { written: Resources::default(), memory: None, cpu: None });
    };
    let given = |text: &str| !text.is_empty();
    let memory = given(&draft.memory).then(|| memory(&field.child("memory"), &draft.memory)).transpose();
    let cpu = given(&draft.cpu).then(|| field.child("cpu").take(Quantity::parse(&draft.cpu))).transpose();
    Ok(Amounts {
        memory: memory?,
        cpu: cpu?,
        written: Resources { memory: draft.memory.clone(), cpu: draft.cpu.clone() },
    })
}

fn memory(field: &Field<'_>, text: &str) -> Result<Quantity, Refused> {
    let quantity = field.take(Quantity::parse(text))?;
    if quantity.is_below_one() {
        return Err(field.refuse(format!(
            "{text:?} is less than one byte; m means thousandths, mebibytes are written 64Mi"
        )));
    }
    Ok(quantity)
}

fn check_within_limits(field: &Field<'_>, requests: &Amounts, limits: &Amounts) {
    let check = |name: &str, asked: (&str, Option<Quantity>), limit: (&str, Option<Quantity>)| {
        if asked.1.zip(limit.1).is_some_and(|(asked, limit)| asked > limit) {
            field.child(name).refuse(format!("{:?} is more than the limit of {:?}", asked.0, limit.0));
        }
    };
    check("memory", (&requests.written.memory, requests.memory), (&limits.written.memory, limits.memory));
    check("cpu", (&requests.written.cpu, requests.cpu), (&limits.written.cpu, limits.cpu));
}
