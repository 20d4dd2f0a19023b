//! Reads the events of a journal, in their order, into the steps, decisions, failures and times of a report.

use std::collections::HashMap;

use bcc_lang::message::message::Message;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::Masker;
use bcc_runtime::program::event_masking::masked_path;
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::stored_event::message_at;
use bcc_runtime::run::head::SessionStatus;
use serde_json::Value;

use crate::report::contents::{PushBack, ReportedDecision, ReportedFailure, ReportedStep, StepStatus, TimelineEntry};
use crate::report::text::{between, excerpt};

/// The reason of the route after a push-back.
const PUSHED_BACK: &str = "pushed_back";

/// What the events up to now say.
#[derive(Debug, Default)]
pub(crate) struct JournalProgress {
    pub(crate) steps: Vec<ReportedStep>,
    pub(crate) decisions: Vec<ReportedDecision>,
    pub(crate) iterations: Vec<PushBack>,
    pub(crate) failures: Vec<ReportedFailure>,
    pub(crate) timeline: Vec<TimelineEntry>,
    /// Why it ended, from its last event of this kind.
    pub(crate) reason: Option<Message>,
    started_at: String,
    /// The newest visit of each path.
    newest: HashMap<String, usize>,
    /// The entry in the timeline of each step.
    entries: HashMap<usize, usize>,
    /// The prompt and the time of each open request.
    requests: HashMap<String, (String, String)>,
    /// Since when a step waits.
    waits: HashMap<usize, String>,
    /// The failure of each step that has one.
    failed: HashMap<usize, usize>,
}

impl JournalProgress {
    /// Takes the next event, whose sensitive values are masked.
    pub(crate) fn take(&mut self, event: &ExactValue) {
        match field(event, "type") {
            "session_started" => {
                field(event, "at").clone_into(&mut self.started_at);
                self.note(event, None);
            }
            "session_resumed" | "phase_entered" | "topic_entered" | "taken_back" => {
                self.note(event, None);
            }
            "action_started" => self.start(event),
            "skipped" => self.skip(event),
            "outcome" => self.outcome(event),
            "effect_started" => self.on_newest(event, |step| step.attempts += 1),
            "model_call" => self.on_newest(event, |step| step.model_calls += 1),
            "variable_set" => {
                let name = field(event, "name").to_owned();
                self.on_newest(event, |step| {
                    if !step.variables.contains(&name) {
                        step.variables.push(name);
                    }
                });
            }
            "waiting" => {
                if let Some(number) = self.newest_of(event) {
                    self.waits.insert(number, field(event, "at").to_owned());
                }
            }
            "message" if field(event, "role") == "user" => self.stop_waiting(event),
            "request_opened" => {
                let opened = (field(event, "prompt").to_owned(), field(event, "at").to_owned());
                self.requests.insert(field(event, "request_id").to_owned(), opened);
            }
            "undone" if event.get("complete") == Some(&Value::Bool(true)) => {
                self.on_newest(event, |step| step.status = StepStatus::Undone);
            }
            "request_answered" => self.decision(event),
            "routed" => self.route(event),
            "error" => self.error(event),
            "session_completed" | "session_failed" | "session_stopped" | "session_cancelled" => self.end(event),
            _ => {}
        }
    }

    /// Gives the steps that have not ended the status that follows from that of the session.
    pub(crate) fn finish(&mut self, status: Option<SessionStatus>) {
        let waits = std::mem::take(&mut self.waits);
        for (number, step) in self.steps.iter_mut().enumerate().filter(|(_, step)| step.ended_at.is_none()) {
            step.status = match status {
                Some(status) if status.is_waiting() && waits.contains_key(&number) => StepStatus::Waiting,
                Some(SessionStatus::Cancelled) => StepStatus::Cancelled,
                Some(SessionStatus::Stopped) => StepStatus::Stopped,
                Some(SessionStatus::Completed | SessionStatus::Failed) => StepStatus::Left,
                _ => StepStatus::Running,
            };
        }
    }

    /// Masks sensitive values in the paths. Before, they tell apart what ran for different elements of a list.
    pub(crate) fn mask_paths(&mut self, masker: &Masker) {
        let steps = self.steps.iter_mut().map(|step| &mut step.path);
        let decisions = self.decisions.iter_mut().map(|decision| &mut decision.path);
        let iterations = self.iterations.iter_mut().map(|push_back| &mut push_back.path);
        let failures = self.failures.iter_mut().map(|failure| &mut failure.path);
        let timeline = self.timeline.iter_mut().map(|entry| &mut entry.path);
        for path in steps.chain(decisions).chain(iterations).chain(failures).chain(timeline) {
            *path = masked_path(path, masker);
        }
    }

    fn start(&mut self, event: &ExactValue) {
        let path = place(event, "path").to_owned();
        let earlier = self.newest.get(&path).and_then(|number| self.steps.get(*number));
        let visits = earlier.map_or(0, |step| step.visit);
        let step = ReportedStep {
            phase_id: place(event, "phase_id").to_owned(),
            topic_id: place(event, "topic_id").to_owned(),
            action_id: place(event, "action_id").to_owned(),
            action_type: field(event, "name").to_owned(),
            visit: visits + 1,
            status: StepStatus::Running,
            exit_reason: None,
            started_at: field(event, "at").to_owned(),
            ended_at: None,
            duration_ms: None,
            waited_ms: 0,
            attempts: 0,
            exit_code: None,
            rounds: 0,
            model_calls: 0,
            variables: vec![],
            error: None,
            path,
        };
        self.add(event, step);
    }

    fn add(&mut self, event: &ExactValue, step: ReportedStep) {
        let number = self.steps.len();
        self.newest.insert(step.path.clone(), number);
        self.steps.push(step);
        let entry = self.note(event, None);
        self.entries.insert(number, entry);
    }

    fn skip(&mut self, event: &ExactValue) {
        let why = message_at(event, "/why");
        if place(event, "action_id") != field(event, "name") {
            self.note(event, Some(why));
            return;
        }
        let at = field(event, "at").to_owned();
        let started = self.newest_of(event).filter(|number| self.is_open(*number));
        if started.is_none() {
            self.start(event);
        }
        self.on_newest(event, |step| {
            step.status = StepStatus::Skipped;
            step.ended_at = Some(at);
            step.error = Some(why);
        });
    }

    fn outcome(&mut self, event: &ExactValue) {
        let Some(number) = self.newest_of(event) else { return };
        let at = field(event, "at").to_owned();
        let metadata = |name: &str| event.get("metadata").and_then(|metadata| metadata.get(name));
        let reason = event.get("exit_reason").and_then(Value::as_str).map(str::to_owned);
        let completed = event.get("completed") == Some(&Value::Bool(true));
        let Some(step) = self.steps.get_mut(number) else { return };
        // An exchange that answers nothing, such as the first one, has the number of the round that follows.
        let round = event.pointer("/location/round").and_then(Value::as_u64).unwrap_or(1);
        step.rounds = step.rounds.max(round);
        step.exit_code = metadata("exit_code").and_then(Value::as_i64);
        if let Some(attempts) = metadata("attempts").and_then(Value::as_u64) {
            step.attempts = attempts;
        }
        let failed = reason.as_deref().and_then(ExitReason::parse).is_some_and(ExitReason::fails);
        if !completed && !failed {
            return;
        }
        step.status = match reason.as_deref() {
            Some("rejected") => StepStatus::Rejected,
            _ if failed || event.get("success") == Some(&Value::Bool(false)) => StepStatus::Failed,
            None if metadata("decision").and_then(Value::as_str) == Some("push_back") => StepStatus::PushedBack,
            _ => StepStatus::Done,
        };
        step.exit_reason = reason;
        step.duration_ms = between(&step.started_at, &at);
        step.ended_at = Some(at.clone());
        if failed {
            let message = message_at(event, "/metadata/error_message");
            step.error = Some(message.clone()).filter(|message| !message.is_empty());
            let output = |name: &str, bytes: &str| {
                let text = metadata(name)?.as_str()?;
                let bytes = metadata(bytes).and_then(Value::as_u64).unwrap_or_default();
                let is_whole = metadata(&format!("{name}_truncated")).is_none();
                Some(excerpt(text, bytes, is_whole)).filter(|output| !output.text.is_empty() || output.left_out > 0)
            };
            let failure = ReportedFailure {
                at,
                path: step.path.clone(),
                action_id: step.action_id.clone(),
                exit_reason: step.exit_reason.clone(),
                message,
                exit_code: step.exit_code,
                stdout: output("stdout", "stdout_bytes"),
                stderr: output("stderr", "stderr_bytes"),
            };
            self.failed.insert(number, self.failures.len());
            self.failures.push(failure);
        }
        let duration = step.duration_ms;
        let entry = self.entries.get(&number).and_then(|entry| self.timeline.get_mut(*entry));
        entry.into_iter().for_each(|entry| entry.duration_ms = duration);
    }

    fn decision(&mut self, event: &ExactValue) {
        self.stop_waiting(event);
        let id = field(event, "request_id").to_owned();
        let (prompt, opened_at) = match self.requests.remove(&id) {
            Some((prompt, at)) => (prompt, Some(at)),
            None => (String::new(), None),
        };
        let text = |name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
        let at = field(event, "at").to_owned();
        // The end of a `wait` is no decision.
        if field(event, "kind") == "approval" {
            self.decisions.push(ReportedDecision {
                path: place(event, "path").to_owned(),
                action_id: place(event, "action_id").to_owned(),
                prompt,
                decision: text("decision"),
                by: text("by"),
                comment: text("comment"),
                values: event.field("values").unwrap_or_default(),
                iteration: event.get("iteration").and_then(Value::as_u64).unwrap_or(1),
                waited_ms: opened_at.as_deref().and_then(|opened| between(opened, &at)),
                request_id: id,
                opened_at,
                at,
            });
        }
        let decision = text("decision").map(Message::text);
        self.note(event, decision);
    }

    fn route(&mut self, event: &ExactValue) {
        let route = field(event, "route");
        if field(event, "reason") == PUSHED_BACK {
            let decision = self.decisions.iter().rev().find(|decision| decision.path == place(event, "path"));
            let push_back = PushBack {
                path: place(event, "path").to_owned(),
                action_id: field(event, "from").to_owned(),
                iteration: decision.map_or(1, |decision| decision.iteration),
                by: decision.and_then(|decision| decision.by.clone()),
                comment: decision.and_then(|decision| decision.comment.clone()),
                at: field(event, "at").to_owned(),
                back_to: route.strip_prefix("goto: ").map(str::to_owned),
            };
            self.iterations.push(push_back);
        }
        // Without a route of the author, the session just continues.
        if route != "next" {
            let text = Message::text(format!("{}: {route}", field(event, "reason")));
            self.note(event, Some(text));
        }
    }

    fn error(&mut self, event: &ExactValue) {
        let message = message_at(event, "/message");
        self.note(event, Some(message.clone()));
        let number = self.newest_of(event);
        if let Some(known) = number.and_then(|number| self.failed.get(&number)) {
            // The error that follows from an outcome says the same.
            let failure = self.failures.get_mut(*known).filter(|failure| failure.message.is_empty());
            failure.into_iter().for_each(|failure| failure.message = message.clone());
        } else {
            self.failures.push(ReportedFailure {
                at: field(event, "at").to_owned(),
                path: place(event, "path").to_owned(),
                action_id: place(event, "action_id").to_owned(),
                exit_reason: None,
                message: message.clone(),
                exit_code: None,
                stdout: None,
                stderr: None,
            });
        }
        if let Some(step) = number.and_then(|number| self.steps.get_mut(number)) {
            step.error.get_or_insert(message);
        }
    }

    fn end(&mut self, event: &ExactValue) {
        let reason = Some(message_at(event, "/summary/reason")).filter(|reason| !reason.is_empty());
        self.note(event, reason.clone());
        self.reason = reason;
    }

    /// Adds an entry to the timeline. Returns its number.
    fn note(&mut self, event: &ExactValue, text: Option<Message>) -> usize {
        let at = field(event, "at").to_owned();
        let path = Some(place(event, "path")).filter(|path| !path.is_empty());
        self.timeline.push(TimelineEntry {
            seq: event.get("seq").and_then(Value::as_u64).unwrap_or_default(),
            after_ms: between(&self.started_at, &at),
            r#type: field(event, "type").to_owned(),
            path: path.unwrap_or(place(event, "phase_id")).to_owned(),
            duration_ms: None,
            text,
            at,
        });
        self.timeline.len() - 1
    }

    fn stop_waiting(&mut self, event: &ExactValue) {
        let Some(number) = self.newest_of(event) else { return };
        let Some(since) = self.waits.remove(&number) else { return };
        if let Some(step) = self.steps.get_mut(number) {
            step.waited_ms += between(&since, field(event, "at")).unwrap_or_default();
        }
    }

    fn newest_of(&self, event: &ExactValue) -> Option<usize> {
        self.newest.get(place(event, "path")).copied()
    }

    fn is_open(&self, number: usize) -> bool {
        self.steps.get(number).is_some_and(|step| step.ended_at.is_none())
    }

    fn on_newest(&mut self, event: &ExactValue, change: impl FnOnce(&mut ReportedStep)) {
        if let Some(step) = self.newest_of(event).and_then(|number| self.steps.get_mut(number)) {
            change(step);
        }
    }
}

fn field<'e>(event: &'e Value, name: &str) -> &'e str {
    event.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn place<'e>(event: &'e Value, name: &str) -> &'e str {
    event.get("location").map_or("", |location| field(location, name))
}
