//! One exchange with a model: render the prompt, ask, show words as they come, read the reply, record what it cost.

use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::program::event::{Event, ModelCall, Speaker};
use crate::program::flow::ActionError;
use crate::program::live_text::{LiveText, risk};
use crate::program::messages::{append_to_last_user, debug_info, log_unreadable, messages, read_and_note, request};
use crate::program::output::Outputs;
use crate::program::reask::{ask_again, note_of_faults, note_of_risk};
use crate::program::retry_state::{Again, Next, RejectedReply, RetryState};
use crate::program::transcript::cut_in_the_middle;
use crate::program::turn::Turn;
use bcc_lang::template::error::TemplateError;
use bcc_lang::template::front_matter::HistoryMode;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::template::Template;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::model::provider::{Provider, ReplyPolicy};
use bcc_llm::model::request::{ModelRequest, Purpose, Task, WantedOutput};
use bcc_llm::reply::read::{Reply, UnreadableReply};
use bcc_llm::reply::shape::ReplyShape;

/// Names that every prompt of a kind gets, beyond variables and the engine's names.
pub const PROMPT_NAMES: [&str; 13] = [
    "tone",
    "task",
    "content",
    "topic_content",
    "exit",
    "chat",
    "chat_history",
    "output_list",
    "outputs",
    "strategy_suggestion",
    "understanding_threshold",
    "answer",
    "opening",
];

/// How many faults of a refused reply a warning names.
const MOST_FAULTS_TOLD: usize = 3;

/// More warnings than these about one reply would only repeat themselves.
const MOST_BEND_WARNINGS: usize = 20;

/// What an action asks of a model.
pub struct Ask<'a> {
    pub kind: &'static str,
    /// The template, without its version.
    pub template: &'static str,
    pub version: u32,
    pub shape: &'a ReplyShape,
    /// The rendered content of the action.
    pub content: &'a str,
    pub outputs: &'a Outputs,
    pub names: TemplateNames,
    /// What the person just said; none on an opening turn.
    pub answer: Option<&'a str>,
    /// `input_variables` of an `ai_think`.
    pub inputs: Vec<(String, Value)>,
    pub round: u32,
    /// Whether the action begins with this call.
    pub opening: bool,
    /// Whether `content` is sure to be said, so that it may be shown while it arrives.
    pub live: bool,
    /// `repair`; where the action does not say, the model's own manners count.
    pub repair: Option<bool>,
    /// `reask`; likewise.
    pub reask: Option<u32>,
}

/// What came back.
pub struct Exchange {
    pub reading: Result<Reply, UnreadableReply>,
    /// Why the words of the reply must not be said (docs/replies.md, `safety_risk`), even after asking again.
    pub held_back: Option<String>,
    /// The id under which words of this reply were or may be shown.
    pub message_id: String,
    pub raw: String,
    /// `llm_prompt`, `llm_response`, `parse_error`, tokens and times.
    pub debug_info: Map<String, Value>,
}

impl Turn<'_> {
    /// Asks the model, and asks it again where its reply cannot be used: as often as `reask` allows, or once when the reply
    /// calls itself unsafe (docs/replies.md). Of several replies the last one that could be read counts.
    /// Errors: [`ActionError::Model`] when there is no reply at all: where only asking again fails, what could be read before counts; [`ActionError::Failed`] when the prompt cannot be rendered.
    /// A reply that cannot be read is no error: see [`Exchange::reading`].
    pub async fn exchange(&self, mut ask: Ask<'_>) -> Result<Exchange, ActionError> {
        let template = self.program.templates.get(ask.template, ask.version).map_err(|error| prompt_failed(&error))?;
        let names = std::mem::take(&mut ask.names);
        let mut request = request(&template, self.prompt(&template, &ask, names)?, ask.shape, task(self, &ask));
        let model = template.front().model.as_deref().or(self.program.model.as_deref());
        let provider = match self.services.models.provider(model) {
            Ok(provider) => provider,
            Err(error) => {
                let (_, call) = self.begin_call(0);
                return Err(self.no_reply(call, error));
            }
        };
        let manners = provider.manners_of(&request.task);
        let manners =
            ReplyPolicy { repair: ask.repair.unwrap_or(manners.repair), reask: ask.reask.unwrap_or(manners.reask) };
        let mut asking =
            RetryState { ask: &ask, manners, reasks: 0, for_safety: false, refused: vec![], earlier: None };
        loop {
            if let Some(exchange) = self.ask_once(provider.as_ref(), &mut request, &mut asking).await? {
                return Ok(exchange);
            }
        }
    }

    fn prompt(
        &self,
        template: &Template<'_>,
        ask: &Ask<'_>,
        mut names: TemplateNames,
    ) -> Result<Vec<ChatMessage>, ActionError> {
        let as_messages = template.front().history == HistoryMode::Messages;
        let chat = if as_messages {
            String::new()
        } else {
            self.recent.as_text(self.program.history_chars, &self.program.who, &self.program.user)
        };
        let chat: Arc<str> = chat.into();
        names.give_text("chat", Arc::clone(&chat));
        names.give_text("chat_history", chat);
        let content: Arc<str> = ask.content.into();
        names.give_text("task", Arc::clone(&content));
        names.give_text("content", Arc::clone(&content));
        names.give_text("topic_content", content);
        names.give_text("strategy_suggestion", self.advice.unwrap_or_default());
        names.give_shared("output_list", ask.outputs.lines());
        names.give_shared("outputs", ask.outputs.values());
        // What a prompt may see of the talk is bounded, and an answer is part of the talk.
        let visible = |text: &str| cut_in_the_middle(text, self.program.history_chars);
        names.give_text("answer", visible(ask.answer.unwrap_or_default()));
        names.give_text("last_user_message", visible(self.recent.last_user_message().unwrap_or_default()));
        names.give("opening", Value::from(ask.opening));
        let mut messages = messages(template, &names).map_err(|error| prompt_failed(&error))?;
        if let Some(advice) = self.advice {
            // 004, unit test 8: advice reaches the prompt at the place that the template gives it, or else behind it.
            if !template.mentions("strategy_suggestion") {
                append_to_last_user(&mut messages, advice);
            }
            self.work().advice_used = true;
        }
        if as_messages {
            let after_system = messages.iter().take_while(|message| message.role == Role::System).count();
            let history = self.recent.within(self.program.history_chars).into_iter().map(|said| ChatMessage {
                role: if said.speaker == Speaker::Ai { Role::Assistant } else { Role::User },
                content: said.text,
            });
            messages.splice(after_system..after_system, history);
        }
        Ok(messages)
    }

    /// One call. Gives nothing when the model is to be asked again, for which `request` is then ready.
    async fn ask_once(
        &self,
        provider: &dyn Provider,
        request: &mut ModelRequest,
        asking: &mut RetryState<'_>,
    ) -> Result<Option<Exchange>, ActionError> {
        let (number, mut call) = self.begin_call(asking.reasks);
        request.task.call = number;
        provider.name().clone_into(&mut call.model);
        let clock = self.services.clock.as_ref();
        let began = clock.elapsed_ms();
        let mut words = LiveText::new(self, asking.ask.live);
        let answered = provider.complete(request, &mut words).await;
        call.ms = clock.elapsed_ms().saturating_sub(began);
        call.first_token_ms = words.first_ms.map(|first| first.saturating_sub(began));
        let reply = match answered {
            Ok(reply) => reply,
            Err(error) => {
                words.abandon();
                // A reply that could be read is worth more than none, though it was to be made better.
                let earlier = asking.earlier.take().filter(|_| error.is_of_a_model());
                call.exchange = self.exchanged(request, asking, Err((&error, earlier.is_some())));
                let Some(earlier) = earlier else { return Err(self.no_reply(call, error)) };
                drop(self.no_reply(call, error));
                self.warn_of_bends(&earlier.reading);
                return Ok(Some(Exchange { message_id: self.message_id(), ..earlier }));
            }
        };
        {
            let mut work = self.work();
            work.tokens_in += reply.tokens_in.unwrap_or(0);
            work.tokens_out += reply.tokens_out.unwrap_or(0);
        }
        let reading = read_and_note(&reply, asking.ask.shape, asking.manners.repair, &mut call);
        if reading.is_err() {
            log_unreadable(&reply.text, self.program);
        }
        let next = asking.next(&reading, reply.cut_off);
        let message_id = words.finish(&reading, !matches!(next, Next::Keep));
        call.exchange = self.exchanged(request, asking, Ok((&reply.text, &reading)));
        let prompt = match next {
            Next::Again(_) => request.messages.clone(),
            Next::Keep | Next::Earlier => std::mem::take(&mut request.messages),
        };
        let prompt = asking.shown(prompt, |refused| &refused.shown);
        let mut exchange = Exchange {
            held_back: reading.as_ref().ok().and_then(risk),
            message_id,
            debug_info: debug_info(prompt, &reply.text, &reading, &call),
            reading,
            raw: reply.text,
        };
        if matches!(next, Next::Keep) {
            self.tell(call);
            self.warn_of_bends(&exchange.reading);
            return Ok(Some(exchange));
        }
        // No outcome will tell of this call, so its event does.
        let shown = self.without_sensitive(asking.ask.outputs, &exchange.raw, &exchange.reading);
        exchange.debug_info.insert("llm_response".into(), Value::from(shown.as_str()));
        call.debug_info.clone_from(&exchange.debug_info);
        self.tell(call);
        let Next::Again(note) = next else {
            let earlier = asking.earlier.take().map(|earlier| Exchange { message_id: exchange.message_id, ..earlier });
            if let Some(earlier) = &earlier {
                self.warn_of_bends(&earlier.reading);
            }
            return Ok(earlier);
        };
        self.warn_of_asking(&note, asking);
        let recorded = match self.services.recorder {
            Some(_) => self.to_record(asking.ask.outputs, &exchange.raw, &exchange.reading),
            None => String::new(),
        };
        let text = match note {
            Again::Safety(reason) => note_of_risk(&reason),
            Again::Faults(faults) => note_of_faults(&faults),
        };
        if let Some(place) = ask_again(&mut request.messages, &exchange.raw, text) {
            asking.refused.push(RejectedReply { place, shown, recorded });
        }
        asking.reasks += 1;
        if exchange.held_back.is_some() {
            asking.earlier = None;
        } else if exchange.reading.is_ok() {
            asking.earlier = Some(exchange);
        }
        Ok(None)
    }

    fn begin_call(&self, reask: u32) -> (u32, ModelCall) {
        let mut work = self.work();
        let call = self.calls_before + work.calls;
        let call_id = format!("c{}.{}", self.last_seq + 1, work.calls);
        work.calls += 1;
        (call, ModelCall { call_id, purpose: Purpose::Action.name(), reask, bent: json!([]), ..ModelCall::default() })
    }

    fn no_reply(&self, mut call: ModelCall, error: ModelError) -> ActionError {
        call.error = Some(error.to_message());
        call.attempts = error.attempts();
        if let ModelError::NoneAnswered { passed_over } = &error {
            call.passed_over.clone_from(passed_over);
        }
        self.tell(call);
        ActionError::Model(error)
    }

    fn tell(&self, call: ModelCall) {
        let warnings = call.warnings();
        self.emit(Event::ModelCall(Box::new(call)));
        warnings.into_iter().for_each(|warning| self.emit(warning));
    }

    fn warn_of_asking(&self, again: &Again, asking: &RetryState<'_>) {
        match again {
            Again::Safety(_) => self.warn(
                "reply-held-back",
                "a reply was marked as unsafe by the model and was withheld; the model was asked again",
                None,
            ),
            Again::Faults(faults) => {
                let (reask, most) = (asking.reasks + 1, asking.manners.reask);
                let more = if faults.len() > MOST_FAULTS_TOLD { "; …" } else { "" };
                let faults = faults.iter().take(MOST_FAULTS_TOLD).map(String::as_str).collect::<Vec<_>>().join("; ");
                let message = msg!(
                    "a reply could not be used, and the model was asked again ({reask} of at most {most}): {faults}{more}"
                );
                self.warn("reply-refused", message, None);
            }
        }
    }

    fn warn_of_bends(&self, reading: &Result<Reply, UnreadableReply>) {
        let Ok(reply) = reading else { return };
        for bend in reply.bends.iter().take(MOST_BEND_WARNINGS) {
            let message = msg!(
                "the reply's {} is {}: expected {}, found {}",
                bend.path,
                bend.bending.name(),
                bend.expected,
                bend.found
            );
            self.warn("reply-bent", message, None);
        }
    }
}

fn task(turn: &Turn<'_>, ask: &Ask<'_>) -> Task {
    Task {
        purpose: Purpose::Action,
        kind: ask.kind.to_owned(),
        action_id: turn.place.action_id.clone().unwrap_or_default(),
        path: turn.place.path.clone(),
        content: ask.content.to_owned(),
        wanted: ask
            .outputs
            .iter()
            .map(|output| WantedOutput {
                name: output.get.clone(),
                declared: output.declared,
                choices: output.choices.clone(),
                define: output.define.clone(),
                required: output.required,
            })
            .collect(),
        answer: ask.answer.map(str::to_owned),
        inputs: ask.inputs.clone(),
        round: ask.round,
        call: turn.calls_before,
        opening: ask.opening,
    }
}

fn prompt_failed(error: &TemplateError) -> ActionError {
    ActionError::Failed { code: "prompt-failed", message: error.to_message(), help: error.help.clone() }
}
