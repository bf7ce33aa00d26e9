//! Ids that Maestro gives: UUIDs of version 7, ordered by the time they were made.

/// Defines the id of one kind of thing, so that the ids of two kinds are never mistaken for each other.
macro_rules! uuid_id {
    ($(#[$about:meta])* $id:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $id(uuid::Uuid);

        impl $id {
            /// A new id from the injected clock and randomness.
            pub fn new(now: $crate::time::Timestamp, random: [u8; 10]) -> Self {
                let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
                Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
            }

            pub fn parse(text: &str) -> Option<Self> {
                uuid::Uuid::parse_str(text).ok().map(Self)
            }

            pub fn from_u128(number: u128) -> Self {
                Self(uuid::Uuid::from_u128(number))
            }

            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl std::fmt::Display for $id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl std::fmt::Debug for $id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
    };
}

pub(crate) use uuid_id;
