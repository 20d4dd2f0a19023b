//! One turn in the trace of `/why`: its outcome, and how the reply of the model was parsed.

use serde_json::Value;

use crate::cli::commands::trace::{by_name, label, message, short, text, times};
use crate::cli::language::{chosen, filled, translated};
use bcc_lang::message::message::{Joint, Message};
use bcc_lang::value::exact::ExactValue;
use bcc_llm::reply::coerce::shape_words;
use bcc_llm::reply::strategies::ParseStrategy;
use bcc_runtime::program::stored_event::message_at;

/// The lines about `outcome`. `call` is the model call with its reply, or null.
pub fn outcome(outcome: &ExactValue, call: &Value, raw: bool) -> Vec<String> {
    let at = |pointer: &str| text(outcome.pointer(pointer));
    let path = at("/location/path");
    // Only conversations have rounds.
    let has_rounds = outcome.pointer("/metadata/current_round").is_some_and(|round| !round.is_null());
    let mut lines = vec![label(
        "action",
        &if has_rounds {
            let (round, max_rounds) = (at("/metadata/current_round"), at("/metadata/max_rounds"));
            filled(
                "{path} (round {round} of {most})",
                &by_name(&[("path", path), ("round", round), ("most", max_rounds)]),
            )
        } else {
            format!("{path} ({})", at("/action_type"))
        },
    )];
    lines.push(label("completed", &completed(outcome)));
    // Before an answer, there is no suggestion about it.
    if has_rounds && fields(outcome, "metrics").next().is_some() {
        lines.push(label("suggestion", &at("/progress_suggestion")));
    }
    if outcome.pointer("/metadata/error_message").is_some_and(Value::is_string)
        && outcome.pointer("/debug_info/parse_error").is_none()
    {
        lines.push(label("error", &message(outcome, "/metadata/error_message")));
    }
    if let Some(reason) = outcome.pointer("/metadata/held_back").and_then(Value::as_str) {
        lines.push(label(
            "held back",
            &filled("the model marked the reply as unsafe, so it was not shown: {reason}", &[("reason", reason)]),
        ));
    }
    for (name, metric) in fields(outcome, "metrics") {
        lines.push(label("metric", &format!("{name}: {}", metric.as_str().unwrap_or_default())));
    }
    for (name, value) in outcome.field("extracted_variables").iter().flat_map(ExactValue::fields) {
        lines.push(label("extracted", &format!("{name} = {}", short(&value))));
    }
    lines.extend(parsing(outcome, call));
    if raw && outcome.pointer("/debug_info/llm_response").is_some() {
        lines.push(format!("{}\n{}", translated("raw reply:"), at("/debug_info/llm_response")));
    } else if outcome.pointer("/debug_info/parse_error").is_some() {
        lines.push(translated("  /why raw shows what the model wrote, /prompt shows what was sent to it").into_owned());
    }
    lines
}

fn fields<'v>(outcome: &'v Value, name: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    outcome.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn completed(outcome: &Value) -> String {
    let done = if outcome.get("completed") == Some(&Value::Bool(true)) { "yes" } else { "no" };
    match outcome.get("exit_reason").and_then(Value::as_str) {
        Some(reason) => {
            let values =
                [("done", &*translated(done)), ("reason", reason), ("words", &*translated(exit_reason_text(reason)))];
            filled("{done}, exit reason {reason}: {words}", &values)
        }
        None if done == "yes" => translated(done).into_owned(),
        None if fields(outcome, "metrics").next().is_none() => {
            translated("no: it is waiting for an answer").into_owned()
        }
        None => translated("no: nothing ended it, so it has another round").into_owned(),
    }
}

/// The meaning of an exit reason, for people.
fn exit_reason_text(reason: &str) -> &'static str {
    match reason {
        "exit_criteria_met" => "the goal is reached",
        "max_rounds_reached" => "the last round was answered",
        "user_blocked" => "according to the model, the person is stuck",
        "off_topic" => "according to the model, the person is talking about something else",
        "approved" => "it was approved",
        "rejected" => "it was rejected",
        "timed_out" => "there was no decision in time",
        "branch_failed" => "a branch failed",
        "skipped" => "the action was skipped",
        _ => "the action ended with an error",
    }
}

/// How the reply was parsed: the strategy, repairs and coercions; or why it could not be parsed.
fn parsing(outcome: &Value, call: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(attempts) = call.get("attempts").and_then(Value::as_u64).filter(|attempts| *attempts > 1) {
        lines.push(label("model", &filled("answered on attempt {attempts}", &[("attempts", &attempts.to_string())])));
    }
    if let Some(reask) = call.get("reask").and_then(Value::as_u64).filter(|reask| *reask > 0) {
        let text = filled("the model was asked again {times} for this turn", &[("times", &times(reask))]);
        lines.push(label("asked again", &text));
    }
    let error = outcome.pointer("/debug_info/parse_error");
    let count = outcome.pointer("/metadata/parse_retry_count").and_then(Value::as_u64);
    if let (Some(count), None) = (count, error) {
        let strategy = ParseStrategy::ALL.into_iter().find(|strategy| u64::from(strategy.number()) == count);
        let name = strategy.map(|strategy| format!(" ({})", strategy.name())).unwrap_or_default();
        let values = [("count", count.to_string()), ("name", name)];
        lines.push(label("reply read", &filled("by strategy {count}{name}", &by_name(&values))));
    }
    let repairs = call.get("repairs").and_then(Value::as_array).map_or(0, Vec::len);
    if repairs > 0 {
        let mut kinds: Vec<String> = call
            .get("repairs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|repair| text(repair.get("kind")))
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        let places = translated(if repairs == 1 { "one place" } else { "several places" });
        let values = [("places", &*places), ("kinds", &kinds.join(", "))];
        lines
            .push(label("repaired", &filled("the reply was near-JSON and was repaired in {places}: {kinds}", &values)));
    }
    for coercion in call.get("bent").and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| coercion.get(name).and_then(Value::as_str).unwrap_or_default();
        let effect = match field("bending") {
            "coerced" => "converted to the expected type",
            _ => "omitted or set to its default",
        };
        let values = [
            ("path", field("path")),
            ("bending", &*translated(field("bending"))),
            ("became", &*translated(effect)),
            ("expected", &shape_words(field("expected")).render(chosen())),
            ("found", &shape_words(field("found")).render(chosen())),
        ];
        let literal = "{path}: {bending}, {became} (expected {expected}, found {found})";
        lines.push(label("converted", &filled(literal, &values)));
    }
    if let Some(error) = error {
        let list = |name: &str, join: &str| {
            let items = error.get(name).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).collect::<Vec<_>>().join(join)
        };
        lines.push(translated("the model's reply could not be read").into_owned());
        let values = [("count", text(error.get("retry_count"))), ("ways", list("strategies", " → "))];
        lines.push(label("  tried", &filled("{count} strategies: {ways}", &by_name(&values))));
        let errors = error.get("errors").and_then(Value::as_array).map_or(0, Vec::len);
        let at = |number| message_at(outcome, &format!("/debug_info/parse_error/errors/{number}"));
        let errors = Message::list(Joint::Semicolon, (0..errors).map(at));
        lines.push(label("  errors", &errors.render(chosen())));
        lines.push(label("  final error", &message(outcome, "/debug_info/parse_error/final_error")));
    }
    lines
}
