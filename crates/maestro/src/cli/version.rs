//! `maestro version`: what this program was built from, as bug reports need it.

use maestro_store_embedded::{Failpoints, SCHEMA_VERSION};

use super::{Context, Failure, Json};

const COMMIT: &str = env!("MAESTRO_COMMIT");

pub(super) fn run(context: &Context) -> Result<(), Failure> {
    context.show(&version(), |version| {
        let part = |key: &str| version.get(key).cell();
        let built_in = match version.get("features").items() {
            [] => String::new(),
            _ => format!(", built for tests with {}", part("features")),
        };
        format!(
            "maestro {} (commit {}, schema {}{built_in})",
            part("version"),
            part("commit"),
            part("schema")
        )
    })
}

pub(super) fn version() -> Json {
    Json::object([
        ("version", Json::from(env!("CARGO_PKG_VERSION"))),
        ("commit", Json::from(COMMIT)),
        ("schema", Json::from(SCHEMA_VERSION)),
        ("features", Json::Array(features().map(Json::from).collect())),
    ])
}

/// Features that a production build never has.
fn features() -> impl Iterator<Item = &'static str> {
    let features = [("breakable", maestro_core::guards::BREAKABLE), ("failpoints", Failpoints::BUILT_IN)];
    features.into_iter().filter(|(_, built_in)| *built_in).map(|(name, _)| name)
}
