//! The rounds of an `ai_act`: the model is asked, its message is sent, its operations are carried out, and the person answers.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use serde_json::{Map, Value, json};

use async_trait::async_trait;

use crate::actions::conversation::reading::{metadata, outcome};
use crate::actions::conversation::substitute::UnusableReply;
use crate::actions::plans::bound::{bound_plan, plan_outline};
use crate::actions::structured::config::ActConfig;
use crate::actions::structured::frame::{ActFrame, ActPoint};
use crate::actions::structured::instruction::{ReadInstructions, read_instructions};
use crate::actions::structured::operations::OperationInfo;
use crate::actions::structured::results::{entries_text, recent_tool_results};
use crate::plan::task::TASK_BLOCK;
use crate::program::action::Action;
use crate::program::exchange::{Ask, Exchange};
use crate::program::flow::{ActionError, Flow, WaitReason};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::ProgramSteps;
use crate::program::turn::Turn;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::exact::ExactValues;
use bcc_llm::reply::live::MessageField;

/// How often the model is asked in one round: once, and again after results that it must know of.
const MAX_ASKS: u32 = 5;

/// How many openings may be unusable: the last one stops the session.
const MAX_UNUSABLE_OPENINGS: u32 = 3;

#[async_trait]
impl Action for ActConfig {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        let mut frame: ActFrame = turn.state()?;
        match (frame.at, turn.answer) {
            (ActPoint::Start, None) if self.listens => {
                frame.at = ActPoint::Wait;
                turn.store_state(&frame)?;
                Ok(Flow::Wait(WaitReason::Input))
            }
            (ActPoint::Start, answer) => {
                frame.round = 1;
                self.ask(turn, frame, answer.filter(|_| self.listens)).await
            }
            (ActPoint::Wait, Some(answer)) => {
                // After an unusable opening, the answer only leads to the next attempt.
                let is_opening = frame.unusable_openings > 0 && frame.message.is_empty();
                frame.round += u32::from(!is_opening || frame.round == 0);
                frame.asked = 0;
                self.ask(turn, frame, Some(answer)).await
            }
            (ActPoint::Wait, None) => {
                turn.in_round(frame.round.max(1));
                if turn.resumed {
                    turn.send_message(None, &frame.message);
                }
                Ok(Flow::Wait(WaitReason::Input))
            }
            (ActPoint::Ask, _) => self.ask(turn, frame, None).await,
            (ActPoint::Perform, _) => {
                turn.in_round(frame.round);
                self.perform(turn, frame).await
            }
        }
    }

    fn can_be_repeated(&self) -> bool {
        // The turn that takes an answer only asks; the operations follow in turns of their own.
        true
    }

    fn steps(&self, block: &str) -> Option<&ProgramSteps> {
        block.starts_with(TASK_BLOCK).then_some(&self.task_steps)
    }
}

impl ActConfig {
    /// Asks the model once, and sends its message.
    async fn ask(&self, turn: &Turn<'_>, mut frame: ActFrame, answer: Option<&str>) -> Result<Flow, ActionError> {
        let round = frame.round;
        turn.in_round(round);
        frame.asked += 1;
        let limits = (round, turn.last_round(self.max_rounds));
        let names = turn.names(limits.1);
        let said = turn.text(&self.content, &names)?;
        let question = turn.for_prompt(&self.content, &said, &names)?;
        let names = self.names(turn, names, &frame).await?;
        let is_opening = round == 1 && frame.asked == 1 && answer.is_none();
        let ask = Ask {
            said: &said,
            answer,
            round,
            opening: is_opening,
            live: true,
            message: MessageField::LlmReply,
            ..self.model.ask(&question, names)
        };
        let exchange = turn.exchange(ask).await?;
        let reply = exchange.reading.as_ref().ok().filter(|_| exchange.held_back.is_none());
        let message = reply.and_then(|reply| MessageField::LlmReply.text_in(&reply.object)).unwrap_or_default();
        // As it was shown while it arrived; white space alone is no message.
        let message = if message.trim().is_empty() { String::new() } else { message.to_owned() };
        let read = reply.map(|reply| self.operations_of(turn, reply.received.get("actions"))).unwrap_or_default();
        let has_operations = !read.instructions.is_empty() || !read.refused.is_empty();
        if reply.is_none() || message.is_empty() && !has_operations && frame.results.is_empty() {
            return self.unusable(turn, frame, exchange, is_opening);
        }
        if !message.is_empty() {
            turn.send_message(Some(exchange.message_id.clone()), &message);
            frame.message.clone_from(&message);
        }
        let mut asked = outcome(exchange, limits, None, false, None, ExactValues::new());
        asked.ai_message = Some(message);
        frame.earlier_results.append(&mut frame.results);
        if !has_operations {
            return self.end_round(turn, frame, asked).await;
        }
        frame.tells_model = !read.refused.is_empty();
        frame.results = read.refused;
        (frame.batch, frame.has_place) = (turn.last_seq, true);
        frame.queue = read.instructions.into();
        frame.at = ActPoint::Perform;
        turn.report_outcome(asked);
        turn.store_state(&frame)?;
        Ok(Flow::Onward)
    }

    /// The operations of a reply.
    fn operations_of(&self, turn: &Turn<'_>, actions: Option<&Value>) -> ReadInstructions {
        match actions {
            None | Some(Value::Null) => ReadInstructions::default(),
            Some(Value::Array(_)) => {
                read_instructions(actions.unwrap_or(&Value::Null), &self.permissions(turn.program))
            }
            Some(_) => {
                let why = Message::word("`actions` must be a list of operations");
                let refused = vec![json!({ "status": "refused", "error": why.to_string() })];
                ReadInstructions { instructions: vec![], refused }
            }
        }
    }

    /// The reply has neither a message nor operations. Earlier ones of the round may have had some.
    fn unusable(
        &self,
        turn: &Turn<'_>,
        mut frame: ActFrame,
        exchange: Exchange,
        is_opening: bool,
    ) -> Result<Flow, ActionError> {
        let limits = (frame.round, turn.last_round(self.max_rounds));
        let is_first = is_opening || frame.message.is_empty();
        let reason = match UnusableReply::of(&exchange, is_first) {
            UnusableReply::Opening | UnusableReply::Later if frame.may_have_changed() => UnusableReply::AfterOperations,
            reason => reason,
        };
        if is_opening {
            frame.unusable_openings += 1;
            if frame.unusable_openings >= MAX_UNUSABLE_OPENINGS {
                let action = turn.place.action_id.as_deref().unwrap_or_default();
                let message = msg!("the model gave no usable reply to open `{action}`, {MAX_UNUSABLE_OPENINGS} times");
                let help = "resume the session to ask again, or with another model: `sessions resume ID --model M`";
                return Err(ActionError::Unusable { message, help: Some(help.into()) });
            }
        }
        let text = self.model.substitute(turn, self.max_rounds, reason, (&frame.message, frame.substitutes))?;
        frame.substitutes += 1;
        turn.send_message(Some(exchange.message_id.clone()), &text);
        let is_last = frame.round >= limits.1 && !is_opening;
        let exit = is_last.then_some(ExitReason::MaxRoundsReached);
        let mut outcome = outcome(exchange, limits, exit, is_last, None, ExactValues::new());
        note_results(&mut outcome.metadata, &frame);
        if is_last {
            return Ok(Flow::done(outcome));
        }
        turn.report_outcome(outcome);
        frame.at = ActPoint::Wait;
        frame.forget_round();
        turn.store_state(&frame)?;
        Ok(Flow::Wait(WaitReason::Input))
    }

    /// Called when all operations of a reply are carried out.
    pub(crate) async fn performed(&self, turn: &Turn<'_>, mut frame: ActFrame) -> Result<Flow, ActionError> {
        if frame.tells_model && frame.asked < MAX_ASKS {
            frame.tells_model = false;
            frame.at = ActPoint::Ask;
            turn.store_state(&frame)?;
            return Ok(Flow::Onward);
        }
        if frame.tells_model {
            let message = msg!("the model was asked {MAX_ASKS} times in one round and still requested operations");
            turn.warn("act-asks-exhausted", message, None);
        }
        frame.earlier_results.append(&mut frame.results);
        let limits = (frame.round, turn.last_round(self.max_rounds));
        let performed = Outcome { success: true, metadata: metadata(None, limits, None), ..Outcome::default() };
        self.end_round(turn, frame, performed).await
    }

    /// Ends the round with this outcome: completes the action, or waits for the person.
    async fn end_round(&self, turn: &Turn<'_>, mut frame: ActFrame, mut outcome: Outcome) -> Result<Flow, ActionError> {
        let is_last = frame.round >= turn.last_round(self.max_rounds);
        let holds = match &self.until {
            Some(until) => turn.holds(until)?,
            // A single exchange is complete when it is over.
            None => self.max_rounds == 1,
        };
        let exit = match (holds, is_last) {
            (true, _) => Some(ExitReason::ExitCriteriaMet),
            (false, true) => Some(ExitReason::MaxRoundsReached),
            (false, false) => None,
        };
        outcome.metadata.insert("exit_reason".into(), json!(exit));
        note_results(&mut outcome.metadata, &frame);
        outcome.metadata.insert("plan_id".into(), json!(bound_plan(turn)));
        outcome.exit_reason = exit;
        outcome.completed = exit.is_some();
        if outcome.ai_message.is_none() {
            outcome.ai_message = Some(frame.message.clone()).filter(|text| !text.is_empty());
        }
        if exit.is_some() {
            return Ok(Flow::done(outcome));
        }
        turn.report_outcome(outcome);
        frame.at = ActPoint::Wait;
        frame.forget_round();
        turn.store_state(&frame)?;
        Ok(Flow::Wait(WaitReason::Input))
    }

    async fn names(
        &self,
        turn: &Turn<'_>,
        mut names: TemplateNames,
        frame: &ActFrame,
    ) -> Result<TemplateNames, ActionError> {
        for (name, text) in [("tone", &self.tone), ("goal", &self.goal)] {
            let rendered = text.as_ref().map(|text| turn.text(text, &names.for_prompt())).transpose()?;
            names.set_text(name, rendered.unwrap_or_default());
        }
        names.set_text("exit", "");
        names.set("understanding_threshold", Value::Null);
        let language = self.model.language;
        let operations: Vec<Value> = self.operations.iter().map(|operation| operation.to_json(language)).collect();
        let tools = self.offered_tools(turn).await;
        names.set("operations", operations.into_iter().chain(tools).collect());
        names.set_text("plan_outline", plan_outline(turn, self.plan_id(turn)?).await?);
        names.set_text("recent_tool_results", recent_tool_results(turn));
        names.set_text("results", entries_text(&frame.results));
        names.set("asks_left", json!(MAX_ASKS.saturating_sub(frame.asked)));
        Ok(names)
    }

    /// Whether the model must learn what this operation gave before the person writes.
    pub(crate) fn informs_model(operation: Option<&OperationInfo>) -> bool {
        // Tools have no entry in the table.
        operation.is_none_or(|operation| {
            let name = operation.name;
            ["request_subgraph", "help", "list_plans", "show_tasks", "query_status", "execute_plan", "rerun_task"]
                .contains(&name)
        })
    }
}

/// Adds what was carried out in the round.
fn note_results(metadata: &mut Map<String, Value>, frame: &ActFrame) {
    let results = frame.all_results();
    if !results.is_empty() {
        metadata.insert("actions".into(), Value::from(results));
    }
    if !frame.tool_results.is_empty() {
        metadata.insert("tool_results".into(), Value::from(frame.tool_results.clone()));
    }
}
