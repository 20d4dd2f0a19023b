//! A notebook as a single HTML page, without scripts and external resources.

pub mod outputs;
pub mod page;
pub mod rendered;
