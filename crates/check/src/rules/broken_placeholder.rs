//! `broken-placeholder`: braces around a name that are not a placeholder, so that they remain in the text.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashMap;
use std::ops::Range;

use crate::collected::CollectedText;
use crate::placeholders::end_of_tag;
use crate::repairs::fix;
use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::near::near_miss;
use bcc_lang::template::unknown::SourceRepair;
use bcc_runtime::program::turn::ENGINE_NAMES;

/// The maximum number of unknown names for which a similar one is searched.
const MAX_SUGGESTIONS: usize = 200;

/// The minimum length of a name for which a similar one is searched, in characters: shorter names have too many.
const MIN_NAME_CHARS: usize = 4;

pub static RULE: Rule = Rule { slugs: &["broken-placeholder"], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    let mut near: HashMap<String, Option<String>> = HashMap::new();
    for entry in &model.collected.texts {
        let Some(scalar) = entry.node.as_scalar() else { continue };
        for braced in braced(&scalar.text) {
            if let Some(diagnostic) = check_braced(model, entry, &scalar.text, &braced, &mut near) {
                findings.report(diagnostic);
            }
        }
    }
}

fn check_braced(
    model: &SemanticModel<'_>,
    entry: &CollectedText,
    text: &str,
    braced: &Braced<'_>,
    near: &mut HashMap<String, Option<String>>,
) -> Option<Diagnostic> {
    let name = braced.name;
    let written = text.get(braced.range.clone())?;
    let modern = |name: &str| format!("{{{{ {name} }}}}");
    let report = |message: Message, help: Message, meant: Option<&str>| {
        let span = locate_bytes(model.file, &entry.node, braced.range.clone());
        let diagnostic = Diagnostic::warning("broken-placeholder", message, model.file, span).with_help(help);
        let Some(meant) = meant else { return diagnostic };
        let repair = SourceRepair::one(msg!("write `{}`", modern(meant)), braced.range.clone(), modern(meant));
        // The braces are part of the text now, and may be intended.
        diagnostic.with_fixes(fix(model.file, &entry.node, 0, &repair))
    };
    // A legacy form with a name that is known here is read as a placeholder, whatever follows it.
    let after = entry.legacy.partition_point(|range| range.end <= braced.range.start);
    if entry.legacy.get(after).is_some_and(|range| range.contains(&braced.range.start)) {
        return None;
    }
    let stays = "so it remains in the text unchanged";
    if known(model, name) {
        if braced.form == BraceForm::Legacy {
            let message = msg!(
                "`{written}` is not a placeholder here, because `{name}` is not known at this point, {stays}",
                stays = Message::word(stays)
            );
            let help = msg!("assign a value to `{name}` before this point, and write `{}`", modern(name));
            return Some(report(message, help, None));
        }
        let message = match braced.form {
            BraceForm::Unclosed => msg!("`{written}` lacks its closing brace, {stays}", stays = Message::word(stays)),
            _ => msg!("`{written}` looks like a placeholder but is not one, {stays}", stays = Message::word(stays)),
        };
        return Some(report(message, msg!("write `{}`", modern(braced.path)), Some(braced.path)));
    }
    if !matches!(braced.form, BraceForm::Legacy | BraceForm::Odd)
        || braced.path != name
        || name.chars().nth(MIN_NAME_CHARS - 1).is_none()
    {
        return None;
    }
    if !near.contains_key(name) {
        if near.len() >= MAX_SUGGESTIONS {
            return None;
        }
        let names = model.names().iter().filter(|(_, places)| !places.definitions.is_empty()).map(|(name, _)| name);
        let found = near_miss(name, names.chain(ENGINE_NAMES)).map(str::to_owned);
        near.insert(name.to_owned(), found);
    }
    let meant = near.get(name)?.as_deref()?;
    let message =
        msg!("`{written}` is not a placeholder, because `{name}` is not known, {stays}", stays = Message::word(stays));
    Some(report(message, msg!("did you mean `{}`?", modern(meant)), Some(meant)))
}

fn known(model: &SemanticModel<'_>, name: &str) -> bool {
    ENGINE_NAMES.contains(&name) || model.names().places(name).is_some_and(|places| !places.definitions.is_empty())
}

/// The form of braces around a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BraceForm {
    /// `{x}`, which is a placeholder where `x` is known.
    Legacy,
    /// `｛x｝`, `{ x }`, `{ { x } }`, `{x.a}`.
    Odd,
    /// `【x】`, which is also used for headings.
    Lenticular,
    /// `{x` without a closing brace on its line.
    Unclosed,
}

/// A name in braces that are not a placeholder of the current syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Braced<'t> {
    pub name: &'t str,
    /// The name with its members: `x.a`.
    pub path: &'t str,
    /// Its range with the braces, in bytes.
    pub range: Range<usize>,
    pub form: BraceForm,
}

/// The names in braces outside `{{ }}`, `{% %}` and `{# #}`, in order.
pub(crate) fn braced(text: &str) -> Vec<Braced<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut stop = None;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find(['{', '｛', '【'])).map(|length| at + length) {
        if let Some(end) = end_of_tag(text, open) {
            at = end;
            continue;
        }
        match braced_at(text, open, &mut stop) {
            Some(braced) => {
                at = braced.range.end;
                found.push(braced);
            }
            None => at = open + text.get(open..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8),
        }
    }
    found
}

/// `stop`: as for [`closes_on_line`].
fn braced_at<'t>(text: &'t str, open: usize, stop: &mut Option<usize>) -> Option<Braced<'t>> {
    let rest = text.get(open..)?;
    if let Some(inner) = rest.strip_prefix('【') {
        let name = leading_name(inner);
        let sure = name.is_ascii() && name.contains('_') && inner.get(name.len()..)?.starts_with('】');
        let end = open + '【'.len_utf8() + name.len() + '】'.len_utf8();
        return sure.then_some(Braced { name, path: name, range: open..end, form: BraceForm::Lenticular });
    }
    let inside = open + braces_len(rest, ['{', '｛']);
    let gap = spaces_len(text.get(inside..)?);
    let name = leading_name(text.get(inside + gap..)?);
    if name.is_empty() {
        return None;
    }
    let start = inside + gap;
    let path_end = start + path_len(text.get(start..)?, name);
    let path = text.get(start..path_end)?;
    let after = text.get(path_end..)?;
    let space = spaces_len(after);
    let close = braces_len(after.get(space..)?, ['}', '｝']);
    let opening = text.get(open..inside)?;
    if close == 0 {
        let ends = after.chars().next().is_none_or(|c| c.is_whitespace() || "，。！？；、!?".contains(c));
        let alone = gap == 0 && matches!(opening, "{" | "｛") && ends && !closes_on_line(text, path_end, stop);
        return alone.then_some(Braced { name, path, range: open..path_end, form: BraceForm::Unclosed });
    }
    let end = path_end + space + close;
    let legacy = opening == "{" && gap == 0 && space == 0 && path == name && text.get(path_end..end)? == "}";
    let form = if legacy { BraceForm::Legacy } else { BraceForm::Odd };
    let dollar = text.get(..open)?.ends_with('$');
    // `${x}` is a placeholder for any `x`.
    if dollar && legacy {
        return None;
    }
    Some(Braced { name, path, range: if dollar { open - 1 } else { open }..end, form })
}

/// Whether a closing brace follows on the line of the byte `at`. `stop`: the first closing brace or end of a line after the last place that
/// was asked for, which was not after `at`; many places in a line would otherwise take quadratic time.
fn closes_on_line(text: &str, at: usize, stop: &mut Option<usize>) -> bool {
    let place = stop.filter(|stop| *stop >= at).unwrap_or_else(|| {
        let length = text.get(at..).and_then(|rest| rest.find(['}', '｝', '\n']));
        length.map_or(text.len(), |length| at + length)
    });
    *stop = Some(place);
    text.get(place..).is_some_and(|rest| rest.starts_with(['}', '｝']))
}

/// The length of the one or two braces at the start of the text, with the spaces between them.
fn braces_len(text: &str, braces: [char; 2]) -> usize {
    let Some(first) = text.chars().next().filter(|c| braces.contains(c)).map(char::len_utf8) else { return 0 };
    let rest = text.get(first..).unwrap_or_default();
    let gap = spaces_len(rest);
    let second = rest.get(gap..).and_then(|rest| rest.chars().next()).filter(|c| braces.contains(c));
    second.map_or(first, |second| first + gap + second.len_utf8())
}

/// The length of the spaces at the start of the text.
fn spaces_len(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\u{3000}']).len()
}

/// The name at the start of the text; empty if there is none.
fn leading_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let name = text.get(..end).unwrap_or_default();
    if name.starts_with(|c: char| c.is_alphabetic() || c == '_') { name } else { "" }
}

/// The length of `name`, with which the text starts, and of the members after it.
fn path_len(text: &str, name: &str) -> usize {
    let mut length = name.len();
    while let Some(member) = text.get(length..).and_then(|rest| rest.strip_prefix('.')).map(leading_name)
        && !member.is_empty()
    {
        length += 1 + member.len();
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_found_with_their_form() {
        let table: &[(&str, &[(&str, BraceForm)])] = &[
            (
                "｛｛ a ｝｝ ｛a｝ { a } { { a } } ｛a}",
                &[
                    ("｛｛ a ｝｝", BraceForm::Odd),
                    ("｛a｝", BraceForm::Odd),
                    ("{ a }", BraceForm::Odd),
                    ("{ { a } }", BraceForm::Odd),
                    ("｛a}", BraceForm::Odd),
                ],
            ),
            ("{a}{{ a }}{% if a %}{# {a} #}${a}", &[("{a}", BraceForm::Legacy)]),
            ("{a.b} ${a.b.c} {a.}", &[("{a.b}", BraceForm::Odd), ("${a.b.c}", BraceForm::Odd)]),
            ("【user_name】【年龄】【重点】", &[("【user_name】", BraceForm::Lenticular)]),
            ("您好，{a，请说\n{a: 1} {a", &[("{a", BraceForm::Unclosed), ("{a", BraceForm::Unclosed)]),
            ("{\"a\": 1} {} {1} { a, b } { a b } x{2,3}", &[]),
        ];
        for (text, expected) in table {
            let found: Vec<(&str, BraceForm)> =
                braced(text).into_iter().map(|braced| (&text[braced.range], braced.form)).collect();
            assert_eq!(&found, expected, "{text}");
        }
    }
}
