//! Exports notebooks to `.ipynb`, markdown and HTML, cell by cell.

pub mod ansi;
pub mod brief;
pub mod form;
pub mod harmless;
pub mod html;
pub mod image;
pub mod ipynb;
pub mod markdown;
pub mod output;
pub(crate) mod scripts;
pub mod text;
