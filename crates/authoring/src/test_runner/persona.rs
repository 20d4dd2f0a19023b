//! The simulated person of a test (docs/tests.md): a model answers each question until the session ends or its turns are used up.

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
use bcc_engine::models::environment::environment_key;
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

/// The maximum length of an answer, in characters; longer answers are truncated.
const MAX_INPUT_CHARACTERS: usize = 2_000;

/// After this number of identical answers in a row, the person is stuck.
const MAX_REPEATS: usize = 3;

/// The maximum number of tokens of an answer, if the template does not specify it.
const MAX_TOKENS: u32 = 600;

/// The name of the built-in responder, which cannot play a person.
const OFFLINE: &str = "offline";

/// The subject of error messages.
const WHO: &str = "the model of the simulated person";

/// Why there is no model for a simulated person.
#[derive(Clone, Debug)]
pub enum PersonaSkipped {
    /// No model is configured: the test is skipped.
    Nobody(Message),
    /// The selected model cannot be used: the test is broken.
    Wrong(Message),
}

/// The model of `persona`: the scripted replies of the test if there are any for it; otherwise the model that it names,
/// that of `--model`, or the configured one.
/// Errors: why there is none.
pub fn model(
    persona: &Persona,
    models: &TestModels,
    script: &LoadedScript,
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
    let wanted = RequestedModel { requested: named, stored: None, script: script.program.model.as_deref() };
    let chosen = choose(&script.project, environment, shared, wanted);
    // A misspelled name or a missing key is an error; having no configuration at all is not.
    let is_unconfigured = || {
        let config = &script.project.config;
        let named = named.or(environment.get("BCC_MODEL")).is_some();
        !named && config.models.is_empty() && environment_key(config, environment).is_none()
    };
    let chosen = chosen.map_err(|error| {
        let help = error.help().map(|help| msg!(" ({help})")).unwrap_or_default();
        if is_unconfigured() {
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

/// [`model`] for every simulated person of a test, in order.
pub fn models(
    test: &WrittenTest,
    models: &TestModels,
    script: &LoadedScript,
    asked: Option<&str>,
    (environment, shared): (&Environment, &Arc<SharedModels>),
) -> Result<VecDeque<Arc<dyn Provider>>, PersonaSkipped> {
    let persona = |step: &DialogueStep| match step {
        DialogueStep::Persona(persona) => Some(model(persona, models, script, asked, (environment, shared))),
        _ => None,
    };
    test.dialogue.iter().filter_map(persona).collect()
}

#[derive(Debug, Default)]
pub(crate) struct PersonaCost {
    calls: u64,
    tokens_in: u64,
    tokens_out: u64,
    costs: BTreeMap<String, f64>,
}

impl PersonaCost {
    fn add(&mut self, reply: &ModelReply) {
        self.calls += 1;
        self.tokens_in = self.tokens_in.saturating_add(reply.tokens_in.unwrap_or(0));
        self.tokens_out = self.tokens_out.saturating_add(reply.tokens_out.unwrap_or(0));
        if let Some(cost) = &reply.cost {
            *self.costs.entry(cost.currency.clone()).or_default() += cost.amount;
        }
    }

    /// As text: `simulated person: 5 calls to openai:qwen3, 1200 + 90 tokens, 0.0031 USD`.
    fn summary(&self, model: &str) -> Message {
        let calls = if self.calls == 1 { Message::word("1 call") } else { msg!("{} calls", self.calls) };
        let costs: String = self.costs.iter().map(|(currency, amount)| format!(", {amount:.4} {currency}")).collect();
        msg!("simulated person: {calls} to {model}, {} + {} tokens{costs}", self.tokens_in, self.tokens_out)
    }
}

impl TestConversation<'_> {
    /// Answers each question with the model, until the session ends or the turns are used up.
    /// Errors: a failure if the turns are used up (unless `bound: ok`), or if an answer is empty or repeated too often;
    /// broken if the model cannot be reached.
    pub(crate) async fn run_persona(
        &mut self,
        persona: &Persona,
        provider: &Arc<dyn Provider>,
    ) -> Result<(), ConversationEnd> {
        let mut cost = PersonaCost::default();
        let played = self.answer_all(persona, provider.as_ref(), &mut cost).await;
        if cost.calls > 0 {
            self.notes.push(cost.summary(provider.name()));
        }
        played
    }

    async fn answer_all(
        &mut self,
        persona: &Persona,
        provider: &dyn Provider,
        cost: &mut PersonaCost,
    ) -> Result<(), ConversationEnd> {
        let mut inputs: Vec<String> = Vec::new();
        loop {
            self.resume_if_stopped().await?;
            if self.status() != Some(SessionStatus::WaitingInput) {
                return Ok(());
            }
            if inputs.len() >= persona.turns as usize {
                if persona.limit_is_ok {
                    return Ok(());
                }
                let message =
                    msg!("the simulated person sent {} messages, but the session is still waiting", persona.turns);
                let help =
                    Message::word("raise `turns:`, or write `bound: ok` if the conversation does not have to end");
                return Err(self.failure(persona.span, message, Message::default(), Message::default(), Some(help)));
            }
            let input = self.ask_model(persona, provider, inputs.len(), cost).await?;
            if input.is_empty() {
                let message = Message::word("the simulated person said nothing");
                let help = Message::word(
                    "its model returned an empty reply: does the persona describe how this person talks?",
                );
                return Err(self.failure(persona.span, message, Message::default(), Message::default(), Some(help)));
            }
            let repeats = inputs.iter().rev().take_while(|before| **before == input).count() + 1;
            if repeats >= MAX_REPEATS {
                let message = msg!("the simulated person said the same thing {repeats} times in a row");
                let help = Message::word(
                    "more turns would not test anything new: change the persona, its `goal` or its model",
                );
                return Err(self.failure(persona.span, message, Message::default(), input, Some(help)));
            }
            self.send_input(&input, persona.span).await?;
            inputs.push(input);
        }
    }

    async fn ask_model(
        &mut self,
        persona: &Persona,
        provider: &dyn Provider,
        before: usize,
        cost: &mut PersonaCost,
    ) -> Result<String, ConversationEnd> {
        let program = Arc::clone(&self.setting.script.program);
        let transcript = transcript(program.recent_transcript(), &self.lines);
        let profile = (persona.persona.text.as_str(), persona.goal.as_ref().map(|goal| goal.text.as_str()));
        let time = self.clock_words();
        let prompt = prompt(&program, profile, &transcript, &time)
            .map_err(|error| ConversationEnd::Broken(error.to_message()))?;
        let place = self.session.as_ref().map(bcc_runtime::run::session::Session::place).unwrap_or_default();
        let call = u32::try_from(before).unwrap_or(u32::MAX);
        let request = ModelRequest {
            messages: prompt.messages,
            schema: None,
            temperature: prompt.temperature,
            max_tokens: Some(prompt.max_tokens.unwrap_or(MAX_TOKENS)),
            task: Task {
                purpose: Purpose::Persona,
                kind: PERSONA.to_owned(),
                action_id: place.action_id.unwrap_or_default(),
                path: place.path,
                content: persona.persona.text.clone(),
                round: call.saturating_add(1),
                call,
                opening: before == 0,
                ..Task::default()
            },
        };
        let time = Arc::clone(&self.setting.time);
        let reply =
            crate::test_runner::clock::with_virtual_time(&time, provider.complete(&request, &mut NoLiveOutput)).await;
        crate::test_runner::stop_reasons::check_reply_count(self)?;
        let reply = reply.map_err(|error| ConversationEnd::Broken(msg!("{WHO}: {error}", WHO = Message::word(WHO))))?;
        cost.add(&reply);
        let input = clean_input(&reply.text, &program.user);
        if input.chars().count() > MAX_INPUT_CHARACTERS {
            self.notes.push(msg!(
                "a message of the simulated person was longer than {LONGEST} characters and was truncated",
                LONGEST = MAX_INPUT_CHARACTERS
            ));
            return Ok(input.chars().take(MAX_INPUT_CHARACTERS).collect());
        }
        Ok(input)
    }
}

/// `recent` with these lines added.
fn transcript(mut recent: RecentTranscript, lines: &[TranscriptLine]) -> RecentTranscript {
    lines.iter().for_each(|line| recent.push(TranscriptEntry { speaker: line.speaker, text: line.text.clone() }));
    recent
}

/// Extracts the answer from a reply: removes thinking, the speaker's name, and surrounding quotation marks.
fn clean_input(reply: &str, user: &str) -> String {
    let reply = reply.rsplit_once("</think>").map_or(reply, |(_, after)| after);
    // Unfinished thinking is followed by no answer.
    let reply = reply.split_once("<think>").map_or(reply, |(before, _)| before);
    let mut input = reply.trim();
    for name in [user, "user", "User"] {
        let after = input.strip_prefix(name).map(str::trim_start);
        if let Some(after) = after.and_then(|after| after.strip_prefix([':', '：'])) {
            input = after.trim_start();
        }
    }
    for (open, close) in [('"', '"'), ('“', '”'), ('「', '」')] {
        let inner = input.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        if let Some(inner) = inner.filter(|inner| !inner.contains([open, close])) {
            input = inner.trim();
        }
    }
    input.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_runtime::program::event::Speaker;

    #[test]
    fn text_around_the_answer_of_a_model_is_removed() {
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
        for (reply, expected) in table {
            assert_eq!(clean_input(reply, "来访者"), expected, "{reply}");
        }
    }

    #[test]
    fn the_prompt_contains_only_the_transcript_and_the_persona() {
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
            let transcript = transcript(RecentTranscript::new(20, 8000, false), &[line]);
            let prompt =
                prompt(&played.program, ("话不多的程序员", Some("说说失眠")), &transcript, "2026-01-01").unwrap();
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
