//! The languages of the terminal: which one a person reads, and the one catalogue of what is said in it.
//!
//! English stands in the source. [`language::Language::said`] finds the literal that a text was made from and says it in the
//! language; [`language::Language::filled`] fills a literal that the caller names. What is in no catalogue stays English
//! (docs/languages.md).

pub mod catalogue;
pub mod chinese;
pub mod composed;
pub mod language;
pub mod localized_text;
pub mod pattern;

#[cfg(test)]
mod tests;
