//! Checks whether an `expect` is met, and reports the differences.

use crate::test_runner::result::Shown;
use bcc_lang::message::message::Joint;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::Value;

use crate::test_runner::log::Log;
use crate::test_runner::models::Watch;
use crate::test_runner::result::{TestFailure, TranscriptLine};
use bcc_lang::message::message::Message;
use bcc_lang::script::test::expect::{Codes, Expect, ExpectedEvent, ExpectedFeedback};
use bcc_lang::script::test::expected_counts::ExpectedCounts;
use bcc_lang::script::test::text_expectation::TextExpectation;
use bcc_lang::script::test::value_expectation::{ValueExpectation, as_in_yaml, display_value};
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::value::mask::MASK;
use bcc_lang::value::scopes::{Scope, Stored};
use bcc_llm::model::request::Purpose;
use bcc_runtime::program::event::{Event, Speaker};
use bcc_runtime::program::outcome::Outcome;
use bcc_runtime::run::session::Session;

/// Action types that send no messages: their exit reasons are checked only by id.
const NON_CONVERSATION_ACTIONS: [&str; 2] = ["set", "condition"];

pub struct Judge<'j> {
    pub file: &'j Arc<SourceFile>,
    pub session: &'j Session,
    pub log: &'j Log,
    pub lines: &'j [TranscriptLine],
    pub watch: &'j Watch,
    /// The first event that counts for event expectations: since the last input, or since the start.
    pub since: usize,
}

/// All differences from `expect`.
pub fn judge(expect: &Expect, judge: &Judge<'_>) -> Vec<TestFailure> {
    let mut failures = Vec::new();
    judge.variables(expect, &mut failures);
    judge.outcomes(expect, &mut failures);
    judge.status_and_location(expect, &mut failures);
    judge.events(expect, &mut failures);
    judge.calls(expect, &mut failures);
    judge.prompts(expect, &mut failures);
    if let Some(wanted) = &expect.monitor_feedback {
        judge.feedback(wanted, &mut failures);
    }
    for (codes, kind) in [(&expect.warnings, "warning"), (&expect.errors, "error")] {
        if let Some(codes) = codes {
            judge.codes(codes, kind, &mut failures);
        }
    }
    judge.routes(expect, &mut failures);
    if let Some(wording) = &expect.messages {
        judge.messages(wording, &mut failures);
    }
    failures.sort_by_key(|failure| failure.span.start);
    failures
}

impl Judge<'_> {
    fn failure(&self, span: Span, message: Message, expected: impl Shown, found: impl Shown) -> TestFailure {
        let (line, line_count) = (self.file.line(span.start), self.lines.len());
        let (expected, found) = (expected.shown(), found.shown());
        TestFailure { span, line, message, expected, exact: None, found, help: None, transcript_lines: line_count }
    }

    /// A value that differs from the expected one; texts can be compared character by character.
    fn compared(&self, wanted: &ValueExpectation, message: Message, value: &Value) -> TestFailure {
        match (wanted.exact_text(), value.as_str()) {
            (Some(exact), Some(text)) => TestFailure {
                exact: Some(exact.to_owned()),
                ..self.failure(wanted.span, message, wanted.describe(), Message::text(text.to_owned()))
            },
            _ => self.failure(wanted.span, message, wanted.describe(), display_value(value)),
        }
    }

    fn variables(&self, expect: &Expect, failures: &mut Vec<TestFailure>) {
        for (name, wanted) in &expect.variables {
            let (scope, own) = match name.value.split_once('.') {
                Some((scope, own)) if Scope::parse(scope).is_some() => (Scope::parse(scope), own),
                _ => (None, name.value.as_str()),
            };
            let found = match scope {
                None => self.session.all_scopes().find_map(|scopes| scopes.get(own)),
                Some(scope) => self.session.all_scopes().find_map(|scopes| {
                    let layer = scopes.layers().filter(|layer| layer.scope == scope).last()?;
                    layer.get(own)
                }),
            };
            let value = found.map(|stored| &*stored.value);
            let is_met = |stored: &Stored| wanted.matches_optional(Some(&as_in_yaml(&stored.value)));
            if !wanted.matches_optional(value) && !found.is_some_and(is_met) {
                let message = absent_or_other("variable", "has no value", &name.value, value);
                let mut failure = self.compared(wanted, message, value.unwrap_or(&Value::Null));
                // A value may be too short to be masked in texts, such as an age: it is hidden here.
                if let Some(value) = value.filter(|value| !value.is_null() && self.is_sensitive(own)) {
                    // Its type is not hidden: `***` is no difference to see between 138 and "138".
                    failure.found = msg!("{MASK} ({})", kind_of(value));
                }
                failures.push(failure);
            }
        }
    }

    fn is_sensitive(&self, name: &str) -> bool {
        self.session.all_scopes().any(|scopes| scopes.is_sensitive(name))
    }

    /// What `read` returns for the newest outcome: of the given action, or of any action that sends messages.
    fn outcome<T>(&self, action: Option<&Spanned<String>>, read: impl Fn(&str, &Outcome) -> Option<T>) -> Option<T> {
        self.log.newest(|row| {
            let Event::Outcome { action_type, outcome } = &row.event else { return None };
            let fits = match action {
                Some(action) => row.action() == action.value,
                None => !NON_CONVERSATION_ACTIONS.contains(action_type),
            };
            if fits { read(row.action(), outcome) } else { None }
        })
    }

    fn outcomes(&self, expect: &Expect, failures: &mut Vec<TestFailure>) {
        let of = |action: &Option<Spanned<String>>| match action {
            Some(action) => msg!("`{}`", action.value),
            None => Message::word("the last action"),
        };
        for (action, reason) in &expect.exit_reason {
            let outcome =
                self.outcome(action.as_ref(), |id, outcome| Some((id.to_owned(), outcome.exit_reason?.name())));
            let found = outcome.as_ref().map(|(_, reason)| *reason);
            if found != Some(reason.value.as_str()) {
                let ended = outcome.as_ref().filter(|_| action.is_none());
                let ended = ended.map(|(id, _)| msg!(" (`{id}`)")).unwrap_or_default();
                let message = msg!("{}{ended} ended for a different reason", of(action));
                failures.push(self.failure(
                    reason.span,
                    message,
                    reason.value.clone(),
                    found_or(found, "(still running)"),
                ));
            }
        }
        for (action, suggestion) in &expect.progress_suggestion {
            let found = self.outcome(action.as_ref(), |_, outcome| Some(outcome.progress_suggestion.name()));
            if found != Some(suggestion.value.as_str()) {
                let message = msg!("{} has a different progress suggestion", of(action));
                let found = found_or(found, "(none)");
                failures.push(self.failure(suggestion.span, message, Message::text(suggestion.value.clone()), found));
            }
        }
        if expect.metrics.is_empty() {
            return;
        }
        let metrics = |outcome: &Outcome| Some(outcome.metrics.clone()).filter(|metrics| !metrics.is_empty());
        let metrics = self.outcome(None, |_, outcome| metrics(outcome)).unwrap_or_default();
        for (name, wanted) in &expect.metrics {
            let value = metrics.get(&name.value);
            if !wanted.matches_optional(value) {
                let message = absent_or_other("metric", "is missing", &name.value, value);
                failures.push(self.compared(wanted, message, value.unwrap_or(&Value::Null)));
            }
        }
    }

    fn status_and_location(&self, expect: &Expect, failures: &mut Vec<TestFailure>) {
        if let Some(status) = &expect.status {
            let found = self.session.status().name();
            if found != status.value {
                let error = self.log.newest_error().unwrap_or_default();
                let reason =
                    if matches!(found, "failed" | "stopped") { msg!(" ({error})") } else { Message::default() };
                let message = Message::word("the session has a different status");
                failures.push(self.failure(
                    status.span,
                    message,
                    Message::text(status.value.clone()),
                    msg!("{found}{why}", why = reason),
                ));
            }
        }
        if expect.location.is_empty() {
            return;
        }
        let place = self.session.place();
        let current: Vec<&str> =
            [&place.phase_id, &place.topic_id, &place.action_id].into_iter().flatten().map(String::as_str).collect();
        for id in &expect.location {
            if !current.contains(&id.value.as_str()) {
                let found = match current.as_slice() {
                    [] => msg!("nowhere: the session is {}", Message::word(self.session.status().name()),),
                    current => Message::text(current.join(" / ")),
                };
                let message = Message::word("the conversation is at a different location");
                failures.push(self.failure(id.span, message, Message::text(id.value.clone()), found));
            }
        }
    }

    fn events(&self, expect: &Expect, failures: &mut Vec<TestFailure>) {
        if let Some(counts) = &expect.event_counts {
            let kinds = self.log.read(self.since, |row| Some(row.event.kind()));
            let count = |name: &str| kinds.iter().filter(|kind| **kind == name).count();
            self.counted(counts, ("events", "events of type"), kinds.len(), &count, failures);
        }
        if expect.events.is_empty() {
            return;
        }
        let kinds = self.log.read(self.since, |row| Some(row.event.kind()));
        let mut at = 0;
        for wanted in &expect.events {
            let found = kinds.iter().enumerate().skip(at).find(|(index, kind)| {
                **kind == wanted.kind.value
                    && (wanted.fields.is_empty()
                        || self.log.event(self.since + index).is_some_and(|event| fits(wanted, &event)))
            });
            let Some((index, _)) = found else {
                let message = Message::word(match at {
                    0 => "there is no such event",
                    _ => "there is no such event after the previous one",
                });
                failures.push(self.failure(
                    wanted.kind.span,
                    message,
                    event_message(wanted),
                    Message::values(kinds.get(at..).unwrap_or_default()),
                ));
                return;
            };
            at = index + 1;
        }
    }

    fn calls(&self, expect: &Expect, failures: &mut Vec<TestFailure>) {
        if expect.model_calls.is_none() && expect.attempts.is_none() {
            return;
        }
        let calls = self.log.read(self.since, |row| match &row.event {
            Event::ModelCall(call) => Some((call.purpose, row.action().to_owned(), call.attempts as usize)),
            _ => None,
        });
        let by = |asker: &str, (purpose, id, _): &(&str, String, usize)| {
            asker.split_once(':').unwrap_or(("action", asker)) == (*purpose, id.as_str())
        };
        if let Some(counts) = &expect.model_calls {
            let count = |asker: &str| calls.iter().filter(|call| by(asker, call)).count();
            self.counted(counts, ("calls", "calls to the model by"), calls.len(), &count, failures);
        }
        if let Some(counts) = &expect.attempts {
            let sum = |of: &dyn Fn(&(&str, String, usize)) -> bool| {
                calls.iter().filter(|call| of(call)).map(|(_, _, attempts)| attempts).sum::<usize>()
            };
            let count = |asker: &str| sum(&|call| by(asker, call));
            self.counted(counts, ("requests", "requests by"), sum(&|_| true), &count, failures);
        }
    }

    fn counted(
        &self,
        counts: &ExpectedCounts,
        (what, what_of): (&'static str, &'static str),
        total: usize,
        count: &dyn Fn(&str) -> usize,
        failures: &mut Vec<TestFailure>,
    ) {
        let mut check = |wanted: &ValueExpectation, of: Message, found: usize| {
            if !wanted.matches(&Value::from(found)) {
                failures.push(self.failure(wanted.span, of, wanted.describe(), found.to_string()));
            }
        };
        if let Some(wanted) = &counts.total {
            check(wanted, msg!("the number of {of} differs", of = Message::word(what)), total);
        }
        for (name, wanted) in &counts.by {
            check(
                wanted,
                msg!("the number of {what} `{}` differs", name.value, what = Message::word(what_of)),
                count(&name.value),
            );
        }
    }

    fn prompts(&self, expect: &Expect, failures: &mut Vec<TestFailure>) {
        for (asker, wording) in &expect.prompt {
            let (purpose, id) = match asker.as_ref().map(|asker| asker.value.as_str()) {
                None => (Purpose::Action, None),
                Some(asker) => match asker.split_once(':') {
                    Some((purpose, id)) => (Purpose::parse(purpose).unwrap_or(Purpose::Action), Some(id)),
                    None => (Purpose::Action, Some(asker)),
                },
            };
            let name = asker.as_ref().map_or(Message::word("the last caller"), |asker| msg!("`{}`", asker.value));
            let Some(call) = self.watch.newest(purpose, id) else {
                let message = msg!("no model was asked by {name}");
                failures.push(self.failure(wording.span, message, wording.describe(), Message::default()));
                continue;
            };
            let text = call.messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n");
            if let Some(mismatch) = wording.mismatch_in_text(&text) {
                let message = msg!("the prompt of {name} does not match: {mismatch}");
                failures.push(self.failure(wording.span, message, wording.describe(), text));
            }
        }
    }

    fn feedback(&self, wanted: &ExpectedFeedback, failures: &mut Vec<TestFailure>) {
        let feedback = |all: bool| {
            self.log.read(self.since, |row| {
                let Event::MonitorFeedback { action_id, used, analysis, .. } = &row.event else { return None };
                let fits = wanted.action.as_ref().is_none_or(|action| *action_id == action.value)
                    && wanted.used.is_none_or(|wanted| *used == wanted);
                (all || fits).then(|| analysis.to_string())
            })
        };
        let matching = feedback(false);
        if wanted.none {
            if !matching.is_empty() {
                let message = Message::word("a monitor gave feedback");
                failures.push(self.failure(wanted.span, message, Message::word("nothing"), matching.join("\n")));
            }
            return;
        }
        let fits = |analysis: &String| wanted.wording.mismatch_in_text(analysis).is_none();
        // A forbidden text must be in no feedback; without any feedback, nothing was tested.
        let forbids = wanted.wording.only_forbids() && !wanted.wording.not_contains.is_empty();
        if matching.iter().any(fits) && (!forbids || matching.iter().all(fits)) {
            return;
        }
        let (message, found) = if forbids && !matching.is_empty() {
            (Message::word("a monitor gave feedback that it must not give"), matching.join("\n"))
        } else if matching.is_empty() {
            let used = Message::word(if wanted.used == Some(true) { " that a turn used" } else { "" });
            (msg!("no monitor gave feedback{used}"), feedback(true).join("\n"))
        } else {
            (Message::word("no monitor gave such feedback"), matching.join("\n"))
        };
        failures.push(self.failure(wanted.span, message, wanted.wording.describe(), found));
    }

    fn codes(&self, codes: &Codes, kind: &'static str, failures: &mut Vec<TestFailure>) {
        let events = self.log.codes(kind == "error", self.since);
        let found: Vec<&str> = events.iter().map(|(code, _)| *code).collect();
        if codes.codes.is_empty() && !found.is_empty() {
            let messages =
                events.iter().map(|(code, message)| format!("{code}: {message}")).collect::<Vec<_>>().join("\n");
            failures.push(self.failure(
                codes.span,
                Message::word(if kind == "error" { "there are errors" } else { "there are warnings" }),
                Message::word("none"),
                messages,
            ));
        }
        for code in &codes.codes {
            if !found.contains(&code.value.as_str()) {
                let message = msg!("there is no {kind} with this code", kind = Message::word(kind));
                let found = or_none(&found.join(", "));
                failures.push(self.failure(code.span, message, Message::text(code.value.clone()), found));
            }
        }
    }

    fn routes(&self, expect: &Expect, failures: &mut Vec<TestFailure>) {
        if expect.routes.is_empty() {
            return;
        }
        let mut taken: Vec<(String, String)> = self.log.read(self.since, |row| match &row.event {
            Event::RouteTaken { reason, route, .. } => Some(((*reason).to_owned(), route.clone())),
            _ => None,
        });
        taken.extend(self.log.read(self.since, |row| match &row.event {
            Event::Triggered { reason, route, .. } => Some((reason.clone(), route.clone())),
            _ => None,
        }));
        let words = |route: &str| -> Vec<String> {
            let plain = route.replace([':', ',', '{', '}', '`'], " ");
            plain.split_whitespace().map(str::to_owned).collect()
        };
        for (reason, route) in &expect.routes {
            // Parts of a route that are not given, such as `then`, are ignored; a given word must match completely.
            let wanted = words(&route.value);
            let fits = |(of, to): &(String, String)| *of == reason.value && words(to).starts_with(&wanted);
            if !taken.iter().any(fits) {
                let message = msg!("no such route was taken for `{}`", reason.value);
                let found = taken.iter().map(|(reason, route)| format!("{reason}: {route}")).collect::<Vec<_>>();
                let found = or_none(&found.join("\n"));
                failures.push(self.failure(route.span, message, Message::text(route.value.clone()), found));
            }
        }
    }

    fn messages(&self, wording: &TextExpectation, failures: &mut Vec<TestFailure>) {
        let after = if self.since == 0 {
            0
        } else {
            self.lines.iter().rposition(|line| line.speaker == Speaker::User).map_or(0, |at| at + 1)
        };
        let lines: Vec<&TranscriptLine> =
            self.lines.iter().skip(after).filter(|line| line.speaker == Speaker::Ai).collect();
        let fits = |line: &&&TranscriptLine| wording.mismatch_in_message(&line.text, &line.action_id).is_none();
        let holds = if wording.only_forbids() {
            lines.iter().all(|line| fits(&line))
        } else {
            lines.iter().any(|line| fits(&line))
        };
        if !holds {
            let message = if wording.only_forbids() {
                "the AI said something that it must not say"
            } else {
                "the AI did not say this"
            };
            let found = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
            failures.push(self.failure(wording.span, Message::word(message), wording.describe(), found));
        }
    }
}

/// The message for a variable or a metric that is not as expected.
fn absent_or_other(what: &'static str, absent: &'static str, name: &str, value: Option<&Value>) -> Message {
    let how = if value.is_some() { "has a different value" } else { absent };
    msg!("the {what} `{name}` {how}", what = Message::word(what), how = Message::word(how))
}

fn kind_of(value: &Value) -> Message {
    Message::word(match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    })
}

fn fits(wanted: &ExpectedEvent, event: &Value) -> bool {
    wanted.fields.iter().all(|(name, wanted)| {
        let value = event.get(&name.value).or_else(|| event.pointer("/location")?.get(&name.value));
        wanted.matches_optional(value)
    })
}

fn event_message(wanted: &ExpectedEvent) -> Message {
    let field = |(name, wanted): &(Spanned<String>, ValueExpectation)| {
        msg!("{name}: {value}", name = name.value, value = wanted.describe())
    };
    Message::list(Joint::Comma, [Message::text(&wanted.kind.value)].into_iter().chain(wanted.fields.iter().map(field)))
}

/// The found value, or our word for its absence.
fn found_or(found: Option<&str>, nothing: &'static str) -> Message {
    found.map_or(Message::word(nothing), Message::text)
}

fn or_none(found: &str) -> Message {
    if found.is_empty() { Message::word("none at all") } else { Message::text(found) }
}
