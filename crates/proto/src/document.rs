//! A recipe as a document that outlives the program: what a store keeps and an operation carries.
//!
//! The form is the JSON that a client submits, so a stored recipe can be read by a person and submitted again.

use maestro_core::scheduler::Recipe;
use maestro_core::violation::Violations;
use serde::Deserialize;
use serde_json::Value;

use crate::json::to_value;
use crate::v1::CreateSchedulerRequest;

/// A stored document that is no recipe: written by something else, or under rules that have changed since.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("the document does not have the form of a recipe")]
    Form(#[source] serde_json::Error),
    #[error("the document is not a valid recipe")]
    Rules(#[source] Violations),
}

pub fn recipe_to_json(recipe: &Recipe) -> Value {
    let request = CreateSchedulerRequest::from(recipe.to_draft());
    to_value(&request).expect("only times out of range have no JSON, and a parsed recipe has none")
}

/// [`recipe_to_json`] backwards: gives an equal recipe.
pub fn recipe_from_json(document: &Value) -> Result<Recipe, DocumentError> {
    let request = CreateSchedulerRequest::deserialize(document).map_err(DocumentError::Form)?;
    Recipe::parse(&request.into()).map_err(DocumentError::Rules)
}

#[cfg(test)]
mod tests {
    use maestro_core::scheduler::testing::{draft, recipes};
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    proptest! {
        #[test]
        fn a_recipe_survives_its_document(recipe in recipes()) {
            let document = recipe_to_json(&recipe);
            let text = document.to_string();
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(&read, &document);
            prop_assert_eq!(recipe_from_json(&read).unwrap(), recipe);
        }

        #[test]
        fn a_recipe_survives_the_wire(recipe in recipes()) {
            let request = CreateSchedulerRequest::from(recipe.to_draft());
            let read = CreateSchedulerRequest::decode(request.encode_to_vec().as_slice()).unwrap();
            prop_assert_eq!(Recipe::parse(&read.into()), Ok(recipe));
        }
    }

    #[test]
    fn decimals_are_stored_as_they_were_written() {
        let document = recipe_to_json(&Recipe::parse(&draft()).unwrap());
        let occupancy = &document["autoscaling"]["policy"]["parameters"]["roomOccupancy"];
        assert_eq!(occupancy.to_string(), r#"{"downThreshold":0.95,"readyTarget":0.8}"#);
    }

    #[test]
    fn what_is_no_recipe() {
        let error = |document| recipe_from_json(&document).unwrap_err();
        assert!(matches!(error(Value::from(1)), DocumentError::Form(_)));
        assert!(matches!(error(serde_json::json!({"name": "arena"})), DocumentError::Rules(_)));
    }
}
