//! `template-language`: texts in Chinese characters with prompts in Latin letters, or the reverse.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeSet, HashSet};

use bcc_lang::script::script::Script;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::template::builtin::BUILTINS;
use bcc_lang::template::language::{WordCounts, WritingSystem};
use bcc_lang::template::layers::{CHINESE_SCHEME, DEFAULT_SCHEME, ENGLISH_SCHEME, TemplateLayer};
use bcc_lang::template::loaded::LoadedTemplate;
use bcc_lang::template::mentions::visit;
use bcc_lang::template::templates::Templates;

/// The prompts of a script that are in another language than its texts.
struct ForeignPrompts<'t> {
    script: &'t Script,
    /// The language of the script.
    written: WritingSystem,
    prompted: WritingSystem,
    /// The files, if other prompts of the script are in its language; empty if none is.
    files: Vec<&'t LoadedTemplate>,
    /// The scheme that the script uses, whether it names it itself or not; `None` for the default templates.
    scheme: Option<&'t str>,
}

/// Reports a script whose texts are written in another language than its prompts, or than some of them. `texts` are the author texts for
/// people and models (content, tone, exit, goals), `prompts` the names and versions of the templates that its actions use. Texts and
/// prompts that are short or mixed are not compared.
pub fn check<'t>(
    script: &Script,
    texts: impl IntoIterator<Item = &'t str>,
    prompts: impl IntoIterator<Item = (&'t str, u32)>,
    templates: &Templates,
) -> Option<Diagnostic> {
    let mut words = WordCounts::default();
    texts.into_iter().for_each(|text| words.add(text));
    let written = words.of_script()?;
    let root = |(name, version): (&str, u32)| templates.number(&format!("{name}_v{version}.md"));
    let roots: BTreeSet<usize> = prompts.into_iter().filter_map(root).collect();
    let known: Vec<(usize, WritingSystem)> =
        roots.iter().filter_map(|root| Some((*root, language_of(&[*root], templates)?))).collect();
    let is_foreign = |system: &WritingSystem| *system != written;
    let foreign: Vec<usize> = known.iter().filter(|(_, system)| is_foreign(system)).map(|(root, _)| *root).collect();
    let (files, prompted) = match known.iter().find(|(_, system)| is_foreign(system)) {
        Some((_, system)) if foreign.len() < known.len() => (foreign, *system),
        Some((_, system)) => (vec![], *system),
        // Prompts that are too short to tell their language, each by itself.
        None if known.is_empty() => {
            let all: Vec<usize> = roots.into_iter().collect();
            (vec![], language_of(&all, templates).filter(is_foreign)?)
        }
        None => return None,
    };
    let scheme = templates.files().iter().find_map(|file| {
        let place = file.place();
        place.strip_prefix("builtin/").unwrap_or(place).strip_prefix("custom/")
    });
    let files = files.into_iter().filter_map(|root| templates.files().get(root)).collect();
    Some(ForeignPrompts { script, written, prompted, files, scheme }.diagnostic())
}

/// The language of the prompts of these templates with all of their parts; `None` if they are short or mixed.
fn language_of(roots: &[usize], templates: &Templates) -> Option<WritingSystem> {
    let mut parts = HashSet::new();
    for root in roots {
        visit(templates, *root, &mut HashSet::new(), &mut |member| {
            parts.insert(member.template);
        });
    }
    let mut words = WordCounts::default();
    for loaded in parts.iter().filter_map(|number| templates.files().get(*number)) {
        words.add(loaded.source().text().get(loaded.split().body..).unwrap_or_default());
    }
    words.of_templates()
}

impl ForeignPrompts<'_> {
    fn diagnostic(&self) -> Diagnostic {
        let Self { script, files, .. } = self;
        let (own, other) = (Message::word(self.written.name()), Message::word(self.prompted.name()));
        let message = match files.as_slice() {
            [] => msg!("this script is written in {own}, but its prompts are written in {other}"),
            [file] => {
                let file = file.source().name();
                msg!("this script is written in {own}, but the prompt {file} is written in {other}")
            }
            files => {
                let files = Message::values(files.iter().map(|file| file.source().name()));
                msg!("this script is written in {own}, but these prompts are written in {other}: {files}")
            }
        };
        let id = &script.id;
        let span = script.scheme.as_ref().map_or(id.span, |scheme| scheme.span);
        let diagnostic = Diagnostic::warning("template-language", message, &script.file, span).with_help(self.help());
        if (self.written, self.scheme) != (WritingSystem::Latin, None) || script.scheme.is_some() {
            return diagnostic;
        }
        let file = &script.file;
        let line = file.line_span(file.line(id.span.start)).unwrap_or(id.span);
        let before: &str = file.text().get(line.start..id.span.start).unwrap_or_default();
        match before.strip_suffix("session_id: ").filter(|indent| indent.chars().all(|c| c == ' ')) {
            Some(indent) => {
                let edit = Edit::insert(line.start, format!("{indent}template_scheme: english\n"));
                diagnostic.with_fix("use the English prompts", vec![edit])
            }
            None => diagnostic,
        }
    }

    fn help(&self) -> Message {
        let built_in = match self.written {
            WritingSystem::Latin => ENGLISH_SCHEME,
            WritingSystem::Han => CHINESE_SCHEME,
        };
        let folder = "`_system/config/custom/<scheme>/`";
        let named = self.script.scheme.as_ref().map(|scheme| scheme.value.as_str());
        match (self.scheme, self.written, named.filter(|named| *named != DEFAULT_SCHEME)) {
            (Some(scheme), ..) if scheme == built_in => msg!(
                "templates in `_system/config/custom/{0}/` replace those of the built-in scheme `{0}`: translate them, or delete them to use the built-in ones",
                scheme
            ),
            (Some(scheme), ..) if self.are_missing_in_scheme(built_in) => msg!(
                "templates that the scheme `{0}` does not have come from the default scheme: `bcc-script templates new {0} {1} --from {2}` copies them",
                scheme,
                self.files.iter().map(|file| file.name()).collect::<Vec<_>>().join(" "),
                built_in
            ),
            _ if !self.files.is_empty() => msg!(
                "write the templates in the language of the script; `bcc-script templates show NAME --scheme {built_in}` prints those of bcc-script"
            ),
            (_, WritingSystem::Latin, None) => msg!(
                "write `template_scheme: english` under `session:`; for another language, put your own templates into {folder} and write the name of that scheme"
            ),
            (_, WritingSystem::Latin, Some(scheme)) => msg!(
                "templates that the scheme `{0}` does not have come from the default scheme: put templates into `_system/config/custom/{0}/`, or write `template_scheme: english` to use the English prompts of bcc-script",
                scheme
            ),
            (_, WritingSystem::Han, Some(scheme)) => msg!(
                "remove `template_scheme: {}` to use the default prompts, which are Chinese, or use a scheme that has Chinese templates in {folder}",
                scheme
            ),
            (_, WritingSystem::Han, None) => msg!(
                "put Chinese templates into {folder} and write `template_scheme: <scheme>` under `session:`; the current prompts come from the project's own default templates, from its bcc-script.toml or from `--scheme`"
            ),
        }
    }

    /// Whether the named prompts are not in the scheme, and the built-in scheme has them all.
    fn are_missing_in_scheme(&self, built_in: &str) -> bool {
        let place = format!("custom/{built_in}");
        let is_copied = |name: &str| BUILTINS.iter().any(|file| file.place == place && file.name == name);
        !self.files.is_empty()
            && self.files.iter().all(|file| {
                !TemplateLayer::of(file.place()).is_some_and(TemplateLayer::is_of_scheme) && is_copied(file.name())
            })
    }
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
