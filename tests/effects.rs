//! Outside effects are announced before they begin and closed after, and none is repeated silently (LANGUAGE.md section 12);
//! what a turn writes into the notebook is durable with it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, missing_docs)]

#[path = "effects/announced.rs"]
mod announced;
#[path = "effects/button.rs"]
mod button;
#[path = "effects/deaths.rs"]
mod deaths;
#[path = "effects/in_the_way.rs"]
mod in_the_way;
#[path = "effects/interrupted.rs"]
mod interrupted;
#[path = "support/mortal.rs"]
mod mortal;
#[path = "effects/notebook.rs"]
mod notebook;
#[path = "support/stage.rs"]
mod stage;
