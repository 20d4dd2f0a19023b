//! The goal that an answer works towards: sent as text, as an object, or with the stage, step or behavior that it belongs to.

use bcc_runtime::notebook::protocol::brief::cut;
use serde_json::{Map, Value};

use crate::behavior::request::BehaviorRequest;

/// The levels of a workflow, from the outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GoalLevel {
    Workflow,
    Stage,
    Step,
    Behavior,
}

/// The variables that hold the problem of a person, in the names of clients.
const PROBLEM_VARIABLES: [&str; 2] = ["user_problem", "problem_description"];

/// The maximum size of a goal, in bytes.
const MAX_GOAL_BYTES: usize = 8_000;

impl BehaviorRequest {
    /// The goal of a level; without one, that of the level around it. Empty if the request has no goal at all.
    pub(crate) fn goal(&self, level: GoalLevel) -> String {
        let observed = &self.observed;
        let variable = |name: &&str| observed.variables.get(*name).and_then(Value::as_str).map(str::to_owned);
        let mut candidates: Vec<Option<String>> = Vec::new();
        if level >= GoalLevel::Behavior {
            candidates.push(observed.behavior_goal.clone());
            candidates.push(self.current("behaviors").and_then(|item| text_in(item, &["task", "goal"])));
            candidates.push(self.progress.get("behaviors").and_then(|list| text_in(list.as_object()?, &["focus"])));
        }
        if level >= GoalLevel::Step {
            candidates.push(observed.step_goal.clone());
            candidates.push(self.current("steps").and_then(|item| text_in(item, &["goal", "title"])));
        }
        if level >= GoalLevel::Stage {
            // Before there is a stage, the text is the goal of the workflow.
            candidates.push(observed.stage_goal.clone());
            candidates.push(self.current("stages").and_then(|item| text_in(item, &["goal", "title"])));
        }
        if observed.location.stage_id.is_none() {
            candidates.push(observed.stage_goal.clone());
        }
        candidates.extend(PROBLEM_VARIABLES.iter().map(variable));
        candidates.push(observed.title.clone());
        candidates.push(observed.location.step_id.clone().filter(|_| level >= GoalLevel::Step));
        candidates.push(observed.location.stage_id.clone().filter(|_| level >= GoalLevel::Stage));
        let found = candidates.into_iter().flatten().find(|goal| !goal.trim().is_empty()).unwrap_or_default();
        let filled = filled(found.trim(), &observed.variables);
        cut(&filled, MAX_GOAL_BYTES)
    }
}

fn text_in(fields: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let texts = names.iter().filter_map(|name| fields.get(*name)?.as_str());
    texts.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
}

/// `goal` with the values of variables for `%name%`. What is inserted is not searched again. What is longer than a goal may be is cut.
fn filled(goal: &str, variables: &Map<String, Value>) -> String {
    let mut filled = String::with_capacity(goal.len());
    let mut rest = goal;
    while let Some((before, after)) = rest.split_once('%') {
        filled.push_str(before);
        // A short goal can name a long value many times.
        if filled.len() > MAX_GOAL_BYTES {
            return filled;
        }
        let value = after.split_once('%').and_then(|(name, after)| Some((variables.get(name)?, after)));
        match value {
            Some((Value::String(text), after)) => {
                filled.push_str(text);
                rest = after;
            }
            Some((value, after)) => {
                filled.push_str(&value.to_string());
                rest = after;
            }
            None => {
                filled.push('%');
                rest = after;
            }
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn goals(location: Value, variables: Value) -> [String; 4] {
        let body = json!({"observation": {"location": location}, "state": {"variables": variables}});
        let request = BehaviorRequest::read(body.as_object().unwrap().clone()).unwrap();
        [GoalLevel::Workflow, GoalLevel::Stage, GoalLevel::Step, GoalLevel::Behavior].map(|level| request.goal(level))
    }

    #[test]
    fn a_goal_is_found_as_text_as_object_and_with_its_item() {
        let problem = json!({"user_problem": "P", "files": ["a"]});
        for (location, expected) in [
            (
                json!({"goals": "Solve %user_problem% with %files%, 100% or %none%"}),
                ["Solve P with [\"a\"], 100% or %none%"; 4],
            ),
            (json!({"current": {"stage_id": "s"}, "goals": "S"}), ["P", "S", "S", "S"]),
            (json!({"current": {"stage_id": "s", "step_id": "t"}, "goals": "T"}), ["P", "s", "T", "T"]),
            (
                json!({"current": {"stage_id": "s", "step_id": "t"}, "goals": {"stage": "S", "step": "T", "behavior": "B"}}),
                ["P", "S", "T", "B"],
            ),
            (
                json!({"current": {"stage_id": "s", "step_id": "t", "behavior_id": "b"}, "goals": " B ", "progress": {
                    "stages": {"current": {"stage_id": "s", "goal": "S"}},
                    "steps": {"current": {"step_id": "t", "title": "T"}},
                }}),
                ["P", "S", "T", "B"],
            ),
            (json!({"current": {"stage_id": null, "step_id": null}}), ["P"; 4]),
        ] {
            // Without a goal of the stage, the problem is nearer to the goal than the id is.
            let expected = expected.map(|goal| if goal == "s" { "P" } else { goal });
            assert_eq!(goals(location.clone(), problem.clone()), expected, "{location}");
        }
        let many = "%v% ".repeat(1_000);
        let long = goals(json!({ "goals": many }), json!({ "v": "x".repeat(500_000) }));
        assert!(long.iter().all(|goal| goal.len() <= MAX_GOAL_BYTES));
        assert_eq!(goals(json!({"current_stage_id": "s", "current_step_id": "t"}), json!({})), ["", "s", "t", "t"]);
    }
}
