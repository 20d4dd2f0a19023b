//! Plans for the rest of a topic. Each file of `tests/plans/` has one plan and the resulting actions of the topic in `script.yaml`, or
//! the reason for its rejection. Also the requests for plans, with models that answer, fail and send nonsense.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_engine::clock::FixedClock;
use bcc_engine::files::TemplateFolders;
use bcc_engine::pin::Pinned;
use bcc_engine::recheck::PinnedScript;
use bcc_lang::schema::compiled::Compiled;
use bcc_lang::schema::embedded;
use bcc_lang::script::read::scheme;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::layers::collect;
use bcc_lang::value::scopes::Scopes;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::ModelRequest;
use bcc_llm::providers::replay::Replay;
use bcc_llm::reply::read::read;
use bcc_llm::reply::shape::ReplyShape;
use bcc_runtime::program::analysis::{InterventionReason, MonitorAnalysis};
use bcc_runtime::program::event::{Event, Speaker};
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::orchestration::edits::{id_of, is_skipped};
use bcc_runtime::program::orchestration::plan::{Cursor, OrchestrationPlan, PlanChange, PlanError, Revision};
use bcc_runtime::program::orchestration::plan_prompt::{OrchestrationContext, PlanRequest};
use bcc_runtime::program::orchestration::plans::{Accepted, Plans};
use bcc_runtime::program::orchestration::{
    Generated, MAX_PLAN_REQUESTS, generate_orchestration_plan, should_orchestrate,
};
use bcc_runtime::program::program::Program;
use bcc_runtime::program::recheck::Recheck;
use bcc_runtime::program::services::Services;
use bcc_runtime::program::transcript::{RecentTranscript, TranscriptEntry};
use serde_json::{Value, json};

use crate::test_session;

const FAMILY: &str = "family";

/// The checked program of the script in `text`, and the [`PinnedScript`] that checks it again.
fn pinned(text: &str) -> (Program, PinnedScript) {
    crate::at_root();
    let file = Arc::new(SourceFile::new("script.yaml", text));
    let parsed = parse(&file);
    let scheme = parsed.root.as_deref().and_then(scheme);
    let nowhere = TemplateFolders::of(Path::new("tests/plans"));
    let templates = collect(&nowhere, scheme.as_ref().map(|scheme| scheme.value.as_str())).unwrap();
    let pinned = Pinned::new(file, templates, BTreeMap::new());
    let (program, found) = pinned.check(parsed).unwrap();
    let program = program.unwrap_or_else(|| panic!("{found:#?}"));
    (program, PinnedScript::new(Arc::new(pinned)))
}

fn script() -> String {
    crate::at_root();
    std::fs::read_to_string("tests/plans/script.yaml").unwrap()
}

/// The ids and kinds of the actions of a program, by topic.
fn tree(program: &Program) -> Vec<(String, Vec<(String, &'static str)>)> {
    let topics = program.phases.iter().flat_map(|phase| &phase.topics);
    let steps = |topic: &bcc_runtime::program::program::Topic| {
        topic.steps.iter().map(|step| (step.id.clone(), step.kind)).collect::<Vec<_>>()
    };
    topics.map(|topic| (topic.id.clone(), steps(topic))).collect()
}

fn plan(reply: &Value, revision: Revision) -> OrchestrationPlan {
    OrchestrationPlan::from_reply(reply.as_object().unwrap(), revision, "new_1").unwrap()
}

/// Runs one case. Returns the plans of the visit and the result of the last one.
fn run(case: &Value, recheck: &dyn Recheck) -> (Plans, Result<Accepted, PlanError>) {
    let index = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
    let cursor = Cursor { at: index(&case["at"]), started: case["begun"].as_bool().unwrap_or(true) };
    let mut plans = Plans::default();
    for earlier in case["before"].as_array().into_iter().flatten() {
        let earlier = plan(earlier, plans.revision(cursor));
        plans.apply(earlier, cursor, FAMILY, recheck).unwrap_or_else(|error| panic!("{error:?}"));
    }
    let mut revision = plans.revision(cursor);
    if let Some(asked_at) = case.get("asked_at") {
        revision.cursor = Cursor { at: index(asked_at), started: true };
    }
    if let Some(asked_plans) = case.get("asked_plans") {
        revision.plans = asked_plans.as_u64().unwrap() as u32;
    }
    let result = plans.apply(plan(&case["plan"], revision), cursor, FAMILY, recheck);
    (plans, result)
}

/// `ask`, or `(ask)` if the action is skipped.
fn shown(action: &Value) -> String {
    if is_skipped(action) { format!("({})", id_of(action)) } else { id_of(action).to_owned() }
}

fn cases() -> Vec<(String, Value)> {
    crate::at_root();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir("tests/plans").unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| !file.ends_with("script.yaml"));
    files.sort();
    assert!(files.len() >= 60, "only {} cases", files.len());
    let case = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let root = parse(&Arc::new(SourceFile::new("case.yaml", text.as_str())));
        assert!(root.diagnostics.is_empty(), "{}: {:#?}", file.display(), root.diagnostics);
        (file.file_stem().unwrap().to_string_lossy().into_owned(), root.root.unwrap().to_json())
    };
    files.into_iter().map(case).collect()
}

#[test]
fn every_plan_changes_the_topic_as_its_case_says_or_is_rejected_for_the_given_reason() {
    let (_, recheck) = pinned(&script());
    for (name, case) in cases() {
        let (plans, result) = run(&case, &recheck);
        match (case.get("refused"), result) {
            (None, Ok(accepted)) => {
                let list: Vec<String> = accepted.actions.iter().map(shown).collect();
                assert_eq!(json!(list), case["after"], "{name}");
                let ids: Vec<String> = accepted.actions.iter().map(|action| id_of(action).to_owned()).collect();
                let topic = tree(&accepted.program).remove(0);
                let steps: Vec<String> = topic.1.into_iter().map(|(id, _)| id).collect();
                assert_eq!((topic.0.as_str(), steps), (FAMILY, ids), "{name}");
                assert!(accepted.program.phases[0].topics[0].strategy.orchestration, "{name}: no further plan");
                for (id, expected) in case["changed"].as_object().into_iter().flatten() {
                    let action = accepted.actions.iter().find(|action| id_of(action) == id);
                    assert_eq!(action, Some(expected), "{name}");
                }
                let stored: Plans = serde_json::from_value(serde_json::to_value(&plans).unwrap()).unwrap();
                assert_eq!(stored, plans, "{name}");
                let replayed = stored.replay(recheck.actions(FAMILY).unwrap()).unwrap();
                assert_eq!(replayed, accepted.actions, "{name}: another topic after a resume");
            }
            (Some(expected), Err(error)) => {
                let (code, reason) = expected.as_object().unwrap().iter().next().unwrap();
                assert_eq!(&error.code, code, "{name}: {}", error.why);
                let reason = reason.as_str().unwrap();
                // The case contains only a part of the message of the check.
                let matches =
                    if code == "does-not-check" { error.why.to_string().contains(reason) } else { error.why == reason };
                assert!(matches, "{name}: {}", error.why);
                assert_eq!(plans.rejected, 1, "{name}");
                assert_eq!(plans.applied.len(), case["before"].as_array().map_or(0, Vec::len), "{name}");
            }
            (None, Err(error)) => panic!("{name} was refused: {error:?}"),
            (Some(_), Ok(accepted)) => panic!("{name} was not refused: {:?}", accepted.actions),
        }
    }
}

#[test]
fn a_plan_that_is_nested_too_deep_or_too_long_is_rejected_before_the_check() {
    let (_, recheck) = pinned(&script());
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!([deep]);
    }
    for content in [deep, json!("长".repeat(10_000))] {
        let new = json!({ "action_type": "ai_say", "action_id": "more", "config": { "content": content } });
        let case = json!({ "at": 1, "plan": { "action": "insert", "new_action": new } });
        let (_, result) = run(&case, &recheck);
        assert_eq!(result.err().unwrap().code, "plan-too-large");
    }
}

#[test]
fn a_script_checked_again_with_its_own_actions_is_the_same_program() {
    crate::at_root();
    let mut topics = 0;
    for folder in ["tests/scripts/ok", "scripts", "tests/plans"] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let file = entry.unwrap().path();
            let is_script = file.extension().is_some_and(|extension| extension == "yaml")
                && (folder != "tests/plans" || file.ends_with("script.yaml"));
            if !is_script {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let (program, recheck) = pinned(&text);
            for topic in program.phases.iter().flat_map(|phase| &phase.topics) {
                let actions = recheck.actions(&topic.id).unwrap();
                let ids: Vec<&str> = actions.iter().map(id_of).collect();
                assert_eq!(ids, topic.steps.iter().map(|step| step.id.as_str()).collect::<Vec<_>>());
                let again = recheck
                    .recheck(&topic.id, &actions)
                    .unwrap_or_else(|errors| panic!("{}, {}: {errors:#?}", file.display(), topic.id));
                assert_eq!(tree(&again), tree(&program), "{}", file.display());
                topics += 1;
            }
        }
    }
    assert!(topics >= 15, "only {topics} topics");
}

#[test]
fn what_a_plan_leaves_alone_is_what_its_author_wrote() {
    let text = r#"session:
  session_id: 007
  x-mark: &mark { said: "a \x85 \u2028 b" }
  x-other: *mark
  phases:
    - phase_id: 1.10
      topics:
        - topicId: 0o17
          actions:
            - &first
              actionType: ai_say
              actionId: 1e3
              config: { content_template: 1.50, tone: !!str 5, goal: "{session_goal} ${nobody}", maxRounds: !!int "2" }
        - topic_id: last
          actions:
            - { action_type: set, action_id: 2_0, config: { values: { n: 0x10, t: 'true' } } }
            - { action_type: ai_say, action_id: ~x, config: { content: "{{ n }}" } }
"#;
    let text = text.replace(" ${nobody}", "").replace("~x", "x");
    let (program, recheck) = pinned(&text);
    assert_eq!(recheck.actions("0o17").unwrap()[0]["action_id"], "1e3");
    let again =
        recheck.recheck("last", &recheck.actions("last").unwrap()).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!(tree(&again), tree(&program));
    assert_eq!((again.id.as_str(), again.phases[0].id.as_str()), ("007", "1.10"));
    let mut actions = recheck.actions("0o17").unwrap();
    actions[0]["config"]["content"] = json!("别的");
    let again = recheck.recheck("0o17", &actions).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!(tree(&again), tree(&program), "the id `1e3` stays the text that it is");
    assert!(recheck.actions("1.1").is_none() && recheck.actions("17").is_none());
    assert!(recheck.recheck("nowhere", &actions).is_err());
}

#[test]
fn the_event_of_a_plan_has_the_plan_and_the_actions_before_and_after() {
    let (_, recheck) = pinned(&script());
    let reply = json!({ "action": "skip", "target_position": "rest", "reason": "他累了" });
    let case = json!({ "at": 1, "plan": reply });
    let (plans, result) = run(&case, &recheck);
    assert!(result.is_ok());
    let analysis = needed();
    let original = recheck.actions(FAMILY).unwrap();
    let event = |rejection: Option<&PlanError>| -> Event {
        plans.event(&plans.applied[0].plan, rejection, (&analysis, "ask_father"), &original)
    };
    let expected = json!({
        "type": "orchestrated", "reason": "blocked", "route": "skip", "from": "ask_father", "why": "他累了", "accepted": true,
        "plan": {
            "action": "skip", "target_position": "rest", "reason": "他累了", "revision": { "plans": 0, "at": 1, "begun": true },
        },
        "original": ["greet", "ask_father", "ask_detail", "ask_mother", "check", "rest"],
        "now": ["greet", "ask_father", "ask_detail", "ask_mother", "check"],
    });
    assert_eq!(serde_json::to_value(event(None)).unwrap(), expected);
    let rejection =
        serde_json::to_value(event(Some(&PlanError::new("too-late", "`rest` has already started")))).unwrap();
    assert_eq!((&rejection["accepted"], &rejection["why"]), (&json!(false), &json!("`rest` has already started")));
}

#[test]
fn a_visit_is_restored_on_resume_and_rejected_if_the_script_differs() {
    let (program, recheck) = pinned(&script());
    assert!(Plans::default().program(FAMILY, &recheck).unwrap().is_none());
    let case =
        json!({ "at": 1, "plan": { "action": "reorder", "order": ["rest", "ask_detail", "ask_mother", "check"] } });
    let (plans, result) = run(&case, &recheck);
    let resumed = plans.program(FAMILY, &recheck).unwrap().unwrap();
    assert_eq!(tree(&resumed.program), tree(&result.unwrap().program));
    assert_ne!(tree(&resumed.program), tree(&program));
    let other = script().replace("action_id: ask_detail", "action_id: ask_less").replace("{{ father_job }}", "");
    assert_eq!(plans.program(FAMILY, &pinned(&other).1).err().unwrap().code, "unknown-action");
}

fn needed() -> Value {
    let analysis = MonitorAnalysis {
        intervention_reason: InterventionReason::Blocked,
        orchestration_needed: true,
        orchestration_reason: Some("对方不愿谈父亲".into()),
        ..MonitorAnalysis::default()
    };
    serde_json::to_value(analysis).unwrap()
}

struct HangingModel;

#[async_trait::async_trait]
impl Provider for HangingModel {
    fn name(&self) -> &str {
        "hangs"
    }

    async fn complete(&self, _request: &ModelRequest, _live: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        std::future::pending().await
    }
}

/// The topic `family` in the second round of `ask_father`.
fn context(script: &str, model: Option<Arc<dyn Provider>>, plans: &Plans, cursor: Cursor) -> OrchestrationContext {
    let (program, recheck) = pinned(script);
    let program = Arc::new(program);
    let actions = plans.replay(recheck.actions(FAMILY).unwrap()).unwrap();
    let services = Services {
        models: test_session::FixedModels::without_monitors(model),
        clock: Arc::new(FixedClock::new("2026-11-22T20:00:00Z".parse().unwrap())),
        observer: Arc::new(test_session::SilentObserver),
        recheck: Arc::new(recheck),
        recorder: None,
        keeps_globals: false,
        host: Default::default(),
    };
    let mut recent = RecentTranscript::new(20, 8000, true);
    recent.push(TranscriptEntry { speaker: Speaker::User, text: "{{ nickname }} 不想说".into() });
    let place = EventLocation { action_id: Some("ask_father".into()), round: Some(2), ..EventLocation::default() };
    OrchestrationContext::new(PlanRequest {
        program: &program,
        services: &services,
        session: "",
        phase: &program.phases[0],
        topic: &program.phases[0].topics[0],
        place: &place,
        recent: &recent,
        scopes: Scopes::default(),
        actions,
        cursor,
        plans,
        exit_reason: None,
        last_seq: 12,
        call_id: "c12.o".into(),
    })
}

const CURRENT: Cursor = Cursor { at: 1, started: true };

#[test]
fn a_plan_is_asked_for_only_when_it_is_needed_allowed_and_could_change_something() {
    let asks = |analysis: &Value, script: &str, plans: &Plans, cursor: Cursor| {
        should_orchestrate(analysis, &context(script, None, plans, cursor))
    };
    let (none, over) = (Plans::default(), Cursor { at: 6, started: false });
    assert!(asks(&needed(), &script(), &none, CURRENT));
    assert!(
        asks(&needed(), &script(), &none, Cursor { at: 5, started: true }),
        "the content of the last one can change"
    );
    assert!(!asks(&json!(MonitorAnalysis::default()), &script(), &none, CURRENT), "nobody says that it is needed");
    assert!(
        !asks(&needed(), &script().replace(", orchestration: on", ""), &none, CURRENT),
        "the topic does not allow it"
    );
    assert!(!asks(&needed(), &script(), &none, over), "the topic is over");
    let many = Plans { requests: MAX_PLAN_REQUESTS, ..Plans::default() };
    assert!(!asks(&needed(), &script(), &many, CURRENT), "it was asked for too often");
    let before = json!([
        { "action": "skip", "target_position": "rest" }, { "action": "skip", "target_position": "check" },
        { "action": "modify", "modifications": { "content": "一" } }, { "action": "modify", "modifications": { "content": "二" } },
    ]);
    let fifth = json!({ "action": "modify", "modifications": { "content": "三" } });
    let (plans, _) = run(&json!({ "at": 1, "before": before, "plan": fifth }), &pinned(&script()).1);
    assert_eq!(plans.applied.len(), 5);
    assert!(!asks(&needed(), &script(), &plans, CURRENT), "five plans are the most");
}

/// The result of a reply to the orchestrator's prompt.
async fn generate_with_reply(reply: &str) -> Generated {
    generate_with_replies(&[json!(reply)]).await
}

#[tokio::test]
async fn a_plan_is_read_with_the_revision_that_it_was_made_for_and_its_call_is_recorded() {
    let reply = json!({ "action": "skip", "target_position": "rest", "new_action": null, "modifications": null, "order": null, "reason": "累了" });
    let generated = generate_with_reply(&reply.to_string()).await;
    let plan = generated.plan.unwrap();
    assert_eq!(plan.revision, Revision { plans: 0, cursor: CURRENT });
    assert_eq!((plan.action.name(), plan.reason.as_str()), ("skip", "累了"));
    let call = generated.calls.into_iter().next().unwrap();
    assert_eq!((call.purpose, call.call_id.as_str(), call.model.as_str()), ("orchestrator", "c12.o", "replay"));
    assert_eq!((call.parse_retry_count, &call.error, generated.error), (Some(1), &None, None));
    let prompt = call.debug_info["llm_prompt"][1]["content"].as_str().unwrap();
    for part in [
        r#"{"index":1,"action_id":"ask_father","action_type":"ai_ask","state":"current","content":"问父亲的职业","exit":"知道职业"}"#,
        r#""state":"done""#,
        "问做 {{ father_job }} 多少年了",
        "{{ nickname }} 不想说",
        "对方不愿谈父亲",
        "了解抚养者",
        "宁可少问",
        "当前动作：ask_father",
    ] {
        assert!(prompt.contains(part), "{part} is not in {prompt}");
    }
    let fenced = generate_with_reply(&format!("好的：\n```json\n{reply}\n```")).await;
    assert_eq!((fenced.plan.is_some(), fenced.calls[0].parse_retry_count), (true, Some(3)));
}

/// The result of these replies to the orchestrator's prompts, in order.
async fn generate_with_replies(replies: &[Value]) -> Generated {
    let replies = json!({ "replies": { "orchestrator:ask_father": replies } }).to_string();
    let model = Replay::parse("replies", &replies).unwrap();
    generate_orchestration_plan(&needed(), &context(&script(), Some(Arc::new(model)), &Plans::default(), CURRENT)).await
}

#[tokio::test]
async fn a_rejected_plan_is_requested_once_more_with_the_reason() {
    let wrong = json!({ "action": "insert", "new_action": { "type": "exec", "code": "1" }, "target_position": null, "modifications": null, "order": null, "reason": "a" });
    let right = json!({ "action": "skip", "target_position": "rest", "reason": "b" });
    let good = generate_with_replies(&[wrong.clone(), right]).await;
    assert_eq!((good.plan.unwrap().reason.as_str(), good.calls.len(), good.repeated), ("b", 2, true));
    let [.., reply, note] = good.calls[1].debug_info["llm_prompt"].as_array().unwrap().as_slice() else { panic!() };
    assert_eq!(reply["content"], wrong.to_string());
    assert!(note["content"].as_str().unwrap().contains("not `exec`"), "{note}");
    assert_ne!(good.calls[0].call_id, good.calls[1].call_id);
    // A second one that is wrong, too, cannot be read or does not come is not requested again; the rejected plan is recorded.
    for second in [vec![wrong.clone()], vec![json!("好的")], vec![]] {
        let again = generate_with_replies(&[vec![wrong.clone()], second].concat()).await;
        assert_eq!((again.plan.unwrap().action.name(), again.calls.len() >= 2), ("insert", true));
    }
}

#[tokio::test]
async fn a_model_that_wants_no_change_gives_a_plan_without_one_and_nonsense_gives_none() {
    let none = generate_with_reply(r#"{"action": "none", "reason": "换个说法就够"}"#).await;
    assert_eq!((none.plan.unwrap().action, none.error, none.calls.len()), (PlanChange::NoChange, None, 1));
    let unknown = generate_with_reply(r#"{"action": "explode"}"#).await;
    assert_eq!(unknown.plan.unwrap().action, PlanChange::NoChange, "a word that there is not counts as none");
    assert_ne!(unknown.calls[0].coercions, json!([]), "and that is recorded");
    let nonsense = generate_with_reply("我觉得应该先安抚").await;
    assert!(nonsense.plan.is_none() && nonsense.error.is_some());
    assert_eq!(nonsense.calls[0].parse_retry_count, Some(3));
    assert_eq!(nonsense.calls[0].debug_info["llm_response"], "我觉得应该先安抚");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_not_there_or_never_answers_gives_no_plan_and_the_record_of_the_call() {
    let plans = Plans::default();
    let nowhere = generate_orchestration_plan(&needed(), &context(&script(), None, &plans, CURRENT)).await;
    assert!(nowhere.plan.is_none() && nowhere.error.is_some() && nowhere.calls.is_empty());
    let hangs = context(&script(), Some(Arc::new(HangingModel)), &plans, CURRENT);
    let hung = generate_orchestration_plan(&needed(), &hangs).await;
    assert!(hung.plan.is_none());
    assert_eq!(
        hung.calls[0].error.as_ref().map(ToString::to_string).as_deref(),
        Some("nothing was received within 120 s")
    );
}

fn shape() -> (Value, ReplyShape) {
    let schema: Value = serde_json::from_str(embedded::reply("topic_orchestrator").unwrap()).unwrap();
    let shape = ReplyShape::new(&schema, &[]).unwrap();
    (schema, shape)
}

#[test]
fn every_example_of_the_shipped_templates_is_a_plan_that_is_read_without_bending() {
    crate::at_root();
    let (_, shape) = shape();
    for place in ["default", "custom/english"] {
        let text = std::fs::read_to_string(format!("_system/config/{place}/topic_orchestrator_v1.md")).unwrap();
        let mut changes = Vec::new();
        for (start, _) in text.match_indices("\n{\n") {
            let end = start + text[start..].find("\n}\n").unwrap() + 2;
            let reply = read(text[start..end].trim(), &shape, false).unwrap();
            let plan = OrchestrationPlan::from_reply(&reply.object, Revision::default(), "new_1");
            // The first one shows the form, with descriptions instead of values.
            if !changes.is_empty() || plan.as_ref().is_some_and(|plan| plan.action != PlanChange::NoChange) {
                assert_eq!(reply.coercions, [], "{place}");
                changes.push(plan.unwrap().action.name());
            }
        }
        assert_eq!(changes, ["insert", "modify", "skip", "reorder"], "{place}");
    }
}

#[test]
fn the_schema_of_the_reply_describes_each_field_and_its_default() {
    let (schema, _) = shape();
    Compiled::new(&schema).unwrap();
    for (name, field) in schema["properties"].as_object().unwrap() {
        assert!(field["title"].is_string() && field["description"].is_string(), "{name}");
        assert!(Compiled::new(field).unwrap().is_valid(&field["default"]), "{name}");
    }
    let names: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(schema["required"], json!(names));
}

#[test]
fn problems_of_the_original_order_are_not_attributed_to_a_plan() {
    let early = script().replace("说说今天想谈家庭", "{{ father_job }} {{ father_years }}");
    let (_, recheck) = pinned(&early);
    let skip = json!({ "at": 0, "plan": { "action": "skip", "target_position": "rest" } });
    let accepted = run(&skip, &recheck).1.unwrap_or_else(|error| panic!("{error:?}"));
    assert!(accepted.program.phases[0].topics[0].strategy.orchestration);
    let worse = json!(["ask_father", "ask_detail", "check", "ask_mother", "rest"]);
    let reorder = json!({ "at": 0, "plan": { "action": "reorder", "order": worse } });
    assert_eq!(run(&reorder, &recheck).1.err().unwrap().code, "does-not-check");
}
