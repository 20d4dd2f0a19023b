//! An answer of a behavior server while it arrives.

use async_trait::async_trait;

use crate::effects::behavior_server::error::BehaviorServerError;
use crate::effects::behavior_server::pieces::AnswerPieces;
use crate::effects::behaviors::{BehaviorPiece, ResponseStream, ServerError};
use bcc_llm::http::body::ResponseBody;

/// An answer that is taken apart while it arrives.
pub struct ServerAnswer {
    name: String,
    /// None once it has ended, well or not.
    body: Option<ResponseBody>,
    pieces: AnswerPieces,
    /// What ends it when all pieces before are taken.
    fault: Option<BehaviorServerError>,
}

impl ServerAnswer {
    /// Begins with the first bytes of an answer; without any, it has ended.
    pub fn new(name: &str, body: ResponseBody, first: Option<&[u8]>) -> Self {
        let mut answer = Self { name: name.to_owned(), body: Some(body), pieces: AnswerPieces::default(), fault: None };
        answer.take(first);
        answer
    }

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
impl ResponseStream for ServerAnswer {
    async fn next(&mut self) -> Result<Option<BehaviorPiece>, ServerError> {
        loop {
            if let Some(piece) = self.pieces.take() {
                return Ok(Some(piece));
            }
            if let Some(fault) = self.fault.take() {
                return Err(fault.told(&self.name));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            match body.next().await {
                Ok(bytes) => self.take(bytes.as_deref()),
                Err(broken) => {
                    self.body = None;
                    self.fault = Some(broken.into());
                }
            }
        }
    }
}
