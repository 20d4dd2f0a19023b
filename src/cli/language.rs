//! The language of the terminal output. It is set once at the start.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::{PoisonError, RwLock};

use bcc_engine::environment::Environment;
use bcc_lang::message::language::Language;
use bcc_lang::message::message::{Joint, Message};

const OPTION: &str = "--lang";

/// A process has one user.
static CHOSEN: RwLock<Language> = RwLock::new(Language::English);

/// The language of `--lang`, otherwise of the environment. It is determined before the arguments are parsed, because help and error
/// messages use it; an invalid value is rejected when they are parsed.
pub fn requested(arguments: &[OsString], environment: &Environment) -> Language {
    let mut words = arguments.iter().filter_map(|word| word.to_str()).skip(1).take_while(|word| *word != "--");
    let mut requested = None;
    while let Some(word) = words.next() {
        let value = match word.strip_prefix(OPTION) {
            Some("") => words.next(),
            Some(value) => value.strip_prefix('='),
            None => None,
        };
        requested = value.and_then(Language::parse).or(requested);
    }
    requested.unwrap_or_else(|| Language::from_environment(|name| environment.get(name)))
}

/// Parses the value of `--lang`.
/// Errors: the valid values.
pub fn parse_option(value: &str) -> Result<Language, String> {
    match value {
        "en" => Ok(Language::English),
        "zh" => Ok(Language::Chinese),
        _ => Err("valid values are `en` and `zh`".to_owned()),
    }
}

/// Sets the language.
pub fn choose(language: Language) {
    *CHOSEN.write().unwrap_or_else(PoisonError::into_inner) = language;
}

/// The language that was set; English by default.
pub fn chosen() -> Language {
    *CHOSEN.read().unwrap_or_else(PoisonError::into_inner)
}

/// A text of this program in the language of the person ([`Language::translate`]). Not for texts of people and models.
pub fn translated<T: Translate + ?Sized>(text: &T) -> Cow<'_, str> {
    text.translate(chosen())
}

/// A text that can be translated.
pub trait Translate {
    /// The text in a language.
    fn translate(&self, language: Language) -> Cow<'_, str>;
}

impl Translate for Message {
    fn translate(&self, language: Language) -> Cow<'_, str> {
        Cow::Owned(self.render(language))
    }
}

impl Translate for str {
    fn translate(&self, language: Language) -> Cow<'_, str> {
        language.translate(self)
    }
}

impl Translate for String {
    fn translate(&self, language: Language) -> Cow<'_, str> {
        language.translate(self)
    }
}

impl<T: Translate + ?Sized> Translate for &T {
    fn translate(&self, language: Language) -> Cow<'_, str> {
        (**self).translate(language)
    }
}

/// A translated text of this program with values for its `{placeholders}` ([`Language::format`]).
pub fn filled(literal: &str, values: &[(&str, &str)]) -> String {
    chosen().format(literal, values)
}

/// The parts of a line, separated by the comma of the language.
pub fn listed(parts: &[String]) -> String {
    Message::list(Joint::Comma, parts.iter().map(Message::text)).render(chosen())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_has_priority_over_the_environment_at_any_position() {
        let chinese = Environment::of([("LANG", "zh_CN.UTF-8".to_owned())]);
        let table: [(&[&str], Language); 9] = [
            (&["run", "a.yaml"], Language::Chinese),
            (&["--lang", "en", "run"], Language::English),
            (&["run", "--lang=en", "a.yaml"], Language::English),
            (&["run", "a.yaml", "--lang", "zh"], Language::Chinese),
            (&["--lang", "zh", "run", "--lang", "en"], Language::English),
            (&["run", "--", "--lang", "en"], Language::Chinese),
            (&["run", "--lang"], Language::Chinese),
            (&["--language", "en"], Language::Chinese),
            (&["--lang=fr"], Language::Chinese),
        ];
        for (words, expected) in table {
            let arguments: Vec<OsString> = ["bcc-script"].iter().chain(words).map(OsString::from).collect();
            assert_eq!(requested(&arguments, &chinese), expected, "{words:?}");
        }
        assert_eq!(requested(&["bcc-script".into()], &Environment::of([])), Language::English);
    }
}
