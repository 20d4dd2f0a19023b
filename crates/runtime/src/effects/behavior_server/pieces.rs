//! Splits an answer of a server into pieces: each action as soon as it is complete, and finally the response around the actions.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use crate::effects::behavior_server::error::BehaviorServerError;
use crate::effects::behaviors::BehaviorPiece;
use bcc_llm::http::body::BodyError;
use bcc_llm::http::lines::BYTE_ORDER_MARK;
use bcc_llm::http::value_stream::{StreamItem, ValueStream};

#[derive(Debug, Default)]
pub(crate) struct AnswerPieces {
    /// How many bytes of the byte-order mark were skipped.
    mark: usize,
    /// Whether the answer itself has started.
    is_started: bool,
    values: ValueStream,
    response: Option<Map<String, Value>>,
    streamed: bool,
    ready: VecDeque<BehaviorPiece>,
}

impl AnswerPieces {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// Those of [`ValueStream::feed`], and errors that the server reports. The pieces before an error can still be taken.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), BehaviorServerError> {
        let bytes = self.without_mark(bytes)?;
        let result = self.values.feed(bytes);
        self.process_values()?;
        Ok(result?)
    }

    /// The bytes after the byte-order mark, which may arrive in pieces.
    fn without_mark<'b>(&mut self, mut bytes: &'b [u8]) -> Result<&'b [u8], BodyError> {
        while !self.is_started
            && let Some((first, rest)) = bytes.split_first()
        {
            match BYTE_ORDER_MARK.get(self.mark) {
                Some(expected) if expected == first => {
                    self.mark += 1;
                    bytes = rest;
                }
                Some(_) if self.mark > 0 => return Err(BodyError::Invalid("it is not JSON")),
                _ => self.is_started = true,
            }
        }
        Ok(bytes)
    }

    /// Called when there are no more bytes: the remaining pieces become available.
    pub(crate) fn end(&mut self) -> Result<(), BehaviorServerError> {
        let result = self.values.end();
        self.process_values()?;
        result?;
        let is_empty = self.response.is_none() && !self.streamed;
        if is_empty && !self.values.has_list() {
            return Err(BodyError::Invalid("it contains no object").into());
        }
        let response = self
            .response
            .take()
            .or_else(|| is_empty.then(|| [("actions".to_owned(), Value::Array(vec![]))].into_iter().collect()));
        if let Some(mut response) = response {
            if self.streamed {
                // They were already returned one by one and must not be performed again.
                response.remove("actions");
            }
            self.ready.push_back(BehaviorPiece::Response(Value::Object(response)));
        }
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Option<BehaviorPiece> {
        self.ready.pop_front()
    }

    pub(crate) const fn is_done(&self) -> bool {
        self.values.is_done()
    }

    fn process_values(&mut self) -> Result<(), BehaviorServerError> {
        while let Some(item) = self.values.take() {
            match item {
                StreamItem::Item(value) => self.action(value),
                StreamItem::Single(value) if is_action(&value) => self.action(value),
                StreamItem::Single(Value::Object(fields)) => {
                    if fields.get("error").is_some_and(|error| !error.is_null()) && !fields.contains_key("actions") {
                        return Err(BehaviorServerError::Reported);
                    }
                    self.response.get_or_insert_default().extend(fields);
                }
                StreamItem::Single(_) => return Err(BodyError::Invalid("it is neither an object nor a list").into()),
            }
        }
        Ok(())
    }

    fn action(&mut self, value: Value) {
        self.streamed = true;
        self.ready.push_back(BehaviorPiece::Action(value));
    }
}

/// Whether an object is a single action: `{"action": …}`, or one that names its `type`.
fn is_action(value: &Value) -> bool {
    let wrapped = matches!(value.get("action"), Some(Value::String(_) | Value::Object(_)));
    (wrapped || value.get("type").is_some_and(Value::is_string)) && value.get("actions").is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> (Vec<BehaviorPiece>, Result<(), BehaviorServerError>) {
        let mut pieces = AnswerPieces::default();
        let ended = pieces.feed(text.as_bytes()).and_then(|()| pieces.end());
        (std::iter::from_fn(|| pieces.take()).collect(), ended)
    }

    fn pieces_of(text: &str) -> Vec<BehaviorPiece> {
        let (pieces, ended) = read(text);
        ended.unwrap();
        pieces
    }

    #[test]
    fn actions_are_returned_one_by_one_and_the_response_around_them_last() {
        let action = |n: u64| BehaviorPiece::Action(json!({"action": {"type": "add", "n": n}}));
        let stream = "{\"behavior\": {\"id\": \"b\"}}\n{\"action\": {\"type\": \"add\", \"n\": 1}}\n\
                      {\"action\": {\"type\": \"add\", \"n\": 2}}\n{\"transition\": {}, \"actions\": [1]}\n";
        let response = BehaviorPiece::Response(json!({"behavior": {"id": "b"}, "transition": {}}));
        assert_eq!(pieces_of(stream), [action(1), action(2), response]);
        assert_eq!(pieces_of("[{\"action\": {\"type\": \"add\", \"n\": 1}}]"), [action(1)]);
        assert_eq!(
            pieces_of("{\"type\": \"finish_thinking\"}"),
            [BehaviorPiece::Action(json!({"type": "finish_thinking"}))]
        );
    }

    #[test]
    fn a_single_document_is_one_response() {
        let document = json!({"behavior": {}, "actions": [{"type": "add"}], "error": null});
        assert_eq!(pieces_of(&document.to_string()), [BehaviorPiece::Response(document)]);
        assert_eq!(pieces_of("[]"), [BehaviorPiece::Response(json!({"actions": []}))]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_also_in_pieces() {
        let text = "\u{feff}{\"action\": \"finish_thinking\"}";
        let expected = [BehaviorPiece::Action(json!({"action": "finish_thinking"}))];
        assert_eq!(pieces_of(text), expected);
        let mut pieces = AnswerPieces::default();
        text.as_bytes().iter().for_each(|byte| pieces.feed(&[*byte]).unwrap());
        pieces.end().unwrap();
        assert_eq!(std::iter::from_fn(|| pieces.take()).collect::<Vec<_>>(), expected);
        assert!(AnswerPieces::default().feed(b"\xEF\xBB{}").is_err());
        assert!(read("\u{feff}\u{feff}{}").1.is_err());
    }

    #[test]
    fn an_invalid_answer_is_an_error_and_earlier_pieces_stay() {
        assert_eq!(read("{\"error\": \"secret\"}"), (vec![], Err(BehaviorServerError::Reported)));
        assert_eq!(
            read("7").1,
            Err(BehaviorServerError::Broken(BodyError::Invalid("it is neither an object nor a list")))
        );
        let (before, ended) = read("{\"action\": \"finish_thinking\"}\n{\"error\": 1}");
        assert_eq!((before.len(), ended), (1, Err(BehaviorServerError::Reported)));
        let (before, ended) = read("{\"action\": \"finish_thinking\"}\nrubbish");
        assert_eq!((before.len(), ended), (1, Err(BehaviorServerError::Broken(BodyError::Invalid("it is not JSON")))));
    }
}
