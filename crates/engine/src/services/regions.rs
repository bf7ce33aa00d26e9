//! Regions as people see them, and what they can say about one: cordon, drain, uncordon, and that its silent rooms are
//! lost.

use std::collections::BTreeMap;

use maestro_core::region::{Region, RegionOrder};
use maestro_core::room::StatusCounts;

use crate::ports::store::{Change, Refusal, RegionRecord, StoreError, Transaction};
use crate::regions::Contact;
use crate::{Engine, Error, Result};

/// How often a change is tried again when someone else says something at the same time.
const ATTEMPTS: u32 = 20;

#[derive(Debug, Clone)]
pub struct RegionView {
    pub name: Region,
    pub reachable: bool,
    pub cordoned: bool,
    pub draining: bool,
    /// Why it cannot be reached, and who cordoned it and why; empty if there is nothing to say.
    pub reason: String,
    /// How many rooms it can hold, if it says so.
    pub capacity: Option<u32>,
    /// Of all schedulers; validation rooms are counted nowhere.
    pub rooms: StatusCounts,
}

/// What an order makes of a region's record. Cordoning a region that is being drained does not end the drain, and
/// confirming that its silent rooms are lost changes nothing else.
fn ordered(order: RegionOrder, before: Option<&RegionRecord>, says: RegionRecord) -> RegionRecord {
    let lost_at = before.and_then(|record| record.lost_at);
    let draining = before.is_some_and(|record| record.draining);
    match order {
        RegionOrder::Cordon => RegionRecord { cordoned: true, draining, lost_at, ..says },
        RegionOrder::Drain => RegionRecord { cordoned: true, draining: true, lost_at, ..says },
        RegionOrder::Uncordon => RegionRecord { lost_at, ..says },
        // Who cordoned it and why is still shown.
        RegionOrder::ConfirmLost => {
            let lost_at = Some(says.at);
            let cordoned = before.filter(|record| record.cordoned);
            RegionRecord { lost_at, ..cordoned.cloned().unwrap_or(says) }
        }
    }
}

impl Engine {
    /// By name.
    pub async fn regions(&self) -> Result<Vec<RegionView>> {
        let said = self.ports.store.regions().await?;
        let mut rooms: BTreeMap<Region, StatusCounts> = BTreeMap::new();
        for scheduler in self.ports.store.scheduler_names().await? {
            for (region, counts) in self.fleet_counts(&scheduler).await?.counts.by_region {
                *rooms.entry(region).or_default() += &counts;
            }
        }
        let mut views = Vec::new();
        for region in &self.regions.names() {
            let record = said.iter().find(|record| record.name == *region);
            self.look_for_silence(region).await?;
            let silent = self.spared(region).await?;
            views.push(self.region_view(
                region,
                record,
                rooms.get(region).copied().unwrap_or_default(),
                silent,
            ));
        }
        Ok(views)
    }

    fn region_view(
        &self,
        region: &Region,
        said: Option<&RegionRecord>,
        rooms: StatusCounts,
        silent: usize,
    ) -> RegionView {
        let contact = self.regions.contact(region);
        let reachable = matches!(contact, Contact::Reachable { .. });
        let mut reasons = Vec::new();
        match contact {
            Contact::Reachable { .. } => {}
            Contact::Unsettled { why } => reasons.push(format!("is not adopted yet: {why}")),
            Contact::Unreachable { why } => reasons.push(format!("cannot be reached: {why}")),
        }
        if silent > 0 {
            reasons.push(format!(
                "{silent} rooms stopped pinging together and are not considered dead yet; if they are, \
                 `maestro region confirm-lost {region}` removes them"
            ));
        }
        if let Some(RegionRecord { draining, by, reason, .. }) = said.filter(|record| record.cordoned) {
            let state = if *draining { "drained" } else { "cordoned" };
            reasons.push(format!("{state} by {by}: {reason}"));
        }
        RegionView {
            name: region.clone(),
            reachable,
            cordoned: said.is_some_and(|record| record.cordoned),
            draining: said.is_some_and(|record| record.draining),
            reason: reasons.join("; "),
            capacity: self.regions.capacity(region),
            rooms,
        }
    }

    /// Recorded with who and why, also where it changes nothing else.
    pub async fn order_region(&self, name: &str, order: RegionOrder, user: &str, reason: &str) -> Result {
        let region = self.known_region(name)?;
        if order == RegionOrder::ConfirmLost {
            self.look_for_silence(&region).await?;
        }
        if order == RegionOrder::ConfirmLost && self.spared(&region).await? == 0 {
            let text = format!(
                "region {region} has no rooms that stopped pinging together; there is nothing to confirm"
            );
            return Err(Error::Conflict(text));
        }
        for _ in 0..ATTEMPTS {
            let said = self.ports.store.regions().await?;
            let from = said.into_iter().find(|record| record.name == region);
            let says = RegionRecord {
                name: region.clone(),
                cordoned: false,
                draining: false,
                by: user.to_owned(),
                reason: reason.to_owned(),
                at: self.now(),
                lost_at: None,
            };
            let to = ordered(order, from.as_ref(), says);
            let changes = vec![Change::SetRegion { from, to }];
            match self.commit(Transaction::of_no_scheduler("order region", changes)).await {
                Err(StoreError::Refused(Refusal::RegionChanged(_))) => {}
                other => {
                    other?;
                    tracing::info!(%region, order = order.as_str(), user, reason, "region order recorded");
                    self.ports.wake.rooms_changed();
                    return Ok(());
                }
            }
        }
        Err(Error::Conflict(format!("region {region} changes too fast; try again")))
    }

    fn known_region(&self, name: &str) -> Result<Region> {
        let names = self.regions.names();
        names.iter().find(|region| region.as_str() == name).cloned().ok_or_else(|| {
            let names: Vec<&str> = names.iter().map(Region::as_str).collect();
            Error::NotFound(format!("region {name} not found; there are: {}", names.join(", ")))
        })
    }

    /// Rooms of a region that is not configured any more would run on with nobody to stop them.
    pub(crate) async fn check_regions(&self) -> Result {
        let mut left: BTreeMap<Region, u32> = BTreeMap::new();
        for row in self.ports.store.all_live_rooms().await? {
            if !self.regions.is_configured(&row.region) {
                *left.entry(row.region).or_default() += 1;
            }
        }
        match left.first_key_value() {
            None => Ok(()),
            Some((region, rooms)) => Err(Error::Conflict(format!(
                "region {region} is not configured and still has {rooms} rooms: add it back, drain it \
                 (`maestro region drain {region}`), then remove it"
            ))),
        }
    }
}
