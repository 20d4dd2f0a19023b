//! Explains text that a person reads differently than YAML: `{{ x }}` without quotes, full-width colons and spaces, a colon
//! without a space. It is recognized from the text, whatever the parser's result.

use crate::message::message::Message;
use crate::message::msg;
use std::sync::Arc;

use crate::source::diagnostic::{Diagnostic, Edit, Fix};
use crate::source::known_fields::is_field;
use crate::source::lines::{SourceLine, without_comment};
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::{NodeKind, ScalarStyle, YamlNode};

/// Longer text before a full-width colon is a sentence, not a key (in characters).
const MAX_KEY_CHARS: usize = 40;

/// The message about a `：` where YAML needs an ASCII colon.
pub(crate) const FULL_WIDTH_COLON: &str = "this colon is a full-width `：`, which YAML treats as part of the text";
pub(crate) const FULL_WIDTH_COLON_HELP: &str = "write an ASCII `:` and a space after it";

/// Text that was misread: a diagnostic without its rule.
pub(crate) struct Misreading {
    pub(crate) message: Message,
    pub(crate) help: Message,
    pub(crate) span: Span,
    pub(crate) fix: Option<Fix>,
}

impl Misreading {
    pub(crate) fn new(message: impl Into<Message>, help: impl Into<Message>, span: Span) -> Self {
        Self { message: message.into(), help: help.into(), span, fix: None }
    }

    pub(crate) fn fixed_by(mut self, fix: Option<Fix>) -> Self {
        self.fix = fix;
        self
    }

    pub(crate) fn into_diagnostic(self, rule: &'static str, file: &Arc<SourceFile>) -> Diagnostic {
        let mut diagnostic = Diagnostic::error(rule, self.message, file, self.span).with_help(self.help);
        diagnostic.fixes.extend(self.fix);
        diagnostic
    }
}

/// Whether a template starts at `start`.
pub(crate) fn is_template(file: &SourceFile, start: usize) -> bool {
    file.text().get(start..).is_some_and(|rest| ["{{", "{%", "{#"].iter().any(|open| rest.starts_with(open)))
}

/// A template at `start` where YAML expects a value. `inside_flow`: between the brackets of a list or mapping, where only
/// the `{{ … }}` itself is part of the text.
pub(crate) fn template(file: &SourceFile, start: usize, inside_flow: bool) -> Option<Misreading> {
    if !is_template(file, start) {
        return None;
    }
    let line = SourceLine::at(file, start).span();
    let rest = Span::new(start, line.end);
    let text = file.slice(rest);
    let ends = ["}}", "%}", "#}"];
    let closing = ends.iter().filter_map(|end| text.find(end)).min();
    // `{{ x }}: …` is meant as a key: the text ends before the colon.
    let is_key = |closing: usize| {
        let after = text.get(closing + 2..).and_then(|rest| rest.strip_prefix(':'));
        after.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    };
    let span = match closing {
        Some(closing) if inside_flow || is_key(closing) => Span::new(start, start + closing + 2),
        _ => {
            // A ` #` inside the template is part of it.
            let last = ends.iter().filter_map(|end| text.rfind(end)).max().map_or(start, |last| start + last + 2);
            Span::new(start, without_comment(file, Span::new(last, rest.end)).end)
        }
    };
    let written = file.slice(span);
    let open = written.get(..2).unwrap_or("{{");
    let pairs = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")];
    let balanced = pairs.iter().all(|(open, close)| written.matches(open).count() == written.matches(close).count());
    let after = file.text().get(span.end..rest.end).unwrap_or_default().trim_start();
    // Only a comment follows on the line, or the next part of the surrounding brackets.
    let at_end = after.is_empty() || after.starts_with(['#', ',', ']', '}', ':']);
    let message = msg!("text that starts with `{open}` must be quoted");
    let help = "YAML reads a leading `{` as the start of a mapping: put quotes around the whole text";
    Some(Misreading::new(message, help, span).fixed_by(balanced.then(|| quote(file, span).only_sure_if(at_end))))
}

/// Text that starts with a character that has a meaning in YAML.
pub(crate) fn needs_quotes(file: &SourceFile, value: Span) -> Option<Misreading> {
    if let Some(found) = template(file, value.start, false) {
        return Some(found);
    }
    let text = file.slice(value);
    let first = text.chars().next()?;
    let meaning = match first {
        '{' => "the start of a mapping",
        '[' => "the start of a list",
        '*' => "a reference to an `&anchor`",
        '&' => "the name of an anchor",
        '!' => "a tag",
        '|' | '>' => "the start of text on the lines below",
        '%' => "a directive",
        '@' | '`' => "a reserved character",
        ',' | '}' | ']' => "part of a list or mapping",
        _ => return None,
    };
    let first = if first == '`' { msg!("a backtick") } else { Message::text(format!("`{first}`")) };
    let message = msg!("text that starts with {first} must be quoted");
    let meaning = Message::word(meaning);
    let help = msg!("YAML reads it as {meaning}: put quotes around the whole text");
    // The other characters may start a list, an anchor or a tag with a mistake in it.
    let emphasis = text.starts_with('*') && text.matches('*').count() > 1;
    let fix = quote(file, value).only_sure_if(matches!(text.chars().next(), Some('@' | '`' | '%')) || emphasis);
    Some(Misreading::new(message, help, value).fixed_by(Some(fix)))
}

/// Puts quotes around a text. The fix is sure only if all of `span` is surely one text.
pub fn quote(file: &SourceFile, span: Span) -> Fix {
    let text = file.slice(span);
    let edits = if !text.contains(['"', '\\']) {
        vec![Edit::insert(span.start, "\""), Edit::insert(span.end, "\"")]
    } else if !text.contains('\'') {
        vec![Edit::insert(span.start, "'"), Edit::insert(span.end, "'")]
    } else {
        vec![Edit::replace(span, format!("'{}'", text.replace('\'', "''")))]
    };
    Fix::sure("put quotes around the text", edits)
}

/// The full-width colon that ends the key of a line, unless there is an ASCII colon before it.
fn full_width_colon(file: &SourceFile, line: &SourceLine<'_>) -> Option<usize> {
    let body = line.body();
    let text = file.slice(body);
    let offset = text.find('：')?;
    let key = text.get(..offset)?;
    let is_key = !key.trim().is_empty()
        && !key.starts_with(['"', '\'', '#', '[', '{'])
        && key.chars().nth(MAX_KEY_CHARS).is_none();
    let found = body.start + offset;
    (is_key && line.colon().is_none_or(|colon| colon > found)).then_some(found)
}

/// A `key：value` in the line or in the lines directly above, all of which YAML reads as one text.
pub(crate) fn colon_of_full_width(file: &SourceFile, line: SourceLine<'_>) -> Option<Misreading> {
    let mut places: Vec<usize> = full_width_colon(file, &line).into_iter().collect();
    places.extend(line.above().map_while(|above| full_width_colon(file, &above)));
    places.sort_unstable();
    let first = *places.first()?;
    // A line of a text may look the same: `user：…` and `goal：…` may be words of a text, `action_id：…` is not.
    let sure = places.iter().all(|place| {
        let line = SourceLine::at(file, *place);
        let key = file.slice(Span::new(line.body().start, *place)).trim();
        is_field(key) && (key.contains('_') || !line.in_text())
    });
    let edits = places.into_iter().map(|place| ascii_colon(file, place)).collect();
    let fix = Fix::sure("write an ASCII colon and a space", edits).only_sure_if(sure);
    let span = Span::new(first, first + '：'.len_utf8());
    Some(Misreading::new(FULL_WIDTH_COLON, FULL_WIDTH_COLON_HELP, span).fixed_by(Some(fix)))
}

/// The fix for fields whose full-width colons made them one text without quotes, which is at this place: an ASCII colon in each. `None`
/// unless the text starts with a field.
pub(crate) fn fix_full_width_colons(file: &SourceFile, text: Span) -> Option<Fix> {
    if file.slice(text).starts_with(['"', '\'', '|', '>']) {
        return None;
    }
    let mut edits = Vec::new();
    let mut sure = true;
    // The fields around the line, each with its column and whether its value starts on its own line.
    let mut around: Vec<(usize, bool)> = Vec::new();
    for line in SourceLine::within(file, text) {
        let column = line.body().start - line.span().start;
        while around.last().is_some_and(|(outer, _)| *outer >= column) {
            around.pop();
        }
        let place = full_width_colon(file, &line).filter(|place| (text.start..text.end).contains(place));
        let field = place.filter(|place| is_field(file.slice(Span::new(line.body().start, *place))));
        // A line below a value continues it.
        let is_text = around.last().is_some_and(|(_, has_value)| *has_value);
        match field {
            Some(place) if !is_text => {
                let rest = Span::new(place + '：'.len_utf8(), line.body().end);
                around.push((column, !file.slice(rest).trim().is_empty()));
                edits.push(ascii_colon(file, place));
            }
            _ if edits.is_empty() => return None,
            Some(_) => sure = false,
            None => around.push((column, true)),
        }
    }
    (!edits.is_empty()).then(|| Fix::sure("write an ASCII colon and a space", edits).only_sure_if(sure))
}

/// [`fix_full_width_colons`] for a node of the wrong kind.
pub(crate) fn fix_for(file: &SourceFile, node: &YamlNode) -> Option<Fix> {
    let is_plain = node.as_scalar().is_some_and(|scalar| scalar.style == ScalarStyle::Plain);
    if is_plain { fix_full_width_colons(file, node.span) } else { None }
}

fn ascii_colon(file: &SourceFile, place: usize) -> Edit {
    let end = place + '：'.len_utf8();
    let next = file.text().get(end..).and_then(|rest| rest.chars().next());
    let text = if next.is_none_or(char::is_whitespace) { ":" } else { ": " };
    Edit::replace(Span::new(place, end), text)
}

/// A `key:value` in the line, with nothing between the colon and the value.
pub(crate) fn colon_without_space(file: &SourceFile, line: &SourceLine<'_>) -> Option<Misreading> {
    if line.colon().is_some() {
        return None;
    }
    let body = line.body();
    let text = file.slice(body);
    let offset = text.find(':')?;
    let key = text.get(..offset)?;
    let is_word = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    if !is_word || text.get(offset + 1..)?.starts_with("//") {
        return None;
    }
    let colon = body.start + offset;
    let after = file.text().get(colon + 1..).unwrap_or_default();
    let unusual: usize = after.chars().take_while(|c| is_wide(*c)).map(char::len_utf8).sum();
    if unusual > 0 {
        let span = Span::new(colon + 1, colon + 1 + unusual);
        let name = after.chars().next().map_or("", wide_name);
        let message =
            msg!("`{key}:` is followed by {name}, but YAML requires an ordinary one", name = Message::word(name));
        let help = "replace it with an ordinary space; most editors can do this for the whole file";
        let fix = Fix::sure("write an ordinary space", vec![Edit::replace(span, " ")]).only_sure_if(is_field(key));
        return Some(Misreading::new(message, help, span).fixed_by(Some(fix)));
    }
    let message = msg!("a space is missing after `{key}:`");
    let help = "YAML reads `key:value` as a single string: write `key: value`";
    let edits = vec![Edit::insert(colon + 1, " ")];
    let fix = Fix::sure("add a space after the colon", edits).only_sure_if(is_field(key));
    Some(Misreading::new(message, help, Span::new(colon, colon + 1)).fixed_by(Some(fix)))
}

/// White space at `start` that looks like indentation but is not: full-width, no-break and invisible spaces.
pub(crate) fn wide_indentation(file: &SourceFile, start: usize) -> Option<Misreading> {
    let rest = file.text().get(start..)?;
    let first = rest.chars().next().filter(|c| is_wide(*c))?;
    let length = rest.find(|c: char| c != ' ' && !is_wide(c)).unwrap_or(rest.len());
    let name = wide_name(first);
    let message =
        msg!("this line is indented with {name}, which YAML treats as part of the text", name = Message::word(name));
    let help = "indent with ordinary spaces only; most editors can replace the others in the whole file";
    Some(Misreading::new(message, help, Span::new(start, start + length)))
}

/// White space that YAML reads as text.
fn is_wide(c: char) -> bool {
    // Line breaks are not included.
    (c.is_whitespace() && !c.is_ascii() && !matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}')) || c == '\u{200b}'
}

fn wide_name(c: char) -> &'static str {
    match c {
        '\u{3000}' => "a full-width space",
        '\u{a0}' => "a no-break space",
        '\u{200b}' => "an invisible zero-width space",
        _ => "an unusual space",
    }
}

/// The help for full-width brackets.
pub(crate) const ASCII_BRACKETS: &str = "use ASCII `{ }`, `[ ]` and commas";

/// The help for a full-width colon.
pub(crate) fn full_width_colon_help() -> Message {
    msg!("{}: {}", Message::word(FULL_WIDTH_COLON), Message::word(FULL_WIDTH_COLON_HELP))
}

/// The reason why a node has the wrong kind, as help for "expected a mapping, found text" and the like: a full-width colon or a
/// missing space in what was meant as a mapping, or a `{x}` that was meant as text. `None` if the text does not show it.
pub(crate) fn help_for(file: &SourceFile, node: &YamlNode) -> Option<Message> {
    match &node.kind {
        NodeKind::Scalar(scalar) if scalar.style == ScalarStyle::Plain => {
            if scalar.text.starts_with(['［', '｛', '【']) {
                return Some(Message::word(ASCII_BRACKETS));
            }
            let line = SourceLine::at(file, node.span.start);
            let inside = |byte: usize| (node.span.start..node.span.end).contains(&byte);
            if full_width_colon(file, &line).is_some_and(inside) {
                return Some(full_width_colon_help());
            }
            colon_without_space(file, &line).filter(|found| inside(found.span.start)).map(|found| found.help)
        }
        NodeKind::Mapping(entries) => {
            let only_names = !entries.is_empty() && entries.iter().all(|entry| entry.value.span.is_empty());
            let braces = file.slice(node.span).starts_with('{');
            if only_names && braces { needs_quotes(file, node.span).map(|found| found.help) } else { None }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::compose;

    #[test]
    fn a_node_of_the_wrong_kind_is_explained_if_its_text_shows_why() {
        let table = [
            ("a: ［｛ get： nm ｝］\n", Some("ASCII")),
            ("a: 【名字】\n", Some("ASCII")),
            ("a:\n  名字：张三\n", Some("full-width")),
            ("a:\n  名字：张三\n  年龄：5\n", Some("full-width")),
            // With ASCII colons this would not be valid YAML.
            ("a: 名字：张三\n", None),
            ("a: 他说“你好”\n", None),
            ("a: '名字：张三'\n", None),
            ("a: name:x\n", None),
            ("a:\n  name:x\n", Some("`key: value`")),
            ("a: http://x\n", None),
            ("a: {name}\n", Some("put quotes")),
            ("a: {name: x}\n", None),
            ("a: {}\n", None),
            ("a: [x]\n", None),
        ];
        for (text, expected) in table {
            let file = Arc::new(SourceFile::new("a.yaml", text));
            let root = compose::parse(&file).root.unwrap();
            let help = help_for(&file, root.get("a").unwrap());
            assert_eq!(help.is_some(), expected.is_some(), "{text}: {help:?}");
            assert!(help.unwrap_or_default().to_string().contains(expected.unwrap_or_default()), "{text}");
        }
    }
}
