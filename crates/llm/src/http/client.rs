//! Builds the HTTP client for a server. It follows no redirects, so that requests go only to the configured address, and does
//! not use the proxy of the environment for a server on the local machine.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Client, Proxy, Url};

use crate::http::address::is_local;
use crate::http::host_lookup::HostLookup;

/// Builds a client for the server at `endpoint`. `proxy` is an address or `none`; by default the proxy of the environment is
/// used. `connect_timeout` is an optional limit for connecting.
///
/// # Errors
/// When the proxy is invalid or the client cannot be built. The message omits the proxy's address, which may contain a password.
pub fn client(endpoint: &Url, proxy: Option<&str>, connect_timeout: Option<Duration>) -> Result<Client, Message> {
    // An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .redirect(Policy::none())
        .dns_resolver(Arc::new(HostLookup))
        .user_agent(concat!("bcc-script/", env!("CARGO_PKG_VERSION")));
    if let Some(timeout) = connect_timeout {
        client = client.connect_timeout(timeout);
    }
    match proxy.map(str::trim) {
        Some("none") => client = client.no_proxy(),
        Some(address) => client = client.proxy(proxy_at(address)?),
        None if is_local(endpoint) => client = client.no_proxy(),
        None => {}
    }
    client.build().map_err(|error| msg!("cannot set up the HTTP client ({})", error.without_url()))
}

fn proxy_at(address: &str) -> Result<Proxy, Message> {
    const WRITE: &str = "write a URL such as http://proxy.example:3128, or \"none\"";
    let url = Url::parse(address)
        .map_err(|error| msg!("`proxy` is not a valid URL ({error}); {WRITE}", WRITE = Message::word(WRITE)))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(msg!("`proxy` must start with http:// or https://; {WRITE}", WRITE = Message::word(WRITE)));
    }
    Proxy::all(url).map_err(|_| msg!("`proxy` is not a valid URL; {WRITE}", WRITE = Message::word(WRITE)))
}

/// A header value marked sensitive; `None` if the secret contains characters that are not allowed in a header.
pub fn secret(value: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(value).ok()?;
    header.set_sensitive(true);
    Some(header)
}
