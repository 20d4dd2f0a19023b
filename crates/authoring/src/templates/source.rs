//! The scheme that a new scheme is copied from, if none is named.

use std::cmp::Ordering;
use std::path::Path;

use crate::scaffold::languages::{SAMPLE_TEMPLATE, of_template};
use crate::scaffold::new::built_in_scheme;
use crate::templates::catalog::TemplateCatalog;
use crate::templates::requests::{DocumentLanguage, TemplateRequests};
use bcc_lang::message::language::Language;
use bcc_lang::template::builtin::schemes;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::layers::DEFAULT_SCHEME;

/// Whether a built-in scheme has this name, so that the files of a project replace its templates.
pub fn is_built_in(scheme: &str) -> bool {
    schemes().any(|known| known == scheme)
}

/// The default source of the new scheme `scheme` of a project, so that a model does not get prompts in two languages. This is the first of
///
/// * the built-in scheme of the same name
/// * the scheme of the project, `configured` in `bcc-script.toml`
/// * the default templates of the project, if it has any
/// * the built-in templates in the language of most scripts of the project, otherwise in the language `fallback`
pub fn default_source(project: &Path, configured: Option<&str>, scheme: &str, fallback: Language) -> String {
    let catalog = TemplateCatalog::of(project);
    if is_built_in(scheme) {
        return scheme.to_owned();
    }
    if let Some(own) = configured.filter(|own| *own != scheme && catalog.check_scheme(own).is_ok()) {
        return own.to_owned();
    }
    if catalog.is_of_project(DEFAULT_SCHEME) {
        return DEFAULT_SCHEME.to_owned();
    }
    match language_of_scripts(project, &catalog).unwrap_or(fallback) {
        Language::Chinese => DEFAULT_SCHEME.to_owned(),
        english => built_in_scheme(english).to_owned(),
    }
}

/// The language of most scripts and skills: that of the prompts of their scheme, otherwise that of their texts. `None` without any, and if
/// there are as many in the one language as in the other.
fn language_of_scripts(project: &Path, catalog: &TemplateCatalog) -> Option<Language> {
    let requests = TemplateRequests::of_project(project);
    let languages = requests.languages.iter().filter_map(|document| language_of(document, catalog));
    let (chinese, english): (Vec<Language>, Vec<Language>) =
        languages.partition(|language| *language == Language::Chinese);
    match chinese.len().cmp(&english.len()) {
        Ordering::Greater => Some(Language::Chinese),
        Ordering::Less => Some(Language::English),
        Ordering::Equal => None,
    }
}

fn language_of(document: &DocumentLanguage, catalog: &TemplateCatalog) -> Option<Language> {
    let named = document.scheme.as_deref().filter(|scheme| catalog.check_scheme(scheme).is_ok());
    if let Some(scheme) = named {
        let served = catalog.served(scheme);
        let file = served.get(SAMPLE_TEMPLATE).and_then(|files| files.first())?;
        return file.text.as_deref().ok().map(of_template);
    }
    document.texts.map(|texts| match texts {
        PromptLanguage::Zh => Language::Chinese,
        PromptLanguage::En => Language::English,
    })
}
