//! The client of one server: it follows no redirections, so that what is sent goes nowhere but to the configured address, and reaches
//! a server on this machine without the proxy that the environment may name.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::redirect::Policy;
use reqwest::{Client, Proxy, Url};

use crate::http::address::is_local;

/// A client for the server at `endpoint`. `proxy` is an address, or `none`; without it, it is the one that the environment names.
/// `connect_timeout` limits a connection where it has a limit of its own.
///
/// # Errors
/// What is wrong with the proxy, or why there is no client. The address of a proxy is left out: it may hold a password.
pub fn client(endpoint: &Url, proxy: Option<&str>, connect_timeout: Option<Duration>) -> Result<Client, Message> {
    // An error means that one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client =
        Client::builder().redirect(Policy::none()).user_agent(concat!("bcc-script/", env!("CARGO_PKG_VERSION")));
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

/// The value of a header that holds a secret, marked sensitive; `None` when the secret holds what no header can carry.
pub fn secret(value: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::from_str(value).ok()?;
    header.set_sensitive(true);
    Some(header)
}
