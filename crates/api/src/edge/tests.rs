//! What every request gets, shown on routes that do one thing each.

use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Version, header};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tower::ServiceExt;

use super::*;

struct World {
    router: Router,
    registry: Registry,
    /// Requests for which there was no capacity.
    refused: Arc<AtomicU32>,
}

/// One request may be worked on at a time.
fn world() -> World {
    let mut registry = Registry::default();
    let metrics = Metrics::register(&mut registry);
    let refused = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&refused);
    let edge = Arc::new(Edge {
        service: "test-api",
        allowed_hosts: AllowedHosts::default(),
        request_timeout: Duration::from_secs(3),
        permits: Arc::new(Semaphore::new(1)),
        waiting: Arc::new(Semaphore::new(1)),
        streams: Arc::new(Semaphore::new(1)),
        new_request_id: Arc::new(|| 7),
        spans: Spans::Always,
        metrics,
        on_refused: Arc::new(move || _ = counter.fetch_add(1, Ordering::Relaxed)),
    });
    let hangs = axum::routing::post(std::future::pending::<()>);
    let methods = vec![grpc::Route { path: "/test.Test/Hang", kind: Kind::Unary, methods: hangs }];
    let routes = vec![
        ("/works", get(async || "it works")),
        ("/hangs", get(std::future::pending::<()>)),
        ("/panics", get(panics)),
        (PATIENT_ROUTES[0], get(std::future::pending::<()>)),
    ];
    let router = edge.router(routes, methods, ());
    World { router, registry, refused }
}

async fn panics() {
    panic!("out of {}", "cheese");
}

impl World {
    async fn ask(&self, request: Request) -> (StatusCode, HeaderMap, String) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        (parts.status, parts.headers, String::from_utf8(bytes.into()).unwrap())
    }

    async fn get(&self, path: &str) -> (StatusCode, HeaderMap, String) {
        self.ask(of(path)).await
    }

    fn metrics(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        text
    }
}

async fn check(request: Request, status: u16, body: &str) {
    let (actual, headers, text) = world().ask(request).await;
    assert_eq!((actual.as_u16(), text.as_str()), (status, body));
    assert_eq!(headers["x-request-id"], "0000000000000007");
    if status != 200 {
        assert_eq!(headers[header::CONTENT_TYPE], "application/json");
    }
}

fn of(path: &str) -> Request {
    Request::get(path).header(header::HOST, "localhost").body(Body::empty()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_end_is_an_answer_in_json() {
    check(of("/works"), 200, "it works").await;
    let lost = r#"{"code":5,"message":"Not Found","details":[]}"#;
    check(of("/nowhere"), 404, lost).await;
    let panicked = r#"{"code":13,"message":"internal error; see the log of the server","details":[]}"#;
    check(of("/panics"), 500, panicked).await;
    let late =
        r#"{"code":4,"message":"no answer within 3s; the request may still be carried out","details":[]}"#;
    check(of("/hangs"), 504, late).await;

    let long_path = format!("/works?{}", "x".repeat(URL_MAX_BYTES));
    let too_long = r#"{"code":3,"message":"url: longer than 8192 bytes","details":[]}"#;
    check(of(&long_path), 414, too_long).await;
    let mut request = of("/works");
    let long_value = "x".repeat(HEADERS_MAX_BYTES).parse().unwrap();
    request.headers_mut().insert("x-story", long_value);
    let too_long = r#"{"code":3,"message":"headers: more than 64, or longer than 16384 bytes","details":[]}"#;
    check(request, 431, too_long).await;
    let mut request = of("/works");
    for number in 0..=HEADERS_MAX {
        request.headers_mut().append("x-story", number.into());
    }
    check(request, 431, too_long).await;
}

/// The time that comes first, of the server's and the caller's.
#[tokio::test(start_paused = true)]
async fn calls_end_in_time_and_as_grpc_has_it() {
    for (asked, seconds) in [(None, 3), (Some("1S"), 1), (Some("9S"), 3)] {
        let mut request =
            Request::post("/test.Test/Hang").version(Version::HTTP_2).header(header::HOST, "localhost");
        request = request.header(header::CONTENT_TYPE, "application/grpc");
        if let Some(asked) = asked {
            request = request.header("grpc-timeout", asked);
        }
        let started_at = Instant::now();
        let (status, headers, body) = world().ask(request.body(Body::empty()).unwrap()).await;
        assert_eq!(started_at.elapsed(), Duration::from_secs(seconds));
        assert_eq!((status, body.as_str()), (StatusCode::OK, ""));
        assert_eq!(
            (&headers["grpc-status"], &headers["x-request-id"]),
            (&"4".parse().unwrap(), &"0000000000000007".parse().unwrap())
        );
        let message = headers["grpc-message"].to_str().unwrap().replace("%20", " ");
        assert_eq!(message, format!("no answer within {seconds}s; the request may still be carried out"));
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let request = Request::delete("/works").header(header::HOST, "localhost").body(Body::empty()).unwrap();
    let (status, headers, body) = world().ask(request).await;
    assert_eq!(status, 405);
    assert_eq!(headers[header::ALLOW], "GET,HEAD");
    assert_eq!(body, r#"{"code":12,"message":"Method Not Allowed","details":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn one_too_many_is_refused_at_once_and_the_place_is_given_back() {
    let world = world();
    let hanging = world.get("/hangs");
    let refused = async {
        let (status, headers, body) = world.get("/works").await;
        assert_eq!(status, 503, "{body}");
        assert_eq!(headers[header::RETRY_AFTER], "1");
        assert!(body.starts_with(r#"{"code":14,"#), "{body}");
    };
    futures_util::future::join(hanging, refused).await;
    assert_eq!(world.refused.load(Ordering::Relaxed), 1);
    assert_eq!(world.get("/works").await.0, 200);
    assert_eq!(world.get("/panics").await.0, 500);
    assert_eq!(world.get("/works").await.0, 200);
}

/// Whoever waits for a room takes nothing from those who ping.
#[tokio::test(start_paused = true)]
async fn requests_that_wait_have_a_capacity_of_their_own() {
    let world = world();
    let waiting = world.get("/schedulers/arena/allocations");
    let others = async {
        assert_eq!(world.get("/works").await.0, 200);
        assert_eq!(world.get("/schedulers/arena/allocations").await.0, 503);
        assert_eq!(world.refused.load(Ordering::Relaxed), 0, "no ping was refused");
        assert_eq!(world.get("/works").await.0, 200);
    };
    futures_util::future::join(waiting, others).await;
}

#[tokio::test]
async fn a_web_page_is_refused_and_told_why() {
    for (header, value) in [("host", "evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")] {
        for path in ["/works", "/nowhere"] {
            let mut request = of(path);
            request.headers_mut().insert(header, value.parse().unwrap());
            let (status, headers, body) = world().ask(request).await;
            assert_eq!(status, 403, "{header}: {value} on {path}: {body}");
            assert!(body.starts_with(r#"{"code":7,"message":"header "#) && body.contains(value), "{body}");
            let readable = headers.keys().any(|name| name.as_str().starts_with("access-control-"));
            assert!(!readable, "{headers:?}");
        }
    }
}

#[tokio::test]
async fn a_clients_own_request_id_comes_back() {
    let mut request = of("/works");
    request.headers_mut().insert("x-request-id", "trace-1".parse().unwrap());
    assert_eq!(world().ask(request).await.1["x-request-id"], "trace-1");
}

#[tokio::test]
async fn paths_that_lead_nowhere_share_one_label() {
    let world = world();
    for path in ["/a", "/b/c", "/works/"] {
        world.get(path).await;
    }
    let line = r#"http_request_duration_seconds_count{service="test-api",handler="unmatched",method="GET",code="404"} 3"#;
    let metrics = world.metrics();
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains(r#"http_requests_inflight{service="test-api",handler="unmatched"} 0"#));
}
