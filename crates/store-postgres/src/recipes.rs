//! Recipes as they were parsed.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use maestro_core::scheduler::Recipe;
use maestro_engine::documents;
use parking_lot::Mutex;

use crate::columns::Columns;
use crate::failure::Result;

/// Recipes are immutable and read all the time: each is parsed once.
#[derive(Default)]
pub(crate) struct RecipeCache(Mutex<HashMap<i64, Arc<Recipe>, FixedState>>);

impl RecipeCache {
    /// Far more than there are versions in use. When it is full it begins anew, which costs some parsing.
    const RECIPES_MAX: usize = 4096;

    pub(crate) fn recipe(&self, columns: &Columns<'_>) -> Result<Arc<Recipe>> {
        let number = columns.get("number")?;
        if let Some(recipe) = self.0.lock().get(&number) {
            return Ok(recipe.clone());
        }
        let recipe = Arc::new(documents::recipe_from_json(&columns.json("recipe")?)?);
        let mut recipes = self.0.lock();
        if recipes.len() >= Self::RECIPES_MAX {
            recipes.clear();
        }
        recipes.insert(number, recipe.clone());
        Ok(recipe)
    }
}
