//! Conversations as data (`tests/conversations/`, see its README). Raw model replies go through the whole interpreter. Each conversation
//! runs three times: uninterrupted, and with the process dying before and after every commit.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::conversation::{Case, Record, Refused, run};
use crate::crashing_store::CrashMode;

/// The expected result of a case. What is not listed must not happen, except if a field is omitted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// Parts of the report if the script is rejected; then nothing else is checked.
    #[serde(rename = "refused")]
    rejected: Option<Vec<String>>,
    /// The number of errors in that report.
    #[serde(rename = "faults")]
    error_count: Option<usize>,
    #[serde(default)]
    status: String,
    #[serde(default, rename = "said")]
    messages: Vec<String>,
    #[serde(default)]
    calls: usize,
    /// Every outcome: `at: action/round`, and parts of the outcome by dotted path.
    outcomes: Option<Vec<Map<String, Value>>>,
    /// Every entry of the export's history of metrics: `at`, and some metrics, or the `action_type`.
    metrics: Option<Vec<Map<String, Value>>>,
    /// Every variable with a value: the value, or `{ is, by, round }`.
    variables: Option<BTreeMap<String, Value>>,
    events: Option<Vec<String>>,
    /// Every decision except the default one to continue: `action reason → route (why)`.
    routes: Option<Vec<String>>,
    /// `name: why` of everything that was skipped.
    #[serde(default)]
    skipped: Vec<String>,
    /// A part of `reason → route (from): why` for every decision about budget and time.
    #[serde(default)]
    budget: Vec<String>,
    /// Codes of all warnings.
    #[serde(default)]
    warnings: Vec<String>,
    /// A part of `code: message` for every error.
    #[serde(default)]
    errors: Vec<String>,
    /// Every `monitor_feedback`: `at: action/round` of the analyzed turn, and parts of the event by dotted path.
    monitors: Option<Vec<Map<String, Value>>>,
    /// Parts of the prompt of every call of a monitor: `{ has, lacks, roles, whole }`.
    monitor_prompts: Option<Vec<Value>>,
    /// Every plan: `from: route (why)`, then ` → ` and the ids of the topic's actions as they will run, or `refused`.
    plans: Option<Vec<String>>,
    /// Texts that no event, outcome or export contains.
    #[serde(default)]
    hidden: Vec<String>,
}

#[test]
fn every_conversation_runs_as_its_file_expects() {
    for_each_case(|name, case| match (run(case, CrashMode::Never), &case.expect.rejected) {
        (Ok(record), None) => check(name, &case.expect, &record),
        (Err(Refused(report)), Some(parts)) => {
            for part in parts {
                assert!(report.contains(part), "{name}: not in the report: {part}\n{report}");
            }
            if let Some(error_count) = case.expect.error_count {
                assert_eq!(error_count, report.matches("error[").count(), "{name}\n{report}");
            }
        }
        (Ok(_), Some(_)) => panic!("{name}: was not refused"),
        (Err(Refused(report)), None) => panic!("{name}: refused\n{report}"),
    });
}

#[test]
fn every_conversation_is_the_same_when_the_process_dies_before_each_commit() {
    for_each_case(|name, case| is_the_same(name, case, CrashMode::Before));
}

#[test]
fn every_conversation_is_the_same_when_the_process_dies_after_each_commit() {
    for_each_case(|name, case| is_the_same(name, case, CrashMode::After));
}

fn is_the_same(name: &str, case: &Case<Expect>, death: CrashMode) {
    let Ok(uninterrupted) = run(case, CrashMode::Never) else { return };
    let Ok(interrupted) = run(case, death) else { panic!("{name}: refused when run again") };
    uninterrupted.assert_same(&interrupted, name);
    check_hidden(name, &case.expect, &interrupted);
}

/// Calls `visit` for every case (only those whose names contain `$CONVERSATION`). The other cases run even if one fails.
fn for_each_case(visit: impl Fn(&str, &Case<Expect>)) {
    let folder = Path::new(crate::ROOT).join("tests/conversations");
    let name_filter = std::env::var("CONVERSATION").unwrap_or_default();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() > 80, "only {} cases", files.len());
    let mut failed = Vec::new();
    for path in &files {
        let name = path.file_stem().unwrap().to_string_lossy();
        if !name.contains(&name_filter) {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let case = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            visit(&name, &case);
        }));
        if result.is_err() {
            failed.push(name.into_owned());
        }
    }
    assert!(failed.is_empty(), "{} of {} failed:\n{}", failed.len(), files.len(), failed.join("\n"));
}

fn check(name: &str, expect: &Expect, record: &Record) {
    let events_of = |kind: &'static str| record.events.iter().filter(move |event| event["type"] == kind);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let errors: Vec<String> =
        events_of("error").map(|event| format!("{}: {}", text(&event["code"]), text(&event["message"]))).collect();
    assert_eq!(expect.messages, record.said, "{name}: what was said; errors: {errors:?}");
    assert_eq!(expect.errors.len(), errors.len(), "{name}: {errors:?}");
    for (part, error) in expect.errors.iter().zip(&errors) {
        assert!(error.contains(part), "{name}: {part:?} is not in {error:?}");
    }
    assert_eq!(expect.status, record.status, "{name}: status");
    assert_eq!(expect.calls, events_of("model_call").count(), "{name}: model calls");
    let warnings: Vec<String> = events_of("warning").map(|event| text(&event["code"])).collect();
    assert_eq!(expect.warnings, warnings, "{name}: {:#?}", events_of("warning").collect::<Vec<_>>());
    let skipped: Vec<String> =
        events_of("skipped").map(|event| format!("{}: {}", text(&event["name"]), text(&event["why"]))).collect();
    assert_eq!(expect.skipped, skipped, "{name}: skipped");
    let budget: Vec<String> = events_of("budget_reached")
        .map(|event| {
            let field = |name: &str| text(&event[name]);
            format!("{} → {} ({}): {}", field("reason"), field("route"), field("from"), field("why"))
        })
        .collect();
    assert_eq!(expect.budget.len(), budget.len(), "{name}: {budget:#?}");
    for (part, decision) in expect.budget.iter().zip(&budget) {
        assert!(decision.contains(part), "{name}: {part:?} is not in {decision:?}");
    }
    if let Some(routes) = &expect.routes {
        assert_eq!(*routes, decisions(&record.events), "{name}: routes");
    }
    if let Some(events) = &expect.events {
        let kinds: Vec<String> = record.events.iter().map(|event| text(&event["type"])).collect();
        assert_eq!(events, &kinds, "{name}: events");
    }
    if let Some(variables) = &expect.variables {
        check_variables(name, variables, &record.variables);
    }
    if let Some(outcomes) = &expect.outcomes {
        let places: Vec<String> = record.outcomes.iter().map(place).collect();
        let expected: Vec<String> = outcomes.iter().map(|outcome| text(&outcome["at"])).collect();
        assert_eq!(expected, places, "{name}: outcomes");
        for (parts, outcome) in outcomes.iter().zip(&record.outcomes) {
            check_outcome(&format!("{name}, outcome {}", place(outcome)), parts, outcome);
        }
    }
    if let Some(metrics) = &expect.metrics {
        assert_eq!(metrics.len(), record.metrics.len(), "{name}: history of metrics {:#?}", record.metrics);
        for (expected, found) in metrics.iter().zip(&record.metrics) {
            let at = format!("{}/{}", text(&found["action_id"]), found["round"]);
            assert_eq!(expected["at"], at, "{name}: history of metrics");
            for (metric, value) in expected.iter().filter(|(key, _)| *key != "at") {
                let fields = if metric == "action_type" { found } else { &found["metrics"] };
                assert_eq!(value, &fields[metric], "{name}: {metric} at {at}");
            }
        }
    }
    if let Some(monitors) = &expect.monitors {
        let feedback: Vec<&Value> = events_of("monitor_feedback").collect();
        let at = |event: &&Value| format!("{}/{}", text(&event["action_id"]), event["round"]);
        let expected: Vec<String> = monitors.iter().map(|monitor| text(&monitor["at"])).collect();
        assert_eq!(expected, feedback.iter().map(at).collect::<Vec<_>>(), "{name}: monitors {feedback:#?}");
        for (parts, event) in monitors.iter().zip(&feedback) {
            check_outcome(&format!("{name}, monitor of {}", at(event)), parts, event);
        }
    }
    if let Some(prompts) = &expect.monitor_prompts {
        let calls: Vec<&Value> = events_of("model_call").filter(|event| event["purpose"] == "monitor").collect();
        assert_eq!(prompts.len(), calls.len(), "{name}: calls of monitors");
        for (parts, call) in prompts.iter().zip(calls) {
            check_prompt(&format!("{name}, monitor"), parts, &call["debug_info"]["llm_prompt"]);
        }
    }
    if let Some(plans) = &expect.plans {
        let found: Vec<String> = events_of("orchestrated")
            .map(|event| {
                let now: Vec<String> = event["now"].as_array().unwrap().iter().map(text).collect();
                let now = if event["accepted"] == true { now.join(" ") } else { "refused".to_owned() };
                format!("{}: {} ({}) → {now}", text(&event["from"]), text(&event["route"]), text(&event["reason"]))
            })
            .collect();
        assert_eq!(*plans, found, "{name}: plans");
    }
    check_hidden(name, expect, record);
}

/// The decisions and their reasons, except the default one to continue after a completed action.
fn decisions(events: &[Value]) -> Vec<String> {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let is_decision = |event: &&Value| {
        let is_default =
            text(event, "why") == "no route is defined for it, and after a completed action the session continues";
        event["type"] == "triggered" || (event["type"] == "routed" && !is_default)
    };
    let decision = |event: &Value| {
        let [from, reason, route, why] = ["from", "reason", "route", "why"].map(|key| text(event, key));
        let from = if from.is_empty() { "session".to_owned() } else { from };
        format!("{from} {reason} → {route} ({why})")
    };
    events.iter().filter(is_decision).map(decision).collect()
}

fn check_hidden(name: &str, expect: &Expect, record: &Record) {
    for hidden in &expect.hidden {
        if let Some(at) = record.records.find(hidden.as_str()) {
            let from = record.records.floor_char_boundary(at.saturating_sub(200));
            panic!("{name}: {hidden} is not hidden: …{}", &record.records[from..at + hidden.len()]);
        }
    }
}

fn check_variables(name: &str, expected: &BTreeMap<String, Value>, found: &BTreeMap<String, Value>) {
    let names = |variables: &BTreeMap<String, Value>| variables.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(expected), names(found), "{name}: variables {found:#?}");
    for (variable, expected) in expected {
        let stored = &found[variable];
        let (value, by, round) = match expected.get("by") {
            Some(by) => (&expected["is"], Some(by), expected.get("round")),
            None => (expected, None, None),
        };
        assert_eq!(value, &stored["value"], "{name}: {variable}");
        if let Some(by) = by {
            assert_eq!(by, &stored["source"], "{name}: who set {variable}");
            assert_eq!(round.unwrap_or(&Value::Null), &stored["round"], "{name}: when {variable} was set");
        }
    }
}

fn place(outcome: &Value) -> String {
    let location = &outcome["location"];
    let action = location["action_id"].as_str().unwrap_or_default();
    location["round"].as_u64().map_or_else(|| action.to_owned(), |round| format!("{action}/{round}"))
}

/// Checks `metadata.parse_error: true`; `a.b has: text` for a part of a text; `prompt: { has, lacks, roles }`.
fn check_outcome(name: &str, parts: &Map<String, Value>, outcome: &Value) {
    for (key, expected) in parts.iter().filter(|(key, _)| *key != "at") {
        if key == "prompt" {
            check_prompt(name, expected, &outcome["debug_info"]["llm_prompt"]);
            continue;
        }
        let path = key.strip_suffix(" has").unwrap_or(key);
        let found = path.split('.').fold(outcome, |value, name| value.get(name).unwrap_or(&Value::Null));
        if path == key {
            assert_eq!(expected, found, "{name}: {path}");
        } else {
            let (part, text) = (expected.as_str().unwrap(), found.as_str().unwrap_or_default());
            assert!(text.contains(part), "{name}: {path}: {part:?} is not in {text:?}");
        }
    }
}

fn check_prompt(name: &str, expected: &Value, prompt: &Value) {
    let messages = prompt.as_array().unwrap_or_else(|| panic!("{name}: there is no prompt"));
    let known = ["has", "lacks", "roles", "whole"];
    assert!(expected.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{name}: {expected}");
    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    let text: String =
        messages.iter().map(|message| message["content"].as_str().unwrap()).collect::<Vec<_>>().join("\n");
    let list = |key: &str| expected[key].as_array().into_iter().flatten().map(|part| part.as_str().unwrap());
    for part in list("has") {
        assert!(text.contains(part), "{name}: not in the prompt: {part}\n{text}");
    }
    for part in list("lacks") {
        assert!(!text.contains(part), "{name}: in the prompt: {part}\n{text}");
    }
    if let Some(expected) = expected["roles"].as_array() {
        assert_eq!(expected.iter().collect::<Vec<_>>(), roles, "{name}: roles of the prompt");
    }
    if let Some(full_prompt) = expected["whole"].as_str() {
        assert_eq!(full_prompt.trim_end(), text, "{name}: the whole prompt");
    }
}
