//! Formats a rendered prompt for people: a head line, the text of each message, missing values, and differences.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fmt::Write;

use crate::cli::language::translated;
use bcc_authoring::render::comparison::PromptComparison;
use bcc_authoring::render::prompt::{Prompt, role, tokens};
use bcc_lang::source::render::visible::visible;
use bcc_lang::template::missing::MARK_DELIMITERS;
use bcc_llm::model::message::ChatMessage;

/// The limit on locations that are shown; the others are counted.
const MAX_LOCATIONS: usize = 40;

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const CYAN: &str = "\u{1b}[36m";
const OFF: &str = "\u{1b}[0m";

/// The properties of a prompt without its messages, on one line.
pub fn head(prompt: &Prompt) -> String {
    let (file, schema, round, count, tokens) =
        (&prompt.file, &prompt.schema, prompt.round, prompt.messages.len(), prompt.tokens());
    let mut parts = vec![translated(file).into_owned()];
    let mut add = |part: &Message| parts.push(translated(part).into_owned());
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
    if let Some(limit) = prompt.max_tokens {
        add(&msg!("at most {limit} reply tokens"));
    }
    add(&match count {
        1 => msg!("1 message, about {tokens} tokens"),
        _ => msg!("{count} messages, about {tokens} tokens"),
    });
    parts.join(" · ")
}

/// The messages, with what a terminal would obey or hide made visible. With `color`, the marks of `unknown` names are colored.
pub fn messages(messages: &[ChatMessage], unknown: &[&str], color: bool) -> String {
    let mut text = String::new();
    for (number, message) in messages.iter().enumerate() {
        if number > 0 {
            text.push_str("\n\n");
        }
        let (number, role, tokens) = (number + 1, role(message.role), tokens(message));
        let head = msg!("── {number} · {role} · about {tokens} tokens ──", role = Message::word(role));
        let head = translated(&head);
        let content = visible(&message.content);
        let content = if color { marked(&content, unknown) } else { content };
        let _ = if color { write!(text, "{BOLD}{head}{OFF}\n{content}") } else { write!(text, "{head}\n{content}") };
    }
    text
}

/// Colors the marks of unknown names, also if a filter or an attribute changed them (`⟦UP?⟧`, `⟦who.x?⟧`). Other text that looks like
/// a mark is unchanged.
fn marked(content: &str, unknown: &[&str]) -> String {
    let normalize = |name: &str| name.trim().to_lowercase();
    let names: Vec<String> = unknown.iter().map(|name| normalize(name)).collect();
    let is_mark = |inner: &str| names.contains(&normalize(inner.split('.').next().unwrap_or_default()));
    let mut colored = String::with_capacity(content.len());
    let mut rest = content;
    while let Some((before, after)) = rest.split_once(MARK_DELIMITERS.0) {
        colored.push_str(before);
        rest = after;
        match after.split_once(MARK_DELIMITERS.1).filter(|(inner, _)| is_mark(inner)) {
            Some((inner, remainder)) => {
                let _ = write!(colored, "{RED}{}{inner}{}{OFF}", MARK_DELIMITERS.0, MARK_DELIMITERS.1);
                rest = remainder;
            }
            None => colored.push_str(MARK_DELIMITERS.0),
        }
    }
    colored.push_str(rest);
    colored
}

/// The operations that gave no text, one line each.
pub fn warnings(prompt: &Prompt) -> Vec<Message> {
    prompt.warnings.iter().map(|message| msg!("warning: {message}")).collect()
}

/// The undefined and empty names of a prompt, one line each.
pub fn missing_names(prompt: &Prompt) -> Vec<Message> {
    let mut lines = Vec::new();
    for missing in prompt.unknown.iter().take(MAX_LOCATIONS) {
        lines.push(msg!("undefined: {told}", told = missing.describe()));
    }
    if prompt.unknown.len() > MAX_LOCATIONS {
        let more = prompt.unknown.len() - MAX_LOCATIONS;
        lines.push(msg!("{more} more locations use undefined names"));
    }
    for missing in prompt.empty.iter().filter(|missing| missing.reached).take(MAX_LOCATIONS) {
        lines.push(msg!("empty: {told} is defined but has no value yet", told = missing.describe()));
    }
    lines
}

/// The properties of the sent prompt, on one line.
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
    parts.iter().map(|part| translated(part)).collect::<Vec<_>>().join(" · ")
}

/// The sent prompt compared with the one that would be sent now, message by message.
pub fn changed(changed: &PromptComparison, color: bool) -> String {
    let now = match &changed.current {
        Ok(now) => now,
        Err(reason) => {
            let sent = messages(&changed.original, &[], color);
            let reason = visible(&translated(reason));
            let reason = if color { format!("{RED}{reason}{OFF}") } else { reason };
            return format!(
                "{sent}\n\n{}\n{} {reason}",
                translated("── now ──"),
                translated("this prompt is no longer sent:")
            );
        }
    };
    if changed.same {
        return format!(
            "{}\n\n{}\n{}",
            messages(&changed.original, &[], color),
            translated("── now ──"),
            translated("the same")
        );
    }
    let mut text = String::new();
    let differences = changed.differences();
    for number in 0..changed.original.len().max(now.messages.len()) {
        if number > 0 {
            text.push('\n');
        }
        let (sent, current) = (changed.original.get(number), now.messages.get(number));
        let head = match (sent, current) {
            (Some(sent), Some(current)) if sent.role == current.role => {
                let (before, after) = (tokens(sent), tokens(current));
                let (number, role) = (number + 1, role(current.role));
                msg!("── {number} · {role} · about {before} tokens then, {after} now ──", role = Message::word(role))
            }
            (Some(sent), Some(current)) => {
                let (number, before, after) = (number + 1, role(sent.role), role(current.role));
                msg!("── {number} · was {before}, now {after} ──")
            }
            (Some(sent), None) => {
                let (number, role) = (number + 1, role(sent.role));
                msg!("── {number} · {role} · only in the sent prompt ──")
            }
            (None, Some(current)) => {
                let (number, role) = (number + 1, role(current.role));
                msg!("── {number} · {role} · only in the current prompt ──")
            }
            (None, None) => Message::default(),
        };
        let head = translated(&head);
        let _ = if color { writeln!(text, "{BOLD}{head}{OFF}") } else { writeln!(text, "{head}") };
        let difference = differences.get(number).map(String::as_str).unwrap_or_default();
        if difference.is_empty() {
            let _ = writeln!(text, "{}", translated("the same"));
        }
        for line in difference.lines() {
            let style = match line.chars().next() {
                Some('-') => RED,
                Some('+') => GREEN,
                Some('@') => CYAN,
                _ => "",
            };
            let _ = match color && !style.is_empty() {
                true => writeln!(text, "{style}{}{OFF}", visible(line)),
                false => writeln!(text, "{}", visible(line)),
            };
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_colored_also_if_a_filter_or_an_attribute_changed_them() {
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
