//! Checks that the JSON Schemas in the project match this release.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;

use crate::doctor::finding::DoctorFinding;
use crate::schemas::{self, OwnKinds};
use bcc_engine::files::within::read_within;

/// The documents whose schemas editors map to files.
const NAMES: [&str; 4] = ["script", "skill", "test", "config"];

/// The maximum size of a schema that is compared, in bytes.
const MAX_SCHEMA_BYTES: u64 = 4 * 1024 * 1024;

/// Checks `schemas/` of a project that defines the action types `own_kinds`.
pub fn editors(project: &Path, own_kinds: &OwnKinds) -> Vec<DoctorFinding> {
    let mut current = Vec::new();
    let mut found = Vec::new();
    for (name, _) in schemas::list() {
        let file = format!("schemas/{name}.schema.json");
        let Ok(existing) = read_within(project, &project.join(&file), MAX_SCHEMA_BYTES) else { continue };
        // A checkout may have converted the line endings.
        let same = schemas::text_in(name, own_kinds)
            .is_some_and(|text| String::from_utf8_lossy(&existing).replace("\r\n", "\n").trim_end() == text.trim_end());
        if same {
            current.push(name);
            continue;
        }
        let note = DoctorFinding::note("editors", msg!("{file} does not match this release"));
        let with = if own_kinds.is_empty() { "" } else { " --project ." };
        found.push(note.with_help(msg!("`bcc-script schema {name}{with} > {file}`")));
    }
    if !current.is_empty() {
        let named = listed(&current);
        found.push(DoctorFinding::ok("editors", msg!("the schemas for {named} match this release")));
    }
    if current.is_empty() && found.is_empty() {
        let note = DoctorFinding::note("editors", msg!("there are no schemas for editors ({})", listed(&NAMES)));
        found.push(note.with_help("`bcc-script schema` prints the schemas for an editor"));
    }
    found
}

/// Lists names as they are written; they are not translated.
fn listed(names: &[&str]) -> Message {
    Message::list(Joint::Item, names.iter().map(|name| Message::text(format!("`{name}`"))))
}
