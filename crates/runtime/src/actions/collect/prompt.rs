//! The slots as a prompt of a `collect` shows them (docs/actions/collect.md, "The template").

use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::exact::ExactValue;
use serde_json::{Value, json};

use crate::actions::collect::rounds::{Collect, CollectSlotState, Collecting};
use crate::program::flow::ActionError;
use crate::program::prompt_values::shortened;
use crate::program::turn::Turn;

/// How many slots a prompt says the author's question of: an answer that says more than these leaves the wording of the next question to
/// the model.
const MAX_NEAR: usize = 4;

impl Collect {
    /// The slots for the template, and what a responder that is no model needs of them.
    pub(super) fn shown_slots(
        &self,
        turn: &Turn<'_>,
        state: &Collecting,
        names: &TemplateNames,
    ) -> Result<(Value, Value), ActionError> {
        let (mut shown, mut tasks) = (Vec::new(), Vec::new());
        let mut near = 0;
        for slot in &self.slots {
            let name = slot.name();
            let now = self.state_of(turn, state, slot)?;
            let ask = slot.ask.as_ref().map(|ask| turn.text(ask, &names.for_prompt())).transpose()?;
            let value = turn.variable(name).filter(|value| !value.is_null());
            let is_sensitive = turn.is_sensitive(name);
            let rounds_left = self.last_round(turn).saturating_sub(state.failed.get(name).copied().unwrap_or_default());
            let is_open = matches!(now, CollectSlotState::Missing | CollectSlotState::Unconfirmed);
            let is_near = now != CollectSlotState::Missing || near < MAX_NEAR;
            near += usize::from(is_open);
            shown.push(json!({
                "get": name,
                "define": slot.output.define.as_deref().unwrap_or_default(),
                "type": slot.output.shape(),
                "near": is_near,
                "ask": ask.unwrap_or_default(),
                "state": now.name(),
                "asked": Some(name) == state.slot.as_deref(),
                "last": rounds_left <= 1,
                "value": value.as_ref().map(|value| shortened(value, is_sensitive)),
                "unconfirmed": state.unconfirmed.get(name).map(|value| shortened(value, is_sensitive)),
                "confirm": slot.must_be_confirmed(value.is_some()),
                "when": slot.when.as_ref().map(|when| when.source().to_owned()),
            }));
            if is_open {
                let question = self.question(turn, slot)?;
                let meaning = slot.output.define.clone().unwrap_or_else(|| name.to_owned());
                let confirm = slot.must_be_confirmed(value.is_some());
                let waits = state.unconfirmed.get(name).map(plain);
                tasks.push(json!({
                    "get": name, "question": question, "meaning": meaning, "confirm": confirm, "unconfirmed": waits,
                    "last": rounds_left <= 1,
                }));
            }
        }
        Ok((Value::from(shown), Value::from(tasks)))
    }
}

/// A value as a person would write it.
fn plain(value: &ExactValue) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
