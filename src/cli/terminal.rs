//! The front end for a terminal: prints messages as they are streamed, and a dimmed line when the phase or topic changes.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::cli::cells::{CellView, LineStyle};
use crate::cli::cells_again::{rerun_line, rerun_notice};
use crate::cli::language::{chosen, filled, listed, translated};
use crate::cli::live_cell::LiveCell;
use crate::cli::output;
use crate::cli::output_view::CommandOutputView;
use crate::cli::piped::error_message;
use crate::cli::progress;
use crate::cli::progress::StepStyle;
use bcc_engine::last_exchanges::LastExchanges;
use bcc_engine::script_names::with_element;
use bcc_lang::source::render::visible::{VisibleStream, visible, visible_line};
use bcc_runtime::program::cell_rerun::CellRerunPiece;
use bcc_runtime::program::event::{Committed, Delta, Event, Observer, Speaker};
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::output_piece::OutputPiece;
use bcc_runtime::program::question::QuestionPiece;
use bcc_runtime::program::tool_progress::ToolProgressPiece;

/// Shows a conversation.
#[derive(Debug, Default)]
pub struct Terminal {
    shown: Mutex<Shown>,
    /// The end of the conversation, if it is resumed.
    resumed: LastExchanges,
}

#[derive(Debug, Default)]
struct Shown {
    phase: String,
    topic: String,
    /// The names of phases and topics that were entered, for when the session returns to them.
    names: BTreeMap<(Option<String>, String), String>,
    /// The last phase and topic that were shown.
    place: String,
    message: Option<ShownMessage>,
    cells: CellView,
    commands: CommandOutputView,
    live: LiveCell,
}

/// A message that is being shown.
#[derive(Debug, Default)]
struct ShownMessage {
    id: String,
    /// Its text so far.
    text: String,
    /// How its next piece is shown.
    stream: VisibleStream,
}

impl Terminal {
    /// Shows a conversation that is resumed.
    pub fn resuming(resumed: LastExchanges) -> Self {
        Self { resumed, ..Self::default() }
    }

    /// What a person sees before the conversation begins or continues.
    fn introduce(&self) {
        quiet(&translated("/help lists the commands, /quit saves and leaves"));
        for (role, text) in &self.resumed.messages {
            let values = [("speaker", self.resumed.names.speaker(role)), ("text", text)];
            quiet(&filled("{speaker}: {text}", &values));
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Terminal {
    fn committed(&self, committed: &Committed<'_>) {
        self.show(committed);
        // The lines of running steps would disturb a line that is being written or typed.
        let is_asked = matches!(committed.event, Event::Waiting { r#for, .. } if *r#for != "time");
        let is_line_open = {
            let shown = self.shown();
            shown.message.is_some() || shown.live.is_open()
        };
        progress::set_shown(!is_line_open && !is_asked);
    }

    fn delta(&self, delta: &Delta<'_>) {
        progress::set_shown(false);
        self.shown().append(delta.message_id, delta.text);
    }

    fn output(&self, output: &OutputPiece<'_>) {
        let mut shown = self.shown();
        if let Some(cell_id) = output.cell_id {
            shown.end_message();
            shown.header();
            if output.left_out > 0 {
                let values = [("count", output.left_out.to_string())];
                let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
                let note = filled("… {count} bytes are not shown here", &values);
                print(&shown.live.end());
                quiet(&format!("  {note}"));
            }
            let style = |line: &str| styled(LineStyle::Quiet, &visible(line));
            let written = shown.live.write(cell_id, output.stream, output.text, style);
            if shown.live.is_open() {
                progress::set_shown(false);
            }
            return print(&written);
        }
        shown.end_line();
        shown.header();
        shown.commands.lines(output, chosen()).iter().for_each(|line| quiet(line));
    }

    fn cell_rerun(&self, piece: &CellRerunPiece<'_>) {
        if piece.starts() {
            let mut shown = self.shown();
            shown.end_line();
            shown.header();
            quiet(&format!("! {}", rerun_notice(piece)));
        }
        match progress::can_move_cursor() {
            true => progress::cell_reruns(piece, rerun_line(piece)),
            false => rerun_line(piece).iter().for_each(|line| quiet(&format!("  {line}"))),
        }
    }

    fn tool_progress(&self, progress: &ToolProgressPiece<'_>) {
        progress::tool_progressed(progress);
    }

    fn question(&self, question: &QuestionPiece<'_>) {
        if question.is_open {
            // Its line would follow a line that is not ended.
            print(&self.shown().live.end());
        }
        progress::asked(question);
    }
}

impl Terminal {
    fn show(&self, committed: &Committed<'_>) {
        let (event, place) = (committed.event, committed.place);
        if matches!(event, Event::SessionStarted { .. } | Event::SessionResumed { .. }) {
            return self.introduce();
        }
        let id = |id: &Option<String>| id.clone().unwrap_or_default();
        let mut shown = self.shown();
        shown.commands.committed(event, place);
        // A resumed session does not enter its phase and topic again.
        let names = &self.resumed.names;
        if shown.phase.is_empty() {
            shown.phase = names.phase(&id(&place.phase_id)).to_owned();
        }
        if shown.topic.is_empty() {
            shown.topic = names.topic(&id(&place.phase_id), &id(&place.topic_id), &place.path);
        }
        let named = |name: &Option<String>, or: &Option<String>| match name {
            Some(name) if !name.is_empty() => name.clone(),
            _ => id(or),
        };
        if let Some((style, line)) = progress::committed(event, place) {
            shown.end_line();
            shown.header();
            print(&format!("{}\n", step_line(style, &line)));
        }
        match event {
            Event::PhaseEntered { name } => {
                shown.phase = named(name, &place.phase_id);
                let phase = shown.phase.clone();
                shown.names.insert((place.phase_id.clone(), String::new()), phase);
            }
            Event::TopicEntered { name } => {
                let name = named(name, &place.topic_id);
                shown.topic = with_element(&name, &place.path);
                let topic = shown.topic.clone();
                shown.names.insert(topic_key(place), topic);
            }
            Event::Message { role: Speaker::Ai, message_id, text, .. } => shown.finish_message(message_id, text),
            Event::MessageDiscarded { message_id } => shown.discard(message_id),
            Event::Outcome { outcome, .. } if outcome.metadata.get("parse_error") == Some(&Value::Bool(true)) => {
                quiet(&translated("(the model's reply could not be read; /why shows details)"));
            }
            Event::Error { code, message, help } => {
                shown.end_line();
                let error = error_message(code, message, place).render(chosen());
                let text = filled("error: {error}", &[("error", &error)]);
                print(&format!("{}\n", red(&visible(&text))));
                if let Some(help) = help.as_ref().filter(|help| !help.is_empty()) {
                    quiet(&filled("help: {help}", &[("help", &translated(help))]));
                }
            }
            Event::Cell(_) | Event::NotebookAction { .. } | Event::Warning { .. } => {
                let streamed = shown.live.id.clone();
                let lines = shown.cells.lines((committed.seq, event), &streamed, chosen());
                if matches!(event, Event::Cell(_)) {
                    print(&shown.live.end());
                }
                let Some(lines) = lines else { return };
                shown.end_line();
                shown.header();
                lines.iter().for_each(|(style, line)| print(&format!("{}\n", styled(*style, &visible(line)))));
            }
            Event::TakenBack { effects, globals, plans, .. } => {
                shown.cells.lines((committed.seq, event), "", chosen());
                shown.end_line();
                quiet(&translated("(your last answer was taken back)"));
                if *effects > 0 || !globals.is_empty() {
                    quiet(&stays(*effects, globals));
                }
                if !plans.is_empty() {
                    let plans = plans.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
                    quiet(&filled("(not undone: changes in plans: {plans})", &[("plans", &plans)]));
                }
                // The question is shown again.
                let phase = shown.names.get(&(place.phase_id.clone(), String::new())).cloned();
                let topic = shown.names.get(&topic_key(place)).cloned();
                shown.phase = phase.unwrap_or_else(|| id(&place.phase_id));
                shown.topic = topic.unwrap_or_else(|| id(&place.topic_id));
                shown.place = String::new();
            }
            // A resumed session repeats what it waits for, because this process has not shown it. A question about an external
            // effect is not a message of the conversation, and is shown as well.
            Event::Waiting { r#for, prompt, .. } if shown.place.is_empty() || !matches!(*r#for, "input") => {
                shown.finish_message("", prompt);
            }
            _ => {
                if let Some(notice) = notice(event) {
                    shown.end_line();
                    quiet(&notice);
                }
            }
        }
    }
}

impl Shown {
    fn header(&mut self) {
        let known: Vec<&str> = [self.phase.as_str(), &self.topic].into_iter().filter(|name| !name.is_empty()).collect();
        let place = known.join(" › ");
        if !place.is_empty() && place != self.place {
            quiet(&format!("── {} ──", visible_line(&place)));
            self.place = place;
        }
    }

    fn append(&mut self, message_id: &str, text: &str) {
        let is_current = self.message.as_ref().is_some_and(|message| message.id == message_id);
        if !is_current {
            self.mark_discarded();
            print(&self.live.end());
            self.header();
            self.message = Some(ShownMessage { id: message_id.to_owned(), ..ShownMessage::default() });
        }
        if let Some(message) = &mut self.message {
            message.text.push_str(text);
            print(&message.stream.push(text));
        }
    }

    /// Shows the remainder of a committed message.
    fn finish_message(&mut self, message_id: &str, text: &str) {
        let rest = match &mut self.message {
            Some(message) if message.id == message_id => text
                .strip_prefix(message.text.as_str())
                .map(|rest| message.stream.push(rest) + &message.stream.finish()),
            _ => None,
        };
        match rest {
            Some(rest) => print(&format!("{rest}\n")),
            None => {
                self.mark_discarded();
                print(&self.live.end());
                self.header();
                print(&format!("{}\n", visible(text)));
            }
        }
        self.message = None;
    }

    fn discard(&mut self, message_id: &str) {
        if self.message.as_ref().is_some_and(|message| message.id == message_id) {
            self.mark_discarded();
        }
    }

    /// Marks the text that is being shown, if any, as discarded: the model was asked again. The event for this is committed later, when
    /// other text may already follow.
    fn mark_discarded(&mut self) {
        if self.message.is_some() {
            self.end_line();
            quiet(&translated("(the text above was discarded)"));
        }
    }

    /// Ends the line that is being written.
    fn end_line(&mut self) {
        print(&self.live.end());
        self.end_message();
    }

    fn end_message(&mut self) {
        if let Some(mut message) = self.message.take() {
            print(&format!("{}\n", message.stream.finish()));
        }
    }
}

/// The notice for a decision; none if the conversation simply continues.
fn notice(event: &Event) -> Option<String> {
    match event {
        Event::Triggered { reason, route, .. } => {
            Some(filled("(trigger {reason}: {route}; /why shows details)", &[("reason", reason), ("route", route)]))
        }
        Event::Orchestrated { accepted: true, .. } => {
            Some(translated("(a plan changed the rest of this topic; /plan shows the change)").into_owned())
        }
        Event::PlanChanged { plan_id, name: Some(title), task_id: None, .. } => {
            let values = [("plan", plan_id.to_string()), ("title", title.clone())];
            let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Some(filled("(plan {plan}: {title}; `bcc-script plans show {plan}` shows it)", &values))
        }
        Event::BudgetReached { why, .. } => {
            Some(filled("(budget: {why}; /why shows details)", &[("why", &translated(why))]))
        }
        // A failure is reported as an error.
        Event::RouteTaken { reason, route, from, .. }
            if !matches!(route.as_str(), "next" | "resume" | "fail" | "error") =>
        {
            let values = [("reason", *reason), ("from", from), ("route", route)];
            Some(filled("({reason} at {from}: {route}; /why shows details)", &values))
        }
        _ => None,
    }
}

/// The phase, and the first part of the instance path: the topic with its element.
fn topic_key(place: &EventLocation) -> (Option<String>, String) {
    (place.phase_id.clone(), place.path.split('/').next().unwrap_or_default().to_owned())
}

/// What was not undone when an answer was taken back.
fn stays(effects: u64, globals: &[String]) -> String {
    let (effects, names) = (effects.to_string(), listed(globals));
    match (effects.as_str(), globals.is_empty()) {
        (_, true) => filled("(not undone: code or commands that ran: {effects})", &[("effects", &effects)]),
        ("0", false) => {
            filled("(not undone: variables that are kept for later sessions: {names})", &[("names", &names)])
        }
        (_, false) => filled(
            "(not undone: code or commands that ran: {effects}; variables that are kept for later sessions: {names})",
            &[("effects", &effects), ("names", &names)],
        ),
    }
}

fn print(text: &str) {
    output::write(text);
}

/// Prints a dimmed line.
pub fn quiet(text: &str) {
    let text = visible(text);
    if color() { print(&format!("\u{1b}[2m{text}\u{1b}[0m\n")) } else { print(&format!("{text}\n")) }
}

/// A line of a cell in its style.
fn styled(style: LineStyle, text: &str) -> String {
    match style {
        LineStyle::Heading if color() => format!("\u{1b}[1m{text}\u{1b}[0m"),
        LineStyle::Quiet if color() => format!("\u{1b}[2m{text}\u{1b}[0m"),
        LineStyle::Error => red(text),
        _ => text.to_owned(),
    }
}

/// A line of a step in its style.
fn step_line(style: StepStyle, text: &str) -> String {
    let code = match style {
        StepStyle::Done => "32",
        StepStyle::Failed => "31",
        StepStyle::Waiting => "33",
    };
    if color() { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

fn red(text: &str) -> String {
    if color() { format!("\u{1b}[31m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Whether standard output supports colors.
pub fn color() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_decisions_that_change_the_course_are_shown_during_the_conversation() {
        let route_event = |route: &str| {
            let (from, why) = ("ask".to_owned(), String::new());
            Event::RouteTaken {
                reason: "user_blocked",
                route: route.to_owned(),
                from,
                why: bcc_lang::message::message::Message::text(why),
                table: None,
            }
        };
        let expected = Some("(user_blocked at ask: insert: comfort, then: resume; /why shows details)".to_owned());
        assert_eq!(notice(&route_event("insert: comfort, then: resume")), expected);
        for route in ["next", "resume", "fail", "error"] {
            assert_eq!(notice(&route_event(route)), None, "{route}");
        }
        let (reason, route, from, why) = ("crisis".into(), "insert: help".into(), String::new(), String::new());
        assert!(
            notice(&Event::Triggered { reason, route, from, why: bcc_lang::message::message::Message::text(why) })
                .unwrap()
                .contains("trigger crisis")
        );
        let planned = |accepted: bool| {
            let (reason, from, why) = (String::new(), String::new(), String::new());
            let (plan, original, now) = (Value::Null, vec![], vec![]);
            Event::Orchestrated {
                reason,
                route: "insert",
                from,
                why: bcc_lang::message::message::Message::text(why),
                accepted,
                plan,
                original,
                now,
            }
        };
        assert_eq!(notice(&planned(false)), None);
        assert!(notice(&planned(true)).unwrap().contains("/plan"));
    }
}
