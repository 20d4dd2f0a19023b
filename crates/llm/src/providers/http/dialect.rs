//! The differences between APIs: address, encoding of requests, and parsing of responses.

use reqwest::header::HeaderMap;

use crate::model::error::ModelError;
use crate::model::request::ModelRequest;
use crate::providers::http::chunk::Chunk;
use crate::providers::http::config::{ServerConfig, Structured};
use crate::providers::http::request_features::RequestFeatures;

/// One kind of API. It is stateless; the features that a server rejected are stored elsewhere.
#[derive(Debug)]
pub struct Dialect {
    /// The name of the provider in `bcc-script.toml` and in events.
    pub name: &'static str,
    /// The forms of structured output that `auto` tries, from the strictest to [`Structured::Off`].
    pub auto_forms: &'static [Structured],
    /// Forms that are supported, but not tried by `auto`.
    pub other_forms: &'static [Structured],
    /// The fields of the body that the settings must not add, each with what to write instead.
    pub reserved_fields: &'static [(&'static str, &'static str)],
    pub(crate) path: &'static [&'static str],
    pub(crate) example: &'static str,
    /// The headers in addition to those of every JSON request; the one with the key is marked sensitive.
    pub(crate) headers: fn(&ServerConfig) -> Result<HeaderMap, ModelError>,
    /// Encodes the body as JSON, field by field. It contains no part of the request's `task`.
    pub(crate) encode: fn(&ServerConfig, &ModelRequest, RequestFeatures) -> serde_json::Result<Vec<u8>>,
    /// Parses one event of a stream or a complete response. `None` if it is not a JSON object.
    pub(crate) read: fn(&[u8]) -> Option<Chunk>,
}

impl Dialect {
    /// The values of `structured` that it supports.
    pub fn forms(&self) -> impl Iterator<Item = Structured> {
        let is_supported = |form: &Structured| self.auto_forms.contains(form) || self.other_forms.contains(form);
        Structured::ALL.into_iter().filter(move |form| *form == Structured::Auto || is_supported(form))
    }
}
