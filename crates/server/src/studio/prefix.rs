//! The beginning of the paths of the page, by which requests for it are known.

pub(crate) const STUDIO_PREFIX: &str = "/studio";
