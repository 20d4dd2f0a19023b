//! Converts legacy placeholders in author texts (docs/language.md "Texts"): `${x}` anywhere, and `{x}` where `x` is known,
//! are read as `{{ x }}`.

use std::ops::Range;

/// A text whose legacy placeholders are replaced, with a mapping from its bytes to those of the original.
#[derive(Debug, Default)]
pub(crate) struct ConvertedText {
    /// The text in the current syntax.
    pub text: String,
    /// The legacy placeholders: their ranges in the original, and their replacements.
    pub replaced: Vec<(Range<usize>, String)>,
    /// Ranges of the new text with the ranges of the original that they come from.
    pieces: Vec<(Range<usize>, Range<usize>)>,
}

impl ConvertedText {
    /// A text that is not converted.
    pub(crate) fn unchanged(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// Whether this range of the original is a legacy placeholder.
    pub(crate) fn replaces(&self, original: &Range<usize>) -> bool {
        let place = self.replaced.binary_search_by_key(&original.start, |(range, _)| range.start);
        place.is_ok_and(|place| self.replaced.get(place).is_some_and(|(range, _)| range == original))
    }

    /// The range of the original for the range `within` of the new text.
    pub(crate) fn original(&self, within: &Range<usize>) -> Range<usize> {
        if self.replaced.is_empty() {
            return within.clone();
        }
        self.place(within.start).start..self.place(within.end.saturating_sub(1).max(within.start)).end
    }

    /// The range of the original for the byte `at` of the new text.
    fn place(&self, at: usize) -> Range<usize> {
        let after = self.pieces.partition_point(|(new, _)| new.start <= at);
        let piece = after.checked_sub(1).and_then(|last| self.pieces.get(last));
        if let Some((new, original)) = piece.filter(|(new, _)| new.contains(&at)) {
            // A copied piece maps byte by byte; a replaced one maps to the complete placeholder.
            if new.len() == original.len() {
                let start = original.start + (at - new.start);
                return start..start + 1;
            }
            return original.clone();
        }
        let end = self.pieces.last().map_or(0, |(_, original)| original.end);
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

    fn replace(&mut self, range: Range<usize>, before: &str, name: &str) {
        let replacement = format!("{before}{{{{ {name} }}}}");
        let start = self.text.len();
        self.text.push_str(&replacement);
        self.pieces.push((start..self.text.len(), range.clone()));
        self.replaced.push((range, replacement));
    }
}

/// Converts the legacy placeholders of `text`. The content of `{{ }}`, `{% %}` and `{# #}` is not changed.
pub(crate) fn convert_legacy(text: &str, known: impl Fn(&str) -> bool) -> ConvertedText {
    let mut converted = ConvertedText::default();
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
                // Together with a brace before it, the tag would begin with three.
                let brace = text.get(copied..start).is_some_and(|before| before.ends_with('{'));
                let start = if brace { start - 1 } else { start };
                converted.copy(text, copied..start);
                converted.replace(start..end, if brace { "{{ '{' }}" } else { "" }, name);
                copied = end;
                at = end;
            }
            _ => at = open + 1,
        }
    }
    converted.copy(text, copied..text.len());
    converted
}

/// The end of a tag of the current syntax that starts at `open`.
pub(crate) fn end_of_tag(text: &str, open: usize) -> Option<usize> {
    let rest = text.get(open..)?;
    let close = match rest.as_bytes().get(1)? {
        b'{' => "}}",
        b'%' => "%}",
        b'#' => "#}",
        _ => return None,
    };
    // minijinja reports an unclosed tag; nothing after it is converted.
    let Some(length) = rest.get(2..)?.find(close) else { return Some(text.len()) };
    let end = open + 2 + length + close.len();
    let is_raw = close == "%}" && keyword(rest.get(2..2 + length)?) == "raw";
    Some(if is_raw { end_of_raw(text, end) } else { end })
}

/// The content of a tag without the marks that remove white space around it.
fn keyword(content: &str) -> &str {
    content.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim()
}

/// The end of the tag that ends the `{% raw %}` block whose content starts at `start`: it is shown as written.
fn end_of_raw(text: &str, start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    // Only what follows each `{%` is read, so that many of them take linear time.
    let end = rest.match_indices("{%").find_map(|(open, tag)| {
        let inside = rest.get(open + tag.len()..)?;
        let after = inside.trim_start_matches(['-', '+']).trim_start().strip_prefix("endraw")?;
        let after = after.trim_start().trim_start_matches(['-', '+']).strip_prefix("%}")?;
        Some(text.len() - after.len())
    });
    end.unwrap_or(text.len())
}

/// The identifier that fills the braces from `start`.
fn name_at(text: &str, start: usize) -> Option<&str> {
    let rest = text.get(start..)?;
    // Stop at the first character that is not part of a name: a search for the brace would read the rest for every brace.
    let name = rest.get(..rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?)?;
    let starts = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    (starts && rest.get(name.len()..)?.starts_with('}')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn convert(text: &str) -> String {
        convert_legacy(text, |name| name == "用户称呼" || name == "x").text
    }

    #[test]
    fn legacy_placeholders_are_converted() {
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
            ("{${x}}", "{{ '{' }}{{ x }}}"),
            ("{% raw %}{x} ${x}{% endraw %}{x}", "{% raw %}{x} ${x}{% endraw %}{{ x }}"),
            ("{%- raw -%}{x}{%- endraw -%}${x}", "{%- raw -%}{x}{%- endraw -%}{{ x }}"),
            ("{% raw %}{% if x %}{x}{% endraw %} {x}", "{% raw %}{% if x %}{x}{% endraw %} {{ x }}"),
            ("{% raw %}{x}", "{% raw %}{x}"),
            ("{\"content\": \"x\"}", "{\"content\": \"x\"}"),
        ];
        for (legacy, expected) in table {
            assert_eq!(convert(legacy), expected, "{legacy}");
        }
    }

    #[test]
    fn ranges_map_to_the_original() {
        let text = "你好{x}再见{{ y }}";
        let converted = convert_legacy(text, |name| name == "x");
        let y = converted.text.find('y').unwrap();
        assert_eq!(&text[converted.original(&(y..y + 1))], "y");
        let x = converted.text.find('x').unwrap();
        assert_eq!(&text[converted.original(&(x..x + 1))], "{x}");
    }
}
