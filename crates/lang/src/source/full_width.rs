//! Detects dashes, braces, brackets and commas of a Chinese keyboard where YAML needs ASCII ones.

use crate::message::msg;
use crate::source::diagnostic::{Edit, Fix};
use crate::source::known_fields::is_field;
use crate::source::lines::SourceLine;
use crate::source::misreading::{ASCII_BRACKETS, Misreading};
use crate::source::span::Span;
use crate::source::text::SourceFile;

/// Full-width marks, with their ASCII equivalents.
const MARKS: [(char, &str); 6] = [('｛', "{"), ('｝', "}"), ('［', "["), ('］', "]"), ('，', ", "), ('：', ": ")];

/// A full-width dash, or full-width brackets around the whole value of the line.
pub(crate) fn marks(file: &SourceFile, line: SourceLine<'_>) -> Option<Misreading> {
    dash(file, line).or_else(|| brackets(file, line))
}

/// A line that starts with `－ `.
pub(crate) fn dash(file: &SourceFile, line: SourceLine<'_>) -> Option<Misreading> {
    let content = line.content();
    let dash = file.slice(content).chars().next().filter(|c| matches!(c, '－' | '—' | '–' | '−'))?;
    let rest = file.slice(content).strip_prefix(dash)?;
    if !rest.starts_with([' ', '\u{3000}']) || line.colon().is_none() {
        return None;
    }
    let span = Span::new(content.start, content.start + dash.len_utf8());
    let message = msg!("this dash is a `{dash}`, which YAML treats as part of the text");
    let help = "start a list item with an ASCII `-` and a space";
    // Inside a text it is intended.
    let field = line.key().strip_prefix(dash).is_some_and(is_field) && !line.in_text();
    let fix = Fix::sure("write an ASCII dash", vec![Edit::replace(span, "-")]).only_sure_if(field);
    Some(Misreading::new(message, help, span).fixed_by(Some(fix)))
}

fn brackets(file: &SourceFile, line: SourceLine<'_>) -> Option<Misreading> {
    let (body, value) = (line.body(), line.value());
    let open = |span: Span| file.slice(span).starts_with('｛');
    // Text may start with such a bracket: fields are meant only if it ends with the other one.
    let closes = file.slice(line.content()).ends_with('｝');
    let start = [body, value].into_iter().find(|span| open(*span)).filter(|_| closes)?.start;
    let span = Span::new(start, line.content().end);
    let mark = file.slice(span).chars().next()?;
    let message = msg!("this `{mark}` is a full-width bracket, which YAML treats as part of the text");
    Some(
        Misreading::new(message, ASCII_BRACKETS, Span::new(start, start + mark.len_utf8()))
            .fixed_by(ascii_fix(file, span)),
    )
}

/// A `，` between the fields of a `{ … }` of one line.
pub(crate) fn comma(file: &SourceFile, line: SourceLine<'_>) -> Option<Misreading> {
    let body = line.body();
    let value = [body, line.value()].into_iter().find(|span| file.slice(*span).starts_with(['{', '[']))?;
    let text = file.slice(value);
    // A comma that is followed by a key.
    let at = text.match_indices('，').map(|(at, _)| at).find(|at| {
        let after = text.get(at + '，'.len_utf8()..).unwrap_or_default().trim_start();
        let key: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        !key.is_empty() && after.get(key.len()..).is_some_and(|rest| rest.starts_with([':', '：']))
    })?;
    let start = value.start + at;
    let span = Span::new(start, start + '，'.len_utf8());
    let message = "this comma is a full-width `，`, which YAML treats as part of the text";
    let fix = text.ends_with(['}', ']']).then(|| ascii_fix(file, value)).flatten();
    Some(Misreading::new(message, "write an ASCII `,` and a space", span).fixed_by(fix))
}

/// The fix that replaces all marks of `span` by ASCII ones; `None` if quotes make some of them part of a text.
fn ascii_fix(file: &SourceFile, span: Span) -> Option<Fix> {
    let text = file.slice(span);
    if text.contains(['"', '\'', '#']) {
        return None;
    }
    let to_ascii = |c: char| MARKS.iter().find(|(mark, _)| *mark == c).map(|(_, ascii)| *ascii);
    let edits = text.char_indices().filter_map(|(at, c)| {
        let span = Span::new(span.start + at, span.start + at + c.len_utf8());
        to_ascii(c).map(|ascii| {
            let spaced = file.text().get(span.end..).is_some_and(|rest| rest.starts_with(' '));
            Edit::replace(span, if spaced { ascii.trim_end() } else { ascii })
        })
    });
    // A comma that is not followed by a key may belong to a text.
    let inside = text.trim_matches(['{', '}', '[', ']', '｛', '｝', '［', '］']);
    let has_key = |part: &str| part.split_once([':', '：']).is_some_and(|(key, _)| is_key(key.trim()));
    let sure = inside.split([',', '，']).all(has_key) && !inside.contains(['［', '］', '｛', '｝', '[', ']', '{', '}']);
    Some(Fix::sure("write ASCII punctuation", edits.collect()).only_sure_if(sure))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
