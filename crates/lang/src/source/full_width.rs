//! Dashes, braces, brackets and commas of a Chinese keyboard where YAML wants those of an English one.

use crate::message::msg;
use crate::source::diagnostic::{Edit, Fix};
use crate::source::known_fields::is_field;
use crate::source::lines::SourceLine;
use crate::source::misreading::Misreading;
use crate::source::span::Span;
use crate::source::text::SourceFile;

/// The marks, with those that YAML knows.
const MARKS: [(char, &str); 6] = [('｛', "{"), ('｝', "}"), ('［', "["), ('］', "]"), ('，', ", "), ('：', ": ")];

/// A full-width dash, or full-width brackets around the whole value of the line.
pub(crate) fn marks(file: &SourceFile, line: SourceLine<'_>) -> Option<Misreading> {
    dash(file, line).or_else(|| brackets(file, line))
}

/// A line that begins with `－ `.
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
    // In a text it is the author's own.
    let field = line.key().strip_prefix(dash).is_some_and(is_field) && !line.in_text();
    let fix = Fix::sure("write an ASCII dash", vec![Edit::replace(span, "-")]).only_sure_if(field);
    Some(Misreading::new(message, help, span).fixed_by(Some(fix)))
}

fn brackets(file: &SourceFile, line: SourceLine<'_>) -> Option<Misreading> {
    let (body, value) = (line.body(), line.value());
    let open = |span: Span| file.slice(span).starts_with('｛');
    // A text may begin with such a bracket: what is meant as fields ends with the other.
    let closes = file.slice(line.content()).ends_with('｝');
    let start = [body, value].into_iter().find(|span| open(*span)).filter(|_| closes)?.start;
    let span = Span::new(start, line.content().end);
    let mark = file.slice(span).chars().next()?;
    let message = msg!("this `{mark}` is a full-width bracket, which YAML treats as part of the text");
    let help = "use ASCII `{ }`, `[ ]` and commas";
    Some(Misreading::new(message, help, Span::new(start, start + mark.len_utf8())).fixed_by(replaced(file, span)))
}

/// A `，` between the fields of a `{ … }` of one line.
pub(crate) fn comma(file: &SourceFile, line: SourceLine<'_>) -> Option<Misreading> {
    let body = line.body();
    let value = [body, line.value()].into_iter().find(|span| file.slice(*span).starts_with(['{', '[']))?;
    let text = file.slice(value);
    // A comma that a key follows.
    let at = text.match_indices('，').map(|(at, _)| at).find(|at| {
        let behind = text.get(at + '，'.len_utf8()..).unwrap_or_default().trim_start();
        let key: String = behind.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        !key.is_empty() && behind.get(key.len()..).is_some_and(|rest| rest.starts_with([':', '：']))
    })?;
    let start = value.start + at;
    let span = Span::new(start, start + '，'.len_utf8());
    let message = "this comma is a full-width `，`, which YAML treats as part of the text";
    let fix = text.ends_with(['}', ']']).then(|| replaced(file, value)).flatten();
    Some(Misreading::new(message, "write an ASCII `,` and a space", span).fixed_by(fix))
}

/// The fix that writes all marks of `span` as YAML has them; `None` where quotes make texts of some of them.
fn replaced(file: &SourceFile, span: Span) -> Option<Fix> {
    let text = file.slice(span);
    if text.contains(['"', '\'', '#']) {
        return None;
    }
    let mark = |c: char| MARKS.iter().find(|(mark, _)| *mark == c).map(|(_, ascii)| *ascii);
    let edits = text.char_indices().filter_map(|(at, c)| {
        let span = Span::new(span.start + at, span.start + at + c.len_utf8());
        mark(c).map(|ascii| {
            let spaced = file.text().get(span.end..).is_some_and(|rest| rest.starts_with(' '));
            Edit::replace(span, if spaced { ascii.trim_end() } else { ascii })
        })
    });
    // A comma that no key follows may belong to a text.
    let inside = text.trim_matches(['{', '}', '[', ']', '｛', '｝', '［', '］']);
    let has_key = |part: &str| part.split_once([':', '：']).is_some_and(|(key, _)| is_key(key.trim()));
    let sure = inside.split([',', '，']).all(has_key) && !inside.contains(['［', '］', '｛', '｝', '[', ']', '{', '}']);
    Some(Fix::sure("write ASCII punctuation", edits.collect()).only_sure_if(sure))
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}
