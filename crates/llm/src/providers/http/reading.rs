//! Reads a response incrementally, with limits of time and size, from a socket or a test.

#[cfg(test)]
mod tests;

use std::mem;

use serde::de::IgnoredAny;

use crate::http::body::{BodyError, ByteSource, ResponseBody};
use crate::http::lines::BYTE_ORDER_MARK;
use crate::http::sse::SseDecoder;
use crate::http::timeouts::Timeouts;
use crate::model::error::ModelError;
use crate::model::provider::LiveObserver;
use crate::providers::http::chunk::{Chunk, ServerRejection};
use crate::providers::http::dialect::Dialect;
use crate::providers::http::draft::{Draft, HttpAnswer};
use crate::providers::http::halves::with_stand_ins;

/// The maximum number of bytes that are read of a response, including reasoning and comments.
pub(crate) const MAX_REPLY_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug)]
pub(crate) enum ReadError {
    Model(ModelError),
    /// An error that the server reported, with the original message.
    Reported(ServerRejection),
}

impl From<ModelError> for ReadError {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

enum Incoming {
    /// Only white space so far, or this part of a byte order mark.
    Unknown(Vec<u8>),
    Json(Vec<u8>),
    Stream(SseDecoder),
}

pub(crate) fn as_model_error(error: BodyError, host: &str) -> ModelError {
    let (host, attempts) = (host.to_owned(), 1);
    match error {
        BodyError::CutOff => ModelError::CutOff { host, attempts },
        BodyError::Timeout(phase, after) => ModelError::Timeout { host, phase, after, attempts },
        BodyError::TooLarge(limit) => ModelError::TooLarge { host, limit, attempts },
        BodyError::Invalid(_) => ModelError::Garbled { host, attempts },
    }
}

pub(crate) struct ResponseReader<'a> {
    body: ResponseBody,
    is_read: bool,
    parser: ResponseParser<'a>,
}

struct ResponseParser<'a> {
    dialect: &'a Dialect,
    host: &'a str,
}

impl<'a> ResponseReader<'a> {
    pub(crate) fn new(body: ResponseBody, dialect: &'a Dialect, host: &'a str) -> Self {
        Self { body, is_read: false, parser: ResponseParser { dialect, host } }
    }

    /// The source of the bytes, unless it was read to its end.
    pub(crate) fn into_unread_source(self) -> Option<Box<dyn ByteSource>> {
        (!self.is_read).then_some(self.body.source)
    }

    /// Reads a response, which is a stream, or one JSON body from a server that ignores `stream`. The text is also passed to `live`.
    /// `tool` means that the reply was requested as a tool call.
    pub(crate) async fn answer(
        &mut self,
        content_type: &str,
        tool: bool,
        live: &mut dyn LiveObserver,
    ) -> Result<HttpAnswer, ReadError> {
        // The first byte determines the format. The content type is often wrong, so it is used only to classify an early end.
        let declares_stream = content_type.to_ascii_lowercase().contains("event-stream");
        let mut incoming = Incoming::Unknown(Vec::new());
        let mut draft = Draft::new(tool);
        loop {
            let result = match self.body.next().await {
                Ok(Some(bytes)) => {
                    self.parser.process(&bytes, &mut self.body.timeouts, &mut incoming, &mut draft, live)
                }
                Ok(None) => break,
                Err(error) => Err(as_model_error(error, self.parser.host).into()),
            };
            match result {
                Ok(false) => {}
                Ok(true) => return Ok(draft.answer),
                // The reply is complete, so errors after it are ignored.
                Err(_) if draft.finished => return Ok(draft.answer),
                Err(error) => return Err(error),
            }
        }
        self.is_read = true;
        match incoming {
            Incoming::Json(body) => self.parser.finish_json(&body, draft, live),
            Incoming::Stream(decoder) => self.parser.finish_stream(decoder, draft, declares_stream, live),
            Incoming::Unknown(_) => Err(self.parser.cut_off()),
        }
    }
}

impl ResponseParser<'_> {
    /// The format of a response that starts with these bytes.
    fn format_of(&self, start: &[u8]) -> Result<Incoming, ReadError> {
        Ok(match start.trim_ascii_start().first() {
            Some(b'{') => Incoming::Json(Vec::new()),
            Some(b'<') => return Err(self.protocol("it sent a web page; check `base_url`").into()),
            Some(_) => Incoming::Stream(SseDecoder::default()),
            // Leading white space is skipped; the format is not known yet.
            None => Incoming::Unknown(Vec::new()),
        })
    }

    /// Processes the next bytes; returns whether the stream has ended.
    fn process(
        &self,
        bytes: &[u8],
        timeouts: &mut Timeouts,
        incoming: &mut Incoming,
        draft: &mut Draft,
        live: &mut dyn LiveObserver,
    ) -> Result<bool, ReadError> {
        let first;
        let mut bytes = bytes;
        if let Incoming::Unknown(start) = incoming {
            start.extend_from_slice(bytes);
            if BYTE_ORDER_MARK.starts_with(start) {
                return Ok(false);
            }
            first = mem::take(start);
            bytes = first.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&first);
            *incoming = self.format_of(bytes)?;
        }
        let decoder = match incoming {
            Incoming::Stream(decoder) => decoder,
            Incoming::Json(body) => {
                timeouts.mark_started();
                body.extend_from_slice(bytes);
                return Ok(false);
            }
            Incoming::Unknown(_) => return Ok(false),
        };
        decoder.feed(bytes);
        while let Some(data) = decoder.next_data() {
            let chunk = self.read(&data, draft).ok_or_else(|| self.invalid_data(draft))?;
            let done = chunk.done;
            if chunk.is_working {
                timeouts.mark_started();
            }
            draft.add(chunk, live).map_err(ReadError::Reported)?;
            if draft.finished {
                timeouts.mark_finished();
            }
            if done {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Handles the end of a stream without an end marker; the reply may still be complete.
    fn finish_stream(
        &self,
        decoder: SseDecoder,
        mut draft: Draft,
        declares_stream: bool,
        live: &mut dyn LiveObserver,
    ) -> Result<HttpAnswer, ReadError> {
        if let Some(chunk) = decoder.finish().and_then(|data| self.read(&data, &mut draft)) {
            draft.finished |= chunk.done;
            draft.add(chunk, live).map_err(ReadError::Reported)?;
        }
        if draft.finished {
            Ok(draft.answer)
        } else if draft.started || declares_stream {
            Err(self.cut_off())
        } else {
            Err(self.protocol("its response contains no events; check `base_url`").into())
        }
    }

    fn finish_json(&self, body: &[u8], mut draft: Draft, live: &mut dyn LiveObserver) -> Result<HttpAnswer, ReadError> {
        let Some(chunk) = self.read(body, &mut draft) else {
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
        draft.end_text(live);
        Ok(draft.answer)
    }

    /// Reads the data of an event, or a complete response.
    fn read(&self, data: &[u8], draft: &mut Draft) -> Option<Chunk> {
        (self.dialect.read)(data).or_else(|| {
            let chunk = (self.dialect.read)(&with_stand_ins(data)?)?;
            draft.expect_halves();
            Some(chunk)
        })
    }

    /// The error for invalid data: a transmission error if a reply has started, otherwise a server with another protocol.
    fn invalid_data(&self, draft: &Draft) -> ReadError {
        if draft.started {
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
