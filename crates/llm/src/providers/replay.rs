//! Replays written or recorded replies, selected by purpose, action, round and call.
//!
//! ```yaml
//! replies:
//!   ask_name:                      # an action id: one entry per call, in order
//!     - { content: 怎么称呼您？, EXIT: "NO" }                        # a value: sent as compact JSON text
//!     - "raw text exactly as a model would write it"               # a text: sent unchanged
//!     - { $round: 2, $answered: true, reply: { EXIT: "YES" } }     # checked before the order
//!     - { $after_ms: 5000, reply: { EXIT: "NO" } }                 # a delayed reply, which is part of the order
//!   "monitor:ask_name": [ { intervention_needed: false } ]         # another purpose
//! ```
//!
//! An entry with `$round` or `$answered` answers every matching call. It takes precedence over the order and is not part of it: call 0
//! gets the first of the other entries.
//!
//! The entries of `monitor:ask_name` are in the order of the analyzed rounds: the first is for round 1. Without entries for a monitor,
//! it does not start.
//!
//! A recording is JSON lines: `{"purpose": "action", "action_id": "ask_name", "round": 1, "call": 0, "text": "…"}`. Here
//! only these keys are compared; [`recording`] replays it strictly.

pub mod diff;
pub mod entries;
pub mod recording;

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

use crate::model::call_span::local_call;
use crate::model::error::ModelError;
use crate::model::provider::{LiveObserver, Provider};
use crate::model::reply::ModelReply;
use crate::model::request::{ModelRequest, Purpose, Task};
use crate::providers::replay::entries::{Entries, Entry, When, read};
use crate::providers::replay::recording::is_path;
use bcc_lang::source::near::distance;

pub const NAME: &str = "replay";

const MAX_NAMES: usize = 10;

/// Replies from a file. It is stateless: the same task always gets the same reply.
#[derive(Debug)]
pub struct Replay {
    file: String,
    entries: Entries,
}

impl Replay {
    /// Parses the replies in `text`, which is YAML, JSON or JSON lines. `name` is the name of the file in errors.
    pub fn parse(name: &str, text: &str) -> Result<Self, ModelError> {
        let entries =
            read(text).map_err(|problem| ModelError::Config { message: msg!("the replies in {name}: {problem}") })?;
        Ok(Self { file: name.to_owned(), entries })
    }

    pub fn text(&self, task: &Task) -> Result<&str, ModelError> {
        self.entry(task).map(|entry| entry.text.as_str())
    }

    fn entry(&self, task: &Task) -> Result<&Entry, ModelError> {
        let key = (task.purpose, task.action_id.clone());
        let Some(list) = self.entries.get(&key) else { return Err(self.unknown_action(task)) };
        let matches_task = |entry: &&Entry| {
            entry.path.as_ref().is_none_or(|path| is_path(path, &task.path)) && entry.when.matches(task)
        };
        let by_key = list.iter().find(matches_task);
        let place = usize::try_from(task.call).unwrap_or(usize::MAX);
        let in_order = || list.iter().filter(|entry| entry.when == When::InOrder).nth(place);
        match by_key.or_else(in_order) {
            Some(entry) => Ok(entry),
            None => {
                let ordered = list.iter().filter(|entry| entry.when == When::InOrder).count();
                let others = list.len() - ordered;
                Err(ModelError::NoReply {
                    key: describe(task),
                    help: msg!(
                        "{} has {ordered} replies in order and {others} by round for `{}`; add one",
                        self.file,
                        written(task.purpose, &task.action_id)
                    ),
                })
            }
        }
    }

    fn unknown_action(&self, task: &Task) -> ModelError {
        let wanted = written(task.purpose, &task.action_id);
        let mut names: Vec<String> = self.entries.keys().map(|(purpose, action)| written(*purpose, action)).collect();
        names.sort_by_cached_key(|name| distance(name, &wanted));
        let listed = names.iter().take(MAX_NAMES).map(|name| format!("`{name}`"));
        let more = (names.len() > MAX_NAMES).then(|| "…".to_owned());
        let help = if names.is_empty() {
            msg!("{} has no replies at all", self.file)
        } else {
            msg!("{} has no `{wanted}`, only {}", self.file, Message::values(listed.chain(more)))
        };
        ModelError::NoReply { key: describe(task), help }
    }
}

#[async_trait]
impl Provider for Replay {
    fn name(&self) -> &str {
        NAME
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        purpose == Purpose::Action || self.entries.contains_key(&(purpose, action_id.to_owned()))
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let call = async {
            let Entry { text, after, .. } = self.entry(&request.task)?;
            if !after.is_zero() {
                tokio::time::sleep(*after).await;
            }
            let text = text.clone();
            if !text.is_empty() {
                live.text(&text);
            }
            Ok(ModelReply { text, model: NAME.to_owned(), attempts: 1, ..ModelReply::default() })
        };
        local_call(NAME, &request.task, call).await
    }
}

/// The key as written in files.
fn written(purpose: Purpose, action_id: &str) -> String {
    match purpose {
        Purpose::Action => action_id.to_owned(),
        other => format!("{other}:{action_id}"),
    }
}

/// The description of a call in messages, numbered from 1.
fn describe(task: &Task) -> Message {
    let turn = if task.answer.is_some() { "answered" } else { "opening" };
    let call = u64::from(task.call) + 1;
    msg!(
        "`{}`, call {call} (round {}, {turn})",
        written(task.purpose, &task.action_id),
        task.round,
        turn = Message::word(turn)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::provider::NoLiveOutput;

    fn task(action_id: &str, round: u32, call: u32, answered: bool) -> Task {
        Task {
            kind: "ai_ask".into(),
            action_id: action_id.into(),
            answer: answered.then(|| "小林".to_owned()),
            round,
            call,
            opening: !answered,
            ..Task::default()
        }
    }

    fn config_error(text: &str) -> String {
        match Replay::parse("r.yaml", text) {
            Err(ModelError::Config { message }) => message.to_string(),
            other => panic!("{text:?} gave {other:?}"),
        }
    }

    const WRITTEN: &str = r#"
replies:
  ask_name:
    - { content: 怎么称呼您？, EXIT: "NO", a: [1, 2.5, null] }
    - { $round: 2, $answered: true, reply: { EXIT: "YES" } }
    - "```json\n{}\n``` raw"
    - ""
  "monitor:ask_name": [ { intervention_needed: false } ]
  问候: [ [1], 5 ]
"#;

    #[test]
    fn entries_answer_calls_in_order_and_rounds_before_order() {
        let replay = Replay::parse("r.yaml", WRITTEN).unwrap();
        let table = [
            (task("ask_name", 1, 0, false), r#"{"content":"怎么称呼您？","EXIT":"NO","a":[1,2.5,null]}"#),
            (task("ask_name", 1, 1, true), "```json\n{}\n``` raw"),
            (task("ask_name", 2, 1, true), r#"{"EXIT":"YES"}"#),
            (task("ask_name", 2, 7, true), r#"{"EXIT":"YES"}"#),
            (task("ask_name", 2, 2, false), ""),
            (Task { purpose: Purpose::Monitor, ..task("ask_name", 1, 0, true) }, r#"{"intervention_needed":false}"#),
            (task("问候", 1, 0, false), "[1]"),
            (task("问候", 1, 1, false), "5"),
        ];
        for (task, expected) in &table {
            assert_eq!(replay.text(task).unwrap(), *expected, "{}", describe(task));
        }
        // The same task gets the same reply regardless of earlier calls.
        for (task, expected) in table.iter().rev() {
            assert_eq!(replay.text(task).unwrap(), *expected, "{}", describe(task));
        }
    }

    #[test]
    fn json_is_read_like_yaml() {
        let replay = Replay::parse("r.json", r#"{"replies": {"a": [{"x": 1}]}}"#).unwrap();
        assert_eq!(replay.text(&task("a", 1, 0, false)).unwrap(), r#"{"x":1}"#);
        let replay = Replay::parse("r.json", "\u{FEFF}{\n \"replies\": {\n \"a\": [\"x\"]}}").unwrap();
        assert_eq!(replay.text(&task("a", 1, 0, false)).unwrap(), "x");
    }

    #[test]
    fn a_recording_answers_exactly_the_recorded_calls() {
        let lines = concat!(
            r#"{"purpose":"action","action_id":"a","round":1,"call":0,"text":"一","model":"qwen3"}"#,
            "\r\n\n",
            r#"{"purpose":"action","action_id":"a","round":1,"call":1,"text":"二"}"#,
            "\n",
            r#"{"purpose":"monitor","action_id":"a","round":1,"call":0,"text":"三"}"#,
            "\n",
            r#"{"purpose":"action","action_id":"a","round":1,"call":0,"text":"一"}"#,
        );
        let replay = Replay::parse("r.jsonl", lines).unwrap();
        assert_eq!(replay.text(&task("a", 1, 0, false)).unwrap(), "一");
        assert_eq!(replay.text(&task("a", 1, 1, true)).unwrap(), "二");
        assert_eq!(replay.text(&Task { purpose: Purpose::Monitor, ..task("a", 1, 0, true) }).unwrap(), "三");
        assert!(replay.text(&task("a", 2, 1, true)).is_err());
    }

    #[test]
    fn the_error_for_a_missing_entry_lists_the_existing_ones() {
        let replay = Replay::parse("r.yaml", WRITTEN).unwrap();
        let errors = [
            task("ask_name", 3, 3, true),
            task("ask_nme", 1, 0, false),
            Task { purpose: Purpose::Orchestrator, ..task("ask_name", 1, 0, true) },
        ]
        .map(|task| replay.text(&task).unwrap_err().to_string());
        insta::assert_snapshot!(errors.join("\n"), @r"
        no reply for `ask_name`, call 4 (round 3, answered): r.yaml has 3 replies in order and 1 by round for `ask_name`; add one
        no reply for `ask_nme`, call 1 (round 1, opening): r.yaml has no `ask_nme`, only `ask_name`, `问候`, `monitor:ask_name`
        no reply for `orchestrator:ask_name`, call 1 (round 1, answered): r.yaml has no `orchestrator:ask_name`, only `monitor:ask_name`, `ask_name`, `问候`
        ");
        let none = Replay::parse("r.yaml", "replies: {}").unwrap().text(&task("a", 1, 0, false)).unwrap_err();
        assert!(none.to_string().contains("no replies at all"), "{none}");
    }

    #[test]
    fn errors_in_a_file_are_reported() {
        let table = [
            ("", "`replies:`"),
            ("[]", "`replies:`"),
            ("replies: [", "not valid YAML"),
            ("replies: 5", "`replies` must contain"),
            ("reply: {}", "unknown key `reply`"),
            ("replies: { a: { x: 1 } }", "`replies.a` must be a list"),
            ("replies: { a: [1], a: [2] }", "duplicate"),
            ("replies: { a: [1], 'action:a': [2] }", "twice"),
            ("replies: { 'monitr:a': [] }", "unknown purpose `monitr`; the purposes are action, monitor, orchestrator"),
            ("replies: { 'monitor:': [] }", "does not name an action"),
            ("replies: { a: [x, ~] }", "entry 2 of `replies.a` is empty"),
            ("replies: { a: [{ $round: 0, reply: x }] }", "entry 1 of `replies.a` has a `$round`"),
            ("replies: { a: [{ $round: two, reply: x }] }", "`$round`"),
            ("replies: { a: [{ $answered: 1, reply: x }] }", "`$answered`"),
            ("replies: { a: [{ $round: 1 }] }", "no `reply`"),
            ("replies: { a: [{ $after_ms: 5 }] }", "no `reply`"),
            ("replies: { a: [{ $after_ms: soon, reply: x }] }", "`$after_ms`"),
            ("replies: { a: [{ $after_ms: -1, reply: x }] }", "`$after_ms`"),
            ("replies: { a: [{ $rund: 1, reply: x }] }", "unknown key `$rund`"),
            ("replies: { a: [{ $round: 1, reply: x, EXIT: 1 }] }", "unknown key `EXIT`"),
            ("{\"purpose\": \"action\"}", "line 1 is not a recorded exchange"),
            ("{\"text\": \"x\"}", "line 1"),
            (
                "{\"purpose\":\"action\",\"action_id\":\"a\",\"round\":1,\"call\":0,\"text\":\"x\"}\n{\"purpose\":\"action\",\"action_id\":\"a\",\"round\":1,\"call\":0,\"text\":\"y\"}",
                "round 1, call 0 has two different replies",
            ),
        ];
        for (text, expected) in table {
            let message = config_error(text);
            assert!(
                message.starts_with("the replies in r.yaml: ") && message.contains(expected),
                "{text:?}: {message}"
            );
        }
        config_error(&"[".repeat(10_000));
    }

    #[test]
    fn monitors_are_answered_only_with_entries_for_them() {
        let with = Replay::parse("r.yaml", WRITTEN).unwrap();
        let without = Replay::parse("r.yaml", "replies: { a: [x] }").unwrap();
        for (purpose, action_id, expected) in [
            (Purpose::Action, "ask_name", true),
            (Purpose::Monitor, "ask_name", true),
            (Purpose::Monitor, "问候", false),
            (Purpose::Orchestrator, "ask_name", false),
        ] {
            assert_eq!(with.answers(purpose, action_id), expected, "{purpose}:{action_id}");
            assert_eq!(without.answers(purpose, action_id), purpose == Purpose::Action, "{purpose}:{action_id}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_reply_takes_its_time_and_keeps_its_position() {
        let text = "replies: { a: [ { $after_ms: 5000, reply: 一 }, 二, { $round: 3, $after_ms: 7, reply: 三 } ] }";
        let replay = Replay::parse("r.yaml", text).unwrap();
        for (round, call, text, ms) in [(1, 0, "一", 5000), (2, 1, "二", 0), (3, 2, "三", 7)] {
            let (messages, task) = (Vec::new(), task("a", round, call, true));
            let request = ModelRequest { messages, task, ..ModelRequest::default() };
            let start = tokio::time::Instant::now();
            assert_eq!(replay.complete(&request, &mut NoLiveOutput).await.unwrap().text, text);
            assert_eq!(start.elapsed().as_millis(), ms, "{text}");
        }
    }

    #[tokio::test]
    async fn it_implements_the_provider_interface() {
        let replay = Replay::parse("r.yaml", WRITTEN).unwrap();
        let mut request =
            ModelRequest { messages: Vec::new(), task: task("ask_name", 1, 2, true), ..ModelRequest::default() };
        let reply = replay.complete(&request, &mut NoLiveOutput).await.unwrap();
        assert_eq!((reply.text.as_str(), reply.model.as_str(), reply.attempts), ("", "replay", 1));
        request.task.call = 3;
        assert!(replay.complete(&request, &mut NoLiveOutput).await.is_err());
    }
}
