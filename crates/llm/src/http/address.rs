//! What an address says of a server: its host, and whether that is this machine.

use std::net::IpAddr;

use reqwest::Url;

/// Host, and port when the address names one: all that errors say about where a server is.
pub fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Whether the address is this machine, which no proxy can reach.
pub fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.ends_with(".localhost") || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        for local in
            ["http://localhost:1", "http://127.0.0.1", "http://127.9.9.9", "http://[::1]:8080", "http://a.localhost"]
        {
            assert!(is_local(&Url::parse(local).unwrap()), "{local}");
        }
        for far in ["http://localhost.example.com", "http://10.0.0.1", "http://[2001:db8::1]"] {
            assert!(!is_local(&Url::parse(far).unwrap()), "{far}");
        }
    }
}
