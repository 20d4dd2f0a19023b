//! What the four changes of a plan do to the list of a topic's actions, and what each of them refuses.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value};

use crate::program::orchestration::plan::{Cursor, OrchestrationPlan, PlanChange, PlanError, PlanPosition};
use bcc_lang::script::fields::shortened;
use bcc_lang::script::legacy_fields::{is_older_output, todays_spelling};
use bcc_lang::value::depth::deeper_than;

/// The condition of an action that a plan skips. The action stays in the list, so that whatever names it stays right.
pub const NEVER: &str = "false";

/// The most bytes of JSON that a plan may bring along.
const MOST_BYTES: usize = 16 * 1024;

/// How deep lists and mappings of a plan may stand in one another.
const MOST_DEPTH: usize = 16;

/// Fields of an action that no plan changes: they say what it is and what the script does around it.
const FIXED: [&str; 6] = ["action_type", "action_id", "condition", "on_exit", "on_interrupted", "config"];

/// What of an action leads somewhere, or keeps it from running: a plan brings none of it along.
const LEADING: [&str; 3] = ["condition", "on_exit", "on_interrupted"];

/// What a plan may change of the action that is being talked about.
const OF_THE_CURRENT: [&str; 2] = ["content", "exit"];

pub fn id_of(action: &Value) -> &str {
    action.get("action_id").and_then(Value::as_str).unwrap_or_default()
}

/// Whether nothing will ever run the action: an earlier plan skipped it, or its author wrote it off.
pub fn is_skipped(action: &Value) -> bool {
    match action.get("condition") {
        Some(Value::Bool(holds)) => !holds,
        Some(Value::String(text)) => text.trim() == NEVER,
        _ => false,
    }
}

/// The list that a plan is executed on, with where the visit stands and where it stood when the plan was asked for.
pub struct PlanEdit<'a> {
    pub actions: &'a [Value],
    /// Where the visit stands now.
    pub now: Cursor,
    /// Where it stood.
    pub then: Cursor,
}

impl PlanEdit<'_> {
    /// Refuses what would make the topic grow without bound or nest without end.
    pub fn bounded(plan: &OrchestrationPlan) -> Result<(), PlanError> {
        let modifications = plan.modifications.clone().map(Value::Object);
        for part in plan.new_action.iter().chain(modifications.iter()) {
            if deeper_than(part, MOST_DEPTH) {
                let why = msg!("the content of the plan is nested more than {MOST_DEPTH} levels deep");
                return Err(PlanError::new("plan-too-large", why));
            }
            if part.to_string().len() > MOST_BYTES {
                let why = msg!("the content of the plan is longer than {MOST_BYTES} bytes");
                return Err(PlanError::new("plan-too-large", why));
            }
        }
        Ok(())
    }

    /// `insert`: the new action stands at the position, before what stands there now.
    pub fn insert(&self, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        let new = plan.new_action.as_ref().and_then(Value::as_object);
        let new = new.ok_or_else(|| incomplete("insert", "new_action"))?;
        let new = Value::Object(in_todays_spelling(new));
        let id = id_of(&new).to_owned();
        if id.is_empty() {
            return Err(incomplete("insert", "new_action.action_id"));
        }
        leads_nowhere(&new)?;
        let mut taken = Vec::new();
        self.actions.iter().for_each(|action| ids_within(action, &mut taken));
        if taken.contains(&id.as_str()) {
            let why = msg!("the id `{}` is already used by another action of this topic", shortened(&id));
            return Err(PlanError::new("id-taken", why));
        }
        let at = match &plan.target_position {
            None => self.then.first_to_come(),
            Some(PlanPosition::Named(name)) if name == "after_current" => self.then.first_to_come(),
            Some(PlanPosition::Named(name)) if name == "before_next" => {
                self.next_of(self.then).unwrap_or(self.actions.len())
            }
            // Behind the last one is a place, though no action stands there.
            Some(PlanPosition::Index(index)) if *index == self.actions.len() => *index,
            Some(position) => self.named(position)?,
        };
        if at < self.now.first_to_come() {
            return Err(too_late(&Message::word("the position for the new action has already been passed")));
        }
        let mut list = self.actions.to_vec();
        list.insert(at.min(list.len()), new);
        Ok(list)
    }

    /// `modify`: fields of the config of one action.
    pub fn modify(&self, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        let given = plan.modifications.as_ref().filter(|given| !given.is_empty());
        let given = given.ok_or_else(|| incomplete("modify", "modifications"))?;
        // Models write the fields with and without the `config` around them; both say the same.
        let given = match given.get("config") {
            Some(Value::Object(config)) if given.len() == 1 => config,
            _ => given,
        };
        let fields = renamed(given);
        if let Some(fixed) = fields.keys().find(|name| FIXED.contains(&name.as_str())) {
            let why = msg!("a plan can change only fields of an action's config, not its `{fixed}`");
            return Err(PlanError::new("field-fixed", why));
        }
        cases_lead_nowhere(&fields)?;
        let at = match &plan.target_position {
            None if self.then.begun => self.then.at,
            None => return Err(incomplete("modify", "target_position")),
            Some(position) => self.target(position)?,
        };
        if at < self.now.at {
            return Err(self.passed(at));
        }
        let is_current = self.now.begun && at == self.now.at;
        if is_current && let Some(other) = fields.keys().find(|name| !OF_THE_CURRENT.contains(&name.as_str())) {
            let why =
                msg!("only `content` and `exit` of the current action can be changed, not its `{}`", shortened(other));
            return Err(PlanError::new("field-fixed", why));
        }
        self.not_skipped(at)?;
        let mut list = self.actions.to_vec();
        if let Some(action) = list.get_mut(at).and_then(Value::as_object_mut) {
            let config = action.entry("config").or_insert_with(|| Value::Object(Map::new()));
            if !config.is_object() {
                *config = Value::Object(Map::new());
            }
            if let Some(config) = config.as_object_mut() {
                if fields.contains_key("output") {
                    config.retain(|name, _| !is_older_output(name));
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

    /// `skip`: one action to come does not run. The last thing that a topic would do cannot be skipped.
    pub fn skip(&self, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        let position = plan.target_position.as_ref().ok_or_else(|| incomplete("skip", "target_position"))?;
        let at = self.target(position)?;
        if self.now.begun && at == self.now.at {
            let why = "the current action cannot be skipped: it ends by its own exit, which `modify` can change";
            return Err(PlanError::new("not-to-come", why));
        }
        if at < self.now.first_to_come() {
            return Err(self.passed(at));
        }
        self.not_skipped(at)?;
        let mut list = self.actions.to_vec();
        if let Some(action) = list.get_mut(at).and_then(Value::as_object_mut) {
            action.insert("condition".to_owned(), Value::from(NEVER));
        }
        let left = list.iter().skip(self.now.first_to_come()).any(|action| !is_skipped(action));
        if !self.now.begun && !left {
            return Err(PlanError::new("empties-topic", "nothing in the topic would be left to run"));
        }
        Ok(list)
    }

    /// `reorder`: the actions to come that are not skipped, each once. Skipped ones stay where they are.
    pub fn reorder(&self, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        let order = plan.order.as_ref().filter(|order| !order.is_empty());
        let order = order.ok_or_else(|| incomplete("reorder", "order"))?;
        let mut chosen: Vec<&Value> = Vec::with_capacity(order.len());
        for (place, id) in order.iter().enumerate() {
            if order.iter().take(place).any(|earlier| earlier == id) {
                let why = msg!("`order` names `{}` twice", shortened(id));
                return Err(PlanError::new("order-incomplete", why));
            }
            let at = self.by_id(id)?;
            if at < self.now.first_to_come() {
                return Err(self.passed(at));
            }
            self.not_skipped(at)?;
            chosen.extend(self.actions.get(at));
        }
        let mut list = self.actions.to_vec();
        let mut chosen = chosen.into_iter();
        for slot in list.iter_mut().skip(self.now.first_to_come()).filter(|action| !is_skipped(action)) {
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

    /// The first action to come, seen from `cursor`, that is not skipped.
    fn next_of(&self, cursor: Cursor) -> Option<usize> {
        let first = cursor.first_to_come();
        self.actions.iter().skip(first).position(|action| !is_skipped(action)).map(|offset| first + offset)
    }

    /// The action that `modify` or `skip` means: with `after_current` and `before_next` the next one that would run.
    fn target(&self, position: &PlanPosition) -> Result<usize, PlanError> {
        match position {
            PlanPosition::Named(name) if name == "after_current" || name == "before_next" => self
                .next_of(self.then)
                .ok_or_else(|| PlanError::new("not-to-come", "the topic has no remaining actions")),
            position => self.named(position),
        }
    }

    /// The action of an id or an index. A text of digits that is no id is an index.
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

    /// Says of an action that it is not to come any more.
    fn passed(&self, at: usize) -> PlanError {
        let id = self.actions.get(at).map(id_of).unwrap_or_default();
        if self.now.begun && at == self.now.at {
            return too_late(&msg!("`{id}` has already started"));
        }
        too_late(&msg!("`{id}` is done"))
    }
}

fn too_late(what: &Message) -> PlanError {
    PlanError::new("too-late", msg!("{what}; a plan can change only what has not run yet"))
}

fn incomplete(change: &str, field: &str) -> PlanError {
    PlanError::new("plan-incomplete", msg!("a plan to {change} needs `{field}`"))
}

/// Refuses an action that a plan brings along when it, or one inside it, would say where the conversation goes. Where that
/// goes, up to the session's end, is decided by the script alone.
fn leads_nowhere(action: &Value) -> Result<(), PlanError> {
    let Some(action) = action.as_object() else { return Ok(()) };
    let action = in_todays_spelling(action);
    if let Some(leading) = LEADING.iter().find(|name| action.contains_key(**name)) {
        return Err(brings(leading));
    }
    action.get("config").and_then(Value::as_object).map_or(Ok(()), cases_lead_nowhere)
}

/// The same of the cases in a config. What is misspelt or not where it must be does not check anyway.
fn cases_lead_nowhere(config: &Map<String, Value>) -> Result<(), PlanError> {
    let cases = config.get("cases").and_then(Value::as_array).into_iter().flatten();
    for case in cases.chain(config.get("else")) {
        if case.get("goto").is_some() {
            return Err(brings("goto"));
        }
        let actions = case.get("actions").and_then(Value::as_array);
        actions.into_iter().flatten().try_for_each(leads_nowhere)?;
    }
    Ok(())
}

fn brings(name: &str) -> PlanError {
    let why = msg!("a plan must not contain `{name}`: only the script decides where the conversation goes");
    PlanError::new("field-fixed", why)
}

impl PlanChange {
    pub(crate) fn apply(self, edit: &PlanEdit<'_>, plan: &OrchestrationPlan) -> Result<Vec<Value>, PlanError> {
        match self {
            Self::Insert => edit.insert(plan),
            Self::Modify => edit.modify(plan),
            Self::Skip => edit.skip(plan),
            Self::Reorder => edit.reorder(plan),
        }
    }
}

/// The fields of an action with today's names, those of its config too (docs/language.md "Texts").
pub fn in_todays_spelling(action: &Map<String, Value>) -> Map<String, Value> {
    let mut action = renamed(action);
    if let Some(Value::Object(config)) = action.get_mut("config") {
        *config = renamed(config);
    }
    action
}

/// A field under several spellings keeps what stands under today's name, else what stands first.
fn renamed(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut today = Map::new();
    for (name, value) in fields {
        match todays_spelling(name) {
            Some(name) if fields.contains_key(&name) || today.contains_key(&name) => {}
            Some(name) => drop(today.insert(name, value.clone())),
            None => drop(today.insert(name.clone(), value.clone())),
        }
    }
    today
}

/// The ids of an action and of those that stand inside it.
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
