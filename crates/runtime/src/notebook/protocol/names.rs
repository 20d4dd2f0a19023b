//! The legacy names of the protocol with their current names (docs/protocol.md), in one table for both directions, and the
//! fields that were removed from the protocol.

use serde_json::{Map, Value};

/// The object of a payload that a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadObject {
    /// A request, or its `observation`.
    Request,
    Location,
    Context,
    Sections,
    Feedback,
    /// A response or a reflection.
    Response,
    Transition,
    Update,
    /// An action, or its `metadata`.
    Action,
}

#[derive(Clone, Copy, Debug)]
pub struct Renamed {
    pub place: PayloadObject,
    pub legacy: &'static str,
    pub current: &'static str,
}

const fn renamed(place: PayloadObject, legacy: &'static str, current: &'static str) -> Renamed {
    Renamed { place, legacy, current }
}

/// All renamed fields. If a current name has several legacy names, the first one is sent to servers of the legacy form.
pub const RENAMED: [Renamed; 64] = [
    renamed(PayloadObject::Request, "state", "context"),
    renamed(PayloadObject::Request, "behaviorFeedback", "behavior_feedback"),
    renamed(PayloadObject::Request, "feedback", "behavior_feedback"),
    renamed(PayloadObject::Location, "stage_id", "current_stage_id"),
    renamed(PayloadObject::Location, "stageId", "current_stage_id"),
    renamed(PayloadObject::Location, "currentStageId", "current_stage_id"),
    renamed(PayloadObject::Location, "step_id", "current_step_id"),
    renamed(PayloadObject::Location, "step_index", "current_step_id"),
    renamed(PayloadObject::Location, "stepIndex", "current_step_id"),
    renamed(PayloadObject::Location, "stepId", "current_step_id"),
    renamed(PayloadObject::Location, "currentStepId", "current_step_id"),
    renamed(PayloadObject::Location, "behaviorId", "behavior_id"),
    renamed(PayloadObject::Location, "behaviorIteration", "behavior_iteration"),
    renamed(PayloadObject::Context, "toDoList", "todo_list"),
    renamed(PayloadObject::Context, "todoList", "todo_list"),
    renamed(PayloadObject::Context, "sectionProgress", "section_progress"),
    renamed(PayloadObject::Context, "fsm", "FSM"),
    renamed(PayloadObject::Sections, "currentSectionId", "current_section_id"),
    renamed(PayloadObject::Sections, "currentSectionNumber", "current_section_number"),
    renamed(PayloadObject::Sections, "completedSections", "completed_sections"),
    renamed(PayloadObject::Sections, "totalExpected", "total_expected"),
    renamed(PayloadObject::Feedback, "behaviorId", "behavior_id"),
    renamed(PayloadObject::Feedback, "actionsExecuted", "actions_executed"),
    renamed(PayloadObject::Feedback, "actionsSucceeded", "actions_succeeded"),
    renamed(PayloadObject::Feedback, "actionsFailed", "actions_failed"),
    renamed(PayloadObject::Feedback, "lastActionResult", "last_action_result"),
    renamed(PayloadObject::Feedback, "executionTimeMs", "execution_time_ms"),
    renamed(PayloadObject::Feedback, "sectionsAdded", "sections_added"),
    renamed(PayloadObject::Feedback, "cellsAdded", "cells_added"),
    renamed(PayloadObject::Feedback, "codeCellsExecuted", "code_cells_executed"),
    renamed(PayloadObject::Response, "steps", "actions"),
    renamed(PayloadObject::Response, "contextUpdate", "context_update"),
    renamed(PayloadObject::Response, "targetAchieved", "target_achieved"),
    renamed(PayloadObject::Response, "continueBehaviors", "continue_behaviors"),
    renamed(PayloadObject::Response, "nextStageId", "next_stage_id"),
    renamed(PayloadObject::Response, "nextStepId", "next_step_id"),
    renamed(PayloadObject::Response, "updated_workflow", "workflow_update"),
    renamed(PayloadObject::Response, "updatedWorkflow", "workflow_update"),
    renamed(PayloadObject::Response, "workflowUpdate", "workflow_update"),
    renamed(PayloadObject::Response, "toDoListUpdate", "todo_list_update"),
    renamed(PayloadObject::Response, "todoListUpdate", "todo_list_update"),
    renamed(PayloadObject::Response, "toDoList", "todo_list"),
    renamed(PayloadObject::Response, "sectionProgress", "section_progress"),
    renamed(PayloadObject::Transition, "targetAchieved", "target_achieved"),
    renamed(PayloadObject::Transition, "continueBehaviors", "continue_behaviors"),
    renamed(PayloadObject::Transition, "nextStageId", "next_stage_id"),
    renamed(PayloadObject::Transition, "nextStepId", "next_step_id"),
    renamed(PayloadObject::Transition, "updated_workflow", "workflow_update"),
    renamed(PayloadObject::Transition, "updatedWorkflow", "workflow_update"),
    renamed(PayloadObject::Transition, "workflowUpdate", "workflow_update"),
    renamed(PayloadObject::Update, "toDoListUpdate", "todo_list_update"),
    renamed(PayloadObject::Update, "todoListUpdate", "todo_list_update"),
    renamed(PayloadObject::Update, "toDoList", "todo_list"),
    renamed(PayloadObject::Update, "todoList", "todo_list"),
    renamed(PayloadObject::Update, "sectionProgress", "section_progress"),
    renamed(PayloadObject::Action, "shotType", "content_type"),
    renamed(PayloadObject::Action, "contentType", "content_type"),
    renamed(PayloadObject::Action, "isSection", "is_section"),
    renamed(PayloadObject::Action, "sectionId", "section_id"),
    renamed(PayloadObject::Action, "sectionNumber", "section_number"),
    renamed(PayloadObject::Action, "isChapter", "is_chapter"),
    renamed(PayloadObject::Action, "belongsToSection", "belongs_to_section"),
    renamed(PayloadObject::Action, "belongsToChapter", "belongs_to_chapter"),
    renamed(PayloadObject::Action, "shouldExecute", "should_execute"),
];

/// The context fields that were removed from the protocol (docs/protocol.md). They are ignored and never sent. (`updated_steps`
/// is also a parameter of `update_stage_steps`, which still exists.)
pub const REMOVED: [&str; 5] = ["stageStatus", "stage_status", "checklist", "thinking", "updated_steps"];

/// `object` with current names. Adds a note to `notes` for each renamed or ignored field. If both names are present, the
/// current one is used.
pub(crate) fn current_names(
    place: PayloadObject,
    object: &Map<String, Value>,
    notes: &mut Vec<String>,
) -> Map<String, Value> {
    let mut renewed = Map::new();
    for (name, value) in object {
        if matches!(place, PayloadObject::Request | PayloadObject::Context) && REMOVED.contains(&name.as_str()) {
            notes.push(format!("`{name}` is no longer part of the protocol and was ignored"));
            continue;
        }
        let known = RENAMED.iter().find(|renamed| renamed.place == place && renamed.legacy == name);
        match known {
            Some(renamed) if object.contains_key(renamed.current) => {
                notes.push(format!("`{name}` was ignored: `{newer}` replaces it", newer = renamed.current));
            }
            Some(renamed) => {
                notes.push(format!("`{name}` is a deprecated name of `{newer}`", newer = renamed.current));
                renewed.entry(renamed.current).or_insert_with(|| value.clone());
            }
            None => drop(renewed.insert(name.clone(), value.clone())),
        }
    }
    renewed
}

/// The legacy name of a current name, for servers of the legacy form; the same name if it was never changed.
pub(crate) fn legacy_name(place: PayloadObject, current: &'static str) -> &'static str {
    RENAMED
        .iter()
        .find(|renamed| renamed.place == place && renamed.current == current)
        .map_or(current, |found| found.legacy)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_legacy_name_becomes_the_current_one_with_a_note() {
        for renamed in RENAMED {
            let mut notes = Vec::new();
            let object = json!({ renamed.legacy: 1, "beside": 2 });
            let renewed = current_names(renamed.place, object.as_object().unwrap(), &mut notes);
            assert_eq!(Value::Object(renewed), json!({ renamed.current: 1, "beside": 2 }), "{renamed:?}");
            assert_eq!(notes, [format!("`{}` is a deprecated name of `{}`", renamed.legacy, renamed.current)]);
        }
    }

    #[test]
    fn current_names_become_legacy_names_and_back() {
        for renamed in RENAMED {
            let legacy = legacy_name(renamed.place, renamed.current);
            let mut notes = Vec::new();
            let renewed = current_names(renamed.place, json!({ legacy: 1 }).as_object().unwrap(), &mut notes);
            assert_eq!(Value::Object(renewed), json!({ renamed.current: 1 }));
        }
        // The table of section 5.1, row by row.
        for (legacy, current, place) in [
            ("stage_id", "current_stage_id", PayloadObject::Location),
            ("state", "context", PayloadObject::Request),
            ("toDoList", "todo_list", PayloadObject::Context),
            ("targetAchieved", "target_achieved", PayloadObject::Transition),
            ("shotType", "content_type", PayloadObject::Action),
            ("updated_workflow", "workflow_update", PayloadObject::Transition),
            ("nextStageId", "next_stage_id", PayloadObject::Transition),
        ] {
            assert_eq!(legacy_name(place, current), legacy);
        }
        assert_eq!(legacy_name(PayloadObject::Context, "variables"), "variables");
    }

    #[test]
    fn the_current_name_is_used_if_both_are_present_and_removed_fields_are_ignored() {
        let mut notes = Vec::new();
        let object = json!({"toDoList": ["old"], "todo_list": ["new"], "checklist": {}, "stageStatus": {}, "thinking": [], "updated_steps": []});
        let renewed = current_names(PayloadObject::Context, object.as_object().unwrap(), &mut notes);
        assert_eq!(Value::Object(renewed), json!({"todo_list": ["new"]}));
        assert_eq!(notes.len(), 5, "{notes:?}");
        let stays = json!({"updated_steps": []});
        let renewed = current_names(PayloadObject::Action, stays.as_object().unwrap(), &mut notes);
        assert_eq!(Value::Object(renewed), stays);
    }
}
