//! The next behavior for a client: its actions, and what follows from it.

use bcc_lang::message::message::Message;
use bcc_runtime::notebook::action;
use bcc_runtime::notebook::protocol::context::{ContextUpdate, TodoUpdate};
use bcc_runtime::notebook::protocol::response::{Response, Transition, response};
use serde_json::{Map, Value, json};

use crate::behavior::legacy_form::LegacyForm;
use crate::behavior::request::BehaviorRequest;

/// The next behavior.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NextBehavior {
    response: Response,
}

impl NextBehavior {
    /// Reads the reply of a model or a script. Actions that cannot be carried out are left out.
    ///
    /// # Errors
    /// It is no response of the protocol, or had actions of which none can be carried out.
    pub(crate) fn read(reply: &Value) -> Result<Self, Message> {
        let mut response = response(reply).map_err(|error| error.message)?;
        for note in &response.notes {
            tracing::debug!(%note, "a reply holds what is not part of the protocol");
        }
        let had_actions = !response.actions.is_empty();
        response.actions.retain(|sent| action::read(sent).is_ok());
        if had_actions && response.actions.is_empty() {
            return Err(Message::word("none of the actions can be carried out"));
        }
        Ok(Self { response })
    }

    /// The behavior when nobody made a usable one: it does nothing.
    pub(crate) fn nothing(reason: &str) -> Self {
        let transition =
            Transition { continue_behaviors: Some(true), reason: reason.to_owned(), ..Transition::default() };
        Self { response: Response { transition, ..Response::default() } }
    }

    /// `behavior` of an answer.
    fn head(&self, request: &BehaviorRequest) -> Value {
        let location = &request.observed.location;
        let number = location.behavior_iteration.max(1);
        let own = || location.behavior_id.clone().unwrap_or_else(|| format!("behavior_{number:03}"));
        json!({
            "id": self.response.behavior_id.clone().unwrap_or_else(own),
            "iteration": self.response.iteration.map_or(number, u64::from),
            "target": self.response.target,
        })
    }

    /// The whole answer in the current form.
    pub(crate) fn to_json(&self, request: &BehaviorRequest) -> Value {
        json!({
            "behavior": self.head(request),
            "actions": self.response.actions,
            "transition": transition_json(&self.response.transition),
            "context_update": context_update_json(&self.response.context_update),
        })
    }

    /// The same answer as one object a line: the behavior, each action, and what follows.
    pub(crate) fn to_lines(&self, request: &BehaviorRequest) -> Vec<Value> {
        let mut lines = vec![json!({ "behavior": self.head(request) })];
        lines.extend(self.action_lines());
        lines.push(json!({
            "transition": transition_json(&self.response.transition),
            "context_update": context_update_json(&self.response.context_update),
        }));
        lines
    }

    /// One line for each action.
    pub(crate) fn action_lines(&self) -> Vec<Value> {
        action_objects(self.response.actions.clone()).collect()
    }

    /// The lines of the actions in their older form, which follow those that already have one.
    pub(crate) fn older_action_lines(&self, form: &mut LegacyForm) -> Vec<Value> {
        action_objects(self.older_actions(form)).collect()
    }

    fn older_actions(&self, form: &mut LegacyForm) -> Vec<Value> {
        self.response.actions.iter().flat_map(|action| form.next(action)).collect()
    }

    /// The answer in the older form as one object a line: each action, and how the context changes. Only clients with a todo list know
    /// such changes; others would take one for an action.
    pub(crate) fn to_older_lines(&self, request: &BehaviorRequest, without_actions: &str) -> Vec<Value> {
        let update = self.context_update().filter(|_| !request.observed.todo_list.is_empty());
        let update = update.map(|update| json!({ "context_update": update }));
        action_objects(self.to_older_actions(without_actions)).chain(update).collect()
    }

    /// How the context changes. None without a change.
    pub(crate) fn context_update(&self) -> Option<Value> {
        let update = &self.response.context_update;
        (*update != ContextUpdate::default()).then(|| context_update_json(update))
    }

    /// The actions in the older form. Never empty: without any, there is one text.
    pub(crate) fn to_older_actions(&self, without_actions: &str) -> Vec<Value> {
        let older = self.older_actions(&mut LegacyForm::default());
        match older.is_empty() {
            true => vec![json!({ "type": "add", "shot_type": "markdown", "content": without_actions })],
            false => older,
        }
    }
}

/// An object for each action.
pub(crate) fn action_objects(actions: Vec<Value>) -> impl Iterator<Item = Value> {
    actions.into_iter().map(|action| json!({ "action": action }))
}

/// `transition` of an answer.
pub(crate) fn transition_json(transition: &Transition) -> Value {
    let mut json = json!({
        "strategy": "server_controlled",
        "next_stage_id": transition.next_stage_id,
        "next_step_id": transition.next_step_id,
        "continue_behaviors": transition.continue_behaviors,
        "target_achieved": transition.target_achieved,
        "reason": transition.reason,
    });
    if let (Some(fields), Some(plan)) = (json.as_object_mut(), &transition.workflow_update) {
        fields.insert("workflow_update".to_owned(), json!(plan));
    }
    json
}

/// `context_update` of an answer.
pub(crate) fn context_update_json(update: &ContextUpdate) -> Value {
    let change = |operation: &str, items: &[String]| json!({ "operation": operation, "items": items });
    let todo = update.todo.as_ref().map(|todo| match todo {
        TodoUpdate::Add(items) => change("add", items),
        TodoUpdate::Remove(items) => change("remove", items),
        TodoUpdate::Replace(items) => change("replace", items),
        TodoUpdate::Clear => change("clear", &[]),
    });
    let mut fields = Map::from_iter([("variables".to_owned(), Value::Object(update.variables.clone()))]);
    fields.extend(todo.map(|todo| ("todo_list_update".to_owned(), todo)));
    let sections = update.section_progress.clone();
    fields.extend(sections.map(|sections| ("section_progress".to_owned(), Value::Object(sections))));
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(location: Value) -> BehaviorRequest {
        let body = json!({"observation": {"location": location}});
        BehaviorRequest::read(body.as_object().unwrap().clone()).unwrap()
    }

    #[test]
    fn the_older_actions_are_never_empty() {
        for behavior in [NextBehavior::nothing("why"), NextBehavior::read(&json!({"actions": []})).unwrap()] {
            let older = behavior.to_older_actions("nothing to do");
            assert_eq!(older, [json!({"type": "add", "shot_type": "markdown", "content": "nothing to do"})]);
        }
    }

    #[test]
    fn actions_that_cannot_be_carried_out_are_left_out() {
        let behavior = NextBehavior::read(
            &json!({"actions": [{"action": "add"}, {"action": "new_section", "content": "S"}, {"x": 1}]}),
        );
        assert_eq!(
            behavior.unwrap().to_json(&request(json!({})))["actions"],
            json!([{"action": "new_section", "content": "S"}])
        );
        for rubbish in [json!({"actions": [{"action": "add"}]}), json!("text"), json!({}), json!({"actions": 7})] {
            assert!(NextBehavior::read(&rubbish).is_err(), "{rubbish}");
        }
    }

    #[test]
    fn an_answer_has_every_part_in_each_form() {
        let reply = json!({
            "behavior": {"target": "Write"},
            "actions": [{"action": "finish_thinking"}],
            "contextUpdate": {"variables": {"n": 1}, "toDoListUpdate": {"operation": "remove", "items": ["a"]}},
            "transition": {"targetAchieved": true, "reason": "done"},
        });
        let behavior = NextBehavior::read(&reply).unwrap();
        let request = request(json!({"current_step_id": "s", "behavior_id": "behavior_002", "behavior_iteration": 2}));
        let whole = behavior.to_json(&request);
        assert_eq!(whole["behavior"], json!({"id": "behavior_002", "iteration": 2, "target": "Write"}));
        assert_eq!(whole["transition"]["target_achieved"], true);
        assert_eq!(whole["context_update"]["todo_list_update"], json!({"operation": "remove", "items": ["a"]}));
        let lines = behavior.to_lines(&request);
        assert_eq!(lines[0], json!({"behavior": whole["behavior"]}));
        assert_eq!(lines[1], json!({"action": {"action": "finish_thinking"}}));
        assert_eq!(lines[2], json!({"transition": whole["transition"], "context_update": whole["context_update"]}));
    }
}
