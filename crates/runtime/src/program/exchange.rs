//! One exchange with a model: renders the prompt, calls the model, shows the streamed text, reads the reply, records the call.

use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;
use std::sync::Arc;

use memchr::memmem;
use serde_json::{Map, Value, json};

use crate::program::event::{Event, ModelCall, Speaker};
use crate::program::flow::ActionError;
use crate::program::live_text::{LiveText, risk};
use crate::program::messages::{append_to_last_user, debug_info, log_unreadable, messages, read_and_note, request};
use crate::program::open_question::OpenQuestion;
use crate::program::output::Outputs;
use crate::program::prompt_values::{known, missing};
use crate::program::question::Asked;
use crate::program::reask::{ask_again, missing_note, problems_note, risk_note, unanswered_note};
use crate::program::retry_state::{Again, Next, RejectedReply, RetryState};
use crate::program::transcript::{TranscriptLimits, cut_in_the_middle};
use crate::program::turn::Turn;
use bcc_lang::template::error::TemplateError;
use bcc_lang::template::front_matter::HistoryMode;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::template::Template;
use bcc_lang::value::quoting::quote;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::message::{ChatMessage, Role};
use bcc_llm::model::provider::{Provider, ReplyPolicy};
use bcc_llm::model::request::{ModelRequest, Purpose, Task, WantedOutput};
use bcc_llm::reply::coerce::{Coercion, CoercionRecord, shape_words};
use bcc_llm::reply::live::MessageField;
use bcc_llm::reply::read::{Reply, UnreadableReply};
use bcc_llm::reply::shape::ReplyShape;

/// Names that every prompt of a kind gets, beyond variables and the engine's names.
pub const PROMPT_NAMES: [&str; 17] = [
    "tone",
    "task",
    "content",
    "topic_content",
    "exit",
    "chat",
    "chat_history",
    "output_list",
    "outputs",
    "known",
    "missing",
    "last_decision",
    "strategy_suggestion",
    "understanding_threshold",
    "answer",
    "opening",
    "ask_again",
];

/// The maximum number of problems of a rejected reply that a warning lists.
const MAX_PROBLEMS_IN_WARNING: usize = 3;

/// The maximum number of warnings about one reply; further ones would be repetitive.
const MAX_COERCION_WARNINGS: usize = 20;

/// A request of an action to a model.
pub struct Ask<'a> {
    pub kind: &'static str,
    /// The action in whose name the model is asked, if it is not the one of the turn: the one that runs a plan.
    pub action: Option<&'a str>,
    /// The template, without its version.
    pub template: &'static str,
    pub version: u32,
    pub shape: &'a ReplyShape,
    /// The field of the reply that a list without an object around it is.
    pub list: Option<&'static str>,
    /// The rendered content of the action, for the prompt.
    pub content: &'a str,
    /// The content with the exact characters of its variables, for providers that say it.
    pub said: &'a str,
    pub outputs: &'a Outputs,
    pub names: TemplateNames,
    /// The person's last answer; none on an opening turn.
    pub answer: Option<&'a str>,
    /// `input_variables` of an `ai_think`.
    pub inputs: Vec<(String, Value)>,
    pub round: u32,
    /// Whether the action starts with this call.
    pub opening: bool,
    /// Whether `content` is certain to be sent, so that it can be shown while it is streamed.
    pub live: bool,
    /// The field of the reply with the text for the person.
    pub message: MessageField,
    /// `repair`; if the action does not set it, the model's own policy applies.
    pub repair: Option<bool>,
    /// `reask`; likewise.
    pub reask: Option<u32>,
    /// The required outputs that have no value yet: the model is asked once more if it replies with EXIT without them.
    pub missing: Vec<String>,
    /// Whether no outcome contains the prompt and the reply, so that the event of the call does.
    pub without_outcome: bool,
}

impl<'a> Ask<'a> {
    /// A request with the template `kind`, for a single round, without an answer and without showing the reply while it is received.
    pub fn new(
        (kind, version): (&'static str, u32),
        shape: &'a ReplyShape,
        outputs: &'a Outputs,
        content: &'a str,
        names: TemplateNames,
    ) -> Self {
        Self {
            kind,
            action: None,
            template: kind,
            version,
            shape,
            list: None,
            content,
            said: content,
            outputs,
            names,
            answer: None,
            inputs: vec![],
            round: 1,
            opening: false,
            live: false,
            message: MessageField::Content,
            repair: None,
            reask: None,
            missing: vec![],
            without_outcome: false,
        }
    }
}

/// The result of the exchange.
pub struct Exchange {
    pub reading: Result<Reply, UnreadableReply>,
    /// Why the text of the reply must not be sent (docs/replies.md, `safety_risk`), even after retries.
    pub held_back: Option<String>,
    /// Whether a reply of this exchange reported that the person is in danger.
    pub in_crisis: bool,
    /// The message id under which text of this reply was or may be shown.
    pub message_id: String,
    pub raw: String,
    /// `llm_prompt`, `llm_response`, `parse_error`, tokens and times.
    pub debug_info: Map<String, Value>,
}

impl Turn<'_> {
    /// Calls the model, and calls it again if its reply cannot be used: as often as `reask` allows, or once if the reply marks itself
    /// as unsafe (docs/replies.md). The last readable reply counts.
    /// Errors: [`ActionError::Model`] if there is no reply at all (if only a retry fails, an earlier readable reply counts, also one
    /// whose text is held back);
    /// [`ActionError::Prompt`] if the prompt cannot be rendered.
    /// An unreadable reply is not an error: see [`Exchange::reading`].
    pub async fn exchange(&self, mut ask: Ask<'_>) -> Result<Exchange, ActionError> {
        let template = self.program.templates.get(ask.template, ask.version).map_err(|error| prompt_failed(&error))?;
        let names = std::mem::take(&mut ask.names);
        let mut request = request(&template, self.prompt(&template, &ask, names)?, ask.shape, task(self, &ask));
        let model = template.front().model.as_deref().or(self.program.model.as_deref());
        let provider = match self.services.models.provider(model) {
            Ok(provider) => provider,
            Err(error) => {
                let (_, call) = self.new_call(0);
                return Err(self.no_reply(call, error));
            }
        };
        let policy = provider.reply_policy_for(&request.task);
        let policy =
            ReplyPolicy { repair: ask.repair.unwrap_or(policy.repair), reask: ask.reask.unwrap_or(policy.reask) };
        let mut retry = RetryState::new(&ask, policy, template.language());
        loop {
            if let Some(exchange) = self.ask_once(provider.as_ref(), &mut request, &mut retry).await? {
                // Advice is not used up by a reply that nobody could read.
                if self.advice.is_some() && exchange.reading.is_ok() {
                    self.work().advice_used = true;
                }
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
        let program = self.program;
        names.let_variables_hide(&[]);
        let as_messages = template.front().history == HistoryMode::Messages;
        // The part of the conversation that a prompt contains is limited, and an answer belongs to the conversation.
        let visible = |text: &str| cut_in_the_middle(text, program.history_chars);
        let answer = visible(ask.answer.unwrap_or_default());
        let shown_answer: Arc<str> = quote(&answer).into();
        let content: Arc<str> = ask.content.into();
        for name in ["task", "content", "topic_content"] {
            names.set_text(name, Arc::clone(&content));
        }
        names.set_text("strategy_suggestion", self.advice.unwrap_or_default());
        names.set_shared("output_list", ask.outputs.lines(template.language()));
        names.set_shared("outputs", ask.outputs.values());
        names.set("known", known(self, ask.outputs));
        names.set("missing", missing(self, ask.outputs).into());
        if !names.is_set("ask_again") {
            names.set("ask_again", Value::from(false));
        }
        if !names.is_set("last_decision") {
            names.set_text("last_decision", "");
        }
        names.set_text("answer", Arc::clone(&shown_answer));
        let last_message = visible(self.recent.last_user_message().unwrap_or_default());
        names.set_text("last_user_message", &*quote(&last_message));
        names.set("opening", Value::from(ask.opening));
        // A template that shows the answer itself gets the conversation before it.
        let mut separate = ask.answer.filter(|answer| template.mentions("answer") && self.recent.ends_with(answer));
        let limits = TranscriptLimits { chars: program.history_chars, outputs: ask.outputs.len() };
        let mut messages = loop {
            let chat: Arc<str> = match separate {
                _ if as_messages => "".into(),
                Some(answer) => {
                    let chars = limits.chars.saturating_sub(answer.chars().count());
                    let limits = TranscriptLimits { chars, ..limits };
                    self.recent.as_text_before(answer, limits, &program.who, &program.user).into()
                }
                None => self.recent.as_text(limits, &program.who, &program.user).into(),
            };
            names.set_text("chat", Arc::clone(&chat));
            names.set_text("chat_history", chat);
            let rendered = messages(template, &names);
            self.report_warnings(&names);
            let messages = rendered.map_err(|error| prompt_failed(&error))?;
            // The template may only test for an answer.
            let shown = memmem::Finder::new(shown_answer.trim());
            let shows_answer = || messages.iter().any(|message| shown.find(message.content.as_bytes()).is_some());
            if separate.is_none() || shows_answer() {
                break messages;
            }
            separate = None;
        };
        // Advice appears at the place that the template gives it, or else at the end (docs/monitors.md).
        if let Some(advice) = self.advice.filter(|_| !template.mentions("strategy_suggestion")) {
            append_to_last_user(&mut messages, advice);
        }
        if as_messages {
            let after_system = messages.iter().take_while(|message| message.role == Role::System).count();
            let mut visible = self.recent.within(limits);
            if separate.is_some() {
                visible.pop();
            }
            let history = visible.into_iter().map(|entry| ChatMessage {
                role: if entry.speaker == Speaker::Ai { Role::Assistant } else { Role::User },
                content: entry.text,
            });
            messages.splice(after_system..after_system, history);
        }
        Ok(messages)
    }

    /// Makes one call. Returns `None` if the model must be called again; `request` is then ready for that.
    async fn ask_once(
        &self,
        provider: &dyn Provider,
        request: &mut ModelRequest,
        retry: &mut RetryState<'_>,
    ) -> Result<Option<Exchange>, ActionError> {
        let (number, mut call) = self.new_call(retry.reasks);
        // The calls of a part of an action, such as a task of a plan, are counted from its own start.
        request.task.call = if retry.ask.action.is_some() { number - self.calls_before } else { number };
        provider.name().clone_into(&mut call.model);
        let clock = self.services.clock.as_ref();
        let started = clock.elapsed_ms();
        let mut live = LiveText::new(self, retry.ask.live, retry.ask.message, !retry.ask.missing.is_empty());
        let question = OpenQuestion::ask(self, Asked::Model);
        let response = provider.complete(request, &mut live).await;
        drop(question);
        call.ms = clock.elapsed_ms().saturating_sub(started);
        call.first_token_ms = live.first_ms.map(|first| first.saturating_sub(started));
        let reply = match response {
            Ok(reply) => reply,
            Err(error) => {
                live.abandon();
                // An earlier readable reply is better than none, even if it was meant to be improved.
                let earlier = retry.earlier.take().filter(|_| error.is_model_failure());
                call.exchange = self.exchanged(request, retry, Err((&error, earlier.is_some())));
                let Some(earlier) = earlier else { return Err(self.no_reply(call, error)) };
                drop(self.no_reply(call, error));
                return Ok(Some(self.used_after_all(earlier, self.message_id())));
            }
        };
        {
            let mut work = self.work();
            work.tokens_in = work.tokens_in.saturating_add(reply.tokens_in.unwrap_or(0));
            work.tokens_out = work.tokens_out.saturating_add(reply.tokens_out.unwrap_or(0));
        }
        let reading = read_and_note(&reply, retry.ask.shape, retry.policy.repair, retry.ask.list, &mut call);
        if reading.is_err() {
            log_unreadable(&reply.text, self.program);
        }
        let next = retry.next(&reading, reply.cut_off, reply.refused);
        let message_id = live.finish(&reading, !matches!(next, Next::Keep));
        call.exchange = self.exchanged(request, retry, Ok((&reply.text, &reading)));
        let prompt = match next {
            Next::Again(_) => request.messages.clone(),
            Next::Keep | Next::Earlier | Next::Refused => std::mem::take(&mut request.messages),
        };
        let prompt = retry.shown(prompt, |rejected| &rejected.shown);
        let mut exchange = Exchange {
            held_back: reading.as_ref().ok().and_then(risk),
            in_crisis: retry.in_crisis,
            message_id,
            debug_info: debug_info(prompt, &reply.text, &reading, &call),
            reading,
            raw: reply.text,
        };
        let is_kept = matches!(next, Next::Keep);
        if is_kept && !retry.ask.without_outcome {
            self.emit_call(call);
            self.warn_of_coercions(&exchange.reading);
            return Ok(Some(exchange));
        }
        // No outcome will contain this call, so its event does.
        let shown = self.without_sensitive(retry.ask.outputs, &exchange.raw, &exchange.reading);
        exchange.debug_info.insert("llm_response".into(), Value::from(shown.as_str()));
        call.debug_info.clone_from(&exchange.debug_info);
        self.emit_call(call);
        if is_kept {
            self.warn_of_coercions(&exchange.reading);
            return Ok(Some(exchange));
        }
        if matches!(next, Next::Refused) {
            return Err(ActionError::Model(ModelError::Refused { model: provider.name().to_owned() }));
        }
        let Next::Again(note) = next else {
            return Ok(retry.earlier.take().map(|earlier| self.used_after_all(earlier, exchange.message_id)));
        };
        self.warn_of_retry(&note, retry);
        let recorded = match self.services.recorder {
            Some(_) => self.to_record(retry.ask.outputs, &exchange.raw, &exchange.reading),
            None => String::new(),
        };
        let text = match note {
            Again::Safety(reason) => risk_note(&reason, retry.language),
            Again::Problems(problems) => problems_note(&problems, retry.language),
            Again::Refusal => unanswered_note(retry.language).to_owned(),
            Again::Missing(missing) => missing_note(&missing, retry.language),
        };
        if let Some(place) = ask_again(&mut request.messages, &exchange.raw, text) {
            retry.rejected.push(RejectedReply { place, shown, recorded });
        }
        retry.reasks += 1;
        if exchange.reading.is_ok() && !retry.refused {
            retry.earlier = Some(exchange);
        }
        Ok(None)
    }

    /// An earlier reply that counts because the model gave no other one that can be read.
    fn used_after_all(&self, earlier: Exchange, message_id: String) -> Exchange {
        self.warn_of_coercions(&earlier.reading);
        if earlier.held_back.is_some() {
            self.warn(
                "reply-held-back",
                "a reply was marked as unsafe by the model and was withheld, and the model gave no other one",
                None,
            );
        }
        Exchange { message_id, ..earlier }
    }

    fn new_call(&self, reask: u32) -> (u32, ModelCall) {
        let mut work = self.work();
        let call = self.calls_before + work.calls;
        let call_id = format!("c{}.{}{}", self.last_seq + 1, self.branch, work.calls);
        work.calls += 1;
        (
            call,
            ModelCall { call_id, purpose: Purpose::Action.name(), reask, coercions: json!([]), ..ModelCall::default() },
        )
    }

    fn no_reply(&self, mut call: ModelCall, error: ModelError) -> ActionError {
        call.error = Some(error.to_message());
        call.attempts = error.attempts();
        if let ModelError::NoneAnswered { skipped_models } = &error {
            call.skipped_models.clone_from(skipped_models);
        }
        self.emit_call(call);
        ActionError::Model(error)
    }

    fn emit_call(&self, call: ModelCall) {
        let warnings = call.warnings();
        self.emit(Event::ModelCall(Box::new(call)));
        warnings.into_iter().for_each(|warning| self.emit(warning));
    }

    fn warn_of_retry(&self, again: &Again, retry: &RetryState<'_>) {
        match again {
            Again::Safety(_) => self.warn(
                "reply-held-back",
                "a reply was marked as unsafe by the model and was withheld; the model was asked again",
                None,
            ),
            Again::Refusal => self.warn(
                "reply-refused",
                "the model refused to answer, or a content filter removed its answer; the model was asked again",
                None,
            ),
            Again::Missing(missing) => {
                let names = missing.join(", ");
                let message = msg!(
                    "a reply ended the action although nothing has been extracted yet for {names}; the model was asked again"
                );
                self.warn("required-missing", message, None);
            }
            Again::Problems(problems) => {
                let (reask, most) = (retry.reasks + 1, retry.policy.reask);
                let more = if problems.len() > MAX_PROBLEMS_IN_WARNING { "; …" } else { "" };
                let listed =
                    problems.iter().take(MAX_PROBLEMS_IN_WARNING).map(String::as_str).collect::<Vec<_>>().join("; ");
                let message = msg!(
                    "a reply could not be used, and the model was asked again ({reask} of at most {most}): {listed}{more}"
                );
                self.warn("reply-refused", message, None);
            }
        }
    }

    fn warn_of_coercions(&self, reading: &Result<Reply, UnreadableReply>) {
        let Ok(reply) = reading else { return };
        for coercion in reply.coercions.iter().take(MAX_COERCION_WARNINGS) {
            let CoercionRecord { path, kind, expected, found } = coercion;
            let (expected, found) = (shape_words(expected), shape_words(found));
            let message = match (kind, path.as_str()) {
                (Coercion::BareList, _) => {
                    msg!("the reply is a list instead of an object; the list was used as the reply's {path}")
                }
                (_, "") => msg!("the reply is {}: expected {expected}, found {found}", kind),
                _ => msg!("the reply's {} is {}: expected {}, found {}", path, kind, expected, found),
            };
            self.warn("reply-bent", message, None);
        }
    }
}

fn task(turn: &Turn<'_>, ask: &Ask<'_>) -> Task {
    Task {
        purpose: Purpose::Action,
        session: turn.session_id.to_owned(),
        kind: ask.kind.to_owned(),
        action_id: ask.action.or(turn.place.action_id.as_deref()).unwrap_or_default().to_owned(),
        path: turn.place.path.clone(),
        content: ask.said.to_owned(),
        wanted: ask
            .outputs
            .iter()
            .map(|output| WantedOutput {
                name: output.get.clone(),
                declared: output.declared,
                choices: output.choices.clone(),
                define: output.define.clone(),
                required: output.required,
                heard: output.heard,
            })
            .collect(),
        answer: ask.answer.map(str::to_owned),
        inputs: ask.inputs.clone(),
        round: ask.round,
        call: turn.calls_before,
        opening: ask.opening,
        reply_schema: None,
    }
}

fn prompt_failed(error: &TemplateError) -> ActionError {
    ActionError::Prompt { message: error.to_message(), help: error.help.clone() }
}
