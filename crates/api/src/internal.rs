//! The internal API: is this process alive, is it ready, and its metrics.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maestro_engine::Readiness;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::error::{self, ApiError};
use crate::origin::{self, AllowedHosts};

/// How long the readiness probe may take: whoever asks (a kubelet, a balancer) does not wait forever.
const READINESS_TIMEOUT: Duration = Duration::from_secs(2);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `readiness` is asked at every `/readyz`.
pub fn internal_router<R, F>(registry: Arc<Registry>, readiness: R, allowed_hosts: AllowedHosts) -> Router
where
    R: Fn() -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Readiness> + Send + 'static,
{
    let for_metrics = readiness.clone();
    let readyz = move || async move { readyz(&ready_in_time(readiness()).await) };
    let metrics = move || async move { metrics(&registry, &ready_in_time(for_metrics()).await) };
    Router::new()
        .route("/health", get(alive))
        .route("/healthz", get(alive))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .method_not_allowed_fallback(error::method_not_allowed)
        .fallback(error::not_found)
        .layer(from_fn_with_state(allowed_hosts, guarded))
}

/// Not ready if that cannot be said in time.
pub(crate) async fn ready_in_time(readiness: impl Future<Output = Readiness>) -> Readiness {
    let answered = tokio::time::timeout(READINESS_TIMEOUT, readiness).await;
    answered.unwrap_or_else(|_| Readiness {
        is_ready: false,
        problems: vec![format!("store: no answer within {READINESS_TIMEOUT:?}")],
    })
}

/// Probes and scrapers call this server by all kinds of names, and what they read is no secret.
async fn guarded(
    State(allowed_hosts): State<AllowedHosts>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        origin::check(&request, &allowed_hosts)?;
    }
    Ok(next.run(request).await)
}

/// The first line is for probes, the others say what is wrong: one problem each.
fn readyz(readiness: &Readiness) -> Response {
    let (status, summary) = match readiness.is_ready {
        true => (StatusCode::OK, "OK"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable"),
    };
    let lines = std::iter::once(summary).chain(readiness.problems.iter().map(String::as_str));
    (status, lines.collect::<Vec<_>>().join("\n")).into_response()
}

async fn alive() -> &'static str {
    "OK"
}

fn metrics(registry: &Registry, readiness: &Readiness) -> Response {
    match metrics_text(registry, readiness) {
        Ok(text) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot write the metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// What a scrape sees: what is in the registry, and how well the process is.
pub fn metrics_text(registry: &Registry, readiness: &Readiness) -> Result<String, fmt::Error> {
    let ready = Gauge::<i64>::default();
    ready.set(readiness.is_ready.into());
    let unhealthy = Family::<Vec<(&'static str, String)>, Gauge>::default();
    for problem in &readiness.problems {
        let component = problem.split_once(": ").map_or(problem.as_str(), |(component, _)| component);
        unhealthy.get_or_create(&vec![("component", component.to_owned())]).set(1);
    }
    let mut health = Registry::default();
    health.register("maestro_ready", "Whether this process can do its work: 1 or 0", ready);
    health.register("maestro_unhealthy", "Components of this process that have a problem", unhealthy);
    let mut text = String::new();
    encode_registry(&mut text, registry)?;
    encode_registry(&mut text, &health)?;
    encode_eof(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    async fn check(readiness: &Readiness, path: &str, status: u16, content_type: &str, body: &str) {
        let readiness = readiness.clone();
        let router = internal_router(
            Arc::default(),
            move || std::future::ready(readiness.clone()),
            AllowedHosts::default(),
        );
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers()[header::CONTENT_TYPE], content_type, "{path}");
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(bytes, body, "{path}");
    }

    fn scraped(ready: u8, component: &str) -> String {
        let mut text = "# HELP maestro_ready Whether this process can do its work: 1 or 0.\n".to_owned();
        text += &format!("# TYPE maestro_ready gauge\nmaestro_ready {ready}\n");
        if !component.is_empty() {
            text += "# HELP maestro_unhealthy Components of this process that have a problem.\n";
            text += "# TYPE maestro_unhealthy gauge\n";
            text += &format!("maestro_unhealthy{{component=\"{component}\"}} 1\n");
        }
        text + "# EOF\n"
    }

    #[tokio::test]
    async fn a_web_page_may_only_get_what_it_cannot_read() {
        for (method, status) in [("GET", 200), ("HEAD", 200), ("POST", 403), ("OPTIONS", 403)] {
            let well = || std::future::ready(Readiness { is_ready: true, problems: Vec::new() });
            let router = internal_router(Arc::default(), well, AllowedHosts::default());
            let request = Request::builder().method(method).uri("/healthz").header("host", "evil.example");
            let request = request.header("origin", "http://evil.example").body(Body::empty()).unwrap();
            let response = router.oneshot(request).await.unwrap();
            assert_eq!(response.status(), status, "{method}");
            assert_eq!(response.headers().get("access-control-allow-origin"), None, "{method}");
        }
    }

    #[tokio::test]
    async fn what_probes_and_scrapers_see() {
        let text = "text/plain; charset=utf-8";
        let well = Readiness { is_ready: true, problems: Vec::new() };
        let degraded = Readiness { is_ready: true, problems: vec!["worker of arena: panicked".into()] };
        let ill = Readiness { is_ready: false, problems: vec!["store: disk is full".into()] };
        check(&ill, "/health", 200, text, "OK").await;
        check(&ill, "/healthz", 200, text, "OK").await;
        check(&well, "/readyz", 200, text, "OK").await;
        check(&degraded, "/readyz", 200, text, "OK\nworker of arena: panicked").await;
        check(&ill, "/readyz", 503, text, "Service Unavailable\nstore: disk is full").await;
        check(&well, "/metrics", 200, OPENMETRICS, &scraped(1, "")).await;
        check(&degraded, "/metrics", 200, OPENMETRICS, &scraped(1, "worker of arena")).await;
        check(&ill, "/metrics", 200, OPENMETRICS, &scraped(0, "store")).await;
        let missing = r#"{"code":5,"message":"Not Found","details":[]}"#;
        check(&well, "/nothing", 404, "application/json", missing).await;
    }
}
