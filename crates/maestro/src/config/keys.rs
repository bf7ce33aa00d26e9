//! Every setting there is but those of regions, which are in `regions.rs`: the one place that lists them. The table
//! below becomes the typed [`Config`], the [`keys`] by which files and variables are read, and the reference in
//! `docs/configuration.md`.
//!
//! Names are v10's where v10 has the setting. Each line reads: key (and older spellings of it), field, type as
//! kind, default as one would write it in a file, sentence for the reference.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::kind::{
    DIRECTORY, HOST, HOSTS, HTTP_URL, INTERVAL, LogFormat, LogLevel, MILLIS, PORT, POSTGRES_URL, REDIS_URL,
    Reads, SWITCH, USER_NAME, bytes, count,
};
use super::regions::Regions;
use super::server_url::{ServerUrl, without_secrets};

/// One setting, without its type.
#[derive(Debug)]
pub struct Key {
    /// As written in a file, with dots between levels.
    pub path: &'static str,
    /// Other spellings that are accepted, v10's.
    pub aliases: &'static [&'static str],
    /// What kind of value it takes, in a word or two.
    pub kind: &'static str,
    /// Whether a file may write it as a list.
    pub(super) is_list: bool,
    pub(super) is_secret: bool,
    /// Empty: unset.
    pub default: &'static str,
    pub doc: &'static str,
    /// Heading under which the reference lists it.
    pub section: &'static str,
    pub(super) check: fn(&str) -> Result<Value, String>,
}

impl Key {
    /// Reads a value of this key and gives it back in its own JSON type; the error says what would be right.
    pub fn check(&self, text: &str) -> Result<Value, String> {
        (self.check)(text)
    }

    /// The text as people may see it.
    pub(super) fn shown(&self, text: &str) -> String {
        if self.is_secret { without_secrets(text) } else { text.to_owned() }
    }

    /// The name by which the environment knows this key, or one of its aliases.
    pub fn variable(path: &str) -> String {
        format!("MAESTRO_{}", path.replace(['.', '-'], "_").to_uppercase())
    }

    /// The key's own name first, then its older ones.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.path).chain(self.aliases.iter().copied())
    }
}

/// Makes a struct out of a table of settings: a field for each, their keys, and how they are read.
macro_rules! section {
    (
        #[doc = $section_doc:literal]
        $Section:ident {
            $( $path:literal $(or $alias:literal)*, $field:ident: $value:ty as $kind:expr, $default:literal, $doc:literal; )+
        }
    ) => {
        #[doc = $section_doc]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $Section {
            $( #[doc = $doc] pub $field: $value, )+
        }

        impl $Section {
            pub const KEYS: &[Key] = &[$(Key {
                path: $path,
                aliases: &[$($alias),*],
                kind: $kind.name,
                is_list: $kind.is_list,
                is_secret: $kind.is_secret,
                default: $default,
                doc: $doc,
                section: $section_doc,
                check: |text| Reads::<$value>::parse(&$kind, text).map(|value| $kind.show(&value)),
            }),+];

            /// Builds it from the text of each key.
            pub(super) fn read<'a>(text: impl Fn(&'static str) -> &'a str) -> Result<Self, String> {
                Ok(Self { $( $field: $kind.parse(text($path))?, )+ })
            }
        }
    };
}
pub(super) use section;

macro_rules! config {
    ($(
        #[doc = $section_doc:literal]
        $section:ident: $Section:ident { $($keys:tt)+ }
    )+) => {
        /// What Maestro was told to do, in types that cannot hold nonsense.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Config {
            $( #[doc = $section_doc] pub $section: $Section, )+
            /// Never empty.
            pub regions: Regions,
        }

        $( section! { #[doc = $section_doc] $Section { $($keys)+ } } )+

        /// Every key but those of regions, in the order of the reference.
        pub fn keys() -> impl Iterator<Item = &'static Key> {
            [$($Section::KEYS),+].into_iter().flatten()
        }

        impl Config {
            /// Builds the configuration from the text of each key.
            pub(super) fn read<'a>(
                text: impl Fn(&'static str) -> &'a str,
                regions: Regions,
            ) -> Result<Self, String> {
                Ok(Self { regions, $( $section: $Section::read(&text)?, )+ })
            }
        }
    };
}

config! {
    /// Management API, for people, CI and the command line
    management_api: ManagementApi {
        "managementApi.host", host: String as HOST, "127.0.0.1",
            "Address on which the management API listens; 0.0.0.0 means all addresses.";
        "managementApi.port", port: u16 as PORT, "8080",
            "Port of the management API; 0 picks a free port.";
    }
    /// Rooms API, for rooms and matchmakers
    rooms_api: RoomsApi {
        "roomsApi.host", host: String as HOST, "127.0.0.1",
            "Address on which the rooms API listens; 0.0.0.0 means all addresses.";
        "roomsApi.port", port: u16 as PORT, "8070",
            "Port of the rooms API; 0 picks a free port.";
    }
    /// Internal API, for health checks and metrics
    internal_api: InternalApi {
        "internalApi.host", host: String as HOST, "127.0.0.1",
            "Address on which health checks and metrics are served; 0.0.0.0 means all addresses.";
        "internalApi.port", port: u16 as PORT, "8081",
            "Port of health checks and metrics; 0 picks a free port.";
    }
    /// All HTTP APIs
    api: Api {
        "api.port", port: Option<u16> as PORT, "",
            "The port of a v10 process that runs only one API. In this version, `start` runs both APIs, and the setting has no effect.";
        "api.gracefulShutdownTimeout", graceful_shutdown_timeout: Duration as INTERVAL, "30s",
            "How long requests in progress may take to finish when Maestro stops.";
        "api.requestTimeout", request_timeout: Duration as INTERVAL, "30s",
            "A request that takes longer is answered with an error. The effective maximum is 30s, and 5s on the rooms API.";
        "api.bodyLimitBytes", body_limit_bytes: u64 as bytes::<1024>(), "1048576",
            "A request with a larger body is refused.";
        "api.requestReadTimeout", request_read_timeout: Duration as INTERVAL, "10s",
            "How long a client may take to send a request, from the first byte (or the opening of the connection) to the last. After that, its connection is closed.";
        "api.idleTimeout", idle_timeout: Duration as INTERVAL, "2m",
            "How long a connection may be idle between two requests, and how long a client may take to receive an answer. Choose a longer time than clients keep idle connections, so that the clients close them.";
        "api.connectionsMax", connections_max: Option<u32> as count::<64, 1_000_000>(), "",
            "Maximum number of connections on all listeners together. If unset, it is 65536. In any case it is at most three quarters of the limit of open files, which Maestro raises as far as possible when it starts. When the maximum is reached, connections that have not sent a complete request are closed first, then those that have been idle the longest.";
        "api.incompleteConnectionsMax", incomplete_connections_max: u32 as count::<1, 1_000_000>(), "256",
            "Maximum number of connections from one address (for IPv6: one /64) to a listener that have not sent a complete request yet. Beyond it, the oldest of them is closed. Connections that have sent one, such as those that rooms keep open, do not count.";
        "api.allowedHosts", allowed_hosts: Vec<String> as HOSTS, "",
            "Names by which clients call this server, such as `maestro.example.com`; in an environment variable, separate them by commas. A request with another `Host` is refused with 403, because a web page could have sent it. `localhost`, IP addresses, the machine's name, the hosts on which the APIs listen, and the host of every `roomsApiUrl` are always allowed.";
    }
    /// Storage
    storage: Storage {
        "dataDir", data_dir: PathBuf as DIRECTORY, "./data",
            "Directory of the embedded store and of the rooms' logs. Only one process at a time can use the embedded store. The flag `--data-dir` overrides this setting.";
    }
    /// Shared store: everything durable, in PostgreSQL
    store_server: StoreServer {
        "store.postgres.url" or "adapters.schedulerStorage.postgres.url", url: Option<ServerUrl> as POSTGRES_URL, "",
            "Where the database is, such as `postgres://maestro:PASSWORD@db.example.com:5432/maestro`. With it and `roomTable.redis.url`, any number of processes can share the stores. With neither, one process keeps everything in `dataDir`. Passwords are never shown.";
        "store.postgres.poolSize" or "adapters.schedulerStorage.postgres.poolSize", pool_size: u32 as count::<2, 1000>(), "16",
            "Maximum number of connections of one process to the database.";
        "store.postgres.statementTimeout", statement_timeout: Duration as INTERVAL, "3s",
            "How long the server may work on one statement, wait for one lock, or wait for the next statement of a transaction. At most a third of `workers.ownershipTtlMillis`.";
        "store.postgres.preparedStatements", prepared_statements: bool as SWITCH, "true",
            "Set it to false behind a pooler that gives each transaction another connection and does not support prepared statements.";
    }
    /// Shared room table: what rooms say of themselves, in Redis
    room_table_server: RoomTableServer {
        "roomTable.redis.url" or "adapters.roomStorage.redis.url", url: Option<ServerUrl> as REDIS_URL, "",
            "Where Redis is, such as `redis://:PASSWORD@redis.example.com:6379/0`; TLS is not supported yet. See `store.postgres.url`.";
        "roomTable.redis.deadline", deadline: Duration as INTERVAL, "2s",
            "How long Redis may take to answer. After that, a ping or an allocation is answered with an error, and is repeated by whoever sent it.";
    }
    /// Rooms as local processes
    process_runtime: ProcessRuntime {
        "adapters.runtime.process.host", host: String as HOST, "127.0.0.1",
            "Address announced to players for the rooms of this machine.";
        "adapters.runtime.process.logLimitBytes", log_limit_bytes: u64 as bytes::<4096>(), "10485760",
            "Maximum size of the kept output of a room, per container.";
        "adapters.runtime.process.schedulerLogLimitBytes", scheduler_log_limit_bytes: u64 as bytes::<65_536>(), "1073741824",
            "Maximum size of the kept output of all rooms of a scheduler in a region, both running and ended. Beyond it, logs of ended rooms are dropped first, the oldest of them first.";
        "adapters.runtime.process.roomsMax", rooms_max: Option<u32> as count::<1, 1_000_000>(), "",
            "Maximum number of rooms on this machine, of all schedulers together. If it has several regions, each has an equal part of it, or its own `roomsMax`. Requests that can never fit are refused; growth beyond the maximum waits, with the reason. If unset, it is one room for every 4 MiB of the machine's memory, and at least 64.";
        "adapters.runtime.process.endedRoomsMax", ended_rooms_max: u32 as count::<1, 1_000_000>(), "1000",
            "Maximum number of ended rooms of a scheduler whose logs are kept in a region. Logs are kept no longer than `operations.retention.rooms`.";
        "adapters.runtime.process.roomsDir", rooms_dir: Option<PathBuf> as DIRECTORY, "",
            "Where rooms have their own directories, in which they run and which are removed when they end. If unset, `homes` in the region's directory.";
        "adapters.runtime.process.user", user: Option<String> as USER_NAME, "",
            "Name of the user that rooms run as. Maestro must run as root, and `roomsDir` must be outside the data directory. If unset, rooms run as Maestro's own user, and whoever can write a recipe can do what that user can.";
        "adapters.runtime.process.stopRoomsOnShutdown", stop_rooms_on_shutdown: bool as SWITCH, "false",
            "Whether rooms end with Maestro. Otherwise they keep running, and the next start adopts them.";
        "adapters.runtime.process.roomsApiUrl", rooms_api_url: Option<String> as HTTP_URL, "",
            "The value of `MAESTRO_ROOMS_API_URL` that rooms get. If unset, it is derived from the address on which the rooms API listens.";
    }
    /// Workers
    workers: Workers {
        "workers.syncInterval", sync_interval: Duration as INTERVAL, "10s",
            "How often a worker looks for schedulers to own.";
        "workers.stopTimeoutDuration", stop_timeout: Duration as INTERVAL, "2m",
            "How long a stopping worker waits for the current step of its operation.";
        "workers.operationExecution.healthControllerInterval" or "workers.healthControllerInterval",
            health_controller_interval: Duration as INTERVAL, "10s",
            "Time between two scheduled health cycles.";
        "workers.operationExecution.earlyWakeUp", early_wake_up: bool as SWITCH, "true",
            "Whether an event that changes the plan starts a health cycle early.";
        "workers.storageCleanupInterval" or "workers.storageClenupInterval",
            storage_cleanup_interval: Duration as INTERVAL, "10m",
            "How often records past their retention are deleted.";
        "workers.ownershipTtlMillis", ownership_ttl: Duration as MILLIS, "10000",
            "A worker that gives no sign of life for this long loses its schedulers to other workers.";
    }
    /// Operations
    operations: Operations {
        "operations.rooms.add.limit", add_limit: u32 as count::<1, 1_000_000>(), "1000",
            "Maximum number of rooms that one operation adds. A person's request for more is refused; the health controller asks again in the next cycle.";
        "operations.rooms.add.batchSize", add_batch_size: u32 as count::<1, 10_000>(), "40",
            "How many rooms one step of an operation starts at once.";
        "operations.rooms.add.operationTimeout", add_timeout: Duration as INTERVAL, "5s",
            "How long the runtime may take to accept one room.";
        "operations.rooms.remove.limit", remove_limit: u32 as count::<1, 1_000_000>(), "1000",
            "Maximum number of rooms that one operation removes, except the deletion of a scheduler.";
        "operations.retention.final", retention_final: Duration as INTERVAL, "24h",
            "How long operations can be read after they have ended.";
        "operations.retention.noAction", retention_no_action: Duration as INTERVAL, "1h",
            "How long health cycles that changed nothing can be read.";
        "operations.retention.rooms", retention_rooms: Duration as INTERVAL, "24h",
            "How long rooms can be read after they have ended.";
    }
    /// Rooms
    room_manager: RoomManager {
        "services.roomManager.roomPingTimeoutMillis", ping_timeout: Duration as MILLIS, "240000",
            "A room that does not ping for this long is replaced.";
        "services.roomManager.massSilenceTimeoutMillis", mass_silence_timeout: Duration as MILLIS, "1800000",
            "When rooms of a region stop pinging together (at least 5, and more than half of them), other rooms replace them. They are removed only after this time, or when someone confirms that they are lost (`maestro region confirm-lost`).";
        "services.roomManager.roomInitializationTimeoutMillis", initialization_timeout: Duration as MILLIS, "120000",
            "A room that is not ready this long after its start is replaced.";
        "services.roomManager.roomValidationTimeoutMillis", validation_timeout: Duration as MILLIS, "120000",
            "How long the validation room of a new version may take to ping.";
        "services.roomManager.roomDeletionTimeoutMillis", deletion_timeout: Duration as MILLIS, "120000",
            "A room that says `terminating` and is still there after this time is removed.";
        "services.roomManager.roomValidationAttempts", validation_attempts: u32 as count::<1, 100>(), "3",
            "How many validation rooms are tried before a new version fails.";
        "services.roomManager.roomValidationAcceptOccupiedStatus", validation_accepts_occupied: bool as SWITCH, "false",
            "Whether a validation room that says `occupied` before it says `ready` counts as valid.";
        "services.roomManager.roomAllocationTTLMillis", allocation_ttl: Duration as MILLIS, "300000",
            "How long a room is held for a matchmaker that does not say how long. If no match begins within this time, others can have the room.";
    }
    /// Allocation
    allocation: Allocation {
        "allocation.queueMax", queue_max: u32 as count::<0, 100_000>(), "1000",
            "How many requests may wait for rooms of one scheduler. Further ones are answered with 429 at once.";
    }
    /// Leases
    operation_manager: OperationManager {
        "services.operationManager.operationLeaseTTLMillis", lease_ttl: Duration as MILLIS, "5000",
            "An operation whose lease is not renewed for this long is taken over. Leases are renewed every third of this time.";
    }
    /// Locks
    locks: Locks {
        "locks.ttl", ttl: Duration as INTERVAL, "30s",
            "A named lock that is not renewed for this long can be taken by others. Locks are renewed together with leases.";
        "locks.waitTimeout", wait_timeout: Duration as INTERVAL, "5m",
            "An operation that waits longer than this for a lock ends as `error`.";
        "downscaling.timeout", downscaling_timeout: Duration as INTERVAL, "10m",
            "A removal gives up its lock after this time, even if its rooms are not gone.";
    }
    /// Events
    events: Events {
        "events.keepFor", keep_for: Duration as INTERVAL, "24h",
            "How long delivery of a queued event is tried. After that the event is a dead letter.";
        "events.queueMax", queue_max: u32 as count::<1, 10_000_000>(), "100000",
            "Maximum number of events that wait for one forwarder. More are answered with `success: false`.";
    }
    /// Logs
    log: Log {
        "log.level", level: LogLevel as LogLevel::KIND, "info",
            "The lowest severity that is logged.";
        "log.format", format: LogFormat as LogFormat::KIND, "text",
            "Format of the log: `text` for people, `json` for machines. The flag `--log-config production` means json, `development` means text.";
    }
}

/// v10's settings of things that are not here (yet): a file that has them can be used as it is. Each stands for
/// itself and all below it.
pub(super) const NO_EFFECT: &[&str] = &[
    "adapters.grpc",
    "adapters.instanceStorage",
    "adapters.operationFlow",
    "adapters.operationLeaseStorage",
    "adapters.operationStorage",
    "adapters.portAllocator",
    "adapters.redis",
    "adapters.runtime.kubernetes",
    "adapters.schedulerCache",
    "adapters.schedulerStorage.postgres.minIdleConns",
    // As v10's own file spells it.
    "adapters.schedulerStorage.postgres.pooSize",
    "api.metrics",
    "api.tracing",
    "internalApi.gracefulShutdownTimeout",
    "internalApi.healthcheck",
    "internalApi.metrics",
    "migration",
    "reporter",
    "runtimeWatcher",
    "services.eventsForwarder",
    "workers.redis",
];
