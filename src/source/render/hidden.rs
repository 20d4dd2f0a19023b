//! The parts of files that no report shows, because they are secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::source::diagnostic::Diagnostic;
use crate::source::render::visible::without_c1;
use crate::source::span::Span;
use crate::source::text::SourceFile;

/// What is hidden of which file, by the file's name, in the order of the file.
#[derive(Debug, Default)]
pub struct Hidden<'a>(BTreeMap<&'a str, Vec<Span>>);

impl<'a> Hidden<'a> {
    /// What these findings conceal. A report of several findings hides it in all of them: two may be about one line.
    pub fn of(diagnostics: impl Iterator<Item = &'a Diagnostic>) -> Self {
        let mut hidden: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        for diagnostic in diagnostics {
            if let Some(span) = diagnostic.concealed {
                hidden.entry(diagnostic.file.name()).or_default().push(span);
            }
        }
        hidden.values_mut().for_each(|spans| spans.sort_unstable());
        Self(hidden)
    }

    /// The text of `span` as it may be shown: what is hidden is as many stars as it has bytes, so that places stay right.
    pub fn mask<'f>(&self, file: &'f SourceFile, span: Span) -> Cow<'f, str> {
        let text = without_c1(file.slice(span));
        let spans = self.0.get(file.name()).map(Vec::as_slice).unwrap_or_default();
        // They do not overlap, so their ends are sorted too.
        let first = spans.partition_point(|hidden| hidden.end <= span.start);
        let touched = spans.iter().skip(first).take_while(|hidden| hidden.start < span.end);
        touched.fold(text, |text, hidden| {
            let inside = hidden.start.max(span.start) - span.start..hidden.end.min(span.end) - span.start;
            let length = inside.len();
            let mut masked = text.into_owned();
            if masked.is_char_boundary(inside.start) && masked.is_char_boundary(inside.end) {
                masked.replace_range(inside, &"*".repeat(length));
            }
            Cow::Owned(masked)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::render::human::human;

    #[test]
    fn what_one_finding_conceals_no_finding_shows() {
        let file = Arc::new(SourceFile::new("a.yaml", "key: sk-geheim密, nmae: x\n"));
        let secret = Diagnostic::warning("secret", "m", &file, Span::new(5, 17)).with_concealed(Span::new(8, 17));
        let other = Diagnostic::error("unknown-key", "m", &file, Span::new(19, 23));
        let shown = human(&[other, secret], false);
        assert!(!shown.contains("geheim") && !shown.contains('密'), "{shown}");
        assert_eq!(shown.matches("key: sk-*********, nmae: x").count(), 2, "{shown}");
    }
}
