//! Mending of texts: the fixes of findings, and older forms brought to today's, byte by byte.

pub mod diff;
pub mod fix;
pub mod fix_text;
pub mod rules;
pub mod write_back;
