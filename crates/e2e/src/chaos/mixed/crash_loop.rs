//! A fleet whose rooms all crash, each after a time of its own. It never settles; nobody else may notice.

use crate::{Maestro, until};

use super::SETTLE_WITHIN;

const NAME: &str = "crashing";
const ROOMS: u32 = 3;
/// They live for up to 0.9 s and never ping.
const COMMAND: [&str; 3] = ["/bin/sh", "-c", "sleep 0.$(($$ % 10)); exit 3"];

pub(super) fn begin(maestro: &Maestro) -> anyhow::Result<()> {
    let recipe = maestro.recipe(NAME, ROOMS)?.with_command(&COMMAND);
    maestro.api().create(&recipe.json())?.expect(200)?;
    Ok(())
}

/// It can still be deleted, with all that is left of it. No kill may have lost it meanwhile.
pub(super) fn end(maestro: &Maestro) -> anyhow::Result<()> {
    let path = format!("/schedulers/{NAME}");
    maestro.api().delete(&path)?.expect(200)?;
    until("the crashing fleet to be deleted", SETTLE_WITHIN, || {
        maestro.api().get(&path)?.expect(404)?;
        Ok(())
    })
}
