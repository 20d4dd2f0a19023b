//! What editors need: whether the schemas of the project are those of this release.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;

use crate::doctor::finding::DoctorFinding;
use crate::schemas::{self, OwnKinds};
use bcc_engine::files::read_bounded;

/// The documents whose schemas editors map to files.
const NAMES: [&str; 4] = ["script", "skill", "test", "config"];

/// The largest schema that is compared, in bytes.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// Looks at `schemas/` of a project that makes these kinds of its own.
pub fn editors(project: &Path, own: &OwnKinds) -> Vec<DoctorFinding> {
    let mut current = Vec::new();
    let mut found = Vec::new();
    for (name, _) in schemas::list() {
        let file = format!("schemas/{name}.schema.json");
        let Ok(there) = read_bounded(&project.join(&file), MOST_BYTES) else { continue };
        // A checkout may have turned the line ends.
        let same = schemas::text_in(name, own)
            .is_some_and(|text| String::from_utf8_lossy(&there).replace("\r\n", "\n").trim_end() == text.trim_end());
        if same {
            current.push(name);
            continue;
        }
        let note = DoctorFinding::note("editors", msg!("{file} does not match this release"));
        let with = if own.is_empty() { "" } else { " --project ." };
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

/// Names as they are written, in every language.
fn listed(names: &[&str]) -> Message {
    Message::list(Joint::Item, names.iter().map(|name| Message::text(format!("`{name}`"))))
}
