//! The store in memory and the one in a file are the same to whoever uses them: lives of operations, locks and workers
//! by chance, every answer and all that can be read compared after each step.

use fastrand::Rng;
use maestro_core::lock::{Holder, LockKind};
use maestro_core::operation::{OperationStatus, Rollback, RollbackEnd, Token};
use maestro_core::time::Millis;
use maestro_engine::ports::Store;
use maestro_engine::ports::contract::fixtures::*;
use maestro_engine::ports::store::{Change, OperationStore, Refusal, Renewal, Transaction};
use maestro_simulation::MemoryStore;
use maestro_store_embedded::EmbeddedStore;

const SEEDS: u64 = 6;
const STEPS: usize = 250;
/// So few that they meet.
const OPERATIONS: u128 = 4;
/// After which others come, as those of before may have ended.
const STEPS_OF_AN_OPERATION: usize = 50;
const WORKERS: [&str; 2] = ["worker-1", "worker-2"];
const KINDS: [LockKind; 2] = [LockKind::Config, LockKind::Downscaling];

#[derive(Debug, Clone)]
enum Step {
    Commit(Box<Change>),
    Own(&'static str),
    Disown(Token),
    Renew(&'static str),
    Retire(&'static str),
}

#[derive(Debug, PartialEq)]
enum Answer {
    Done,
    Refused(Refusal),
    Owned(Vec<Token>),
}

#[tokio::test]
async fn both_stores_answer_alike() {
    for seed in 0..SEEDS {
        let directory = tempfile::tempdir().unwrap();
        let (memory, file) = (MemoryStore::new(), EmbeddedStore::open(directory.path()).unwrap());
        open(&memory).await;
        open(&file).await;
        let mut chance = Chance { random: Rng::with_seed(seed), seconds: 0, generation: 0 };
        for number in 0..STEPS {
            let step = chance.step(number);
            let context = format!("seed {seed}, step {number}: {step:?}");
            let answers = [&memory as &dyn Store, &file].map(|store| take_step(store, &step, chance.seconds));
            let [in_memory, in_file] = answers;
            assert_eq!(in_memory.await, in_file.await, "{context}");
            assert_eq!(everything(&memory).await, everything(&file).await, "{context}");
            assert_eq!(memory.workers().await.unwrap(), file.workers().await.unwrap(), "{context}");
        }
    }
}

async fn take_step(store: &dyn Store, step: &Step, seconds: i64) -> Answer {
    match step {
        Step::Commit(change) => {
            match store.commit(Transaction::new("agree", vec![Change::clone(change)])).await {
                Ok(()) => Answer::Done,
                Err(error) => Answer::Refused(error.refusal().cloned().expect("nothing is broken")),
            }
        }
        Step::Own(worker) => {
            let token = store.own(&arena(), worker, at(seconds), TTL).await.unwrap();
            Answer::Owned(token.into_iter().collect())
        }
        Step::Disown(token) => {
            store.disown(&arena(), *token).await.unwrap();
            Answer::Done
        }
        Step::Renew(worker) => {
            let lock_ttl = Millis::from_seconds(15);
            let owned = store.renew(Renewal { lock_ttl, ..renewal(worker, at(seconds)) }).await.unwrap();
            Answer::Owned(owned.into_iter().map(|(_, token)| token).collect())
        }
        Step::Retire(worker) => {
            store.retire(worker).await.unwrap();
            Answer::Done
        }
    }
}

/// What happens next, and when.
struct Chance {
    random: Rng,
    seconds: i64,
    generation: u128,
}

impl Chance {
    fn step(&mut self, number: usize) -> Step {
        self.seconds += self.random.i64(0..4);
        self.generation = (number / STEPS_OF_AN_OPERATION) as u128;
        match self.random.u32(0..22) {
            0 => Step::Own(self.any(&WORKERS)),
            1 => Step::Disown(self.token()),
            2 => Step::Renew(self.any(&WORKERS)),
            3 => Step::Retire(self.any(&WORKERS)),
            // Their ids are ordered by time, as real ones are.
            4 => Step::Commit(
                Change::RecordNoAction(no_action(1_000_000 + number as u128, self.seconds)).into(),
            ),
            5 => Step::Commit(Change::ForgetNoAction { before: at(self.seconds - 20) }.into()),
            6..12 => Step::Commit(self.change_of_an_operation().into()),
            _ => Step::Commit(self.change_of_a_lock().into()),
        }
    }

    fn change_of_an_operation(&mut self) -> Change {
        let number = self.operation();
        let operation = operation_id(number);
        match self.random.u32(0..7) {
            0 | 1 => Change::Enqueue(new_operation(number)),
            2 | 3 => start(number),
            4 => end(number, self.any(&OperationStatus::ALL)),
            5 => Change::CancelPending { operation, history: Vec::new(), at: at(9) },
            _ => {
                let why = format!("for reason {}", self.random.u8(..));
                let history = vec![event(5, &why)];
                Change::TurnRound { operation, rollback: Rollback { then: RollbackEnd::Error, why }, history }
            }
        }
    }

    fn change_of_a_lock(&mut self) -> Change {
        let (kind, who, seconds) = (self.any(&KINDS), self.holder(), self.seconds);
        match self.random.u32(0..9) {
            0..3 => take(kind, who, seconds),
            3 => hand_over(kind, self.holder(), who, seconds),
            4 => take_for_rollout(kind, Some(who), seconds),
            5 => await_lock(kind, who, seconds),
            6 => stop_awaiting(kind, who),
            7 => release(kind, who),
            _ => revoke(kind, self.token()),
        }
    }

    fn operation(&mut self) -> u128 {
        self.generation * OPERATIONS + self.random.u128(0..OPERATIONS)
    }

    fn holder(&mut self) -> Holder {
        match self.random.u32(0..6) {
            0 => Holder::HealthController,
            1 => rollout_holder(),
            _ => holder(self.operation()),
        }
    }

    /// With some luck a current one.
    fn token(&mut self) -> Token {
        Token(self.random.u64(0..STEPS as u64 / 8))
    }

    fn any<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.random.usize(0..choices.len())]
    }
}
