//! The simulated person of a test (docs/tests.md): a model answers each question until the session ends or its turns are
//! used up.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::test_runner::conversation::{ConversationEnd, TestConversation};
use crate::test_runner::models::TestModels;
use crate::test_runner::result::TranscriptLine;
use crate::test_runner::scripts::LoadedScript;
use bcc_engine::environment::Environment;
use bcc_engine::models::choose::{RequestedModel, choose};
use bcc_engine::models::environment::key_alone;
use bcc_engine::models::shared::SharedModels;
use bcc_lang::script::test::dialogue::{DialogueStep, Persona};
use bcc_lang::script::test::test::WrittenTest;
use bcc_llm::model::provider::{NoLiveOutput, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose, Task};
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::persona::{PERSONA, prompt};
use bcc_runtime::program::transcript::{RecentTranscript, TranscriptEntry};
use bcc_runtime::run::head::SessionStatus;

/// The longest words of a person, in characters; what is longer is no answer but an essay, and is cut.
const LONGEST: usize = 2_000;

/// So often in a row the same words are a person who is stuck.
const SAME_WORDS: usize = 3;

/// The most tokens of an answer, where the template does not say.
const MOST_TOKENS: u32 = 600;

/// The name of the built-in responder, which cannot play anybody.
const OFFLINE: &str = "offline";

/// What an error is about.
const WHO: &str = "the model of the simulated person";

/// Why nobody plays a simulated person, in words.
#[derive(Clone, Debug)]
pub enum PersonaSkipped {
    /// No model is configured: the test is skipped.
    Nobody(Message),
    /// The model that should play it cannot be used: the test is broken.
    Wrong(Message),
}

/// The model that plays `persona`: the test's written replies when they have some for it; else the one that it names, the one
/// of `--model`, the test's or the configured one.
/// Errors: Why there is none, in words.
pub fn model(
    persona: &Persona,
    models: &TestModels,
    tried: &LoadedScript,
    asked: Option<&str>,
    (environment, shared): (&Environment, &Arc<SharedModels>),
) -> Result<Arc<dyn Provider>, PersonaSkipped> {
    if let Some(scripted) = models.scripted.as_ref().filter(|scripted| scripted.has(Purpose::Persona)) {
        return Ok(Arc::clone(scripted) as Arc<dyn Provider>);
    }
    let named = persona.model.as_ref().map(|name| name.value.as_str()).or(asked);
    let none = Message::word(
        "a simulated person needs a configured model: specify one with `model:` under `user:`, or with `--model`",
    );
    let wanted = RequestedModel { asked: named, stored: None, script: tried.program.model.as_deref() };
    let chosen = choose(&tried.project, environment, shared, wanted);
    // A name that is mistyped or a key that is missing is a mistake; that there is nothing at all is none.
    let nothing = || {
        let config = &tried.project.config;
        let named = named.or(environment.get("BCC_MODEL")).is_some();
        !named && config.models.is_empty() && key_alone(config, environment).is_none()
    };
    let chosen = chosen.map_err(|error| {
        let help = error.help().map(|help| msg!(" ({help})")).unwrap_or_default();
        if nothing() {
            PersonaSkipped::Nobody(none.clone())
        } else {
            PersonaSkipped::Wrong(msg!("{WHO}: {error}{help}", WHO = Message::word(WHO)))
        }
    })?;
    let provider = chosen
        .models
        .provider(None)
        .map_err(|error| PersonaSkipped::Wrong(msg!("{WHO}: {error}", WHO = Message::word(WHO))))?;
    if provider.name() == OFFLINE { Err(PersonaSkipped::Nobody(none.clone())) } else { Ok(provider) }
}

/// [`model`] of every simulated person of a test, in its order.
pub fn models(
    test: &WrittenTest,
    models: &TestModels,
    tried: &LoadedScript,
    asked: Option<&str>,
    (environment, shared): (&Environment, &Arc<SharedModels>),
) -> Result<VecDeque<Arc<dyn Provider>>, PersonaSkipped> {
    let persona = |step: &DialogueStep| match step {
        DialogueStep::Persona(persona) => Some(model(persona, models, tried, asked, (environment, shared))),
        _ => None,
    };
    test.dialogue.iter().filter_map(persona).collect()
}

#[derive(Debug, Default)]
pub struct PersonaCost {
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
    costs: BTreeMap<String, f64>,
}

impl PersonaCost {
    fn add(&mut self, reply: &ModelReply) {
        self.calls += 1;
        self.tokens_in += reply.tokens_in.unwrap_or(0);
        self.tokens_out += reply.tokens_out.unwrap_or(0);
        if let Some(cost) = &reply.cost {
            *self.costs.entry(cost.currency.clone()).or_default() += cost.amount;
        }
    }

    /// In words: `the simulated person: 5 calls of openai:qwen3, 1200 + 90 tokens, 0.0031 USD`.
    fn told(&self, model: &str) -> Message {
        let calls = if self.calls == 1 { Message::word("1 call") } else { msg!("{} calls", self.calls) };
        let costs: String = self.costs.iter().map(|(currency, amount)| format!(", {amount:.4} {currency}")).collect();
        msg!("simulated person: {calls} to {model}, {} + {} tokens{costs}", self.tokens_in, self.tokens_out)
    }
}

impl TestConversation<'_> {
    /// The person answers each question, until the session ends or the turns are used up.
    /// Errors: a failure when the turns are used up (unless `bound: ok`), the person says nothing or the same again and again; broken when
    /// the model cannot be reached.
    pub(crate) async fn played(
        &mut self,
        persona: &Persona,
        provider: &Arc<dyn Provider>,
    ) -> Result<(), ConversationEnd> {
        let mut spent = PersonaCost::default();
        let played = self.answers_all(persona, provider.as_ref(), &mut spent).await;
        if spent.calls > 0 {
            self.notes.push(spent.told(provider.name()));
        }
        played
    }

    async fn answers_all(
        &mut self,
        persona: &Persona,
        provider: &dyn Provider,
        spent: &mut PersonaCost,
    ) -> Result<(), ConversationEnd> {
        let mut said: Vec<String> = Vec::new();
        loop {
            self.go_on().await?;
            if self.status() != Some(SessionStatus::WaitingInput) {
                return Ok(());
            }
            if said.len() >= persona.turns as usize {
                if persona.bound_is_ok {
                    return Ok(());
                }
                let message =
                    msg!("the simulated person sent {} messages, but the session is still waiting", persona.turns);
                let help =
                    Message::word("raise `turns:`, or write `bound: ok` if the conversation does not have to end");
                return Err(self.failure(persona.span, message, Message::default(), Message::default(), Some(help)));
            }
            let words = self.asks(persona, provider, said.len(), spent).await?;
            if words.is_empty() {
                let message = Message::word("the simulated person said nothing");
                let help = Message::word(
                    "its model returned an empty reply: does the persona describe how this person talks?",
                );
                return Err(self.failure(persona.span, message, Message::default(), Message::default(), Some(help)));
            }
            let again = said.iter().rev().take_while(|before| **before == words).count() + 1;
            if again >= SAME_WORDS {
                let message = msg!("the simulated person said the same thing {again} times in a row");
                let help = Message::word(
                    "more turns would not test anything new: change the persona, its `goal` or its model",
                );
                return Err(self.failure(persona.span, message, Message::default(), words, Some(help)));
            }
            self.says(&words, persona.span).await?;
            said.push(words);
        }
    }

    async fn asks(
        &mut self,
        persona: &Persona,
        provider: &dyn Provider,
        before: usize,
        spent: &mut PersonaCost,
    ) -> Result<String, ConversationEnd> {
        let program = Arc::clone(&self.setting.tried.program);
        let talk = talk_of(&self.lines, program.history_messages, program.history_chars);
        let who = (persona.persona.text.as_str(), persona.goal.as_ref().map(|goal| goal.text.as_str()));
        let time = self.clock_words();
        let prompt =
            prompt(&program, who, &talk, &time).map_err(|error| ConversationEnd::Broken(error.to_message()))?;
        let place = self.session.as_ref().map(bcc_runtime::run::session::Session::place).unwrap_or_default();
        let call = u32::try_from(before).unwrap_or(u32::MAX);
        let request = ModelRequest {
            messages: prompt.messages,
            schema: None,
            temperature: prompt.temperature,
            max_tokens: Some(prompt.max_tokens.unwrap_or(MOST_TOKENS)),
            task: Task {
                purpose: Purpose::Persona,
                kind: PERSONA.to_owned(),
                action_id: place.action_id.unwrap_or_default(),
                path: place.path,
                content: persona.persona.text.clone(),
                wanted: vec![],
                answer: None,
                inputs: vec![],
                round: call.saturating_add(1),
                call,
                opening: before == 0,
            },
        };
        let time = Arc::clone(&self.setting.time);
        let reply =
            crate::test_runner::conversation::in_time(&time, provider.complete(&request, &mut NoLiveOutput)).await;
        crate::test_runner::stop_reasons::short(self)?;
        let reply = reply.map_err(|error| ConversationEnd::Broken(msg!("{WHO}: {error}", WHO = Message::word(WHO))))?;
        spent.add(&reply);
        let words = words(&reply.text, &program.user);
        if words.chars().count() > LONGEST {
            self.notes
                .push(msg!("a message of the simulated person was longer than {LONGEST} characters and was truncated"));
            return Ok(words.chars().take(LONGEST).collect());
        }
        Ok(words)
    }
}

fn talk_of(lines: &[TranscriptLine], messages: usize, chars: usize) -> RecentTranscript {
    let mut recent = RecentTranscript::new(messages, chars);
    lines.iter().for_each(|line| recent.push(TranscriptEntry { speaker: line.speaker, text: line.text.clone() }));
    recent
}

/// What was said of what the model wrote: without its thinking, its own name before it, and quotation marks around all of it.
fn words(reply: &str, user: &str) -> String {
    let reply = reply.rsplit_once("</think>").map_or(reply, |(_, after)| after);
    // Thinking that has no end has no words after it.
    let reply = reply.split_once("<think>").map_or(reply, |(before, _)| before);
    let mut words = reply.trim();
    for name in [user, "user", "User"] {
        let after = words.strip_prefix(name).map(str::trim_start);
        if let Some(after) = after.and_then(|after| after.strip_prefix([':', '：'])) {
            words = after.trim_start();
        }
    }
    for (open, close) in [('"', '"'), ('“', '”'), ('「', '」')] {
        let inner = words.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(inner) = inner.filter(|inner| !inner.contains([open, close])) {
            words = inner.trim();
        }
    }
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_runtime::program::event::Speaker;

    #[test]
    fn what_a_model_writes_around_the_words_is_not_said() {
        let table = [
            ("还行吧……", "还行吧……"),
            ("  来访者：还行吧。\n", "还行吧。"),
            ("User: fine", "fine"),
            ("“还行吧。”", "还行吧。"),
            ("“还行”，我说“吧”", "“还行”，我说“吧”"),
            ("<think>他问睡眠</think>\n睡不好。", "睡不好。"),
            ("睡不好。<think>还要说", "睡不好。"),
            ("<think>没有完", ""),
            ("用户体验：很好", "用户体验：很好"),
        ];
        for (reply, said) in table {
            assert_eq!(words(reply, "来访者"), said, "{reply}");
        }
    }

    #[test]
    fn the_prompt_shows_the_talk_and_the_persona_and_nothing_else() {
        use crate::test_runner::played::play;
        let script = "session:
  session_id: s
  who: 林老师
  user: 小周
  template_scheme: SCHEME
  global_goal: 秘密的目标
  declare: [{ var: secret, value: 记下的秘密 }]
  phases:
    - { phase_id: p, phase_goal: 阶段的目标, topics: [{ topic_id: t, topic_goal: 话题的目标, actions: [{ action_type: ai_ask, action_id: a, config: { content: 最近睡得怎么样？, delivery: verbatim, exit: 出口的条件 } }] }] }
";
        for scheme in ["default", "english"] {
            let text = script.replace(
                "  template_scheme: SCHEME\n",
                &if scheme == "english" { "  template_scheme: english\n".to_owned() } else { String::new() },
            );
            let played = play(&[("script.yaml", &text)], "", &[]);
            let line = TranscriptLine {
                speaker: Speaker::Ai,
                text: "最近睡得怎么样？".to_owned(),
                action_id: "a".to_owned(),
                seq: 1,
            };
            let talk = talk_of(&[line], 20, 8000);
            let prompt = prompt(&played.program, ("话不多的程序员", Some("说说失眠")), &talk, "2026-01-01").unwrap();
            let all: String = prompt.messages.iter().map(|message| message.content.as_str()).collect();
            for part in ["话不多的程序员", "说说失眠", "林老师: 最近睡得怎么样？", "小周"] {
                assert!(all.contains(part), "{scheme}: {part}\n{all}");
            }
            for part in ["秘密", "目标\n秘", "阶段的目标", "话题的目标", "出口的条件", "{{"] {
                assert!(!all.contains(part), "{scheme}: {part}\n{all}");
            }
            assert_eq!(prompt.messages.len(), 2);
        }
    }
}
