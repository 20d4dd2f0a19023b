//! Sends requests to a collector with the HTTP client and the TLS of the program.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_llm::http::client::plain_client;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::{Client, Url};
use tokio::runtime::{Builder, Runtime};

use crate::cli::traces::destination::TraceDestination;
use crate::cli::traces::failures::ExportFailures;

/// The maximum number of bytes that are read of a response.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// A client for the thread that exports, which it blocks during a request.
pub(super) struct CollectorClient {
    client: Client,
    runtime: Runtime,
    destination: TraceDestination,
    failures: Arc<ExportFailures>,
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectorClient").finish_non_exhaustive()
    }
}

impl CollectorClient {
    /// A client for this collector. Nothing is sent.
    ///
    /// # Errors
    /// When the address is invalid, or the system has no resources for another client.
    pub(super) fn new(destination: TraceDestination, failures: Arc<ExportFailures>) -> Result<Self, Message> {
        let endpoint = Url::parse(&destination.endpoint)
            .map_err(|error| msg!("its address is invalid ({error})", error = library(&error.to_string())))?;
        if !matches!(endpoint.scheme(), "http" | "https") {
            return Err(Message::word("its address must start with http:// or https://"));
        }
        let client = plain_client(&endpoint, None, Some(destination.timeout))?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| msg!("the runtime cannot be started: {error}"))?;
        Ok(Self { client, runtime, destination, failures })
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, reqwest::Error> {
        let (parts, body) = request.into_parts();
        let request = self.client.post(self.destination.endpoint.as_str()).headers(parts.headers).body(body);
        let mut answer = request.timeout(self.destination.timeout).send().await?;
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = answer.status();
        response.headers_mut().extend(answer.headers().clone());
        let mut read = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            read.extend_from_slice(&piece);
            if read.len() > MAX_RESPONSE_BYTES {
                break;
            }
        }
        *response.body_mut() = read.into();
        Ok(response)
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        match self.runtime.block_on(self.send(request)) {
            Ok(response) => {
                if !response.status().is_success() {
                    let status = response.status().as_u16();
                    self.failures.request_failed(msg!("it answers with the status {status}"));
                }
                Ok(response)
            }
            Err(error) => {
                let error = error.without_url();
                self.failures.request_failed(match error.is_timeout() {
                    true => Message::word("it does not answer in time"),
                    false => msg!("it cannot be reached ({error})", error = library(&innermost(&error))),
                });
                Err(error.into())
            }
        }
    }
}

/// The innermost cause, as the operating system or the TLS library reports it.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
