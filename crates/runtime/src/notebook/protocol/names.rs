//! Every older name of the protocol, with the name of today (docs/protocol.md), in one table that is used in both directions;
//! and the fields that are no longer part of it (docs/protocol.md).

use serde_json::{Map, Value};

/// Which object of a payload a name stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadObject {
    /// A request, or what stands under its `observation`.
    Request,
    Location,
    Context,
    Sections,
    Feedback,
    /// A response or a judgement.
    Response,
    Transition,
    Update,
    /// An action, or its `metadata`.
    Action,
}

#[derive(Clone, Copy, Debug)]
pub struct Renamed {
    pub place: PayloadObject,
    pub older: &'static str,
    pub newer: &'static str,
}

const fn renamed(place: PayloadObject, older: &'static str, newer: &'static str) -> Renamed {
    Renamed { place, older, newer }
}

/// All of them. Where one name of today has several older ones, the first is what servers of the older form are sent.
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

/// The fields of a context that are no longer part of the protocol (docs/protocol.md). They are read over and never sent.
/// (`updated_steps` is also a parameter of `update_stage_steps`, and stays one.)
pub const REMOVED: [&str; 5] = ["stageStatus", "stage_status", "checklist", "thinking", "updated_steps"];

/// `object` with the names of today. Says in `notes` what was renamed or read over. Where both names stand there, that of today
/// counts.
pub fn newer(place: PayloadObject, object: &Map<String, Value>, notes: &mut Vec<String>) -> Map<String, Value> {
    let mut renewed = Map::new();
    for (name, value) in object {
        if matches!(place, PayloadObject::Request | PayloadObject::Context) && REMOVED.contains(&name.as_str()) {
            notes.push(format!("`{name}` is no longer part of the protocol and was ignored"));
            continue;
        }
        let known = RENAMED.iter().find(|renamed| renamed.place == place && renamed.older == name);
        match known {
            Some(renamed) if object.contains_key(renamed.newer) => {
                notes.push(format!("`{name}` was ignored: `{newer}` replaces it", newer = renamed.newer));
            }
            Some(renamed) => {
                notes.push(format!("`{name}` is a deprecated name of `{newer}`", newer = renamed.newer));
                renewed.entry(renamed.newer).or_insert_with(|| value.clone());
            }
            None => drop(renewed.insert(name.clone(), value.clone())),
        }
    }
    renewed
}

/// The name that servers of the older form know for a name of today; the same where it was never changed.
pub fn older(place: PayloadObject, newer: &'static str) -> &'static str {
    RENAMED.iter().find(|renamed| renamed.place == place && renamed.newer == newer).map_or(newer, |found| found.older)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_older_name_becomes_that_of_today_and_says_so() {
        for renamed in RENAMED {
            let mut notes = Vec::new();
            let object = json!({ renamed.older: 1, "beside": 2 });
            let renewed = newer(renamed.place, object.as_object().unwrap(), &mut notes);
            assert_eq!(Value::Object(renewed), json!({ renamed.newer: 1, "beside": 2 }), "{renamed:?}");
            assert_eq!(notes, [format!("`{}` is a deprecated name of `{}`", renamed.older, renamed.newer)]);
        }
    }

    #[test]
    fn every_name_that_has_an_older_one_becomes_that_and_back() {
        for renamed in RENAMED {
            let was = older(renamed.place, renamed.newer);
            let mut notes = Vec::new();
            let back = newer(renamed.place, json!({ was: 1 }).as_object().unwrap(), &mut notes);
            assert_eq!(Value::Object(back), json!({ renamed.newer: 1 }));
        }
        // The table of section 5.1, row by row.
        for (was, is, place) in [
            ("stage_id", "current_stage_id", PayloadObject::Location),
            ("state", "context", PayloadObject::Request),
            ("toDoList", "todo_list", PayloadObject::Context),
            ("targetAchieved", "target_achieved", PayloadObject::Transition),
            ("shotType", "content_type", PayloadObject::Action),
            ("updated_workflow", "workflow_update", PayloadObject::Transition),
            ("nextStageId", "next_stage_id", PayloadObject::Transition),
        ] {
            assert_eq!(older(place, is), was);
        }
        assert_eq!(older(PayloadObject::Context, "variables"), "variables");
    }

    #[test]
    fn the_name_of_today_counts_where_both_stand_and_removed_fields_are_read_over() {
        let mut notes = Vec::new();
        let object = json!({"toDoList": ["old"], "todo_list": ["new"], "checklist": {}, "stageStatus": {}, "thinking": [], "updated_steps": []});
        let renewed = newer(PayloadObject::Context, object.as_object().unwrap(), &mut notes);
        assert_eq!(Value::Object(renewed), json!({"todo_list": ["new"]}));
        assert_eq!(notes.len(), 5, "{notes:?}");
        let stays = json!({"updated_steps": []});
        let renewed = newer(PayloadObject::Action, stays.as_object().unwrap(), &mut notes);
        assert_eq!(Value::Object(renewed), stays);
    }
}
