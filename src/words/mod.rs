//! The languages of the terminal: which one a person reads, and the one catalogue of what is said in it.

pub mod language;
