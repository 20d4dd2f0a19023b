//! Reads the body of a response with limits of time and size.

use std::time::Duration;

use async_trait::async_trait;

use crate::http::timeouts::Timeouts;
use crate::model::error::TimeoutPhase;

/// Why the rest of a response cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The connection broke, or the data is incomplete.
    CutOff,
    /// A timeout expired.
    Timeout(TimeoutPhase, Duration),
    /// The response exceeds this number of bytes.
    TooLarge(usize),
    /// The response is invalid, with the reason.
    Invalid(&'static str),
}

#[async_trait]
pub trait ByteSource: Send {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, BodyError>;
}

#[async_trait]
impl ByteSource for reqwest::Response {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        let bytes = self.chunk().await.map_err(|_| BodyError::CutOff)?;
        Ok(bytes.map(|bytes| bytes.to_vec()))
    }
}

pub struct ResponseBody {
    pub(crate) source: Box<dyn ByteSource>,
    /// The timeouts, measured from the request.
    pub timeouts: Timeouts,
    read: usize,
    max_bytes: usize,
}

impl ResponseBody {
    /// An unread body, of which at most `max_bytes` are read.
    pub fn new(source: Box<dyn ByteSource>, timeouts: Timeouts, max_bytes: usize) -> Self {
        Self { source, timeouts, read: 0, max_bytes }
    }

    /// The next bytes; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        let bytes = self.timeouts.wait(self.source.next()).await??;
        self.read = self.read.saturating_add(bytes.as_ref().map_or(0, Vec::len));
        if self.read > self.max_bytes { Err(BodyError::TooLarge(self.max_bytes)) } else { Ok(bytes) }
    }
}
