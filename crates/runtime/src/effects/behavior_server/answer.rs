//! The stream of an answer of a behavior server.

use async_trait::async_trait;

use crate::effects::behavior_server::error::BehaviorServerError;
use crate::effects::behavior_server::pieces::AnswerPieces;
use crate::effects::behaviors::{BehaviorPiece, ResponseStream, ServerError};
use bcc_llm::http::body::ResponseBody;

/// An answer that is parsed while it is received.
pub(crate) struct ServerAnswer {
    name: String,
    /// `None` once it has ended or failed.
    body: Option<ResponseBody>,
    pieces: AnswerPieces,
    /// The error that ends it, returned after the pieces that were received before.
    error: Option<BehaviorServerError>,
}

impl ServerAnswer {
    /// Starts with the first bytes of an answer; without any, the answer is empty.
    pub(crate) fn new(name: &str, body: ResponseBody, first: Option<&[u8]>) -> Self {
        let mut answer = Self { name: name.to_owned(), body: Some(body), pieces: AnswerPieces::default(), error: None };
        answer.feed(first);
        answer
    }

    fn feed(&mut self, bytes: Option<&[u8]>) {
        let result = match bytes {
            Some(bytes) => self.pieces.feed(bytes),
            None => self.pieces.end(),
        };
        self.error = result.err();
        if bytes.is_some() && self.error.is_none() && self.pieces.is_done() {
            self.error = self.pieces.end().err();
            self.body = None;
        }
        if bytes.is_none() || self.error.is_some() {
            // Further bytes of the server are not read.
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
            if let Some(error) = self.error.take() {
                return Err(error.to_server_error(&self.name));
            }
            let Some(body) = &mut self.body else { return Ok(None) };
            match body.next().await {
                Ok(bytes) => self.feed(bytes.as_deref()),
                Err(body_error) => {
                    self.body = None;
                    self.error = Some(body_error.into());
                }
            }
        }
    }
}
