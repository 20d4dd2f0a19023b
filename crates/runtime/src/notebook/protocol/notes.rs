//! Notes on a payload: for the log, and for the source that sent it.

use bcc_lang::script::fields::shortened;
use serde_json::{Map, Value};

/// The maximum number of notes for one payload.
const MAX_NOTES: usize = 50;

/// The maximum number of unknown fields of one object that are named.
const MAX_UNKNOWN_FIELDS: usize = 5;

#[derive(Debug, Default)]
pub(crate) struct PayloadNotes {
    /// On legacy names, which were understood, and on parts that were removed from the protocol.
    pub renamed: Vec<String>,
    /// On parts that were not understood. They repeat names, but no other part of what was sent.
    pub ignored: Vec<String>,
}

impl PayloadNotes {
    /// Notes the fields of an object that it does not have. Their names are the only way to find a mistyped one.
    pub(crate) fn unknown_fields(&mut self, object: &'static str, sent: &Map<String, Value>, known: &[&str]) {
        let is_unknown = |name: &&String| !known.contains(&name.as_str()) && !name.starts_with("x-");
        for name in sent.keys().filter(is_unknown).take(MAX_UNKNOWN_FIELDS) {
            self.ignored.push(format!("`{object}` has no field `{}`, which was ignored", shortened(name)));
        }
    }

    /// All notes, and those on what was not understood.
    pub(crate) fn limited(mut self) -> (Vec<String>, Vec<String>) {
        self.ignored.truncate(MAX_NOTES);
        let mut all = self.ignored.clone();
        all.append(&mut self.renamed);
        all.truncate(MAX_NOTES);
        (all, self.ignored)
    }
}
