//! The ids and the codes of a project for tools of qualitative analysis.

use std::io::{self, Write};

use indexmap::IndexMap;
use sha2::{Digest, Sha256};

use crate::data_set::catalog::VariableCatalog;
use crate::data_set::interview::MessageRole;
use crate::data_set::xml::XmlWriter;
use crate::script_names::ScriptNames;

/// The code above the roles of messages. An id of a script has no parentheses, so no phase has this name.
const ROLES: &str = "(role)";

/// Makes the ids of a script: always the same ones, so that two exports of an interview can be compared.
#[derive(Debug)]
pub(crate) struct ProjectIds {
    script: String,
}

impl ProjectIds {
    pub(crate) fn new(script: &str) -> Self {
        Self { script: script.to_owned() }
    }

    pub(crate) fn id(&self, kind: &str, parts: &[&str]) -> String {
        let text = format!("{}\0{kind}\0{}", self.script, parts.join("\0"));
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(Sha256::digest(text.as_bytes())).for_each(|(byte, hashed)| *byte = hashed);
        uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
    }

    pub(crate) fn user(&self) -> String {
        self.id("user", &[])
    }

    pub(crate) fn action(&self, phase: &str, topic: &str, action: &str) -> String {
        self.id("code", &[phase, topic, action])
    }

    pub(crate) fn role(&self, role: MessageRole) -> String {
        self.id("role", &[role.name()])
    }
}

/// Writes a code for each phase, topic and action in which something was said, inside each other, and one for each role of messages.
pub(crate) fn write_codes<W: Write>(
    xml: &mut XmlWriter<W>,
    ids: &ProjectIds,
    catalog: &VariableCatalog,
) -> io::Result<()> {
    let mut tree: IndexMap<&str, IndexMap<&str, Vec<&str>>> = IndexMap::new();
    for (phase, topic, action) in &catalog.places {
        tree.entry(phase).or_default().entry(topic).or_default().push(action);
    }
    let no_names = ScriptNames::default();
    let names = catalog.versions.values().last().map_or(&no_names, |version| &version.names);
    xml.open("CodeBook", &[])?;
    xml.open("Codes", &[])?;
    for (phase, topics) in tree {
        open_code(xml, &ids.id("phase", &[phase]), phase, names.phase(phase))?;
        for (topic, actions) in topics {
            open_code(xml, &ids.id("topic", &[phase, topic]), topic, &names.topic(phase, topic, ""))?;
            for action in actions {
                open_code(xml, &ids.action(phase, topic, action), action, action)?;
                xml.close("Code")?;
            }
            xml.close("Code")?;
        }
        xml.close("Code")?;
    }
    open_code(xml, &ids.id("roles", &[]), ROLES, ROLES)?;
    for role in MessageRole::ALL {
        open_code(xml, &ids.role(role), role.name(), role.name())?;
        xml.close("Code")?;
    }
    xml.close("Code")?;
    xml.close("Codes")?;
    xml.close("CodeBook")
}

/// Opens a code. The name of the script, if it is not the id, is its description.
fn open_code<W: Write>(xml: &mut XmlWriter<W>, guid: &str, id: &str, name: &str) -> io::Result<()> {
    let shown = if id.is_empty() { "-" } else { id };
    xml.open("Code", &[("guid", guid), ("name", shown), ("isCodable", "true")])?;
    if id == name { Ok(()) } else { xml.text("Description", name) }
}
