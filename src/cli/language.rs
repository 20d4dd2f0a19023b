//! The language that the person at the terminal reads: chosen once, known here, used by whatever is written for people.

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

use bcc_engine::environment::Environment;
use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;

const OPTION: &str = "--lang";

/// A process talks to one person.
static CHINESE: AtomicBool = AtomicBool::new(false);

/// The language that `--lang` asks for, else the environment. Looked for before the arguments are read, because what is said of
/// those, and the help, are in this language already; a language that is none is refused when they are read.
pub fn asked(arguments: &[OsString], environment: &Environment) -> Language {
    let mut words = arguments.iter().filter_map(|word| word.to_str()).skip(1).take_while(|word| *word != "--");
    let mut asked = None;
    while let Some(word) = words.next() {
        let value = match word.strip_prefix(OPTION) {
            Some("") => words.next(),
            Some(value) => value.strip_prefix('='),
            None => None,
        };
        asked = value.and_then(Language::parse).or(asked);
    }
    asked.unwrap_or_else(|| Language::of_environment(|name| environment.get(name)))
}

/// Reads the value of `--lang`.
/// Errors: What there is, when it is none of it.
pub fn of_option(given: &str) -> Result<Language, String> {
    match given {
        "en" => Ok(Language::English),
        "zh" => Ok(Language::Chinese),
        _ => Err("valid values are `en` and `zh`".to_owned()),
    }
}

/// From here on, people are talked to in this language.
pub fn choose(language: Language) {
    CHINESE.store(language == Language::Chinese, Ordering::Relaxed);
}

/// The language that was chosen; English until then.
pub fn chosen() -> Language {
    if CHINESE.load(Ordering::Relaxed) { Language::Chinese } else { Language::English }
}

/// What this program says, in the language of the person ([`Language::said`]). Never the words of people and models.
pub fn said<T: Translate + ?Sized>(text: &T) -> Cow<'_, str> {
    text.said(chosen())
}

/// What can be said to a person.
pub trait Translate {
    /// The text in a language.
    fn said(&self, language: Language) -> Cow<'_, str>;
}

impl Translate for Message {
    fn said(&self, language: Language) -> Cow<'_, str> {
        Cow::Owned(self.render(language))
    }
}

impl Translate for str {
    fn said(&self, language: Language) -> Cow<'_, str> {
        language.said(self)
    }
}

impl Translate for String {
    fn said(&self, language: Language) -> Cow<'_, str> {
        language.said(self)
    }
}

impl<T: Translate + ?Sized> Translate for &T {
    fn said(&self, language: Language) -> Cow<'_, str> {
        (**self).said(language)
    }
}

/// A sentence of this program with the words of others in its `{places}` ([`Language::filled`]).
pub fn filled(literal: &str, values: &[(&str, &str)]) -> String {
    chosen().filled(literal, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_counts_more_than_the_environment_wherever_it_stands() {
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
            assert_eq!(asked(&arguments, &chinese), expected, "{words:?}");
        }
        assert_eq!(asked(&["bcc-script".into()], &Environment::of([])), Language::English);
    }
}
