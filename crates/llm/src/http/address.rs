//! The host of a server address, and whether it is the local machine.

use std::net::IpAddr;

use reqwest::Url;

/// The host, and the port if the address has one. Errors show no other part of an address.
pub(crate) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Whether the address is the local machine, which a proxy cannot reach.
pub fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.ends_with(".localhost") || bare.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_loopback_addresses_are_local() {
        for local in
            ["http://localhost:1", "http://127.0.0.1", "http://127.9.9.9", "http://[::1]:8080", "http://a.localhost"]
        {
            assert!(is_local(&Url::parse(local).unwrap()), "{local}");
        }
        for remote in ["http://localhost.example.com", "http://10.0.0.1", "http://[2001:db8::1]"] {
            assert!(!is_local(&Url::parse(remote).unwrap()), "{remote}");
        }
    }
}
