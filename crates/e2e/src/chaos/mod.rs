//! `kill -9` of Maestro at random moments, again and again; and many matchmakers at once.
//!
//! [`scaling`] looks closely at one fleet, kill by kill; [`mixed`] has everything going on at once and looks at the end.
//! [`allocations`] kills rooms only: matchmakers compete for the rooms of a fleet that changes all the time.

pub mod allocations;
pub mod mixed;
pub mod scaling;

use std::fs;

use anyhow::ensure;

use crate::Maestro;

/// A step that panics is caught, and would be tried again.
fn no_panic(maestro: &Maestro) -> anyhow::Result<()> {
    let log = fs::read_to_string(maestro.log())?;
    let panic = log.lines().find(|line| line.contains("panicked"));
    ensure!(panic.is_none(), "the server panicked: {panic:?}");
    Ok(())
}
