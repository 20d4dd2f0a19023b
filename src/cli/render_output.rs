//! How a rendered prompt is shown to people: a head line and the text of each message; what it lacks; what changed.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fmt::Write;

use crate::cli::language::said;
use crate::cli::terminal::plain;
use bcc_authoring::render::comparison::PromptComparison;
use bcc_authoring::render::prompt::{Prompt, role, tokens};
use bcc_lang::template::missing::AROUND;
use bcc_llm::model::message::ChatMessage;

/// More places than these are counted, not shown.
const MOST_PLACES: usize = 40;

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const CYAN: &str = "\u{1b}[36m";
const OFF: &str = "\u{1b}[0m";

/// What is known of a prompt besides its messages, on one line.
pub fn head(prompt: &Prompt) -> String {
    let (file, schema, round, count, tokens) =
        (&prompt.file, &prompt.schema, prompt.round, prompt.messages.len(), prompt.tokens());
    let mut parts = vec![said(file).into_owned()];
    let mut add = |part: &Message| parts.push(said(part).into_owned());
    if let Some((id, kind)) = &prompt.action {
        add(&match prompt.answer {
            None => msg!("{kind} `{id}`, round {round}"),
            Some(_) => msg!("{kind} `{id}`, round {round}, judging an answer"),
        });
    }
    if !schema.is_empty() {
        add(&msg!("reply schema {schema}"));
    }
    if let Some(model) = &prompt.model {
        add(&msg!("model {model}"));
    }
    if let Some(temperature) = prompt.temperature {
        add(&msg!("temperature {temperature}"));
    }
    if let Some(most) = prompt.max_tokens {
        add(&msg!("at most {most} reply tokens"));
    }
    add(&match count {
        1 => msg!("1 message, about {tokens} tokens"),
        _ => msg!("{count} messages, about {tokens} tokens"),
    });
    parts.join(" · ")
}

/// The messages. At a terminal, what would move a cursor is left out, and the marks of the `unknown` names are coloured.
pub fn messages(messages: &[ChatMessage], unknown: &[&str], color: bool) -> String {
    let mut text = String::new();
    for (number, message) in messages.iter().enumerate() {
        if number > 0 {
            text.push_str("\n\n");
        }
        let (number, role, tokens) = (number + 1, role(message.role), tokens(message));
        let head = msg!("── {number} · {role} · about {tokens} tokens ──", role = Message::word(role));
        let head = said(&head);
        let content = if color { marked(&plain(&message.content), unknown) } else { message.content.clone() };
        let _ = if color { write!(text, "{BOLD}{head}{OFF}\n{content}") } else { write!(text, "{head}\n{content}") };
    }
    text
}

/// Colours the marks of names that nobody knows, also where a filter or a part of the name changed them (`⟦UP?⟧`, `⟦who.x?⟧`). What
/// only looks like a mark (somebody said it) stays as it is.
fn marked(content: &str, unknown: &[&str]) -> String {
    let alike = |name: &str| name.trim().to_lowercase();
    let names: Vec<String> = unknown.iter().map(|name| alike(name)).collect();
    let is_mark = |inner: &str| names.contains(&alike(inner.split('.').next().unwrap_or_default()));
    let mut colored = String::with_capacity(content.len());
    let mut rest = content;
    while let Some((before, behind)) = rest.split_once(AROUND.0) {
        colored.push_str(before);
        rest = behind;
        match behind.split_once(AROUND.1).filter(|(inner, _)| is_mark(inner)) {
            Some((inner, after)) => {
                let _ = write!(colored, "{RED}{}{inner}{}{OFF}", AROUND.0, AROUND.1);
                rest = after;
            }
            None => colored.push_str(AROUND.0),
        }
    }
    colored.push_str(rest);
    colored
}

/// What a prompt lacks, a line each.
pub fn lacks(prompt: &Prompt) -> Vec<Message> {
    let mut lines = Vec::new();
    for lack in prompt.unknown.iter().take(MOST_PLACES) {
        let told = lack.told();
        lines.push(msg!("undefined: {told}"));
    }
    if prompt.unknown.len() > MOST_PLACES {
        let more = prompt.unknown.len() - MOST_PLACES;
        lines.push(msg!("{more} more locations use undefined names"));
    }
    for lack in prompt.empty.iter().filter(|lack| lack.reached).take(MOST_PLACES) {
        let told = lack.told();
        lines.push(msg!("empty: {told} is defined but has no value yet"));
    }
    lines
}

/// What was sent then, on one line.
pub fn head_of_sent(changed: &PromptComparison) -> String {
    let PromptComparison { session, action, path, round, call, calls, at, .. } = changed;
    let at = at.get(..19).unwrap_or(at).replace('T', " ");
    let mut parts = vec![msg!("session `{session}`"), msg!("`{action}`, round {round}")];
    if !path.is_empty() && path != action {
        parts.push(msg!("at `{path}`"));
    }
    if *calls > 1 {
        parts.push(msg!("call {call} of {calls}"));
    }
    parts.push(msg!("sent {at} (UTC)"));
    parts.iter().map(|part| said(part)).collect::<Vec<_>>().join(" · ")
}

/// What was sent then, with the differences of what would be sent now, message by message.
pub fn changed(changed: &PromptComparison, color: bool) -> String {
    let now = match &changed.now {
        Ok(now) => now,
        Err(why) => {
            let then = messages(&changed.then, &[], color);
            let why = said(why);
            let why = if color { format!("{RED}{}{OFF}", plain(&why)) } else { why.into_owned() };
            return format!("{then}\n\n{}\n{} {why}", said("── now ──"), said("this prompt is no longer sent:"));
        }
    };
    if changed.same {
        return format!("{}\n\n{}\n{}", messages(&changed.then, &[], color), said("── now ──"), said("the same"));
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
                let (number, role) = (number + 1, role(now.role));
                msg!("── {number} · {role} · about {before} tokens then, {after} now ──", role = Message::word(role))
            }
            (Some(then), Some(now)) => {
                let (number, before, after) = (number + 1, role(then.role), role(now.role));
                msg!("── {number} · was {before}, now {after} ──")
            }
            (Some(then), None) => {
                let (number, role) = (number + 1, role(then.role));
                msg!("── {number} · {role} · only in the sent prompt ──")
            }
            (None, Some(now)) => {
                let (number, role) = (number + 1, role(now.role));
                msg!("── {number} · {role} · only in the current prompt ──")
            }
            (None, None) => Message::default(),
        };
        let head = said(&head);
        let _ = if color { writeln!(text, "{BOLD}{head}{OFF}") } else { writeln!(text, "{head}") };
        let difference = differences.get(number).map(String::as_str).unwrap_or_default();
        if difference.is_empty() {
            let _ = writeln!(text, "{}", said("the same"));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_coloured_also_where_a_filter_or_a_part_changed_them() {
        let red = |text: &str| format!("{RED}{text}{OFF}");
        let table = [
            ("a⟦up?⟧b", format!("a{}b", red("⟦up?⟧"))),
            ("⟦UP?⟧⟦Up?⟧", red("⟦UP?⟧") + &red("⟦Up?⟧")),
            ("[\"⟦up.a.b?⟧\",1]", format!("[\"{}\",1]", red("⟦up.a.b?⟧"))),
            ("⟦answer of round 1⟧ ⟦up?⟧", format!("⟦answer of round 1⟧ {}", red("⟦up?⟧"))),
            ("⟦upper?⟧ ⟦up", "⟦upper?⟧ ⟦up".to_owned()),
        ];
        for (content, shown) in table {
            assert_eq!(marked(content, &["up"]), shown, "{content}");
        }
    }
}
