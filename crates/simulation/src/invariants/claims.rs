//! Who goes: the ready rooms that must stay do, players last, and never by autoscaling.

use std::collections::BTreeSet;

use maestro_core::invariant::{
    InvariantViolation, Removal, occupied_stay, only_fleet, ready_first, ready_kept,
};
use maestro_core::operation::{RemovalReason, RoomsToRemove};
use maestro_core::room::{Purpose, RoomId};
use maestro_core::time::Timestamp;
use maestro_engine::ports::room_table::Claim;
use maestro_engine::ports::store::{Intent, RoomRecord, SchedulerRecord, Store};

use super::Inspector;
use super::fleet::Demand;
use super::memory::{KnownOperation, SeenRoom};

impl Inspector {
    pub(super) async fn judge_claim(
        &self,
        node: &str,
        claim: &Claim<'_>,
        claimed: &[RoomId],
        at: Timestamp,
        store: &dyn Store,
    ) {
        let removal = {
            let mut state = self.state.lock();
            state.known(claim.scheduler).operations.get(&claim.operation).cloned()
        };
        // What an addition takes back is nobody's removal.
        let Some((rooms, reason)) = removal.as_ref().and_then(|operation| operation.definition.removes())
        else {
            return;
        };
        // Who is gone by its own fault is replaced: neither target nor order says anything about it.
        if claimed.is_empty() || reason == RemovalReason::ExpiredRoom {
            return;
        }
        let by_person = removal.as_ref().is_some_and(|operation| operation.origin.is_person());
        let Some(scene) = self.scene(node, claim, store).await else {
            return;
        };
        let judgement = Judgement { claim, claimed, rooms: &rooms, reason, at, scene: &scene };
        self.note_all(judgement.by_all_readings(Judgement::counted));
        // A scale-down takes no occupied room at all, so it has no order.
        if by_person || reason != RemovalReason::ScaleDown {
            self.note_all(judgement.by_all_readings(Judgement::order));
        }
        if !by_person {
            self.note_all(judgement.by_all_readings(Judgement::players));
            self.note_all(judgement.by_all_readings(Judgement::target));
        }
    }

    async fn scene(&self, node: &str, claim: &Claim<'_>, store: &dyn Store) -> Option<Scene> {
        let record = store.scheduler(claim.scheduler).await.ok()??;
        let rows = store.live_rooms(claim.scheduler).await.ok()?;
        let unfinished = store.unfinished(claim.scheduler).await.ok()?;
        let of_fleet = || rows.iter().filter(|row| row.purpose == Purpose::Fleet);
        let live = of_fleet().map(|row| row.id.clone()).collect();
        let now = self.trace.elapsed();
        let mut state = self.state.lock();
        let stays =
            |row: &&RoomRecord| row.intent == Intent::Run && state.regions.is_seen(node, &row.region, now);
        let running = of_fleet().filter(stays).map(|row| row.id.clone()).collect();
        let known = state.known(claim.scheduler);
        let others =
            known.operations.iter().filter(|(id, one)| **id != claim.operation && !one.status.is_final());
        let leaving = others.flat_map(|(_, operation)| operation.removed_ids().to_vec()).collect();
        let turned = unfinished.iter().filter(|operation| operation.rollback.is_some());
        let turned_round = turned.filter_map(|one| known.operations.get(&one.id).cloned()).collect();
        let sight = known.node(node);
        let mut records = sight.records.clone();
        records.push(record);
        Some(Scene {
            records,
            readings: sight.readings.iter().map(|reading| reading.rooms.clone()).collect(),
            offered: sight.offered.clone(),
            live,
            running,
            leaving,
            turned_round,
        })
    }
}

/// What there is at the moment of a claim, and what its node had seen.
struct Scene {
    records: Vec<SchedulerRecord>,
    readings: Vec<Vec<SeenRoom>>,
    /// Rooms that were to be claimed since the last reading.
    offered: BTreeSet<RoomId>,
    /// Rooms of the fleet that have not ended.
    live: BTreeSet<RoomId>,
    /// Of these, those that nobody asked to go and that the node surely sees.
    running: BTreeSet<RoomId>,
    /// Rooms that other removals name.
    leaving: BTreeSet<RoomId>,
    turned_round: Vec<KnownOperation>,
}

struct Judgement<'a> {
    claim: &'a Claim<'a>,
    claimed: &'a [RoomId],
    rooms: &'a RoomsToRemove,
    reason: RemovalReason,
    at: Timestamp,
    scene: &'a Scene,
}

impl Judgement<'_> {
    /// Wrong only if it is by every reading of the table that the node may have decided on.
    fn by_all_readings(
        &self,
        judge: impl Fn(&Self, &[SeenRoom]) -> Option<InvariantViolation>,
    ) -> Option<InvariantViolation> {
        let mut found = None;
        for rooms in &self.scene.readings {
            found = Some(judge(self, rooms)?);
        }
        found
    }

    fn taken<'a>(&self, rooms: &'a [SeenRoom]) -> impl Iterator<Item = &'a SeenRoom> {
        rooms.iter().filter(|room| self.claimed.contains(&room.id))
    }

    fn counted(&self, rooms: &[SeenRoom]) -> Option<InvariantViolation> {
        only_fleet(self.taken(rooms).map(|room| (&room.id, room.purpose)))
    }

    /// Autoscaling takes nobody's room away; a rollout may.
    fn players(&self, rooms: &[SeenRoom]) -> Option<InvariantViolation> {
        if self.reason != RemovalReason::ScaleDown {
            return None;
        }
        let occupied: Vec<_> =
            self.taken(rooms).filter(|room| room.serves_players()).map(|room| room.id.clone()).collect();
        occupied_stay(&occupied)
    }

    /// A ready room of the same version goes before an occupied one, if it may go at all.
    fn order(&self, rooms: &[SeenRoom]) -> Option<InvariantViolation> {
        let occupied: Vec<&SeenRoom> = self.taken(rooms).filter(|room| room.serves_players()).collect();
        let last = occupied.iter().filter_map(|room| self.position(&room.id)).max()?;
        let may_go = |room: &&SeenRoom| {
            let asked_for = match self.rooms {
                RoomsToRemove::Amount(_) => true,
                RoomsToRemove::Ids(ids) => ids.contains(&room.id),
            };
            asked_for
                && room.is_ready()
                && room.is_surely_alive(self.at)
                && room.claimed_by.is_none()
                && self.scene.running.contains(&room.id)
                && !self.scene.leaving.contains(&room.id)
                && occupied.iter().any(|taken| taken.version == room.version)
        };
        let passed_over = |room: &&SeenRoom| {
            !self.scene.offered.contains(&room.id) && self.position(&room.id).is_none_or(|at| at > last)
        };
        let passed_over: Vec<_> =
            rooms.iter().filter(may_go).filter(passed_over).map(|room| room.id.clone()).collect();
        let occupied: Vec<_> = occupied.iter().map(|room| room.id.clone()).collect();
        ready_first(&occupied, &passed_over)
    }

    fn position(&self, room: &RoomId) -> Option<usize> {
        self.claim.candidates.iter().position(|candidate| candidate == room)
    }

    fn target(&self, rooms: &[SeenRoom]) -> Option<InvariantViolation> {
        let claimable =
            |room: &&SeenRoom| room.is_ready() && room.claimed_by.is_none_or(|by| by == self.claim.operation);
        let ready = rooms.iter().filter(claimable).count() as u64;
        let ready_taken = self.taken(rooms).filter(claimable).count() as u64;
        let mut found = None;
        for record in &self.scene.records {
            let Scene { live, turned_round, .. } = self.scene;
            let demand = Demand { record, rooms, live, turned_round, rejoining: 0, waiting: 0 };
            let may_be_missing = match self.reason {
                RemovalReason::RollingUpdate | RemovalReason::Drain => {
                    record.recipe.rollout().max_unavailable
                }
                RemovalReason::ScaleDown | RemovalReason::ExpiredRoom | RemovalReason::ValidationFinished => {
                    0
                }
            };
            let ready_min = demand.ready_at_least().saturating_sub(may_be_missing.into());
            found = Some(ready_kept(Removal { ready, ready_taken, ready_min })?);
        }
        found
    }
}
