//! Reads the fields of each action.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::notebook::action::fields::{ActionFields, MAX_EXTRA_BYTES, snake};
use crate::notebook::action::{AddAction, ExecAction, Heading, LAST_ADDED, NotebookAction, Thinking};
use crate::notebook::cell::{CellKind, Metadata};
use crate::notebook::error::ActionFieldError;
use crate::notebook::error::field_error;
use crate::notebook::workflow::{Workflow, check_steps, read_steps};

/// The maximum length of a cell id according to nbformat, in characters.
pub(crate) const MAX_CELL_ID: usize = 64;

/// The metadata fields with their own members; other fields are stored in `extra`.
const METADATA: [&str; 11] = [
    "is_step",
    "is_chapter",
    "is_section",
    "chapter_id",
    "section_id",
    "chapter_number",
    "section_number",
    "belongs_to_chapter",
    "belongs_to_section",
    "finished_thinking",
    "thinking_text",
];

pub(crate) fn action(
    kind: &str,
    fields: &Map<String, Value>,
    notes: &mut Vec<ActionFieldError>,
) -> Result<NotebookAction, ActionFieldError> {
    let named = ActionFields::new(fields);
    Ok(match kind {
        "add" => NotebookAction::Add(add(&named, notes)?),
        "add_section" => {
            let mut add = add(&named, notes)?;
            add.metadata.is_section = true;
            NotebookAction::Add(add)
        }
        "exec" => NotebookAction::Exec(ExecAction {
            codecell_id: named.required_name(&["codecell_id", "code_cell_id", "cell_id"])?,
            need_output: named.boolean(&["need_output"])?.unwrap_or(true),
            auto_debug: named.boolean(&["auto_debug"])?.unwrap_or_default(),
            keep_debug_button_visible: named.boolean(&["keep_debug_button_visible"])?.unwrap_or_default(),
        }),
        "is_thinking" => NotebookAction::IsThinking(Thinking {
            thinking_text: named.text(&["thinking_text"])?,
            agent_name: named.name(&["agent_name"])?,
            custom_text: named.text(&["custom_text"])?,
            text_array: named.texts("text_array")?,
        }),
        "finish_thinking" => NotebookAction::FinishThinking,
        "new_chapter" => NotebookAction::NewChapter(heading(&named)?),
        "new_section" => NotebookAction::NewSection(heading(&named)?),
        "new_step" => NotebookAction::NewStep(heading(&named)?),
        "update_title" => NotebookAction::UpdateTitle(title(&named)?),
        "update_workflow" => {
            let names = ["updated_workflow", "workflow_update", "workflow"];
            let plan = named.value(&names).ok_or_else(|| missing("updated_workflow"))?;
            NotebookAction::UpdateWorkflow(Workflow::read(plan)?)
        }
        "update_stage_steps" => {
            let stage = named.required_name(&["stage_id"])?;
            let steps = named.value(&["updated_steps", "steps"]).ok_or_else(|| missing("updated_steps"))?;
            let steps = read_steps(steps)?;
            if steps.is_empty() {
                return Err(empty("updated_steps"));
            }
            check_steps(&steps).map_err(|rejection| field_error("updated_steps", rejection.message))?;
            NotebookAction::UpdateStageSteps(stage, steps)
        }
        "end_phase" => NotebookAction::EndPhase(named.name(&["step_id"])?),
        "update_last_text" => NotebookAction::UpdateLastText(named.required_text(&["content", "text"])?),
        "set_effect_as_thinking" => NotebookAction::SetEffectAsThinking(named.text(&["thinking_text"])?),
        "mark_stage_complete" => NotebookAction::CompleteStage(named.name(&["stage_id"])?),
        "complete_reflection" => NotebookAction::CompleteReflection,
        _ => NotebookAction::NextEvent(event(&named)?),
    })
}

fn missing(name: &'static str) -> ActionFieldError {
    field_error(name, msg!("`{name}` is missing"))
}

fn empty(name: &'static str) -> ActionFieldError {
    field_error(name, msg!("`{name}` is empty"))
}

fn add(fields: &ActionFields, notes: &mut Vec<ActionFieldError>) -> Result<AddAction, ActionFieldError> {
    let content = fields.required_text(&["content"])?;
    let mut metadata = metadata(fields)?;
    let (kind, shot_type) = shot_type(fields, notes)?;
    metadata.shot_type = shot_type;
    let metadata_fields = fields.object("metadata")?.map(ActionFields::new);
    let should_execute = match fields.boolean(&["should_execute"])? {
        None => metadata_fields.map_or(Ok(None), |metadata_fields| metadata_fields.boolean(&["should_execute"]))?,
        explicit => explicit,
    };
    let run = should_execute.unwrap_or_default();
    if run && kind != CellKind::Code {
        let message = Message::word("`should_execute` can run only code, but this cell is text");
        notes.push(field_error("should_execute", message));
    }
    let store_id = fields.name(&["store_id"])?;
    if store_id.as_deref().is_some_and(|id| !is_cell_id(id)) {
        let message = msg!(
            "`store_id` must consist of 1 to {MAX_CELL_ID} letters from a to z, digits, `-` and `_`, start with a letter or digit, and not be `{LAST_ADDED}`"
        );
        return Err(field_error("store_id", message));
    }
    Ok(AddAction { content, kind, store_id, metadata, run: run && kind == CellKind::Code })
}

/// Whether an author, a model or a server may give this id to a cell. Ids that start with `_` are reserved for generated ids;
/// otherwise the rule of nbformat 4.5 applies.
pub fn is_cell_id(id: &str) -> bool {
    let has_valid_characters = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    has_valid_characters && (1..=MAX_CELL_ID).contains(&id.len()) && !id.starts_with(['-', '_']) && id != LAST_ADDED
}

/// The kind of a cell and its shot type in lower case. An unknown shot type means text.
fn shot_type(
    fields: &ActionFields,
    notes: &mut Vec<ActionFieldError>,
) -> Result<(CellKind, Option<String>), ActionFieldError> {
    // `type` remains if `action` names the kind.
    let Some(shot_type) = fields.name(&["shot_type", "content_type", "type"])? else {
        return Ok((CellKind::Markdown, None));
    };
    let shot_type = shot_type.to_lowercase();
    let kind = match shot_type.as_str() {
        "dialogue" | "observation" | "text" | "markdown" => CellKind::Markdown,
        "action" | "code" => CellKind::Code,
        _ => {
            let message = Message::word(
                "`shot_type` must be dialogue, observation, text or markdown for text, and action or code for code",
            );
            notes.push(field_error("shot_type", message));
            return Ok((CellKind::Markdown, None));
        }
    };
    Ok((kind, Some(shot_type)))
}

fn heading(fields: &ActionFields) -> Result<Heading, ActionFieldError> {
    let content = fields.required_text(&["content"])?;
    if content.trim_start_matches('\u{feff}').trim().trim_start_matches('#').trim().is_empty() {
        return Err(empty("content"));
    }
    Ok(Heading { content, metadata: metadata(fields)? })
}

fn title(fields: &ActionFields) -> Result<String, ActionFieldError> {
    let title = fields.required_name(&["title", "content"])?;
    let title = title.trim_start_matches('\u{feff}').trim_start_matches('#').trim();
    if title.is_empty() { Err(empty("title")) } else { Ok(title.to_owned()) }
}

fn event(fields: &ActionFields) -> Result<String, ActionFieldError> {
    let event = fields.required_name(&["event_type"])?;
    if !event.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Err(field_error("event_type", Message::word("`event_type` must consist of letters, digits and `_`")));
    }
    Ok(event)
}

/// The metadata, including fields of it that are written next to it.
fn metadata(fields: &ActionFields) -> Result<Metadata, ActionFieldError> {
    let metadata = fields.object("metadata")?;
    let mut all = Map::new();
    for name in METADATA {
        if let Some(value) = fields.value(&[name]) {
            all.insert(name.to_owned(), value.clone());
        }
    }
    let mut extra = Map::new();
    for (key, value) in metadata.into_iter().flatten() {
        match snake(key).as_str() {
            "extra" => match value {
                Value::Null => {}
                Value::Object(more) => extra.extend(more.clone()),
                _ => return Err(field_error("extra", Message::word("`extra` must be an object"))),
            },
            "should_execute" => {}
            name if METADATA.contains(&name) => {
                if !value.is_null() {
                    all.insert(name.to_owned(), value.clone());
                }
            }
            _ => {
                extra.insert(key.clone(), value.clone());
            }
        }
    }
    if !extra.is_empty() && serde_json::to_string(&extra).map_or(usize::MAX, |text| text.len()) > MAX_EXTRA_BYTES {
        return Err(field_error("metadata", msg!("`metadata` is larger than {MAX_EXTRA_BYTES} bytes")));
    }
    let all = ActionFields::new(&all);
    Ok(Metadata {
        is_step: all.boolean(&["is_step"])?.unwrap_or_default(),
        is_chapter: all.boolean(&["is_chapter"])?.unwrap_or_default(),
        is_section: all.boolean(&["is_section"])?.unwrap_or_default(),
        chapter_id: all.name(&["chapter_id"])?,
        section_id: all.name(&["section_id"])?,
        chapter_number: all.count("chapter_number")?,
        section_number: all.count("section_number")?,
        belongs_to_chapter: all.name(&["belongs_to_chapter"])?,
        belongs_to_section: all.name(&["belongs_to_section"])?,
        finished_thinking: all.boolean(&["finished_thinking"])?.unwrap_or_default(),
        thinking_text: all.text(&["thinking_text"])?,
        extra,
        ..Metadata::default()
    })
}
