//! What no report shows: the secrets that stand in files. Lines of a file are shown with stars in their place, and so is whatever a
//! message repeats of them; a fix that would write one again is left out.

use crate::message::message::Message;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use aho_corasick::AhoCorasick;

use crate::source::diagnostic::Diagnostic;
use crate::source::render::visible::without_c1;
use crate::source::span::Span;
use crate::source::text::SourceFile;

/// A message may repeat the start of a secret alone; fewer bytes than these tell nothing.
const LEAST_BYTES: usize = 8;

/// The text of `span` as it may be shown: what is hidden is as many stars as it has bytes, so that places stay right.
pub fn mask(file: &SourceFile, span: Span) -> Cow<'_, str> {
    let text = without_c1(file.slice(span));
    let secrets = file.secrets();
    // They do not overlap, so their ends are sorted too.
    let first = secrets.partition_point(|secret| secret.hidden.end <= span.start);
    let touched = secrets.iter().skip(first).map(|secret| secret.hidden).take_while(|hidden| hidden.start < span.end);
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

/// The findings as they may be told: their words without what is hidden in the files that they are about.
pub fn without_secrets(diagnostics: &[Diagnostic]) -> Cow<'_, [Diagnostic]> {
    let mut of_files: BTreeMap<*const SourceFile, Option<AhoCorasick>> = BTreeMap::new();
    for diagnostic in diagnostics {
        for file in files(diagnostic) {
            of_files.entry(Arc::as_ptr(file)).or_insert_with(|| starts(file));
        }
    }
    if of_files.values().all(Option::is_none) {
        return Cow::Borrowed(diagnostics);
    }
    let told = |diagnostic: &Diagnostic| {
        let mut told = diagnostic.clone();
        for starts in files(diagnostic).filter_map(|file| of_files.get(&Arc::as_ptr(file))?.as_ref()) {
            let conceal = |text: &mut String| {
                if let Some(concealed) = concealed(text, starts) {
                    *text = concealed;
                }
            };
            let conceal = |message: &mut Message| message.change_texts(&mut &conceal);
            conceal(&mut told.message);
            told.help.iter_mut().for_each(conceal);
            told.related.iter_mut().for_each(|related| conceal(&mut related.message));
            // Stars in the place of what a fix writes would break the file.
            told.fixes.retain(|fix| !fix.edits.iter().any(|edit| starts.is_match(&edit.text)));
            told.fixes.iter_mut().for_each(|fix| conceal(&mut fix.title));
        }
        told
    };
    Cow::Owned(diagnostics.iter().map(told).collect())
}

/// The files that a finding shows something of.
fn files(diagnostic: &Diagnostic) -> impl Iterator<Item = &Arc<SourceFile>> {
    std::iter::once(&diagnostic.file).chain(diagnostic.related.iter().map(|related| &related.file))
}

/// How the secrets of a file begin; none when it has none.
fn starts(file: &SourceFile) -> Option<AhoCorasick> {
    let texts = file.secrets().iter().map(|secret| file.slice(secret.hidden).trim_start());
    let starts: Vec<&str> = texts.filter_map(|text| text.get(..text.ceil_char_boundary(LEAST_BYTES))).collect();
    let starts: Vec<&str> = starts.into_iter().filter(|start| start.len() >= LEAST_BYTES).collect();
    // Without an automaton nothing could be hidden; there is one for every list of this length.
    if starts.is_empty() { None } else { AhoCorasick::new(starts).ok() }
}

/// The text with stars in the place of each word from where a secret begins in it; none when none does.
fn concealed(text: &str, starts: &AhoCorasick) -> Option<String> {
    let mut masked = String::new();
    let mut copied = 0;
    for found in starts.find_iter(text) {
        if found.start() < copied {
            continue;
        }
        let rest = text.get(found.start()..)?;
        let length = rest.find(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'')).unwrap_or(rest.len());
        masked += text.get(copied..found.start())?;
        masked += &"*".repeat(length);
        copied = found.start() + length;
    }
    (copied > 0).then(|| masked + text.get(copied..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::msg;
    use crate::source::diagnostic::Edit;
    use crate::source::render::github::github;
    use crate::source::render::human::human;
    use crate::source::render::json::json;
    use crate::source::render::sarif::sarif;

    #[test]
    fn no_report_shows_a_secret_whichever_finding_is_about_it() {
        // Put together here, so that nothing takes this file for one that leaks.
        let key = format!("sk-{}", "q7Wm2Zr9Tk4Lp8Xv3Nb6Hd1Js5Fg0Cy");
        let file = Arc::new(SourceFile::new("a.yaml", format!("- {{ var: {key}, nmae: x }}\n")));
        let span = Span::new(9, 9 + key.len());
        let part: String = key.chars().take(20).collect();
        let finding = Diagnostic::error("invalid-name", msg!("`{key}` is no name"), &file, span)
            .with_help(msg!("`{part}…` cannot be one"))
            .with_related(msg!("{key} is here"), &file, span)
            .with_fix(msg!("write `x{key}`"), vec![Edit::replace(span, format!("x{key}"))])
            .with_fix("write `name`", vec![Edit::replace(Span::new(span.end + 2, span.end + 6), "name")]);
        let all = [finding];
        for shown in [human(&all, false), json(1, &all), sarif(&all, &[]), github(&all)] {
            assert!(!shown.contains("q7Wm2Z") && shown.contains("******"), "{shown}");
        }
        assert!(json(1, &all).contains("write `name`") && !json(1, &all).contains("write `x"));
    }
}
