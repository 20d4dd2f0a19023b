//! Applies the four changes of a plan to the list of a topic's actions, and validates them.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::program::orchestration::content::{check_kind, make_literal};
use crate::program::orchestration::plan::{Cursor, OrchestrationPlan, PlanChange, PlanError, PlanPosition};
use bcc_lang::script::fields::shortened;
use bcc_lang::script::legacy_fields::{current_spelling, is_legacy_output};
use bcc_lang::value::depth::is_deeper_than;

/// The condition of an action that a plan skips. The action stays in the list, so that references to it stay valid.
pub(crate) const NEVER: &str = "false";

/// The maximum size, in bytes of JSON, of new content in a plan.
const MAX_BYTES: usize = 16 * 1024;

/// The maximum nesting depth of lists and mappings in a plan.
const MAX_DEPTH: usize = 16;

/// Fields of an action that no plan may change: its identity and the script's control flow around it.
const FIXED_FIELDS: [&str; 6] = ["action_type", "action_id", "condition", "on_exit", "on_interrupted", "config"];

/// The fields of a new action.
const NEW_ACTION_FIELDS: [&str; 3] = ["action_type", "action_id", "config"];

/// Fields that a plan may change in the current action.
const CURRENT_ACTION_FIELDS: [&str; 2] = ["content", "exit"];

pub fn id_of(action: &Value) -> &str {
    action.get("action_id").and_then(Value::as_str).unwrap_or_default()
}

/// Whether the action will never run: an earlier plan skipped it, or its author disabled it.
pub fn is_skipped(action: &Value) -> bool {
    match action.get("condition") {
        Some(Value::Bool(holds)) => !holds,
        Some(Value::String(text)) => text.trim() == NEVER,
        _ => false,
    }
}

/// The list that a plan is applied to, with the current position of the visit and its position when the plan was requested.
pub(crate) struct PlanEdit<'a> {
    pub actions: &'a [Value],
    /// The current position of the visit.
    pub now: Cursor,
    /// Its position when the plan was requested.
    pub planned: Cursor,
}

impl PlanEdit<'_> {
    /// Rejects plans that would make the topic grow or nest without limit.
    pub(crate) fn check_size(plan: &OrchestrationPlan) -> Result<(), PlanError> {
        let modifications = plan.modifications.clone().map(Value::Object);
        for part in plan.new_action.iter().chain(modifications.iter()) {
            if is_deeper_than(part, MAX_DEPTH) {
                let why = msg!("the content of the plan is nested more than {MAX_DEPTH} levels deep");
                return Err(PlanError::new("plan-too-large", why));
            }
            if part.to_string().len() > MAX_BYTES {
                let why = msg!("the content of the plan is longer than {MAX_BYTES} bytes");
                return Err(PlanError::new("plan-too-large", why));
            }
        }
        Ok(())
    }

    /// `insert`: the new action goes to the position, before the action that is there now.
    pub(crate) fn insert(&self, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        let new = plan.new_action.as_ref().and_then(Value::as_object);
        let new = new.ok_or_else(|| incomplete("insert", "new_action"))?;
        let mut new = with_current_names(new);
        let id = new.get("action_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if id.is_empty() {
            return Err(incomplete("insert", "new_action.action_id"));
        }
        if let Some(field) = new.keys().find(|name| !NEW_ACTION_FIELDS.contains(&name.as_str())) {
            return Err(forbidden_field(field));
        }
        if let Some(config) = new.get_mut("config").and_then(Value::as_object_mut) {
            make_literal(config);
        }
        let new = Value::Object(new);
        check_kind(&new)?;
        let mut taken = Vec::new();
        self.actions.iter().for_each(|action| ids_within(action, &mut taken));
        if taken.contains(&id.as_str()) {
            let why = msg!("the id `{}` is already used by another action of this topic", shortened(&id));
            return Err(PlanError::new("id-taken", why));
        }
        let at = match &plan.target_position {
            None => self.planned.first_pending(),
            Some(PlanPosition::Named(name)) if name == "after_current" => self.planned.first_pending(),
            Some(PlanPosition::Named(name)) if name == "before_next" => {
                self.next_of(self.planned).unwrap_or(self.actions.len())
            }
            // The position after the last action is valid, although no action is there.
            Some(PlanPosition::Index(index)) if *index == self.actions.len() => *index,
            Some(position) => self.named(position)?,
        };
        if at < self.now.first_pending() {
            return Err(too_late(&Message::word("the position for the new action has already been passed")));
        }
        let mut list = self.actions.to_vec();
        list.insert(at.min(list.len()), new);
        Ok(list)
    }

    /// `modify`: fields of the config of one action.
    pub(crate) fn modify(&self, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        let changes = plan.modifications.as_ref().filter(|changes| !changes.is_empty());
        let changes = changes.ok_or_else(|| incomplete("modify", "modifications"))?;
        // Models write the fields with or without the `config` around them; both mean the same.
        let changes = match changes.get("config") {
            Some(Value::Object(config)) if changes.len() == 1 => config,
            _ => changes,
        };
        let mut fields = renamed(changes);
        if let Some(fixed) = fields.keys().find(|name| FIXED_FIELDS.contains(&name.as_str())) {
            let why = msg!("a plan can change only fields of an action's config, not its `{fixed}`");
            return Err(PlanError::new("field-fixed", why));
        }
        make_literal(&mut fields);
        let at = match &plan.target_position {
            None if self.planned.started => self.planned.at,
            None => return Err(incomplete("modify", "target_position")),
            Some(position) => self.target(position)?,
        };
        if at < self.now.at {
            return Err(self.not_pending(at));
        }
        let is_current = self.now.started && at == self.now.at;
        if is_current && let Some(other) = fields.keys().find(|name| !CURRENT_ACTION_FIELDS.contains(&name.as_str())) {
            let why =
                msg!("only `content` and `exit` of the current action can be changed, not its `{}`", shortened(other));
            return Err(PlanError::new("field-fixed", why));
        }
        self.not_skipped(at)?;
        self.actions.get(at).map_or(Ok(()), check_kind)?;
        let mut list = self.actions.to_vec();
        if let Some(action) = list.get_mut(at).and_then(Value::as_object_mut) {
            let config = action.entry("config").or_insert_with(|| Value::Object(Map::new()));
            if !config.is_object() {
                *config = Value::Object(Map::new());
            }
            if let Some(config) = config.as_object_mut() {
                if fields.contains_key("output") {
                    config.retain(|name, _| !is_legacy_output(name));
                }
                for (name, value) in fields {
                    if value.is_null() {
                        config.shift_remove(&name);
                    } else {
                        config.insert(name, value);
                    }
                }
            }
        }
        Ok(list)
    }

    /// `skip`: one pending action does not run. The last remaining action of a topic cannot be skipped.
    pub(crate) fn skip(&self, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        let position = plan.target_position.as_ref().ok_or_else(|| incomplete("skip", "target_position"))?;
        let at = self.target(position)?;
        if self.now.started && at == self.now.at {
            let why = "the current action cannot be skipped: it ends by its own exit, which `modify` can change";
            return Err(PlanError::new("not-to-come", why));
        }
        if at < self.now.first_pending() {
            return Err(self.not_pending(at));
        }
        self.not_skipped(at)?;
        let mut list = self.actions.to_vec();
        if let Some(action) = list.get_mut(at).and_then(Value::as_object_mut) {
            action.insert("condition".to_owned(), Value::from(NEVER));
        }
        let remaining = list.iter().skip(self.now.first_pending()).any(|action| !is_skipped(action));
        if !self.now.started && !remaining {
            return Err(PlanError::new("empties-topic", "nothing in the topic would be left to run"));
        }
        Ok(list)
    }

    /// `reorder`: the pending actions that are not skipped, each once. Skipped ones keep their positions.
    pub(crate) fn reorder(&self, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        let order = plan.order.as_ref().filter(|order| !order.is_empty());
        let order = order.ok_or_else(|| incomplete("reorder", "order"))?;
        let mut chosen: Vec<&Value> = Vec::with_capacity(order.len());
        for (place, id) in order.iter().enumerate() {
            if order.iter().take(place).any(|earlier| earlier == id) {
                let why = msg!("`order` names `{}` twice", shortened(id));
                return Err(PlanError::new("order-incomplete", why));
            }
            let at = self.by_id(id)?;
            if at < self.now.first_pending() {
                return Err(self.not_pending(at));
            }
            self.not_skipped(at)?;
            chosen.extend(self.actions.get(at));
        }
        let mut list = self.actions.to_vec();
        let mut chosen = chosen.into_iter();
        for slot in list.iter_mut().skip(self.now.first_pending()).filter(|action| !is_skipped(action)) {
            let Some(next) = chosen.next() else {
                let why = msg!(
                    "`order` omits `{}`, which has not run yet: it must list each remaining action once",
                    id_of(slot)
                );
                return Err(PlanError::new("order-incomplete", why));
            };
            *slot = next.clone();
        }
        Ok(list)
    }

    /// The first pending action, as seen from `cursor`, that is not skipped.
    fn next_of(&self, cursor: Cursor) -> Option<usize> {
        let first = cursor.first_pending();
        self.actions.iter().skip(first).position(|action| !is_skipped(action)).map(|offset| first + offset)
    }

    /// The action that `modify` or `skip` refers to; `after_current` and `before_next` mean the next one that would run.
    fn target(&self, position: &PlanPosition) -> Result<usize, PlanError> {
        match position {
            PlanPosition::Named(name) if name == "after_current" || name == "before_next" => self
                .next_of(self.planned)
                .ok_or_else(|| PlanError::new("not-to-come", "the topic has no remaining actions")),
            position => self.named(position),
        }
    }

    /// The action with an id or an index. A string of digits that is no id is an index.
    fn named(&self, position: &PlanPosition) -> Result<usize, PlanError> {
        let index = match position {
            PlanPosition::Index(index) => *index,
            PlanPosition::Named(name) => match (self.by_id(name), name.parse::<usize>()) {
                (Err(_), Ok(index)) => index,
                (found, _) => return found,
            },
        };
        let length = self.actions.len();
        (index < length).then_some(index).ok_or_else(|| {
            let why = msg!("the topic has no action with the index {index}: it has {length}, counted from 0");
            PlanError::new("unknown-action", why)
        })
    }

    fn by_id(&self, id: &str) -> Result<usize, PlanError> {
        self.actions.iter().position(|action| id_of(action) == id).ok_or_else(|| {
            PlanError::new("unknown-action", msg!("the topic has no action with the id `{}`", shortened(id)))
        })
    }

    fn not_skipped(&self, at: usize) -> Result<(), PlanError> {
        match self.actions.get(at).filter(|action| is_skipped(action)) {
            Some(action) => Err(PlanError::new("not-to-come", msg!("`{}` is already skipped", id_of(action)))),
            None => Ok(()),
        }
    }

    /// The error for an action that is no longer pending.
    fn not_pending(&self, at: usize) -> PlanError {
        let id = self.actions.get(at).map(id_of).unwrap_or_default();
        if self.now.started && at == self.now.at {
            return too_late(&msg!("`{id}` has already started"));
        }
        too_late(&msg!("`{id}` is done"))
    }
}

fn too_late(reason: &Message) -> PlanError {
    PlanError::new("too-late", msg!("{reason}; a plan can change only what has not run yet"))
}

fn incomplete(change: &str, field: &str) -> PlanError {
    PlanError::new("plan-incomplete", msg!("a plan to {change} needs `{field}`"))
}

fn forbidden_field(name: &str) -> PlanError {
    let why = msg!("an action of a plan has only a type, an id and a config, not `{}`", shortened(name));
    PlanError::new("field-fixed", why)
}

impl PlanChange {
    pub(crate) fn apply(self, edit: &PlanEdit<'_>, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        match self {
            Self::Insert => edit.insert(plan),
            Self::Modify => edit.modify(plan),
            Self::Skip => edit.skip(plan),
            Self::Reorder => edit.reorder(plan),
            Self::NoChange => Ok(edit.actions.to_vec()),
        }
    }
}

/// The fields of an action, and of its config, with their current names (docs/language.md "Texts").
pub fn with_current_names(action: &Map<String, Value>) -> Map<String, Value> {
    let mut action = renamed(action);
    if let Some(Value::Object(config)) = action.get_mut("config") {
        *config = renamed(config);
    }
    action
}

/// If a field appears under several spellings, the value under the current name counts, else the first one.
fn renamed(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut current = Map::new();
    for (name, value) in fields {
        match current_spelling(name) {
            Some(name) if fields.contains_key(&name) || current.contains_key(&name) => {}
            Some(name) => drop(current.insert(name, value.clone())),
            None => drop(current.insert(name.clone(), value.clone())),
        }
    }
    current
}

/// The ids of an action and of the actions inside it.
fn ids_within<'a>(value: &'a Value, ids: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            ids.extend(fields.get("action_id").and_then(Value::as_str));
            fields.values().for_each(|field| ids_within(field, ids));
        }
        Value::Array(items) => items.iter().for_each(|item| ids_within(item, ids)),
        _ => {}
    }
}
