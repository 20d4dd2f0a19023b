//! External effects are announced before they start and closed after they end, and none is repeated silently (docs/sessions.md).
//! What a turn writes into the notebook is durable with the turn.

mod announced;
mod button;
mod deaths;
mod in_the_way;
mod interrupted;
mod notebook;
