//! Arranges a report for people, in their language.

use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::value::exact::ExactValue;
use bcc_runtime::run::head::SessionStatus;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::clock::in_zone;
use crate::report::blocks::ReportBlock;
use crate::report::contents::{OutputExcerpt, ReportedMessage, ReportedSession, SessionReport, TranscriptExcerpt};
use crate::report::text::duration;
use crate::usage::usage_summary;

/// The maximum number of rows of a table: half from the start, half from the end.
const MAX_ROWS: usize = 200;

/// The maximum number of characters of a value or a text in a table.
const MAX_CELL: usize = 300;

struct Layout {
    language: Language,
    zone: TimeZone,
    blocks: Vec<ReportBlock>,
}

/// The parts of a readable report. Times are in the time zone of the machine.
pub(crate) fn layout(report: &SessionReport, language: Language) -> Vec<ReportBlock> {
    let mut layout = Layout { language, zone: TimeZone::system(), blocks: vec![] };
    layout.head(&report.session);
    layout.steps(report);
    layout.decisions(report);
    layout.iterations(report);
    layout.failures(report);
    layout.heading("What ran");
    layout.blocks.push(ReportBlock::Code { language: "mermaid", text: report.diagram.clone() });
    layout.timeline(report);
    layout.variables(&report.variables);
    layout.transcript(&report.transcript);
    layout.blocks
}

impl Layout {
    fn word(&self, literal: &str) -> String {
        self.language.translate(literal).into_owned()
    }

    fn words(&self, literals: &[&str]) -> Vec<String> {
        literals.iter().map(|literal| self.word(literal)).collect()
    }

    fn heading(&mut self, literal: &str) {
        let text = self.word(literal);
        self.blocks.push(ReportBlock::Heading(text));
    }

    fn moment(&self, stamp: &str, format: &str) -> String {
        in_zone(stamp, &self.zone).map_or_else(|| stamp.to_owned(), |moment| moment.strftime(format).to_string())
    }

    fn minute(&self, stamp: &str) -> String {
        self.moment(stamp, "%Y-%m-%d %H:%M:%S")
    }

    fn length(&self, ms: Option<u64>) -> String {
        ms.map(|ms| duration(ms).render(self.language)).unwrap_or_default()
    }

    fn message(&self, message: Option<&Message>) -> String {
        message.map(|message| cut(&message.render(self.language))).unwrap_or_default()
    }

    fn head(&mut self, session: &ReportedSession) {
        let title = self.language.format("Report: {title}", &[("title", &session.title)]);
        self.blocks.push(ReportBlock::Title(title));
        let mut facts = vec![(self.word("outcome"), outcome(&session.status).render(self.language))];
        if let Some(reason) = &session.reason {
            facts.push((self.word("reason"), reason.render(self.language)));
        }
        facts.push((self.word("session"), session.id.clone()));
        if let Some(id) = &session.retry_of {
            facts.push((self.word("retry of"), id.clone()));
        }
        facts.push((self.word("script"), session.script.clone()));
        facts.push((self.word("user"), session.user.clone()));
        facts.push((self.word("started"), self.minute(&session.started_at)));
        facts.push((self.word("last change"), self.moment(&session.updated_at, "%Y-%m-%d %H:%M:%S (UTC%:z)")));
        facts.push((self.word("duration"), self.length(session.duration_ms)));
        let used = usage_summary(&json!({ "used": session.used })).render(self.language);
        facts.push((self.word("usage"), used));
        let cost = session.usage.get("cost").and_then(Value::as_object).into_iter().flatten();
        let cost: Vec<String> = cost.map(|(currency, amount)| format!("{amount} {currency}")).collect();
        if !cost.is_empty() {
            facts.push((self.word("cost"), cost.join(" + ")));
        }
        self.blocks.push(ReportBlock::Facts(facts));
    }

    /// A table with at most [`MAX_ROWS`] rows.
    fn table<R>(&mut self, head: &[&str], rows: &[R], row: impl Fn(&Self, &R) -> Vec<String>) {
        let half = MAX_ROWS / 2;
        let left_out = rows.len().saturating_sub(MAX_ROWS);
        let (first, last) = match left_out {
            0 => (rows, &[][..]),
            _ => (rows.get(..half).unwrap_or_default(), rows.get(half + left_out..).unwrap_or_default()),
        };
        let mut cells: Vec<Vec<String>> = first.iter().map(|item| row(self, item)).collect();
        if left_out > 0 {
            let text = self.language.format("… {count} rows are left out", &[("count", &left_out.to_string())]);
            let mut gap = vec![String::new(); head.len()];
            gap.first_mut().into_iter().for_each(|cell| cell.clone_from(&text));
            cells.push(gap);
        }
        cells.extend(last.iter().map(|item| row(self, item)));
        self.blocks.push(ReportBlock::Table { head: self.words(head), rows: cells });
    }

    fn steps(&mut self, report: &SessionReport) {
        self.heading("Steps");
        if report.steps.is_empty() {
            let text = self.word("No step has started.");
            self.blocks.push(ReportBlock::Paragraph(text));
            return;
        }
        let head =
            ["step", "action type", "status", "started", "duration", "waited", "attempts", "exit code", "result"];
        self.table(&head, &report.steps, |layout, step| {
            let waited = Some(step.waited_ms).filter(|ms| *ms > 0);
            let mut result = layout.message(step.error.as_ref());
            if result.is_empty() {
                result = step.variables.join(", ");
            }
            let attempts = if step.attempts > 0 { step.attempts.to_string() } else { String::new() };
            vec![
                if step.visit > 1 { format!("{} ({})", step.path, step.visit) } else { step.path.clone() },
                step.action_type.clone(),
                step.status.label().render(layout.language),
                layout.moment(&step.started_at, "%H:%M:%S"),
                layout.length(step.duration_ms),
                layout.length(waited),
                attempts,
                step.exit_code.map(|code| code.to_string()).unwrap_or_default(),
                result,
            ]
        });
    }

    fn decisions(&mut self, report: &SessionReport) {
        if report.decisions.is_empty() {
            return;
        }
        self.heading("Decisions");
        let head = ["time", "step", "request", "decision", "by", "comment", "values", "waited"];
        self.table(&head, &report.decisions, |layout, decision| {
            let made = decision.decision.as_deref().map_or_else(|| layout.word("the time came"), str::to_owned);
            let values = decision.values.fields().map(|(name, value)| format!("{name} = {}", text_of(&value)));
            vec![
                layout.minute(&decision.at),
                decision.path.clone(),
                cut(&decision.prompt),
                made,
                decision.by.clone().unwrap_or_default(),
                cut(decision.comment.as_deref().unwrap_or_default()),
                cut(&values.collect::<Vec<_>>().join(", ")),
                layout.length(decision.waited_ms),
            ]
        });
    }

    fn iterations(&mut self, report: &SessionReport) {
        if report.iterations.is_empty() {
            return;
        }
        self.heading("Iterations");
        let head = ["time", "step", "iteration", "by", "comment", "back to"];
        self.table(&head, &report.iterations, |layout, push_back| {
            vec![
                layout.minute(&push_back.at),
                push_back.path.clone(),
                push_back.iteration.to_string(),
                push_back.by.clone().unwrap_or_default(),
                cut(push_back.comment.as_deref().unwrap_or_default()),
                push_back.back_to.clone().unwrap_or_default(),
            ]
        });
    }

    fn failures(&mut self, report: &SessionReport) {
        if report.failures.is_empty() {
            return;
        }
        self.heading("Failures");
        let left_out = report.failures.len().saturating_sub(MAX_ROWS);
        if left_out > 0 {
            let text = self.language.format("… {count} rows are left out", &[("count", &left_out.to_string())]);
            self.blocks.push(ReportBlock::Paragraph(text));
        }
        for failure in report.failures.iter().skip(left_out) {
            let place = if failure.path.is_empty() { self.word("session") } else { failure.path.clone() };
            let title = format!("{place}: {}", self.message(Some(&failure.message)));
            self.blocks.push(ReportBlock::Subheading(title));
            let mut facts = vec![(self.word("time"), self.minute(&failure.at))];
            facts.extend(failure.exit_reason.iter().map(|reason| (self.word("exit reason"), reason.clone())));
            facts.extend(failure.exit_code.map(|code| (self.word("exit code"), code.to_string())));
            self.blocks.push(ReportBlock::Facts(facts));
            self.output("stdout", failure.stdout.as_ref());
            self.output("stderr", failure.stderr.as_ref());
        }
    }

    fn output(&mut self, name: &str, output: Option<&OutputExcerpt>) {
        let Some(output) = output else { return };
        let bytes = output.left_out.to_string();
        let text = match output.left_out {
            0 => format!("{name}:"),
            _ => self.language.format("{name}, without the first {bytes} bytes:", &[("name", name), ("bytes", &bytes)]),
        };
        self.blocks.push(ReportBlock::Paragraph(text));
        self.blocks.push(ReportBlock::Code { language: "text", text: output.text.clone() });
    }

    fn timeline(&mut self, report: &SessionReport) {
        self.heading("Timeline");
        self.table(
            &["time", "since the start", "event", "place", "duration", ""],
            &report.timeline,
            |layout, entry| {
                vec![
                    layout.minute(&entry.at),
                    layout.length(entry.after_ms),
                    entry.r#type.clone(),
                    entry.path.clone(),
                    layout.length(entry.duration_ms),
                    layout.message(entry.text.as_ref()),
                ]
            },
        );
    }

    fn variables(&mut self, variables: &ExactValue) {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut add = |scope: &str, name: &str, variable: &ExactValue| {
            let value = variable.field("value").map(|value| cut(&text_of(&value))).unwrap_or_default();
            let source = variable.get("source").and_then(Value::as_str).unwrap_or_default().to_owned();
            rows.push(vec![scope.to_owned(), name.to_owned(), value, source]);
        };
        for (scope, values) in variables.fields() {
            for (name, value) in values.fields() {
                match scope {
                    "phase" | "topic" => {
                        value.fields().for_each(|(inner, value)| add(&format!("{scope} {name}"), inner, &value));
                    }
                    _ => add(scope, name, &value),
                }
            }
        }
        if rows.is_empty() {
            return;
        }
        self.heading("Variables");
        self.table(&["scope", "name", "value", "set by"], &rows, |_, row| row.clone());
    }

    fn transcript(&mut self, transcript: &TranscriptExcerpt) {
        if transcript.messages == 0 {
            return;
        }
        self.heading("Conversation");
        transcript.first.iter().for_each(|message| self.quote(message));
        if transcript.left_out > 0 {
            let values = [("count", &*transcript.left_out.to_string()), ("all", &*transcript.messages.to_string())];
            let text = self.language.format("… {count} of {all} messages are left out", &values);
            self.blocks.push(ReportBlock::Paragraph(text));
        }
        transcript.last.iter().for_each(|message| self.quote(message));
    }

    fn quote(&mut self, message: &ReportedMessage) {
        let mut text = message.text.clone();
        if message.left_out > 0 {
            let count = message.left_out.to_string();
            text.push_str(&self.language.format("… ({count} more characters)", &[("count", &count)]));
        }
        let time = self.moment(&message.at, "%Y-%m-%d %H:%M");
        self.blocks.push(ReportBlock::Quote { speaker: message.speaker.clone(), time, text });
    }
}

/// The status of a session in words.
fn outcome(status: &str) -> Message {
    match SessionStatus::parse(status) {
        Some(SessionStatus::Running) => Message::word("running"),
        Some(SessionStatus::WaitingInput) => Message::word("waits for an answer"),
        Some(SessionStatus::WaitingApproval) => Message::word("waits for a decision"),
        Some(SessionStatus::WaitingTime) => Message::word("waits for a time"),
        Some(SessionStatus::Stopped) => Message::word("stopped"),
        Some(SessionStatus::Completed) => Message::word("completed"),
        Some(SessionStatus::Failed) => Message::word("failed"),
        Some(SessionStatus::Cancelled) => Message::word("cancelled"),
        None => Message::text(status),
    }
}

fn text_of(value: &ExactValue) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn cut(text: &str) -> String {
    match text.chars().count() > MAX_CELL {
        true => text.chars().take(MAX_CELL).chain(['…']).collect(),
        false => text.to_owned(),
    }
}
