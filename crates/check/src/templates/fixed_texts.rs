//! `broken-placeholder` in a front matter: its texts for the person are sent as they are written, so that braces would be shown.

use bcc_lang::message::msg;
use std::sync::Arc;

use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::loaded::LoadedTemplate;

/// The keys whose texts the person sees.
const KEYS: [&str; 5] = ["opening_fallback", "fallback", "partial_fallback", "safety_fallback", "crisis_fallback"];

/// The delimiters that are a placeholder or a tag in other texts.
const DELIMITERS: [(&str, &str); 2] = [("{{", "}}"), ("{%", "%}")];

pub fn check(loaded: &LoadedTemplate, source: &Arc<SourceFile>) -> Vec<Diagnostic> {
    let written = loaded.split().written.iter().filter(|written| KEYS.contains(&written.key.as_str()));
    let spans = written.flat_map(|written| {
        let text = source.text().get(written.value.clone()).unwrap_or_default();
        placeholders(text)
            .map(|(start, end)| (written.key.as_str(), written.value.start + start, written.value.start + end))
    });
    let finding = |(key, start, end): (&str, usize, usize)| {
        let message = msg!("this stays in the text as it is: a `{key}` in a front matter has no placeholders");
        let help = msg!(
            "write a text that needs no value, or use `fallback` in the config of the action, where placeholders work"
        );
        Diagnostic::warning("broken-placeholder", message, source, Span::new(start, end)).with_help(help)
    };
    spans.map(finding).collect()
}

/// The byte ranges of everything in `text` that looks like a placeholder or a tag.
fn placeholders(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let starts = DELIMITERS.iter().filter_map(|(open, close)| Some((rest.find(open)?, *close)));
        let (start, close) = starts.min()?;
        let inside = rest.get(start..)?;
        let length = inside.find(close)? + close.len();
        let found = (at + start, at + start + length);
        at = found.1;
        Some(found)
    })
}
