//! `template-lacks-field`: a template that does not request a field that the reply of its kind needs.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use serde_json::Value;

use crate::templates::template_set::{TemplateConsumer, TemplateSet};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::template::loaded::LoadedTemplate;
use bcc_lang::template::mentions::{Member, visit};
use bcc_lang::template::templates::Templates;

/// The names that insert the outputs of an action into a prompt.
const OUTPUT_NAMES: [&str; 3] = ["output_list", "outputs", SLOTS];

/// The name of the same for slots, in the prompts that get it.
const SLOTS: &str = "slots";

/// Searches for each field of `reply` in the text of the template and of the templates that it includes.
pub fn check(
    set: &TemplateSet<'_>,
    root: usize,
    consumer: &TemplateConsumer,
    reply: Option<&Value>,
) -> Vec<Diagnostic> {
    let (Some(source), Some(loaded), Some(reply)) = (set.own(root), set.templates.files().get(root), reply) else {
        return Vec::new();
    };
    let (_, sure) = set.parts(root);
    if !sure {
        return Vec::new();
    }
    let WrittenField { words, names } = WrittenField::collect(set.templates, root);
    let missing: Vec<(String, Option<String>)> =
        fields(reply).into_iter().filter(|(field, _)| !has_word(&words, field)).collect();
    let place = first_line(loaded);
    let mut found = Vec::new();
    if let Some((first, _)) = missing.first() {
        let list = Message::list(Joint::Item, missing.iter().map(|(field, _)| Message::text(format!("`{field}`"))));
        let message = msg!("this template never asks the model for {list}");
        let defaults: Vec<Message> = missing
            .iter()
            .filter_map(|(field, default)| Some(msg!("`{field}` always gets the value {}", default.as_ref()?)))
            .collect();
        let mut help = msg!("add each field to the JSON in the template, as in `\"{first}\": …`");
        if !defaults.is_empty() {
            help = msg!("{help}; otherwise, {}", Message::list(Joint::Comma, defaults));
        }
        found.push(Diagnostic::warning("template-lacks-field", message, source, place).with_help(help));
    }
    if consumer.prompt.outputs && !OUTPUT_NAMES.iter().any(|name| names.contains(*name)) {
        let message = msg!("this template never asks the model for the values that `{}` extracts", consumer.kind);
        let help = "write `{{ output_list }}` at the end of the JSON in the template: it contains one line for each item of `output`";
        found.push(Diagnostic::warning("template-lacks-field", message, source, place).with_help(help));
    }
    found
}

#[derive(Debug, Default)]
pub struct WrittenField {
    pub words: String,
    /// The names that it uses.
    pub names: BTreeSet<String>,
}

impl WrittenField {
    /// The text of the template with this number.
    pub fn collect(templates: &Templates, root: usize) -> Self {
        let mut written = Self::default();
        visit(templates, root, &mut HashSet::new(), &mut |member| {
            if let Some(part) = templates.files().get(member.template) {
                write_words(part, member, &mut written.words);
            }
            written.names.extend(member.names().map(|(_, used)| used.name.clone()));
        });
        written
    }

    /// The fields of the reply of a kind that it requests, in the order of the schema.
    pub fn fields(&self, reply: &Value) -> Vec<String> {
        let fields = fields(reply).into_iter().map(|(field, _)| field);
        fields.filter(|field| has_word(&self.words, field)).collect()
    }
}

/// The fields that a template must name, each with its default: those at the top level, and those of `metrics`, which are
/// texts that only the model can write. Only non-empty text defaults are included.
fn fields(reply: &Value) -> Vec<(String, Option<String>)> {
    let properties = |schema: &Value| schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut fields = Vec::new();
    for (name, schema) in properties(reply) {
        let inner: Vec<(String, Option<String>)> = if name == "metrics" {
            properties(&schema).into_iter().map(|(metric, _)| (metric, None)).collect()
        } else {
            Vec::new()
        };
        let default = schema.get("default").filter(|default| default.as_str().is_some_and(|text| !text.is_empty()));
        fields.push((name, default.map(Value::to_string)));
        fields.extend(inner);
    }
    fields
}

/// Adds the text of a part: without replaced blocks and comments, and only the quoted texts of tags.
fn write_words(part: &LoadedTemplate, member: &Member<'_, Templates>, words: &mut String) {
    let body = part.source().text().get(part.split().body..).unwrap_or_default();
    let replaced: Vec<&Range<usize>> = part
        .uses()
        .blocks
        .iter()
        .enumerate()
        .filter(|(block, _)| !member.writes(*block))
        .map(|(_, block)| &block.range)
        .collect();
    let mut at = 0;
    while let Some(open) = next_tag(body, at) {
        push_text(body, at..open, &replaced, words);
        let (close, is_comment) = match body.as_bytes().get(open + 1) {
            Some(b'{') => ("}}", false),
            Some(b'%') => ("%}", false),
            _ => ("#}", true),
        };
        let rest = body.get(open + 2..).unwrap_or_default();
        let end = rest.find(close).map_or(body.len(), |found| open + 2 + found);
        if !is_comment {
            // Every second piece between quotes is a text, with either kind of quotes.
            let tag = body.get(open + 2..end).unwrap_or_default();
            for text in tag.split(['"', '\'']).skip(1).step_by(2) {
                words.push_str(text);
                words.push(' ');
            }
        }
        at = (end + 2).min(body.len());
    }
    push_text(body, at..body.len(), &replaced, words);
}

fn next_tag(body: &str, from: usize) -> Option<usize> {
    // One scan for all three: a separate search for a missing one would read the rest of the file.
    let bytes = body.as_bytes().get(from..)?;
    let opens = |at: &usize| matches!(bytes.get(at + 1), Some(b'{' | b'%' | b'#'));
    memchr::memchr_iter(b'{', bytes).find(opens).map(|found| from + found)
}

fn push_text(body: &str, range: Range<usize>, replaced: &[&Range<usize>], words: &mut String) {
    if !replaced.iter().any(|block| block.start <= range.start && range.end <= block.end) {
        words.push_str(body.get(range).unwrap_or_default());
        words.push(' ');
    }
}

/// Whether `text` contains `word` without an ASCII letter, digit or `_` next to it.
fn has_word(text: &str, word: &str) -> bool {
    let is_word_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_word_char) && !after.is_some_and(is_word_char)
    })
}

/// The first non-empty line of the template.
fn first_line(loaded: &LoadedTemplate) -> Span {
    let source = loaded.source();
    let body = source.text().get(loaded.split().body..).unwrap_or_default();
    let start = loaded.split().body + (body.len() - body.trim_start().len());
    let line = source.line_span(source.line(start)).unwrap_or(Span::point(start));
    Span::new(start, line.end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_separate_word() {
        assert!(has_word("写 \"EXIT\": 是", "EXIT") && has_word("把EXIT写成", "EXIT"));
        assert!(!has_word("EXIT_CODE exit NEXIT", "EXIT") && !has_word("", "EXIT"));
    }
}
