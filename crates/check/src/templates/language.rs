//! `template-language`: texts in Chinese characters with prompts in Latin letters, or the reverse.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashSet;

use bcc_lang::script::script::Script;
use bcc_lang::source::diagnostic::{Diagnostic, Edit};
use bcc_lang::template::layers::TemplateLayer;
use bcc_lang::template::mentions::visit;
use bcc_lang::template::templates::Templates;

/// The minimum number of words to determine the language. (A Chinese character counts as a word.)
const MIN_WORDS: usize = 40;

/// The minimum if all words use the same writing system: two short sentences, as in a first script.
const MIN_WORDS_OF_ONE_KIND: usize = 8;

/// The maximum percentage of other words in a script.
const MAX_OTHER_PERCENT: usize = 10;

/// The same for templates, which contain the names of reply fields in Latin letters.
const MAX_OTHER_PERCENT_IN_TEMPLATES: usize = 35;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WritingSystem {
    Han,
    Latin,
}

impl WritingSystem {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Han => "Chinese",
            Self::Latin => "Latin letters",
        }
    }
}

/// The numbers of words in texts, by writing system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WordCounts {
    han: usize,
    latin: usize,
    others: usize,
}

impl WordCounts {
    /// Counts the words of an author text or a template. Does not count the content of `{{ }}`, `{% %}` and `{# #}`, words
    /// with `_` or digits (names of fields), and words in capitals.
    pub(crate) fn add(&mut self, text: &str) {
        let mut rest = text;
        while let Some(open) = rest.find(['{']) {
            let (before, tag) = rest.split_at_checked(open).unwrap_or((rest, ""));
            self.count(before);
            let close = match tag.as_bytes().get(1) {
                Some(b'{') => "}}",
                Some(b'%') => "%}",
                Some(b'#') => "#}",
                _ => {
                    rest = tag.get(1..).unwrap_or_default();
                    continue;
                }
            };
            rest = tag.find(close).and_then(|end| tag.get(end + 2..)).unwrap_or_default();
        }
        self.count(rest);
    }

    fn count(&mut self, text: &str) {
        let (mut word, mut is_name) = (0_usize, false);
        let mut lower = false;
        for c in text.chars().chain([' ']) {
            match c {
                '_' | '0'..='9' => is_name = true,
                'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\'' | '’' => {
                    word += 1;
                    lower |= c.is_lowercase();
                    continue;
                }
                _ => {
                    if word > 0 && !is_name && lower {
                        self.latin += 1;
                    }
                    (word, is_name, lower) = (0, false, false);
                    match c {
                        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => self.han += 1,
                        c if c.is_alphabetic() => self.others += 1,
                        _ => {}
                    }
                }
            }
        }
    }

    /// The main writing system of a script's texts; `None` if they are few or mixed.
    pub(crate) fn of_script(self) -> Option<WritingSystem> {
        self.main_system(MAX_OTHER_PERCENT)
    }

    /// The same for templates.
    pub(crate) fn of_templates(self) -> Option<WritingSystem> {
        self.main_system(MAX_OTHER_PERCENT_IN_TEMPLATES)
    }

    fn main_system(self, max_other_percent: usize) -> Option<WritingSystem> {
        let all = self.han + self.latin + self.others;
        let minimum = |one: usize| if one == all { MIN_WORDS_OF_ONE_KIND } else { MIN_WORDS };
        let is_main = |one: usize| all >= minimum(one) && (all - one) * 100 <= all * max_other_percent;
        if is_main(self.han) {
            Some(WritingSystem::Han)
        } else if is_main(self.latin) {
            Some(WritingSystem::Latin)
        } else {
            None
        }
    }
}

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

    #[test]
    fn few_words_mixed_words_and_other_scripts_are_ignored() {
        assert_eq!(words("Hello, what is your name?").of_script(), None);
        assert_eq!(words(&"你好，今天怎么样？".repeat(8)).of_script(), Some(WritingSystem::Han));
        assert_eq!(words(&"How are you today, Marta? ".repeat(10)).of_script(), Some(WritingSystem::Latin));
        assert_eq!(words(&"How are you 你好 today? ".repeat(10)).of_script(), None);
        assert_eq!(words(&"お元気ですか。今日はいい天気です。".repeat(10)).of_script(), None);
        assert_eq!(words(&"Как у вас дела сегодня? ".repeat(20)).of_script(), None);
        assert_eq!(
            words(&"{{ the_name_of_it }} {% if nothing %} CBT ABC ai_ask_v1 ".repeat(50)),
            WordCounts::default()
        );
    }

    #[test]
    fn a_few_foreign_words_do_not_make_a_text_mixed() {
        let text = format!("{} CBT 和 mindfulness 练习", "请您说说最近睡得怎么样，有没有担心的事。".repeat(5));
        assert_eq!(words(&text).of_script(), Some(WritingSystem::Han));
    }
}
