//! Commands that need no server.

use expect_test::{expect, expect_file};

use crate::{check_local, maestro, run, told};

#[test]
fn config_show() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("maestro.yaml"),
        "managementApi: {port: 9000}\nworkers:\n  syncInterval: 90s\nadapters: {redis: {poolSize: 5}}\n",
    )
    .unwrap();
    let show = |arguments: &str| {
        let mut command = maestro(&format!("config show -c maestro.yaml {arguments}"));
        command
            .current_dir(directory.path())
            .env("MAESTRO_LOG_LEVEL", "debug")
            .env("MAESTRO_ROOMSAPI_PORT", "");
        command
    };
    check_local(
        show("--data-dir elsewhere"),
        &expect![[r#"
            KEY                                                      VALUE       FROM
            managementApi.host                                       127.0.0.1   default
            managementApi.port                                       9000        maestro.yaml line 1
            roomsApi.host                                            127.0.0.1   default
            roomsApi.port                                            8070        default
            internalApi.host                                         127.0.0.1   default
            internalApi.port                                         8081        default
            api.port                                                 -           default
            api.gracefulShutdownTimeout                              30s         default
            api.requestTimeout                                       30s         default
            api.bodyLimitBytes                                       1048576     default
            api.requestReadTimeout                                   10s         default
            api.idleTimeout                                          2m          default
            api.connectionsMax                                       -           default
            api.incompleteConnectionsMax                             256         default
            api.allowedHosts                                         -           default
            dataDir                                                  elsewhere   --data-dir
            store.postgres.url                                       -           default
            store.postgres.poolSize                                  16          default
            store.postgres.statementTimeout                          3s          default
            store.postgres.preparedStatements                        true        default
            roomTable.redis.url                                      -           default
            roomTable.redis.deadline                                 2s          default
            adapters.runtime.process.host                            127.0.0.1   default
            adapters.runtime.process.logLimitBytes                   10485760    default
            adapters.runtime.process.schedulerLogLimitBytes          1073741824  default
            adapters.runtime.process.roomsMax                        -           default
            adapters.runtime.process.endedRoomsMax                   1000        default
            adapters.runtime.process.roomsDir                        -           default
            adapters.runtime.process.user                            -           default
            adapters.runtime.process.stopRoomsOnShutdown             false       default
            adapters.runtime.process.roomsApiUrl                     -           default
            workers.syncInterval                                     1m30s       maestro.yaml line 3
            workers.stopTimeoutDuration                              2m          default
            workers.operationExecution.healthControllerInterval      10s         default
            workers.operationExecution.earlyWakeUp                   true        default
            workers.storageCleanupInterval                           10m         default
            workers.ownershipTtlMillis                               10000       default
            operations.rooms.add.limit                               1000        default
            operations.rooms.add.batchSize                           40          default
            operations.rooms.add.operationTimeout                    5s          default
            operations.rooms.remove.limit                            1000        default
            operations.retention.final                               24h         default
            operations.retention.noAction                            1h          default
            operations.retention.rooms                               24h         default
            services.roomManager.roomPingTimeoutMillis               240000      default
            services.roomManager.massSilenceTimeoutMillis            1800000     default
            services.roomManager.roomInitializationTimeoutMillis     120000      default
            services.roomManager.roomValidationTimeoutMillis         120000      default
            services.roomManager.roomDeletionTimeoutMillis           120000      default
            services.roomManager.roomValidationAttempts              3           default
            services.roomManager.roomValidationAcceptOccupiedStatus  false       default
            services.roomManager.roomAllocationTTLMillis             300000      default
            allocation.queueMax                                      1000        default
            services.operationManager.operationLeaseTTLMillis        5000        default
            locks.ttl                                                30s         default
            locks.waitTimeout                                        5m          default
            downscaling.timeout                                      10m         default
            events.keepFor                                           24h         default
            events.queueMax                                          100000      default
            log.level                                                debug       MAESTRO_LOG_LEVEL
            log.format                                               text        default
            stderr: warning: adapters.redis has no effect here (maestro.yaml line 4)
        "#]],
    );
    let output = run(show("-o json"), "");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        json["settings"][1],
        serde_json::json!({"key": "managementApi.port", "value": 9000, "source": "file", "from": "maestro.yaml line 1"})
    );
    let yaml = String::from_utf8(run(show("-o yaml"), "").stdout).unwrap();
    assert!(yaml.contains("- key: log.level\n  value: debug\n  source: environment\n"), "{yaml}");
}

#[test]
fn config_that_is_wrong() {
    let mut command = maestro("config show -c no-such-file.yaml");
    check_local(
        command,
        &expect![[r#"
            stderr: error: the configuration is not valid:
            stderr:   no-such-file.yaml: cannot be read: No such file or directory (os error 2)
            exit 2
        "#]],
    );
    command = maestro("start -c no-such-file.yaml");
    check_local(
        command,
        &expect![[r#"
            stderr: error: the configuration is not valid:
            stderr:   no-such-file.yaml: cannot be read: No such file or directory (os error 2)
            exit 2
        "#]],
    );
    command = maestro("config show");
    command.env("MAESTRO_MANAGEMENTAPI_PORT", "http").env("MAESTRO_WORKERS_SYNCINTERVAL", "10");
    check_local(
        command,
        &expect![[r#"
            stderr: error: the configuration is not valid:
            stderr:   managementApi.port: http (MAESTRO_MANAGEMENTAPI_PORT): must be a port from 0 to 65535; 0 picks a free one
            stderr:   workers.syncInterval: 10 (MAESTRO_WORKERS_SYNCINTERVAL): a number needs a unit: 10s, 10ms, 10m or 10h
            exit 2
        "#]],
    );
}

#[test]
fn config_reference() {
    let output = run(maestro("config reference"), "");
    expect_file!["../../../../docs/configuration.md"].assert_eq(&String::from_utf8_lossy(&output.stdout));
}

#[test]
fn version() {
    let json = run(maestro("version -o json"), "");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["schema"], maestro_store_embedded::SCHEMA_VERSION);
    let commit = json["commit"].as_str().unwrap();
    let is_commit = commit.len() >= 12 && commit.chars().all(|character| character.is_ascii_hexdigit());
    assert!(is_commit || commit == "unknown", "{commit}");
    let (table, schema) = (told(&run(maestro("version"), "")), &json["schema"]);
    assert!(table.starts_with(&format!("maestro 0.1.0 (commit {commit}, schema {schema}")), "{table}");
}

#[test]
fn completion() {
    for (shell, part) in
        [("bash", "complete -F"), ("zsh", "#compdef maestro"), ("fish", "complete -c maestro")]
    {
        let output = run(maestro(&format!("completion {shell}")), "");
        assert!(String::from_utf8_lossy(&output.stdout).contains(part), "{shell}");
    }
    check_local(
        maestro("completion tcsh"),
        &expect![[r#"
            stderr: error: invalid value 'tcsh' for '<SHELL>'
            stderr:   [possible values: bash, zsh, fish]
            stderr: 
            stderr:   tip: a similar value exists: 'zsh'
            stderr: 
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
}

#[test]
fn help() {
    check_local(
        maestro("--help"),
        &expect![[r#"
            Keeps fleets of dedicated game rooms running

            Usage: maestro [OPTIONS] <COMMAND>

            Commands:
              scheduler       Create, change, inspect and delete schedulers
              rollout         Follow, pause, resume and cancel the rollout of a new version
              room            Inspect, add, create and remove rooms
              allocation      Allocate rooms for matches, see who holds which, and return them
              operation       Inspect, explain, cancel and follow operations [alias: op]
              lock            Inspect and release the locks of a scheduler
              event           Inspect events that wait for forwarders, and replay those that could not be
                              delivered (see events for what happens)
              events          Print what happens: rooms, allocations, operations, decisions, rollouts, regions
                              (see event for queued events)
              region          Inspect regions; cordon, drain and uncordon them
              simulate        Simulate what Maestro would do with a fleet, cycle by cycle, without a server
              plan            Ask the planners about cases: one JSON line in, one JSON line out
              config          Inspect the configuration
              start           Start a server
              migrate         Bring the schema of the shared store (PostgreSQL) up to date
              backup          Back up the store of a data directory to a file, even while a server is using it
              restore         Restore a data directory from a backup
              export          Print schedulers with all of their versions, for import into another installation
              import          Create the schedulers that export printed; those that are there already stay as
                              they are
              support-bundle  Collect everything that a bug report needs in one file
              completion      Print a completion script for a shell
              version         Print the version, the commit and the schema of the store
              help            Print this message or the help of the given subcommand(s)

            Options:
              -h, --help     Print help
              -V, --version  Print version

            Global options:
                  --url <URL>                   The server's management API [env: MAESTRO_URL] [default:
                                                http://127.0.0.1:8080]
              -o, --output <OUTPUT>             How to print results; json and yaml print the server's answer
                                                unchanged, csv is only for simulate [default: table] [possible
                                                values: table, json, yaml, csv]
                  --request-timeout <DURATION>  Time limit for a single request to the server [default: 30s]

            Examples:
              maestro start                                   start a server on this machine
              maestro scheduler create -f arena.yaml --wait   create a fleet and wait for its rooms
              maestro scheduler list                          all fleets, and what is wrong with them
              maestro room list arena                         the rooms of a fleet
              maestro operation list arena                    what was done, and why
              maestro simulate -f arena.yaml --demand 80      what would be done

            Exit codes:
              0 ok, 1 operation failed, 2 usage or invalid input, 3 not found, 4 conflict,
              5 server unreachable, 6 timed out
        "#]],
    );
    check_local(
        maestro("room add --help"),
        &expect![[r#"
            Add rooms to a scheduler

            Usage: maestro room add [OPTIONS] <SCHEDULER> <N>

            Arguments:
              <SCHEDULER>  Name of the scheduler
              <N>          Number of rooms

            Options:
                  --force               Do it even if autoscaling is on and will undo it
                  --wait                Wait for the operation to end; the exit code tells whether it succeeded
                  --timeout <DURATION>  How long to wait; the operation continues after that [default: 60s]
              -h, --help                Print help

            Global options:
                  --url <URL>                   The server's management API [env: MAESTRO_URL] [default:
                                                http://127.0.0.1:8080]
              -o, --output <OUTPUT>             How to print results; json and yaml print the server's answer
                                                unchanged, csv is only for simulate [default: table] [possible
                                                values: table, json, yaml, csv]
                  --request-timeout <DURATION>  Time limit for a single request to the server [default: 30s]

            Examples:
              maestro room add arena 3
              maestro room add arena 3 --wait --timeout 2m
        "#]],
    );
    check_local(
        maestro("start --help"),
        &expect![[r#"
            Start a server

            Usage: maestro start [OPTIONS] [MODULE]

            Arguments:
              [MODULE]  What to run in this process; all but `all` need stores that processes can share
                        (PostgreSQL and Redis) [default: all] [possible values: all, management-api, rooms-api,
                        worker, runtime-watcher, metrics-reporter]

            Options:
              -c, --config-path <FILE>   Configuration file, YAML [alias: --config]
                  --data-dir <DIR>       Directory of the embedded store; overrides the setting dataDir
              -l, --log-config <PRESET>  Log format, by v10's name for it: production is json, development is
                                         text [possible values: production, development]
                  --stop-unknown-rooms   End running rooms of the store that was in the data directory, if its
                                         database is gone
              -h, --help                 Print help

            Global options:
                  --url <URL>                   The server's management API [env: MAESTRO_URL] [default:
                                                http://127.0.0.1:8080]
              -o, --output <OUTPUT>             How to print results; json and yaml print the server's answer
                                                unchanged, csv is only for simulate [default: table] [possible
                                                values: table, json, yaml, csv]
                  --request-timeout <DURATION>  Time limit for a single request to the server [default: 30s]

            Examples:
              maestro start
              maestro start -c maestro.yaml --data-dir /var/lib/maestro
              MAESTRO_MANAGEMENTAPI_PORT=0 maestro start
        "#]],
    );
}
