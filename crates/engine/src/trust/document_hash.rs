//! The hash by which a document is trusted. That of a state file covers only what its steps do: their progress changes with every run.

use std::sync::Arc;

use bcc_lang::script::read::is_workflow;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::{SourceFile, may_be_state_file};
use bcc_lang::workflow::compare::plan;

use crate::pin::sha256;

/// The number of bytes at the start of a JSON file in which the key of state files is searched.
pub(crate) const SEARCHED_BYTES: u64 = 4096;

pub(crate) fn document_hash(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).ok().filter(|_| may_be_state_file(bytes));
    let root = text.and_then(|text| parse(&Arc::new(SourceFile::new("", text))).root);
    match root.filter(|root| is_workflow(root)) {
        Some(root) => sha256(plan(&root.to_json()).to_string().as_bytes()),
        None => sha256(bytes),
    }
}
