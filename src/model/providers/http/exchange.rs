//! One attempt: a request is sent and its answer read, under every limit of time and size.

use std::error::Error;

use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url};

use crate::model::error::{LONGEST_SERVER_MESSAGE, ModelError};
use crate::model::provider::Live;
use crate::model::providers::http::config::ServerConfig;
use crate::model::providers::http::patience::Patience;
use crate::model::providers::openai::chunk::{Chunk, Refusal, read, read_error};
use crate::model::providers::retry::retry_after;
use crate::model::providers::sse::SseDecoder;
use crate::value::mask::MASK;

/// The most bytes that are read of one answer, whatever they hold: text, reasoning, comments or one endless line.
pub const MAX_REPLY_BYTES: usize = 4 * 1024 * 1024;

/// The most bytes that are read of an answer that is an error; its message stands at the beginning.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// The data of the event that ends a stream.
const DONE: &[u8] = b"[DONE]";

/// A server, ready to be asked.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) endpoint: Url,
    pub(crate) host: String,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) config: ServerConfig,
}

/// What one attempt brought.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) model: Option<String>,
    pub(crate) tokens_in: Option<u64>,
    pub(crate) tokens_out: Option<u64>,
}

/// Why an attempt brought nothing.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) error: ModelError,
    /// Whether the server complains that it was asked for token counts.
    pub(crate) refuses_usage: bool,
}

impl From<ModelError> for Failed {
    fn from(error: ModelError) -> Self {
        Self { error, refuses_usage: false }
    }
}

impl Server {
    /// Sends `body` and gives what the model answers, each piece also to `live`.
    pub(crate) async fn attempt(&self, body: Vec<u8>, live: &mut dyn Live) -> Result<Answer, Failed> {
        let patience = Patience::new(&self.config, &self.host);
        let mut request = self
            .client
            .post(self.endpoint.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(body);
        if let Some(authorization) = &self.authorization {
            request = request.header(reqwest::header::AUTHORIZATION, authorization.clone());
        }
        let response = patience.wait(request.send()).await?.map_err(|error| self.unreachable(error))?;
        let incoming = Incoming { response, patience, read: 0 };
        if !incoming.response.status().is_success() {
            return Err(self.refused(incoming).await);
        }
        Ok(self.answered(incoming, live).await?)
    }

    /// Reads an answer as what it is: a stream, or one JSON body from a server that ignores `stream`.
    async fn answered(&self, mut incoming: Incoming<'_>, live: &mut dyn Live) -> Result<Answer, ModelError> {
        let kind = header(incoming.response.headers(), &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        if kind.contains("html") {
            return Err(self.protocol("it sent a web page; check `base_url`"));
        }
        let first = incoming.next(self).await?;
        let looks_like_json = || first.as_deref().is_some_and(|bytes| bytes.trim_ascii_start().starts_with(b"{"));
        if kind.contains("json") || (!kind.contains("event-stream") && looks_like_json()) {
            self.whole(incoming, first, live).await
        } else {
            self.stream(incoming, first, live).await
        }
    }

    async fn whole(
        &self,
        mut incoming: Incoming<'_>,
        first: Option<Vec<u8>>,
        live: &mut dyn Live,
    ) -> Result<Answer, ModelError> {
        let mut body = first.unwrap_or_default();
        incoming.patience.begun();
        while let Some(bytes) = incoming.next(self).await? {
            body.extend_from_slice(&bytes);
        }
        let Some(chunk) = read(&body) else {
            return Err(self.protocol("its answer is no JSON object; check `base_url`"));
        };
        if !chunk.choice && chunk.error.is_none() {
            return Err(self.protocol("its answer has no `choices`; check `base_url`"));
        }
        let mut draft = Draft::default();
        draft.add(chunk, live).map_err(|refusal| self.reported(&refusal))?;
        Ok(draft.answer)
    }

    async fn stream(
        &self,
        mut incoming: Incoming<'_>,
        first: Option<Vec<u8>>,
        live: &mut dyn Live,
    ) -> Result<Answer, ModelError> {
        let mut decoder = SseDecoder::default();
        let mut draft = Draft::default();
        let mut next = Ok(first);
        loop {
            match next {
                Ok(Some(bytes)) => decoder.feed(&bytes),
                Ok(None) => break,
                // The reply is whole; only the figures that come after it are missing.
                Err(_) if draft.finished => return Ok(draft.answer),
                Err(error) => return Err(error),
            }
            while let Some(data) = decoder.next_data() {
                if data == DONE {
                    return Ok(draft.answer);
                }
                let chunk = read(&data).ok_or_else(|| self.protocol("an event of its stream is no JSON object"))?;
                if chunk.working {
                    incoming.patience.begun();
                }
                draft.add(chunk, live).map_err(|refusal| self.reported(&refusal))?;
                if draft.finished {
                    incoming.patience.finished();
                }
            }
            next = incoming.next(self).await;
        }
        // The stream has ended without its end mark; what it was about to say may still be whole.
        match decoder.finish() {
            Some(data) if data == DONE => draft.finished = true,
            Some(data) => {
                if let Some(chunk) = read(&data) {
                    draft.add(chunk, live).map_err(|refusal| self.reported(&refusal))?;
                }
            }
            None => {}
        }
        if draft.finished {
            Ok(draft.answer)
        } else if incoming.read > 0 && !draft.begun {
            Err(self.protocol("its answer holds no events; check `base_url`"))
        } else {
            Err(ModelError::CutOff { host: self.host.clone(), attempts: 1 })
        }
    }

    /// The error of an answer with an error status.
    async fn refused(&self, mut incoming: Incoming<'_>) -> Failed {
        let status = incoming.response.status().as_u16();
        let headers = incoming.response.headers();
        let retry_after = header(headers, &RETRY_AFTER).and_then(|wait| retry_after(wait, header(headers, &DATE)));
        let mut body = Vec::new();
        // A body that does not arrive leaves the status, which says most of it.
        while let Ok(Some(bytes)) = incoming.next(self).await {
            body.extend_from_slice(&bytes);
            if body.len() >= MAX_ERROR_BYTES {
                break;
            }
        }
        let mentions = |word: &str| memchr::memmem::find(&body, word.as_bytes()).is_some();
        let refuses_usage = matches!(status, 400 | 422) && (mentions("stream_options") || mentions("include_usage"));
        let message = self.shorten(&read_error(&body).message);
        let error = ModelError::Http { host: self.host.clone(), status, message, retry_after, attempts: 1 };
        Failed { error, refuses_usage }
    }

    /// The error of an answer that began well and reports an error inside.
    fn reported(&self, refusal: &Refusal) -> ModelError {
        let host = self.host.clone();
        let message = self.shorten(&refusal.message);
        match refusal.status {
            Some(status) => ModelError::Http { host, status, message, retry_after: None, attempts: 1 },
            None => ModelError::Protocol { host, message: format!("it reports an error: {message}"), attempts: 1 },
        }
    }

    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        let error = error.without_url();
        let mut cause: &dyn Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        ModelError::Unreachable { host: self.host.clone(), reason: cause.to_string(), attempts: 1 }
    }

    fn protocol(&self, message: &str) -> ModelError {
        ModelError::Protocol { host: self.host.clone(), message: message.to_owned(), attempts: 1 }
    }

    /// A server's message on one line, without the key (servers repeat it), cut to [`LONGEST_SERVER_MESSAGE`].
    fn shorten(&self, message: &str) -> String {
        let masked = match self.config.key() {
            Some(key) => message.replace(key, MASK),
            None => message.to_owned(),
        };
        let line = masked.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(LONGEST_SERVER_MESSAGE) {
            Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
            None => line,
        }
    }
}

/// An answer that is being read.
struct Incoming<'a> {
    response: Response,
    patience: Patience<'a>,
    read: usize,
}

impl Incoming<'_> {
    /// The next bytes; `None` at the end.
    async fn next(&mut self, server: &Server) -> Result<Option<Vec<u8>>, ModelError> {
        let host = || server.host.clone();
        match self.patience.wait(self.response.chunk()).await? {
            Ok(Some(bytes)) => {
                self.read = self.read.saturating_add(bytes.len());
                if self.read > MAX_REPLY_BYTES {
                    return Err(ModelError::TooLarge { host: host(), limit: MAX_REPLY_BYTES, attempts: 1 });
                }
                Ok(Some(bytes.into()))
            }
            Ok(None) => Ok(None),
            Err(_) => Err(ModelError::CutOff { host: host(), attempts: 1 }),
        }
    }
}

/// A reply that is being put together.
#[derive(Default)]
struct Draft {
    answer: Answer,
    begun: bool,
    finished: bool,
}

impl Draft {
    fn add(&mut self, chunk: Chunk, live: &mut dyn Live) -> Result<(), Refusal> {
        if let Some(refusal) = chunk.error {
            return Err(refusal);
        }
        self.begun = true;
        self.finished |= chunk.finished;
        if !chunk.text.is_empty() {
            live.text(&chunk.text);
            self.answer.text.push_str(&chunk.text);
        }
        let answer = &mut self.answer;
        answer.model = answer.model.take().or(chunk.model);
        // The last figures win: some servers count along.
        answer.tokens_in = chunk.tokens_in.or(answer.tokens_in);
        answer.tokens_out = chunk.tokens_out.or(answer.tokens_out);
        Ok(())
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
