//! The rounds of a talk (docs/actions/, "Rounds"): one message of ours and one answer, judged by a model call.

use async_trait::async_trait;
use bcc_lang::message::msg;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::actions::conversation::config::ModelConfig;
use crate::actions::conversation::outputs::{hide_sensitive, still_missing, write_outputs};
use crate::actions::conversation::reading::{content, exit_reason, judged, metadata, outcome};
use crate::program::action::{Action, WatchedConfig};
use crate::program::exchange::{Ask, Exchange};
use crate::program::flow::{ActionError, Flow, WaitReason};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;
use bcc_llm::reply::exit::is_yes;

/// How a talk ends, besides its rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnTaking {
    /// It says its message and is done.
    Not,
    /// Any answer ends it, without a second call.
    ForAnyAnswer,
    /// Every answer is judged by a model call.
    AndJudges,
}

/// An `ai_say` or `ai_ask`.
pub struct Conversation {
    /// Template, outputs, reply.
    pub model: ModelConfig,
    /// What is to be said or asked.
    pub content: Text,
    pub goal: Option<Text>,
    pub tone: Option<Text>,
    pub exit: Option<Text>,
    pub max_rounds: u32,
    /// Whether the opening is said in the author's words, without a call.
    pub verbatim: bool,
    pub listens: TurnTaking,
    /// `understanding_threshold`: a number for the prompt; no code compares it.
    pub understanding_threshold: u32,
    pub watched: Option<WatchedConfig>,
}

/// What a talk remembers between turns.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Rounds {
    /// The round that waits for its answer; 0 before the opening.
    round: u32,
    /// What was said last, to be said again after a reply that could not be read.
    asked: String,
}

#[async_trait]
impl Action for Conversation {
    /// One turn: the opening, or the judgement of an answer.
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        let rounds: Rounds = turn.state()?;
        match turn.answer {
            Some(answer) if rounds.round > 0 => self.answered(turn, rounds, answer).await,
            _ if rounds.round > 0 => {
                turn.in_round(rounds.round);
                // After something else was said the person must hear again what is asked; or for the first time, when a
                // route stepped in before it could be said.
                if turn.resumed {
                    turn.say(None, &rounds.asked);
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
        let question = turn.text(&self.content, &names)?;
        let done = self.listens == TurnTaking::Not;
        let reason = done.then_some(ExitReason::ExitCriteriaMet);
        if self.verbatim {
            turn.say(None, &question);
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
        self.note_what_an_opening_ignores(turn, &exchange, done);
        hide_sensitive(turn, &self.model.outputs, &mut exchange);
        let unreadable = exchange.reading.is_err();
        let said = match content(&exchange) {
            Some(words) if !words.trim().is_empty() => words.to_owned(),
            // Nothing was asked yet, so there is nothing to apologise for: the author's words stand in.
            _ => self.own_fallback(turn)?.unwrap_or(question),
        };
        turn.say(Some(exchange.message_id.clone()), &said);
        let judged = (done && unreadable).then(|| judged(&mut exchange, &self.model.shape));
        let outcome = outcome(exchange, (1, turn.last_round(self.max_rounds)), reason, done, judged, Map::new());
        self.opened(turn, outcome, said)
    }

    fn opened(&self, turn: &Turn<'_>, outcome: Outcome, asked: String) -> Result<Flow, ActionError> {
        if self.listens == TurnTaking::Not {
            return Ok(Flow::done(outcome));
        }
        turn.report(outcome);
        turn.keep(&Rounds { round: 1, asked })?;
        Ok(Flow::Wait(WaitReason::Input))
    }

    async fn answered(&self, turn: &Turn<'_>, rounds: Rounds, answer: &str) -> Result<Flow, ActionError> {
        let round = rounds.round;
        turn.in_round(round);
        if self.listens == TurnTaking::ForAnyAnswer {
            let reason = ExitReason::ExitCriteriaMet;
            let metadata = metadata(None, (round, turn.last_round(self.max_rounds)), Some(reason));
            return Ok(Flow::done(Outcome { metadata, ..Outcome::done(reason) }));
        }
        let names = turn.names(turn.last_round(self.max_rounds));
        let question = turn.text(&self.content, &names)?;
        let ask = self.ask(turn, names, &question, Some(answer), round, false)?;
        let mut exchange = turn.exchange(ask).await?;
        hide_sensitive(turn, &self.model.outputs, &mut exchange);
        let empty = Map::new();
        let reply = exchange.reading.as_ref().map_or(&empty, |reply| &reply.object);
        let extracted = write_outputs(turn, &self.model.outputs, reply);
        // Of a reply that is held back nothing is said, so its EXIT would leave the person without an answer.
        let exit =
            exchange.held_back.is_none() && reply.get("EXIT").is_some_and(is_yes) && self.nothing_is_missing(turn);
        let last = round >= turn.last_round(self.max_rounds);
        let judged = judged(&mut exchange, &self.model.shape);
        let reason = exit_reason(exit, last, judged.suggestion);
        let words = content(&exchange).filter(|words| !words.trim().is_empty()).map(str::to_owned);
        let message_id = exchange.message_id.clone();
        let outcome =
            outcome(exchange, (round, turn.last_round(self.max_rounds)), reason, exit || last, Some(judged), extracted);
        if exit {
            turn.say(Some(message_id), words.as_deref().unwrap_or_default());
            return Ok(Flow::done(outcome));
        }
        if last {
            // The words would be a question that nobody waits for: the outcome keeps them.
            return Ok(Flow::done(outcome));
        }
        let said = match words {
            Some(words) => words,
            None => self.fallback(turn, &rounds.asked)?,
        };
        // A route leads away from here: the words would be a question that nobody waits for. They are said when the
        // action goes on, as the question of its next round.
        let led_away = reason.is_some_and(|reason| turn.routed.contains(&reason));
        if led_away {
            turn.keep(&Rounds { round: round + 1, asked: said })?;
            return Ok(Flow::Exit(Box::new(outcome)));
        }
        turn.report(outcome);
        // The answer was of this round; what is said now begins the next.
        turn.in_round(round + 1);
        turn.say(Some(message_id), &said);
        // What was asked stays what was asked when this reply said nothing of its own.
        turn.keep(&Rounds { round: round + 1, asked: said })?;
        Ok(Flow::Wait(WaitReason::Input))
    }

    fn nothing_is_missing(&self, turn: &Turn<'_>) -> bool {
        let missing = still_missing(turn, &self.model.outputs);
        if !missing.is_empty() {
            let message = msg!("EXIT counts as no: nothing has been extracted yet for {}", missing.join(", "));
            turn.warn("required-missing", message, None);
        }
        missing.is_empty()
    }

    fn note_what_an_opening_ignores(&self, turn: &Turn<'_>, exchange: &Exchange, done: bool) {
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

    /// What is said in the place of a reply: the author's `fallback`, else the template's apology and the question again.
    fn fallback(&self, turn: &Turn<'_>, asked: &str) -> Result<String, ActionError> {
        if let Some(own) = self.own_fallback(turn)? {
            return Ok(own);
        }
        let apology = self.model.apology.trim();
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
            let rendered = text.as_ref().map(|text| turn.text(text, &names)).transpose()?;
            names.give_text(name, rendered.unwrap_or_default());
        }
        names.give("understanding_threshold", json!(self.understanding_threshold));
        Ok(Ask {
            answer,
            round,
            opening,
            // The words of a last round are said only when EXIT turns out to be yes, which comes after them.
            // Those that a route may lead away from are said later, or never.
            live: opening || (round < turn.last_round(self.max_rounds) && turn.routed.is_empty()),
            ..self.model.ask(question, names)
        })
    }
}
