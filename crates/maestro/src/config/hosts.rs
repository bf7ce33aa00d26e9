//! The names by which this server may be called, as far as the configuration knows them.

use super::keys::Config;

impl Config {
    /// `api.allowedHosts`, and what the other settings already name: where the APIs listen, and what rooms are told.
    pub fn own_hosts(&self) -> impl Iterator<Item = String> {
        let listeners = [&self.management_api.host, &self.rooms_api.host, &self.internal_api.host];
        let of_regions = self.regions.values().filter_map(|region| region.rooms_api_url.as_ref());
        let urls = of_regions.chain(&self.process_runtime.rooms_api_url);
        let of_urls = urls.map(|url| host_of(url));
        let written = listeners.into_iter().chain(&self.api.allowed_hosts).map(String::as_str);
        written.chain(of_urls).map(str::to_owned)
    }
}

/// The host of a URL that was checked. IPv6 addresses come out in pieces, which does not matter: all addresses are allowed.
fn host_of(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    host_and_port.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_in_urls() {
        for (url, host) in [
            ("http://rooms.example", "rooms.example"),
            ("http://rooms.example:8070/v10?x", "rooms.example"),
            ("http://me@rooms.example/", "rooms.example"),
            ("http://10.0.0.5:8070", "10.0.0.5"),
        ] {
            assert_eq!(host_of(url), host);
        }
    }
}
