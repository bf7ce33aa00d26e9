//! The id by which a client, its proxies and our log speak of the same request.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

const NAME: HeaderName = HeaderName::from_static("x-request-id");

/// As long as a trace id with its prefix; longer ones are someone else's data in our log.
const LENGTH_MAX: usize = 128;

/// Letters, digits and a few signs: it can be written into any log and header as it is.
pub(super) struct RequestId(HeaderValue);

impl RequestId {
    /// The client's own if it is fit to be repeated, otherwise a new one.
    pub(super) fn of(headers: &HeaderMap, new: &dyn Fn() -> u64) -> Self {
        match headers.get(NAME) {
            Some(value) if is_fit(value.as_bytes()) => Self(value.clone()),
            Some(_) | None => Self::from_number(new()),
        }
    }

    fn from_number(number: u64) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |place: usize| DIGITS[(number >> (60 - 4 * place) & 0xf) as usize];
        let text: [u8; 16] = std::array::from_fn(digit);
        let value = HeaderValue::from_bytes(&text);
        Self(value.unwrap_or(HeaderValue::from_static("none")))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }

    pub(super) fn put_into(self, headers: &mut HeaderMap) {
        headers.insert(NAME, self.0);
    }
}

fn is_fit(id: &[u8]) -> bool {
    let fit = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte);
    (1..=LENGTH_MAX).contains(&id.len()) && id.iter().all(fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sent: Option<&str>, used: &str) {
        let mut headers = HeaderMap::new();
        if let Some(sent) = sent {
            headers.insert(NAME, sent.parse().unwrap());
        }
        assert_eq!(RequestId::of(&headers, &|| 0x0bad_cafe).as_str(), used);
    }

    #[test]
    fn a_sane_id_is_kept_and_anything_else_replaced() {
        let made = "000000000badcafe";
        check(None, made);
        check(Some("3f2a-77:b/c_1.+="), "3f2a-77:b/c_1.+=");
        check(Some(""), made);
        check(Some("two words"), made);
        check(Some("quote\"d"), made);
        check(Some(&"x".repeat(128)), &"x".repeat(128));
        check(Some(&"x".repeat(129)), made);
    }
}
