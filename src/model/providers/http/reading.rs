//! An answer is read as its bytes arrive, under every limit of time and size, from a socket or from a test.

use std::future::Future;

use crate::model::error::ModelError;
use crate::model::provider::Live;
use crate::model::providers::http::chunk::Refusal;
use crate::model::providers::http::dialect::Dialect;
use crate::model::providers::http::draft::{Answer, Draft};
use crate::model::providers::http::patience::Patience;
use crate::model::providers::sse::SseDecoder;

/// The most bytes that are read of one answer, whatever they hold: text, reasoning, comments or one endless line.
pub const MAX_REPLY_BYTES: usize = 4 * 1024 * 1024;

/// Where the bytes of an answer come from.
pub(crate) trait Source: Send {
    /// The next bytes; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<impl AsRef<[u8]> + Send>, Broken>> + Send;
}

/// The connection broke before the end.
#[derive(Debug)]
pub(crate) struct Broken;

impl Source for reqwest::Response {
    fn next(&mut self) -> impl Future<Output = Result<Option<impl AsRef<[u8]> + Send>, Broken>> + Send {
        async { self.chunk().await.map_err(|_| Broken) }
    }
}

/// Why an answer could not be read.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The answer itself is at fault.
    Model(ModelError),
    /// It reports an error, whose message is as the server wrote it.
    Reported(Refusal),
}

impl From<ModelError> for Fault {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

/// An answer that is being read.
pub(crate) struct Reading<'a, S> {
    source: S,
    patience: Patience<'a>,
    host: &'a str,
    read: usize,
    ended: bool,
}

impl<'a, S: Source> Reading<'a, S> {
    /// Begins to read an answer of `host`; `patience` counts since its request was sent.
    pub(crate) fn new(source: S, patience: Patience<'a>, host: &'a str) -> Self {
        Self { source, patience, host, read: 0, ended: false }
    }

    /// Where the bytes come from, unless it was read to its end.
    pub(crate) fn rest(self) -> Option<S> {
        (!self.ended).then_some(self.source)
    }

    /// Reads an answer as what it is: a stream, or one JSON body from a server that ignores `stream`. Its text is also
    /// given to `live`. `tool` says that the reply was asked for as a call of a tool.
    pub(crate) async fn answer<D: Dialect>(
        &mut self,
        content_type: &str,
        tool: bool,
        live: &mut dyn Live,
    ) -> Result<Answer, Fault> {
        let kind = content_type.to_ascii_lowercase();
        if kind.contains("html") {
            return Err(self.protocol("it sent a web page; check `base_url`").into());
        }
        let mut decoder = SseDecoder::default();
        let mut whole = Vec::new();
        let mut first = true;
        let mut is_whole = kind.contains("json");
        let mut draft = Draft::new(tool);
        loop {
            let stop = match next(&mut self.source, &self.patience, self.host).await {
                Ok(Some(bytes)) => {
                    let bytes = bytes.as_ref();
                    self.read = self.read.saturating_add(bytes.len());
                    if self.read > MAX_REPLY_BYTES {
                        let host = self.host.to_owned();
                        return Err(ModelError::TooLarge { host, limit: MAX_REPLY_BYTES, attempts: 1 }.into());
                    }
                    if first && !kind.contains("event-stream") {
                        is_whole |= bytes.trim_ascii_start().starts_with(b"{");
                    }
                    first = false;
                    if is_whole {
                        self.patience.begun();
                        whole.extend_from_slice(bytes);
                    } else {
                        decoder.feed(bytes);
                    }
                    None
                }
                Ok(None) => Some(None),
                Err(error) => Some(Some(error)),
            };
            while let Some(data) = decoder.next_data() {
                if self.event::<D>(&data, &mut draft, live)? {
                    return Ok(draft.answer);
                }
            }
            if decoder.is_garbled() {
                return Err(self.garbled(&draft).into());
            }
            match stop {
                None => {}
                Some(None) => {
                    self.ended = true;
                    break;
                }
                // The reply is whole; only the figures that come after it are missing.
                Some(Some(_)) if draft.finished => return Ok(draft.answer),
                Some(Some(error)) => return Err(error.into()),
            }
        }
        if is_whole { self.whole::<D>(&whole, draft, live) } else { self.end::<D>(decoder, draft, live) }
    }

    /// One event of a stream; whether it is the last.
    fn event<D: Dialect>(&mut self, data: &[u8], draft: &mut Draft, live: &mut dyn Live) -> Result<bool, Fault> {
        let chunk = D::read(data).ok_or_else(|| self.garbled(draft))?;
        let done = chunk.done;
        if chunk.working {
            self.patience.begun();
        }
        draft.add(chunk, live).map_err(Fault::Reported)?;
        if draft.finished {
            self.patience.finished();
        }
        Ok(done)
    }

    /// The stream has ended without its end mark; what it was about to say may still be whole.
    fn end<D: Dialect>(&self, decoder: SseDecoder, mut draft: Draft, live: &mut dyn Live) -> Result<Answer, Fault> {
        if let Some(chunk) = decoder.finish().as_deref().and_then(D::read) {
            draft.finished |= chunk.done;
            draft.add(chunk, live).map_err(Fault::Reported)?;
        }
        if draft.finished {
            Ok(draft.answer)
        } else if self.read > 0 && !draft.begun {
            Err(self.protocol("its answer holds no events; check `base_url`").into())
        } else {
            Err(ModelError::CutOff { host: self.host.to_owned(), attempts: 1 }.into())
        }
    }

    fn whole<D: Dialect>(&self, body: &[u8], mut draft: Draft, live: &mut dyn Live) -> Result<Answer, Fault> {
        let Some(chunk) = D::read(body) else {
            return Err(self.protocol("its answer is no JSON object; check `base_url`").into());
        };
        if !chunk.known {
            return Err(self.protocol("its answer holds no reply; check `base_url`").into());
        }
        draft.add(chunk, live).map_err(Fault::Reported)?;
        Ok(draft.answer)
    }

    /// What came is nothing that the protocol has: a fault of the way where a reply had begun, another server where not.
    fn garbled(&self, draft: &Draft) -> ModelError {
        if draft.begun {
            ModelError::Garbled { host: self.host.to_owned(), attempts: 1 }
        } else {
            self.protocol("what it sent is no stream of JSON objects; check `base_url`")
        }
    }

    fn protocol(&self, message: &str) -> ModelError {
        ModelError::Protocol { host: self.host.to_owned(), message: message.to_owned(), attempts: 1 }
    }
}

/// The next bytes, as long as patience lasts.
async fn next<'s, S: Source>(
    source: &'s mut S,
    patience: &Patience<'_>,
    host: &str,
) -> Result<Option<impl AsRef<[u8]> + Send + use<'s, S>>, ModelError> {
    let cut = |Broken| ModelError::CutOff { host: host.to_owned(), attempts: 1 };
    patience.wait(source.next()).await?.map_err(cut)
}
