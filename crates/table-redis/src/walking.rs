//! Calls that concern many rooms, in parts.

use std::sync::Arc;

use maestro_core::room::{Region, RoomId, RoomStatus};
use maestro_core::scheduler::SchedulerName;
use maestro_engine::ports::room_table::{Claim, FleetCounts, RoomView};
use serde::Deserialize;
use serde_bytes::ByteBuf;

use crate::failure::Failure;
use crate::record::{Record, word};
use crate::scripts::{TOUCHED_MAX, flags};
use crate::table::Table;

/// Changing so many rooms takes a script some milliseconds.
const CHANGED_MAX: usize = 250;

/// Reading a room costs a script less than changing one.
const READ_MAX: usize = 1000;

#[derive(Deserialize)]
struct Page {
    ids: Vec<String>,
    rooms: Vec<ByteBuf>,
}

impl Table {
    pub(crate) async fn all_rooms(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
    ) -> Result<Vec<RoomView>, Failure> {
        let mut all = Vec::new();
        let mut from = String::new();
        loop {
            let Page { ids, rooms } = self.run(&self.scripts.rooms, scheduler, &(&from, READ_MAX)).await?;
            let is_last = ids.len() < READ_MAX;
            from = ids.last().cloned().unwrap_or_default();
            for (id, room) in ids.into_iter().zip(rooms) {
                all.push(Record::parse(&room)?.view(RoomId::new(&id))?);
            }
            if is_last {
                return Ok(all);
            }
        }
    }

    pub(crate) async fn change_matches_max(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
        matches_max: u32,
    ) -> Result<(), Failure> {
        let mut from = String::new();
        loop {
            from = self.run(&self.scripts.matches_max, scheduler, &(from, CHANGED_MAX, matches_max)).await?;
            if from.is_empty() {
                return Ok(());
            }
        }
    }

    pub(crate) async fn claim_rooms(self: &Arc<Self>, claim: &Claim<'_>) -> Result<Vec<RoomId>, Failure> {
        let operation = claim.operation.to_string();
        let candidates: Vec<&str> = claim.candidates.iter().map(RoomId::as_str).collect();
        let parts: Vec<&[&str]> = candidates.chunks(TOUCHED_MAX).collect();
        // One part counts what it claimed before by itself.
        let mut before = vec![0_i64; parts.len()];
        if parts.len() > 1 {
            for (before, part) in before.iter_mut().zip(&parts) {
                *before = self.run(&self.scripts.claimed, claim.scheduler, &(&operation, part)).await?;
            }
        }
        let statuses = flags(|status: RoomStatus| claim.statuses.contains(&status));
        let mut left = i64::try_from(claim.rooms_max).unwrap_or(i64::MAX).min(i64::from(u32::MAX));
        left -= before.iter().sum::<i64>();
        let mut claimed = Vec::new();
        for (part, before) in parts.iter().zip(before) {
            let asked = (&operation, part, &statuses, u8::from(claim.known_only), left, before);
            let (taken, more): (Vec<String>, i64) =
                self.run(&self.scripts.claim, claim.scheduler, &asked).await?;
            claimed.extend(taken.iter().map(|room| RoomId::new(room)));
            left = more;
        }
        Ok(claimed)
    }

    pub(crate) async fn fleet_counts(
        self: &Arc<Self>,
        scheduler: &SchedulerName,
    ) -> Result<FleetCounts, Failure> {
        let fields: Vec<String> = self.run(&self.scripts.read, scheduler, &("counts", "")).await?;
        let mut counts = FleetCounts::default();
        for field in fields.chunks_exact(2) {
            add(&mut counts, &field[0], &field[1])
                .ok_or_else(|| Failure::unreadable("a counter", format!("{}={}", field[0], field[1])))?;
        }
        Ok(counts)
    }
}

/// `None`: there is no such counter, or no such number.
fn add(counts: &mut FleetCounts, field: &str, value: &str) -> Option<()> {
    let number = || value.parse::<u32>().ok();
    let (kind, of) = field.split_once(':').unwrap_or((field, ""));
    match kind {
        "status" => {
            let (status, region) = of.split_once(':')?;
            let status = word::<RoomStatus>(status.parse().ok()?).ok()?;
            counts.by_status.add_many(status, number()?);
            counts.by_region.entry(Region(region.into())).or_default().add_many(status, number()?);
        }
        "instance" => counts.by_instance.add_many(word(of.parse().ok()?).ok()?, number()?),
        "matches" => counts.matches = value.parse().ok()?,
        "holds" => counts.holds = value.parse().ok()?,
        "unknown" => counts.unknown = number()?,
        _ => return None,
    }
    Some(())
}
