//! The skills of a project, as far as a caller must know them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::script::skill::WrittenSkill;
use crate::source::span::Span;
use crate::source::text::SourceFile;
use crate::source::yaml::Node;

/// Skills by their ids.
#[derive(Debug, Default)]
pub struct Library {
    /// By id; the first of several with one id.
    pub skills: BTreeMap<String, SkillOutline>,
}

/// What a caller must know of a skill.
#[derive(Clone, Debug)]
pub struct SkillOutline {
    /// Its id.
    pub id: String,
    /// The file that holds it.
    pub file: Arc<SourceFile>,
    /// Where its id stands.
    pub span: Span,
    /// Its inputs: the name, and whether a caller must give it.
    pub inputs: Vec<(String, bool)>,
    /// Its outputs.
    pub outputs: Vec<String>,
    /// The skills that it calls or inserts itself.
    pub calls: Vec<String>,
}

impl SkillOutline {
    /// The outline of a skill.
    pub fn of(file: &Arc<SourceFile>, skill: &WrittenSkill) -> Self {
        let input = |input: &crate::script::declare::Declared| {
            let needed = input.declaration.value.is_null();
            (input.declaration.name.clone(), needed)
        };
        let mut calls = Vec::new();
        for action in &skill.actions {
            if let Some(config) = &action.config {
                called(config, &mut calls);
            }
            let routes = action.on_exit.iter().flat_map(|table| &table.routes);
            calls.extend(routes.filter_map(|route| route.insert.as_ref()).map(|insert| insert.value.clone()));
        }
        Self {
            id: skill.id.value.clone(),
            file: Arc::clone(file),
            span: skill.id.span,
            inputs: skill.inputs.iter().map(input).collect(),
            outputs: skill.outputs.iter().map(|output| output.value.clone()).collect(),
            calls,
        }
    }
}

/// The skills that a config names, also in the actions that stand inside of it.
fn called(config: &Node, calls: &mut Vec<String>) {
    for entry in config.as_mapping().unwrap_or_default() {
        match entry.value.as_scalar() {
            Some(scalar) if entry.key.value == "skill" => calls.push(scalar.text.clone()),
            Some(_) => {}
            None => called(&entry.value, calls),
        }
    }
    for item in config.as_sequence().unwrap_or_default() {
        called(item, calls);
    }
}
