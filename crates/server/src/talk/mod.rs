//! The page on which people talk, at `/t/…`: a thin adapter over the same sessions and feeds as the API. It sends what the person in a
//! conversation may see and nothing else (docs/talk-page.md).

pub(crate) mod answers;
pub(crate) mod beginning;
pub(crate) mod copy;
pub(crate) mod error;
pub(crate) mod page;
pub(crate) mod router;
pub(crate) mod stream;
pub mod terms;
pub(crate) mod view;
pub(crate) mod visit;
pub(crate) mod withdrawal;
