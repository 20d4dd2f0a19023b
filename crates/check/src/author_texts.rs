//! Texts of authors, and code in which their names stand, as the checker compiles them.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::ops::Range;
use std::sync::Arc;

use crate::checker::Checker;
use crate::collected::{TextFact, UseKind, UseLocation};
use crate::expressions::unknown_name_of;
use crate::placeholders::{Modern, modernise};
use crate::repairs::fix as fix_of;
use bcc_lang::script::fields::TextField;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::misreading::quote;
use bcc_lang::source::yaml::ScalarStyle;
use bcc_lang::template::text::Text;
use bcc_runtime::program::turn::ENGINE_NAMES;

/// What to do about a text that minijinja cannot read, where nothing more exact is known.
const TEXT_HELP: &str = "every `{{` needs a `}}`, every `{%` a `%}`, every `{% if … %}` an `{% endif %}`; literal braces are written `{{ '{{' }}`";

impl Checker<'_> {
    /// Compiles an author text; older placeholders are read.
    pub(crate) fn author_text(&mut self, words: &TextField) -> Option<Text> {
        let known = |name: &str| self.known.knows(name) || ENGINE_NAMES.contains(&name);
        let modern = modernise(&words.text, known);
        for (range, today) in &modern.replaced {
            // An unknown name is an error of its own, and its remedy is another name.
            if known(today.trim_matches(['{', '}', ' '])) {
                self.older_placeholder(words, range, today);
            }
        }
        let text = self.compiled(words, &modern)?;
        let at = self.here();
        self.seen.texts.push(TextFact { text: text.clone(), node: Arc::clone(&words.node), at });
        Some(text)
    }

    /// Compiles a text, and keeps the names that it uses.
    pub(crate) fn compiled(&mut self, words: &TextField, modern: &Modern) -> Option<Text> {
        let place = |range: &Range<usize>| locate_bytes(self.file, &words.node, modern.original(range));
        match self.texts.add(&modern.text) {
            Ok(text) => {
                for name in text.names() {
                    let original = modern.original(&name.range);
                    let older = modern.replaced.iter().any(|(range, _)| *range == original);
                    let place = UseLocation::Within(Arc::clone(&words.node), original);
                    self.used(&name.name, place, UseKind::Text, name.optional, !older);
                }
                Some(text)
            }
            Err(error) => {
                let span = error.range.as_ref().map_or(words.node.span, place);
                let help = error.help.clone();
                let help =
                    help.unwrap_or_else(|| Message::word(text_advice(&error.message.to_string()).unwrap_or(TEXT_HELP)));
                let diagnostic = match error.unknown {
                    Some(what) => unknown_name_of(what, error.message.clone(), self.file, span),
                    None => {
                        let message = msg!("this text cannot be read: {}", error.message);
                        Diagnostic::error("text-syntax", message, self.file, span)
                    }
                };
                let fix = error.repair.as_deref().filter(|_| modern.replaced.is_empty());
                let fix = fix.and_then(|repair| fix_of(self.file, &words.node, 0, repair));
                self.findings.report(diagnostic.with_help(help).with_fixes(fix));
                None
            }
        }
    }

    fn older_placeholder(&self, words: &TextField, range: &Range<usize>, today: &str) {
        let older = words.text.get(range.clone()).unwrap_or_default();
        let span = locate_bytes(self.file, &words.node, range.clone());
        let message = msg!("`{older}` is a deprecated spelling of `{today}`");
        let diagnostic = Diagnostic::warning("deprecated-placeholder", message, self.file, span);
        let plain = words.node.as_scalar().is_some_and(|scalar| scalar.style == ScalarStyle::Plain);
        let here = vec![Edit::replace(span, today)];
        let (help, edits) = if plain && range.start == 0 {
            // YAML reads a plain text that begins with `{` as a mapping.
            let all = self.file.slice(words.node.span);
            let edits = match all.strip_prefix(older) {
                // With both kinds of quotes in it, the text is written anew.
                Some(rest) if all.contains(['"', '\\']) && all.contains('\'') => {
                    vec![Edit::replace(words.node.span, format!("'{today}{}'", rest.replace('\'', "''")))]
                }
                _ => quote(self.file, words.node.span).edits.into_iter().chain(here).collect(),
            };
            (msg!("write `{today}`, and put quotes around the whole text"), edits)
        } else {
            (msg!("write `{today}`"), here)
        };
        let diagnostic = diagnostic.with_help(help.clone());
        // Where its place inside of the text cannot be told, the span is that of the whole.
        let placed = span != words.node.span || self.file.slice(span) == older;
        self.findings.report(if placed { diagnostic.with_sure_fix(help, edits) } else { diagnostic });
    }
}

/// What to do about a text that minijinja cannot read, by what it says.
fn text_advice(message: &str) -> Option<&'static str> {
    if message.contains("unexpected end of variable block") {
        return Some("put a name between the braces, as in `{{ user_name }}`");
    }
    if message.contains("expected end of variable block") {
        return Some("a placeholder is one name or expression between `{{` and `}}`");
    }
    message
        .contains("unexpected end of input")
        .then_some("close `{% if … %}` with `{% endif %}`, `{% for … %}` with `{% endfor %}`")
}
