//! At a terminal: the AI's words as they arrive, and a quiet line where the conversation has got to.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::cli::cells::{CellView, Look};
use crate::cli::language::{chosen, filled, said};
use bcc_runtime::program::event::{Delta, Observer};

/// Shows a conversation.
#[derive(Debug, Default)]
pub struct Terminal {
    shown: Mutex<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    phase: String,
    topic: String,
    /// The place that was shown last.
    place: String,
    /// The message that is being shown, and what of it.
    message: Option<(String, String)>,
    cells: CellView,
}

impl Terminal {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Terminal {
    fn committed(&self, kind: &str, line: &str) {
        if !matches!(
            kind,
            "phase_entered"
                | "topic_entered"
                | "message"
                | "message_discarded"
                | "outcome"
                | "routed"
                | "triggered"
                | "orchestrated"
                | "budget_reached"
                | "error"
                | "waiting"
                | "cell"
                | "notebook_action"
        ) {
            return;
        }
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        let place = |id: &str| event.pointer(&format!("/location/{id}")).and_then(Value::as_str).unwrap_or_default();
        let mut shown = self.shown();
        // A resumed session enters nothing again, so ids stand in for names until it enters something.
        if shown.phase.is_empty() {
            place("phase_id").clone_into(&mut shown.phase);
        }
        if shown.topic.is_empty() {
            place("topic_id").clone_into(&mut shown.topic);
        }
        match kind {
            "phase_entered" => name_of(&event, place("phase_id")).clone_into(&mut shown.phase),
            "topic_entered" => {
                name_of(&event, place("topic_id")).clone_into(&mut shown.topic);
                if let Some(element) = element(place("path")) {
                    shown.topic.push_str(&format!(" ({element})"));
                }
            }
            "message" if text("role") == "ai" => shown.whole(text("message_id"), text("text")),
            "message_discarded" => shown.discard(text("message_id")),
            "outcome" if event.pointer("/metadata/parse_error") == Some(&Value::Bool(true)) => {
                quiet(&said("(the model's reply could not be read; /why tells more)"));
            }
            "routed" | "triggered" | "orchestrated" | "budget_reached" => {
                if let Some(notice) = notice(kind, &event) {
                    shown.end_line();
                    quiet(&plain(&notice));
                }
            }
            "error" => {
                shown.end_line();
                let told = filled("error: {error}", &[("error", &said(text("message")))]);
                print(&format!("{}\n", red(&plain(&told))));
                if !text("help").is_empty() {
                    quiet(&plain(&filled("help: {help}", &[("help", &said(text("help")))])));
                }
            }
            "cell" | "notebook_action" => {
                let Some(lines) = shown.cells.lines(kind, line, chosen()) else { return };
                shown.end_line();
                shown.header();
                lines.iter().for_each(|(look, line)| print(&format!("{}\n", looking(*look, &plain(line)))));
            }
            // A resumed session tells again what it waits for; the words before it were not shown by this process.
            // So is a question about an outside effect, which is no message of the conversation.
            "waiting" if shown.place.is_empty() || text("for") == "interrupted_effect" => {
                shown.whole("", text("prompt"));
            }
            _ => {}
        }
    }

    fn delta(&self, delta: &Delta<'_>) {
        self.shown().piece(delta.message_id, delta.text);
    }
}

impl Shown {
    fn header(&mut self) {
        let known: Vec<&str> = [self.phase.as_str(), &self.topic].into_iter().filter(|name| !name.is_empty()).collect();
        let place = known.join(" › ");
        if !place.is_empty() && place != self.place {
            quiet(&format!("── {} ──", plain(&place)));
            self.place = place;
        }
    }

    fn piece(&mut self, message_id: &str, text: &str) {
        let begun = self.message.as_ref().is_some_and(|(id, _)| id == message_id);
        if !begun {
            self.taken_back();
            self.header();
            self.message = Some((message_id.to_owned(), String::new()));
        }
        if let Some((_, so_far)) = &mut self.message {
            so_far.push_str(text);
        }
        print(&plain(text));
    }

    /// The message is committed: what is missing of it is shown now.
    fn whole(&mut self, message_id: &str, text: &str) {
        let rest = match &self.message {
            Some((id, so_far)) if id == message_id => text.strip_prefix(so_far.as_str()).map(str::to_owned),
            _ => None,
        };
        match rest {
            Some(rest) => print(&format!("{}\n", plain(&rest))),
            None => {
                self.taken_back();
                self.header();
                print(&format!("{}\n", plain(text)));
            }
        }
        self.message = None;
    }

    fn discard(&mut self, message_id: &str) {
        if self.message.as_ref().is_some_and(|(id, _)| id == message_id) {
            self.taken_back();
        }
    }

    /// The words that are being shown, if any, belong to no message: the model was asked again. The event that says so comes
    /// with the commit, when others may stand below them already.
    fn taken_back(&mut self) {
        if self.message.is_some() {
            self.end_line();
            quiet(&said("(the words above do not count)"));
        }
    }

    fn end_line(&mut self) {
        if self.message.take().is_some() {
            print("\n");
        }
    }
}

/// What is told of a decision while the conversation goes on; nothing where it simply goes on.
fn notice(kind: &str, event: &Value) -> Option<String> {
    let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let (reason, route) = (text("reason"), text("route"));
    match kind {
        "triggered" => {
            Some(filled("(trigger {reason}: {route}; /why tells more)", &[("reason", reason), ("route", route)]))
        }
        "orchestrated" if event.get("accepted") == Some(&Value::Bool(true)) => {
            Some(said("(a plan changed what is to come in this topic; /plan shows it)").into_owned())
        }
        "budget_reached" => Some(filled("(budget: {why}; /why tells more)", &[("why", &said(text("why")))])),
        // A failure is told as an error.
        "routed" if !matches!(text("route"), "next" | "resume" | "fail" | "error") => {
            let values = [("reason", reason), ("from", text("from")), ("route", route)];
            Some(filled("({reason} at {from}: {route}; /why tells more)", &values))
        }
        _ => None,
    }
}

/// The element that a topic runs for, from its instance path: `topic@element#2`.
fn element(path: &str) -> Option<&str> {
    let (_, element) = path.split('/').next()?.split_once('@')?;
    element.split('#').next()
}

fn name_of<'e>(event: &'e Value, id: &'e str) -> &'e str {
    event.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()).unwrap_or(id)
}

/// `text` without what would move the cursor, change colours or ring: a reply is data, also for a terminal.
pub fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn print(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes());
    let _ = output.flush();
}

/// A line in a quiet colour.
pub fn quiet(text: &str) {
    if color() { print(&format!("\u{1b}[2m{text}\u{1b}[0m\n")) } else { print(&format!("{text}\n")) }
}

/// A line of a cell in its colour.
fn looking(look: Look, text: &str) -> String {
    match look {
        Look::Heading if color() => format!("\u{1b}[1m{text}\u{1b}[0m"),
        Look::Quiet if color() => format!("\u{1b}[2m{text}\u{1b}[0m"),
        Look::Error => red(text),
        _ => text.to_owned(),
    }
}

fn red(text: &str) -> String {
    if color() { format!("\u{1b}[31m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Whether standard output may be coloured.
pub fn color() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_decision_that_leads_elsewhere_is_told_while_people_talk() {
        let event = |reason: &str, route: &str| serde_json::json!({ "reason": reason, "route": route, "from": "ask" });
        let blocked = event("user_blocked", "insert: comfort, then: resume");
        let told = Some("(user_blocked at ask: insert: comfort, then: resume; /why tells more)".to_owned());
        assert_eq!(notice("routed", &blocked), told);
        for route in ["next", "resume", "fail", "error"] {
            assert_eq!(notice("routed", &event("error", route)), None, "{route}");
        }
        assert!(notice("triggered", &event("crisis", "insert: help")).unwrap().contains("trigger crisis"));
        assert_eq!(notice("orchestrated", &serde_json::json!({ "accepted": false })), None);
        assert!(notice("orchestrated", &serde_json::json!({ "accepted": true })).unwrap().contains("/plan"));
    }

    #[test]
    fn the_element_of_a_topic_stands_in_its_path() {
        let table = [("care@母亲", Some("母亲")), ("care@2#3/ask", Some("2")), ("care#2/ask", None), ("", None)];
        for (path, expected) in table {
            assert_eq!(element(path), expected, "{path}");
        }
    }

    #[test]
    fn control_characters_of_a_reply_do_not_reach_the_terminal() {
        assert_eq!(plain("你好\u{1b}[31m\u{7}\r\n\t好"), "你好[31m\n\t好");
    }
}
