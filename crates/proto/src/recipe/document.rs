//! A recipe as a document that outlives the program: what a store keeps and an operation carries.
//!
//! The form is the JSON that a client submits, so a stored recipe can be read by a person and submitted again.

use maestro_core::scheduler::Recipe;
use maestro_core::violation::Violations;
use serde::Deserialize;
use serde_json::{Value, to_value};

use crate::v1::{AutoscalingPolicy, CreateSchedulerRequest};

/// A stored document that is no recipe: written by something else, or under rules that have changed since.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("the document does not have the form of a recipe")]
    Form(#[source] serde_json::Error),
    #[error("the document is not a valid recipe")]
    Rules(#[source] Violations),
}

pub fn recipe_to_json(recipe: &Recipe) -> Value {
    let message = CreateSchedulerRequest::from(recipe);
    let mut document =
        to_value(&message).expect("only times out of range have no JSON, and a parsed recipe has none");
    keep_decimals(&mut document, message.autoscaling.as_ref().and_then(|block| block.policy.as_ref()));
    document
}

/// A value keeps 64-bit floats only. Decimals that are more than one can hold are kept as text, which is read as well.
pub(super) fn keep_decimals(document: &mut Value, policy: Option<&AutoscalingPolicy>) {
    let occupancy = policy.and_then(|policy| policy.parameters.as_ref()?.room_occupancy.as_ref());
    let shown = document.pointer_mut("/autoscaling/policy/parameters/roomOccupancy");
    let (Some(occupancy), Some(Value::Object(shown))) = (occupancy, shown) else {
        return;
    };
    let decimals = [
        ("readyTarget", Some(occupancy.ready_target_text())),
        ("downThreshold", occupancy.down_threshold_text()),
    ];
    for (name, decimal) in decimals {
        let kept = shown.get(name).map(Value::to_string);
        if let Some(decimal) = decimal.filter(|decimal| Some(decimal) != kept.as_ref()) {
            shown.insert(name.to_owned(), Value::String(decimal));
        }
    }
}

/// [`recipe_to_json`] backwards: gives an equal recipe.
pub fn recipe_from_json(document: &Value) -> Result<Recipe, DocumentError> {
    let request = CreateSchedulerRequest::deserialize(document).map_err(DocumentError::Form)?;
    Recipe::try_from(&request).map_err(DocumentError::Rules)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::recipe::tests::sample;
    use crate::recipe::tests::strategies::recipes;

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
            let request = CreateSchedulerRequest::from(&recipe);
            let read = CreateSchedulerRequest::decode(request.encode_to_vec().as_slice()).unwrap();
            prop_assert_eq!(Recipe::try_from(&read), Ok(recipe));
        }
    }

    #[test]
    fn decimals_are_stored_as_they_were_written() {
        let document = recipe_to_json(&Recipe::try_from(&sample()).unwrap());
        let occupancy = &document["autoscaling"]["policy"]["parameters"]["roomOccupancy"];
        assert_eq!(occupancy.to_string(), r#"{"downThreshold":0.95,"readyTarget":0.8}"#);

        let mut wire = sample();
        wire.set_decimals("0.123456789012345678", Some("0.999999999999999999"));
        let recipe = Recipe::try_from(&wire).unwrap();
        let document = recipe_to_json(&recipe);
        let occupancy = &document["autoscaling"]["policy"]["parameters"]["roomOccupancy"];
        let exact = r#"{"downThreshold":"0.999999999999999999","readyTarget":"0.123456789012345678"}"#;
        assert_eq!(occupancy.to_string(), exact);
        assert_eq!(recipe_from_json(&document).unwrap(), recipe);
    }

    /// Keys that v10 does not know are there only in a recipe that uses them; documents come back in short.
    #[test]
    fn policies_are_there_if_they_are_used() {
        let mut wire = sample();
        let document = recipe_to_json(&Recipe::try_from(&wire).unwrap());
        assert_eq!(
            document["placement"],
            serde_json::json!({"regions": [
                {"name": "us-east", "weight": 3, "cap": 40}, {"name": "eu-west", "weight": 2, "cap": -1}]})
        );
        assert_eq!(document["deletion"], serde_json::json!({"criteria": "OLDEST_FIRST"}));
        assert_eq!(document["spec"]["region"], "us-east");

        (wire.placement, wire.deletion, wire.spec().region) = (None, None, None);
        let document = recipe_to_json(&Recipe::try_from(&wire).unwrap());
        for key in ["policies", "placement", "deletion"] {
            assert_eq!(document.get(key), None);
        }
        assert_eq!(document["spec"].get("region"), None);
    }

    #[test]
    fn senlins_documents_are_read() {
        let mut document = recipe_to_json(&Recipe::try_from(&sample()).unwrap());
        let expected = recipe_from_json(&document).unwrap();
        let object = document.as_object_mut().unwrap();
        object.remove("placement");
        object.remove("deletion");
        object.insert(
            "policies".into(),
            serde_json::json!([
                {"type": "senlin.policy.region_placement", "version": 1.0, "properties": {"regions": [
                    {"name": "us-east", "weight": 3, "cap": 40}, {"name": "eu-west", "weight": "2"}]}},
                {"type": "senlin.policy.deletion", "version": "1.1", "properties": {"criteria": "OLDEST_FIRST"}},
            ]),
        );
        assert_eq!(recipe_from_json(&document).unwrap(), expected);
    }

    #[test]
    fn what_is_no_recipe() {
        let error = |document| recipe_from_json(&document).unwrap_err();
        assert!(matches!(error(Value::from(1)), DocumentError::Form(_)));
        assert!(matches!(error(serde_json::json!({"name": "arena"})), DocumentError::Rules(_)));
    }
}
