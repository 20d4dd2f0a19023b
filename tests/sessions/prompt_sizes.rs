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

/// A session with one topic and these actions.
const CHINESE: &str = "
session:
  session_id: s
  who: 咨询师小安
  global_goal: 了解来访者的成长环境
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          topic_goal: 了解父亲
          strategy: { text: 先关心感受，再问事实, min_completeness_requirement: 至少知道职业, retry_strategy: 换一个角度, max_retry_count: 2 }
          actions:
";

const ENGLISH: &str = "
session:
  session_id: s
  who: the counsellor Ann
  global_goal: Understand the home in which the client grew up
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          topic_goal: Learn what the father does and how they get along
          strategy: { text: Feelings first and facts second, min_completeness_requirement: At least the occupation, retry_strategy: Another angle, max_retry_count: 2 }
          actions:
";

const CHINESE_ASK: &str = "
            - action_type: ai_ask
              action_id: ask_father
              config:
                content: 请来访者谈谈父亲的工作和平时的相处
                tone: 温和、不催促
                exit: 知道父亲的职业和来访者的感受
                max_rounds: 50
                output:
                  - { get: 父亲职业, define: 父亲的职业, required: true }
                  - { get: 感受, define: 来访者对父亲的感受, required: true }
                  - { get: 难忘的事, define: 提到的事件, append: true }
";

const ENGLISH_ASK: &str = "
            - action_type: ai_ask
              action_id: ask_father
              config:
                content: Ask about the father - what he does, how they get along, and whether something stands out
                tone: Warm and unhurried
                exit: The father's occupation and how the client feels about him are known
                max_rounds: 50
                output:
                  - { get: father_job, define: The father's occupation now or before he retired, required: true }
                  - { get: feelings, define: How the client feels about the father, required: true }
                  - { get: events, define: Events that the client mentions, append: true }
";

const CHINESE_SAY: &str = "
            - action_type: ai_say
              action_id: say_diary
              config:
                content: 说明为什么要记录睡眠：只有把上床、入睡、醒来的时间写下来，才看得出真正睡了多久；白天担心的事也写一句，第二次谈话时一起看。漏几天不要紧
                goal: 愿意从今晚开始记录
                tone: 温和、不催促
                exit: 来访者能说出为什么要记录
                max_rounds: 50
";

const ENGLISH_SAY: &str = "
            - action_type: ai_say
              action_id: say_diary
              config:
                content: Explain why to keep a sleep diary - only written times of going to bed, falling asleep and waking show how much they really sleep, and a line about the day's worries helps to see what keeps them awake. Missing days do no harm
                goal: They are willing to start tonight
                tone: Warm and unhurried
                exit: They can say in their own words why the diary is useful
                max_rounds: 50
";

const CHINESE_WORDS: &str = "我也说不太清楚，可能是从上个月开始的吧。每天晚上躺下来，脑子里就会想白天开会时说过的话，担心别人是不是不高兴。\
我爸爸以前在工厂里上班，话不多，回到家就看电视，我小时候有点怕他，不过后来他生了一场病，我们的关系反而近了一些。";

const ENGLISH_WORDS: &str = "I am not quite sure, maybe it started last month. Every night when I lie down I go over what I said in the meeting and \
worry that somebody was upset. My father used to work in a factory, he did not talk much, and when he came home he watched television. ";

/// What the model says in a round: 50 characters.
const CHINESE_REPLY: &str =
    "听起来那段日子很不容易，夜里还在想白天的事，一定很累。能不能再说说，小时候您和父亲平时是怎么相处的？";

/// What the model says in a round: 120 characters.
const ENGLISH_REPLY: &str = "Lying awake and going over the day sounds really exhausting. What was it usually like with your father when you were six?";

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
            json!({ "understanding_issue": true, "issue_type": "disagreement", "example_suggestion": null, "intervention_needed": true, "intervention_reason": "insufficient", "intervention_level": "action_feedback",
                "strategy_suggestion": "rephrase",
                "feedback_for_action": words("对方绕开了父亲。先回应担心，再从家里的气氛问起。", "They talk a lot but step around their father. Acknowledge the worry, then ask what home felt like."),
                "modified_approach": words("从一件小事问起。", "Start from one small, concrete event."),
                "orchestration_needed": false, "orchestration_reason": null, "suggested_orchestration": null })
        } else {
            let text = |what: &str| format!("{what} {number}");
            let mut reply = json!({ "BRIEF": "…", "EXIT": "NO", "progress_suggestion": "blocked",
                "metadata": { "emotional_tone": "…", "crisis_signal": false },
                "safety_risk": { "detected": false, "risk_type": null, "confidence": null, "reason": null },
                "content": words(CHINESE_REPLY, ENGLISH_REPLY),
                "metrics": {
                    "information_completeness": text(words("还不知道职业，知道一些相处的情况", "The occupation is unknown; a little is known about how they get along")),
                    "user_engagement": text(words("回答很长，愿意说，但绕开了父亲", "Long answers, willing, but stepping around the father")),
                    "emotional_intensity": text(words("担心和疲惫，中等强度", "Worried and tired, of medium strength")),
                    "reply_relevance": text(words("部分相关，没有正面回答", "Partly relevant, without a direct answer")),
                    "understanding_level": text(words("能复述大意，还不信有用", "Can repeat the point, and doubts that it helps")) } });
            let event = if self.chinese { "难忘的事" } else { "events" };
            reply[event] = json!(text(words("父亲生病的那次", "When the father was ill")));
            let job = words("工厂的钳工，已经退休", "Fitter in a factory, retired");
            reply[if self.chinese { "父亲职业" } else { "father_job" }] = json!(job);
            reply[if self.chinese { "感受" } else { "feelings" }] = json!(null);
            reply
        };
        Ok(ModelReply { text: reply.to_string(), model: "counting".to_owned(), attempts: 1, ..ModelReply::default() })
    }
}

fn answer(words: &str, number: usize, chars: usize) -> String {
    format!("{number} {}", words.repeat(1 + chars / words.chars().count())).chars().take(chars).collect()
}

/// The tokens of all calls of a conversation with answers of this length.
async fn sizes(chinese: bool, script: &str, chars: usize) -> Vec<(bool, usize, usize)> {
    let project = tempfile::tempdir().unwrap();
    let (scheme, words) = if chinese { (None, CHINESE_WORDS) } else { (Some("english"), ENGLISH_WORDS) };
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
        // A `collect` has no monitor.
        if number > 0 && !script.contains("collect") {
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
    for (chinese, kind, action) in [
        (true, "ai_ask", CHINESE_ASK),
        (true, "ai_say", CHINESE_SAY),
        (false, "ai_ask", ENGLISH_ASK),
        (false, "ai_say", ENGLISH_SAY),
    ] {
        // The history of all kinds is limited in the same way.
        let lengths = if kind == "ai_ask" { &[20, USUAL_CHARS, 400, 3000][..] } else { &[USUAL_CHARS] };
        for &chars in lengths {
            let script = format!("{}{action}", if chinese { CHINESE } else { ENGLISH });
            let calls = sizes(chinese, &script, chars).await;
            for is_monitor in [false, true] {
                let of_kind: Vec<_> = calls.iter().filter(|(monitor, ..)| *monitor == is_monitor).collect();
                assert!(of_kind.len() >= TURNS - 2, "{}", of_kind.len());
                let totals: Vec<usize> = of_kind.iter().map(|(_, prompt, schema)| prompt + schema).collect();
                let schema = of_kind.iter().map(|(.., schema)| *schema).max().unwrap();
                let at = |turn: usize| totals[turn.min(totals.len() - 1)];
                let most = totals.iter().max().unwrap();
                let language = if chinese { "zh" } else { "en" };
                let call = format!("{language} {kind}{}", if is_monitor { " monitor" } else { "" });
                println!(
                    "{call:17} {chars:4} characters: schema {schema}, turn 1 {}, 10 {}, 25 {}, 50 {}, most {most}",
                    at(0),
                    at(10),
                    at(25),
                    at(50)
                );
                if chars <= USUAL_CHARS {
                    assert!(*most <= MAX_TOKENS, "{call} with answers of {chars} characters: {most}");
                }
                // The history is full after ten exchanges, and nothing else grows.
                let early = totals.iter().take(25).max().unwrap();
                assert!(*most <= early + early / 20, "{call} {chars}: {early} in 25 turns, then {most}");
            }
        }
    }
}

#[tokio::test]
async fn a_script_that_sets_its_history_gets_all_messages_that_it_asks_for() {
    let economical = format!("{CHINESE}{CHINESE_ASK}");
    let explicit = economical.replacen("  who:", "  history: { messages: 20, chars: 8000 }\n  who:", 1);
    let mut most = Vec::new();
    for script in [economical, explicit] {
        let calls = sizes(true, &script, USUAL_CHARS).await;
        most.push(calls.iter().filter(|(is_monitor, ..)| !is_monitor).map(|(_, prompt, _)| *prompt).max().unwrap());
    }
    // Six messages more: three answers and three lines of the model.
    let message = tokens(CHINESE_WORDS) + tokens(CHINESE_REPLY);
    assert!(most[1] > most[0] + 3 * message, "{most:?}, {message}");
}

/// Twenty slots, as a long form has them.
fn slots(chinese: bool) -> String {
    let slots: &[(&str, &str, &str)] = if chinese {
        &[
            ("出发地", "出发的城市", "您从哪里出发？"),
            ("目的地", "要去的城市", "您想去哪里？"),
            ("出发日期", "出发的日期", "哪天出发？"),
            ("返回日期", "返回的日期", "哪天回来？"),
            ("人数", "同行的人数", "一共几位？"),
        ]
    } else {
        &[
            ("origin", "City of departure", "Where do you leave from?"),
            ("destination", "City to travel to", "Where would you like to go?"),
            ("departure", "Day of departure", "Which day do you leave?"),
            ("return_day", "Day of the return", "Which day do you come back?"),
            ("people", "Number of people", "How many of you are there?"),
        ]
    };
    let action = "
            - action_type: collect
              action_id: trip
              config:
                tone: x
                max_rounds: 50
                slots:
";
    let lines = (1..=4).flat_map(|number| {
        slots.iter().map(move |(name, define, ask)| {
            format!("                  - {{ get: {name}{number}, define: {define} {number}, ask: {ask} }}\n")
        })
    });
    format!("{action}{}", lines.collect::<String>())
}

#[tokio::test]
async fn a_prompt_with_twenty_slots_stays_within_its_budget() {
    for chinese in [true, false] {
        let script = format!("{}{}", if chinese { CHINESE } else { ENGLISH }, slots(chinese));
        let calls = sizes(chinese, &script, USUAL_CHARS).await;
        let totals: Vec<usize> = calls.iter().map(|(_, prompt, schema)| prompt + schema).collect();
        let most = totals.iter().max().unwrap();
        let (_, prompt, schema) = calls.last().unwrap();
        println!("chinese: {chinese}, first {}, most {most}, last {prompt} + {schema}", totals[0]);
        assert!(*most <= MAX_TOKENS, "{most}");
        let early = totals.iter().take(25).max().unwrap();
        assert!(*most <= early + early / 20, "{early} in 25 turns, then {most}");
    }
}
