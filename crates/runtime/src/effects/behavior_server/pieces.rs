//! What a server sends, as pieces of an answer: actions as soon as each is complete, and at the end what stood around them.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use crate::effects::behavior_server::error::BehaviorServerError;
use crate::effects::behaviors::BehaviorPiece;
use bcc_llm::http::body::BodyError;
use bcc_llm::http::value_stream::{StreamItem, ValueStream};

#[derive(Debug, Default)]
pub struct AnswerPieces {
    values: ValueStream,
    around: Option<Map<String, Value>>,
    streamed: bool,
    ready: VecDeque<BehaviorPiece>,
}

impl AnswerPieces {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// As of [`ValueStream::feed`], and when the server reports an error. The pieces before it can still be taken.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), BehaviorServerError> {
        let fed = self.values.feed(bytes);
        self.sort()?;
        Ok(fed?)
    }

    /// That no more bytes come: the rest of the answer is ready.
    pub fn end(&mut self) -> Result<(), BehaviorServerError> {
        let ended = self.values.end();
        self.sort()?;
        ended?;
        let nothing = self.around.is_none() && !self.streamed;
        if nothing && !self.values.has_list() {
            return Err(BodyError::Rubbish("it contains no object").into());
        }
        let around = self
            .around
            .take()
            .or_else(|| nothing.then(|| [("actions".to_owned(), Value::Array(vec![]))].into_iter().collect()));
        if let Some(mut around) = around {
            if self.streamed {
                // They were given already, one by one, and are not carried out again.
                around.remove("actions");
            }
            self.ready.push_back(BehaviorPiece::Response(Value::Object(around)));
        }
        Ok(())
    }

    pub fn take(&mut self) -> Option<BehaviorPiece> {
        self.ready.pop_front()
    }

    pub const fn is_done(&self) -> bool {
        self.values.is_done()
    }

    fn sort(&mut self) -> Result<(), BehaviorServerError> {
        while let Some(came) = self.values.take() {
            match came {
                StreamItem::Item(value) => self.action(value),
                StreamItem::Alone(value) if is_action(&value) => self.action(value),
                StreamItem::Alone(Value::Object(fields)) => {
                    if fields.get("error").is_some_and(|error| !error.is_null()) && !fields.contains_key("actions") {
                        return Err(BehaviorServerError::Reported);
                    }
                    self.around.get_or_insert_default().extend(fields);
                }
                StreamItem::Alone(_) => return Err(BodyError::Rubbish("it is neither an object nor a list").into()),
            }
        }
        Ok(())
    }

    fn action(&mut self, value: Value) {
        self.streamed = true;
        self.ready.push_back(BehaviorPiece::Action(value));
    }
}

/// Whether an object is an action by itself: `{"action": …}`, or one that names its `type`.
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

    fn whole(text: &str) -> Vec<BehaviorPiece> {
        let (pieces, ended) = read(text);
        ended.unwrap();
        pieces
    }

    #[test]
    fn actions_come_one_by_one_and_what_stands_around_them_last() {
        let action = |n: u64| BehaviorPiece::Action(json!({"action": {"type": "add", "n": n}}));
        let stream = "{\"behavior\": {\"id\": \"b\"}}\n{\"action\": {\"type\": \"add\", \"n\": 1}}\n\
                      {\"action\": {\"type\": \"add\", \"n\": 2}}\n{\"transition\": {}, \"actions\": [1]}\n";
        let around = BehaviorPiece::Response(json!({"behavior": {"id": "b"}, "transition": {}}));
        assert_eq!(whole(stream), [action(1), action(2), around]);
        assert_eq!(whole("[{\"action\": {\"type\": \"add\", \"n\": 1}}]"), [action(1)]);
        assert_eq!(
            whole("{\"type\": \"finish_thinking\"}"),
            [BehaviorPiece::Action(json!({"type": "finish_thinking"}))]
        );
    }

    #[test]
    fn one_document_stays_whole() {
        let document = json!({"behavior": {}, "actions": [{"type": "add"}], "error": null});
        assert_eq!(whole(&document.to_string()), [BehaviorPiece::Response(document)]);
        assert_eq!(whole("[]"), [BehaviorPiece::Response(json!({"actions": []}))]);
    }

    #[test]
    fn what_is_no_answer_is_a_fault_and_what_came_before_stays() {
        assert_eq!(read("{\"error\": \"secret\"}"), (vec![], Err(BehaviorServerError::Reported)));
        assert_eq!(
            read("7").1,
            Err(BehaviorServerError::Broken(BodyError::Rubbish("it is neither an object nor a list")))
        );
        let (before, ended) = read("{\"action\": \"finish_thinking\"}\n{\"error\": 1}");
        assert_eq!((before.len(), ended), (1, Err(BehaviorServerError::Reported)));
        let (before, ended) = read("{\"action\": \"finish_thinking\"}\nrubbish");
        assert_eq!((before.len(), ended), (1, Err(BehaviorServerError::Broken(BodyError::Rubbish("it is not JSON")))));
    }
}
