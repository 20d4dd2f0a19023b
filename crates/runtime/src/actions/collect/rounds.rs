//! The rounds of a `collect`: one exchange judges the answer, takes every value that it holds, and words the next question. Which slot is
//! asked next, and when the action ends, is decided here.

use std::collections::BTreeMap;

use async_trait::async_trait;
use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::template::text::Text;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_llm::reply::exit::{is_yes, yes_or_no};
use bcc_llm::reply::read::Reply;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::actions::collect::slots::CollectSlot;
use crate::actions::conversation::config::ModelConfig;
use crate::actions::conversation::outputs::{hide_sensitive, write_outputs};
use crate::actions::conversation::reading::{content, exit_reason, judged, metadata, outcome, warn_ignored_fields};
use crate::actions::conversation::substitute::{UnusableReply, count_unusable_opening};
use crate::program::action::Action;
use crate::program::exchange::{Ask, Exchange};
use crate::program::flow::{ActionError, Flow, WaitReason};
use crate::program::live_text::reports_crisis;
use crate::program::outcome::{ExitReason, Outcome, ProgressSuggestion};
use crate::program::output::OutputVariable;
use crate::program::turn::Turn;

pub(crate) struct Collect {
    pub(crate) model: ModelConfig,
    pub(crate) slots: Vec<CollectSlot>,
    pub(crate) tone: Option<Text>,
    /// How often each slot is asked.
    pub(crate) max_rounds: u32,
    /// Whether the questions are the texts of the author.
    pub(crate) verbatim: bool,
}

/// The state of a `collect` between turns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Collecting {
    /// The round that waits for an answer, or that the opening starts.
    round: u32,
    /// The slot that the last question was about; `None` before it was asked.
    pub(super) slot: Option<String>,
    /// The last question, which is repeated after an unusable reply.
    asked: String,
    unusable_openings: u32,
    substitutes: u32,
    /// How many answers to the question about a slot did not help.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) failed: BTreeMap<String, u32>,
    /// Values that the person has still to confirm.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) unconfirmed: BTreeMap<String, ExactValue>,
}

/// Where a slot stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CollectSlotState {
    Known,
    Unconfirmed,
    Missing,
    /// Its condition does not hold.
    Unwanted,
    /// It was asked `max_rounds` times.
    GivenUp,
}

impl CollectSlotState {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Unconfirmed => "unconfirmed",
            Self::Missing => "missing",
            Self::Unwanted => "unwanted",
            Self::GivenUp => "given_up",
        }
    }
}

#[async_trait]
impl Action for Collect {
    fn outputs(&self) -> &[OutputVariable] {
        &self.model.outputs
    }

    /// One turn: the opening, or the evaluation of an answer.
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        let state: Collecting = turn.state()?;
        match turn.answer {
            Some(answer) if state.slot.is_some() => self.answered(turn, state, answer).await,
            _ if state.slot.is_some() => {
                turn.in_round(state.round);
                if turn.resumed {
                    return self.resumed(turn, state);
                }
                Ok(Flow::Wait(WaitReason::Input))
            }
            _ => self.opening(turn, state).await,
        }
    }

    fn is_free_of_effects(&self) -> bool {
        true
    }

    fn can_be_repeated(&self) -> bool {
        true
    }

    fn takes_advice(&self) -> bool {
        true
    }
}

impl Collect {
    async fn opening(&self, turn: &Turn<'_>, state: Collecting) -> Result<Flow, ActionError> {
        let state = Collecting { round: state.round.max(1), ..state };
        turn.in_round(state.round);
        let Some(slot) = self.next(turn, &state)? else { return self.nothing_to_ask(turn, &state) };
        let limits = (state.round, self.last_round(turn));
        let asked_slot = Some(slot.name().to_owned());
        let question = self.question(turn, slot)?;
        if self.verbatim && !state.unconfirmed.contains_key(slot.name()) {
            turn.send_message(None, &question);
            let metadata = metadata(None, limits, None);
            let ai_message = Some(question.clone());
            turn.report_outcome(Outcome { success: true, ai_message, metadata, ..Outcome::default() });
            return self.wait(turn, Collecting { slot: asked_slot, asked: question, ..state });
        }
        let ask = Ask { said: &question, opening: true, ..self.ask(turn, &state, slot, &question, None)? };
        let mut exchange = turn.exchange(ask).await?;
        warn_ignored_fields(turn, &self.model.outputs, &exchange, false);
        hide_sensitive(turn, &self.model.outputs, &mut exchange);
        let Some(message) = content(&exchange).filter(|text| !text.trim().is_empty()).map(str::to_owned) else {
            return self.not_opened(turn, exchange, state);
        };
        turn.send_message(Some(exchange.message_id.clone()), &message);
        turn.report_outcome(outcome(exchange, limits, None, false, None, ExactValues::new()));
        self.wait(turn, Collecting { slot: asked_slot, asked: message, ..state })
    }

    /// Everything is known, or was asked in vain before something interrupted the action.
    fn nothing_to_ask(&self, turn: &Turn<'_>, state: &Collecting) -> Result<Flow, ActionError> {
        let reason = self.end_reason(turn, state)?;
        let metadata = metadata(None, (state.round.max(1), self.last_round(turn)), Some(reason));
        Ok(Flow::done(Outcome { metadata, ..Outcome::done(reason) }))
    }

    /// The action goes on after something else: what was learned meanwhile is not asked.
    fn resumed(&self, turn: &Turn<'_>, state: Collecting) -> Result<Flow, ActionError> {
        let Some(slot) = self.next(turn, &state)? else { return self.nothing_to_ask(turn, &state) };
        if state.slot.as_deref() == Some(slot.name()) {
            turn.send_message(None, &state.asked);
            return Ok(Flow::Wait(WaitReason::Input));
        }
        // The question that was worded is about a slot that is known now.
        turn.store_state(&Collecting { slot: None, ..state })?;
        Ok(Flow::Again)
    }

    fn not_opened(&self, turn: &Turn<'_>, exchange: Exchange, state: Collecting) -> Result<Flow, ActionError> {
        let unusable_openings = count_unusable_opening(turn, state.unusable_openings)?;
        let reason = UnusableReply::of(&exchange, true);
        let text = self.model.substitute(turn, self.max_rounds, reason, (&state.asked, state.substitutes))?;
        turn.send_message(Some(exchange.message_id.clone()), &text);
        let limits = (state.round, self.last_round(turn));
        turn.report_outcome(outcome(exchange, limits, None, false, None, ExactValues::new()));
        self.wait(turn, Collecting { unusable_openings, substitutes: state.substitutes + 1, ..state })
    }

    async fn answered(&self, turn: &Turn<'_>, mut state: Collecting, answer: &str) -> Result<Flow, ActionError> {
        turn.in_round(state.round);
        let asked = self.slots.iter().find(|slot| Some(slot.name()) == state.slot.as_deref());
        let asked = asked.or(self.slots.first()).ok_or_else(no_slots)?;
        let question = self.question(turn, asked)?;
        let ask = Ask { said: &question, ..self.ask(turn, &state, asked, &question, Some(answer))? };
        let mut exchange = turn.exchange(ask).await?;
        hide_sensitive(turn, &self.model.outputs, &mut exchange);
        let reply = exchange.reading.as_ref().ok();
        let (extracted, helped) = reply.map(|reply| self.take(turn, &mut state, reply)).unwrap_or_default();
        let wants_exit = reply.and_then(|reply| reply.object.get("EXIT")).is_some_and(is_yes);
        let exits = wants_exit && exchange.held_back.is_none() && self.may_exit(turn, &state)?;
        let judged = judged(&mut exchange, &self.model.shape, self.model.language);
        let suggestion = judged.suggestion;
        if !helped && suggestion != ProgressSuggestion::OffTopic {
            *state.failed.entry(asked.name().to_owned()).or_default() += 1;
            if self.is_exhausted(turn, &state, asked) {
                // Without a yes, the value is not stored.
                state.unconfirmed.remove(asked.name());
            }
        }
        let next = if exits { None } else { self.next(turn, &state)? };
        let reason = match next {
            // The person may leave open what is not required.
            None if exits => match self.end_reason(turn, &state)? {
                ExitReason::MaxRoundsReached => Some(ExitReason::ExitCriteriaMet),
                reason => Some(reason),
            },
            None => Some(self.end_reason(turn, &state)?),
            Some(_) => exit_reason(false, false, suggestion),
        };
        let message_id = Some(exchange.message_id.clone());
        let unusable = UnusableReply::of(&exchange, false);
        let is_readable = exchange.reading.is_ok();
        let crisis = exchange.reading.as_ref().is_ok_and(reports_crisis);
        // Words that end the action are no question, if something is still to be asked. What helps a person in danger is said in any case.
        let closing = wants_exit && next.is_some() && !crisis;
        let said = content(&exchange).map(str::trim).filter(|text| !text.is_empty() && !closing).map(str::to_owned);
        let limits = (state.round, self.last_round(turn));
        let mut outcome = outcome(exchange, limits, reason, next.is_none(), Some(judged), extracted);
        if closing {
            outcome.ai_message = None;
        }
        let substitute = |state: &Collecting| {
            self.model.substitute(turn, self.max_rounds, unusable, (&state.asked, state.substitutes))
        };
        let Some(slot) = next else {
            let text = match said {
                None if unusable != UnusableReply::Later => substitute(&state)?,
                said => said.unwrap_or_default(),
            };
            turn.send_message(message_id, &text);
            return Ok(Flow::done(outcome));
        };
        state.round += 1;
        let is_confirmation = state.unconfirmed.contains_key(slot.name());
        let asks_anew = state.slot.as_deref() != Some(slot.name());
        state.slot = Some(slot.name().to_owned());
        let leaves_action = reason.is_some_and(|reason| turn.reasons_with_route.contains(&reason));
        let no_question = said.is_none()
            && is_readable
            && unusable != UnusableReply::InCrisis
            && (closing || (unusable == UnusableReply::Later && asks_anew));
        let text = match said {
            Some(said) if self.verbatim && !is_confirmation => format!("{said}\n{}", self.question(turn, slot)?),
            Some(said) => said,
            None if no_question && self.verbatim && !is_confirmation => self.question(turn, slot)?,
            None if no_question && !leaves_action => {
                // The model has taken what was said, but asks nothing, as when a slot is wanted only because of this answer, or when it
                // believes that everything is known.
                turn.report_outcome(outcome);
                turn.store_state(&Collecting { slot: None, ..state })?;
                return Ok(Flow::Again);
            }
            None => {
                let text = substitute(&state)?;
                state.substitutes += 1;
                if leaves_action {
                    // The numbers of hotlines must reach the person before the route is followed.
                    if unusable == UnusableReply::InCrisis {
                        turn.send_message(message_id, &text);
                    }
                    // Nothing was asked about another slot yet.
                    state.slot = state.slot.filter(|_| !asks_anew);
                    turn.store_state(&state)?;
                    return Ok(Flow::Exit(Box::new(outcome)));
                }
                turn.report_outcome(outcome);
                turn.in_round(state.round);
                turn.send_message(message_id, &text);
                return self.wait(turn, state);
            }
        };
        // A route leaves this action: the question is sent when the action goes on. What helps a person in danger is sent at once.
        if leaves_action || turn.changes_course() {
            if crisis {
                turn.send_message(message_id, &text);
                // These words were no question.
                state.slot = state.slot.filter(|_| !asks_anew);
            } else {
                state.asked = text;
            }
            turn.store_state(&state)?;
            if leaves_action {
                return Ok(Flow::Exit(Box::new(outcome)));
            }
            turn.report_outcome(outcome);
            return Ok(Flow::Wait(WaitReason::Input));
        }
        turn.report_outcome(outcome);
        turn.in_round(state.round);
        turn.send_message(message_id, &text);
        state.asked = text;
        self.wait(turn, state)
    }

    fn wait(&self, turn: &Turn<'_>, state: Collecting) -> Result<Flow, ActionError> {
        turn.store_state(&state)?;
        Ok(Flow::Wait(WaitReason::Input))
    }

    /// Takes the values of a reply: stores them, or keeps those that must be confirmed. Returns what was stored, as it may be shown, and
    /// whether the answer helped: it gave a value that is new, or confirmed one.
    fn take(&self, turn: &Turn<'_>, state: &mut Collecting, reply: &Reply) -> (ExactValues, bool) {
        let before = state.unconfirmed.clone();
        let mut helped = false;
        let mut direct: Vec<OutputVariable> = Vec::new();
        for output in self.model.outputs.iter() {
            let Some(value) = reply.field(&output.get).filter(|value| !value.is_null()) else { continue };
            let known = turn.variable(&output.get).filter(|known| !known.is_null());
            if known.as_ref() == Some(&value) {
                // Said again, which models do with all that they know, or taken back to what it was.
                helped |= state.unconfirmed.remove(&output.get).is_some();
                continue;
            }
            let slot = self.slots.iter().find(|slot| slot.name() == output.get);
            if slot.is_some_and(|slot| slot.must_be_confirmed(known.is_some())) {
                // It is not stored yet, but must not be shown either.
                if turn.is_sensitive(&output.get) {
                    turn.hide(value.clone());
                }
                // One that waits already is new only if it is confirmed below.
                helped |= before.get(&output.get) != Some(&value);
                state.unconfirmed.insert(output.get.clone(), value);
            } else {
                direct.push(output.clone());
            }
        }
        let mut extracted = write_outputs(turn, &direct, reply);
        let confirmed = reply.object.get("confirmed").and_then(yes_or_no);
        for (name, value) in before {
            // The answer is about the value that was asked for. One that is said again is confirmed, and one that this answer replaced is
            // another one.
            let is_repeated = reply.field(&name).as_ref() == Some(&value);
            let is_asked = state.slot.as_deref() == Some(name.as_str());
            let confirmed = confirmed.filter(|_| is_asked).or(is_repeated.then_some(true));
            if confirmed.is_none() || state.unconfirmed.get(&name) != Some(&value) {
                continue;
            }
            state.unconfirmed.remove(&name);
            // After a no, the slot is asked for once more.
            if confirmed == Some(true) {
                helped = true;
                state.failed.remove(&name);
                match turn.set(&name, value, None) {
                    Ok(shown) => {
                        extracted.insert(name, shown);
                    }
                    Err(error) => turn.warn("output-not-written", error.to_message(), None),
                }
            }
        }
        helped |= !extracted.is_empty();
        (extracted, helped)
    }

    /// Whether the model's EXIT is accepted: no required slot is missing, and nothing waits to be confirmed.
    fn may_exit(&self, turn: &Turn<'_>, state: &Collecting) -> Result<bool, ActionError> {
        let missing = self.missing(turn, state)?;
        if !missing.is_empty() {
            let message = msg!("EXIT counts as no: nothing has been extracted yet for {}", Message::names(&missing));
            turn.warn("required-missing", message, None);
        }
        Ok(missing.is_empty() && state.unconfirmed.is_empty())
    }

    /// The required slots that are still to be asked.
    fn missing(&self, turn: &Turn<'_>, state: &Collecting) -> Result<Vec<String>, ActionError> {
        let mut missing = Vec::new();
        for slot in self.slots.iter().filter(|slot| slot.output.required) {
            if self.state_of(turn, state, slot)? == CollectSlotState::Missing {
                missing.push(slot.name().to_owned());
            }
        }
        Ok(missing)
    }

    /// The next slot to ask about: one whose value must be confirmed, or else the first missing one.
    fn next(&self, turn: &Turn<'_>, state: &Collecting) -> Result<Option<&CollectSlot>, ActionError> {
        let mut missing = None;
        for slot in &self.slots {
            match self.state_of(turn, state, slot)? {
                CollectSlotState::Unconfirmed => return Ok(Some(slot)),
                CollectSlotState::Missing => missing = missing.or(Some(slot)),
                CollectSlotState::Known | CollectSlotState::Unwanted | CollectSlotState::GivenUp => {}
            }
        }
        Ok(missing)
    }

    pub(super) fn state_of(
        &self,
        turn: &Turn<'_>,
        state: &Collecting,
        slot: &CollectSlot,
    ) -> Result<CollectSlotState, ActionError> {
        if state.unconfirmed.contains_key(slot.name()) {
            return Ok(CollectSlotState::Unconfirmed);
        }
        if turn.variable(slot.name()).is_some_and(|value| !value.is_null()) {
            return Ok(CollectSlotState::Known);
        }
        if let Some(when) = &slot.when
            && !turn.holds(when)?
        {
            return Ok(CollectSlotState::Unwanted);
        }
        Ok(if self.is_exhausted(turn, state, slot) { CollectSlotState::GivenUp } else { CollectSlotState::Missing })
    }

    fn is_exhausted(&self, turn: &Turn<'_>, state: &Collecting, slot: &CollectSlot) -> bool {
        state.failed.get(slot.name()).is_some_and(|failed| *failed >= self.last_round(turn))
    }

    pub(super) fn last_round(&self, turn: &Turn<'_>) -> u32 {
        turn.last_round(self.max_rounds)
    }

    /// Why the action ends when there is nothing left to ask.
    fn end_reason(&self, turn: &Turn<'_>, state: &Collecting) -> Result<ExitReason, ActionError> {
        let mut reason = ExitReason::ExitCriteriaMet;
        for slot in &self.slots {
            match self.state_of(turn, state, slot)? {
                CollectSlotState::GivenUp if slot.output.required => return Ok(ExitReason::SlotsMissing),
                CollectSlotState::GivenUp => reason = ExitReason::MaxRoundsReached,
                _ => {}
            }
        }
        Ok(reason)
    }

    /// The question about a slot: the author's, or else what it means.
    pub(super) fn question(&self, turn: &Turn<'_>, slot: &CollectSlot) -> Result<String, ActionError> {
        match &slot.ask {
            Some(ask) => turn.text(ask, &turn.names(self.last_round(turn))),
            None => Ok(slot.output.define.clone().unwrap_or_else(|| slot.name().to_owned())),
        }
    }

    fn ask<'a>(
        &'a self,
        turn: &Turn<'_>,
        state: &Collecting,
        asked: &CollectSlot,
        question: &'a str,
        answer: Option<&'a str>,
    ) -> Result<Ask<'a>, ActionError> {
        let mut names = turn.names(self.last_round(turn));
        let tone = self.tone.as_ref().map(|text| turn.text(text, &names.for_prompt())).transpose()?;
        names.set_text("tone", tone.unwrap_or_default());
        names.set_text("exit", "");
        names.set("understanding_threshold", Value::Null);
        names.set_text("delivery", if self.verbatim { "verbatim" } else { "model" });
        names.set_text("last_question", state.asked.as_str());
        let (shown, tasks) = self.shown_slots(turn, state, &names)?;
        // Whether this answer can make another slot wanted.
        let is_conditional = self.slots.iter().any(|slot| slot.when.is_some());
        names.set("slots", shown);
        let heard = self.model.outputs.iter().filter(|output| output.heard);
        let heard = heard.map(|output| json!({ "get": output.get, "define": output.define.as_deref().unwrap_or_default(), "type": output.shape() }));
        names.set("heard", heard.collect());
        let missing = if answer.is_some() { self.missing(turn, state)? } else { vec![] };
        let inputs = vec![
            ("asked".to_owned(), Value::from(asked.name())),
            ("questions".to_owned(), tasks),
            ("verbatim".to_owned(), Value::from(self.verbatim)),
            ("conditional".to_owned(), Value::from(is_conditional)),
        ];
        // In the author's words, the question follows what the model says. And words that turn out to end the action too early are not sent.
        let is_certain = !is_conditional && self.slots.iter().all(|slot| !slot.must_be_confirmed(true));
        let live = !self.verbatim && (answer.is_none() || (is_certain && turn.reasons_with_route.is_empty()));
        Ok(Ask { answer, round: state.round, live, missing, inputs, ..self.model.ask(question, names) })
    }
}

fn no_slots() -> ActionError {
    ActionError::failed("frame-unreadable", msg!("the action has no slots"))
}
