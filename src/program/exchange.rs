//! One exchange with a model: render the prompt, ask, show words as they come, read the reply, record what it cost.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::model::message::{Message, Role};
use crate::model::provider::Live;
use crate::model::request::{ModelRequest, Purpose, Task, WantedOutput};
use crate::program::action::ActionError;
use crate::program::event::{Delta, Event, ModelCall, Speaker};
use crate::program::messages::{append_to_last_user, messages, read_and_note};
use crate::program::output::Outputs;
use crate::program::recent::cut_in_the_middle;
use crate::program::turn::Turn;
use crate::prompt::fault::TemplateError;
use crate::prompt::front::HistoryMode;
use crate::prompt::names::Names;
use crate::prompt::template::Template;
use crate::reply::live::LiveContent;
use crate::reply::read::{Reply, Unreadable};
use crate::reply::shape::ReplyShape;

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

/// More warnings than these about one reply would only repeat themselves.
const MOST_BEND_WARNINGS: usize = 20;

/// What an action asks of a model.
pub struct Ask<'a> {
    /// The kind that asks.
    pub kind: &'static str,
    /// The template, without its version.
    pub template: &'static str,
    /// The version of the template.
    pub version: u32,
    /// What the reply must look like.
    pub shape: &'a ReplyShape,
    /// The rendered content of the action.
    pub content: &'a str,
    /// What is to be extracted.
    pub outputs: &'a Outputs,
    /// Names that the kind gives to the template.
    pub names: Names,
    /// What the person just said; none on an opening turn.
    pub answer: Option<&'a str>,
    /// `input_variables` of an `ai_think`.
    pub inputs: Vec<(String, Value)>,
    /// The round.
    pub round: u32,
    /// Whether the action begins with this call.
    pub opening: bool,
    /// Whether `content` is sure to be said, so that it may be shown while it arrives.
    pub live: bool,
}

/// What came back.
pub struct Exchange {
    /// The reply, or why there is none that can be read.
    pub reading: Result<Reply, Unreadable>,
    /// Why the words of the reply must not be said (LANGUAGE.md section 8, `safety_risk`), even after asking again.
    pub held_back: Option<String>,
    /// The id under which words of this reply were or may be shown.
    pub message_id: String,
    /// The raw text.
    pub raw: String,
    /// `llm_prompt`, `llm_response`, `parse_error`, tokens and times.
    pub debug_info: Map<String, Value>,
}

impl Turn<'_> {
    /// Asks the model.
    ///
    /// # Errors
    /// [`ActionError::Model`] when there is no reply at all; [`ActionError::Failed`] when the prompt cannot be rendered.
    /// A reply that cannot be read is no error: see [`Exchange::reading`].
    pub async fn exchange(&self, mut ask: Ask<'_>) -> Result<Exchange, ActionError> {
        let template = self.program.templates.get(ask.template, ask.version).map_err(|error| prompt_failed(&error))?;
        let names = std::mem::take(&mut ask.names);
        let mut messages = self.prompt(&template, &ask, names)?;
        let mut exchange = self.ask_once(&template, &ask, &messages).await?;
        if let Some(reason) = exchange.reading.as_ref().ok().and_then(risk) {
            messages.push(Message { role: Role::Assistant, content: exchange.raw.clone() });
            messages.push(Message { role: Role::User, content: held_back_note(&reason) });
            exchange = self.ask_once(&template, &ask, &messages).await?;
            exchange.held_back = exchange.reading.as_ref().ok().and_then(risk);
            self.warn(
                "reply-held-back",
                "a reply called itself unsafe and was not said; the model was asked once more",
                None,
            );
        }
        Ok(exchange)
    }

    fn prompt(&self, template: &Template<'_>, ask: &Ask<'_>, mut names: Names) -> Result<Vec<Message>, ActionError> {
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
            let history = self.recent.within(self.program.history_chars).into_iter().map(|said| Message {
                role: if said.speaker == Speaker::Ai { Role::Assistant } else { Role::User },
                content: said.text,
            });
            messages.splice(after_system..after_system, history);
        }
        Ok(messages)
    }

    async fn ask_once(
        &self,
        template: &Template<'_>,
        ask: &Ask<'_>,
        messages: &[Message],
    ) -> Result<Exchange, ActionError> {
        let (call, mut call_record) = self.begin_call();
        let front = template.front();
        let request = ModelRequest {
            messages: messages.to_vec(),
            schema: Some(Arc::clone(ask.shape.schema())),
            temperature: front.temperature,
            max_tokens: front.max_tokens,
            task: task(self, ask, call),
        };
        let clock = self.services.clock.as_ref();
        let began = clock.elapsed_ms();
        let mut words = LiveWords::new(self, ask.live);
        let model = front.model.as_deref().or(self.program.model.as_deref());
        let answered = match self.services.models.provider(model) {
            Ok(provider) => {
                provider.name().clone_into(&mut call_record.model);
                provider.complete(&request, &mut words).await
            }
            Err(error) => Err(error),
        };
        call_record.ms = clock.elapsed_ms().saturating_sub(began);
        call_record.first_token_ms = words.first_ms.map(|first| first.saturating_sub(began));
        let reply = match answered {
            Ok(reply) => reply,
            Err(error) => {
                call_record.error = Some(error.to_string());
                call_record.attempts = error.attempts();
                words.abandon();
                self.emit(Event::ModelCall(Box::new(call_record)));
                return Err(ActionError::Model(error));
            }
        };
        {
            let mut work = self.work();
            work.tokens_in += reply.tokens_in.unwrap_or(0);
            work.tokens_out += reply.tokens_out.unwrap_or(0);
        }
        let (reading, debug_info) = read_and_note(request.messages, &reply, ask.shape, &mut call_record);
        let message_id = words.finish(&reading);
        self.emit(Event::ModelCall(Box::new(call_record)));
        self.warn_of_bends(&reading);
        Ok(Exchange { reading, held_back: None, message_id, raw: reply.text, debug_info })
    }

    fn begin_call(&self) -> (u32, ModelCall) {
        let mut work = self.work();
        let call = self.calls_before + work.calls;
        let call_id = format!("c{}.{}", self.last_seq + 1, work.calls);
        work.calls += 1;
        (call, ModelCall { call_id, purpose: Purpose::Action.name(), bent: json!([]), ..ModelCall::default() })
    }

    fn warn_of_bends(&self, reading: &Result<Reply, Unreadable>) {
        let Ok(reply) = reading else { return };
        for bend in reply.bends.iter().take(MOST_BEND_WARNINGS) {
            let message = format!(
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

/// Shows the words of a reply while it arrives.
struct LiveWords<'a, 'b> {
    turn: &'a Turn<'b>,
    content: Option<LiveContent>,
    message_id: String,
    shown: bool,
    first_ms: Option<u64>,
}

impl<'a, 'b> LiveWords<'a, 'b> {
    fn new(turn: &'a Turn<'b>, live: bool) -> Self {
        let content = live.then(LiveContent::new);
        Self { turn, content, message_id: turn.message_id(), shown: false, first_ms: None }
    }

    /// What was shown counts only when the whole reply could be read and says the same words.
    fn finish(mut self, reading: &Result<Reply, Unreadable>) -> String {
        let final_words = reading.as_ref().ok().and_then(|reply| reply.object.get("content")).and_then(Value::as_str);
        let shown = self.content.as_ref().map(LiveContent::shown).unwrap_or_default();
        let unsafe_after_all = reading.as_ref().is_ok_and(|reply| risk(reply).is_some());
        if self.shown && (unsafe_after_all || final_words != Some(shown)) {
            self.discard();
        }
        self.message_id
    }

    /// There will be no reply: what was shown counts for nothing.
    fn abandon(mut self) {
        if self.shown {
            self.discard();
        }
    }

    fn discard(&mut self) {
        let next = self.turn.message_id();
        let message_id = std::mem::replace(&mut self.message_id, next);
        self.turn.emit(Event::MessageDiscarded { message_id });
        self.shown = false;
    }
}

impl Live for LiveWords<'_, '_> {
    fn text(&mut self, piece: &str) {
        if self.first_ms.is_none() {
            self.first_ms = Some(self.turn.services.clock.elapsed_ms());
        }
        let Some(content) = &mut self.content else { return };
        let words = content.push(piece);
        if !words.is_empty() {
            self.shown = true;
            let at = self.turn.services.clock.at(self.turn.last_seq + 1);
            self.turn.services.observer.delta(&Delta {
                at: &at,
                session_id: self.turn.session_id,
                r#type: "message_delta",
                message_id: &self.message_id,
                text: &words,
                location: self.turn.place,
            });
        }
    }

    fn restart(&mut self) {
        if self.content.is_some() {
            self.content = Some(LiveContent::new());
        }
        if self.shown {
            self.discard();
        }
    }
}

fn task(turn: &Turn<'_>, ask: &Ask<'_>, call: u32) -> Task {
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
        call,
        opening: ask.opening,
    }
}

/// Why the words of a reply must be held back, when the reply says so itself.
fn risk(reply: &Reply) -> Option<String> {
    let risk = reply.object.get("safety_risk")?;
    if risk.get("detected") != Some(&Value::Bool(true)) {
        return None;
    }
    let reason = risk.get("reason").and_then(Value::as_str).or_else(|| risk.get("risk_type").and_then(Value::as_str));
    Some(reason.unwrap_or("safety_risk.detected").to_owned())
}

fn held_back_note(reason: &str) -> String {
    format!(
        "上面的回复没有发送，因为它自称存在安全风险。请换一种安全的说法，重新给出完整的 JSON。\n\
         (The reply above was not sent, because it called itself unsafe. Give the whole JSON again, in safe words.)\n{reason}"
    )
}

fn prompt_failed(error: &TemplateError) -> ActionError {
    ActionError::Failed { code: "prompt-failed", message: error.to_string(), help: error.help.clone() }
}
