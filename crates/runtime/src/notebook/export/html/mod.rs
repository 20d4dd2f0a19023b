//! A notebook as one page of HTML, without scripts and without anything that is loaded from elsewhere.

pub mod escape;
pub mod outputs;
pub mod page;
pub mod rendered;
