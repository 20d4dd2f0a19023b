//! Pages that are in the binary, with everything that they load: what their routes have in common.

pub(crate) mod embedded;
pub(crate) mod page_headers;
