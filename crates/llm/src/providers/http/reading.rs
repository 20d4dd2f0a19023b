//! An answer is read as its bytes arrive, under every limit of time and size, from a socket or from a test.

#[cfg(test)]
mod tests;

use std::future::Future;

use serde::de::IgnoredAny;

use crate::model::error::ModelError;
use crate::model::provider::Live;
use crate::providers::http::chunk::Refusal;
use crate::providers::http::dialect::Dialect;
use crate::providers::http::draft::{Answer, Draft};
use crate::providers::http::patience::Patience;
use crate::providers::sse::SseDecoder;

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
    async fn next(&mut self) -> Result<Option<impl AsRef<[u8]> + Send>, Broken> {
        self.chunk().await.map_err(|_| Broken)
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

/// What an answer turns out to be.
enum Incoming {
    /// Nothing but white space has come.
    Unknown,
    /// One JSON body.
    Whole(Vec<u8>),
    /// A stream of events.
    Stream(SseDecoder),
}

/// An answer that is being read.
pub(crate) struct Reading<'a, S> {
    source: S,
    ended: bool,
    intake: Intake<'a>,
}

/// What is made of the bytes, under the limits.
struct Intake<'a> {
    patience: Patience<'a>,
    host: &'a str,
    read: usize,
}

impl<'a, S: Source> Reading<'a, S> {
    /// Begins to read an answer of `host`; `patience` counts since its request was sent.
    pub(crate) fn new(source: S, patience: Patience<'a>, host: &'a str) -> Self {
        Self { source, ended: false, intake: Intake { patience, host, read: 0 } }
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
        // What it is shows in its first byte. Its type is too often a wrong one to decide more than how an end is judged.
        let says_stream = content_type.to_ascii_lowercase().contains("event-stream");
        let mut incoming = Incoming::Unknown;
        let mut draft = Draft::new(tool);
        loop {
            match next(&mut self.source, &self.intake.patience, self.intake.host).await {
                Ok(Some(bytes)) => match self.intake.piece::<D>(bytes.as_ref(), &mut incoming, &mut draft, live) {
                    Ok(false) => {}
                    Ok(true) => return Ok(draft.answer),
                    // The reply is whole; whatever is wrong comes after it.
                    Err(_) if draft.finished => return Ok(draft.answer),
                    Err(fault) => return Err(fault),
                },
                Ok(None) => break,
                Err(_) if draft.finished => return Ok(draft.answer),
                Err(error) => return Err(error.into()),
            }
        }
        self.ended = true;
        match incoming {
            Incoming::Whole(body) => self.intake.whole::<D>(&body, draft, live),
            Incoming::Stream(decoder) => self.intake.end::<D>(decoder, draft, says_stream, live),
            Incoming::Unknown => Err(self.intake.cut_off()),
        }
    }
}

impl Intake<'_> {
    /// Takes the next bytes; whether the stream says that nothing follows.
    fn piece<D: Dialect>(
        &mut self,
        bytes: &[u8],
        incoming: &mut Incoming,
        draft: &mut Draft,
        live: &mut dyn Live,
    ) -> Result<bool, Fault> {
        self.read = self.read.saturating_add(bytes.len());
        if self.read > MAX_REPLY_BYTES {
            let host = self.host.to_owned();
            return Err(ModelError::TooLarge { host, limit: MAX_REPLY_BYTES, attempts: 1 }.into());
        }
        if matches!(incoming, Incoming::Unknown) {
            *incoming = match bytes.trim_ascii_start().first() {
                Some(b'{') => Incoming::Whole(Vec::new()),
                Some(b'<') => return Err(self.protocol("it sent a web page; check `base_url`").into()),
                Some(_) => Incoming::Stream(SseDecoder::default()),
                // White space may lead to either, and is no part of it.
                None => return Ok(false),
            };
        }
        let decoder = match incoming {
            Incoming::Stream(decoder) => decoder,
            Incoming::Whole(body) => {
                self.patience.begun();
                body.extend_from_slice(bytes);
                return Ok(false);
            }
            Incoming::Unknown => return Ok(false),
        };
        decoder.feed(bytes);
        while let Some(data) = decoder.next_data() {
            let chunk = D::read(&data).ok_or_else(|| self.garbled(draft))?;
            let done = chunk.done;
            if chunk.working {
                self.patience.begun();
            }
            draft.add(chunk, live).map_err(Fault::Reported)?;
            if draft.finished {
                self.patience.finished();
            }
            if done {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The stream has ended without its end mark; what it was about to say may still be whole.
    fn end<D: Dialect>(
        &self,
        decoder: SseDecoder,
        mut draft: Draft,
        says_stream: bool,
        live: &mut dyn Live,
    ) -> Result<Answer, Fault> {
        if let Some(chunk) = decoder.finish().as_deref().and_then(D::read) {
            draft.finished |= chunk.done;
            draft.add(chunk, live).map_err(Fault::Reported)?;
        }
        if draft.finished {
            Ok(draft.answer)
        } else if draft.begun || says_stream {
            Err(self.cut_off())
        } else {
            Err(self.protocol("its answer holds no events; check `base_url`").into())
        }
    }

    fn whole<D: Dialect>(&self, body: &[u8], mut draft: Draft, live: &mut dyn Live) -> Result<Answer, Fault> {
        let Some(chunk) = D::read(body) else {
            return Err(match serde_json::from_slice::<IgnoredAny>(body) {
                Err(error) if error.is_eof() => self.cut_off(),
                _ if body.trim_ascii_start().starts_with(b"{\"") => self.garbled_reply().into(),
                _ => self.protocol("its answer is no JSON object; check `base_url`").into(),
            });
        };
        if !chunk.known {
            return Err(self.protocol("its answer holds no reply; check `base_url`").into());
        }
        draft.add(chunk, live).map_err(Fault::Reported)?;
        Ok(draft.answer)
    }

    /// What came is nothing that the protocol has: a fault of the way where a reply had begun, another server where not.
    fn garbled(&self, draft: &Draft) -> Fault {
        if draft.begun {
            self.garbled_reply().into()
        } else {
            self.protocol("what it sent is no stream of JSON objects; check `base_url`").into()
        }
    }

    fn garbled_reply(&self) -> ModelError {
        ModelError::Garbled { host: self.host.to_owned(), attempts: 1 }
    }

    fn cut_off(&self) -> Fault {
        ModelError::CutOff { host: self.host.to_owned(), attempts: 1 }.into()
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
