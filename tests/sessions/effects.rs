//! Outside effects are announced before they begin and closed after, and none is repeated silently (LANGUAGE.md section 12);
//! what a turn writes into the notebook is durable with it.

mod announced;
mod button;
mod deaths;
mod in_the_way;
mod interrupted;
mod notebook;
