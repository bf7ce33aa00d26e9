//! What a running Maestro v10 was sent and answered, against what ours reads and writes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use maestro_core::scheduler::{Recipe, Version};
use maestro_core::time::Timestamp;
use maestro_proto::json::decode;
use maestro_proto::recipe::{self, Shown, go_cased_scheduler};
use maestro_proto::v1::{
    AllocateRoomResponse, CreateSchedulerRequest, CreateSchedulerResponse, ForwardRoomEventResponse,
    GetOperationResponse, GetRoomAddressResponse, GetSchedulerResponse, GetSchedulerVersionsResponse,
    GetSchedulersInfoResponse, ListOperationsResponse, ListSchedulersResponse, NewSchedulerVersionResponse,
    PatchSchedulerResponse, UpdateRoomWithPingResponse,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, to_value};

fn exchanges() -> Vec<Value> {
    maestro_testkit::recorded("http-v10.jsonl")
}

fn exchange(name: &str) -> Value {
    exchanges().into_iter().find(|exchange| exchange["name"] == name).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn is_create(exchange: &Value) -> bool {
    exchange["path"] == "/schedulers" && exchange["method"] == "POST"
}

fn body(exchange: &Value) -> Vec<u8> {
    match &exchange["rawBody"] {
        Value::String(raw) => raw.clone().into_bytes(),
        _ => exchange["body"].to_string().into_bytes(),
    }
}

#[test]
fn created_schedulers_are_printed_as_recorded() {
    let created: Vec<_> =
        exchanges().into_iter().filter(|exchange| is_create(exchange) && exchange["status"] == 200).collect();
    assert!(created.len() >= 2);
    for exchange in created {
        let decoded = decode::<CreateSchedulerRequest>(&body(&exchange)).unwrap();
        let expected_unknown = exchange["body"].get("colour").map(|_| "colour");
        assert_eq!(decoded.unknown_fields, Vec::from_iter(expected_unknown));

        let recipe = Recipe::try_from(&decoded.message).unwrap();
        let recorded = &exchange["response"]["scheduler"];
        let shown = Shown {
            version: Version::parse(text(&recorded["spec"]["version"])).unwrap(),
            state: text(&recorded["state"]),
            created_at: text(&recorded["createdAt"]).parse::<Timestamp>().unwrap(),
            rooms_replicas: recipe.rooms_replicas,
        };
        let scheduler = recipe::scheduler(&recipe, shown);
        assert_eq!(to_value(&scheduler).unwrap(), *recorded);

        // What was printed can be submitted again, and is the same recipe.
        let printed = serde_json::to_vec(&scheduler).unwrap();
        let submitted = decode::<CreateSchedulerRequest>(&printed).unwrap().message;
        assert_eq!(Recipe::try_from(&submitted), Ok(recipe));
    }
}

#[test]
fn what_was_refused_is_refused() {
    let refused: Vec<_> =
        exchanges().into_iter().filter(|exchange| is_create(exchange) && exchange["status"] == 400).collect();
    assert!(refused.len() >= 8);
    for exchange in refused {
        let accepted = decode::<CreateSchedulerRequest>(&body(&exchange))
            .is_ok_and(|decoded| Recipe::try_from(&decoded.message).is_ok());
        assert!(!accepted, "{}", exchange["name"]);
    }
}

#[test]
fn a_wrong_type_is_named() {
    let error = decode::<CreateSchedulerRequest>(&body(&exchange("create: wrong type"))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "roomsReplicas: invalid value: string \"many\", expected a whole number of 32 bits at line 1 column 79"
    );
}

/// Reads the recorded answer as a message and prints it again.
fn check_answer<T: DeserializeOwned + Serialize + Default>(names: &[&str]) {
    for name in names {
        let recorded = &exchange(name)["response"];
        let decoded = decode::<T>(recorded.to_string().as_bytes()).unwrap();
        assert_eq!(decoded.unknown_fields, [""; 0], "{name}");
        assert_eq!(to_value(&decoded.message).unwrap(), *recorded, "{name}");
    }
}

#[test]
fn answers_are_printed_as_recorded() {
    check_answer::<CreateSchedulerResponse>(&["create", "create: unknown field"]);
    check_answer::<GetSchedulerResponse>(&["get", "get a version", "get after minor", "get while deleting"]);
    check_answer::<ListSchedulersResponse>(&["list by game"]);
    check_answer::<GetSchedulersInfoResponse>(&["info"]);
    check_answer::<GetSchedulerVersionsResponse>(&[
        "versions",
        "versions after minor",
        "versions after major",
    ]);
    check_answer::<NewSchedulerVersionResponse>(&["new major version"]);
    check_answer::<PatchSchedulerResponse>(&["patch minor"]);
    check_answer::<ListOperationsResponse>(&["final operations", "order ascending", "active operations"]);
    check_answer::<GetOperationResponse>(&["get the create operation", "the version operation"]);
    check_answer::<GetRoomAddressResponse>(&["address"]);
    check_answer::<AllocateRoomResponse>(&["allocate"]);
    check_answer::<ForwardRoomEventResponse>(&["room event"]);
    check_answer::<UpdateRoomWithPingResponse>(&["ping ready"]);
}

#[test]
fn listed_schedulers_are_printed_as_recorded() {
    let create = exchange("create");
    let recipe =
        Recipe::try_from(&decode::<CreateSchedulerRequest>(&body(&create)).unwrap().message).unwrap();
    let listed = exchange("list by game");
    let recorded = listed["response"]["schedulers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["name"] == "arena")
        .unwrap();
    let shown = Shown {
        version: Version::FIRST,
        state: "in-sync",
        created_at: text(&recorded["createdAt"]).parse().unwrap(),
        rooms_replicas: recipe.rooms_replicas,
    };
    assert_eq!(to_value(recipe::scheduler_without_spec(&recipe, shown)).unwrap(), *recorded);
}

#[test]
fn inputs_of_operations_are_shown_as_recorded() {
    let create = decode::<CreateSchedulerRequest>(&body(&exchange("create"))).unwrap().message;
    let recipe = Recipe::try_from(&create).unwrap();
    assert_eq!(
        go_cased_scheduler(&recipe, Some(Version::FIRST), "in-sync", None),
        exchange("get the create operation")["response"]["operation"]["input"]["scheduler"]
    );

    let new_version =
        decode::<CreateSchedulerRequest>(&body(&exchange("new major version"))).unwrap().message;
    let recipe = Recipe::try_from(&new_version).unwrap();
    let [version, rollback] = ["v2.0.0", "v1.1.0"].map(|text| Version::parse(text).unwrap());
    assert_eq!(
        go_cased_scheduler(&recipe, Some(version), "creating", Some(rollback)),
        exchange("the version operation")["response"]["operation"]["input"]["scheduler"]
    );
}
