//! The trace of `/why`: the events of a session as text for the script author.

use std::collections::HashSet;
use std::fmt::Display;

use serde_json::Value;

use crate::cli::commands::outcome::outcome;
use crate::cli::language::{chosen, filled, translated};
use crate::cli::table::padded;
use bcc_engine::history::used_feedback;
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::value::exact::ExactValue;
use bcc_runtime::program::stored_event::message_at;

/// The limit on the characters of a value.
const MAX_CHARACTERS: usize = 200;

/// The lines about the decisions in these events, in order. With `raw`, turns include the raw reply.
pub fn trace(events: &[ExactValue], raw: bool) -> Vec<String> {
    let trace = Trace { events, raw, used: events.iter().filter_map(|event| used_feedback(event)).collect() };
    let mut lines = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let event_lines = trace.lines(number, event);
        // A turn starts a paragraph.
        if !lines.is_empty() && !event_lines.is_empty() && matches!(field(event, "type"), "outcome" | "message") {
            lines.push(String::new());
        }
        lines.extend(event_lines);
    }
    lines
}

struct Trace<'e> {
    events: &'e [ExactValue],
    raw: bool,
    /// The seqs of the feedback that was used by a turn.
    used: HashSet<u64>,
}

impl Trace<'_> {
    fn lines(&self, number: usize, event: &ExactValue) -> Vec<String> {
        let get = |name: &str| field(event, name);
        let location = || place(event);
        let one = |name: &str, text: &str| vec![label(name, text)];
        match get("type") {
            "message" if get("role") == "user" => {
                let values = [("place", location()), ("answer", short(event.get("text").unwrap_or(&Value::Null)))];
                vec![filled("── your answer at {place}: {answer} ──", &by_name(&values))]
            }
            "taken_back" => one("taken back", &translated("your last answer, and what followed from it")),
            "session_resumed" => one("resumed", &translated("by another process or at another time")),
            "phase_entered" => one("entered", &filled("the phase {name}", &[("name", &named(event, "phase_id"))])),
            "topic_entered" => {
                let values = [("name", named(event, "topic_id")), ("place", location())];
                one("entered", &filled("the topic {name} ({place})", &by_name(&values)))
            }
            "action_started" => one("started", &format!("{} ({})", location(), get("name"))),
            // The decision about the budget already contains this.
            "skipped" if self.before(number).is_some_and(|before| is_same_decision(before, event)) => Vec::new(),
            "skipped" => one("skipped", &with_reason(get("name"), &message(event, "/why"))),
            "message_discarded" => one("discarded", &translated("the text that was already shown")),
            "variable_set" if !self.is_extracted(event) => {
                let value = short(&event.field("value").unwrap_or_default());
                let values =
                    [("name", get("name")), ("value", &value), ("scope", get("scope")), ("source", get("source"))];
                one("set", &filled("{name} = {value} ({scope}, by {source})", &values))
            }
            "model_call" => call(event),
            "outcome" => outcome(event, self.call_of(number, event), self.raw),
            "routed" => one("route", &decision(event)),
            "triggered" => one("trigger", &decision(event)),
            "monitor_feedback" => match used_feedback(event) {
                Some(seq) => one("advice used", &self.advice(seq, event)),
                None => self.feedback(event),
            },
            "orchestrated" => plan(event),
            "undone" if event.get("complete") == Some(&Value::Bool(true)) => one("undone", &location()),
            "undone" => one("undone", &filled("{place}, but not completely", &[("place", &location())])),
            "budget_reached" => one("budget", &decision(event)),
            // The outcome of the turn already contains this.
            "warning" if get("code") == "reply-bent" => Vec::new(),
            "warning" | "error" => {
                let mut lines = one(get("type"), &message(event, "/message"));
                if !get("help").is_empty() {
                    lines.push(label("  help", &message(event, "/help")));
                }
                lines
            }
            "waiting" if get("for") == "interrupted_effect" => {
                one("waiting", &translated("for your decision on what was interrupted"))
            }
            "waiting" => one("waiting", &translated("for your answer")),
            "effect_started" | "effect_finished" | "notebook_action" | "cell" | "behavior" => effect_lines(event),
            "session_completed" => one("ended", &translated("the session is complete")),
            "session_failed" => one("ended", &translated("the session failed")),
            "session_stopped" => one("stopped", &message(event, "/summary/reason")),
            _ => Vec::new(),
        }
    }

    fn before(&self, number: usize) -> Option<&Value> {
        self.events.get(number.checked_sub(1)?).map(|event| &**event)
    }

    /// The call with the reply of an outcome: the last call of its action before it.
    fn call_of(&self, number: usize, outcome: &Value) -> &Value {
        let has_reply = outcome.pointer("/metadata/parse_retry_count").is_some();
        let path = outcome.pointer("/location/path");
        let is_its_call = |event: &&Value| {
            has_reply
                && field(event, "type") == "model_call"
                && field(event, "purpose") == "action"
                && event.pointer("/location/path") == path
        };
        let mut earlier = self.events.iter().take(number).rev().map(|event| &**event);
        earlier.find(is_its_call).unwrap_or(&Value::Null)
    }

    /// Whether the outcome of the same turn already contains this variable.
    fn is_extracted(&self, set: &Value) -> bool {
        let path = set.pointer("/location/path");
        self.events.iter().any(|event| {
            let value = event.get("extracted_variables").and_then(|variables| variables.get(field(set, "name")));
            value.is_some() && value == set.get("value") && event.pointer("/location/path") == path
        })
    }

    fn feedback(&self, event: &Value) -> Vec<String> {
        let analysis = |name: &str| event.pointer(&format!("/analysis/{name}")).and_then(Value::as_str);
        let round = text(event.get("round"));
        let of = filled("of {action}, round {round}", &[("action", field(event, "action_id")), ("round", &round)]);
        if event.pointer("/analysis/metadata/parse_error") == Some(&Value::Bool(true)) {
            return vec![label(
                "monitor",
                &format!("{of}: {}", translated("its reply could not be read, so there is no advice")),
            )];
        }
        // A parsed reply has the number of the strategy, which is not 0.
        if event.pointer("/analysis/metadata/parse_retry_count").and_then(Value::as_u64) == Some(0) {
            return vec![label("monitor", &format!("{of}: {}", translated("it gave no reply, so there is no advice")))];
        }
        let (reason, strategy) = (analysis("intervention_reason"), analysis("strategy_suggestion"));
        let values =
            [("of", of.as_str()), ("reason", reason.unwrap_or("normal")), ("what", strategy.unwrap_or("continue"))];
        let mut lines = vec![label("monitor", &filled("{of}: {reason}, suggests {what}", &values))];
        for name in ["feedback_for_action", "modified_approach", "example_suggestion", "orchestration_reason"] {
            if let Some(text) = analysis(name).filter(|text| !text.is_empty()) {
                lines.push(label("  feedback", &format!("{text} ({name})")));
            }
        }
        let seq = event.get("seq").and_then(Value::as_u64).unwrap_or_default();
        let used = match analysis("feedback_for_action") {
            None | Some("") => "no advice for the action",
            Some(_) if self.used.contains(&seq) => "used by a turn below",
            Some(_) => "not used by any turn so far",
        };
        lines.push(label("  used", &translated(used)));
        lines
    }

    fn advice(&self, seq: u64, event: &Value) -> String {
        let is_shown = self.events.iter().any(|event| event.get("seq").and_then(Value::as_u64) == Some(seq));
        let (action, round) = (field(event, "action_id"), text(event.get("round")));
        let advice = event.pointer("/analysis/feedback_for_action").map(short).filter(|_| !is_shown);
        let advice = advice.map(|advice| format!(": {advice}")).unwrap_or_default();
        let values = [("action", action), ("round", &round), ("words", &advice)];
        filled("this turn received the monitor's advice for {action}, round {round}{words}", &values)
    }
}

/// The lines about an external effect, or a change of the notebook.
fn effect_lines(event: &Value) -> Vec<String> {
    let get = |name: &str| field(event, name);
    let (kind, summary) = (get("kind"), message(event, "/summary"));
    let line = match get("type") {
        "effect_started" => {
            label("effect", &filled("{kind} started: {summary}", &[("kind", kind), ("summary", &summary)]))
        }
        "effect_finished" => {
            label("effect", &filled("{kind} finished: {summary}", &[("kind", kind), ("summary", &summary)]))
        }
        "notebook_action" => {
            let (by, cell) = (translated(get("by")), get("cell_id"));
            let cell = if cell.is_empty() { String::new() } else { format!(" {cell}") };
            let error = if get("error").is_empty() { String::new() } else { format!(": {}", message(event, "/error")) };
            let values = [("action", get("action")), ("cell", &*cell), ("by", &*by), ("error", &*error)];
            label("notebook", &filled("{action}{cell} (by the {by}){error}", &values))
        }
        "cell" => {
            let (number, ended) = (text(event.get("number")), translated(get("ended")));
            let ended = if ended.is_empty() { String::new() } else { format!(", {ended}") };
            let content = short(event.get("content").unwrap_or(&Value::Null));
            let kind = translated(get("cell_type"));
            let values = [
                ("number", &*number),
                ("id", get("cell_id")),
                ("kind", &*kind),
                ("ended", &*ended),
                ("content", &*content),
            ];
            label("  cell", &filled("{number} {id} ({kind}{ended}): {content}", &values))
        }
        _ => {
            let achieved = event.get("target_achieved") == Some(&Value::Bool(true));
            let achieved = translated(if achieved {
                "the target has been achieved"
            } else {
                "the target has not been achieved yet"
            });
            let (iteration, why) = (text(event.get("iteration")), message(event, "/why"));
            let values = [
                ("id", get("behavior_id")),
                ("iteration", &*iteration),
                ("achieved", &*achieved),
                ("by", get("decided_by")),
                ("why", &*why),
            ];
            label("behavior", &filled("{id}, iteration {iteration}: {achieved} ({by}: {why})", &values))
        }
    };
    vec![line]
}

fn is_same_decision(before: &Value, event: &Value) -> bool {
    field(before, "type") == "budget_reached" && before.get("why") == event.get("why")
}

fn decision(event: &Value) -> String {
    format!("{} → {}   ({})", field(event, "reason"), field(event, "route"), message(event, "/why"))
}

/// The line about a failed call. Successful calls, and calls of actions that the outcome reports, have none.
fn call(event: &Value) -> Vec<String> {
    let purpose = field(event, "purpose");
    let has_unparsed_reply = event.get("parse_retry_count").is_some_and(|count| !count.is_null());
    match event.get("error").and_then(Value::as_str) {
        // The outcome of the action reports why the reply could not be parsed.
        Some(_) if has_unparsed_reply && purpose == "action" => Vec::new(),
        Some(_) => {
            let values = [("purpose", &*translated(purpose)), ("error", &*message(event, "/error"))];
            vec![label("model", &filled("the call for the {purpose} failed: {error}", &values))]
        }
        None => Vec::new(),
    }
}

fn plan(event: &Value) -> Vec<String> {
    let mut lines = vec![label("plan", &plan_summary(event))];
    if event.get("accepted") == Some(&Value::Bool(true)) {
        lines.push(label("  as written", &ids(event, "original")));
        lines.push(label("  now", &ids(event, "now")));
    }
    lines
}

/// A plan in one line: its change, whether it was accepted, the reason, and what requested it.
pub fn plan_summary(event: &Value) -> String {
    let status = match event.get("accepted") {
        Some(Value::Bool(true)) => "accepted",
        _ => "refused, and nothing was changed",
    };
    let request = match field(event, "reason") {
        "" => String::new(),
        reason => format!("   {}", filled("(requested because of {reason})", &[("reason", reason)])),
    };
    let change = format!("{} {}", field(event, "route"), translated(status));
    format!("{}{request}", with_reason(&change, &message(event, "/why")))
}

fn with_reason(what: &str, reason: &str) -> String {
    translated(&Message::list(Joint::Colon, [what, reason].map(Message::text))).into_owned()
}

/// The message at a pointer of a stored event, in the language of the person.
pub fn message(event: &Value, pointer: &str) -> String {
    message_at(event, pointer).render(chosen())
}

/// The ids in the list `name`, separated by commas.
pub fn ids(event: &Value, name: &str) -> String {
    let ids = event.get(name).and_then(Value::as_array).into_iter().flatten();
    ids.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn named(event: &Value, id: &str) -> String {
    let id = event.pointer(&format!("/location/{id}")).and_then(Value::as_str).unwrap_or("–");
    match field(event, "name") {
        "" => id.to_owned(),
        name if name == id => id.to_owned(),
        name => format!("{name} [{id}]"),
    }
}

fn place(event: &Value) -> String {
    let path = event.pointer("/location/path").and_then(Value::as_str).filter(|path| !path.is_empty());
    let round = event.pointer("/location/round").and_then(Value::as_u64);
    let round = round.map(|round| filled(", round {round}", &[("round", &round.to_string())])).unwrap_or_default();
    format!("{}{round}", path.map_or_else(|| translated("the beginning"), Into::into))
}

/// The text of the field `name`; empty if there is none.
pub fn field<'e>(event: &'e Value, name: &str) -> &'e str {
    event.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A line with a label, which is translated, and a text, which is already translated.
pub fn label(name: &str, text: &str) -> String {
    let inner = name.trim_start();
    let indent = name.get(..name.len() - inner.len()).unwrap_or_default();
    format!("{} {text}", padded(&format!("{indent}{}", translated(inner)), 12))
}

/// Converts values to arguments of [`filled`].
pub fn by_name<'v, const N: usize>(values: &'v [(&'static str, String); N]) -> [(&'static str, &'v str); N] {
    values.each_ref().map(|(name, value)| (*name, value.as_str()))
}

/// A value as text; a dash for none.
pub fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A number of times as text: once, twice, 3 times.
pub fn times(count: u64) -> String {
    match count {
        1 => translated("once").into_owned(),
        2 => translated("twice").into_owned(),
        count => filled("{count} times", &[("count", &count.to_string())]),
    }
}

/// A value as JSON on one line, cut at the limit.
pub fn short(value: &impl Display) -> String {
    let text = value.to_string();
    if text.chars().count() <= MAX_CHARACTERS {
        return text;
    }
    let cut: String = text.chars().take(MAX_CHARACTERS).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests;
