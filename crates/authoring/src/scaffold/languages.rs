//! The language of new files: the requested one, or that of the project's prompts, so that a model does not get prompts
//! in two languages.

use bcc_engine::files::TemplateFolders;
use bcc_engine::project::Project;
use bcc_lang::message::language::Language;
use bcc_lang::template::layers::collect;

/// The template that represents the language of its scheme.
pub(crate) const SAMPLE_TEMPLATE: &str = "ai_ask_v1.md";

/// A text with fewer than one Chinese character per this number of characters does not count as Chinese.
const MAX_CHARACTERS_PER_HAN: usize = 10;

/// The language of the project's default prompts; `None` if they cannot be read.
pub(crate) fn of_prompts(project: &Project) -> Option<Language> {
    let scheme = project.config.project.scheme.as_deref();
    let files = collect(&TemplateFolders::of(&project.directory), scheme).ok()?;
    Some(of_template(&files.iter().find(|file| file.name == SAMPLE_TEMPLATE)?.text))
}

/// The language of a template.
pub(crate) fn of_template(text: &str) -> Language {
    let han = text.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count();
    if han * MAX_CHARACTERS_PER_HAN >= text.chars().count() { Language::Chinese } else { Language::English }
}
