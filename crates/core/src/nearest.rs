//! The known name that a person most likely meant.

/// How much of a name may be wrong for a suggestion to help rather than to puzzle: one character in this many.
const CHARACTERS_PER_SLIP: usize = 4;

/// The name of smallest edit distance, case aside, if it is near enough. The first one wins a tie.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let (distance, best) = known
        .map(|candidate| (strsim::levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .min_by_key(|(distance, _)| *distance)?;
    let slips_max = name.chars().count().div_ceil(CHARACTERS_PER_SLIP);
    (distance <= slips_max).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions() {
        let known = ["managementApi.port", "roomsApi.port", "workers.syncInterval", "workers", "log.level"];
        for (name, expected) in [
            ("managmentApi.port", Some("managementApi.port")),
            ("MANAGEMENTAPI.PROT", Some("managementApi.port")),
            ("worker", Some("workers")),
            ("workers.syncinterval", Some("workers.syncInterval")),
            ("log.lvl", Some("log.level")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        }
    }
}
