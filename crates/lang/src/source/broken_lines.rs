//! Explains lines that YAML rejects: tabs, indentation, and colons and dashes that are missing or too many.

use crate::message::msg;
use crate::source::diagnostic::{Edit, Fix};
use crate::source::full_width;
use crate::source::known_fields::{holds_text, holds_word, is_field};
use crate::source::lines::SourceLine;
use crate::source::misreading::{self, Misreading};
use crate::source::span::Span;
use crate::source::syntax::SyntaxLocation;
use crate::source::text::excerpt;

/// Whether another field seems to start in a text.
fn holds_field(text: &str) -> bool {
    let before = |(at, _): (usize, &str)| text.get(..at).and_then(|before| before.split([' ', ',', '{']).next_back());
    text.match_indices(": ").filter_map(before).any(is_field)
}

impl SyntaxLocation<'_> {
    /// Whether the next line belongs to the text of this one.
    fn continues(&self) -> bool {
        let below = self.line.below().find(|line| !line.text().trim().is_empty());
        let column = self.line.body().start - self.line.span().start;
        below.is_some_and(|below| below.indentation().len() > column)
    }

    /// Full-width colons and spaces, and `key:value`, in this line or in the text above that it was read as part of.
    pub(crate) fn misread_line(&self) -> Option<Misreading> {
        let indentation = self.line.indentation().end;
        misreading::wide_indentation(self.file, indentation)
            .or_else(|| full_width::marks(self.file, self.line))
            .or_else(|| self.line.above().next().and_then(|above| full_width::dash(self.file, above)))
            .or_else(|| misreading::colon_of_full_width(self.file, self.line))
            .or_else(|| misreading::colon_without_space(self.file, &self.line))
            .or_else(|| {
                let above = self.line.above().next()?;
                misreading::wide_indentation(self.file, above.indentation().end)
                    .or_else(|| misreading::colon_without_space(self.file, &above))
            })
    }

    pub(crate) fn tab(&self) -> Misreading {
        // The parser stops before or after the tab, sometimes on the line above it.
        let lines = std::iter::once(self.line).chain(self.line.below());
        let indented = lines.filter(|line| !line.text().trim().is_empty()).take(2);
        let found = indented.map(|line| line.indentation()).find(|span| self.file.slice(*span).contains('\t'));
        match found {
            Some(span) => Misreading::new(
                "this line is indented with a tab; YAML allows only spaces",
                "replace each tab with two spaces; most editors can do this for the whole file",
                span,
            ),
            None => Misreading::new(
                "there is a tab where YAML allows only spaces",
                "replace it with a space",
                self.character(),
            ),
        }
    }

    pub(crate) fn second_colon(&self) -> Option<Misreading> {
        let first = self.line.colon();
        if first.is_some_and(|colon| colon < self.at) {
            let value = self.line.value();
            if let Some(found) = self.key_in_value() {
                return Some(found);
            }
            let message = msg!("the text after `{}:` contains another `: `", excerpt(self.line.key()));
            let full_width = self.file.slice(value).starts_with(['“', '”', '「', '‘', '’', '＂']);
            let help = if full_width {
                "put ASCII quotes (`\"`) around the text; YAML treats full-width quotes as part of the text"
            } else {
                "YAML reads a colon and a space as the end of a key: put quotes around the text"
            };
            let quoted = self.file.slice(value).starts_with(['"', '\'']);
            // A character with a meaning at the start of a value would become part of the text.
            let plain = !self.file.slice(value).starts_with(['&', '!', '*', '{', '[', '|', '>']);
            let sure = holds_text(self.line.key())
                && !full_width
                && plain
                && !self.continues()
                && !holds_field(self.file.slice(value));
            let fix = (!quoted && !value.is_empty()).then(|| misreading::quote(self.file, value).only_sure_if(sure));
            return Some(Misreading::new(message, help, value).fixed_by(fix));
        }
        let above = self.line.above().next()?;
        let deeper = self.line.indentation().len() > above.indentation().len();
        if above.colon().is_none() {
            let body = above.body();
            let word = excerpt(self.file.slice(body));
            let edits = vec![Edit::insert(body.end, ":")];
            let is_field = is_field(self.file.slice(body));
            let fix = Fix::sure("add a colon after it", edits).only_sure_if(is_field);
            let help = msg!("if `{word}` is a key, write `{word}:`; multi-line text starts with `|` after its key");
            let message = "a colon is missing at the end of this line";
            return Some(Misreading::new(message, help, body).fixed_by(deeper.then_some(fix)));
        }
        if !above.value().is_empty() && deeper {
            if let Some(found) = self.without_config() {
                return Some(found);
            }
            if let Some(found) = self.dash_without_space(above) {
                return Some(found);
            }
            let key = excerpt(above.key());
            if above.key().ends_with("_id") {
                return Some(Misreading::new(
                    "this line is indented further than the line above it, which already has a value",
                    msg!(
                        "align it with `{key}`; if the indentation of this line is correct, `{key}` and its contents are not indented enough"
                    ),
                    self.line.content(),
                ));
            }
            return Some(Misreading::new(
                "this line is indented further than the line above it, which already has a value",
                msg!(
                    "align it with `{key}`, or remove the value after `{key}:`; multi-line text starts with `|` after its key"
                ),
                self.line.content(),
            ));
        }
        None
    }

    /// `-action_type: ai_say`.
    fn dash_without_space(&self, line: SourceLine<'_>) -> Option<Misreading> {
        let content = line.content();
        let text = self.file.slice(content);
        if !text.starts_with('-') || text.starts_with("--") || text.starts_with("- ") {
            return None;
        }
        let edits = vec![Edit::insert(content.start + 1, " ")];
        let key = text.trim_start_matches('-').split(':').next().unwrap_or_default();
        let sure = line.colon().is_some() && is_field(key);
        let fix = Fix::sure("add a space after the dash", edits).only_sure_if(sure);
        let help = "a list item starts with a dash and a space";
        let dash = Span::new(content.start, content.start + 1);
        Some(Misreading::new("a space is missing after this dash", help, dash).fixed_by(Some(fix)))
    }

    /// `var: age type: integer`: the value of a known field, and another field on the same line.
    fn key_in_value(&self) -> Option<Misreading> {
        let value = self.line.value();
        let text = self.file.slice(value);
        let (before, rest) = text.split_once(": ")?;
        let (first, key) = before.rsplit_once(' ')?;
        let one_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !holds_word(self.line.key()) || !holds_word(key) || !one_word(first.trim()) || rest.is_empty() {
            return None;
        }
        let start = value.start + before.len() - key.len();
        let message = msg!("`{key}:` starts a second field on the line of `{}:`", self.line.key());
        let help = msg!(
            "put `{key}:` on a new line, aligned with `{}`; or put both in `{{ }}`, separated by a comma",
            self.line.key()
        );
        Some(Misreading::new(message, help, Span::new(start, start + key.len() + 1)))
    }

    /// A field that belongs below `config:`, after an action without `config:`.
    fn without_config(&self) -> Option<Misreading> {
        const ACTION_FIELDS: [&str; 5] = ["action_type", "action_id", "condition", "on_exit", "config"];
        let above = self.line.above().next()?;
        let key = self.line.key();
        if !["action_type", "action_id"].contains(&above.key()) || ACTION_FIELDS.contains(&key) || key.is_empty() {
            return None;
        }
        let item = self.file.slice(self.line.content()).starts_with('-');
        let line = self.line.span();
        let column = above.body().start.checked_sub(above.span().start)?;
        if item || ["topics", "actions", "phases"].contains(&key) || self.line.indentation().len() <= column {
            return None;
        }
        let message = msg!("the line `config:` is missing above `{}`", excerpt(key));
        let help = msg!("write `config:` on a separate line above, aligned with `{}`", above.key());
        let edits = vec![Edit::insert(line.start, format!("{}config:\n", " ".repeat(column)))];
        let fix = Fix::new("add `config:` above", edits);
        Some(Misreading::new(message, help, self.line.content()).fixed_by(Some(fix)))
    }

    pub(crate) fn no_colon(&self) -> Option<Misreading> {
        if let Some(found) = self.dash_without_space(self.line) {
            return Some(found);
        }
        let content = self.line.content();
        if let Some(found) = self.special_value() {
            return Some(found);
        }
        if self.line.colon().is_some() {
            return None;
        }
        let message = "this line has no colon, but a `key: value` is expected here";
        let help =
            "write `key: value`; if the line belongs to the text above, indent it further than the key of that text";
        Some(Misreading::new(message, help, content))
    }

    /// A value that is complete for YAML, but continues after its end: `{{ x }} text`, `*bold* text`.
    fn continued_value(&self) -> Option<Misreading> {
        if self.at > self.line.content().start {
            return misreading::needs_quotes(self.file, self.line.value());
        }
        let above = self.line.above().next()?;
        let deeper = self.line.indentation().len() > above.indentation().len();
        let found = misreading::needs_quotes(self.file, above.value()).filter(|_| deeper)?;
        // Quotes around only the first of several lines would not be enough.
        Some(Misreading { fix: None, ..found })
    }

    pub(crate) fn no_key(&self) -> Option<Misreading> {
        if let Some(found) = self.continued_value() {
            return Some(found);
        }
        let content = self.line.content();
        if self.file.slice(content).starts_with("- ") {
            return Some(Misreading::new(
                "there is a list item where a `key: value` is expected",
                "align all items of a list; put the list below its key, not next to other keys",
                content,
            ));
        }
        let above = self.line.above().next();
        let spaces = self.line.indentation().len();
        let continues = above.is_some_and(|line| !line.value().is_empty() && line.indentation().len() < spaces);
        if continues && self.line.follows_comment() {
            return Some(self.comment_inside());
        }
        let outer = self.line.above().find(|line| line.indentation().len() < spaces);
        if outer.is_some_and(|line| self.file.slice(line.value()).starts_with(['|', '>'])) {
            return Some(self.less_indented());
        }
        let help = "align the keys of a mapping, and indent the contents of a key further";
        let (message, span) = match spaces {
            0 => (msg!("this line is not indented, but the lines above it are"), content),
            1 => (
                msg!("this line is indented by 1 space, which matches none of the lines above it"),
                self.line.indentation(),
            ),
            _ => {
                let message =
                    msg!("this line is indented by {spaces} spaces, which matches none of the lines above it");
                (message, self.line.indentation())
            }
        };
        Some(Misreading::new(message, help, span))
    }

    /// A comment in the middle of a text. What is before it may be a key with a full-width colon, which YAML reads as one text
    /// with the keys below.
    pub(crate) fn commented(&self) -> Misreading {
        let spaces = self.line.indentation().len();
        let above = self.line.above().next();
        let continues = above.is_some_and(|line| !line.value().is_empty() && line.indentation().len() < spaces);
        let comment = !continues && self.file.slice(self.line.content()).contains(" #");
        comment.then(|| self.misread_line()).flatten().unwrap_or_else(|| self.comment_inside())
    }

    pub(crate) fn comment_inside(&self) -> Misreading {
        let message = "this line continues text that was ended by a comment";
        let help = "move the comment above the key; text that contains `#` must be quoted";
        Misreading::new(message, help, self.line.content())
    }

    pub(crate) fn less_indented(&self) -> Misreading {
        Misreading::new(
            "this line is indented less than the text that it belongs to",
            "indent all lines of the text below `|` or `>` by the same number of spaces",
            self.line.content(),
        )
    }

    pub(crate) fn no_item(&self) -> Option<Misreading> {
        if let Some(found) = self.continued_value() {
            return Some(found);
        }
        let message = "this line is in a list, but does not start with `- `";
        let help = "start each item with a dash and a space, indent the contents of an item, or start a key to the left of the dashes";
        Some(Misreading::new(message, help, self.line.content()))
    }

    pub(crate) fn list_on_key_line(&self) -> Misreading {
        let value = Span::new(self.at, self.line.value().end);
        let message = "a list cannot start on the line of its key";
        let help = "start the list on the next line, indented below the key; if it is text, put it in quotes";
        Misreading::new(message, help, value)
    }
}
