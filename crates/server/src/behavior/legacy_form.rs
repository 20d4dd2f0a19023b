//! Actions with the names that older notebook clients know, which do not run what they add, and read no other spelling.

use bcc_runtime::notebook::action::fields::snake;
use bcc_runtime::notebook::action::{
    AddAction, ExecAction, Heading, LAST_ADDED, NotebookAction, Read, read, sent_action,
};
use bcc_runtime::notebook::cell::{CellKind, Metadata};
use serde_json::{Map, Value, json};

/// Gives actions their older form, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LegacyForm {
    /// Whether the last action was code that runs at once: a client runs it because of an action of its own.
    ran_when_added: bool,
}

impl LegacyForm {
    /// The next action of a behavior. Code that runs at once becomes two actions; an `exec` that repeats the second one of them becomes
    /// none, because the code would run twice.
    pub(crate) fn next(&mut self, sent: &Value) -> Vec<Value> {
        let (Some((name, fields)), Ok(action)) = (sent_action(sent), read(sent)) else { return vec![] };
        let has_just_run = std::mem::take(&mut self.ran_when_added);
        let action = match action {
            Read::Known(action) => *action,
            // It may be an action of the client, whose fields have any names.
            Read::Unknown { name, fields } => return vec![named(&name, fields)],
        };
        let fields = in_snake_case(fields);
        match action {
            NotebookAction::Exec(exec) if has_just_run && exec.codecell_id == LAST_ADDED => vec![],
            NotebookAction::Exec(exec) => vec![older_exec(&exec)],
            NotebookAction::Add(add) if name == "add_section" && add.kind == CellKind::Markdown => {
                let metadata = Metadata { is_section: false, ..add.metadata };
                vec![older_heading("new_section", Heading { content: add.content, metadata })]
            }
            NotebookAction::Add(add) => {
                self.ran_when_added = add.run;
                let run = json!({ "type": "exec", "codecell_id": LAST_ADDED, "need_output": true });
                let run = add.run.then_some(run);
                std::iter::once(older_add(add)).chain(run).collect()
            }
            NotebookAction::NewChapter(heading) => vec![older_heading("new_chapter", heading)],
            NotebookAction::NewSection(heading) => vec![older_heading("new_section", heading)],
            NotebookAction::NewStep(heading) => vec![older_heading("new_step", heading)],
            NotebookAction::UpdateTitle(title) => vec![json!({ "type": "update_title", "content": title })],
            NotebookAction::UpdateWorkflow(_) => {
                vec![named(&name, renamed(fields, &["workflow_update", "workflow"], "updated_workflow"))]
            }
            NotebookAction::UpdateStageSteps(..) => vec![named(&name, renamed(fields, &["steps"], "updated_steps"))],
            _ => vec![named(&name, fields)],
        }
    }
}

fn older_add(add: AddAction) -> Value {
    let shot_type = match (add.kind, add.metadata.shot_type.as_deref()) {
        (CellKind::Code, _) => "action",
        (_, None | Some("text")) => "markdown",
        (_, Some(other)) => other,
    };
    let mut older = json!({ "type": "add", "shot_type": shot_type, "content": add.content });
    if let Some(fields) = older.as_object_mut() {
        fields.extend(add.store_id.map(|id| ("store_id".to_owned(), Value::from(id))));
        fields.extend(metadata_fields(add.metadata));
    }
    older
}

fn older_heading(name: &str, heading: Heading) -> Value {
    let mut older = json!({ "type": name, "content": heading.content });
    if let Some(fields) = older.as_object_mut() {
        fields.extend(metadata_fields(heading.metadata));
    }
    older
}

fn older_exec(exec: &ExecAction) -> Value {
    let mut older = json!({ "type": "exec", "codecell_id": exec.codecell_id, "need_output": exec.need_output });
    let options = [("auto_debug", exec.auto_debug), ("keep_debug_button_visible", exec.keep_debug_button_visible)];
    if let Some(fields) = older.as_object_mut() {
        fields
            .extend(options.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (name.to_owned(), true.into())));
    }
    older
}

/// `metadata` of an action, with the fields that only the client knows beside the others. None without any.
fn metadata_fields(metadata: Metadata) -> Option<(String, Value)> {
    let extra = metadata.extra;
    let metadata = Metadata { shot_type: None, extra: Map::new(), ..metadata };
    let Ok(Value::Object(mut fields)) = serde_json::to_value(metadata) else { return None };
    for (name, value) in extra {
        fields.entry(name).or_insert(value);
    }
    (!fields.is_empty()).then(|| ("metadata".to_owned(), Value::Object(fields)))
}

/// An action with its name in `type`.
fn named(name: &str, mut fields: Map<String, Value>) -> Value {
    fields.shift_remove("type");
    Value::Object(std::iter::once(("type".to_owned(), Value::from(name))).chain(fields).collect())
}

fn in_snake_case(fields: Map<String, Value>) -> Map<String, Value> {
    let given = fields.into_iter().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| (snake(&name), value)).collect()
}

/// The fields with `name` in place of the first of the others that is there.
fn renamed(mut fields: Map<String, Value>, others: &[&str], name: &str) -> Map<String, Value> {
    for other in others {
        if let Some(value) = fields.shift_remove(*other) {
            fields.entry(name).or_insert(value);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn older(sent: &Value) -> Value {
        let mut form = LegacyForm::default();
        sent.as_array().unwrap().iter().flat_map(|action| form.next(action)).collect()
    }

    #[test]
    fn older_clients_get_older_names_for_every_spelling_and_run_what_was_added() {
        let exec = json!({"type": "exec", "codecell_id": "lastAddedCellId", "need_output": true});
        let code = |content: &str| json!({"type": "add", "shot_type": "action", "content": content});
        for (sent, expected) in [
            (
                json!({"action": "add", "content_type": "text", "content": "t", "belongs_to_section": "s", "metadata": {"mine": 1, "extra": {"yours": 2}}}),
                json!([{"type": "add", "shot_type": "markdown", "content": "t", "metadata": {"belongs_to_section": "s", "mine": 1, "yours": 2}}]),
            ),
            (
                json!({"type": "add_content", "content_type": "code", "content": "1", "metadata": {"should_execute": true}}),
                json!([code("1"), exec]),
            ),
            (
                json!({"action": {"action": "add", "shotType": "action", "content": "1", "shouldExecute": false}}),
                json!([code("1")]),
            ),
            (
                json!({"action": "add-content", "content_type": "code", "content": "1", "should_execute": "true"}),
                json!([code("1"), exec]),
            ),
            (
                json!({"action": "add", "contentType": "Code", "content": "1", "metadata": {"shouldExecute": "True"}}),
                json!([code("1"), exec]),
            ),
            (
                json!({"action": "add-text", "content": "t"}),
                json!([{"type": "add", "shot_type": "markdown", "content": "t"}]),
            ),
            (
                json!({"action": "add", "content": "y", "shot_type": "observation", "storeId": "q"}),
                json!([{"type": "add", "shot_type": "observation", "content": "y", "store_id": "q"}]),
            ),
            (
                json!({"action": "exec", "cell_id": "c", "autoDebug": "true"}),
                json!([{"type": "exec", "codecell_id": "c", "need_output": true, "auto_debug": true}]),
            ),
            (
                json!({"type": "execute_code", "codecellId": "c", "needOutput": false}),
                json!([{"type": "exec", "codecell_id": "c", "need_output": false}]),
            ),
            (json!({"action": "new-section", "content": "S"}), json!([{"type": "new_section", "content": "S"}])),
            (
                json!({"type": "addSection", "content": "S", "metadata": {"section_id": "one"}}),
                json!([{"type": "new_section", "content": "S", "metadata": {"section_id": "one"}}]),
            ),
            (json!({"action": "update_title", "title": "T"}), json!([{"type": "update_title", "content": "T"}])),
            (
                json!({"action": "isThinking", "agentName": "A", "thinking_text": null}),
                json!([{"type": "is_thinking", "agent_name": "A"}]),
            ),
            (
                json!({"action": "update_workflow", "workflow": {"stages": [{"id": "s"}]}}),
                json!([{"type": "update_workflow", "updated_workflow": {"stages": [{"id": "s"}]}}]),
            ),
            (
                json!({"action": "updateStageSteps", "stageId": "s", "steps": ["a"]}),
                json!([{"type": "update_stage_steps", "stage_id": "s", "updated_steps": ["a"]}]),
            ),
            (json!({"type": "mark-step-complete"}), json!([{"type": "mark_step_complete"}])),
            (json!({"action": "plot", "Columns": ["a"]}), json!([{"type": "plot", "Columns": ["a"]}])),
            (json!({"action": "add"}), json!([])),
        ] {
            assert_eq!(older(&json!([sent])), expected, "{sent}");
        }
    }

    #[test]
    fn code_that_runs_at_once_is_not_run_a_second_time() {
        let add = json!({"action": "add", "content_type": "code", "content": "1", "should_execute": true});
        let (exec, text) =
            (json!({"action": "exec", "codecell_id": "lastAddedCellId"}), json!({"action": "add", "content": "t"}));
        let other = json!({"action": "exec", "codecell_id": "c"});
        for (sent, runs) in [
            (json!([add, exec]), 1),
            (json!([add, {"action": "add"}, exec]), 1),
            (json!([add, exec, exec]), 2),
            (json!([add, text, exec]), 2),
            (json!([add, other]), 2),
            (json!([exec]), 1),
        ] {
            let older = older(&sent);
            let found = older.as_array().unwrap().iter().filter(|action| action["type"] == "exec").count();
            assert_eq!(found, runs, "{sent}");
        }
    }
}
