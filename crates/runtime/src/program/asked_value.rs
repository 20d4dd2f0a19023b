//! What an action asks the person for, for front ends that offer fitting inputs.

use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::{Declaration, DeclarationMap};
use serde_json::Value;

use crate::program::program::{Program, ProgramStep};

/// The one value that an action extracts from an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AskedValue {
    /// Its type, if the author gave one.
    pub declared: Option<DeclaredType>,
    /// The allowed values, if the author listed them.
    pub choices: Vec<Value>,
}

impl Program {
    /// What the action with this id asks for. None if it asks for nothing or for several values: an input for one of them would not be an
    /// answer.
    pub fn asked_value(&self, action_id: &str) -> Option<AskedValue> {
        let in_topics = self.phases.iter().flat_map(|phase| {
            phase.topics.iter().flat_map(move |topic| {
                let scopes = [&*topic.declarations, &*phase.declarations];
                [&topic.steps, &topic.finally]
                    .into_iter()
                    .flat_map(|steps| steps.iter())
                    .map(move |step| (step, scopes))
            })
        });
        let in_skills = self.skills.values().flat_map(|skill| {
            let steps = skill.steps.iter().chain(skill.inserts.values());
            steps.map(|step| (step, [&*skill.inputs, &*skill.inputs]))
        });
        let inserted = self.inserts.values().map(|step| (step, [&*self.declarations, &*self.declarations]));
        let mut all = in_topics.chain(in_skills).chain(inserted);
        let (step, scopes) = all.find_map(|(step, scopes)| Some((find(step, action_id)?, scopes)))?;
        let [output] = step.action.outputs() else { return None };
        let [inner, outer] = scopes;
        let scopes: [&DeclarationMap; 4] = [inner, outer, &self.declarations, &self.globals];
        let declaration: Option<&Declaration> = scopes.iter().find_map(|scope| scope.get(&output.get));
        let declared = output.declared.or_else(|| declaration?.declared);
        let choices = match output.choices.as_slice() {
            [] => declaration.map(|declaration| declaration.choices.clone()).unwrap_or_default(),
            own => own.to_vec(),
        };
        Some(AskedValue { declared, choices })
    }
}

/// The step with this id: this one, or one inside it.
fn find<'p>(step: &'p ProgramStep, id: &str) -> Option<&'p ProgramStep> {
    if step.id == id {
        return Some(step);
    }
    step.lists().into_iter().flat_map(|steps| steps.iter()).find_map(|inner| find(inner, id))
}
