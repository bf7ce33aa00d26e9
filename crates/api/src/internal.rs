//! The internal API: is this process alive, is it ready, and its metrics.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::error;

/// How long the readiness probe may take: whoever asks (a kubelet, a balancer) does not wait for ever.
const READINESS_TIMEOUT: Duration = Duration::from_secs(2);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// `is_ready` is asked at every `/readyz`.
pub fn internal_router<R, F>(registry: Arc<Registry>, is_ready: R) -> Router
where
    R: Fn() -> F + Clone + Send + Sync + 'static,
    F: Future<Output = bool> + Send + 'static,
{
    let readyz = move || async move {
        let ready = tokio::time::timeout(READINESS_TIMEOUT, is_ready()).await;
        match ready {
            Ok(true) => "OK".into_response(),
            Ok(false) | Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable").into_response(),
        }
    };
    Router::new()
        .route("/health", get(alive))
        .route("/healthz", get(alive))
        .route("/readyz", get(readyz))
        .route("/metrics", get(move || async move { metrics(&registry) }))
        .method_not_allowed_fallback(error::method_not_allowed)
        .fallback(error::not_found)
}

async fn alive() -> &'static str {
    "OK"
}

fn metrics(registry: &Registry) -> Response {
    let mut text = String::new();
    match encode(&mut text, registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot write the metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    async fn check(ready: bool, path: &str, status: u16, content_type: &str, body: &str) {
        let router = internal_router(Arc::default(), move || async move { ready });
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers()[header::CONTENT_TYPE], content_type, "{path}");
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(bytes, body, "{path}");
    }

    #[tokio::test]
    async fn what_probes_and_scrapers_see() {
        let text = "text/plain; charset=utf-8";
        check(false, "/health", 200, text, "OK").await;
        check(false, "/healthz", 200, text, "OK").await;
        check(true, "/readyz", 200, text, "OK").await;
        check(false, "/readyz", 503, text, "Service Unavailable").await;
        check(true, "/metrics", 200, OPENMETRICS, "# EOF\n").await;
        let missing = r#"{"code":5,"message":"Not Found","details":[]}"#;
        check(true, "/nothing", 404, "application/json", missing).await;
    }
}
