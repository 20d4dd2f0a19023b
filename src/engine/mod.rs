//! Puts it together: project, configuration, trust, models, and sessions that begin, go on and are exported.

pub mod calls;
pub mod clock;
pub mod config;
pub mod engine;
pub mod environment;
pub mod error;
pub mod export;
pub mod files;
pub mod given;
pub mod history;
pub mod markdown;
pub mod models;
pub mod pin;
pub mod project;
pub mod recheck;
pub mod recording;
pub mod replay;
pub mod schemas;
pub mod settings;
pub mod trial;
pub mod trust;
pub mod used;
pub mod validate;
pub mod voices;
