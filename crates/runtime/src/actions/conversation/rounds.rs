//! The rounds of a conversation (docs/actions/, "Rounds"): in each, one message to the person and one answer, which a model
//! call evaluates.

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::actions::conversation::config::ModelConfig;
use crate::actions::conversation::decision::LastDecision;
use crate::actions::conversation::outputs::{hide_sensitive, write_outputs};
use crate::actions::conversation::reading::{content, exit_reason, judged, metadata, outcome, warn_ignored_fields};
use crate::actions::conversation::substitute::{UnusableReply, count_unusable_opening};
use crate::program::action::{Action, WatchedConfig};
use crate::program::exchange::{Ask, Exchange};
use crate::program::flow::{ActionError, Flow, WaitReason};
use crate::program::live_text::reports_crisis;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::output::OutputVariable;
use crate::program::prompt_values::missing;
use crate::program::turn::Turn;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;
use bcc_lang::value::exact::ExactValues;
use bcc_llm::reply::exit::is_yes;

/// How a conversation ends, apart from its maximum number of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnTaking {
    /// After its message, without waiting for an answer.
    NoAnswer,
    /// After any answer, without a second call.
    AnyAnswer,
    /// When a model call decides so; every answer is evaluated.
    JudgedAnswer,
}

/// How a conversation starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningMode {
    /// With the words of the model.
    Model,
    /// With the text of the author, without a call.
    Verbatim,
    /// With the person: nothing is said, and what they write is judged as any other answer.
    Listen,
}

/// An `ai_say` or `ai_ask`.
pub struct Conversation {
    /// Template, outputs and reply.
    pub model: ModelConfig,
    /// The message or the question.
    pub content: Text,
    pub goal: Option<Text>,
    pub tone: Option<Text>,
    pub exit: Option<Text>,
    pub max_rounds: u32,
    pub opening: OpeningMode,
    pub turn_taking: TurnTaking,
    /// `understanding_threshold`: a number for the prompt; the code does not compare it.
    pub understanding_threshold: u32,
    pub watched: Option<WatchedConfig>,
    /// The required outputs that a `hear` list around the action names, if all of them are: it is skipped when they are known.
    pub known_before: Vec<String>,
    /// Whether it asks for what is known all the same, and says so.
    pub ask_again: bool,
}

/// The state of a conversation between turns.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Rounds {
    /// The round that waits for an answer; 0 before the opening.
    round: u32,
    /// The last question or message, which is repeated after an unusable reply.
    asked: String,
    /// The number of openings that could not be used.
    #[serde(skip_serializing_if = "is_zero")]
    unusable_openings: u32,
    /// The number of texts that were sent in place of replies.
    #[serde(skip_serializing_if = "is_zero")]
    substitutes: u32,
    /// Why the last answer did not end the action.
    decision: LastDecision,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature that serde needs
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[async_trait]
impl Action for Conversation {
    fn outputs(&self) -> &[OutputVariable] {
        &self.model.outputs
    }

    fn asks_model(&self) -> bool {
        self.opening == OpeningMode::Model || self.turn_taking == TurnTaking::JudgedAnswer
    }

    /// One turn: the opening, or the evaluation of an answer.
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        let rounds: Rounds = turn.state()?;
        match turn.answer {
            Some(answer) if rounds.round > 0 => self.answered(turn, rounds, answer).await,
            _ if rounds.round > 0 => {
                turn.in_round(rounds.round);
                // The question is repeated after other messages. If a route interrupted the action before the question was
                // sent, it is sent here for the first time.
                if turn.resumed {
                    turn.send_message(None, &rounds.asked);
                }
                Ok(Flow::Wait(WaitReason::Input))
            }
            // After an unusable opening, the answer to the text in its place only leads to the next attempt.
            _ => self.opening(turn, rounds).await,
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

    fn known_before(&self) -> &[String] {
        &self.known_before
    }

    fn watched(&self) -> Option<&WatchedConfig> {
        self.watched.as_ref()
    }
}

impl Conversation {
    async fn opening(&self, turn: &Turn<'_>, rounds: Rounds) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let names = turn.names(turn.last_round(self.max_rounds));
        let said = match self.opening {
            OpeningMode::Listen => String::new(),
            OpeningMode::Model | OpeningMode::Verbatim => turn.text(&self.content, &names)?,
        };
        let done = self.turn_taking == TurnTaking::NoAnswer;
        let reason = done.then_some(ExitReason::ExitCriteriaMet);
        if self.opening != OpeningMode::Model {
            turn.send_message(None, &said);
            let metadata = metadata(None, (1, turn.last_round(self.max_rounds)), reason);
            let outcome = Outcome {
                success: true,
                completed: done,
                ai_message: Some(said.clone()).filter(|said| !said.is_empty()),
                exit_reason: reason,
                metadata,
                ..Outcome::default()
            };
            return self.opened(turn, outcome, said, rounds);
        }
        let question = turn.for_prompt(&self.content, &said, &names)?;
        let ask = Ask { said: &said, ..self.ask(turn, names, &question, None, 1, true)? };
        let mut exchange = turn.exchange(ask).await?;
        warn_ignored_fields(turn, &self.model.outputs, &exchange, done);
        hide_sensitive(turn, &self.model.outputs, &mut exchange);
        let Some(message) = content(&exchange).filter(|text| !text.trim().is_empty()).map(str::to_owned) else {
            return self.not_opened(turn, exchange, rounds);
        };
        turn.send_message(Some(exchange.message_id.clone()), &message);
        let outcome = outcome(exchange, (1, turn.last_round(self.max_rounds)), reason, done, None, ExactValues::new());
        self.opened(turn, outcome, message, rounds)
    }

    fn opened(&self, turn: &Turn<'_>, outcome: Outcome, asked: String, rounds: Rounds) -> Result<Flow, ActionError> {
        if self.turn_taking == TurnTaking::NoAnswer {
            return Ok(Flow::done(outcome));
        }
        turn.report_outcome(outcome);
        turn.store_state(&Rounds { round: 1, asked, ..rounds })?;
        Ok(Flow::Wait(WaitReason::Input))
    }

    /// The opening has no text that can be sent. The person reads a notice, and whatever they write leads to the next attempt.
    fn not_opened(&self, turn: &Turn<'_>, exchange: Exchange, rounds: Rounds) -> Result<Flow, ActionError> {
        let unusable_openings = count_unusable_opening(turn, rounds.unusable_openings)?;
        let reason = UnusableReply::of(&exchange, true);
        let text = self.substitute(turn, reason, &rounds)?;
        turn.send_message(Some(exchange.message_id.clone()), &text);
        turn.report_outcome(outcome(
            exchange,
            (1, turn.last_round(self.max_rounds)),
            None,
            false,
            None,
            ExactValues::new(),
        ));
        turn.store_state(&Rounds { unusable_openings, substitutes: rounds.substitutes + 1, ..rounds })?;
        Ok(Flow::Wait(WaitReason::Input))
    }

    async fn answered(&self, turn: &Turn<'_>, rounds: Rounds, answer: &str) -> Result<Flow, ActionError> {
        let round = rounds.round;
        turn.in_round(round);
        if self.turn_taking == TurnTaking::AnyAnswer {
            let reason = ExitReason::ExitCriteriaMet;
            let metadata = metadata(None, (round, turn.last_round(self.max_rounds)), Some(reason));
            return Ok(Flow::done(Outcome { metadata, ..Outcome::done(reason) }));
        }
        let names = turn.names(turn.last_round(self.max_rounds));
        let said = turn.text(&self.content, &names)?;
        let question = turn.for_prompt(&self.content, &said, &names)?;
        let mut ask = Ask { said: &said, ..self.ask(turn, names, &question, Some(answer), round, false)? };
        ask.names.set_text("last_decision", rounds.decision.text(self.model.language));
        let mut exchange = turn.exchange(ask).await?;
        hide_sensitive(turn, &self.model.outputs, &mut exchange);
        let reply = exchange.reading.as_ref().ok();
        let extracted = reply.map(|reply| write_outputs(turn, &self.model.outputs, reply)).unwrap_or_default();
        // The message of a held-back reply is not sent, so its EXIT would leave the person without an answer.
        let wants_exit = reply.and_then(|reply| reply.object.get("EXIT")).is_some_and(is_yes);
        let crisis = exchange.reading.as_ref().is_ok_and(reports_crisis);
        // A held-back reply does not count, and neither does its EXIT.
        let requested = wants_exit && exchange.held_back.is_none();
        let missing = if requested { self.missing_outputs(turn) } else { vec![] };
        let exit = requested && missing.is_empty();
        let is_last_round = round >= turn.last_round(self.max_rounds);
        let judged = judged(&mut exchange, &self.model.shape, self.model.language);
        let reason = exit_reason(exit, is_last_round, judged.suggestion);
        let decision = rounds.decision.next(missing, judged.suggestion);
        let completed = exit || is_last_round;
        // Words that end the action are no question: if EXIT counts as no, the earlier question is repeated instead. What helps a person in
        // danger is said in any case.
        let closing = wants_exit && !completed && !crisis;
        let reply_text = content(&exchange).filter(|text| !text.trim().is_empty() && !closing).map(str::to_owned);
        let message_id = Some(exchange.message_id.clone());
        let unusable = UnusableReply::of(&exchange, false);
        let limits = (round, turn.last_round(self.max_rounds));
        let mut outcome = outcome(exchange, limits, reason, completed, Some(judged), extracted);
        if closing {
            outcome.ai_message = None;
        }
        let substitute = || self.substitute(turn, unusable, &rounds);
        if completed {
            // Nobody answers a question that is repeated after the last round, but what concerns the person's safety is sent.
            let text = match reply_text {
                None if unusable != UnusableReply::Later => substitute()?,
                text => text.unwrap_or_default(),
            };
            turn.send_message(message_id, &text);
            return Ok(Flow::done(outcome));
        }
        // A route leaves this action, so the message would be a question that is not answered now. It is sent as the question
        // of the next round when the action continues. What helps a person in danger is sent at once.
        let leaves_action = reason.is_some_and(|reason| turn.reasons_with_route.contains(&reason));
        let changes_course = turn.changes_course();
        if leaves_action || changes_course {
            let asked = match (reply_text, unusable) {
                (Some(text), _) if crisis => {
                    turn.send_message(message_id, &text);
                    rounds.asked
                }
                (None, UnusableReply::InCrisis) => {
                    turn.send_message(message_id, &substitute()?);
                    rounds.asked
                }
                (Some(text), _) => text,
                (None, _) => rounds.asked,
            };
            turn.store_state(&Rounds { round: round + 1, asked, decision, ..rounds })?;
            if leaves_action {
                return Ok(Flow::Exit(Box::new(outcome)));
            }
            turn.report_outcome(outcome);
            return Ok(Flow::Wait(WaitReason::Input));
        }
        turn.report_outcome(outcome);
        // The answer belonged to this round; the message starts the next one.
        turn.in_round(round + 1);
        let rounds = match reply_text {
            Some(text) => {
                turn.send_message(message_id, &text);
                Rounds { asked: text, ..rounds }
            }
            // The question that was asked last is still the one to answer.
            None => {
                turn.send_message(message_id, &substitute()?);
                Rounds { substitutes: rounds.substitutes + 1, ..rounds }
            }
        };
        turn.store_state(&Rounds { round: round + 1, decision, ..rounds })?;
        Ok(Flow::Wait(WaitReason::Input))
    }

    fn substitute(&self, turn: &Turn<'_>, reason: UnusableReply, rounds: &Rounds) -> Result<String, ActionError> {
        self.model.substitute(turn, self.max_rounds, reason, (&rounds.asked, rounds.substitutes))
    }

    /// The required outputs for whose lack an EXIT is not accepted.
    fn missing_outputs(&self, turn: &Turn<'_>) -> Vec<String> {
        let missing = missing(turn, &self.model.outputs);
        if !missing.is_empty() {
            let message = msg!("EXIT counts as no: nothing has been extracted yet for {}", Message::names(&missing));
            turn.warn("required-missing", message, None);
        }
        missing
    }

    fn ask<'a>(
        &'a self,
        turn: &Turn<'_>,
        mut names: TemplateNames,
        question: &'a str,
        answer: Option<&'a str>,
        round: u32,
        opening: bool,
    ) -> Result<Ask<'a>, ActionError> {
        for (name, text) in [("tone", &self.tone), ("exit", &self.exit), ("goal", &self.goal)] {
            let rendered = text.as_ref().map(|text| turn.text(text, &names.for_prompt())).transpose()?;
            names.set_text(name, rendered.unwrap_or_default());
        }
        names.set("understanding_threshold", json!(self.understanding_threshold));
        names.set("ask_again", json!(self.ask_again));
        let is_last_round = round >= turn.last_round(self.max_rounds);
        let missing_now = if opening { vec![] } else { missing(turn, &self.model.outputs) };
        Ok(Ask {
            answer,
            round,
            opening,
            // If a route may leave the action, the message is sent later or not at all.
            live: opening || is_last_round || turn.reasons_with_route.is_empty(),
            missing: missing_now,
            ..self.model.ask(question, names)
        })
    }
}
