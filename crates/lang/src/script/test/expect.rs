//! `expect`: what must hold at one point of a test.

use std::sync::Arc;

use crate::script::fields::{Fields, is_null};
use crate::script::test::expected_counts::{ExpectedCounts, counts};
use crate::script::test::text_expectation::{TextExpectation, texts, wording};
use crate::script::test::value_expectation::{ValueExpectation, wanted};
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, YamlNode};

/// All fields of `expect`. Absent fields are not checked.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    pub span: Span,
    /// Variables; `scope.name` looks in that scope only.
    pub variables: Vec<(Spanned<String>, ValueExpectation)>,
    /// What the last reply reported about the state of its action.
    pub metrics: Vec<(Spanned<String>, ValueExpectation)>,
    /// The exit reason of the last action that ended, or of the action with this id.
    pub exit_reason: Vec<(Option<Spanned<String>>, Spanned<String>)>,
    /// The suggestion of the last outcome, or of that of this action.
    pub progress_suggestion: Vec<(Option<Spanned<String>>, Spanned<String>)>,
    /// Ids of the action, topic or phase where the session is; all of them must match.
    pub location: Vec<Spanned<String>>,
    /// The status of the session.
    pub status: Option<Spanned<String>>,
    /// Events, in order.
    pub events: Vec<ExpectedEvent>,
    /// The counts of events, by type.
    pub event_counts: Option<ExpectedCounts>,
    pub model_calls: Option<ExpectedCounts>,
    /// The requests that were sent for the model calls.
    pub attempts: Option<ExpectedCounts>,
    /// The last prompt, or the prompt of this asker.
    pub prompt: Vec<(Option<Spanned<String>>, TextExpectation)>,
    /// The feedback of a monitor.
    pub monitor_feedback: Option<ExpectedFeedback>,
    pub warnings: Option<Codes>,
    pub errors: Option<Codes>,
    /// Routes that were taken, by exit reason or trigger.
    pub routes: Vec<(Spanned<String>, Spanned<String>)>,
    /// The text of any message of the AI.
    pub messages: Option<TextExpectation>,
}

/// An event with the fields that it must have.
#[derive(Clone, Debug)]
pub struct ExpectedEvent {
    pub kind: Spanned<String>,
    pub fields: Vec<(Spanned<String>, ValueExpectation)>,
}

/// The expected feedback of a monitor.
#[derive(Clone, Debug)]
pub struct ExpectedFeedback {
    pub span: Span,
    /// Whether there must be no feedback.
    pub none: bool,
    /// The action whose turn was analyzed.
    pub action: Option<Spanned<String>>,
    /// Whether a turn used it.
    pub used: Option<bool>,
    /// The expectation of its analysis, as JSON text.
    pub wording: TextExpectation,
}

/// Codes of warnings or errors: each of them must occur. With an empty list, none may occur.
#[derive(Clone, Debug)]
pub struct Codes {
    pub span: Span,
    pub codes: Vec<Spanned<String>>,
}

/// The statuses of a session.
pub(crate) const STATUSES: [&str; 7] =
    ["running", "waiting_input", "waiting_approval", "waiting_time", "stopped", "completed", "failed"];

/// The valid suggestions.
const SUGGESTIONS: [&str; 4] = ["continue_needed", "completed", "blocked", "off_topic"];

pub(crate) const EVENTS: [&str; 33] = [
    "session_started",
    "session_resumed",
    "phase_entered",
    "topic_entered",
    "action_started",
    "skipped",
    "message_discarded",
    "message",
    "variable_set",
    "model_call",
    "outcome",
    "routed",
    "triggered",
    "monitor_feedback",
    "orchestrated",
    "effect_started",
    "effect_finished",
    "tool_called",
    "plan_changed",
    "notebook_action",
    "cell",
    "behavior",
    "undone",
    "budget_reached",
    "warning",
    "error",
    "waiting",
    "request_opened",
    "request_answered",
    "session_completed",
    "session_failed",
    "session_stopped",
    "session_cancelled",
];

pub(crate) fn expect(node: &YamlNode, fields: &Fields<'_>) -> Option<Expect> {
    let inner = fields.inner(node, "`expect`")?;
    if inner.is_empty() {
        let message = "`expect` is empty";
        let help = "write what must hold, as in `expect: { variables: { user_name: 小林 } }`";
        let span = if node.span.is_empty() { Span::point(node.span.start) } else { node.span };
        fields.error("missing-key", message, span, help);
    }
    let (events, event_counts) = events(&inner);
    let expect = Expect {
        span: node.span,
        variables: values(&inner, "variables"),
        metrics: values(&inner, "metrics"),
        exit_reason: by_action(&inner, "exit_reason"),
        progress_suggestion: by_action(&inner, "progress_suggestion"),
        location: texts(&inner, "location"),
        status: inner.name("status"),
        events,
        event_counts,
        model_calls: counts(&inner, "model_calls"),
        attempts: counts(&inner, "attempts"),
        prompt: prompt(&inner),
        monitor_feedback: feedback(&inner),
        warnings: codes(&inner, "warnings"),
        errors: codes(&inner, "errors"),
        routes: routes(&inner),
        messages: inner.take("said").and_then(|node| wording(node, "`said`", true, &inner)),
    };
    for (_, suggestion) in &expect.progress_suggestion {
        one_of(suggestion, "progress_suggestion", &SUGGESTIONS, fields);
    }
    if let Some(status) = &expect.status {
        one_of(status, "status", &STATUSES, fields);
    }
    inner.finish();
    Some(expect)
}

/// Reports a word that is not one of `known`.
fn one_of(word: &Spanned<String>, name: &str, known: &[&'static str], fields: &Fields<'_>) {
    if !known.contains(&word.value.as_str()) {
        fields.not_a_choice(name, &word.value, known, word.span, "write one of these words");
    }
}

/// Reads a mapping of names to the expectations of their values.
fn values(fields: &Fields<'_>, name: &'static str) -> Vec<(Spanned<String>, ValueExpectation)> {
    let Some(node) = fields.take(name) else { return vec![] };
    let Some(entries) = node.as_mapping() else {
        fields.report_wrong_type(
            name,
            "a mapping of names to values",
            node,
            "write each on a line of its own, as `name: value`",
        );
        return vec![];
    };
    entries.iter().filter_map(|entry| Some((entry.key.clone(), wanted(&entry.value, fields)?))).collect()
}

/// Reads a word, or words by action id.
fn by_action(fields: &Fields<'_>, name: &'static str) -> Vec<(Option<Spanned<String>>, Spanned<String>)> {
    let Some(node) = fields.take(name) else { return vec![] };
    match &node.kind {
        NodeKind::Mapping(entries) => {
            let word = |node: &Arc<YamlNode>| Some(Spanned { value: node.as_scalar()?.text.clone(), span: node.span });
            entries.iter().filter_map(|entry| Some((Some(entry.key.clone()), word(&entry.value)?))).collect()
        }
        _ => fields.name(name).map(|word| (None, word)).into_iter().collect(),
    }
}

fn events(fields: &Fields<'_>) -> (Vec<ExpectedEvent>, Option<ExpectedCounts>) {
    let Some(node) = fields.take("events") else { return (vec![], None) };
    let known = |kind: &Spanned<String>| one_of(kind, "events", &EVENTS, fields);
    match &node.kind {
        NodeKind::Mapping(_) => {
            let counts = counts(fields, "events");
            counts.iter().flat_map(|counts| &counts.by).for_each(|(kind, _)| known(kind));
            (vec![], counts)
        }
        NodeKind::Sequence(items) => (items.iter().filter_map(|item| event(item, &known, fields)).collect(), None),
        NodeKind::Scalar(_) => (event(node, &known, fields).into_iter().collect(), None),
    }
}

fn event(node: &Arc<YamlNode>, known: &dyn Fn(&Spanned<String>), fields: &Fields<'_>) -> Option<ExpectedEvent> {
    if let Some(scalar) = node.as_scalar().filter(|_| !is_null(node)) {
        let kind = Spanned { value: scalar.text.clone(), span: node.span };
        known(&kind);
        return Some(ExpectedEvent { kind, fields: vec![] });
    }
    let inner = fields.inner(node, "an event")?;
    let kind = inner.required_text("type")?;
    let kind = Spanned { value: kind.text, span: kind.node.span };
    known(&kind);
    let others = node.as_mapping().unwrap_or_default().iter().filter(|entry| entry.key.value != "type");
    let others = others.filter_map(|entry| Some((entry.key.clone(), wanted(&entry.value, fields)?))).collect();
    Some(ExpectedEvent { kind, fields: others })
}

/// Reads the expectation of the last prompt, or of the prompts of the named askers.
fn prompt(fields: &Fields<'_>) -> Vec<(Option<Spanned<String>>, TextExpectation)> {
    const WORDS: [&str; 5] = ["equals", "contains", "not_contains", "matches", "any"];
    let Some(node) = fields.take("prompt") else { return vec![] };
    let entries = node.as_mapping().unwrap_or_default();
    if entries.is_empty() || entries.iter().any(|entry| WORDS.contains(&entry.key.value.as_str())) {
        return wording(node, "`prompt`", false, fields).map(|wording| (None, wording)).into_iter().collect();
    }
    let read_entry = |entry: &crate::source::yaml::YamlEntry| {
        Some((Some(entry.key.clone()), wording(&entry.value, "the expectation for a prompt", false, fields)?))
    };
    entries.iter().filter_map(read_entry).collect()
}

fn feedback(fields: &Fields<'_>) -> Option<ExpectedFeedback> {
    let node = fields.take("monitor_feedback")?;
    if node.as_scalar().is_some_and(|scalar| is_null(node) || scalar.text == "none") {
        let (action, used, wording) = (None, None, TextExpectation::default());
        return Some(ExpectedFeedback { span: node.span, none: true, action, used, wording });
    }
    if node.as_scalar().is_some() {
        fields.report_wrong_type(
            "monitor_feedback",
            "a mapping, or `none`",
            node,
            "write it like this: `monitor_feedback: { contains: 放慢, used: true }`",
        );
        return None;
    }
    let inner = fields.inner(node, "`monitor_feedback`")?;
    let used = if inner.has("used") { inner.boolean("used") } else { None };
    let action = inner.name("action");
    let matches = texts(&inner, "matches").into_iter();
    let wording = TextExpectation {
        span: node.span,
        contains: texts(&inner, "contains"),
        not_contains: texts(&inner, "not_contains"),
        matches: matches.filter_map(|written| crate::script::test::pattern::pattern(written, &inner)).collect(),
        ..TextExpectation::default()
    };
    inner.finish();
    Some(ExpectedFeedback { span: node.span, none: false, action, used, wording })
}

fn codes(fields: &Fields<'_>, name: &'static str) -> Option<Codes> {
    let node = fields.take(name)?;
    let none = is_null(node) || node.as_scalar().is_some_and(|scalar| scalar.text == "none");
    Some(Codes { span: node.span, codes: if none { vec![] } else { texts(fields, name) } })
}

fn routes(fields: &Fields<'_>) -> Vec<(Spanned<String>, Spanned<String>)> {
    let Some(node) = fields.take("routes") else { return vec![] };
    let Some(entries) = node.as_mapping() else {
        fields.report_wrong_type(
            "routes",
            "a mapping of reasons to routes",
            node,
            "write it like this: `routes: { user_blocked: insert comfort }`",
        );
        return vec![];
    };
    let word = |node: &Arc<YamlNode>| Some(Spanned { value: node.as_scalar()?.text.clone(), span: node.span });
    entries.iter().filter_map(|entry| Some((entry.key.clone(), word(&entry.value)?))).collect()
}
