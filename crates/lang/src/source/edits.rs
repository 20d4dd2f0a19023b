//! Applies edits to a text, as given by [`crate::source::diagnostic::Fix`].

use crate::message::ToMessage;
use crate::source::diagnostic::Edit;
use crate::source::span::Span;
use crate::source::text::BYTE_ORDER_MARK;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum EditError {
    /// Two edits change the same bytes, or insert at the same position, so that their order would matter.
    #[error("two edits affect the same location")]
    Overlap,
    /// An edit is outside the text, or starts or ends inside a character.
    #[error("an edit does not match the text")]
    Outside,
}

/// Applies all edits, whose positions are those of `text`; their order does not matter. Line breaks of new text become CRLF if
/// the lines around it have CRLF, and nothing is inserted before a byte-order mark. Bytes that no edit covers do not change.
/// Errors: [`EditError`]; then nothing is applied.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let mark = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    let after_mark = |edit: &Edit| Span::new(edit.span.start.max(mark), edit.span.end.max(mark));
    let mut sorted: Vec<(Span, &str)> = edits.iter().map(|edit| (after_mark(edit), edit.text.as_str())).collect();
    sorted.sort();
    let added: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut previous: Option<Span> = None;
    let mut breaks = Breaks::new(text);
    for (span, new) in sorted {
        if previous.is_some_and(|previous| previous.end > span.start || previous == span) {
            return Err(EditError::Overlap);
        }
        let unchanged = text.get(previous.map_or(0, |previous| previous.end)..span.start).ok_or(EditError::Outside)?;
        text.get(span.range()).ok_or(EditError::Outside)?;
        out.push_str(unchanged);
        push(&mut out, new, breaks.crlf_at(span.start));
        previous = Some(span);
    }
    out.push_str(text.get(previous.map_or(0, |previous| previous.end)..).ok_or(EditError::Outside)?);
    Ok(out)
}

/// Whether two changes can be applied together without checking again: no edit of one touches an edit of the other.
pub fn are_disjoint(one: &[Edit], other: &[Edit]) -> bool {
    let touch = |a: &Edit, b: &Edit| a.span.start <= b.span.end && b.span.start <= a.span.end;
    one.iter().all(|a| other.iter().all(|b| !touch(a, b)))
}

/// The kinds of line breaks in a text, queried from its start to its end.
struct Breaks<'t> {
    text: &'t str,
    /// The position up to which the text was searched.
    at: usize,
    /// Whether the last break before that position is CRLF; before the first break, whether that one is.
    crlf: bool,
}

impl<'t> Breaks<'t> {
    fn new(text: &'t str) -> Self {
        let crlf = text.find('\n').is_some_and(|at| Self::is_crlf(text, at));
        Self { text, at: 0, crlf }
    }

    fn is_crlf(text: &str, at: usize) -> bool {
        text.get(..at).is_some_and(|before| before.ends_with('\r'))
    }

    /// Whether the line break before `byte`, or else the first one after it, is CRLF. `byte` must not decrease between calls.
    fn crlf_at(&mut self, byte: usize) -> bool {
        if let Some(last) = self.text.get(self.at..byte).and_then(|between| between.rfind('\n')) {
            self.crlf = Self::is_crlf(self.text, self.at + last);
        }
        self.at = byte.max(self.at);
        self.crlf
    }
}

fn push(out: &mut String, new: &str, crlf: bool) {
    if !crlf {
        out.push_str(new);
        return;
    }
    for line in new.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(line) => {
                out.push_str(line.strip_suffix('\r').unwrap_or(line));
                out.push_str("\r\n");
            }
            None => out.push_str(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edits_are_applied_or_rejected() {
        let replace = |start, end, text: &str| Edit::replace(Span::new(start, end), text);
        let table = [
            ("abc", vec![], Ok("abc")),
            ("abc", vec![Edit::insert(3, "!"), Edit::insert(0, "<")], Ok("<abc!")),
            // At the same position, insertions come before replacements.
            ("abc", vec![replace(1, 2, "X"), Edit::insert(1, "_"), Edit::insert(2, "-")], Ok("a_X-c")),
            ("abc", vec![replace(1, 2, ""), replace(2, 3, "")], Ok("a")),
            ("abc", vec![Edit::insert(1, "x"), Edit::insert(1, "y")], Err(EditError::Overlap)),
            ("abc", vec![replace(0, 2, "x"), Edit::insert(1, "y")], Err(EditError::Overlap)),
            ("abc", vec![replace(0, 2, "x"), replace(1, 3, "y")], Err(EditError::Overlap)),
            ("abc", vec![replace(0, 2, "x"), replace(0, 2, "x")], Err(EditError::Overlap)),
            ("abc", vec![replace(2, 4, "x")], Err(EditError::Outside)),
            ("好", vec![replace(1, 3, "x")], Err(EditError::Outside)),
            ("好", vec![replace(0, 2, "x")], Err(EditError::Outside)),
            ("a\r\nb", vec![Edit::insert(3, "x\ny\r\n")], Ok("a\r\nx\r\ny\r\nb")),
            ("a\r\nb", vec![Edit::insert(0, "x\n")], Ok("x\r\na\r\nb")),
            ("a\nb\r\nc", vec![Edit::insert(2, "x\n")], Ok("a\nx\nb\r\nc")),
            ("a", vec![Edit::insert(1, "\nb")], Ok("a\nb")),
            ("\u{feff}a", vec![Edit::insert(0, "x")], Ok("\u{feff}xa")),
            ("\u{feff}a", vec![replace(0, 4, "x")], Ok("\u{feff}x")),
        ];
        for (text, edits, expected) in table {
            assert_eq!(apply(text, &edits), expected.map(str::to_owned), "{text:?} {edits:?}");
        }
    }

    #[test]
    fn changes_that_touch_are_not_applied_together() {
        let one = [Edit::replace(Span::new(2, 4), "x")];
        for (start, end, expected) in [(0, 1, true), (0, 2, false), (3, 3, false), (4, 4, false), (5, 9, true)] {
            let other = [Edit::insert(50, ""), Edit::replace(Span::new(start, end), "")];
            assert_eq!(are_disjoint(&one, &other), expected, "{start}..{end}");
            assert_eq!(are_disjoint(&other, &one), expected, "{start}..{end}");
        }
    }

    /// A text, and edits at its character boundaries, in any order.
    fn edited() -> impl Strategy<Value = (String, Vec<Edit>)> {
        let text = "(\u{feff})?([a-c好\n]|\r\n| ){0,40}";
        let edit = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), "[x\n]{0,3}");
        (text, prop::collection::vec(edit, 0..6)).prop_map(|(text, edits)| {
            let places: Vec<usize> = (0..=text.len()).filter(|byte| text.is_char_boundary(*byte)).collect();
            let place = |index: &prop::sample::Index| *index.get(&places);
            let edits = edits.iter().map(|(a, b, new)| {
                let (a, b) = (place(a), place(b));
                // Some edits only insert text.
                let b = if new.len() == 2 { a } else { b };
                Edit::replace(Span::new(a.min(b), a.max(b)), new.as_str())
            });
            let edits = edits.collect();
            (text, edits)
        })
    }

    proptest! {
        #[test]
        fn bytes_outside_of_the_edits_never_change_and_their_order_does_not_matter((text, edits) in edited()) {
            let edited = apply(&text, &edits);
            let mut reordered = edits.clone();
            for turn in 0..edits.len() {
                reordered.rotate_left(1);
                if turn % 2 == 0 {
                    reordered.reverse();
                }
                prop_assert_eq!(&apply(&text, &reordered), &edited);
            }
            if let Ok(edited) = edited {
                // The parts between the edits are in the result, in order; with the new texts they are all of it.
                let mark = if text.starts_with(BYTE_ORDER_MARK) { 3 } else { 0 };
                let mut sorted = edits;
                sorted.iter_mut().for_each(|edit| edit.span = Span::new(edit.span.start.max(mark), edit.span.end.max(mark)));
                sorted.sort_by_key(|edit| edit.span);
                let (mut at, mut rest) = (0, edited.as_str());
                for edit in &sorted {
                    rest = rest.strip_prefix(&text[at..edit.span.start]).unwrap();
                    let with_return = edit.text.replace('\n', "\r\n");
                    let new = [with_return.as_str(), &edit.text].into_iter().find(|new| rest.starts_with(*new)).unwrap();
                    rest = &rest[new.len()..];
                    at = edit.span.end;
                }
                prop_assert_eq!(rest, &text[at..]);
            }
        }
    }
}
