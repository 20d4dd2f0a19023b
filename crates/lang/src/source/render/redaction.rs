//! Hides the secrets of files in reports: lines of a file and messages have asterisks in their place, and a fix that would write
//! a secret is left out.

use crate::message::message::Message;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use aho_corasick::AhoCorasick;

use crate::source::diagnostic::Diagnostic;
use crate::source::span::Span;
use crate::source::text::SourceFile;

/// A message may repeat only the start of a secret; fewer bytes than these reveal nothing.
const MIN_BYTES: usize = 8;

/// The text of `span` with its secrets replaced by as many asterisks as they have bytes, so that positions stay right.
pub fn mask(file: &SourceFile, span: Span) -> Cow<'_, str> {
    let text = Cow::Borrowed(file.slice(span));
    let secrets = file.secrets();
    // Secrets do not overlap, so their ends are sorted too.
    let first = secrets.partition_point(|secret| secret.hidden.end <= span.start);
    let touched = secrets.iter().skip(first).map(|secret| secret.hidden).take_while(|hidden| hidden.start < span.end);
    touched.fold(text, |text, hidden| {
        let range = hidden.start.max(span.start) - span.start..hidden.end.min(span.end) - span.start;
        let length = range.len();
        let mut masked = text.into_owned();
        if masked.is_char_boundary(range.start) && masked.is_char_boundary(range.end) {
            masked.replace_range(range, &"*".repeat(length));
        }
        Cow::Owned(masked)
    })
}

/// The diagnostics without the secrets of the files that they are about.
pub(crate) fn without_secrets(diagnostics: &[Diagnostic]) -> Cow<'_, [Diagnostic]> {
    let mut searchers: BTreeMap<*const SourceFile, Option<AhoCorasick>> = BTreeMap::new();
    for diagnostic in diagnostics {
        for file in files(diagnostic) {
            searchers.entry(Arc::as_ptr(file)).or_insert_with(|| prefix_searcher(file));
        }
    }
    if searchers.values().all(Option::is_none) {
        return Cow::Borrowed(diagnostics);
    }
    let redacted = |diagnostic: &Diagnostic| {
        let mut redacted = diagnostic.clone();
        for searcher in files(diagnostic).filter_map(|file| searchers.get(&Arc::as_ptr(file))?.as_ref()) {
            let redact = |text: &mut String| {
                if let Some(redacted) = redact_text(text, searcher) {
                    *text = redacted;
                }
            };
            let redact = |message: &mut Message| message.change_texts(&mut &redact);
            redact(&mut redacted.message);
            redacted.help.iter_mut().for_each(redact);
            redacted.related.iter_mut().for_each(|related| redact(&mut related.message));
            // Asterisks in the text of a fix would break the file.
            redacted.fixes.retain(|fix| !fix.edits.iter().any(|edit| searcher.is_match(&edit.text)));
            redacted.fixes.iter_mut().for_each(|fix| redact(&mut fix.title));
        }
        redacted
    };
    Cow::Owned(diagnostics.iter().map(redacted).collect())
}

/// The files of which a diagnostic shows something.
fn files(diagnostic: &Diagnostic) -> impl Iterator<Item = &Arc<SourceFile>> {
    std::iter::once(&diagnostic.file).chain(diagnostic.related.iter().map(|related| &related.file))
}

/// A searcher for the starts of a file's secrets; `None` if it has none.
fn prefix_searcher(file: &SourceFile) -> Option<AhoCorasick> {
    let texts = file.secrets().iter().map(|secret| file.slice(secret.hidden).trim_start());
    let prefixes: Vec<&str> = texts.filter_map(|text| text.get(..text.ceil_char_boundary(MIN_BYTES))).collect();
    let prefixes: Vec<&str> = prefixes.into_iter().filter(|start| start.len() >= MIN_BYTES).collect();
    // Without a searcher nothing would be hidden; building one succeeds for every list of this length.
    if prefixes.is_empty() { None } else { AhoCorasick::new(prefixes).ok() }
}

/// The text with each word masked from where a secret starts in it; `None` if it contains no secret.
fn redact_text(text: &str, searcher: &AhoCorasick) -> Option<String> {
    let mut masked = String::new();
    let mut copied = 0;
    for found in searcher.find_iter(text) {
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
        // Built here, so that no scanner reports a leaked secret in this file.
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
