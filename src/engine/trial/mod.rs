//! Conversation tests (LANGUAGE.md section 13): found, run and told.

pub mod ran;
