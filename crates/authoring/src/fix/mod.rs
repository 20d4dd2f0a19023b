//! Mending of texts: the fixes of findings, and older forms brought to today's, byte by byte.

pub mod diff;
pub mod kept;
pub mod mend;
pub mod passes;
pub mod rules;
