//! A client that goes on when the server dies under its hands.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;

use anyhow::{Context, ensure};
use maestro_e2e::{Answer, Client, Maestro, Operation, PATIENCE, Room, checks, until};
use serde_json::{Value, json};

pub(super) struct Story {
    pub(super) maestro: Maestro,
    /// Of the servers to come; then they fail nowhere.
    failpoints: VecDeque<String>,
    /// Servers that died at their failpoint.
    pub(super) deaths: usize,
}

pub(super) const SCHEDULER: &str = "sweep";

impl Story {
    pub(super) fn begin(maestro: Maestro, failpoints: &[String]) -> anyhow::Result<Self> {
        let mut story = Self { maestro, failpoints: failpoints.iter().cloned().collect(), deaths: 0 };
        story.start()?;
        Ok(story)
    }

    fn start(&mut self) -> anyhow::Result<()> {
        loop {
            let failpoint = self.failpoints.pop_front();
            self.maestro.set_failpoint(failpoint.as_deref());
            match self.maestro.start() {
                Ok(()) => return Ok(()),
                // It may die before it serves.
                Err(error) if failpoint.is_some() => self.bury().with_context(|| format!("{error:#}"))?,
                Err(error) => return Err(error),
            }
        }
    }

    /// The server has ended, and only its failpoint may have ended it.
    fn bury(&mut self) -> anyhow::Result<()> {
        let status =
            until("the end of a dying server", PATIENCE, || self.maestro.ended()?.context("it runs"))?;
        ensure!(status.signal() == Some(9), "the server ended by itself: {status}");
        self.deaths += 1;
        Ok(())
    }

    /// Starts the server again if it died.
    fn revive(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.maestro.ended()? {
            ensure!(status.signal() == Some(9), "the server ended by itself: {status}");
            self.deaths += 1;
            self.start()?;
        }
        Ok(())
    }

    /// Waits over the deaths of servers.
    pub(super) fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&Maestro) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let found = until(what, PATIENCE, || {
            self.revive()?;
            look(&self.maestro)
        });
        found.with_context(|| self.maestro.log_tail())
    }

    pub(super) fn settled(&mut self, size: usize) -> anyhow::Result<Vec<Room>> {
        self.until(&format!("{size} rooms"), |maestro| checks::settled(maestro, SCHEDULER, size))
    }

    /// Asks until there is an answer. When one was lost, `is_there` looks whether the request had its effect before
    /// it is asked again.
    fn ask(
        &mut self,
        what: &str,
        is_there: impl Fn(&Client) -> anyhow::Result<Option<String>>,
        ask: impl Fn(&Client) -> anyhow::Result<Answer>,
    ) -> anyhow::Result<String> {
        let mut lost = false;
        self.until(what, |maestro| {
            let client = maestro.api();
            if lost && let Some(found) = is_there(client)? {
                return Ok(found);
            }
            lost = true;
            let answer = ask(client)?;
            // An answer is not lost, so a wrong one is wrong for good.
            assert_eq!(answer.status, 200, "{what}: {}", answer.text);
            Ok(answer.operation_id().unwrap_or_default())
        })
    }

    pub(super) fn create(&mut self, rooms: u32) -> anyhow::Result<()> {
        let recipe = self.maestro.recipe(SCHEDULER, rooms)?.with("ROOM_IGNORE_SIGTERM", 1).with_grace("0.3s");
        let mut recipe = recipe.json();
        // Something to decide, so that decisions are written.
        recipe["placement"] = json!({"regions": [{"name": "default"}]});
        let path = format!("/schedulers/{SCHEDULER}");
        let is_there = |client: &Client| Ok((client.get(&path)?.status == 200).then(String::new));
        self.ask("creation", is_there, |client| client.create(&recipe))?;
        Ok(())
    }

    /// `user` must be another one for each request: that is how it is found again.
    pub(super) fn add(&mut self, amount: u32, user: &str) -> anyhow::Result<String> {
        self.ask("add", find(user), |client| client.add(SCHEDULER, amount, user))
    }

    pub(super) fn remove(&mut self, amount: u32, user: &str) -> anyhow::Result<String> {
        self.ask("remove", find(user), |client| client.remove(SCHEDULER, amount, user))
    }

    pub(super) fn resize(&mut self, size: usize, size_max: usize, user: &str) -> anyhow::Result<String> {
        let body = json!({"adjustment_type": "EXACT_CAPACITY", "number": size, "max_size": size_max});
        self.post("resize", &body, user)
    }

    pub(super) fn create_room(&mut self, user: &str) -> anyhow::Result<String> {
        self.post("rooms", &json!({}), user)
    }

    fn post(&mut self, action: &str, body: &Value, user: &str) -> anyhow::Result<String> {
        let path = format!("/schedulers/{SCHEDULER}/{action}");
        self.ask(action, find(user), |client| client.post(&path, user, &body.to_string()))
    }

    /// It may have ended before.
    pub(super) fn cancel(&mut self, operation: &str) -> anyhow::Result<()> {
        self.until("cancel", |maestro| {
            let answer = maestro.api().cancel(SCHEDULER, operation)?;
            assert!([200, 409].contains(&answer.status), "{}", answer.text);
            Ok(())
        })
    }

    pub(super) fn delete(&mut self) -> anyhow::Result<String> {
        let deletion = |client: &Client| {
            let mut operations = client.operations(SCHEDULER)?;
            operations.retain(|operation| operation.definition_name == "delete_scheduler");
            Ok(operations.pop().map(|operation| operation.id))
        };
        let path = format!("/schedulers/{SCHEDULER}");
        self.ask("deletion", deletion, |client| client.delete(&path))
    }

    pub(super) fn end_of(&mut self, operation: &str) -> anyhow::Result<Operation> {
        self.until("an operation to end", |maestro| {
            let operation = maestro.api().operation(SCHEDULER, operation)?;
            ensure!(operation.is_final(), "{operation:?}");
            Ok(operation)
        })
    }
}

fn find(user: &str) -> impl Fn(&Client) -> anyhow::Result<Option<String>> {
    move |client| {
        let operation = client.operation_of(SCHEDULER, user)?;
        Ok(operation.map(|operation| operation.id))
    }
}
