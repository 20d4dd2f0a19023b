//! Tests of the page in a real browser (CONTRIBUTING.md, "A browser for the tests").

mod accessibility;
pub mod axe;
mod conversations;
mod hostile_texts;
mod screenshots;
mod troubles;
