//! Where a scenario is played: the world, and what its director knows about it.

use std::time::Duration;

use maestro_core::scheduler::Recipe;
use maestro_engine::{Error, Parts};
use tokio::time::{Instant, sleep_until};

use crate::clock::Skew;
use crate::coverage::RareEvent;
use crate::faults::Faults;
use crate::host::{Host, Span};
use crate::seed::fork;
use crate::world::{NodeNumber, NodePlan, World};

use super::events::{self, Talk};
use super::outages::{self, CutOff};
use super::script::{Script, choose};
use super::{machines, matchmakers, nature, people, players};

pub(super) struct Stage {
    pub(super) world: World,
    pub(super) random: fastrand::Rng,
    /// Nodes that will be thawed, and when.
    pub(super) frozen: Vec<Freeze>,
    /// Says when the clock is set; `None`: never.
    pub(super) clock_leaps: Option<fastrand::Rng>,
    /// What happens to room tables, and what is told late, draws from here: it came later than seeds whose runs are known.
    pub(super) late_faults: fastrand::Rng,
    /// Regions that will be reached again.
    pub(super) cut_off: Vec<CutOff>,
    /// What matchmakers draw from; `None`: there are none.
    pub(super) matchmaking: Option<fastrand::Rng>,
    /// What rooms say to forwarders; `None`: nothing.
    pub(super) talk: Option<Talk>,
    /// The last generation of the game that someone made.
    pub(super) generation: u32,
    /// All that were ever created, by number.
    pub(super) recipes: Vec<Recipe>,
    /// Why it did not come to rest.
    pub(super) restless: Option<String>,
    faults: Faults,
}

#[derive(Clone, Copy)]
pub(super) struct Freeze {
    pub(super) node: NodeNumber,
    pub(super) since: Instant,
    pub(super) until: Instant,
}

#[derive(Clone, Copy)]
enum Who {
    People,
    Players,
    Nature,
    Machines,
}

impl Stage {
    pub(super) fn new(world: World, seed: u64, clock_leaps: bool) -> Self {
        let leaps = || fastrand::Rng::with_seed(fork(seed, "leaps", 1));
        Self {
            clock_leaps: clock_leaps.then(leaps),
            world,
            random: fastrand::Rng::with_seed(seed),
            frozen: Vec::new(),
            late_faults: fastrand::Rng::with_seed(fork(seed, "late faults", 0)),
            cut_off: Vec::new(),
            matchmaking: None,
            talk: None,
            generation: 1,
            recipes: Vec::new(),
            restless: None,
            faults: Faults::NONE,
        }
    }

    /// For what is drawn only in runs with several regions.
    pub(super) fn random_of_regions(&self) -> fastrand::Rng {
        fastrand::Rng::with_seed(fork(self.world.seed(), "regions", 2))
    }

    pub(super) async fn set_up(&mut self, script: &Script, faults: Faults) {
        self.faults = faults;
        if self.random.bool() {
            self.world.hosts().for_each(Host::let_all_see);
        }
        for parts in &script.nodes {
            self.start_node(*parts).await;
        }
        for recipe in &script.recipes {
            people::create(self, recipe.clone());
        }
        // Some worlds are in trouble before there is a single room.
        if self.random.bool() {
            self.pass_time(Span::millis(5_000, 20_000)).await;
        }
        self.world.trace().note(format_args!("trouble begins: {faults}"));
        self.world.set_faults(faults);
    }

    /// On a machine whose clock may be wrong. It may fail to come up.
    pub(super) async fn start_node(&mut self, parts: Parts) {
        let most = i64::from(self.faults.skew_max_ms);
        let skew = Skew { millis: self.random.i64(-most..=most) };
        let _: Result<NodeNumber, Error> =
            self.world.start_node(NodePlan { parts, skew, ..NodePlan::PLAIN }).await;
    }

    /// Lets time pass; who is to be thawed or reached again meanwhile is.
    pub(super) async fn pass_time(&mut self, span: Span) {
        let end = Instant::now() + span.draw(&mut self.random);
        while let Some(at) = self.next_relief().filter(|at| *at <= end) {
            sleep_until(at).await;
            while let Some(freeze) = self.next_thaw().filter(|freeze| freeze.until <= at) {
                self.thaw(freeze);
            }
            outages::end_until(self, at);
        }
        sleep_until(end).await;
        self.world.bury_the_dead().await;
        self.notice_shared_work().await;
    }

    pub(super) async fn let_something_happen(&mut self, script: &Script) {
        machines::tell_the_time(self);
        nature::looks_back(self);
        let weights = script.weights;
        let who = choose(
            &mut self.random,
            &[
                (weights.people, Who::People),
                (weights.players, Who::Players),
                (weights.nature, Who::Nature),
                (weights.machines, Who::Machines),
            ],
        );
        match who {
            Some(Who::People) => people::want_something(self, script).await,
            Some(Who::Players) => players::come_and_go(self),
            Some(Who::Nature) => nature::strikes(self),
            Some(Who::Machines) => machines::something_happens(self, script).await,
            None => {}
        }
        matchmakers::ask_for_rooms(self);
        events::go_on(self).await;
    }

    pub(super) fn freeze(&mut self, node: NodeNumber, time: Duration) {
        let since = Instant::now();
        self.world.freeze(node);
        self.frozen.push(Freeze { node, since, until: since + time });
    }

    pub(super) fn thaw_all(&mut self) {
        while let Some(next) = self.next_thaw() {
            self.thaw(next);
        }
    }

    fn next_relief(&self) -> Option<Instant> {
        let thaws = self.frozen.iter().map(|freeze| freeze.until);
        thaws.chain(self.cut_off.iter().map(|region| region.until)).min()
    }

    fn next_thaw(&self) -> Option<Freeze> {
        self.frozen.iter().min_by_key(|freeze| freeze.until).copied()
    }

    fn thaw(&mut self, freeze: Freeze) {
        self.frozen.retain(|other| other.node != freeze.node);
        if freeze.since.elapsed() > self.world.settings().ownership_ttl.as_duration() {
            self.world.coverage().saw(RareEvent::LongFreeze);
        }
        self.world.thaw(freeze.node);
    }

    async fn notice_shared_work(&self) {
        if let Ok(workforce) = self.world.store().workers().await {
            let mut owners: Vec<_> = workforce.ownerships.iter().map(|ownership| &ownership.owner).collect();
            owners.sort_unstable();
            owners.dedup();
            if owners.len() > 1 {
                self.world.coverage().saw(RareEvent::SharedWork);
            }
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        !self.world.violations().is_empty()
    }

    pub(super) fn violations(&self) -> Vec<String> {
        let mut violations = self.world.violations();
        if let Some(why) = &self.restless
            && violations.is_empty()
        {
            violations.push(format!("convergence: {why}"));
        }
        violations
    }

    pub(super) fn end(self) -> World {
        self.world
    }
}
