//! People: they ask any engine for anything, at any time, do not wait for each other, and may never hear an answer.

use std::fmt;

use maestro_core::lock::LockKind;
use maestro_core::operation::OperationId;
use maestro_core::scheduler::{MaxSurge, Recipe, Version};
use maestro_engine::ports::store::{SchedulerRecord, SchedulerState};
use maestro_engine::services::RegionOrder;
use maestro_engine::{Engine, Error};

use crate::host::{Exit, Habits, Span};
use crate::story::Name;

use super::placing;
use super::recipes::GENERATION;
use super::script::{Script, Wish, choose};
use super::stage::Stage;

const PEOPLE: [&str; 4] = ["ann", "bob", "eve", "joe"];

/// What someone asks for, of one scheduler or region.
#[derive(Debug, Clone)]
enum Request {
    Create(Box<Recipe>),
    Add { amount: u32, force: bool },
    Remove { amount: u32, force: bool },
    NewVersion { recipe: Box<Recipe>, what: String },
    Switch(Version),
    PauseRollout,
    ResumeRollout,
    CancelRollout,
    CancelOperation(Name),
    ReleaseLock(LockKind),
    Delete { force: bool },
    OrderRegion(RegionOrder),
}

pub(super) async fn want_something(stage: &mut Stage, script: &Script) {
    let Some(wish) = choose(&mut stage.random, &script.wishes) else { return };
    if let Wish::OrderRegion(order) = wish {
        let regions = stage.world.regions();
        let region = &regions[stage.random.usize(0..regions.len())];
        ask(stage, region.as_str(), Request::OrderRegion(order));
        return;
    }
    // They look into the store where a person would have looked at a list a while ago.
    let Ok(schedulers) = stage.world.store().schedulers().await else { return };
    if wish == Wish::Create || schedulers.is_empty() {
        let recipe = stage.recipes[stage.random.usize(0..stage.recipes.len())].clone();
        create(stage, recipe);
        return;
    }
    let scheduler = schedulers[stage.random.usize(0..schedulers.len())].clone();
    if let Some(request) = request(stage, wish, &scheduler).await {
        ask(stage, scheduler.name.as_str(), request);
    }
}

pub(super) fn create(stage: &mut Stage, recipe: Recipe) {
    if !stage.recipes.iter().any(|known| known.name == recipe.name) {
        stage.recipes.push(recipe.clone());
    }
    let name = recipe.name.clone();
    ask(stage, name.as_str(), Request::Create(Box::new(recipe)));
}

pub(super) fn add_rooms(stage: &mut Stage, scheduler: &str, amount: u32) {
    ask(stage, scheduler, Request::Add { amount, force: false });
}

pub(super) fn new_version(stage: &mut Stage, recipe: Recipe, what: &str) {
    let name = recipe.name.clone();
    ask(stage, name.as_str(), Request::NewVersion { recipe: Box::new(recipe), what: what.to_owned() });
}

/// A deletion that ended in an error stays asked for; someone has to ask again.
pub(super) async fn delete_again(stage: &mut Stage) {
    let Ok(schedulers) = stage.world.store().schedulers().await else { return };
    for scheduler in schedulers.into_iter().filter(|record| record.state == SchedulerState::Deleting) {
        let unfinished = stage.world.store().unfinished(&scheduler.name).await;
        if unfinished.is_ok_and(|unfinished| unfinished.is_empty()) {
            ask(stage, scheduler.name.as_str(), Request::Delete { force: false });
        }
    }
}

/// Nobody keeps a region closed at the end.
pub(super) async fn open_regions(stage: &mut Stage) {
    let Ok(said) = stage.world.store().regions().await else { return };
    for closed in said.into_iter().filter(|region| region.cordoned) {
        ask(stage, closed.name.as_str(), Request::OrderRegion(RegionOrder::Uncordon));
    }
}

/// `None`: there is nothing of the kind to ask for.
async fn request(stage: &mut Stage, wish: Wish, scheduler: &SchedulerRecord) -> Option<Request> {
    let random = &mut stage.random;
    let store = stage.world.store();
    Some(match wish {
        Wish::Create | Wish::OrderRegion(_) => return None,
        Wish::Add => Request::Add { amount: random.u32(1..6), force: random.u32(0..4) == 0 },
        Wish::Remove => Request::Remove { amount: random.u32(1..6), force: random.u32(0..4) == 0 },
        Wish::Minor => minor_version(stage, scheduler),
        Wish::Major => major_version(stage, scheduler),
        Wish::Switch => {
            let (versions, _) = store.versions(&scheduler.name).await.ok()?;
            Request::Switch(versions.get(random.usize(0..versions.len().max(1)))?.version)
        }
        Wish::PauseRollout => Request::PauseRollout,
        Wish::ResumeRollout => Request::ResumeRollout,
        Wish::CancelRollout => Request::CancelRollout,
        Wish::CancelOperation => {
            let unfinished = store.unfinished(&scheduler.name).await.ok()?;
            let one = unfinished.get(random.usize(0..unfinished.len().max(1)))?;
            Request::CancelOperation(Name { kind: Some(one.definition.kind()), id: one.id })
        }
        Wish::ReleaseLock => {
            let locks = store.locks(&scheduler.name).await.ok()?;
            Request::ReleaseLock(locks.held.get(random.usize(0..locks.held.len().max(1)))?.kind)
        }
        // Where there is one region, force changes nothing.
        Wish::Delete => Request::Delete { force: stage.world.has_several_regions() && random.bool() },
    })
}

fn minor_version(stage: &mut Stage, scheduler: &SchedulerRecord) -> Request {
    let mut recipe = (*scheduler.recipe).clone();
    recipe.max_surge = MaxSurge::Rooms(stage.random.u32(1..6));
    if stage.random.bool() {
        recipe.rooms_replicas = stage.random.u32(0..8);
    }
    if stage.world.has_several_regions() && stage.random.bool() {
        recipe.policies = placing::policies(&stage.world.regions(), &mut stage.random);
    }
    Request::NewVersion { recipe: Box::new(recipe), what: "a minor version".into() }
}

/// A new generation of the game, which may be a bad one.
fn major_version(stage: &mut Stage, scheduler: &SchedulerRecord) -> Request {
    stage.generation += 1;
    let flag = format!("{GENERATION}{}", stage.generation);
    let quality = match stage.random.u32(0..10) {
        0 | 1 => Some(("never ready", never_ready())),
        2 | 3 => Some(("crashing", crashing())),
        _ => None,
    };
    let mut recipe = (*scheduler.recipe).clone();
    recipe.spec.containers[0].command = vec!["/game".into(), flag.clone()];
    let what = format!("generation {} ({})", stage.generation, quality.as_ref().map_or("good", |bad| bad.0));
    if let Some((_, habits)) = quality {
        stage.world.hosts().for_each(|host| host.set_habits_of_flag(&flag, habits.clone()));
    }
    Request::NewVersion { recipe: Box::new(recipe), what }
}

pub(super) fn never_ready() -> Habits {
    Habits { ready_after: None, ..Habits::default() }
}

pub(super) fn crashing() -> Habits {
    let after = Span::millis(10, 500);
    Habits { ready_after: None, exits: Some(Exit { after, code: 1 }), ..Habits::default() }
}

/// Any node that takes the connection, frozen ones included. `name` is that of the scheduler or region.
fn ask(stage: &mut Stage, name: &str, request: Request) {
    let user = PEOPLE[stage.random.usize(0..PEOPLE.len())];
    let nodes = stage.world.nodes();
    let Some(node) = nodes.get(stage.random.usize(0..nodes.len().max(1))).copied() else {
        stage.world.trace().note(format_args!("{user} finds nobody who could {request} of {name}"));
        return;
    };
    let (trace, inspector) = (stage.world.trace().clone(), stage.world.inspector().clone());
    trace.note(format_args!("{user} asks engine-{node} to {request} of {name}"));
    let name = name.to_owned();
    stage.world.spawn_on(node, format!("request of {user}"), |engine| async move {
        let what = request.to_string();
        match carry_out(&engine, &name, request, user).await {
            Ok(operation) => {
                let by = operation.map(|id| format!(", by {}", trace.name_of(id))).unwrap_or_default();
                trace.note(format_args!("engine-{node} to {user}: {what} of {name}: ok{by}"));
                if let Some(operation) = operation {
                    inspector.accepted(&name, operation);
                }
            }
            Err(error) => trace.note(format_args!("engine-{node} to {user}: {what} of {name}: {error}")),
        }
    });
}

async fn carry_out(
    engine: &Engine,
    name: &str,
    request: Request,
    user: &str,
) -> Result<Option<OperationId>, Error> {
    Ok(match request {
        Request::Create(recipe) => {
            engine.create_scheduler(*recipe, user).await?;
            None
        }
        Request::Add { amount, force } => Some(engine.add_rooms(name, amount, force, user).await?),
        Request::Remove { amount, force } => Some(engine.remove_rooms(name, amount, force, user).await?),
        Request::NewVersion { recipe, .. } => Some(engine.create_version(name, *recipe, user).await?),
        Request::Switch(version) => Some(engine.switch_version(name, &version.to_string(), user).await?),
        Request::PauseRollout => {
            engine.pause_rollout(name, user).await?;
            None
        }
        Request::ResumeRollout => {
            engine.resume_rollout(name, user).await?;
            None
        }
        Request::CancelRollout => Some(engine.cancel_rollout(name, user).await?),
        Request::CancelOperation(Name { id, .. }) => {
            engine.cancel_operation(name, &id.to_string(), user).await?;
            None
        }
        Request::ReleaseLock(kind) => {
            engine.release_lock(name, kind.as_str(), None, user, "it takes too long").await?;
            None
        }
        Request::Delete { force: false } => Some(engine.delete_scheduler(name, user).await?),
        Request::Delete { force: true } => Some(engine.delete_scheduler_by_force(name, user).await?),
        Request::OrderRegion(order) => {
            engine.order_region(name, order, user, "so it is better").await?;
            None
        }
    })
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_force = |force: &bool| if *force { " by force" } else { "" };
        match self {
            Self::Create(_) => f.write_str("create the scheduler"),
            Self::Add { amount, force } => write!(f, "add {amount} rooms{}", by_force(force)),
            Self::Remove { amount, force } => write!(f, "remove {amount} rooms{}", by_force(force)),
            Self::NewVersion { what, .. } => write!(f, "make {what}"),
            Self::Switch(version) => write!(f, "switch to {version}"),
            Self::PauseRollout => f.write_str("pause the rollout"),
            Self::ResumeRollout => f.write_str("resume the rollout"),
            Self::CancelRollout => f.write_str("cancel the rollout"),
            Self::CancelOperation(operation) => write!(f, "cancel {operation}"),
            Self::ReleaseLock(kind) => write!(f, "release the lock {}", kind.as_str()),
            Self::Delete { force } => write!(f, "delete everything{}", by_force(force)),
            Self::OrderRegion(RegionOrder::Cordon) => f.write_str("keep new rooms out"),
            Self::OrderRegion(RegionOrder::Drain) => f.write_str("move the rooms out"),
            Self::OrderRegion(RegionOrder::Uncordon) => f.write_str("end the cordon"),
            Self::OrderRegion(RegionOrder::ConfirmLost) => f.write_str("confirm that silent rooms are lost"),
        }
    }
}
