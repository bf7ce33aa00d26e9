//! A region that is cut off from the engines: no call reaches it, and what its rooms do is told when it is back. The
//! rooms themselves live on.

use maestro_core::room::RoomId;
use maestro_engine::ports::runtime::{Handle, RuntimeError};

use super::Host;
use super::room::{Phase, Room};
use super::state::{Said, State};

/// How much of a region is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// Its runtime. Rooms reach the rooms API by another way.
    Runtime,
    /// Its network: the pings of its rooms are lost too.
    Network,
    /// Only the way from its rooms to the rooms API: their pings are lost, and its runtime answers.
    Pings,
}

impl Host {
    pub fn cut_off(&self, outage: Outage) {
        self.change(|state, _| state.outage = Some(outage));
    }

    /// It can be reached again, and says what happened meanwhile.
    pub fn reconnect(&self) {
        self.change(|state, _| {
            state.outage = None;
            for said in std::mem::take(&mut state.held_back).into_iter().rev() {
                state.outbox.push_front(said);
            }
        });
    }

    pub fn can_be_reached(&self) -> bool {
        self.state.lock().can_be_reached()
    }

    /// The registry says that this instance has ended. Of one that runs where nobody can look, nobody can know that.
    pub(crate) fn written_off(&self, id: &RoomId, instance: &Handle) {
        let mut state = self.state.lock();
        let runs = |room: &Room| room.is(instance) && room.phase != Phase::GoingDown;
        if state.rooms.get(id).is_some_and(runs) && !state.can_be_reached() {
            let region = &self.region;
            let text = format!(
                "unseen-rooms-stay: room {id} runs in region {region}, which cannot be reached, and its end was written"
            );
            state.violations.push(text);
        }
    }
}

impl State {
    pub(crate) fn can_be_reached(&self) -> bool {
        self.host_faults.available && matches!(self.outage, None | Some(Outage::Pings))
    }

    pub(crate) fn answers(&self) -> Result<(), RuntimeError> {
        match self.can_be_reached() {
            true => Ok(()),
            false => Err(RuntimeError::Unavailable("the simulated host does not answer".into())),
        }
    }

    /// What gets out next.
    pub(super) fn next_said(&mut self) -> Option<Said> {
        loop {
            match (self.outbox.pop_front()?, self.outage) {
                (said @ Said::Observation(..), Some(Outage::Runtime | Outage::Network)) => {
                    self.held_back.push(said);
                }
                (Said::Ping(_), Some(Outage::Network | Outage::Pings)) => {}
                (said, _) => return Some(said),
            }
        }
    }
}
