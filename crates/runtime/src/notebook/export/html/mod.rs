//! A notebook as a single HTML page, without external resources, and without scripts unless they are asked for.

pub(crate) mod charts;
pub mod outputs;
pub mod page;
pub mod rendered;
