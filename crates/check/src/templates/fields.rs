//! `template-lacks-field`: a template that never asks for a field that the reply of its kind needs.

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

/// The names, one of which brings the outputs of an action into a prompt.
const OUTPUT_NAMES: [&str; 2] = ["output_list", "outputs"];

/// Looks for every field of `reply` in what the template writes, with all that it pulls in.
pub fn check(set: &TemplateSet<'_>, root: usize, asking: &TemplateConsumer, reply: Option<&Value>) -> Vec<Diagnostic> {
    let (Some(source), Some(loaded), Some(reply)) = (set.own(root), set.templates.files().get(root), reply) else {
        return Vec::new();
    };
    let (_, sure) = set.parts(root);
    if !sure {
        return Vec::new();
    }
    let WrittenField { words, names } = WrittenField::by(set.templates, root);
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
    if asking.prompt.outputs && !OUTPUT_NAMES.iter().any(|name| names.contains(*name)) {
        let message = msg!("this template never asks the model for the values that `{}` extracts", asking.kind);
        let help = "write `{{ output_list }}` at the end of the JSON in the template: it contains one line for each item of `output`";
        found.push(Diagnostic::warning("template-lacks-field", message, source, place).with_help(help));
    }
    found
}

#[derive(Debug, Default)]
pub struct WrittenField {
    pub words: String,
    /// The names whose values it writes or asks for.
    pub names: BTreeSet<String>,
}

impl WrittenField {
    /// What the template with this number says.
    pub fn by(templates: &Templates, root: usize) -> Self {
        let mut written = Self::default();
        visit(templates, root, &mut HashSet::new(), &mut |member| {
            if let Some(part) = templates.files().get(member.template) {
                write_words(part, member, &mut written.words);
            }
            written.names.extend(member.names().map(|(_, used)| used.name.clone()));
        });
        written
    }

    /// The fields of the reply of a kind that it asks for, in the order of the schema.
    pub fn fields(&self, reply: &Value) -> Vec<String> {
        let fields = fields(reply).into_iter().map(|(field, _)| field);
        fields.filter(|field| has_word(&self.words, field)).collect()
    }
}

/// The fields that must be named: those at the top, and those of `metrics`, which are texts that only the model can write.
/// With each, the default that says most about what goes wrong without it.
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

/// Adds what a part writes: without blocks that are replaced, without comments, and of tags only their quoted texts.
fn write_words(part: &LoadedTemplate, member: &Member<'_, Templates>, words: &mut String) {
    let body = part.source().text().get(part.cut().body..).unwrap_or_default();
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
        push(body, at..open, &replaced, words);
        let (close, is_comment) = match body.as_bytes().get(open + 1) {
            Some(b'{') => ("}}", false),
            Some(b'%') => ("%}", false),
            _ => ("#}", true),
        };
        let rest = body.get(open + 2..).unwrap_or_default();
        let end = rest.find(close).map_or(body.len(), |found| open + 2 + found);
        if !is_comment {
            // Every second piece between quotes is a text, whichever of the two kinds of quotes it has.
            let tag = body.get(open + 2..end).unwrap_or_default();
            for text in tag.split(['"', '\'']).skip(1).step_by(2) {
                words.push_str(text);
                words.push(' ');
            }
        }
        at = (end + 2).min(body.len());
    }
    push(body, at..body.len(), &replaced, words);
}

fn next_tag(body: &str, from: usize) -> Option<usize> {
    // One scan for all three: looking for each alone would read the rest of the file for one that never comes.
    let bytes = body.as_bytes().get(from..)?;
    let opens = |at: &usize| matches!(bytes.get(at + 1), Some(b'{' | b'%' | b'#'));
    memchr::memchr_iter(b'{', bytes).find(opens).map(|found| from + found)
}

fn push(body: &str, range: Range<usize>, replaced: &[&Range<usize>], words: &mut String) {
    if !replaced.iter().any(|block| block.start <= range.start && range.end <= block.end) {
        words.push_str(body.get(range).unwrap_or_default());
        words.push(' ');
    }
}

/// Whether `word` stands in `text` with no ASCII letter, digit or `_` at either side.
fn has_word(text: &str, word: &str) -> bool {
    let joins = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// The first line of the template that says something.
fn first_line(loaded: &LoadedTemplate) -> Span {
    let source = loaded.source();
    let body = source.text().get(loaded.cut().body..).unwrap_or_default();
    let start = loaded.cut().body + (body.len() - body.trim_start().len());
    let line = source.line_span(source.line(start)).unwrap_or(Span::point(start));
    Span::new(start, line.end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_a_word_of_its_own() {
        assert!(has_word("写 \"EXIT\": 是", "EXIT") && has_word("把EXIT写成", "EXIT"));
        assert!(!has_word("EXIT_CODE exit NEXIT", "EXIT") && !has_word("", "EXIT"));
    }
}
