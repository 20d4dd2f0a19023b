//! The bytes of an answer as they arrive, under every limit of time and size, from a socket or from a test.

use std::time::Duration;

use async_trait::async_trait;

use crate::http::timeouts::Timeouts;
use crate::model::error::TimeoutPhase;

/// Why nothing more can be read of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The connection broke, or what it brought ends in the middle.
    CutOff,
    /// A limit of time passed.
    Late(TimeoutPhase, Duration),
    /// More came than is read; how many bytes that is.
    Flood(usize),
    /// What came is no answer; what is wrong with it.
    Rubbish(&'static str),
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
    /// How long it is waited for, since its request.
    pub patience: Timeouts,
    read: usize,
    most: usize,
}

impl ResponseBody {
    /// The body of an answer of which nothing was read, and the most bytes that are read of it.
    pub fn new(source: Box<dyn ByteSource>, patience: Timeouts, most: usize) -> Self {
        Self { source, patience, read: 0, most }
    }

    /// The next bytes; none at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, BodyError> {
        let bytes = self.patience.wait(self.source.next()).await??;
        self.read = self.read.saturating_add(bytes.as_ref().map_or(0, Vec::len));
        if self.read > self.most { Err(BodyError::Flood(self.most)) } else { Ok(bytes) }
    }
}
