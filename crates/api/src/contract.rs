//! The schema is the contract: every method of it that has an HTTP path is served there, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, Version, header};
use maestro_core::time::Timestamp;
use maestro_engine::ports::event_sink::NoEventSink;
use maestro_engine::ports::{Clock, Ports, Randomness};
use maestro_engine::{Engine, Settings, Tasks, WakeUps};
use maestro_simulation::MemoryStore;
use maestro_store_embedded::MemoryRoomTable;
use prometheus_client::registry::Registry;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};
use tower::ServiceExt;

use crate::{
    AllowedHosts, Context, Limits, Metrics, RoomsOptions, management, management_router, rooms, rooms_router,
};

/// The services of the rooms API; the management API has the others.
const OF_ROOMS: [&str; 1] = ["api.v1.RoomsService"];

/// Those that both have.
const OF_BOTH: [&str; 2] = ["maestro.api.v1.AllocationsService", "maestro.api.v1.Events"];

type Routes = BTreeSet<(String, String)>;

#[tokio::test]
async fn what_the_schema_says_is_what_is_mounted() {
    let mut mounted = mounted(management_router(&context(), &Limits::MANAGEMENT), management::paths()).await;
    mounted.extend(self::mounted(rooms_router(&context(), &RoomsOptions::default()), rooms::paths()).await);
    assert_eq!(mounted, annotated());
}

/// Each API serves its own services, the standard ones, and no others.
#[tokio::test]
async fn what_the_schema_says_is_what_is_called() {
    let management = management_router(&context(), &Limits::MANAGEMENT);
    let rooms = rooms_router(&context(), &RoomsOptions::default());
    let pool = DescriptorPool::decode(maestro_proto::FILE_DESCRIPTOR_SET).unwrap();
    let (mut of_management, mut of_rooms) = (0, 0);
    for service in pool.services() {
        let is_of_rooms = OF_ROOMS.contains(&service.full_name());
        for method in service.methods() {
            let path = format!("/{}/{}", service.full_name(), method.name());
            let is_of_both = OF_BOTH.contains(&service.full_name());
            let expected = (!is_of_rooms, is_of_rooms || is_of_both);
            let served = (is_served(&management, &path).await, is_served(&rooms, &path).await);
            assert_eq!(served, expected, "{path}");
            of_management += u32::from(served.0);
            of_rooms += u32::from(served.1);
        }
    }
    assert!(of_management > 30 && of_rooms >= 3, "{of_management} and {of_rooms}");
    for standard in
        ["/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"]
    {
        assert!(is_served(&management, standard).await && is_served(&rooms, standard).await, "{standard}");
    }
    assert!(!is_served(&management, "/api.v1.SchedulersService/Sing").await);
}

async fn is_served(router: &Router, path: &str) -> bool {
    let request = Request::post(path).version(Version::HTTP_2).header(header::HOST, "localhost");
    let request = request.header(header::CONTENT_TYPE, "application/grpc");
    let empty = Body::from(vec![0; 5]);
    let response = router.clone().oneshot(request.body(empty).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    let unimplemented = tonic::Code::Unimplemented as i32;
    response.headers().get("grpc-status").is_none_or(|status| *status != unimplemented.to_string())
}

/// What a wrong method is told to be the right ones, path by path.
async fn mounted(router: Router, paths: Vec<&str>) -> Routes {
    let mut routes = Routes::new();
    for path in paths {
        let request = Request::builder().method("PROBE").uri(without_names(path).replace("{}", "x"));
        let request = request.header(header::HOST, "localhost");
        let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        let allowed = response.headers()[header::ALLOW].to_str().unwrap().to_owned();
        // HEAD comes with GET.
        let methods = allowed.split(',').filter(|method| *method != "HEAD");
        routes.extend(methods.map(|method| (method.to_owned(), without_names(path))));
    }
    routes
}

fn annotated() -> Routes {
    let pool = DescriptorPool::decode(maestro_proto::FILE_DESCRIPTOR_SET).unwrap();
    let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    methods.flat_map(|method| http_rules(&pool, &method)).collect()
}

/// A method may be served at more than one path.
fn http_rules(pool: &DescriptorPool, method: &MethodDescriptor) -> Vec<(String, String)> {
    let annotation = pool.get_extension_by_name("google.api.http").unwrap();
    let options = method.options();
    let rule = options.get_extension(&annotation);
    let rule = rule.as_message().unwrap();
    let others = rule.get_field_by_name("additional_bindings").unwrap();
    let others = others.as_list().unwrap().iter().map(|other| other.as_message().unwrap());
    [rule].into_iter().chain(others).map(|rule| route(method, rule)).collect()
}

fn route(method: &MethodDescriptor, rule: &DynamicMessage) -> (String, String) {
    let verb = ["get", "put", "post", "delete", "patch"]
        .into_iter()
        .find(|verb| rule.has_field_by_name(verb))
        .unwrap_or_else(|| panic!("{} has no path", method.full_name()));
    let path = rule.get_field_by_name(verb).unwrap();
    (verb.to_uppercase(), without_names(path.as_str().unwrap()))
}

/// `/schedulers/{scheduler_name}` and `/schedulers/{name}` are the same path.
fn without_names(path: &str) -> String {
    let segments = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

fn context() -> Context {
    struct Standing;
    impl Clock for Standing {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }

        fn since_boot(&self) -> Duration {
            Duration::ZERO
        }
    }
    let ports = Ports {
        store: Arc::new(MemoryStore::new(Arc::new(Standing))),
        table: Arc::new(MemoryRoomTable::new()),
        runtimes: Arc::new(BTreeMap::new()),
        events: Arc::new(NoEventSink),
        clock: Arc::new(Standing),
        random: Arc::new(Randomness::from_seed(1)),
        wake: WakeUps::default(),
        regions_elsewhere: Arc::default(),
        wake_up_channel: None,
    };
    Context {
        engine: Engine::new(ports, Settings::default(), "contract".into(), Tasks::default()),
        metrics: Metrics::register(&mut Registry::default()),
        new_request_id: Arc::new(|| 1),
        allowed_hosts: AllowedHosts::default(),
    }
}
