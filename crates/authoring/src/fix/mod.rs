//! Automatic fixes: the fixes of findings, and the migration of legacy forms. Everything else in a text stays unchanged.

pub mod diff;
pub mod fix;
pub mod fix_text;
pub mod rules;
pub mod write_back;
