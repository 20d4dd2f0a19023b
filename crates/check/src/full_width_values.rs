//! `chinese-quotes` and `full-width-separator`: values that YAML reads differently than they look, because their punctuation is
//! that of a Chinese keyboard.

use std::sync::Arc;

use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{NodeKind, Scalar, ScalarStyle, YamlNode};

/// Opening and closing quotation marks that have no meaning in YAML.
const QUOTES: [(char, char); 7] =
    [('“', '”'), ('‘', '’'), ('「', '」'), ('『', '』'), ('＂', '＂'), ('＇', '＇'), ('《', '》')];

/// Quotation marks that may belong to the text: a title of a work.
const OF_TEXT: [char; 1] = ['《'];

/// Fields whose value is a name, a choice or an expression: quotation marks are never part of it.
const NEVER_QUOTED: [&str; 20] = [
    "action_id",
    "action_type",
    "as",
    "condition",
    "delivery",
    "enum",
    "get",
    "goto",
    "in",
    "insert",
    "model",
    "phase_id",
    "priority",
    "scope",
    "session_id",
    "skill",
    "skill_id",
    "topic_id",
    "type",
    "when",
];

/// Lists of names or values.
const LISTS: [&str; 6] = ["depends_on", "enum", "input_variables", "outputs", "skills", "tools"];

/// A longer part of a value is a sentence, not an item of a list (in characters).
const MAX_ITEM_CHARS: usize = 20;

/// The findings in the values of a script or skill.
pub(crate) fn full_width_values(file: &Arc<SourceFile>, root: &YamlNode) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    Values { file, found: &mut found }.node("", root);
    found
}

/// The text between quotation marks that have no meaning in YAML, if they stand around all of it.
pub(crate) fn unquoted(text: &str) -> Option<&str> {
    let mut characters = text.chars();
    let (first, last) = (characters.next()?, characters.next_back()?);
    let inside = characters.as_str();
    let paired = QUOTES.iter().any(|(open, close)| (*open, *close) == (first, last));
    (paired && !inside.is_empty() && !inside.contains([first, last])).then_some(inside)
}

struct Values<'a> {
    file: &'a Arc<SourceFile>,
    found: &'a mut Vec<Diagnostic>,
}

impl Values<'_> {
    /// Checks a value of the field `key`; the items of a list belong to its field.
    fn node(&mut self, key: &str, node: &YamlNode) {
        match &node.kind {
            NodeKind::Scalar(scalar) => self.quotes(key, node.span, scalar),
            NodeKind::Sequence(items) => {
                if LISTS.contains(&key) {
                    self.separators(key, items);
                }
                items.iter().for_each(|item| self.node(key, item));
            }
            NodeKind::Mapping(entries) => {
                let authors_own = |key: &str| key == "metadata" || key.starts_with("x-");
                for entry in entries.iter().filter(|entry| !authors_own(&entry.key.value)) {
                    self.node(&entry.key.value, &entry.value);
                }
            }
        }
    }

    fn quotes(&mut self, key: &str, span: Span, scalar: &Scalar) {
        let written = self.file.slice(span);
        if scalar.style != ScalarStyle::Plain || written != scalar.text {
            return;
        }
        let Some(inside) = unquoted(written) else { return };
        let (Some(first), Some(last)) = (written.chars().next(), written.chars().next_back()) else { return };
        let name = NEVER_QUOTED.contains(&key);
        if OF_TEXT.contains(&first) && !name {
            return;
        }
        let message = msg!("`{first}{last}` are not quotes in YAML: they become part of the value");
        let help = "use ASCII quotes around the value; if the marks belong to it, put ASCII quotes around all of it";
        let quote = ['"', '\''].into_iter().find(|quote| !inside.contains([*quote, '\\']));
        let fix = quote.map(|quote| {
            let open = Span::new(span.start, span.start + first.len_utf8());
            let close = Span::new(span.end - last.len_utf8(), span.end);
            let edits = vec![Edit::replace(open, quote), Edit::replace(close, quote)];
            // In the words of a conversation they may be meant.
            Fix::sure(msg!("write ASCII quotes"), edits).only_sure_if(name)
        });
        self.found
            .push(Diagnostic::warning("chinese-quotes", message, self.file, span).with_help(help).with_fixes(fix));
    }

    /// Items like `好，一般，差`, which are one item each.
    fn separators(&mut self, key: &str, items: &[Arc<YamlNode>]) {
        for item in items {
            let written = self.file.slice(item.span);
            let plain =
                item.as_scalar().is_some_and(|scalar| scalar.style == ScalarStyle::Plain && scalar.text == written);
            let Some(mark) = written.chars().find(|c| matches!(c, '，' | '、')).filter(|_| plain) else { continue };
            // `、` and several choices: it may be a choice of several words.
            if !is_list(written) || key == "enum" && items.len() > 1 && mark == '、' {
                continue;
            }
            let message = msg!("`{mark}` does not separate items, so this is one item");
            let edits: Vec<Edit> = written
                .match_indices(['，', '、'])
                .map(|(at, mark)| {
                    let spaced = written.get(at + mark.len()..).is_some_and(|rest| rest.starts_with(' '));
                    let start = item.span.start + at;
                    Edit::replace(Span::new(start, start + mark.len()), if spaced { "," } else { ", " })
                })
                .collect();
            let flow = self.file.text().get(..item.span.start).is_some_and(is_in_brackets);
            let fix = flow
                .then(|| Fix::sure(msg!("write ASCII commas"), edits).only_sure_if(key != "enum" || items.len() == 1));
            let diagnostic = Diagnostic::warning("full-width-separator", message, self.file, item.span);
            let help =
                msg!("separate the items with ASCII commas, as in `[a, b]`, or write each on its own line after `- `");
            self.found.push(diagnostic.with_help(help).with_fixes(fix));
        }
    }
}

/// Whether the text consists of short parts, separated by full-width commas.
fn is_list(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['，', '、']).map(str::trim).collect();
    let is_item = |part: &&str| {
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '*' | '/' | ' ');
        !part.is_empty() && part.chars().count() <= MAX_ITEM_CHARS && part.chars().all(word)
    };
    parts.len() > 1 && parts.iter().all(is_item)
}

/// Whether the text ends inside brackets that open on its last line.
fn is_in_brackets(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.matches('[').count() > line.matches(']').count()
}
