//! A browser is not the user: a web page that somebody has open must not reach this server.
//!
//! A page can send requests to loopback, and with a name of its own that resolves to this machine (DNS rebinding) it can
//! read the answers too. So a request must call this server by a name that is known to be its own, and must not come
//! from a page of another origin. Browsers say where a request comes from in `Origin` and `Sec-Fetch-Site`, which pages
//! cannot set; other clients send neither.
//!
//! On the way of every ping: nothing here allocates unless it refuses.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, Method, Request, Version, header};

use crate::error::{ApiError, Code};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The names by which clients may call this server, besides `localhost` and IP addresses.
#[derive(Debug, Clone, Default)]
pub struct AllowedHosts(Arc<[String]>);

impl AllowedHosts {
    /// Names without ports; case does not matter.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<String> = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        names.sort();
        names.dedup();
        Self(names.into())
    }

    fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal<'a> {
    NoHost,
    SeveralHosts,
    UnknownHost(&'a [u8]),
    ForeignOrigin(&'a [u8]),
    ForeignSite(&'a [u8]),
}

/// Refuses a request that is not for this server, or that a web page of another origin sends.
pub(crate) fn check<B>(request: &Request<B>, allowed: &AllowedHosts) -> Result<(), ApiError> {
    judge(request, allowed).map_err(ApiError::from)
}

fn judge<'a, B>(request: &'a Request<B>, allowed: &AllowedHosts) -> Result<(), Refusal<'a>> {
    let header = |name: HeaderName| request.headers().get(name).map(HeaderValue::as_bytes);
    let host = host(request)?;
    if let Some(host) = host
        && !is_own(host, allowed)
    {
        return Err(Refusal::UnknownHost(host));
    }
    // Whoever follows a link sees the answer, the page with the link does not; and no GET changes anything.
    if *request.method() == Method::GET && header(SEC_FETCH_MODE) == Some(b"navigate") {
        return Ok(());
    }
    if let Some(origin) = header(header::ORIGIN)
        && !is_same_origin(origin, host)
    {
        return Err(Refusal::ForeignOrigin(origin));
    }
    match header(SEC_FETCH_SITE) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(site) => Err(Refusal::ForeignSite(site)),
    }
}

/// The server that the request is for, with its port. `None`: the request is of a version of HTTP without `Host`.
fn host<B>(request: &Request<B>) -> Result<Option<&[u8]>, Refusal<'_>> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().map(HeaderValue::as_bytes);
    if hosts.next().is_some() {
        return Err(Refusal::SeveralHosts);
    }
    // As proxies are asked, and in HTTP/2: there the URI counts, and not the header.
    match request.uri().authority() {
        Some(authority) => Ok(Some(authority.as_str().as_bytes())),
        None if host.is_none() && request.version() > Version::HTTP_10 => Err(Refusal::NoHost),
        None => Ok(host),
    }
}

fn is_own(host: &[u8], allowed: &AllowedHosts) -> bool {
    let Some(name) = std::str::from_utf8(host).ok().and_then(without_port) else {
        return false;
    };
    // Pings call this server by address: that is looked at first.
    if name.parse::<Ipv4Addr>().is_ok() {
        return true;
    }
    let in_brackets = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    match in_brackets {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        // The dot at the end of a name only says that it is complete.
        None => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name.eq_ignore_ascii_case("localhost") || allowed.contains(name)
        }
    }
}

/// The name, or the address (of IPv6 with its brackets), in `name:port`. `None`: it is not of that form.
fn without_port(host: &str) -> Option<&str> {
    let end_of_name = match host.find(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    let (name, port) = host.split_at(end_of_name);
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// Whether the page is one of this server's. Whoever serves it may add TLS, so the scheme only says which port is meant
/// where none is written.
fn is_same_origin(origin: &[u8], host: Option<&[u8]>) -> bool {
    let schemes: [(&[u8], &[u8]); 2] = [(b"http://", b":80"), (b"https://", b":443")];
    let Some(host) = host else {
        return false;
    };
    schemes.into_iter().any(|(scheme, default_port)| {
        let without_default = |authority: &'_ [u8]| -> usize {
            authority.strip_suffix(default_port).map_or(authority.len(), <[u8]>::len)
        };
        origin.strip_prefix(scheme).is_some_and(|origin| {
            let (origin, host) = (&origin[..without_default(origin)], &host[..without_default(host)]);
            origin.eq_ignore_ascii_case(host)
        })
    })
}

impl From<Refusal<'_>> for ApiError {
    fn from(refusal: Refusal<'_>) -> Self {
        let forbidden = |message: String| Self::new(Code::PermissionDenied, message);
        match refusal {
            Refusal::NoHost => Self::invalid("header Host: is missing"),
            Refusal::SeveralHosts => Self::invalid("header Host: appears more than once"),
            Refusal::UnknownHost(host) => forbidden(format!(
                "header Host: {} is not a name of this server; if it is, add it to api.allowedHosts",
                shown(host)
            )),
            Refusal::ForeignOrigin(origin) => forbidden(format!(
                "header Origin: {} is not this server, and web pages of other origins may not use it; \
                 a proxy in front of it must pass on the Host header, and that name must be in api.allowedHosts",
                shown(origin)
            )),
            Refusal::ForeignSite(site) => forbidden(format!(
                "header Sec-Fetch-Site: {} means a web page of another origin, and those may not use this server; \
                 api.allowedHosts does not change that",
                shown(site)
            )),
        }
    }
}

/// The value, as far as it fits into a message.
fn shown(value: &[u8]) -> String {
    const LENGTH_MAX: usize = 128;
    let text = String::from_utf8_lossy(value);
    let cut: String = text.chars().take(LENGTH_MAX).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{dots}")
}

#[cfg(test)]
mod tests {
    use axum::http::{Request, StatusCode};
    use axum::response::IntoResponse;

    use super::*;

    const HOST: &str = "Host: 127.0.0.1:8080";

    fn request(first_line: &str, headers: &[&str]) -> Request<()> {
        let mut words = first_line.split(' ');
        let mut request = Request::builder().method(words.next().unwrap()).uri(words.next().unwrap());
        if words.next() == Some("HTTP/1.0") {
            request = request.version(Version::HTTP_10);
        }
        for header in headers {
            let (name, value) = header.split_once(": ").unwrap();
            request = request.header(name, value);
        }
        request.body(()).unwrap()
    }

    fn check(first_line: &str, headers: &[&str], expected: Result<(), Refusal<'_>>) {
        let allowed = AllowedHosts::new(["Maestro.example.com".to_owned(), "build-7".to_owned()]);
        let request = request(first_line, headers);
        assert_eq!(judge(&request, &allowed), expected, "{first_line} {headers:?}");
    }

    #[test]
    fn names_of_this_server() {
        for host in [
            "localhost",
            "LocalHost:8080",
            "localhost.",
            "127.0.0.1",
            "127.0.0.1:8080",
            "10.1.2.3:80",
            "[::1]",
            "[::1]:8080",
            "maestro.example.com",
            "MAESTRO.example.com:443",
            "build-7:8080",
        ] {
            check("POST /schedulers", &[&format!("Host: {host}")], Ok(()));
            check(&format!("POST http://{host}/schedulers"), &["Host: evil.example"], Ok(()));
        }
    }

    #[test]
    fn names_of_others() {
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "evil-localhost",
            "127.0.0.1.evil.example",
            "127.0.0.1:8080@evil.example",
            "127.0.0.1:",
            "localhost:80x",
            "[::1].evil.example",
            "[evil.example]",
            "::1",
            "0x7f.1",
            "",
        ] {
            // No port at all is allowed to be written as one.
            let expected = match host {
                "127.0.0.1:" => Ok(()),
                _ => Err(Refusal::UnknownHost(host.as_bytes())),
            };
            check("GET /schedulers", &[&format!("Host: {host}")], expected);
            check("GET /schedulers", &[&format!("Host: {host}"), "Sec-Fetch-Mode: navigate"], expected);
        }
        let evil = Err(Refusal::UnknownHost(b"evil.example"));
        check("GET http://evil.example/schedulers", &[HOST], evil);
    }

    #[test]
    fn requests_without_a_host() {
        check("GET /schedulers HTTP/1.0", &[], Ok(()));
        check(
            "GET /schedulers HTTP/1.0",
            &["Host: evil.example"],
            Err(Refusal::UnknownHost(b"evil.example")),
        );
        check(
            "POST /x HTTP/1.0",
            &["Origin: http://localhost"],
            Err(Refusal::ForeignOrigin(b"http://localhost")),
        );
        check("GET /schedulers", &[], Err(Refusal::NoHost));
        check("GET /schedulers", &["Host: localhost", "Host: localhost"], Err(Refusal::SeveralHosts));
    }

    #[test]
    fn pages_of_this_server() {
        for (host, origin) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("localhost:8080", "http://LOCALHOST:8080"),
            ("localhost", "http://localhost"),
            ("localhost:80", "http://localhost"),
            ("maestro.example.com", "https://maestro.example.com"),
            ("maestro.example.com:443", "https://maestro.example.com"),
        ] {
            let headers =
                [&*format!("Host: {host}"), &format!("Origin: {origin}"), "Sec-Fetch-Site: same-origin"];
            check("POST /schedulers", &headers, Ok(()));
            check("POST /schedulers", &headers[..2], Ok(()));
        }
        check("GET /schedulers", &[HOST, "Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"], Ok(()));
        check("GET /schedulers", &[HOST, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: cors"], Ok(()));
    }

    #[test]
    fn pages_of_others() {
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://127.0.0.1",
            "http://127.0.0.1:8081",
            "http://localhost:8080",
            "https://127.0.0.1",
            "ftp://127.0.0.1:8080",
            "127.0.0.1:8080",
            "http://127.0.0.1:8080.evil.example",
        ] {
            let expected = Err(Refusal::ForeignOrigin(origin.as_bytes()));
            for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
                check(&format!("{method} /x"), &[HOST, &format!("Origin: {origin}")], expected);
            }
        }
        for site in ["cross-site", "same-site", "", "Same-Origin"] {
            let expected = Err(Refusal::ForeignSite(site.as_bytes()));
            let site = format!("Sec-Fetch-Site: {site}");
            check("GET /schedulers", &[HOST, &site, "Sec-Fetch-Mode: no-cors"], expected);
            check("POST /schedulers", &[HOST, &site, "Sec-Fetch-Mode: navigate"], expected);
            check("GET /schedulers", &[HOST, &site], expected);
            // Somebody follows a link.
            check("GET /schedulers", &[HOST, &site, "Sec-Fetch-Mode: navigate"], Ok(()));
        }
    }

    #[test]
    fn a_refusal_names_header_value_and_setting() {
        for (refusal, status, words) in [
            (Refusal::UnknownHost(b"evil"), 403, ["header Host: \"evil\"", "api.allowedHosts"]),
            (Refusal::ForeignOrigin(b"null"), 403, ["header Origin: \"null\"", "api.allowedHosts"]),
            (
                Refusal::ForeignSite(b"cross-site"),
                403,
                ["header Sec-Fetch-Site: \"cross-site\"", "api.allowedHosts"],
            ),
            (Refusal::NoHost, 400, ["header Host", "missing"]),
            (Refusal::SeveralHosts, 400, ["header Host", "more than once"]),
        ] {
            let error = ApiError::from(refusal);
            for word in words {
                assert!(error.message().contains(word), "{}", error.message());
            }
            assert_eq!(error.into_response().status(), StatusCode::from_u16(status).unwrap());
        }
    }
}
