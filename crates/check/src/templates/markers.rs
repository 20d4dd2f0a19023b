//! `role-marker`: a line that was probably meant as a role marker, but is not exactly one.

use bcc_lang::message::msg;
use std::sync::Arc;

use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::near::near_miss;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::loaded::LoadedTemplate;
use bcc_lang::template::roles::PromptRole;

/// Alternative names of the roles.
const ROLE_ALIASES: [(&str, &str); 8] = [
    ("系统", "system"),
    ("用户", "user"),
    ("来访者", "user"),
    ("助手", "assistant"),
    ("human", "user"),
    ("ai", "assistant"),
    ("bot", "assistant"),
    ("developer", "system"),
];

pub fn check(loaded: &LoadedTemplate, source: &Arc<SourceFile>) -> Vec<Diagnostic> {
    let mut at = loaded.split().body;
    let mut found = Vec::new();
    for line in source.text().get(at..).unwrap_or_default().split_inclusive('\n') {
        let start = at + (line.len() - line.trim_start().len());
        at += line.len();
        let line = line.trim();
        let Some(role) = meant(line) else { continue };
        let marker = format!("<!-- {role} -->");
        if line == marker {
            continue;
        }
        let span = Span::new(start, start + line.len());
        let message =
            "this line does not start a message: it is not an exact role marker, so the model reads it as text";
        let help = msg!("write `{marker}`, with nothing else on the line");
        let fix = vec![Edit::replace(span, marker.clone())];
        found.push(
            Diagnostic::warning("role-marker", message, source, span)
                .with_help(help)
                .with_fix(msg!("write `{marker}`"), fix),
        );
    }
    found
}

/// The role that a line like `<!--System-->` means.
fn meant(line: &str) -> Option<&'static str> {
    if line.len() > 60 {
        return None;
    }
    let line: String = line.chars().map(to_ascii).collect();
    let inside = line.strip_prefix("<!")?.strip_suffix('>')?.trim_end_matches('!');
    let dash = |c: char| c == '-' || c.is_whitespace();
    if !inside.starts_with(dash) && !inside.ends_with(dash) {
        return None;
    }
    let word = inside.trim_matches(|c: char| dash(c) || matches!(c, ':' | '"' | '\'')).to_lowercase();
    let word = word.strip_prefix("role").map_or(word.as_str(), |rest| rest.trim_start_matches([':', '=', ' ', '"']));
    let roles = PromptRole::ALL.map(PromptRole::name);
    let exact = roles.into_iter().find(|role| *role == word);
    let other = || ROLE_ALIASES.iter().find(|(other, _)| *other == word).map(|(_, role)| *role);
    let near = || near_miss(word, roles).filter(|_| word.chars().all(|c| c.is_ascii_alphabetic()));
    exact.or_else(other).or_else(near)
}

/// Replaces characters of input methods and word processors by ASCII.
fn to_ascii(c: char) -> char {
    match c {
        '＜' | '〈' | '《' => '<',
        '＞' | '〉' | '》' => '>',
        '！' => '!',
        '—' | '–' | '－' | '−' => '-',
        '：' => ':',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_lines_are_recognized_as_role_markers() {
        let table = [
            ("<!-- system -->", Some("system")),
            ("<!--system-->", Some("system")),
            ("<!-- System -->", Some("system")),
            ("<!-- assistent -->", Some("assistant")),
            ("<!-- 用户 -->", Some("user")),
            ("<!— user —>", Some("user")),
            ("＜！-- user --＞", Some("user")),
            ("<!- system ->", Some("system")),
            ("<!-- role: user -->", Some("user")),
            ("<!-- user: -->", Some("user")),
            ("<!-- tool -->", None),
            ("<!-- what the user said -->", None),
            ("<!-- 用户的回答 -->", None),
            ("<!DOCTYPE html>", None),
            ("<user>", None),
            ("text <!-- user -->", None),
        ];
        for (line, expected) in table {
            assert_eq!(meant(line), expected, "{line}");
        }
    }
}
