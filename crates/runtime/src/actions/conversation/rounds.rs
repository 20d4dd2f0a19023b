//! The rounds of a conversation (docs/actions/, "Rounds"): in each, one message to the person and one answer, which a model
//! call evaluates.

use async_trait::async_trait;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::conversation::config::ModelConfig;
use crate::actions::conversation::decision::LastDecision;
use crate::actions::conversation::outputs::{hide_sensitive, write_outputs};
use crate::actions::conversation::reading::{content, exit_reason, judged, metadata, outcome};
use crate::program::action::{Action, WatchedConfig};
use crate::program::exchange::{Ask, Exchange};
use crate::program::flow::{ActionError, Flow, WaitReason};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::prompt_values::missing;
use crate::program::turn::Turn;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;
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
    /// Whether the opening is the text of the author, without a call.
    pub verbatim: bool,
    pub turn_taking: TurnTaking,
    /// `understanding_threshold`: a number for the prompt; the code does not compare it.
    pub understanding_threshold: u32,
    pub watched: Option<WatchedConfig>,
}

/// The state of a conversation between turns.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Rounds {
    /// The round that waits for an answer; 0 before the opening.
    round: u32,
    /// The last message, which is repeated after an unreadable reply.
    asked: String,
    /// Why the last answer did not end the action.
    #[serde(default)]
    decision: LastDecision,
}

#[async_trait]
impl Action for Conversation {
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
            _ => self.opening(turn).await,
        }
    }

    fn takes_advice(&self) -> bool {
        true
    }

    fn watched(&self) -> Option<&WatchedConfig> {
        self.watched.as_ref()
    }
}

impl Conversation {
    async fn opening(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let names = turn.names(turn.last_round(self.max_rounds));
        let question = turn.text(&self.content, &if self.verbatim { names.clone() } else { names.for_prompt() })?;
        let done = self.turn_taking == TurnTaking::NoAnswer;
        let reason = done.then_some(ExitReason::ExitCriteriaMet);
        if self.verbatim {
            turn.send_message(None, &question);
            let metadata = metadata(None, (1, turn.last_round(self.max_rounds)), reason);
            let outcome = Outcome {
                success: true,
                completed: done,
                ai_message: Some(question.clone()),
                exit_reason: reason,
                metadata,
                ..Outcome::default()
            };
            return self.opened(turn, outcome, question);
        }
        let ask = self.ask(turn, names, &question, None, 1, true)?;
        let mut exchange = turn.exchange(ask).await?;
        self.warn_ignored_fields(turn, &exchange, done);
        hide_sensitive(turn, &self.model.outputs, &mut exchange);
        let unreadable = exchange.reading.is_err();
        let message = match content(&exchange) {
            Some(text) if !text.trim().is_empty() => text.to_owned(),
            // There is no earlier question, so no apology is needed: the text of the author is used instead.
            _ => self.own_fallback(turn)?.unwrap_or(question),
        };
        turn.send_message(Some(exchange.message_id.clone()), &message);
        let judged = (done && unreadable).then(|| judged(&mut exchange, &self.model.shape, self.model.language));
        let outcome = outcome(exchange, (1, turn.last_round(self.max_rounds)), reason, done, judged, Map::new());
        self.opened(turn, outcome, message)
    }

    fn opened(&self, turn: &Turn<'_>, outcome: Outcome, asked: String) -> Result<Flow, ActionError> {
        if self.turn_taking == TurnTaking::NoAnswer {
            return Ok(Flow::done(outcome));
        }
        turn.report_outcome(outcome);
        turn.store_state(&Rounds { round: 1, asked, decision: LastDecision::default() })?;
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
        let question = turn.text(&self.content, &names.for_prompt())?;
        let mut ask = self.ask(turn, names, &question, Some(answer), round, false)?;
        ask.names.set_text("last_decision", rounds.decision.text(self.model.language));
        let mut exchange = turn.exchange(ask).await?;
        hide_sensitive(turn, &self.model.outputs, &mut exchange);
        let empty = Map::new();
        let reply = exchange.reading.as_ref().map_or(&empty, |reply| &reply.object);
        let extracted = write_outputs(turn, &self.model.outputs, reply);
        // The message of a held-back reply is not sent, so its EXIT would leave the person without an answer.
        let requested = exchange.held_back.is_none() && reply.get("EXIT").is_some_and(is_yes);
        let missing = if requested { self.missing_outputs(turn) } else { vec![] };
        let exit = requested && missing.is_empty();
        let is_last_round = round >= turn.last_round(self.max_rounds);
        let judged = judged(&mut exchange, &self.model.shape, self.model.language);
        let reason = exit_reason(exit, is_last_round, judged.suggestion);
        let decision = rounds.decision.next(missing, judged.suggestion);
        let reply_text = content(&exchange).filter(|text| !text.trim().is_empty()).map(str::to_owned);
        let message_id = exchange.message_id.clone();
        let outcome = outcome(
            exchange,
            (round, turn.last_round(self.max_rounds)),
            reason,
            exit || is_last_round,
            Some(judged),
            extracted,
        );
        if exit {
            turn.send_message(Some(message_id), reply_text.as_deref().unwrap_or_default());
            return Ok(Flow::done(outcome));
        }
        if is_last_round {
            // The message may be a question that will not be answered. It is only stored in the outcome.
            return Ok(Flow::done(outcome));
        }
        let message = match reply_text {
            Some(text) => text,
            None => self.fallback(turn, &rounds.asked)?,
        };
        // A route leaves this action, so the message would be a question that is not answered now. It is sent as the question
        // of the next round when the action continues.
        let leaves_action = reason.is_some_and(|reason| turn.routed.contains(&reason));
        if leaves_action {
            turn.store_state(&Rounds { round: round + 1, asked: message, decision })?;
            return Ok(Flow::Exit(Box::new(outcome)));
        }
        turn.report_outcome(outcome);
        // The answer belonged to this round; the message starts the next one.
        turn.in_round(round + 1);
        turn.send_message(Some(message_id), &message);
        // If this reply had no message, the earlier question is stored again.
        turn.store_state(&Rounds { round: round + 1, asked: message, decision })?;
        Ok(Flow::Wait(WaitReason::Input))
    }

    /// The required outputs for whose lack an EXIT is not accepted.
    fn missing_outputs(&self, turn: &Turn<'_>) -> Vec<String> {
        let missing = missing(turn, &self.model.outputs);
        if !missing.is_empty() {
            let message = msg!("EXIT counts as no: nothing has been extracted yet for {}", missing.join(", "));
            turn.warn("required-missing", message, None);
        }
        missing
    }

    fn warn_ignored_fields(&self, turn: &Turn<'_>, exchange: &Exchange, done: bool) {
        let Ok(reply) = &exchange.reading else { return };
        let mut ignored: Vec<&str> = Vec::new();
        if !done && reply.object.get("EXIT").is_some_and(is_yes) {
            ignored.push("EXIT");
        }
        let outputs = self.model.outputs.iter().map(|output| output.get.as_str());
        ignored.extend(outputs.filter(|name| reply.object.get(*name).is_some_and(|value| !value.is_null())));
        let suggestion = reply.object.get("progress_suggestion").and_then(Value::as_str);
        if !done && suggestion.is_some_and(|suggestion| suggestion != "continue_needed") {
            ignored.push("progress_suggestion");
        }
        if !ignored.is_empty() {
            let message = msg!("an opening turn has no answer to judge: {} in its reply ignored", ignored.join(", "));
            turn.warn("opening-ignored", message, None);
        }
    }

    fn own_fallback(&self, turn: &Turn<'_>) -> Result<Option<String>, ActionError> {
        self.model.fallback.as_ref().map(|text| turn.text(text, &turn.names(self.max_rounds))).transpose()
    }

    /// The replacement for an unusable reply: the `fallback` of the author, else the apology of the template and the question
    /// again.
    fn fallback(&self, turn: &Turn<'_>, asked: &str) -> Result<String, ActionError> {
        if let Some(own) = self.own_fallback(turn)? {
            return Ok(own);
        }
        let apology = self.model.fallbacks.later.first().map(String::as_str).unwrap_or_default();
        if apology.is_empty() || asked.starts_with(apology) {
            return Ok(asked.to_owned());
        }
        Ok(format!("{apology}\n{asked}"))
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
        Ok(Ask {
            answer,
            round,
            opening,
            // The message of a last round is sent only if EXIT, which follows it, is yes. If a route may leave the action, the
            // message is sent later or not at all.
            live: opening || (round < turn.last_round(self.max_rounds) && turn.routed.is_empty()),
            ..self.model.ask(question, names)
        })
    }
}
