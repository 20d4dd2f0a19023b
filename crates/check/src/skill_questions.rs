//! Skills that certainly ask the person when they are called.

use std::collections::BTreeSet;

use bcc_lang::script::route_parser::RouteTarget;
use bcc_lang::script::script::AnswerTables;

use crate::collected::{CalleeBody, CollectedAction, CollectedCall};
use crate::semantic_model::SemanticModel;

/// The first action that `is_meant` of a skill of this document that `call` names, if the skill certainly gets there: no condition and no
/// route is before it. A skill with topics, and one in another file, may do anything.
pub(crate) fn certain_action<'m>(
    model: &'m SemanticModel<'_>,
    call: &CollectedCall,
    is_meant: &dyn Fn(&CollectedAction) -> bool,
) -> Option<&'m CollectedAction> {
    // What an earlier answer has told is not asked for.
    let hears = |tables: &AnswerTables| !tables.hear.is_empty();
    let phases = model.script.map(|script| script.phases.as_slice()).unwrap_or_default();
    let in_phases = phases
        .iter()
        .any(|phase| hears(&phase.answer_tables) || phase.topics.iter().any(|topic| hears(&topic.answer_tables)));
    if in_phases || model.script.is_some_and(|script| hears(&script.answer_tables)) {
        return None;
    }
    in_skill(model, &call.skill.value, is_meant, &mut BTreeSet::new())
}

fn in_skill<'m>(
    model: &'m SemanticModel<'_>,
    id: &str,
    is_meant: &dyn Fn(&CollectedAction) -> bool,
    seen: &mut BTreeSet<usize>,
) -> Option<&'m CollectedAction> {
    let skill = model.skills.iter().position(|skill| skill.id.value == id)?;
    if !seen.insert(skill) || !model.skills.get(skill)?.topics.is_empty() {
        return None;
    }
    let actions = &model.collected.actions;
    let steps = actions.iter().enumerate().filter(|(_, action)| {
        action.body == CalleeBody::Skill(skill) && action.parent.is_none() && action.cleanup.is_none()
    });
    for (number, action) in steps {
        if !action.conditional && is_meant(action) {
            return Some(action);
        }
        let called = model.collected.calls.iter().filter(|call| call.at.action == Some(number));
        if !action.conditional {
            for call in called {
                if let Some(found) = in_skill(model, &call.skill.value, is_meant, seen) {
                    return Some(found);
                }
            }
        }
        let routes = action.on_exit.iter().flat_map(|table| &table.routes);
        let leads_on = |target: &RouteTarget| matches!(target, RouteTarget::Next | RouteTarget::Retry);
        let leads_away = routes.filter_map(|route| route.then.as_ref()).any(|then| !leads_on(&then.value));
        let contains_others = actions.iter().any(|other| other.parent == Some(number));
        let jumps = model.collected.gotos.iter().any(|(_, at)| at.action == Some(number));
        if leads_away || contains_others || jumps {
            return None;
        }
    }
    None
}
