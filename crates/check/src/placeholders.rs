//! Older placeholders in author texts (docs/language.md "Texts"): `${x}` anywhere and `{x}` where `x` is known are read as
//! `{{ x }}`.

use std::ops::Range;

/// A text with its older placeholders replaced, and the way back to where each byte came from.
#[derive(Debug, Default)]
pub struct Modern {
    /// The text in today's spelling.
    pub text: String,
    /// The older placeholders: where they stand in the original, and what replaces them.
    pub replaced: Vec<(Range<usize>, String)>,
    /// Pieces of the new text with the bytes of the original they came from.
    pieces: Vec<(Range<usize>, Range<usize>)>,
}

impl Modern {
    /// A text that has no older placeholders, whatever stands in it.
    pub fn as_it_is(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Where `within` (bytes of the new text) stands in the original.
    pub fn original(&self, within: &Range<usize>) -> Range<usize> {
        if self.replaced.is_empty() {
            return within.clone();
        }
        self.place(within.start).start..self.place(within.end.saturating_sub(1).max(within.start)).end
    }

    /// The bytes of the original that the byte `at` of the new text came from.
    fn place(&self, at: usize) -> Range<usize> {
        for (new, old) in &self.pieces {
            if new.contains(&at) {
                // A copied piece maps byte by byte; a replaced one maps to the whole placeholder.
                if new.len() == old.len() {
                    let start = old.start + (at - new.start);
                    return start..start + 1;
                }
                return old.clone();
            }
        }
        let end = self.pieces.last().map_or(0, |(_, old)| old.end);
        end..end
    }

    fn copy(&mut self, original: &str, range: Range<usize>) {
        let Some(piece) = original.get(range.clone()) else { return };
        if piece.is_empty() {
            return;
        }
        let start = self.text.len();
        self.text.push_str(piece);
        self.pieces.push((start..self.text.len(), range));
    }

    fn replace(&mut self, range: Range<usize>, name: &str) {
        let today = format!("{{{{ {name} }}}}");
        let start = self.text.len();
        self.text.push_str(&today);
        self.pieces.push((start..self.text.len(), range.clone()));
        self.replaced.push((range, today));
    }
}

/// Reads the older placeholders of `text`. What stands in `{{ }}`, `{% %}` and `{# #}` is left alone.
pub fn modernise(text: &str, known: impl Fn(&str) -> bool) -> Modern {
    let mut modern = Modern::default();
    let mut copied = 0;
    let mut at = 0;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find('{')).map(|found| at + found) {
        if let Some(end) = end_of_tag(text, open) {
            at = end;
            continue;
        }
        let dollar = text.get(..open).is_some_and(|before| before.ends_with('$'));
        match name_at(text, open + 1) {
            Some(name) if dollar || known(name) => {
                let start = if dollar { open - 1 } else { open };
                let end = open + 1 + name.len() + 1;
                modern.copy(text, copied..start);
                modern.replace(start..end, name);
                copied = end;
                at = end;
            }
            _ => at = open + 1,
        }
    }
    modern.copy(text, copied..text.len());
    modern
}

/// The end of a tag of today's syntax that begins at `open`.
pub(crate) fn end_of_tag(text: &str, open: usize) -> Option<usize> {
    let rest = text.get(open..)?;
    let close = match rest.as_bytes().get(1)? {
        b'{' => "}}",
        b'%' => "%}",
        b'#' => "#}",
        _ => return None,
    };
    // An unclosed tag is minijinja's to report; nothing after it is ours to read.
    Some(rest.get(2..)?.find(close).map_or(text.len(), |found| open + 2 + found + close.len()))
}

/// The identifier that fills the braces from `start` on.
fn name_at(text: &str, start: usize) -> Option<&str> {
    let rest = text.get(start..)?;
    // Up to the first character that no name has: looking for the brace itself would read the rest for every brace.
    let name = rest.get(..rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?)?;
    let begins = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    (begins && rest.get(name.len()..)?.starts_with('}')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modern(text: &str) -> String {
        modernise(text, |name| name == "用户称呼" || name == "x").text
    }

    #[test]
    fn older_placeholders_become_todays() {
        let table = [
            ("很好,{用户称呼}!", "很好,{{ 用户称呼 }}!"),
            ("${unknown}", "{{ unknown }}"),
            ("${x}{x}", "{{ x }}{{ x }}"),
            ("{unknown}", "{unknown}"),
            ("{ x }", "{ x }"),
            ("{{ x }} {% if x %}{x}{% endif %} {# {x} #}", "{{ x }} {% if x %}{{ x }}{% endif %} {# {x} #}"),
            ("{{ {x} ", "{{ {x} "),
            ("$100 {", "$100 {"),
            ("{}", "{}"),
            ("{\"content\": \"x\"}", "{\"content\": \"x\"}"),
        ];
        for (older, today) in table {
            assert_eq!(modern(older), today, "{older}");
        }
    }

    #[test]
    fn places_lead_back_to_the_original() {
        let text = "你好{x}再见{{ y }}";
        let modern = modernise(text, |name| name == "x");
        let y = modern.text.find('y').unwrap();
        assert_eq!(&text[modern.original(&(y..y + 1))], "y");
        let x = modern.text.find('x').unwrap();
        assert_eq!(&text[modern.original(&(x..x + 1))], "{x}");
    }
}
