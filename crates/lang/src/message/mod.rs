//! Messages for people: a text of this program with its arguments, and the catalogues of its translations.
//!
//! The English text in `msg!` identifies the message. [`message::Message::render`] returns it in a language.
//! A text that no catalogue contains is rendered in English (docs/languages.md).

pub mod argument;
pub mod catalogue;
pub mod chinese;
pub mod language;
pub mod library;
pub mod message;
pub mod pattern;
pub mod stored;

pub use argument::ToMessage;
pub use bcc_macros::{ToMessage, msg};

#[cfg(test)]
mod tests;
