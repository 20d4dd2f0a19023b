//! Tools for template authors: list, find, check and compare templates, and create schemes.

pub mod catalog;
pub mod check;
pub mod diff;
pub mod find;
pub mod includes;
pub mod list;
pub mod new;
pub mod project;
pub mod requests;
pub mod scheme;
pub mod source;
