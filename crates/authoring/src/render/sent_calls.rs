//! Reads the model calls of a stored session from its journal, together with everything that affected its course: the
//! answers of the person, the used advice of monitors, and the accepted plans.

use bcc_lang::message::msg;
use serde_json::Value;

use bcc_engine::error::EngineError;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_lang::value::mask::MASK;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::reply::extract::object;
use bcc_store::contract::Store;
use bcc_store::rows::VariableRow;

/// The number of journal rows per read: a row can contain a prompt and a reply of several megabytes.
const PAGE: usize = 64;

#[derive(Clone, Debug, Default)]
pub struct SentCall {
    pub at: String,
    /// The time of the event before its turn.
    pub before: String,
    /// The duration, in milliseconds.
    pub ms: u64,
    /// The prompt as stored: masked.
    pub prompt: Option<Vec<ChatMessage>>,
    /// The reply, masked as well; `None` if there was none.
    pub reply: Option<String>,
    /// Whether the reply was repaired before it was parsed.
    pub repaired: bool,
    pub cut_off: bool,
}

#[derive(Clone, Debug, Default)]
pub struct SentTurn {
    pub path: String,
    pub action: String,
    pub round: u32,
    /// The first call and its repetitions.
    pub calls: Vec<SentCall>,
    /// The analysis whose advice was used.
    pub advice: Option<Value>,
    /// The message that the turn sent to the person.
    pub message: Option<String>,
}

#[derive(Clone, Debug)]
pub enum SentStep {
    Answer(String),
    /// An approval was answered: its event.
    Decision(Value),
    Turn(SentTurn),
    /// A plan changed the rest of a topic: its event.
    Plan(Value),
}

pub async fn steps(store: &dyn Store, id: &str) -> Result<Vec<SentStep>, EngineError> {
    let mut steps: Vec<SentStep> = Vec::new();
    // The number of steps after each event that added some.
    let mut counts: Vec<(u64, usize)> = Vec::new();
    let mut before = String::new();
    let mut after = 0;
    loop {
        let rows = store.journal(id, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(steps) };
        after = last.seq;
        for row in &rows {
            if matches!(
                row.kind.as_str(),
                "message" | "model_call" | "outcome" | "monitor_feedback" | "orchestrated" | "request_answered"
            ) {
                let event = serde_json::from_str(&row.body)
                    .map_err(|error| EngineError::failed(msg!("a stored event cannot be read: {error}")))?;
                let count = steps.len();
                add(&mut steps, &event, &before);
                if steps.len() > count {
                    counts.push((row.seq, steps.len()));
                }
            }
            if row.kind == "taken_back" {
                let event: Value = serde_json::from_str(&row.body)
                    .map_err(|error| EngineError::failed(msg!("a stored event cannot be read: {error}")))?;
                let from = event.get("from_seq").and_then(Value::as_u64).unwrap_or(row.seq);
                counts.retain(|(seq, _)| *seq < from);
                steps.truncate(counts.last().map_or(0, |(_, count)| *count));
            }
            before.clone_from(&row.at);
        }
    }
}

/// Restores masked parts of replies as far as they are known: the current values of the session's variables, and the
/// messages that were sent. Prompts stay as stored.
pub(crate) fn unmask(steps: &mut [SentStep], variables: &[VariableRow]) {
    let mut replies: Vec<Masked<'_>> = Vec::new();
    for step in steps {
        let SentStep::Turn(SentTurn { path, action, round, calls, message, .. }) = step else { continue };
        for call in calls {
            let masked = call.reply.as_deref().filter(|text| text.contains(MASK));
            let Some(Ok((object, digits))) = masked.map(|text| object(text, &[])) else { continue };
            let object = ExactValue::new(Value::Object(object), digits);
            let mut reply: ExactValues = object.fields().map(|(name, field)| (name.to_owned(), field)).collect();
            let content =
                reply.get_mut("content").filter(|content| content.as_str().is_some_and(|text| text.contains(MASK)));
            if let (Some(content), Some(message)) = (content, message.as_deref()) {
                *content = Value::from(message).into();
            }
            replies.push(Masked { path, action, round: *round, reply, into: &mut call.reply });
        }
    }
    for row in variables.iter().filter(|row| row.sensitive) {
        let Ok(value) = ExactValue::parse(&row.value) else { continue };
        let holds = |masked: &&mut Masked<'_>| masked.reply.get(&row.name).is_some_and(|value| !value.is_null());
        let holding: Vec<&mut Masked<'_>> = replies.iter_mut().filter(holds).collect();
        match value.as_array() {
            // If there are as many elements as replies with this field, each reply appended its own (`append`).
            Some(items) if items.len() > 1 && items.len() == holding.len() => {
                holding.into_iter().zip(value.items()).for_each(|(masked, item)| masked.put(&row.name, item));
            }
            _ => {
                let set_here = |masked: &&mut Masked<'_>| masked.is_of(row);
                holding.into_iter().filter(set_here).for_each(|masked| masked.put(&row.name, value.clone()));
            }
        }
    }
    for Masked { reply, into, .. } in replies {
        *into = Some(ExactValue::from_iter(reply).to_string());
    }
}

struct Masked<'a> {
    path: &'a str,
    action: &'a str,
    round: u32,
    reply: ExactValues,
    into: &'a mut Option<String>,
}

impl Masked<'_> {
    /// Whether this reply set the value of a variable.
    fn is_of(&self, row: &VariableRow) -> bool {
        let visit = row.path.is_empty() || self.path.starts_with(&row.path);
        row.source == self.action && row.round == Some(self.round) && visit
    }

    fn put(&mut self, name: &str, value: ExactValue) {
        self.reply.insert(name.to_owned(), value);
    }
}

fn add(steps: &mut Vec<SentStep>, event: &Value, before: &str) {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let flag = |name: &str| event.get(name) == Some(&Value::Bool(true));
    match text("/type") {
        "message" if text("/role") == "user" => steps.push(SentStep::Answer(text("/text").to_owned())),
        "message" => {
            let path = text("/location/path");
            if let Some(turn) = last(steps).filter(|turn| turn.path == path && turn.message.is_none()) {
                turn.message = Some(text("/text").to_owned());
            }
        }
        "model_call" if text("/purpose") == "action" => call(steps, event, before),
        "outcome" => {
            let path = text("/location/path");
            if let Some(call) = last(steps).filter(|turn| turn.path == path).and_then(|turn| turn.calls.last_mut())
                && call.prompt.is_none()
            {
                (call.prompt, call.reply) = debug_info(event);
            }
        }
        "monitor_feedback" if flag("used") => {
            if let Some(turn) = last(steps) {
                turn.advice = event.get("analysis").cloned().map(
                    |analysis| serde_json::json!({ "action_type": event.get("action_type"), "analysis": analysis }),
                );
            }
        }
        // Nobody answered a request that was withdrawn.
        "request_answered" if text("/kind") == "approval" && text("/decision") != "withdrawn" => {
            steps.push(SentStep::Decision(event.clone()))
        }
        "orchestrated" if flag("accepted") => steps.push(SentStep::Plan(event.clone())),
        _ => {}
    }
}

fn call(steps: &mut Vec<SentStep>, event: &Value, before: &str) {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = |pointer: &str| event.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
    let (prompt, reply) = debug_info(event);
    let is_reask = number("/reask") > 0;
    // Without any reply the session stopped, and the turn was repeated later.
    if !is_reask && event.get("parse_retry_count").is_none_or(Value::is_null) {
        return;
    }
    let call = SentCall {
        at: text("/at"),
        before: before.to_owned(),
        ms: number("/ms"),
        prompt,
        reply,
        repaired: number("/parse_retry_count") == 4,
        cut_off: event.get("cut_off") == Some(&Value::Bool(true)),
    };
    match last(steps).filter(|_| is_reask) {
        Some(turn) => turn.calls.push(call),
        None => steps.push(SentStep::Turn(SentTurn {
            path: text("/location/path"),
            action: text("/location/action_id"),
            round: u32::try_from(number("/location/round")).unwrap_or(1),
            calls: vec![call],
            ..SentTurn::default()
        })),
    }
}

fn last(steps: &mut [SentStep]) -> Option<&mut SentTurn> {
    steps.iter_mut().rev().find_map(|step| if let SentStep::Turn(turn) = step { Some(turn) } else { None })
}

fn debug_info(event: &Value) -> (Option<Vec<ChatMessage>>, Option<String>) {
    let prompt = event.pointer("/debug_info/llm_prompt").and_then(Value::as_array).map(|messages| {
        let one = |message: &Value| {
            let role = serde_json::from_value::<Role>(message.get("role").cloned().unwrap_or_default()).ok()?;
            Some(ChatMessage { role, content: message.get("content")?.as_str()?.to_owned() })
        };
        messages.iter().filter_map(one).collect()
    });
    (prompt, event.pointer("/debug_info/llm_response").and_then(Value::as_str).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_store::memory::MemoryStore;
    use bcc_store::rows::{Commit, JournalRow, NewSessionRow};
    use serde_json::json;

    #[tokio::test]
    async fn what_was_taken_back_is_no_step() {
        let store = MemoryStore::default();
        let said = |text: &str| json!({ "type": "message", "role": "user", "text": text });
        let events = [
            said("一"),
            said("二"),
            said("三"),
            json!({ "type": "taken_back", "from_seq": 3, "to_seq": 3 }),
            json!({ "type": "taken_back", "from_seq": 2, "to_seq": 4 }),
            said("四"),
        ];
        let row = |(seq, event): (u64, &Value)| JournalRow {
            seq,
            kind: event["type"].as_str().unwrap().to_owned(),
            body: event.to_string(),
            ..JournalRow::default()
        };
        let first = Commit { journal: (1..).zip(&events).map(row).collect(), ..Commit::default() };
        let session = NewSessionRow { id: "s".into(), ..NewSessionRow::default() };
        store.create(&session, &[], &first).await.unwrap();
        let steps = steps(&store, "s").await.unwrap();
        let answers: Vec<&str> = steps
            .iter()
            .map(|step| match step {
                SentStep::Answer(text) => text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(answers, ["一", "四"]);
    }

    #[test]
    fn repeated_calls_belong_to_their_turn_and_a_call_without_a_reply_to_none() {
        let place = json!({ "path": "t/ask", "action_id": "ask", "round": 2 });
        let prompt = |text: &str| json!({ "llm_prompt": [{ "role": "user", "content": text }], "llm_response": "r" });
        let call = |reask: u64, read: Value, debug: Value| {
            json!({ "type": "model_call", "purpose": "action", "location": place, "reask": reask, "parse_retry_count": read,
                "ms": 5, "at": "2026-11-22T00:00:01Z", "debug_info": debug })
        };
        let events = [
            json!({ "type": "message", "role": "user", "text": "好" }),
            json!({ "type": "message", "role": "ai", "text": "您好" }),
            call(0, json!(null), json!({})),
            json!({ "type": "model_call", "purpose": "monitor", "location": place, "parse_retry_count": 1 }),
            call(0, json!(3), prompt("a")),
            call(1, json!(4), json!({})),
            json!({ "type": "outcome", "location": { "path": "t/other" }, "debug_info": prompt("not this") }),
            json!({ "type": "outcome", "location": place, "debug_info": prompt("b") }),
            json!({ "type": "monitor_feedback", "used": false, "analysis": { "feedback_for_action": "came" } }),
            json!({ "type": "monitor_feedback", "used": true, "action_type": "ai_ask", "analysis": { "feedback_for_action": "慢" } }),
            json!({ "type": "orchestrated", "accepted": false }),
            json!({ "type": "orchestrated", "accepted": true }),
        ];
        let mut steps = Vec::new();
        for event in &events {
            add(&mut steps, event, "2026-11-22T00:00:00Z");
        }
        let [SentStep::Answer(answer), SentStep::Turn(turn), SentStep::Plan(_)] = steps.as_slice() else {
            panic!("{steps:?}")
        };
        assert_eq!((answer.as_str(), turn.round, turn.path.as_str()), ("好", 2, "t/ask"));
        let prompts: Vec<&str> =
            turn.calls.iter().map(|call| call.prompt.as_ref().unwrap()[0].content.as_str()).collect();
        assert_eq!(prompts, ["a", "b"]);
        assert_eq!(turn.calls.iter().map(|call| call.repaired).collect::<Vec<_>>(), [false, true]);
        assert_eq!(turn.advice.as_ref().unwrap()["analysis"]["feedback_for_action"], "慢");
    }

    #[test]
    fn values_that_are_still_known_are_put_back_into_masked_replies() {
        let turn = |action: &str, reply: Value| {
            let call = SentCall { reply: Some(reply.to_string()), ..SentCall::default() };
            let message = Some("好的，小林".to_owned());
            let (path, action) = (format!("t#2/{action}"), action.to_owned());
            SentStep::Turn(SentTurn { path, action, round: 2, calls: vec![call], message, ..SentTurn::default() })
        };
        let row = |name: &str, path: &str, value: Value| VariableRow {
            name: name.into(),
            path: path.into(),
            value: value.to_string(),
            source: "ask".into(),
            round: Some(2),
            sensitive: true,
            ..VariableRow::default()
        };
        let rows = [
            row("who", "", json!(["母亲", "父亲"])),
            row("other", "t#1", json!("of another visit")),
            row("none", "", json!("x")),
            row("moments", "", json!(["一", "二"])),
        ];
        let mut steps = [
            turn(
                "ask",
                json!({ "content": "好的，***", "EXIT": "YES", "who": "***", "other": "***", "none": null, "moments": "***" }),
            ),
            turn("tell", json!({ "moments": "***", "other": "***" })),
        ];
        unmask(&mut steps, &rows);
        let shown: Vec<Value> = steps
            .iter()
            .map(|step| {
                let SentStep::Turn(turn) = step else { panic!() };
                serde_json::from_str(turn.calls[0].reply.as_deref().unwrap()).unwrap()
            })
            .collect();
        let first = json!({ "content": "好的，小林", "EXIT": "YES", "who": ["母亲", "父亲"], "other": "***", "none": null, "moments": "一" });
        assert_eq!(shown, [first, json!({ "moments": "二", "other": "***" })]);
    }
}
