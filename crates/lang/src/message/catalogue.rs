//! The catalogue of a language: which literal of the source a text was made from, and how that is said.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::message::chinese;
use crate::message::composed::{enumeration, joined};
use crate::message::pattern::{Captured, MessagePattern, words};

/// How deep sentences inside sentences are looked for.
const DEPTH: usize = 6;

/// A pattern with fewer letters than these (`{a} of {b}`) fits many a text by chance. It counts only where what stands in its
/// places is known, or is one word, or where it begins as `error: ` does.
const FEW_LETTERS: usize = 8;

/// What is said in another language, found by the English. Made once, when the first text is asked for.
#[derive(Debug, Default)]
pub struct Catalogue {
    literals: HashMap<String, String>,
    patterns: Vec<MessagePattern>,
    /// The patterns by a word that stands in each text made from them: of the words of each the one that fewest patterns have.
    by_word: HashMap<String, Vec<usize>>,
    /// Those without such a word.
    others: Vec<usize>,
}

impl Catalogue {
    pub fn chinese() -> &'static Self {
        static CHINESE: LazyLock<Catalogue> = LazyLock::new(|| Catalogue::of(chinese::entries()));
        &CHINESE
    }

    /// A catalogue of these literals with their translations. Of two for one literal the first counts.
    pub fn of(entries: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut made = Self::default();
        for (english, translation) in entries {
            if made.literals.contains_key(&english) {
                continue;
            }
            if english.contains('{') {
                made.patterns.push(MessagePattern::new(&english, &translation));
            }
            made.literals.insert(english, translation);
        }
        let mut often: HashMap<&str, usize> = HashMap::new();
        for word in made.patterns.iter().flat_map(MessagePattern::words) {
            *often.entry(word).or_default() += 1;
        }
        for (number, pattern) in made.patterns.iter().enumerate() {
            match pattern.words().into_iter().min_by_key(|word| often.get(word)) {
                Some(word) => made.by_word.entry(word.to_owned()).or_default().push(number),
                None => made.others.push(number),
            }
        }
        made
    }

    pub fn literal(&self, english: &str) -> Option<&str> {
        self.literals.get(english).map(String::as_str)
    }

    /// How `text` is said: the whole of it where a literal or pattern is known that it was made from (the one with most words of
    /// its own), else line by line, else its sentences and lists. None when nothing of it is known.
    pub fn said(&self, text: &str) -> Option<String> {
        self.found(text, DEPTH)
    }

    pub(crate) fn found(&self, text: &str, depth: usize) -> Option<String> {
        if depth == 0 || !text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            return None;
        }
        if let Some(known) = self.literals.get(text) {
            return Some(known.clone());
        }
        let inner = text.trim();
        if inner.len() < text.len() && !self.spaced(text) {
            let (before, after) = text.split_once(inner)?;
            return self.found(inner, depth).map(|said| format!("{before}{said}{after}"));
        }
        self.by_pattern(text, depth)
            .or_else(|| self.by_line(text, depth))
            .or_else(|| enumeration(text))
            .or_else(|| joined(text, &|part| self.found(part, depth - 1)))
    }

    /// Whether a pattern is to be looked for with the space around the text.
    fn spaced(&self, text: &str) -> bool {
        self.candidates(text).any(|pattern| pattern.captured(text).is_some())
    }

    fn candidates(&self, text: &str) -> impl Iterator<Item = &MessagePattern> {
        let mut numbers = self.others.clone();
        numbers.extend(words(text).filter_map(|word| self.by_word.get(word)).flatten());
        numbers.sort_unstable();
        numbers.dedup();
        let mut found: Vec<&MessagePattern> =
            numbers.into_iter().filter_map(|number| self.patterns.get(number)).collect();
        found.sort_by_key(|pattern| (std::cmp::Reverse(pattern.weight), pattern.places()));
        found.into_iter()
    }

    fn by_pattern(&self, text: &str, depth: usize) -> Option<String> {
        self.candidates(text).find_map(|pattern| {
            let captured = pattern.captured(text)?;
            // `1 of 2 turns, 3 of 4 calls` are two texts and not one `{} of {} calls`.
            let list = captured.iter().any(|of| !of.code && of.text.contains(", "));
            let several = (list && pattern.head().is_empty() && pattern.letters < 2 * FEW_LETTERS)
                .then(|| joined(text, &|part| self.found(part, depth - 1)))
                .flatten();
            several.or_else(|| self.filled(pattern, &captured, depth))
        })
    }

    fn filled(&self, pattern: &MessagePattern, captured: &[Captured<'_, '_>], depth: usize) -> Option<String> {
        let mut sure = pattern.letters >= FEW_LETTERS || pattern.has_lines() || pattern.head().ends_with(": ");
        let mut by_chance = false;
        let said = pattern.translated(captured, |of| {
            if of.code {
                return of.text.to_owned();
            }
            let known = self.found(of.text, depth - 1);
            by_chance |= known.is_none() && is_prose(of.text);
            known.unwrap_or_else(|| of.text.to_owned())
        });
        sure |= !by_chance;
        sure.then_some(said)
    }

    fn by_line(&self, text: &str, depth: usize) -> Option<String> {
        if !text.contains('\n') {
            return None;
        }
        let mut any = false;
        let lines: Vec<String> = text
            .split('\n')
            .map(|line| {
                let known = self.found(line, depth - 1);
                any |= known.is_some();
                known.unwrap_or_else(|| line.to_owned())
            })
            .collect();
        any.then(|| lines.join("\n"))
    }
}

/// Whether something is more than one word or a piece of code.
pub(crate) fn is_prose(text: &str) -> bool {
    let code = text.len() > 1 && text.starts_with('`') && text.ends_with('`');
    text.trim().contains(' ') && !code
}
