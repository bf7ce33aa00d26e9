use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use expect_test::{Expect, expect, expect_file};

use super::*;

/// Loads a file's text and some variables, and compares what differs from the defaults, or what is wrong.
fn check(file: &str, variables: &[(&str, &str)], expected: &Expect) {
    check_sources(file, variables, Sources::default(), expected);
}

fn check_sources(file: &str, variables: &[(&str, &str)], mut sources: Sources, expected: &Expect) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("maestro.yaml");
    std::fs::write(&path, file).unwrap();
    sources.environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    sources.file = Some(path);

    let mut outcome = String::new();
    match load(&sources) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                writeln!(outcome, "warning: {warning}").unwrap();
            }
            for setting in &loaded.settings {
                let Setting { text, origin, .. } = setting;
                if *origin != Origin::Default {
                    writeln!(outcome, "{} = {text} from {origin}", setting.path()).unwrap();
                }
            }
        }
        Err(error) => writeln!(outcome, "{error}").unwrap(),
    }
    let directory = format!("{}/", directory.path().display());
    expected.assert_eq(&outcome.replace(&directory, ""));
}

#[test]
fn defaults_are_those_of_the_table() {
    let loaded = load(&Sources::default()).unwrap();
    let config = loaded.config;
    assert_eq!((config.management_api.host.as_str(), config.management_api.port), ("127.0.0.1", 8080));
    assert_eq!((config.rooms_api.port, config.internal_api.port, config.api.port), (8070, 8081, None));
    assert_eq!(config.storage.data_dir, Path::new("./data"));
    assert_eq!(config.process_runtime.rooms_api_url, None);
    assert_eq!(config.workers.health_controller_interval, Duration::from_secs(10));
    assert_eq!(config.operation_manager.lease_ttl, Duration::from_millis(5000));
    assert_eq!(config.operations.retention_final, Duration::from_secs(24 * 3600));
    assert_eq!(config.log.format, LogFormat::Text);
    assert!(loaded.warnings.is_empty());
    assert!(loaded.settings.iter().all(|setting| setting.origin == Origin::Default));
}

#[test]
fn the_table_does_not_contradict_itself() {
    let mut names = HashSet::new();
    for key in keys() {
        assert!(key.check(key.default).is_ok(), "{}: its default is not valid", key.path);
        assert!(key.doc.ends_with('.'), "{}: a sentence ends with a full stop", key.path);
        for spelling in key.spellings() {
            assert!(names.insert(Key::variable(spelling)), "{spelling}: two keys have the same variable");
        }
    }
}

#[test]
fn no_key_is_also_without_effect() {
    for spelling in keys().flat_map(Key::spellings) {
        let read = file::read("maestro.yaml", &format!("{spelling}: x"));
        assert_eq!(read.warnings, [""; 0], "{spelling}: a file's value would be discarded");
        assert_eq!(read.values.len(), 1, "{spelling}");
    }
}

#[test]
fn the_table_of_regions_does_not_contradict_itself() {
    for key in RegionConfig::KEYS {
        assert!(key.check(key.default).is_ok(), "{}: its default is not valid", key.path);
        assert!(key.doc.ends_with('.'), "{}: a sentence ends with a full stop", key.path);
    }
}

#[test]
fn environment_wins_over_file() {
    check(
        "managementApi:\n  port: 9000\nroomsApi: {port: 9001}\n",
        &[("MAESTRO_MANAGEMENTAPI_PORT", "9999"), ("MAESTRO_ROOMSAPI_PORT", ""), ("MAESTRO_COLOUR", "red")],
        &expect![[r#"
            managementApi.port = 9999 from MAESTRO_MANAGEMENTAPI_PORT
            roomsApi.port = 9001 from maestro.yaml line 3
        "#]],
    );
}

#[test]
fn keys_are_case_insensitive_and_may_be_dotted() {
    check(
        "MANAGEMENTAPI:\n  Port: '0'\nlog.level: debug\nworkers:\ndataDir:\napi:\n  port: ''\n",
        &[],
        &expect![[r#"
            managementApi.port = 0 from maestro.yaml line 2
            log.level = debug from maestro.yaml line 3
        "#]],
    );
}

#[test]
fn an_empty_file_says_nothing() {
    check("", &[], &expect![""]);
    check("# only a comment\n", &[], &expect![""]);
    check("---\n", &[], &expect![""]);
}

#[test]
fn names_of_this_server() {
    check(
        "api:\n  allowedHosts:\n  - maestro.example.com\n  - build-7\n",
        &[],
        &expect![[r#"
            api.allowedHosts = maestro.example.com,build-7 from maestro.yaml line 2
        "#]],
    );
    check(
        "api: {allowedHosts: [[a], b]}\nlog: {level: [info]}\n",
        &[("MAESTRO_API_ALLOWEDHOSTS", "a:80")],
        &expect![[r#"
            the configuration is not valid:
              api.allowedHosts (maestro.yaml line 1): must be a list of hosts, without lists or sections in it
              log.level (maestro.yaml line 2): must be one value (off, error, warn, info, debug or trace), not a list or a section
              api.allowedHosts: a:80 (MAESTRO_API_ALLOWEDHOSTS): "a:80" must be an IP address or a host name, without scheme and port
        "#]],
    );
    let sources = Sources {
        environment: [
            ("MAESTRO_API_ALLOWEDHOSTS", "maestro.example.com, b"),
            ("MAESTRO_ROOMSAPI_HOST", "rooms"),
            ("MAESTRO_ADAPTERS_RUNTIME_PROCESS_ROOMSAPIURL", "http://gate.example:8070/"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into(),
        ..Sources::default()
    };
    let hosts: HashSet<String> = load(&sources).unwrap().config.own_hosts().collect();
    let expected = ["127.0.0.1", "rooms", "maestro.example.com", "b", "gate.example"];
    assert_eq!(hosts, expected.map(str::to_owned).into());
}

#[test]
fn older_spellings() {
    check(
        "workers:\n  healthControllerInterval: 1m\n  storageClenupInterval: 3h\n",
        &[],
        &expect![[r#"
            workers.operationExecution.healthControllerInterval = 1m from maestro.yaml line 2
            workers.storageCleanupInterval = 3h from maestro.yaml line 3
        "#]],
    );
    check(
        "workers: {healthControllerInterval: 1m}",
        &[
            ("MAESTRO_WORKERS_HEALTHCONTROLLERINTERVAL", "2s"),
            ("MAESTRO_WORKERS_OPERATIONEXECUTION_HEALTHCONTROLLERINTERVAL", "1s"),
        ],
        &expect![[r#"
            warning: MAESTRO_WORKERS_HEALTHCONTROLLERINTERVAL has no effect, because MAESTRO_WORKERS_OPERATIONEXECUTION_HEALTHCONTROLLERINTERVAL is set too
            workers.operationExecution.healthControllerInterval = 1s from MAESTRO_WORKERS_OPERATIONEXECUTION_HEALTHCONTROLLERINTERVAL
        "#]],
    );
    check(
        "workers:\n  storageClenupInterval: 3h\n  storageCleanupInterval: 2h\n",
        &[],
        &expect![[r#"
            the configuration is not valid:
              workers.storageCleanupInterval (maestro.yaml lines 2 and 3): is set twice; keep one of them
        "#]],
    );
}

#[test]
fn everything_wrong_is_said_at_once() {
    check(
        "managementApi:\n  port: 70000\nmanagmentApi:\n  port: 1\nworkers:\n  syncInterval: 10\n  colour: red\n\
         operations: 5\nservices:\n  roomManager:\n    roomPingTimeoutMillis: 4m\nlog: {level: [info]}\ncolour: {a: 1}\n",
        &[("MAESTRO_API_REQUESTTIMEOUT", "0s")],
        &expect![[r#"
            the configuration is not valid:
              managmentApi (maestro.yaml line 3): unknown key; did you mean managementApi?
              workers.colour (maestro.yaml line 7): unknown key; `maestro config reference` lists all keys
              operations (maestro.yaml line 8): is a section: its settings go below it, indented
              log.level (maestro.yaml line 12): must be one value (off, error, warn, info, debug or trace), not a list or a section
              colour (maestro.yaml line 13): unknown key; `maestro config reference` lists all keys
              managementApi.port: 70000 (maestro.yaml line 2): must be a port from 0 to 65535; 0 picks a free one
              api.requestTimeout: 0s (MAESTRO_API_REQUESTTIMEOUT): must be longer than zero, such as 10s
              workers.syncInterval: 10 (maestro.yaml line 6): a number needs a unit: 10s, 10ms, 10m or 10h
              services.roomManager.roomPingTimeoutMillis: 4m (maestro.yaml line 11): must be a whole number of milliseconds without a unit, such as 5000
        "#]],
    );
}

#[test]
fn files_that_are_no_configuration() {
    check(
        "- a\n- b\n",
        &[],
        &expect![[r#"
            the configuration is not valid:
              maestro.yaml: must contain settings such as `managementApi: {port: 8080}`
        "#]],
    );
    check(
        "just text",
        &[],
        &expect![[r#"
            the configuration is not valid:
              maestro.yaml: must contain settings such as `managementApi: {port: 8080}`
        "#]],
    );
    check(
        "log: [unclosed\n",
        &[],
        &expect![[r#"
            the configuration is not valid:
              maestro.yaml:1:6: not valid YAML: unclosed bracket '['
        "#]],
    );
    check(
        "log:\n  level: info\nlog:\n  level: warn\n",
        &[],
        &expect![[r#"
            the configuration is not valid:
              maestro.yaml:3:1: not valid YAML: duplicate mapping key: log not allowed here
        "#]],
    );
    let missing = Sources { file: Some("no/such/file.yaml".into()), ..Sources::default() };
    expect![[r#"
        the configuration is not valid:
          no/such/file.yaml: cannot be read: No such file or directory (os error 2)"#]]
    .assert_eq(&load(&missing).unwrap_err().to_string());
}

#[test]
fn a_file_of_v10_can_be_used() {
    check(
        "api:\n  port: 8080\n  metrics:\n    enabled: true\nadapters:\n  redis:\n    poolSize: 500\n  schedulerStorage:\n    \
         postgres:\n      url: \"postgres://db\"\n      pooSize: 20\n  roomStorage:\n    redis:\n      url: redis://cache\n  runtime:\n    kubernetes:\n      inCluster: false\n\
         workers:\n  syncInterval: 10s\n  redis:\n    operationsTTL: 24h\nservices:\n  roomManager:\n    roomPingTimeoutMillis: 240000\n",
        &[],
        &expect![[r#"
            warning: api.metrics has no effect here (maestro.yaml line 3)
            warning: adapters.redis has no effect here (maestro.yaml line 6)
            warning: adapters.schedulerStorage.postgres.pooSize has no effect here (maestro.yaml line 11)
            warning: adapters.runtime.kubernetes has no effect here (maestro.yaml line 16)
            warning: workers.redis has no effect here (maestro.yaml line 20)
            warning: api.port has no effect where two APIs run: set managementApi.port and roomsApi.port (maestro.yaml line 2)
            api.port = 8080 from maestro.yaml line 2
            store.postgres.url = postgres://db from maestro.yaml line 10
            roomTable.redis.url = redis://cache from maestro.yaml line 14
            workers.syncInterval = 10s from maestro.yaml line 19
            services.roomManager.roomPingTimeoutMillis = 240000 from maestro.yaml line 24
        "#]],
    );
}

#[test]
fn shared_stores_go_together() {
    check(
        "store: {postgres: {url: 'postgres://ada:s3cret@db/maestro'}}",
        &[],
        &expect![[r#"
            the configuration is not valid:
              roomTable.redis.url: is not set, and store.postgres.url is: processes that share one store share a room table too. Set both, or neither for the embedded store
        "#]],
    );
    check(
        "workers: {ownershipTtlMillis: 6000}",
        &[("MAESTRO_ADAPTERS_ROOMSTORAGE_REDIS_URL", "redis://:s3cret@cache")],
        &expect![[r#"
            the configuration is not valid:
              store.postgres.url: is not set, and roomTable.redis.url is: processes that share one store share a room table too. Set both, or neither for the embedded store
        "#]],
    );
    check(
        "workers: {ownershipTtlMillis: 6000}\nroomTable: {redis: {url: 'redis://cache'}}",
        &[("MAESTRO_STORE_POSTGRES_URL", "postgres://db")],
        &expect![[r#"
            the configuration is not valid:
              store.postgres.statementTimeout: must be at most 2s, a third of workers.ownershipTtlMillis: a process that is stopped inside a transaction would keep others from their schedulers
        "#]],
    );
}

#[test]
fn passwords_are_not_shown_where_they_are_wrong() {
    check(
        "store: {postgres: {url: 'mysql://ada:s3cret@db/maestro'}}\nroomTable: {redis: {url: s3cret}}",
        &[],
        &expect![[r#"
            the configuration is not valid:
              store.postgres.url: mysql://ada:(hidden)@db/maestro (maestro.yaml line 1): must be a URL such as postgres://maestro:PASSWORD@db.example.com:5432/maestro
              roomTable.redis.url: (hidden) (maestro.yaml line 2): must be a URL such as redis://:PASSWORD@redis.example.com:6379/0
        "#]],
    );
    let environment = vec![
        ("MAESTRO_STORE_POSTGRES_URL".into(), "postgres://ada:s3cret@db/maestro".into()),
        ("MAESTRO_ROOMTABLE_REDIS_URL".into(), "redis://:s3cret@cache".into()),
    ];
    let config = load(&Sources { environment, ..Sources::default() }).unwrap().config;
    assert!(!format!("{config:?}").contains("s3cret"));
    let stores = config.shared_stores().unwrap();
    assert_eq!(stores.postgres.with_password(), "postgres://ada:s3cret@db/maestro");
    assert_eq!(stores.redis.with_password(), "redis://:s3cret@cache");
}

#[test]
fn api_port_stands_for_the_only_api() {
    let rooms_only = || Sources { served_apis: ServedApis::Rooms, ..Sources::default() };
    check_sources(
        "api: {port: 9000}",
        &[],
        rooms_only(),
        &expect![[r#"
            roomsApi.port = 9000 from maestro.yaml line 1
            api.port = 9000 from maestro.yaml line 1
        "#]],
    );
    check_sources(
        "api: {port: 9000}\nroomsApi: {port: 9001}",
        &[],
        rooms_only(),
        &expect![[r#"
            roomsApi.port = 9001 from maestro.yaml line 2
            api.port = 9000 from maestro.yaml line 1
        "#]],
    );
    check_sources(
        "",
        &[("MAESTRO_API_PORT", "x")],
        rooms_only(),
        &expect![[r#"
            the configuration is not valid:
              api.port: x (MAESTRO_API_PORT): must be a port from 0 to 65535; 0 picks a free one
        "#]],
    );
}

#[test]
fn flags_win_over_all() {
    let flag = Flag { name: "--data-dir", key: "dataDir", value: "/srv/maestro".to_owned() };
    let sources = Sources { flags: vec![flag], ..Sources::default() };
    check_sources(
        "dataDir: /a",
        &[("MAESTRO_DATADIR", "/b")],
        sources,
        &expect![[r#"
            dataDir = /srv/maestro from --data-dir
        "#]],
    );
}

#[test]
fn the_committed_reference_is_current() {
    expect_file!["../../../../docs/configuration.md"].assert_eq(&reference());
}

/// Not of these pages: `docs/configuration.md` is written from the keys, and has v10's beside them; the figures of
/// `docs/benchmarks.md` have names that look alike. `store.id` is a file.
#[test]
fn settings_that_other_pages_name_exist() {
    let sections: HashSet<&str> = keys().filter_map(|key| Some(key.path.split_once('.')?.0)).collect();
    let known: HashSet<&str> = keys().flat_map(Key::spellings).collect();
    let is_key = |span: &&str| {
        let section = span.split_once('.').filter(|(section, _)| sections.contains(section));
        section.is_some()
            && *span != "store.id"
            && span.chars().all(|letter| letter.is_ascii_alphabetic() || letter == '.')
    };
    for entry in std::fs::read_dir(maestro_testkit::repository().join("docs")).unwrap() {
        let page = entry.unwrap().path();
        if page.ends_with("configuration.md") || page.ends_with("benchmarks.md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        let mut named = text.split('`').skip(1).step_by(2).filter(is_key);
        let unknown = named.find(|key| !known.contains(key));
        assert_eq!(unknown, None, "{}", page.display());
    }
}

#[test]
fn regions_are_a_map_of_names() {
    check(
        "regions:\n  us-east:\n    runtime: process\n    HOST: 10.0.0.5\n  RegionOne:\n  eu.west: {logLimitBytes: 8192}\n",
        &[
            ("MAESTRO_REGIONS_US_EAST_HOST", "10.0.0.7"),
            ("MAESTRO_REGIONS_EU_WEST_ROOMSAPIURL", "http://10.0.0.1:8070"),
            ("MAESTRO_REGIONS_APAC_HOST", "10.0.0.9"),
        ],
        &expect![[r#"
            warning: MAESTRO_REGIONS_APAC_HOST has no effect: the file names no such region or key
            regions.eu.west.logLimitBytes = 8192 from maestro.yaml line 6
            regions.eu.west.roomsApiUrl = http://10.0.0.1:8070 from MAESTRO_REGIONS_EU_WEST_ROOMSAPIURL
            regions.us-east.runtime = process from maestro.yaml line 3
            regions.us-east.host = 10.0.0.7 from MAESTRO_REGIONS_US_EAST_HOST
        "#]],
    );
}

#[test]
fn regions_that_cannot_be() {
    check(
        "regions:\n  köln: {}\n  -a: {}\n  us-east:\n    hosst: a\n    colour: red\n    host: [a]\n    logLimitBytes: 5\n  \
         b: 7\n  eu: {runtime: kubernetes}\n",
        &[("MAESTRO_REGIONS_US_EAST_HOST", "a b")],
        &expect![[r#"
            the configuration is not valid:
              regions.köln (maestro.yaml line 2): "köln" is not a name of a region: use 1 to 63 letters, digits, -, _ and ., with a letter or digit at both ends
              regions.-a (maestro.yaml line 3): "-a" is not a name of a region: use 1 to 63 letters, digits, -, _ and ., with a letter or digit at both ends
              regions.us-east.hosst (maestro.yaml line 5): unknown key; did you mean regions.us-east.host?
              regions.us-east.colour (maestro.yaml line 6): unknown key; a region has runtime, directory, host, logLimitBytes, roomsMax, stopRoomsOnShutdown, roomsApiUrl
              regions.us-east.host (maestro.yaml line 7): must be one value (host), not a list or a section
              regions.b (maestro.yaml line 9): is a section: its settings go below it, indented
              regions.eu.runtime: kubernetes (maestro.yaml line 10): must be process
              regions.us-east.host: a b (MAESTRO_REGIONS_US_EAST_HOST): must be an IP address or a host name, without scheme and port
              regions.us-east.logLimitBytes: 5 (maestro.yaml line 8): must be a whole number of bytes from 4096 to 1099511627776
        "#]],
    );
    check(
        "regions:\n  us-east: {}\n  US_EAST: {}\n  a: {directory: /srv/rooms}\n  b: {directory: /srv/rooms}\n",
        &[],
        &expect![[r#"
            the configuration is not valid:
              regions.b.directory: /srv/rooms is also the directory of region a; each region needs its own
              regions.us-east: is too similar to US_EAST: names must differ by more than case, `-`, `_` and `.`
        "#]],
    );
    check(
        "regions: [us-east]\n",
        &[],
        &expect![[r#"
        the configuration is not valid:
          regions (maestro.yaml line 1): is a map of names, such as `regions: {us-east: {host: 10.0.0.5}, eu-west: {}}`
    "#]],
    );
    check(
        "region: {us-east: {}}\n",
        &[],
        &expect![[r#"
        the configuration is not valid:
          region (maestro.yaml line 1): unknown key; did you mean regions?
    "#]],
    );
}

#[test]
fn regions_and_where_their_files_are() {
    let none = load(&Sources::default()).unwrap().config;
    let names = |config: &Config| config.regions.keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&none), ["default"]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("maestro.yaml");
    std::fs::write(&path, "dataDir: /d\nregions: {default: {}, eu: {}, us: {directory: /srv/us}}").unwrap();
    let named = load(&Sources { file: Some(path), ..Sources::default() }).unwrap().config;
    for (config, expected) in [(&none, &["./data"][..]), (&named, &["/d", "/d/regions/eu", "/srv/us"])] {
        let directory = |(name, region): (_, &RegionConfig)| region.directory(name, &config.storage.data_dir);
        let directories: Vec<_> = config.regions.iter().map(directory).collect();
        assert_eq!(directories, expected.iter().map(Path::new).collect::<Vec<_>>());
    }
}
