//! The words that a recipe chooses from, and those for the state of its scheduler, as they are written.

use crate::words::words;

words! {
    pub enum SchedulerState {
        Creating = "creating",
        InSync = "in-sync",
        Deleting = "deleting",
    }

    pub enum RestartPolicy {
        Always = "Always",
        OnFailure = "OnFailure",
        Never = "Never",
    }

    pub enum ImagePullPolicy {
        Always = "Always",
        Never = "Never",
        IfNotPresent = "IfNotPresent",
    }

    /// Addresses of rooms have it in capitals.
    pub enum Protocol {
        Tcp = "tcp",
        Udp = "udp",
        Sctp = "sctp",
    }

    /// What happens to old rooms that players are in.
    pub enum OccupiedRooms {
        /// They go when nothing else is left to go.
        DeleteLast = "deleteLast",
        /// They stay until their matches end, or the deadline passes.
        WaitForMatchEnd = "waitForMatchEnd",
    }

    /// How a forwarder's events reach its receiver.
    pub enum Delivery {
        /// While the room waits, and not again.
        Direct = "direct",
        /// Written down first, then delivered, again and again until the receiver has them.
        Queued = "queued",
    }

    /// What happens when new rooms do not become ready.
    pub enum OnFailure {
        /// Back to the last version that was deployed.
        Rollback = "rollback",
        /// Nothing more is replaced until someone says how to go on.
        Halt = "halt",
    }
}
