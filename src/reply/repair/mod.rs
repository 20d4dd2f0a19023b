//! The fourth strategy, `repair_json`: near-JSON as models write it, each mend recorded (LANGUAGE.md section 8).

pub mod mend;

use serde_json::{Map, Value};

use crate::reply::repair::mend::Repair;

/// The object in `text`, mended, and what was mended.
///
/// # Errors
/// Why it cannot be mended without guessing; never quotes the text.
pub fn object(_text: &str) -> Result<(Map<String, Value>, Vec<Repair>), String> {
    Err("there is no object that can be mended".to_owned())
}
