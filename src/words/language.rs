//! The languages that people read at the terminal.

/// A language of the terminal. What programs read (JSON, SARIF, slugs, keys) is in English always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English, in which messages are written in the source.
    #[default]
    English,
    /// Simplified Chinese.
    Chinese,
}
