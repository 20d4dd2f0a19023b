//! The actions that a model may use.

use serde_json::{Value, json};

use crate::notebook::action::NAMES;
use crate::notebook::protocol::brief::{cut, size};
use crate::program::custom::{CustomBody, CustomKind};
use crate::program::turn::Turn;

/// The actions that a model is not offered: they are useful only to code, or change what the loop itself controls.
pub const NOT_OFFERED: [&str; 3] = ["end_phase", "next_event", "update_workflow"];

/// The maximum size of the descriptions of all kinds of the project together, in bytes; those that do not fit are only named.
const MAX_DESCRIPTIONS_BYTES: usize = 4 * 1024;

/// The maximum size of one description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 400;

/// The names of the actions that a model may use.
pub(crate) fn offered_actions(turn: &Turn<'_>) -> Vec<String> {
    let may_run = turn.services.host.kernel.check_permission().is_ok();
    let notebook_actions = NAMES.into_iter().filter(|name| !NOT_OFFERED.contains(name) && (may_run || *name != "exec"));
    notebook_actions.map(str::to_owned).chain(turn.program.custom.keys().cloned()).collect()
}

/// The action kinds of the project, each with its name, its description and its inputs.
pub(crate) fn custom_actions(turn: &Turn<'_>) -> Value {
    let mut available = MAX_DESCRIPTIONS_BYTES;
    let describe = |kind: &CustomKind| {
        let described = described(turn, kind);
        match available.checked_sub(size(&described)) {
            Some(rest) => {
                available = rest;
                described
            }
            None => json!({ "name": kind.name, "description": "", "inputs": [] }),
        }
    };
    turn.program.custom.values().map(describe).collect()
}

fn described(turn: &Turn<'_>, kind: &CustomKind) -> Value {
    let skill = match &kind.body {
        CustomBody::Skill(skill) => turn.program.skills.get(skill),
        CustomBody::Command(_) => None,
    };
    let input = |name: &String| {
        let declared = skill.and_then(|skill| skill.inputs.get(name));
        json!({
            "name": name,
            "type": declared.and_then(|input| input.declared).map(|declared| declared.name()),
            "description": cut(declared.and_then(|input| input.define.as_deref()).unwrap_or_default(), MAX_DESCRIPTION_BYTES),
            "required": declared.is_none_or(|input| input.value.is_null()),
        })
    };
    let inputs: Vec<Value> = skill.into_iter().flat_map(|skill| skill.input_names.iter().map(input)).collect();
    let description = kind.description.as_deref().unwrap_or_default();
    json!({ "name": kind.name, "description": cut(description, MAX_DESCRIPTION_BYTES), "inputs": inputs })
}
