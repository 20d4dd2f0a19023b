//! An answer while it arrives, under every limit of time and size.

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use crate::effects::behavior_server::fault::{Fault, Waited};
use crate::effects::behavior_server::pieces::Pieces;
use crate::effects::behavior_server::settings::Settings;
use crate::effects::behaviors::{Arriving, Piece, ServerError};

/// The most bytes of one answer.
pub const MOST_BYTES: usize = 16 * 1024 * 1024;

/// How long an answer is waited for, counted from its request.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    start: Instant,
    first_byte: Duration,
    idle: Duration,
    total: Duration,
    begun: bool,
}

impl Patience {
    /// Begins to count.
    pub fn new(settings: &Settings) -> Self {
        Self {
            start: Instant::now(),
            first_byte: settings.first_byte_timeout,
            idle: settings.idle_timeout,
            total: settings.timeout,
            begun: false,
        }
    }

    /// What `future` gives, unless a limit passes first.
    ///
    /// # Errors
    /// [`Fault::Timeout`], which says which limit that was.
    pub async fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, Fault> {
        let total = (self.start + self.total, Waited::Total, self.total);
        let now = if self.begun {
            (Instant::now() + self.idle, Waited::Idle, self.idle)
        } else {
            (self.start + self.first_byte, Waited::FirstByte, self.first_byte)
        };
        let (deadline, waited, after) = if now.0 <= total.0 { now } else { total };
        timeout_at(deadline, future).await.map_err(|_| Fault::Timeout(waited, after))
    }
}

/// The bytes of an answer.
pub struct Body {
    response: Response,
    patience: Patience,
    read: usize,
}

impl Body {
    /// The body of `response`, of which nothing was read; `patience` counts since its request.
    pub const fn new(response: Response, patience: Patience) -> Self {
        Self { response, patience, read: 0 }
    }

    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// When the connection breaks, a limit of time passes, or too much has come.
    pub async fn next(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, Fault> {
        let bytes = self.patience.wait(self.response.chunk()).await?.map_err(|_| Fault::CutOff)?;
        self.patience.begun = true;
        self.read += bytes.as_ref().map_or(0, |bytes| bytes.len());
        if self.read > MOST_BYTES { Err(Fault::Flood(MOST_BYTES)) } else { Ok(bytes) }
    }
}

/// An answer that is taken apart while it arrives.
pub struct Answer {
    name: String,
    /// None once it has ended, well or not.
    body: Option<Body>,
    pieces: Pieces,
    /// What ends it when all pieces before are taken.
    fault: Option<Fault>,
}

impl Answer {
    /// Begins with the first bytes of an answer; without any, it has ended.
    pub fn new(name: &str, body: Body, first: Option<&[u8]>) -> Self {
        let mut answer = Self { name: name.to_owned(), body: Some(body), pieces: Pieces::default(), fault: None };
        answer.take(first);
        answer
    }

    /// Takes the next bytes, or the end.
    fn take(&mut self, bytes: Option<&[u8]>) {
        let taken = match bytes {
            Some(bytes) => self.pieces.feed(bytes),
            None => self.pieces.end(),
        };
        self.fault = taken.err();
        if bytes.is_some() && self.fault.is_none() && self.pieces.is_done() {
            self.fault = self.pieces.end().err();
            self.body = None;
        }
        if bytes.is_none() || self.fault.is_some() {
            // Whatever the server goes on to send, nobody reads it.
            self.body = None;
        }
    }
}

#[async_trait]
impl Arriving for Answer {
    async fn next(&mut self) -> Result<Option<Piece>, ServerError> {
        loop {
            if let Some(piece) = self.pieces.take() {
                return Ok(Some(piece));
            }
            if let Some(fault) = self.fault.take() {
                return Err(fault.told(&self.name));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            match body.next().await {
                Ok(bytes) => self.take(bytes.as_ref().map(AsRef::as_ref)),
                Err(fault) => {
                    self.body = None;
                    self.fault = Some(fault);
                }
            }
        }
    }
}
