//! What is different from one kind of API to the next: where it is asked, how a request is written, how an answer reads.

use reqwest::Url;
use reqwest::header::HeaderMap;

use crate::model::error::ModelError;
use crate::model::request::ModelRequest;
use crate::providers::http::asking::{Asking, Form};
use crate::providers::http::chunk::Chunk;
use crate::providers::http::config::ServerConfig;

/// One kind of API. It has no state: what a server was found to refuse is kept beside it.
pub trait Dialect: Send + Sync + 'static {
    /// The name of the provider in `bcc-script.toml` and in events.
    const NAME: &'static str;

    /// The forms of structured output that it has, the strictest first: what `auto` goes down, ending with
    /// [`Form::Off`].
    const LADDER: &'static [Form];

    /// The forms that it has besides those.
    const OTHER_FORMS: &'static [Form];

    /// The fields of a body that the settings may not add, each with what to write instead.
    const OWNED: &'static [(&'static str, &'static str)];

    /// The address that requests go to.
    fn endpoint(config: &ServerConfig) -> Result<Url, ModelError>;

    /// The headers that it needs besides those of every JSON request; the one with the key is marked sensitive.
    fn headers(config: &ServerConfig) -> Result<HeaderMap, ModelError>;

    /// The body as JSON, built field by field. Nothing of the request's `task` is in it.
    ///
    /// # Errors
    /// The serializer's own, which no message can cause.
    fn encode(config: &ServerConfig, request: &ModelRequest, asking: Asking) -> serde_json::Result<Vec<u8>>;

    /// Reads one event of a stream, or a whole answer. `None` when it is no JSON object.
    fn read(data: &[u8]) -> Option<Chunk<'_>>;
}
