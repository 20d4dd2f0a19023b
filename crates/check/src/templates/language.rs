//! `template-language`: texts in Chinese characters with prompts in Latin letters, or the reverse.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashSet;

use bcc_lang::script::script::Script;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::template::language::{WordCounts, WritingSystem};
use bcc_lang::template::layers::TemplateLayer;
use bcc_lang::template::mentions::visit;
use bcc_lang::template::templates::Templates;

/// Reports a script whose texts and prompts are written in different languages. `texts` are the author texts for people and
/// models (content, tone, exit, goals), `prompts` the names and versions of the templates that its actions use. Reports
/// nothing if either is short or mixed.
pub fn check<'t>(
    script: &Script,
    texts: impl IntoIterator<Item = &'t str>,
    prompts: impl IntoIterator<Item = (&'t str, u32)>,
    templates: &Templates,
) -> Option<Diagnostic> {
    let mut words = WordCounts::default();
    texts.into_iter().for_each(|text| words.add(text));
    let written = words.of_script()?;
    let mut parts = HashSet::new();
    for (name, version) in prompts {
        let Some(root) = templates.number(&format!("{name}_v{version}.md")) else { continue };
        visit(templates, root, &mut HashSet::new(), &mut |member| {
            parts.insert(member.template);
        });
    }
    let mut words = WordCounts::default();
    for loaded in parts.iter().filter_map(|number| templates.files().get(*number)) {
        words.add(loaded.source().text().get(loaded.split().body..).unwrap_or_default());
    }
    let prompted = words.of_templates().filter(|prompted| *prompted != written)?;
    let (scheme, id) = (script.scheme.as_ref(), &script.id);
    let span = scheme.map_or(id.span, |scheme| scheme.span);
    let (own, other) = (written.name(), prompted.name());
    let message = msg!(
        "this script is written in {own}, but its prompts are written in {other}",
        own = Message::word(own),
        other = Message::word(other)
    );
    let diagnostic = Diagnostic::warning("template-language", message, &script.file, span);
    let from_elsewhere =
        templates.files().iter().any(|file| TemplateLayer::of(file.place()).is_some_and(TemplateLayer::is_of_scheme));
    let folder = "`_system/config/custom/<scheme>/`";
    Some(match (written, scheme) {
        (WritingSystem::Latin, None) => {
            let help = msg!(
                "write `template_scheme: english` under `session:`; for another language, put your own templates into {folder} and write the name of that scheme"
            );
            let file = &script.file;
            let line = file.line_span(file.line(id.span.start)).unwrap_or(id.span);
            let before: &str = file.text().get(line.start..id.span.start).unwrap_or_default();
            let diagnostic = diagnostic.with_help(help);
            match before.strip_suffix("session_id: ").filter(|indent| indent.chars().all(|c| c == ' ')) {
                Some(indent) if !from_elsewhere => {
                    let edit = Edit::insert(line.start, format!("{indent}template_scheme: english\n"));
                    diagnostic.with_fix("use the English prompts", vec![edit])
                }
                _ => diagnostic,
            }
        }
        (WritingSystem::Latin, Some(scheme)) => diagnostic.with_help(msg!(
            "templates that the scheme `{0}` does not have come from the default scheme: put templates into `_system/config/custom/{0}/`, or write `template_scheme: english` to use the English prompts of bcc-script",
            scheme.value
        )),
        (WritingSystem::Han, Some(scheme)) => diagnostic
            .with_help(msg!(
                "remove `template_scheme: {}` to use the default prompts, which are Chinese, or use a scheme that has Chinese templates in {folder}",
                scheme.value
            )),
        (WritingSystem::Han, None) => diagnostic.with_help(msg!(
            "put Chinese templates into {folder} and write `template_scheme: <scheme>` under `session:`; the current prompts come from the project's own default templates, from its bcc-script.toml or from `--scheme`"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_lang::template::builtin::BUILTINS;

    fn words(text: &str) -> WordCounts {
        let mut words = WordCounts::default();
        words.add(text);
        words
    }

    #[test]
    fn the_templates_of_the_binary_are_written_in_their_language() {
        for file in BUILTINS {
            let expected = if matches!(file.place, "default" | "custom/chinese") {
                WritingSystem::Han
            } else {
                WritingSystem::Latin
            };
            assert_eq!(
                words(file.text).of_templates(),
                Some(expected),
                "{}/{}: {:?}",
                file.place,
                file.name,
                words(file.text)
            );
        }
    }
}
