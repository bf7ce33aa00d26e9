//! Workers, what they own, and the one sequence that tokens come from.

use maestro_core::guards;
use maestro_core::invariant::Invariant;
use maestro_core::operation::Token;
use maestro_core::scheduler::SchedulerName;
use maestro_core::time::{Millis, Timestamp, after};
use maestro_engine::ports::store::{OwnershipRecord, Renewal, WorkerRecord, Workforce};

use super::state::{Ownership, State};

impl State {
    pub(super) fn next_token(&mut self) -> Token {
        self.last_token += u64::from(guards::stands(Invariant::TokensGrow));
        Token(self.last_token)
    }

    pub(super) fn own(
        &mut self,
        scheduler: &SchedulerName,
        owner: &str,
        now: Timestamp,
        ttl: Millis,
    ) -> Option<Token> {
        self.schedulers.get(scheduler)?;
        let token = match self.owners.get(scheduler) {
            Some(current) if current.owner == owner => current.token,
            Some(current) if current.expires_at > now => return None,
            Some(_) | None => self.next_token(),
        };
        let ownership = Ownership { owner: owner.to_owned(), token, expires_at: after(now, ttl) };
        self.owners.put(scheduler.clone(), ownership);
        Some(token)
    }

    pub(super) fn renew(&mut self, renewal: Renewal<'_>, now: Timestamp) -> Vec<(SchedulerName, Token)> {
        let Renewal { worker, ownership_ttl, operation_ttl, lock_ttl } = renewal;
        self.shorten(after(after(now, ownership_ttl), ownership_ttl), after(now, ownership_ttl));
        self.workers.put(worker.to_owned(), after(now, ownership_ttl));
        let owned = self.owned_by(worker);
        for (scheduler, token) in &owned {
            self.owners.change(scheduler, |ownership| {
                ownership.expires_at = after(now, ownership_ttl);
            });
            self.renew_leases(scheduler, *token, after(now, operation_ttl));
            self.renew_locks(scheduler, after(now, lock_ttl));
        }
        owned
    }

    /// What lasts beyond `too_late` was given before the clock was set back.
    fn shorten(&mut self, too_late: Timestamp, to: Timestamp) {
        let of_others = self.owners.iter().filter(|(_, ownership)| ownership.expires_at > too_late);
        let schedulers: Vec<SchedulerName> = of_others.map(|(scheduler, _)| scheduler.clone()).collect();
        for scheduler in schedulers {
            self.owners.change(&scheduler, |ownership| ownership.expires_at = to);
        }
        let workers = self.workers.iter().filter(|(_, expires_at)| **expires_at > too_late);
        let workers: Vec<String> = workers.map(|(name, _)| name.clone()).collect();
        for worker in workers {
            self.workers.put(worker, to);
        }
    }

    pub(super) fn workforce(&self) -> Workforce {
        let worker = |(name, expires_at): (&String, &Timestamp)| WorkerRecord {
            name: name.clone(),
            expires_at: *expires_at,
        };
        let ownership = |(scheduler, ownership): (&SchedulerName, &Ownership)| OwnershipRecord {
            scheduler: scheduler.clone(),
            owner: ownership.owner.clone(),
            token: ownership.token,
            expires_at: ownership.expires_at,
        };
        Workforce {
            workers: self.workers.iter().map(worker).collect(),
            ownerships: self.owners.iter().map(ownership).collect(),
        }
    }

    pub(super) fn retire(&mut self, worker: &str) {
        self.workers.remove(&worker.to_owned());
        for (scheduler, _) in self.owned_by(worker) {
            self.owners.remove(&scheduler);
        }
    }

    pub(super) fn disown(&mut self, scheduler: &SchedulerName, token: Token) {
        let current = self.owners.get(scheduler);
        if current.is_some_and(|ownership| ownership.token == token) {
            self.owners.remove(scheduler);
        }
    }

    fn owned_by(&self, worker: &str) -> Vec<(SchedulerName, Token)> {
        let of_worker = self.owners.iter().filter(|(_, ownership)| ownership.owner == worker);
        of_worker.map(|(scheduler, ownership)| (scheduler.clone(), ownership.token)).collect()
    }
}
