//! An answer is read as its bytes arrive, under every limit of time and size, from a socket or from a test.

#[cfg(test)]
mod tests;

use serde::de::IgnoredAny;

use crate::http::body::{BodyError, ByteSource, ResponseBody};
use crate::http::sse::SseDecoder;
use crate::http::timeouts::Timeouts;
use crate::model::error::ModelError;
use crate::model::provider::LiveObserver;
use crate::providers::http::chunk::ServerRejection;
use crate::providers::http::dialect::Dialect;
use crate::providers::http::draft::{Draft, HttpAnswer};

/// The most bytes that are read of one answer, whatever they hold: text, reasoning, comments or one endless line.
pub const MAX_REPLY_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug)]
pub(crate) enum ReadError {
    Model(ModelError),
    /// It reports an error, whose message is as the server wrote it.
    Reported(ServerRejection),
}

impl From<ModelError> for ReadError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

enum Incoming {
    /// Nothing but white space has come.
    Unknown,
    Whole(Vec<u8>),
    Stream(SseDecoder),
}

pub(crate) fn as_model_error(broken: BodyError, host: &str) -> ModelError {
    let (host, attempts) = (host.to_owned(), 1);
    match broken {
        BodyError::CutOff => ModelError::CutOff { host, attempts },
        BodyError::Late(what, after) => ModelError::Timeout { host, what, after, attempts },
        BodyError::Flood(limit) => ModelError::TooLarge { host, limit, attempts },
        BodyError::Rubbish(_) => ModelError::Garbled { host, attempts },
    }
}

pub(crate) struct Reading<'a> {
    body: ResponseBody,
    ended: bool,
    intake: Intake<'a>,
}

struct Intake<'a> {
    dialect: &'a Dialect,
    host: &'a str,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(body: ResponseBody, dialect: &'a Dialect, host: &'a str) -> Self {
        Self { body, ended: false, intake: Intake { dialect, host } }
    }

    /// Where the bytes come from, unless it was read to its end.
    pub(crate) fn rest(self) -> Option<Box<dyn ByteSource>> {
        (!self.ended).then_some(self.body.source)
    }

    /// Reads an answer as what it is: a stream, or one JSON body from a server that ignores `stream`. Its text is also
    /// given to `live`. `tool` says that the reply was asked for as a call of a tool.
    pub(crate) async fn answer(
        &mut self,
        content_type: &str,
        tool: bool,
        live: &mut dyn LiveObserver,
    ) -> Result<HttpAnswer, ReadError> {
        // What it is shows in its first byte. Its type is too often a wrong one to decide more than how an end is judged.
        let says_stream = content_type.to_ascii_lowercase().contains("event-stream");
        let mut incoming = Incoming::Unknown;
        let mut draft = Draft::new(tool);
        loop {
            let taken = match self.body.next().await {
                Ok(Some(bytes)) => self.intake.piece(&bytes, &mut self.body.patience, &mut incoming, &mut draft, live),
                Ok(None) => break,
                Err(broken) => Err(as_model_error(broken, self.intake.host).into()),
            };
            match taken {
                Ok(false) => {}
                Ok(true) => return Ok(draft.answer),
                // The reply is whole; whatever is wrong comes after it.
                Err(_) if draft.finished => return Ok(draft.answer),
                Err(fault) => return Err(fault),
            }
        }
        self.ended = true;
        match incoming {
            Incoming::Whole(body) => self.intake.whole(&body, draft, live),
            Incoming::Stream(decoder) => self.intake.end(decoder, draft, says_stream, live),
            Incoming::Unknown => Err(self.intake.cut_off()),
        }
    }
}

impl Intake<'_> {
    /// Takes the next bytes; whether the stream says that nothing follows.
    fn piece(
        &self,
        bytes: &[u8],
        patience: &mut Timeouts,
        incoming: &mut Incoming,
        draft: &mut Draft,
        live: &mut dyn LiveObserver,
    ) -> Result<bool, ReadError> {
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
                patience.begun();
                body.extend_from_slice(bytes);
                return Ok(false);
            }
            Incoming::Unknown => return Ok(false),
        };
        decoder.feed(bytes);
        while let Some(data) = decoder.next_data() {
            let chunk = (self.dialect.read)(&data).ok_or_else(|| self.garbled(draft))?;
            let done = chunk.done;
            if chunk.working {
                patience.begun();
            }
            draft.add(chunk, live).map_err(ReadError::Reported)?;
            if draft.finished {
                patience.finished();
            }
            if done {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The stream has ended without its end mark; what it was about to say may still be whole.
    fn end(
        &self,
        decoder: SseDecoder,
        mut draft: Draft,
        says_stream: bool,
        live: &mut dyn LiveObserver,
    ) -> Result<HttpAnswer, ReadError> {
        if let Some(chunk) = decoder.finish().as_deref().and_then(self.dialect.read) {
            draft.finished |= chunk.done;
            draft.add(chunk, live).map_err(ReadError::Reported)?;
        }
        if draft.finished {
            Ok(draft.answer)
        } else if draft.begun || says_stream {
            Err(self.cut_off())
        } else {
            Err(self.protocol("its response contains no events; check `base_url`").into())
        }
    }

    fn whole(&self, body: &[u8], mut draft: Draft, live: &mut dyn LiveObserver) -> Result<HttpAnswer, ReadError> {
        let Some(chunk) = (self.dialect.read)(body) else {
            return Err(match serde_json::from_slice::<IgnoredAny>(body) {
                Err(error) if error.is_eof() => self.cut_off(),
                _ if body.trim_ascii_start().starts_with(b"{\"") => self.garbled_reply().into(),
                _ => self.protocol("its response is not a JSON object; check `base_url`").into(),
            });
        };
        if !chunk.known {
            return Err(self.protocol("its response contains no reply; check `base_url`").into());
        }
        draft.add(chunk, live).map_err(ReadError::Reported)?;
        Ok(draft.answer)
    }

    /// What came is nothing that the protocol has: a fault of the way where a reply had begun, another server where not.
    fn garbled(&self, draft: &Draft) -> ReadError {
        if draft.begun {
            self.garbled_reply().into()
        } else {
            self.protocol("its response is not a stream of JSON objects; check `base_url`").into()
        }
    }

    fn garbled_reply(&self) -> ModelError {
        ModelError::Garbled { host: self.host.to_owned(), attempts: 1 }
    }

    fn cut_off(&self) -> ReadError {
        ModelError::CutOff { host: self.host.to_owned(), attempts: 1 }.into()
    }

    fn protocol(&self, message: &'static str) -> ModelError {
        ModelError::Protocol { host: self.host.to_owned(), message: message.into(), attempts: 1 }
    }
}
