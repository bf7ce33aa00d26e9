//! The words that a recipe chooses from, as they are written.

use super::{ImagePullPolicy, OccupiedRooms, OnFailure, Protocol, RestartPolicy};
use crate::policy::Criteria;
use crate::words::words;

words!(RestartPolicy {
    Always = "Always",
    OnFailure = "OnFailure",
    Never = "Never",
});

words!(ImagePullPolicy {
    Always = "Always",
    Never = "Never",
    IfNotPresent = "IfNotPresent",
});

// As recipes write it. Addresses of rooms have it in capitals.
words!(Protocol {
    Tcp = "tcp",
    Udp = "udp",
    Sctp = "sctp",
});

words!(OccupiedRooms {
    DeleteLast = "deleteLast",
    WaitForMatchEnd = "waitForMatchEnd",
});

words!(OnFailure {
    Rollback = "rollback",
    Halt = "halt",
});

// In Senlin's order.
words!(Criteria {
    OldestFirst = "OLDEST_FIRST",
    OldestProfileFirst = "OLDEST_PROFILE_FIRST",
    YoungestFirst = "YOUNGEST_FIRST",
    Random = "RANDOM",
});
