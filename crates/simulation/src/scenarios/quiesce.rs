//! The end of a run: nothing fails any more, and players go home. The world must come to rest then, and stay so.

use std::collections::BTreeSet;
use std::time::Duration;

use maestro_core::lock::Holder;
use maestro_core::operation::DefinitionKind;
use maestro_core::room::{PingStatus, Purpose, Region, RoomId, RoomStatus};
use maestro_core::scheduler::{Autoscaling, RecipeChange, ScalingPolicy, SchedulerName};
use maestro_engine::Parts;
use maestro_engine::ports::room_table::{RoomTable, RoomView};
use maestro_engine::ports::store::{
    Intent, RolloutState, RoomRecord, SchedulerRecord, SchedulerState, StoreError, VersionRecord,
};
use tokio::time::{Instant, sleep};

use crate::faults::Faults;
use crate::host::{Host, HostFaults, Phase};
use crate::world::World;

use super::stage::Stage;
use super::{outages, people, players};

/// More than the ownership of a dead engine lasts, a ping timeout, a lock's wait, a removal that is given up, a rollout
/// there and back with its failures, and their back-offs.
const RESTS_WITHIN: Duration = Duration::from_secs(60 * 60);
/// What was on its way when the faults ended has arrived by then: slow calls, and requests that a frozen engine took.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);
/// Of a room that is up and says that it is ready, everybody knows so by then: its next ping has come, and no answer waits.
const HEARD_WITHIN: Duration = Duration::from_secs(15);
const RESTS_FOR: Duration = Duration::from_secs(5 * 60);
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

pub(super) async fn quiesce(stage: &mut Stage) {
    stage.world.trace().note("no more faults from here on");
    stage.world.set_faults(Faults::NONE);
    for host in stage.world.hosts() {
        host.set_host_faults(HostFaults::default());
        host.forget_special_habits();
    }
    outages::end_all(stage);
    stage.world.receivers().heal();
    stage.thaw_all();
    stage.world.bury_the_dead().await;
    if stage.world.workers().is_empty() {
        stage.start_node(Parts::ALL).await;
    }
    players::go_home(stage);
}

pub(super) async fn come_to_rest(stage: &mut Stage) {
    hear_all(stage).await;
    sleep(ARRIVES_WITHIN - HEARD_WITHIN).await;
    let began = Instant::now();
    while let Some(why) = unrest(&stage.world).await {
        if stage.has_failed() {
            return;
        }
        if began.elapsed() > RESTS_WITHIN {
            give_up(stage, format!("not at rest after {RESTS_WITHIN:?} without faults: {why}")).await;
            return;
        }
        people::delete_again(stage).await;
        people::open_regions(stage).await;
        sleep(CHECK_INTERVAL).await;
    }
    let world = &stage.world;
    let same = running(world);
    world.trace().note("at rest");
    sleep(RESTS_FOR).await;
    let again = unrest(world).await;
    let now = running(world);
    if let Some(why) = again {
        give_up(stage, format!("it did not stay at rest: {why}")).await;
    } else if same != now {
        give_up(stage, format!("it did not stay at rest: rooms were {same:?} and are {now:?}")).await;
    } else {
        let ping_timeout = world.settings().room_ping_timeout;
        world.inspector().at_rest(world.store(), &world.rooms(), ping_timeout).await;
    }
}

/// A room that does not count as what it is gets replaced after a while, and that would be all that is seen of it.
async fn hear_all(stage: &mut Stage) {
    sleep(HEARD_WITHIN / 3).await;
    let before = unheard(&stage.world).await.unwrap_or_default();
    sleep(HEARD_WITHIN - HEARD_WITHIN / 3).await;
    let after = unheard(&stage.world).await.unwrap_or_default();
    if let Some(room) = before.intersection(&after).next() {
        give_up(stage, format!("room {room} is up and says that it is ready, and counts as pending")).await;
    }
}

/// Rooms that were started for all to know, say that they are ready, and do not count as such.
async fn unheard(world: &World) -> Result<BTreeSet<RoomId>, StoreError> {
    let up = world.rooms().into_iter().filter(|room| room.phase == Phase::Up && !room.is_silent);
    let up: BTreeSet<_> = up.map(|room| room.id).collect();
    let mut unheard = BTreeSet::new();
    for row in world.store().all_live_rooms().await? {
        if row.handle.is_none() || !up.contains(&row.id) {
            continue;
        }
        let view = world.table().room(&row.scheduler, &row.id).await.ok().flatten();
        let says_ready =
            |view: RoomView| view.ping == PingStatus::Ready && view.status == RoomStatus::Pending;
        if view.is_some_and(says_ready) {
            unheard.insert(row.id);
        }
    }
    Ok(unheard)
}

async fn give_up(stage: &mut Stage, why: String) {
    stage.world.trace().note(&why);
    // What is left has names of its own.
    let ping_timeout = stage.world.settings().room_ping_timeout;
    stage.world.inspector().at_rest(stage.world.store(), &stage.world.rooms(), ping_timeout).await;
    stage.world.inspector().not_converged(&why).await;
    stage.restless = Some(why);
}

/// What is still to be done; `None`: all fleets are as they should be.
async fn unrest(world: &World) -> Option<String> {
    match look_around(world).await {
        Ok(found) => found,
        Err(error) => Some(error.to_string()),
    }
}

async fn look_around(world: &World) -> Result<Option<String>, StoreError> {
    let schedulers = world.store().schedulers().await?;
    for scheduler in &schedulers {
        if let Some(why) = unrest_of(world, scheduler).await? {
            return Ok(Some(format!("scheduler {}: {why}", scheduler.name)));
        }
    }
    let open = world.store().open_allocations(None).await?;
    if let Some(one) = open.first() {
        return Ok(Some(format!(
            "{} rooms are held, one of them {} until {}",
            open.len(),
            one.room,
            one.expires_at
        )));
    }
    if let Some(why) = undelivered(world, &schedulers).await? {
        return Ok(Some(why));
    }
    let rows = world.store().all_live_rooms().await?;
    let wanted: BTreeSet<_> = rows.into_iter().map(|row| (row.region, row.id)).collect();
    let there = running(world);
    if wanted != there {
        let (missing, unwanted) = (wanted.difference(&there), there.difference(&wanted));
        let (missing, unwanted) = (missing.collect::<Vec<_>>(), unwanted.collect::<Vec<_>>());
        return Ok(Some(format!("rooms {missing:?} do not run, and {unwanted:?} do")));
    }
    if let Some(silent) = world.rooms().into_iter().find(|room| room.is_silent) {
        return Ok(Some(format!("room {} will be silent for too long", silent.id)));
    }
    if let Some(closed) = world.store().regions().await?.into_iter().find(|region| region.cordoned) {
        return Ok(Some(format!("region {} is cordoned", closed.name)));
    }
    let names: BTreeSet<_> = schedulers.into_iter().map(|scheduler| scheduler.name).collect();
    Ok(world.hosts().find_map(|host| homeless(host, &names)))
}

/// Events that somebody could take.
async fn undelivered(world: &World, schedulers: &[SchedulerRecord]) -> Result<Option<String>, StoreError> {
    for scheduler in schedulers {
        let is_disabled = |name: &str| {
            let mut same = scheduler.recipe.forwarders.iter().filter(|forwarder| forwarder.name == name);
            same.clone().next().is_some() && same.all(|forwarder| !forwarder.enabled)
        };
        let queues = world.store().event_queues(&scheduler.name).await?;
        let waiting = queues.iter().find(|queue| queue.waiting > 0 && !is_disabled(&queue.forwarder));
        if let Some(queue) = waiting {
            let (events, forwarder) = (queue.waiting, &queue.forwarder);
            return Ok(Some(format!("{events} events of {} wait for {forwarder}", scheduler.name)));
        }
    }
    let is_left = world.store().has_orphaned_queues().await?;
    Ok(is_left.then(|| "events of deleted schedulers wait".into()))
}

/// What runs, by region.
fn running(world: &World) -> BTreeSet<(Region, RoomId)> {
    world.rooms().into_iter().map(|room| (room.region, room.id)).collect()
}

/// A scheduler that has no rooms may have lost its place, which is made again for the first of them. And an empty place may
/// be left by a call that was in flight when its scheduler went: it cannot be recalled, and does no harm.
fn homeless(host: &Host, schedulers: &BTreeSet<SchedulerName>) -> Option<String> {
    let places = host.schedulers();
    let of_rooms = host.rooms().into_iter().map(|room| room.scheduler).collect::<BTreeSet<_>>();
    let homeless: Vec<_> = of_rooms.difference(&places).chain(of_rooms.difference(schedulers)).collect();
    (!homeless.is_empty()).then(|| format!("rooms of {homeless:?} run without a place or a scheduler"))
}

async fn unrest_of(world: &World, scheduler: &SchedulerRecord) -> Result<Option<String>, StoreError> {
    let SchedulerRecord { name, state, rollout, .. } = scheduler;
    if *state != SchedulerState::InSync {
        return Ok(Some(format!("it is {}", state.as_str())));
    }
    let mut unfinished = world.store().unfinished(name).await?;
    unfinished.retain(|operation| !comes_and_goes(operation.definition.kind()));
    if let Some(first) = unfinished.first() {
        let (id, what, status) = (first.id, first.definition.name(), first.status);
        return Ok(Some(format!("operation {id} ({what}) is {status}: {:?}", first.activity)));
    }
    if let Some(rollout) = rollout
        && matches!(rollout.state, RolloutState::Rolling | RolloutState::RollingBack)
    {
        return Ok(Some(format!("the rollout to {} is {}", rollout.to, rollout.state.as_str())));
    }
    // What was waited for counts for a while, and fleets shrink after it.
    let waited_for = world.table().waiting(name, world.now()).await.unwrap_or_default();
    if waited_for > 0 {
        return Ok(Some(format!("matchmakers waited for {waited_for} matches a moment ago")));
    }
    let locks = world.store().locks(name).await?;
    if let Some(lock) = locks.held.iter().find(|lock| !may_stay(lock.holder)) {
        return Ok(Some(format!("{} is held by {:?}", lock.kind.as_str(), lock.holder)));
    }
    unrest_of_rooms(world, scheduler).await
}

fn comes_and_goes(kind: DefinitionKind) -> bool {
    matches!(kind, DefinitionKind::HealthController | DefinitionKind::StorageCleanUp)
}

/// A rollout that people paused keeps its locks; a cycle's are gone in a moment.
fn may_stay(holder: Holder) -> bool {
    match holder {
        Holder::Operation { kind, .. } => comes_and_goes(kind),
        Holder::Rollout(_) | Holder::HealthController => true,
    }
}

async fn unrest_of_rooms(world: &World, scheduler: &SchedulerRecord) -> Result<Option<String>, StoreError> {
    let rows = world.store().live_rooms(&scheduler.name).await?;
    let strange = rows
        .iter()
        .find(|row| row.handle.is_none() || row.intent != Intent::Run || row.purpose != Purpose::Fleet);
    if let Some(row) = strange {
        return Ok(Some(format!("room {} ({:?}) is {:?}", row.id, row.purpose, row.intent)));
    }
    let old = old_room(world, scheduler, &rows).await?;
    // Of a rollout that nobody speaks of any more: cycles go on with it.
    if let (Some(row), None) = (old, &scheduler.rollout) {
        return Ok(Some(format!("room {} is of {}, and is to be replaced", row.id, row.version)));
    }
    let rooms = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let wanted = scheduler.autoscaling().map_or(scheduler.fleet_size, without_players);
    // What a surge has added beside old rooms stays while its rollout is paused.
    let surge = match &scheduler.rollout {
        Some(rollout) if rollout.state == RolloutState::Paused && old.is_some() => {
            scheduler.recipe.max_surge.rooms(wanted.into())
        }
        Some(_) | None => 0,
    };
    if rooms < wanted || u64::from(rooms - wanted) > surge {
        return Ok(Some(format!("it has {rooms} rooms, and should have {wanted}")));
    }
    let Ok(views) = world.table().rooms(&scheduler.name).await else { return Ok(None) };
    let ready = views.iter().filter(|view| view.status == RoomStatus::Ready).count();
    let well = ready == rows.len() && views.len() == rows.len();
    Ok((!well).then(|| format!("of {rooms} rooms {ready} are ready, and the table knows {}", views.len())))
}

/// A room whose version differs from the active one by a major change, if there is one.
async fn old_room<'a>(
    world: &World,
    scheduler: &SchedulerRecord,
    rows: &'a [RoomRecord],
) -> Result<Option<&'a RoomRecord>, StoreError> {
    for row in rows.iter().filter(|row| row.version != scheduler.active_version) {
        let made_from = world.store().version(&scheduler.name, row.version).await?;
        let is_old = |version: VersionRecord| {
            RecipeChange::between(&version.recipe, &scheduler.recipe) == RecipeChange::Major
        };
        if made_from.is_none_or(is_old) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// What autoscaling holds while nobody plays.
fn without_players(autoscaling: &Autoscaling) -> u32 {
    let wanted = match &autoscaling.policy {
        ScalingPolicy::FixedBuffer(buffer) => buffer.amount,
        ScalingPolicy::RoomOccupancy(_) => 0,
    };
    wanted.max(autoscaling.min).min(autoscaling.max.unwrap_or(u32::MAX))
}
