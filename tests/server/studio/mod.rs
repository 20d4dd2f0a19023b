//! Tests of the page for authors and of what the API has for it (docs/studio.md).

mod accessibility;
mod author;
mod compare;
mod data;
mod failures;
mod gone;
mod inspector;
mod interrupted;
mod links;
mod lists;
mod outages;
mod requests;
mod sessions;
mod troubles;
mod weight;
mod work;
