//! The built-in responder: a pure function of the task without AI, so that every script runs without configuration.
//!
//! Its replies are JSON text like those of a model, so that they are processed in the same way (docs/replies.md describes the fields).

pub mod fill;

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value, json};

use crate::model::call_span::local_call;
use crate::model::error::ModelError;
use crate::model::provider::{LiveObserver, Provider};
use crate::model::reply::ModelReply;
use crate::model::request::{ModelRequest, Purpose, Task, WantedOutput};
use crate::providers::offline::fill::{fill, written_number};
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::digits::Digits;
use bcc_lang::value::exact::ExactValue;

pub const NAME: &str = "offline";

/// The placeholder for an assessment, which requires a model.
pub(crate) const NOT_ASSESSED: &str = "离线模式不作评估";
const NOT_ASSESSED_ENGLISH: &str = "not assessed offline";

/// The placeholder for a text, which requires a model.
pub(crate) const NOT_WRITTEN: &str = "（离线模式：这里由模型来写。 / Offline: a model would write this.）";

const ASK_METRICS: [&str; 4] =
    ["information_completeness", "user_engagement", "emotional_intensity", "reply_relevance"];

const SAY_METRICS: [&str; 3] = ["user_engagement", "emotional_intensity", "understanding_level"];

/// The deterministic responder.
///
/// It sends the content of an action, fills the outputs from the person's answer, and ends the action when all are filled. Calls for
/// purposes other than [`Purpose::Action`] fail with [`ModelError::NoReply`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Offline;

#[async_trait]
impl Provider for Offline {
    fn name(&self) -> &str {
        NAME
    }

    fn answers(&self, purpose: Purpose, _action_id: &str) -> bool {
        purpose == Purpose::Action
    }

    async fn complete(&self, request: &ModelRequest, live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let task = &request.task;
        if task.purpose != Purpose::Action {
            return Err(ModelError::NoReply {
                key: Message::text(format!("{}:{}", task.purpose, task.action_id)),
                help: msg!("the offline provider only answers actions; configure a model for this"),
            });
        }
        let call = async {
            let text = reply_text(task);
            live.text(&text);
            Ok(ModelReply { text, model: NAME.to_owned(), attempts: 1, ..ModelReply::default() })
        };
        local_call(NAME, task, call).await
    }
}

/// The reply to `task` as JSON text. A number that fills an output keeps the digits of the answer.
fn reply_text(task: &Task) -> String {
    let digits = task.answer.as_deref().and_then(written_number);
    let fields = task.wanted.iter().map(|wanted| (wanted.name.clone(), digits.clone()));
    ExactValue::new(respond(task), Digits::of_fields(fields)).to_string()
}

/// The reply to `task`, with its fields in the order of the templates: the decisions before the words. An output never replaces a field.
pub(crate) fn respond(task: &Task) -> Value {
    match task.kind.as_str() {
        "ai_say" => conversation(task, &SAY_METRICS),
        "ai_ask" => conversation(task, &ASK_METRICS),
        "collect" => collect(task),
        "behavior" => behavior(task),
        "reflection" => reflection(task),
        "workflow_plan" => workflow_plan(task),
        "structured_actions" => json!({ "llm_reply": { "message": task.content }, "actions": [] }),
        "plan_create" => json!({ "title": task.content, "tasks": [{ "name": task.content }] }),
        "plan_decompose" => json!({ "tasks": [] }),
        "plan_task" => json!({ "done": true, "problem": null, "result": NOT_WRITTEN }),
        _ => think(task),
    }
}

fn conversation(task: &Task, metrics: &[&str]) -> Value {
    let answer = if task.opening { None } else { task.answer.as_deref() };
    let (outputs, done) = match answer {
        None => (vec![Value::Null; task.wanted.len()], false),
        Some(answer) => {
            let fill = |wanted: &WantedOutput| if wanted.heard { Value::Null } else { fill(wanted, answer) };
            let outputs: Vec<Value> = task.wanted.iter().map(fill).collect();
            let mut own = outputs.iter().zip(&task.wanted).filter(|(_, wanted)| !wanted.heard);
            let filled = !answer.trim().is_empty() && !own.any(|(value, _)| value.is_null());
            // An `ai_say` ends after any answer.
            (outputs, filled || task.kind == "ai_say")
        }
    };
    judged(task, outputs, metrics, (done, if done { "" } else { &task.content }), None)
}

/// A reply that judges an answer: whether the action is done, and what is said.
fn judged(
    task: &Task,
    outputs: Vec<Value>,
    metrics: &[&str],
    (done, content): (bool, &str),
    confirmed: Option<Value>,
) -> Value {
    let not_assessed = not_assessed(task);
    let assessed = |metric: &&str| ((*metric).to_owned(), Value::from(not_assessed));
    let mut reply = Map::new();
    reply.insert("BRIEF".to_owned(), Value::from(""));
    add_outputs(&mut reply, &task.wanted, outputs);
    let mut field = |name: &str, value: Value| reply.insert(name.to_owned(), value);
    field("EXIT", Value::from(if done { "YES" } else { "NO" }));
    if let Some(confirmed) = confirmed {
        field("confirmed", confirmed);
    }
    field("progress_suggestion", Value::from(if done { "completed" } else { "continue_needed" }));
    field("metadata", json!({ "emotional_tone": not_assessed, "crisis_signal": false }));
    field("safety_risk", json!({ "detected": false, "risk_type": null, "confidence": null, "reason": not_assessed }));
    field("content", Value::from(content));
    if !metrics.is_empty() {
        field("metrics", Value::Object(metrics.iter().map(assessed).collect()));
    }
    Value::Object(reply)
}

/// The reply to a `collect`: the answer fills the slot that was asked, and the next missing one is asked. A value that waits to be
/// confirmed is shown for a yes or no.
fn collect(task: &Task) -> Value {
    let input = |name: &str| task.inputs.iter().find(|(found, _)| found == name).map(|(_, value)| value);
    let asked = input("asked").and_then(Value::as_str).unwrap_or_default();
    let verbatim = input("verbatim").is_some_and(|verbatim| *verbatim == true);
    let questions = input("questions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let answer = if task.opening { None } else { task.answer.as_deref() };
    let text = |question: &Value, field: &str| question[field].as_str().unwrap_or_default().to_owned();
    let is_asked = |question: &&Value| question["get"] == asked;
    let open = questions.iter().find(is_asked);
    let confirms = |question: &Value, value: &str| {
        let meaning = text(question, "meaning");
        if is_chinese(&meaning) {
            format!("{meaning}：{value}，对吗？")
        } else {
            format!("{meaning}: {value}. Is that right?")
        }
    };
    let waits = open.and_then(|open| open["unconfirmed"].as_str());
    let mut outputs = vec![Value::Null; task.wanted.len()];
    let mut confirmed = Value::Null;
    let mut next = open;
    let mut content = None;
    if let (Some(answer), Some(open)) = (answer, open) {
        let decision = WantedOutput { declared: Some(DeclaredType::Boolean), ..WantedOutput::default() };
        confirmed = waits.map_or(Value::Null, |_| fill(&decision, answer));
        if confirmed.is_null() {
            let slots = task.wanted.iter().zip(&mut outputs);
            for (wanted, output) in slots.filter(|(wanted, _)| wanted.name == asked) {
                *output = fill(wanted, answer);
            }
        }
        let filled = outputs.iter().find(|output| !output.is_null());
        if let Some(value) = filled.filter(|_| open["confirm"] == true) {
            let written = || ExactValue::new(value.clone(), written_number(answer)).to_string();
            let value = value.as_str().map_or_else(written, str::to_owned);
            content = Some(confirms(open, &value));
        } else if filled.is_some() || confirmed == true || open["last"] == true {
            next = questions.iter().find(|question| !is_asked(question));
        } else if confirmed.is_null()
            && let Some(waits) = waits
        {
            content = Some(confirms(open, waits));
        }
    }
    let may_follow = input("conditional").is_some_and(|conditional| *conditional == true);
    if let (None, Some(open), Some(waits)) = (answer, open, waits) {
        content = Some(confirms(open, waits));
    }
    let done = answer.is_some() && next.is_none() && !may_follow;
    let question = next.filter(|_| !verbatim).map(|next| text(next, "question"));
    let content = content.or(question).unwrap_or_default();
    judged(task, outputs, &[], (done, &content), Some(confirmed))
}

/// The reply to an `ai_think`: its inputs joined, without the variable names, because a script may show the result to the person. The
/// content is an instruction to a model and is not used.
fn think(task: &Task) -> Value {
    let known = task.inputs.iter().map(|(_, value)| value).filter(|value| !value.is_null());
    let words = known.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let text = words.collect::<Vec<_>>().join(" / ");
    let outputs = task.wanted.iter().map(|wanted| match wanted.declared {
        _ if text.is_empty() => Value::Null,
        None | Some(DeclaredType::String) if wanted.choices.is_empty() => Value::String(text.clone()),
        _ => fill(wanted, &text),
    });
    let outputs = outputs.collect();
    let mut reply = Map::new();
    reply.insert("BRIEF".to_owned(), Value::from(""));
    add_outputs(&mut reply, &task.wanted, outputs);
    Value::Object(reply)
}

/// The next behavior of a step: a section for the first item of its todo list, or else for its target. Its text is a placeholder.
fn behavior(task: &Task) -> Value {
    let todo = known_todo(task);
    let heading = todo.first().copied().unwrap_or(&task.content);
    let removed = todo.first().map(|item| json!({ "operation": "remove", "items": [item] }));
    json!({
        "behavior": { "target": heading },
        "actions": [
            { "action": "new_section", "content": heading },
            { "action": "add", "content_type": "text", "content": NOT_WRITTEN },
        ],
        "context_update": { "variables": {}, "todo_list_update": removed, "section_progress": null },
        "transition": { "target_achieved": todo.len() <= 1, "reason": not_assessed(task) },
    })
}

fn is_chinese(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{3400}'..='\u{9fff}'))
}

/// The placeholder in the language of the author's text.
fn not_assessed(task: &Task) -> &'static str {
    let texts = task.wanted.iter().filter_map(|wanted| wanted.define.as_deref()).chain([task.content.as_str()]);
    if texts.into_iter().any(is_chinese) { NOT_ASSESSED } else { NOT_ASSESSED_ENGLISH }
}

/// The reflection on a behavior: the step is done when its todo list is empty.
fn reflection(task: &Task) -> Value {
    json!({ "target_achieved": known_todo(task).is_empty(), "reason": not_assessed(task) })
}

/// A plan without divisions: one stage, one step, and one behavior for the goal.
fn workflow_plan(task: &Task) -> Value {
    let goal = task.content.as_str();
    match task.inputs.iter().find(|(name, _)| name == "level").and_then(|(_, level)| level.as_str()) {
        Some("stages") => json!({ "stages": [{ "stage_id": "stage_1", "title": goal, "goal": goal }] }),
        Some("steps") => json!({ "steps": [{ "step_id": "step_1", "title": goal, "goal": goal }] }),
        _ => json!({ "behavior": { "task": goal } }),
    }
}

fn known_todo(task: &Task) -> Vec<&str> {
    let list = task.inputs.iter().find(|(name, _)| name == "todo_list").and_then(|(_, list)| list.as_array());
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn add_outputs(reply: &mut Map<String, Value>, wanted: &[WantedOutput], outputs: Vec<Value>) {
    for (wanted, value) in wanted.iter().zip(outputs) {
        reply.entry(wanted.name.as_str()).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::provider::NoLiveOutput;
    use crate::providers::http::fake::CapturedDeltas;

    fn wanted(name: &str, declared: Option<DeclaredType>) -> WantedOutput {
        WantedOutput { name: name.into(), declared, ..WantedOutput::default() }
    }

    fn task(kind: &str, answer: Option<&str>, wanted: Vec<WantedOutput>) -> Task {
        Task {
            kind: kind.into(),
            action_id: "ask_age".into(),
            content: "您多大了？".into(),
            wanted,
            answer: answer.map(str::to_owned),
            round: 1,
            opening: answer.is_none(),
            ..Task::default()
        }
    }

    #[test]
    fn the_placeholder_for_an_assessment_is_in_the_language_of_the_author() {
        let assessments = |content: &str| {
            let reply = respond(&Task { content: content.into(), ..task("ai_ask", None, Vec::new()) });
            (reply["metrics"]["user_engagement"].clone(), reply["metadata"]["emotional_tone"].clone())
        };
        assert_eq!(assessments("How old are you?"), (NOT_ASSESSED_ENGLISH.into(), NOT_ASSESSED_ENGLISH.into()));
        assert_eq!(assessments("您多大了？"), (NOT_ASSESSED.into(), NOT_ASSESSED.into()));
    }

    #[test]
    fn an_opening_turn_sends_the_content_and_fills_nothing() {
        for kind in ["ai_ask", "ai_say"] {
            let reply = respond(&task(kind, None, vec![wanted("age", Some(DeclaredType::Integer))]));
            assert_eq!(reply["content"], "您多大了？", "{kind}");
            assert_eq!(reply["EXIT"], "NO");
            assert_eq!(reply["progress_suggestion"], "continue_needed");
            assert_eq!(reply["age"], Value::Null);
        }
    }

    #[test]
    fn the_fields_are_in_the_order_of_the_templates() {
        let reply = respond(&task("ai_ask", Some("35"), vec![wanted("age", None), wanted("名字", None)]));
        let names: Vec<&String> = reply.as_object().unwrap().keys().collect();
        let expected =
            ["BRIEF", "age", "名字", "EXIT", "progress_suggestion", "metadata", "safety_risk", "content", "metrics"];
        assert_eq!(names, expected);
        let metrics =
            |kind| respond(&task(kind, None, vec![]))["metrics"].as_object().unwrap().keys().cloned().collect();
        let (ask, say): (Vec<_>, Vec<_>) = (metrics("ai_ask"), metrics("ai_say"));
        assert_eq!(ask, ASK_METRICS);
        assert_eq!(say, SAY_METRICS);
    }

    #[test]
    fn a_number_keeps_the_digits_of_the_answer() {
        let number = |name| wanted(name, Some(DeclaredType::Number));
        let table = [
            ("一共 8500.50 元", r#""price":8500.50,"#),
            ("1.0", r#""price":1.0,"#),
            ("８．１０", r#""price":8.10,"#),
            ("35", r#""price":35,"#),
            ("1.10 和 2.20", r#""price":null,"#),
        ];
        for (answer, expected) in table {
            let text = reply_text(&task("ai_ask", Some(answer), vec![number("price"), wanted("words", None)]));
            assert!(text.contains(expected), "{text}");
            assert!(text.contains(&format!(r#""words":"{answer}""#)), "{text}");
        }
        let whole = task("ai_ask", Some("35.0"), vec![wanted("age", Some(DeclaredType::Integer))]);
        assert!(reply_text(&whole).contains(r#""age":35,"#));
        let questions = json!([{ "get": "price", "meaning": "价格", "confirm": true }]);
        let inputs = vec![("asked".to_owned(), json!("price")), ("questions".to_owned(), questions)];
        let collect = Task { inputs, ..task("collect", Some("8500.50"), vec![number("price")]) };
        assert!(reply_text(&collect).contains("价格：8500.50，对吗？"));
    }

    #[test]
    fn an_ask_ends_when_all_outputs_are_filled() {
        let age = || wanted("age", Some(DeclaredType::Integer));
        let table = [
            ("我三十五岁", vec![age()], "YES", json!(35)),
            ("不想说", vec![age()], "NO", Value::Null),
            ("35", vec![age(), wanted("date", Some(DeclaredType::Date))], "NO", json!(35)),
            (" \t", vec![], "NO", Value::Null),
            ("", vec![age()], "NO", Value::Null),
            ("随便", vec![], "YES", Value::Null),
        ];
        for (answer, wanted, exit, age) in table {
            let reply = respond(&task("ai_ask", Some(answer), wanted));
            assert_eq!(reply["EXIT"], exit, "{answer:?}");
            assert_eq!(reply["content"], if exit == "YES" { "" } else { "您多大了？" });
            assert_eq!(reply["progress_suggestion"], if exit == "YES" { "completed" } else { "continue_needed" });
            assert_eq!(reply.get("age").cloned().unwrap_or_default(), age, "{answer:?}");
        }
    }

    #[test]
    fn any_answer_to_an_ai_say_ends_it() {
        for answer in ["明白了", ""] {
            let reply = respond(&task("ai_say", Some(answer), vec![]));
            assert_eq!((&reply["EXIT"], &reply["content"]), (&json!("YES"), &json!("")));
        }
    }

    #[test]
    fn an_ai_think_joins_its_inputs() {
        let outputs = || {
            vec![
                wanted("summary", None),
                wanted("age", Some(DeclaredType::Number)),
                wanted("ok", Some(DeclaredType::Boolean)),
            ]
        };
        let mut with_inputs = task("ai_think", None, outputs());
        with_inputs.inputs = vec![
            ("姓名".into(), json!("小林")),
            ("nothing".into(), Value::Null),
            ("child_2_age".into(), json!(7)),
            ("家人".into(), json!(["父亲"])),
        ];
        let reply = respond(&with_inputs);
        let summary = "小林 / 7 / [\"父亲\"]";
        assert_eq!(reply, json!({ "BRIEF": "", "summary": summary, "age": 7, "ok": null }));
        // The content is not used, because a script may show the result.
        let reply = respond(&task("ai_think", None, outputs()));
        assert_eq!(reply, json!({ "BRIEF": "", "summary": null, "age": null, "ok": null }));
    }

    #[test]
    fn a_step_adds_a_section_per_todo_item_and_ends_after_the_last() {
        let table = [(vec!["背景", "主题"], "背景", false), (vec!["主题"], "主题", true), (vec![], "您多大了？", true)];
        for (todo, heading, last) in table {
            let mut task = task("behavior", None, vec![]);
            task.inputs = vec![("todo_list".into(), json!(todo))];
            let reply = respond(&task);
            assert_eq!(reply["actions"][0], json!({ "action": "new_section", "content": heading }));
            assert_eq!(reply["transition"]["target_achieved"], last, "{todo:?}");
            let removed = if todo.is_empty() { Value::Null } else { json!([heading]) };
            assert_eq!(reply["context_update"]["todo_list_update"]["items"], removed);
            task.kind = "reflection".into();
            assert_eq!(respond(&task)["target_achieved"], todo.is_empty());
        }
    }

    #[test]
    fn an_output_never_replaces_a_field() {
        let reply = respond(&task("ai_ask", Some("x"), vec![wanted("EXIT", None)]));
        assert_eq!(reply["EXIT"], "YES");
    }

    #[tokio::test]
    async fn the_text_is_json_and_is_streamed_in_one_piece() {
        let task = task("ai_ask", Some("我说\"{{ x }}\"\n</think>```"), vec![wanted("said", None)]);
        let request = ModelRequest { task, ..ModelRequest::default() };
        let mut pieces = CapturedDeltas::default();
        let reply = Offline.complete(&request, &mut pieces).await.unwrap();
        assert_eq!(pieces.0, std::slice::from_ref(&reply.text));
        let value: Value = serde_json::from_str(&reply.text).unwrap();
        assert_eq!(value["said"], "我说\"{{ x }}\"\n</think>```");
        assert_eq!(Offline.complete(&request, &mut NoLiveOutput).await.unwrap(), reply);
        assert_eq!((reply.model.as_str(), reply.tokens_in, reply.attempts), ("offline", None, 1));
    }

    #[tokio::test]
    async fn it_answers_only_actions() {
        for purpose in [Purpose::Monitor, Purpose::Orchestrator] {
            let task = Task { purpose, ..task("ai_ask", Some("x"), vec![]) };
            let error = Offline
                .complete(&ModelRequest { task, ..ModelRequest::default() }, &mut NoLiveOutput)
                .await
                .unwrap_err();
            assert!(matches!(error, ModelError::NoReply { .. }));
        }
    }
}
