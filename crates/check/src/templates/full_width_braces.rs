//! `broken-placeholder` in the text of a template: two full-width braces around a name, which the model would read.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::ops::Range;
use std::sync::Arc;

use crate::rules::broken_placeholder::braced;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;

/// `body` is the start of the template in its file. One brace, as in `｛name｝`, may be meant for the model.
pub fn check(source: &Arc<SourceFile>, body: usize) -> Vec<Diagnostic> {
    let text = source.text().get(body..).unwrap_or_default();
    if !text.contains(['｛', '｝']) {
        return Vec::new();
    }
    let placeholders = braced(text).into_iter().filter_map(|found| {
        let written = text.get(found.range.clone())?;
        let two = |braces: [char; 2]| written.chars().filter(|c| braces.contains(c)).count() == 2;
        let is_placeholder = written.contains(['｛', '｝']) && two(['{', '｛']) && two(['}', '｝']);
        is_placeholder.then_some((found.path, found.range, written))
    });
    let finding = |(path, range, written): (&str, Range<usize>, &str)| {
        let stays = Message::word("so it remains in the text unchanged");
        let message = msg!("`{written}` looks like a placeholder but is not one, {stays}");
        let placeholder = format!("{{{{ {path} }}}}");
        let span = Span::new(range.start + body, range.end + body);
        Diagnostic::warning("broken-placeholder", message, source, span)
            .with_help(msg!("write `{}`", placeholder))
            .with_fix(msg!("write `{}`", placeholder), vec![Edit::replace(span, placeholder.clone())])
    };
    placeholders.map(finding).collect()
}
