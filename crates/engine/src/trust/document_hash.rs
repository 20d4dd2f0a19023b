//! The hash by which a document is trusted. That of a state file covers only what its steps do: their progress changes with every run.

use std::sync::Arc;

use bcc_lang::script::read::is_workflow;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::{SourceFile, may_be_state_file};
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::workflow::compare::plan;

use crate::pin::sha256;

/// The number of bytes at the start of a JSON file in which the key of state files is searched.
pub(crate) const SEARCHED_BYTES: u64 = 4096;

pub(crate) fn is_state_file(bytes: &[u8]) -> bool {
    state_file(bytes).is_some()
}

/// The root of a text that is a state file.
fn state_file(bytes: &[u8]) -> Option<Arc<YamlNode>> {
    let text = std::str::from_utf8(bytes).ok().filter(|_| may_be_state_file(bytes))?;
    parse(&Arc::new(SourceFile::new("", text))).root.filter(|root| is_workflow(root))
}

pub(crate) fn document_hash(bytes: &[u8]) -> String {
    match state_file(bytes) {
        Some(root) => sha256(plan(&root.to_json()).to_string().as_bytes()),
        None => sha256(bytes),
    }
}
