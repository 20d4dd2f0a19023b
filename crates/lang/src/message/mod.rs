//! The languages of the terminal: which one a person reads, and the one catalogue of what is said in it.
//!
//! English stands in the source. [`language::Language::said`] finds the literal that a text was made from and says it in the
//! language; [`language::Language::filled`] fills a literal that the caller names. What is in no catalogue stays English
//! (docs/languages.md).

pub mod catalogue;
pub mod chinese;
pub mod joints;
pub mod language;
pub mod pattern;
pub mod told;

#[cfg(test)]
mod tests;
