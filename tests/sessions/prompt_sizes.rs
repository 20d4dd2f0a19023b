//! The size of prompts, in tokens: a turn of a conversation stays within a budget and does not grow with the conversation
//! (docs/templates.md, "Size").

use crate::test_session;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose};
use bcc_runtime::run::session::{SessionPause, TakenAnswer};
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::json;

const TURNS: usize = 50;

/// The maximum of a prompt with its schema, for answers of [`USUAL_CHARS`] characters.
const MAX_TOKENS: usize = 2800;

const USUAL_CHARS: usize = 150;

const CHINESE: &str = "
session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          topic_goal: 了解父亲
          strategy: { text: 先关心感受，再问事实, min_completeness_requirement: 至少知道职业, retry_strategy: 换一个角度, max_retry_count: 2 }
          actions:
            - action_type: ai_ask
              action_id: ask_father
              config:
                content: 请来访者谈谈父亲的工作和平时的相处
                tone: 温和、不催促
                exit: 知道父亲的职业和来访者的感受
                max_rounds: 50
                output:
                  - { get: 父亲职业, define: 父亲的职业, required: true }
                  - { get: 难忘的事, define: 提到的事件, append: true }
";

const ENGLISH: &str = "
session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          topic_goal: Learn what the father does and how they get along
          strategy: { text: Feelings first and facts second, min_completeness_requirement: At least the occupation, retry_strategy: Another angle, max_retry_count: 2 }
          actions:
            - action_type: ai_ask
              action_id: ask_father
              config:
                content: Ask about the father - what he does, how they get along, and whether something stands out
                tone: Warm and unhurried
                exit: The father's occupation and how the client feels about him are known
                max_rounds: 50
                output:
                  - { get: father_job, define: The father's occupation now or before he retired, required: true }
                  - { get: events, define: Events that the client mentions, append: true }
";

const CHINESE_WORDS: &str = "我也说不太清楚，可能是从上个月开始的吧。每天晚上躺下来，脑子里就会想白天开会时说过的话，担心别人是不是不高兴。\
我爸爸以前在工厂里上班，话不多，回到家就看电视，我小时候有点怕他，不过后来他生了一场病，我们的关系反而近了一些。";

const ENGLISH_WORDS: &str = "I am not quite sure, maybe it started last month. Every night when I lie down I go over what I said in the meeting and \
worry that somebody was upset. My father used to work in a factory, he did not talk much, and when he came home he watched television. ";

/// Replies like a model, and counts the tokens of what it receives.
struct Counting {
    chinese: bool,
    /// Of each call: whether it is one of a monitor, the tokens of the prompt, and those of the schema.
    calls: Mutex<Vec<(bool, usize, usize)>>,
}

fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

#[async_trait]
impl Provider for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    async fn complete(&self, request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let prompt: usize = request.messages.iter().map(|message| tokens(&message.content)).sum();
        let schema = request.schema.as_ref().map_or(0, |schema| tokens(&schema.to_string()));
        let is_monitor = request.task.purpose == Purpose::Monitor;
        let number = {
            let mut calls = self.calls.lock().unwrap();
            calls.push((is_monitor, prompt, schema));
            calls.len()
        };
        let words = |chinese: &'static str, english: &'static str| if self.chinese { chinese } else { english };
        let reply = if is_monitor {
            json!({ "intervention_needed": true, "intervention_reason": "insufficient", "intervention_level": "action_feedback",
                "strategy_suggestion": "rephrase",
                "feedback_for_action": words("对方绕开了父亲。先回应担心，再从家里的气氛问起。", "They talk a lot but step around their father. Acknowledge the worry, then ask what home felt like."),
                "modified_approach": words("从一件小事问起。", "Start from one small, concrete event."),
                "orchestration_needed": false, "orchestration_reason": null, "suggested_orchestration": null })
        } else {
            let text = |what: &str| format!("{what} {number}");
            let mut reply = json!({ "BRIEF": "…", "EXIT": "NO", "progress_suggestion": "blocked",
                "metadata": { "emotional_tone": "…", "crisis_signal": false },
                "safety_risk": { "detected": false, "risk_type": null, "confidence": null, "reason": null },
                "content": words("听起来很不容易。小时候您和父亲通常怎样相处？", "That sounds like a hard time. What was it usually like with your father when you were a child?"),
                "metrics": {
                    "information_completeness": text(words("还不知道职业，知道一些相处的情况", "The occupation is unknown; a little is known about how they get along")),
                    "user_engagement": text(words("回答很长，愿意说，但绕开了父亲", "Long answers, willing, but stepping around the father")),
                    "emotional_intensity": text(words("担心和疲惫，中等强度", "Worried and tired, of medium strength")),
                    "reply_relevance": text(words("部分相关，没有正面回答", "Partly relevant, without a direct answer")) } });
            let event = if self.chinese { "难忘的事" } else { "events" };
            reply[event] = json!(text(words("父亲生病的那次", "When the father was ill")));
            reply[if self.chinese { "父亲职业" } else { "father_job" }] = json!(null);
            reply
        };
        Ok(ModelReply { text: reply.to_string(), model: "counting".to_owned(), attempts: 1, ..ModelReply::default() })
    }
}

fn answer(words: &str, number: usize, chars: usize) -> String {
    format!("{number} {}", words.repeat(1 + chars / words.chars().count())).chars().take(chars).collect()
}

/// The tokens of all calls of a conversation with answers of this length.
async fn sizes(chinese: bool, chars: usize) -> Vec<(bool, usize, usize)> {
    let project = tempfile::tempdir().unwrap();
    let (script, scheme, words) =
        if chinese { (CHINESE, None, CHINESE_WORDS) } else { (ENGLISH, Some("english"), ENGLISH_WORDS) };
    let (program, _) = test_session::pinned(script, project.path(), scheme);
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let model = Arc::new(Counting { chinese, calls: Mutex::default() });
    let mut session = test_session::start_conversation(
        &program,
        store,
        test_session::FixedModels::of(Arc::clone(&model) as Arc<dyn Provider>),
    )
    .await;
    for number in 0..TURNS {
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        if number > 0 {
            session.wait_for_result().await;
            session.commit_results().await.unwrap();
        }
        let taken = session.answer(&answer(words, number, chars), None).await.unwrap();
        assert_eq!(taken, TakenAnswer::Yes);
    }
    session.advance().await.unwrap();
    drop(session);
    model.calls.lock().unwrap().clone()
}

#[tokio::test]
async fn a_prompt_with_its_schema_stays_within_its_budget_and_does_not_grow() {
    for chinese in [true, false] {
        for chars in [20, USUAL_CHARS, 400, 3000] {
            let calls = sizes(chinese, chars).await;
            for is_monitor in [false, true] {
                let of_kind: Vec<_> = calls.iter().filter(|(monitor, ..)| *monitor == is_monitor).collect();
                assert!(of_kind.len() >= TURNS - 2, "{}", of_kind.len());
                let totals: Vec<usize> = of_kind.iter().map(|(_, prompt, schema)| prompt + schema).collect();
                let schema = of_kind.iter().map(|(.., schema)| *schema).max().unwrap();
                let at = |turn: usize| totals[turn.min(totals.len() - 1)];
                let most = totals.iter().max().unwrap();
                let language = if chinese { "zh" } else { "en" };
                let kind = if is_monitor { "monitor" } else { "turn" };
                println!(
                    "{language} {kind:7} {chars:4} characters: schema {schema}, turn 1 {}, 10 {}, 25 {}, 50 {}, most {most}",
                    at(0),
                    at(10),
                    at(25),
                    at(50)
                );
                if chars <= USUAL_CHARS {
                    assert!(*most <= MAX_TOKENS, "{language} {kind} with answers of {chars} characters: {most}");
                }
                // The history is full after ten exchanges, and nothing else grows.
                let early = totals.iter().take(25).max().unwrap();
                assert!(*most <= early + early / 20, "{language} {kind} {chars}: {early} in 25 turns, then {most}");
            }
        }
    }
}
