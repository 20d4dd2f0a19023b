//! Messages for people: which text of this program, with which arguments, and the catalogues that hold it in other languages.
//!
//! English is written in the source, in `msg!`, and identifies the message. [`message::Message::render`] says it in a language.
//! What is in no catalogue is said in English (docs/languages.md).

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
