//! The API under `/v1`: JSON in, JSON or a stream of events out.

pub(crate) mod again;
pub(crate) mod authoring;
pub(crate) mod body;
pub(crate) mod catalog;
pub(crate) mod data;
pub(crate) mod data_sets;
pub(crate) mod error_text;
pub(crate) mod events;
pub(crate) mod first_rest;
pub(crate) mod gate;
pub(crate) mod given_states;
pub(crate) mod health;
pub(crate) mod journal;
pub(crate) mod links;
pub(crate) mod messages;
pub(crate) mod outline;
pub(crate) mod outputs;
pub(crate) mod plans;
pub(crate) mod reply;
pub mod request_span;
pub(crate) mod requests;
pub mod router;
pub(crate) mod scripts;
pub(crate) mod sessions;
pub(crate) mod talk_events;
pub(crate) mod uploads;
