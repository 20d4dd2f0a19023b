//! What is different from one kind of API to the next: where it is asked, how a request is written, how an answer reads.

use reqwest::header::HeaderMap;

use crate::model::error::ModelError;
use crate::model::request::ModelRequest;
use crate::providers::http::chunk::Chunk;
use crate::providers::http::config::{ServerConfig, Structured};
use crate::providers::http::request_features::RequestFeatures;

/// One kind of API. It has no state: what a server was found to refuse is kept elsewhere.
#[derive(Debug)]
pub struct Dialect {
    /// The name of the provider in `bcc-script.toml` and in events.
    pub name: &'static str,
    /// The forms of structured output that it has, the strictest first: what `auto` goes down, ending with [`Structured::Off`].
    pub ladder: &'static [Structured],
    pub other_forms: &'static [Structured],
    /// The fields of a body that the settings may not add, each with what to write instead.
    pub owned: &'static [(&'static str, &'static str)],
    pub(crate) path: &'static [&'static str],
    pub(crate) example: &'static str,
    /// The headers that it needs besides those of every JSON request; the one with the key is marked sensitive.
    pub(crate) headers: fn(&ServerConfig) -> Result<HeaderMap, ModelError>,
    /// The body as JSON, built field by field. Nothing of the request's `task` is in it.
    pub(crate) encode: fn(&ServerConfig, &ModelRequest, RequestFeatures) -> serde_json::Result<Vec<u8>>,
    /// Reads one event of a stream, or a whole answer. `None` when it is no JSON object.
    pub(crate) read: fn(&[u8]) -> Option<Chunk>,
}

impl Dialect {
    /// The settings with which its servers can be told what a reply must look like.
    pub fn forms(&self) -> impl Iterator<Item = Structured> {
        let known = |form: &Structured| self.ladder.contains(form) || self.other_forms.contains(form);
        Structured::ALL.into_iter().filter(move |form| *form == Structured::Auto || known(form))
    }
}
