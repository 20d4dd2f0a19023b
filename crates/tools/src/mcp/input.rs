//! Questions of servers to a person. Servers of the newest protocol return them instead of a result, and are called again with the
//! answers; what is needed for that is in the token of the request, so that another process can go on. Older servers ask while the call
//! runs, which therefore has to stay open.

use bcc_lang::message::message::Message;
use bcc_runtime::effects::tools::ToolInputRequest;
use rmcp::model::{
    CallToolRequestParams, ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequiredResult,
};
use serde_json::{Map, Value, json};

use crate::mcp::texts::{MAX_TEXT, clean_schema, cleaned};

/// How often a call can ask.
const MAX_ROUNDS: u64 = 10;

/// The maximum size of what a server wants to have back, in bytes.
const MAX_TOKEN: usize = 64 * 1024;

/// Where a call that asks goes on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InputToken {
    /// The call with this number, in the process with this id, is open.
    Open { process: String, call: u64 },
    /// The call is made again.
    Again(PendingInput),
}

/// What a server asked for, and the answers so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PendingInput {
    state: Option<String>,
    /// The requests without an answer, by their keys.
    requests: Map<String, Value>,
    answers: Map<String, Value>,
    rounds: u64,
}

/// What comes next for a call that asks.
pub(crate) enum InputStep {
    Ask(Box<ToolInputRequest>),
    /// All questions have answers: the call is made again with them.
    CallAgain(PendingInput),
}

impl InputToken {
    fn to_value(&self) -> Value {
        match self {
            Self::Open { process, call } => json!({ "process": process, "call": call }),
            Self::Again(PendingInput { state, requests, answers, rounds }) => {
                json!({ "state": state, "requests": requests, "answers": answers, "rounds": rounds })
            }
        }
    }

    /// Reads a token. It comes from a store, which may be changed.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        if let Some(call) = value.get("call") {
            let process = value.get("process")?.as_str()?.to_owned();
            return Some(Self::Open { process, call: call.as_u64()? });
        }
        Some(Self::Again(PendingInput {
            state: value.get("state")?.as_str().map(str::to_owned),
            requests: value.get("requests")?.as_object()?.clone(),
            answers: value.get("answers")?.as_object()?.clone(),
            rounds: value.get("rounds")?.as_u64()?,
        }))
    }
}

/// A question in the form that a person is shown. None if it is not a form.
pub(crate) fn question(request: &ElicitRequestParams, token: &InputToken) -> Option<ToolInputRequest> {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else { return None };
    let mut schema = serde_json::to_value(requested_schema).ok()?;
    if !clean_schema(&mut schema) {
        return None;
    }
    Some(ToolInputRequest { prompt: cleaned(message, MAX_TEXT), schema, token: token.to_value() })
}

/// The answer of a person; none if the person declined.
pub(crate) fn answer(input: Option<&Map<String, Value>>) -> ElicitResult {
    match input {
        Some(fields) => ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(fields.clone())),
        None => ElicitResult::new(ElicitationAction::Decline),
    }
}

impl PendingInput {
    /// What a server asks for in round `self.rounds + 1`.
    pub(crate) fn of(result: InputRequiredResult, rounds: u64) -> Result<Self, Message> {
        if rounds >= MAX_ROUNDS {
            return Err("the server asks again and again".into());
        }
        let mut requests = Map::new();
        for (key, request) in result.input_requests.unwrap_or_default() {
            let request = serde_json::to_value(request)
                .map_err(|_| Message::word("the question of the server cannot be read"))?;
            requests.insert(key, request);
        }
        Ok(Self { state: result.request_state, requests, answers: Map::new(), rounds: rounds + 1 })
    }

    /// The next question, or the call with all answers.
    pub(crate) fn next(mut self) -> Result<InputStep, Message> {
        while let Some((key, value)) = self.requests.iter().next().map(|(key, value)| (key.clone(), value.clone())) {
            let request: InputRequest = serde_json::from_value(value)
                .map_err(|_| Message::word("the question of the server cannot be read"))?;
            let answer = match request {
                InputRequest::Elicitation(request) => {
                    let token = InputToken::Again(self.clone());
                    match question(&request.params, &token) {
                        Some(asked) if asked.token.to_string().len() > MAX_TOKEN => {
                            return Err("the server wants to have too much back with the answer".into());
                        }
                        Some(asked) => return Ok(InputStep::Ask(Box::new(asked))),
                        None => json!({ "action": "decline" }),
                    }
                }
                InputRequest::ListRoots(_) => json!({ "roots": [] }),
                _ => return Err("the server asks for the reply of a model, which it does not get".into()),
            };
            self.requests.shift_remove(&key);
            self.answers.insert(key, answer);
        }
        Ok(InputStep::CallAgain(self))
    }

    /// Adds the answer to the question that was asked last.
    pub(crate) fn answered(mut self, input: Option<&Map<String, Value>>) -> Self {
        let key = self.requests.keys().next().cloned();
        if let (Some(key), Ok(answer)) = (key, serde_json::to_value(answer(input))) {
            self.requests.shift_remove(&key);
            self.answers.insert(key, answer);
        }
        self
    }

    /// Adds the answers and what the server wants to have back to a call.
    pub(crate) fn add_to(self, params: &mut CallToolRequestParams) -> u64 {
        params.input_responses = (!self.answers.is_empty()).then(|| self.answers.into_iter().collect());
        params.request_state = self.state;
        self.rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(requests: Value, rounds: u64) -> Result<InputStep, String> {
        let result = json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "s" });
        let result = serde_json::from_value(result).unwrap();
        PendingInput::of(result, rounds).and_then(PendingInput::next).map_err(|why| why.to_string())
    }

    fn form(message: &str) -> Value {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "string", "title": "N\u{202e}" } } });
        let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
        json!({ "method": "elicitation/create", "params": params })
    }

    #[test]
    fn questions_are_asked_one_by_one_and_the_call_is_made_again_with_the_answers() {
        let url = json!({ "method": "elicitation/create",
            "params": { "mode": "url", "message": "open", "url": "https://h/", "elicitationId": "1" } });
        let roots = json!({ "method": "roots/list" });
        let step = asked(json!({ "a": form("First\u{1b}?"), "b": url, "c": form("Second?"), "d": roots }), 0).unwrap();
        let InputStep::Ask(first) = step else { panic!() };
        assert_eq!((first.prompt.as_str(), &first.schema["properties"]["n"]["title"]), ("First?", &json!("N")));
        let Some(InputToken::Again(pending)) = InputToken::read(&first.token) else { panic!() };
        let given = json!({ "n": "x" });
        let InputStep::Ask(second) = pending.answered(given.as_object()).next().unwrap() else { panic!() };
        assert_eq!(second.prompt, "Second?");
        let Some(InputToken::Again(pending)) = InputToken::read(&second.token) else { panic!() };
        let InputStep::CallAgain(all) = pending.answered(None).next().unwrap() else { panic!() };
        let mut params = CallToolRequestParams::new("t");
        assert_eq!(all.add_to(&mut params), 1);
        let expected = json!({
            "a": { "action": "accept", "content": { "n": "x" } }, "b": { "action": "decline" },
            "c": { "action": "decline" }, "d": { "roots": [] },
        });
        assert_eq!(serde_json::to_value(params.input_responses).unwrap(), expected);
        assert_eq!(params.request_state.as_deref(), Some("s"));
    }

    #[test]
    fn what_a_server_may_ask_is_limited() {
        let error = |requests, rounds| asked(requests, rounds).err().unwrap();
        assert!(error(json!({ "a": form("?") }), MAX_ROUNDS).contains("again and again"));
        let sampling = json!({ "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } });
        assert!(error(json!({ "a": sampling }), 0).contains("reply of a model"));
        let many: Map<String, Value> = (0..99).map(|number| (number.to_string(), form(&"x".repeat(900)))).collect();
        assert!(error(Value::Object(many), 0).contains("too much"));
    }

    #[test]
    fn a_token_that_was_changed_is_not_read() {
        for value in [json!(null), json!({ "call": "x", "process": "p" }), json!({ "call": 1 }), json!({ "state": 1 })]
        {
            assert_eq!(InputToken::read(&value), None, "{value}");
        }
        let open = InputToken::Open { process: "p".to_owned(), call: 1 };
        assert_eq!(InputToken::read(&open.to_value()), Some(open));
    }
}
