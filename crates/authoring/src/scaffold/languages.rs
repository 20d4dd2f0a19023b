//! The language in which something new is written: what was asked for, else what the project's prompts are written in, so
//! that the model is not asked in two languages at once.

use bcc_engine::files::TemplateFolders;
use bcc_engine::project::Project;
use bcc_lang::message::language::Language;
use bcc_lang::template::layers::collect;

/// The template that speaks for its scheme.
const SPEAKER: &str = "ai_ask_v1.md";

/// A text with fewer Chinese characters than one in so many is none in Chinese.
const ONE_IN: usize = 10;

/// The language of the prompts that serve scripts of the project which name no scheme; `None` when they cannot be read.
pub fn of_prompts(project: &Project) -> Option<Language> {
    let scheme = project.config.project.scheme.as_deref();
    let files = collect(&TemplateFolders::of(&project.directory), scheme).ok()?;
    let text = &files.iter().find(|file| file.name == SPEAKER)?.text;
    let han = text.chars().filter(|c| ('\u{4e00}'..='\u{9fff}').contains(c)).count();
    Some(if han * ONE_IN >= text.chars().count() { Language::Chinese } else { Language::English })
}
