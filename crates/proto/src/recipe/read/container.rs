//! The containers of a room: what runs in it, with which environment, and how much it may take.

#[cfg(doc)]
use maestro_core::scheduler::Recipe;
use maestro_core::scheduler::{
    Container, EnvironmentValue, EnvironmentVariable, ImagePullPolicy, Quantity, Resources, parse_label,
};

use super::field::{Field, Refused};
use super::ports;
use crate::v1;

/// Maestro tells a room who it is in variables of this prefix; a recipe must not be able to say something else.
const RESERVED_PREFIX: &str = "MAESTRO_";

pub(super) fn containers(field: &Field<'_>, wire: &[v1::Container]) -> Result<Vec<Container>, Refused> {
    if wire.is_empty() {
        return Err(field.refuse("is empty; a room is made of at least one container"));
    }
    let containers = field.items(wire, container);
    let names = wire.iter().enumerate().map(|(index, one)| (field.item(index), one.name.as_str()));
    Field::check_unique(names, "containers");
    ports::check_names_unique(field, wire);
    containers
}

fn container(field: &Field<'_>, wire: &v1::Container) -> Result<Container, Refused> {
    let name = field.child("name").take(parse_label(&wire.name));
    let image = image(&field.child("image"), wire);
    let pull_policy = match wire.image_pull_policy.as_str() {
        "" => Ok(ImagePullPolicy::IfNotPresent),
        text => field.child("imagePullPolicy").choose(text),
    };
    let command = field.child("command").items(&wire.command, |field, argument| without_nul(field, argument));
    let environment = field.child("environment").items(&wire.environment, environment_variable);
    let requests = resources(&field.child("requests"), wire.requests.as_ref());
    let limits = resources(&field.child("limits"), wire.limits.as_ref());
    if let (Ok(requests), Ok(limits)) = (&requests, &limits) {
        check_within_limits(&field.child("requests"), requests, limits);
    }
    let ports = field.child("ports").items(&wire.ports, ports::container_port);
    Ok(Container {
        name: name?,
        image: image?,
        image_pull_policy: pull_policy?,
        command: command?,
        environment: environment?,
        requests: requests?,
        limits: limits?,
        ports: ports?,
    })
}

/// A process needs none. Whether containers are run is not known here; [`Recipe::missing_for_containers`] is for them.
fn image(field: &Field<'_>, wire: &v1::Container) -> Result<String, Refused> {
    if wire.image.is_empty() && wire.command.is_empty() {
        return Err(field.refuse("is missing; an image or a command to run is needed"));
    }
    Ok(wire.image.clone())
}

fn environment_variable(
    field: &Field<'_>,
    wire: &v1::ContainerEnvironment,
) -> Result<EnvironmentVariable, Refused> {
    let name = variable_name(&field.child("name"), &wire.name);
    let text = wire.value.as_deref().unwrap_or_default();
    let value = match &wire.value_from {
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

fn value_from(
    field: &Field<'_>,
    wire: &v1::ContainerEnvironmentValueFrom,
) -> Result<EnvironmentValue, Refused> {
    match (&wire.field_ref, &wire.secret_key_ref) {
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

fn secret(
    field: &Field<'_>,
    wire: &v1::ContainerEnvironmentValueFromSecretKeyRef,
) -> Result<EnvironmentValue, Refused> {
    let name = field.child("name").text(&wire.name, "the name of a secret");
    let key = field.child("key").text(&wire.key, "the key in the secret");
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

fn resources(field: &Field<'_>, wire: Option<&v1::ContainerResources>) -> Result<Resources, Refused> {
    let Some(v1::ContainerResources { memory, cpu }) = wire else {
        return Ok(Resources::default());
    };
    let memory_judged = if memory.is_empty() { Ok(()) } else { check_memory(&field.child("memory"), memory) };
    if !cpu.is_empty() {
        field.child("cpu").take(Quantity::parse(cpu))?;
    }
    memory_judged?;
    Ok(Resources { memory: memory.clone(), cpu: cpu.clone() })
}

fn check_memory(field: &Field<'_>, text: &str) -> Result<(), Refused> {
    if field.take(Quantity::parse(text))?.is_below_one() {
        return Err(field.refuse(format!(
            "{text:?} is less than one byte; m means thousandths, mebibytes are written 64Mi"
        )));
    }
    Ok(())
}

fn check_within_limits(field: &Field<'_>, requests: &Resources, limits: &Resources) {
    let pairs = [("memory", &requests.memory, &limits.memory), ("cpu", &requests.cpu, &limits.cpu)];
    for (name, asked, limit) in pairs {
        let amounts = Quantity::parse(asked).ok().zip(Quantity::parse(limit).ok());
        if amounts.is_some_and(|(asked, limit)| asked > limit) {
            field.child(name).refuse(format!("{asked:?} is more than the limit of {limit:?}"));
        }
    }
}
