//! The checked tree, and what its parts are to each other: kinds, actions, turns, outcomes, events.

pub mod action;
pub mod assignments;
pub mod beside;
pub mod clock;
pub mod event;
pub mod exchange;
pub mod kind;
pub mod limits;
pub mod live_words;
pub mod messages;
pub mod monitor;
pub mod orchestration;
pub mod outcome;
pub mod output;
pub mod persona;
pub mod place;
pub mod program;
pub mod reask;
pub mod recent;
pub mod recheck;
pub mod recorder;
pub mod resource;
pub mod routes;
pub mod services;
pub mod turn;
pub mod work;
