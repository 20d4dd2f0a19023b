//! The page on which authors look at sessions and edit scripts, at `/studio`. It uses the API, with the rights of its caller
//! (docs/studio.md).

pub(crate) mod page;
pub(crate) mod prefix;
pub(crate) mod router;
