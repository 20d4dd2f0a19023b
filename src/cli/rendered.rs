//! How a rendered prompt is shown to people: a head line and the text of each message; what it lacks; what changed.

use std::fmt::Write;

use crate::cli::terminal::plain;
use crate::engine::render::changed::Changed;
use crate::engine::render::prompt::{Prompt, role, tokens};
use crate::model::message::Message;
use crate::prompt::marks::AROUND;

/// More places than these are counted, not shown.
const MOST_PLACES: usize = 40;

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const CYAN: &str = "\u{1b}[36m";
const OFF: &str = "\u{1b}[0m";

/// What is known of a prompt besides its messages, on one line.
pub fn head(prompt: &Prompt) -> String {
    let mut head = prompt.file.clone();
    if let Some((id, kind)) = &prompt.action {
        let _ = write!(head, " · {kind} `{id}`, round {}", prompt.round);
        head.push_str(if prompt.answer.is_some() { ", judging an answer" } else { "" });
    }
    let _ = write!(head, " · reply schema {}", prompt.schema);
    if let Some(model) = &prompt.model {
        let _ = write!(head, " · model {model}");
    }
    if let Some(temperature) = prompt.temperature {
        let _ = write!(head, " · temperature {temperature}");
    }
    if let Some(most) = prompt.max_tokens {
        let _ = write!(head, " · at most {most} tokens of reply");
    }
    let count = prompt.messages.len();
    let messages = if count == 1 { "message" } else { "messages" };
    let _ = write!(head, " · {count} {messages}, about {} tokens", prompt.tokens());
    head
}

/// The messages. At a terminal, what would move a cursor is left out, and the marks of the `unknown` names are coloured.
pub fn messages(messages: &[Message], unknown: &[&str], color: bool) -> String {
    let mut text = String::new();
    for (number, message) in messages.iter().enumerate() {
        if number > 0 {
            text.push_str("\n\n");
        }
        let head = format!("── {} · {} · about {} tokens ──", number + 1, role(message.role), tokens(message));
        let content = if color { marked(&plain(&message.content), unknown) } else { message.content.clone() };
        let _ = if color { write!(text, "{BOLD}{head}{OFF}\n{content}") } else { write!(text, "{head}\n{content}") };
    }
    text
}

fn marked(content: &str, unknown: &[&str]) -> String {
    let mut content = content.to_owned();
    let mut names = unknown.to_vec();
    names.dedup();
    for name in names {
        let mark = format!("{}{name}{}", AROUND.0, AROUND.1);
        content = content.replace(&mark, &format!("{RED}{mark}{OFF}"));
    }
    content
}

/// What a prompt lacks, a line each.
pub fn lacks(prompt: &Prompt) -> Vec<String> {
    let mut lines = Vec::new();
    for lack in prompt.unknown.iter().take(MOST_PLACES) {
        lines.push(format!("undefined: {}", lack.told()));
    }
    if prompt.unknown.len() > MOST_PLACES {
        lines.push(format!("{} more places use undefined names", prompt.unknown.len() - MOST_PLACES));
    }
    for lack in prompt.empty.iter().filter(|lack| lack.reached).take(MOST_PLACES) {
        lines.push(format!("empty: {}: it is known and has no value yet", lack.told()));
    }
    lines
}

/// What was sent then, on one line.
pub fn head_of_sent(changed: &Changed) -> String {
    let Changed { session, action, round, call, calls, at, .. } = changed;
    let which = if *calls > 1 { format!(", call {call} of {calls}") } else { String::new() };
    let at = at.get(..19).unwrap_or(at).replace('T', " ");
    format!("session `{session}` · `{action}`, round {round}{which} · sent {at} (UTC)")
}

/// What was sent then, with the differences of what would be sent now, message by message.
pub fn changed(changed: &Changed, color: bool) -> String {
    let now = match &changed.now {
        Ok(now) => now,
        Err(why) => {
            let then = messages(&changed.then, &[], color);
            let why = if color { format!("{RED}{}{OFF}", plain(why)) } else { why.clone() };
            return format!("{then}\n\n── now ──\nthere is no such prompt now: {why}");
        }
    };
    if changed.same {
        return format!("{}\n\n── now ──\nthe same", messages(&changed.then, &[], color));
    }
    let mut text = String::new();
    let differences = changed.differences();
    for number in 0..changed.then.len().max(now.messages.len()) {
        if number > 0 {
            text.push('\n');
        }
        let (then, now) = (changed.then.get(number), now.messages.get(number));
        let head = match (then, now) {
            (Some(then), Some(now)) if then.role == now.role => {
                let (before, after) = (tokens(then), tokens(now));
                format!("── {} · {} · about {before} tokens then, {after} now ──", number + 1, role(now.role))
            }
            (Some(then), Some(now)) => {
                format!("── {} · {} then, {} now ──", number + 1, role(then.role), role(now.role))
            }
            (Some(then), None) => format!("── {} · {} · only then ──", number + 1, role(then.role)),
            (None, Some(now)) => format!("── {} · {} · only now ──", number + 1, role(now.role)),
            (None, None) => String::new(),
        };
        let _ = if color { writeln!(text, "{BOLD}{head}{OFF}") } else { writeln!(text, "{head}") };
        let difference = differences.get(number).map(String::as_str).unwrap_or_default();
        text.push_str(if difference.is_empty() { "the same\n" } else { "" });
        for line in difference.lines() {
            let shade = match line.chars().next() {
                Some('-') => RED,
                Some('+') => GREEN,
                Some('@') => CYAN,
                _ => "",
            };
            let _ = match color && !shade.is_empty() {
                true => writeln!(text, "{shade}{}{OFF}", plain(line)),
                false => writeln!(text, "{}", if color { plain(line) } else { line.to_owned() }),
            };
        }
    }
    text.trim_end().to_owned()
}
