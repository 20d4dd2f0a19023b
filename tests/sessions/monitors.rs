//! Monitors (docs/monitors.md): what happens between a turn and the prompt of the next. Includes unit tests 8 and 9 and integration
//! tests 4 to 6 of docs/acceptance-004.md, as far as they concern this.

use crate::checking;
use crate::test_session;
use crate::watching;
use std::path::Path;
use std::sync::Arc;

use bcc_lang::template::language::PromptLanguage;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::Masker;
use bcc_lang::value::scopes::Scopes;
use bcc_llm::model::message::Role;
use bcc_llm::model::request::Purpose;
use bcc_runtime::notebook::state::NotebookState;
use bcc_runtime::plan::access::PlanAccess;
use bcc_runtime::program::analysis::{AnalysisResult, InterventionReason, MonitorAnalysis, MonitorMetadata};
use bcc_runtime::program::cell_reader::NoCells;
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::outcome::Outcome;
use bcc_runtime::program::services::Services;
use bcc_runtime::program::transcript::RecentTranscript;
use bcc_runtime::program::turn::{Turn, TurnResources};
use serde_json::{Map, Value, json};

use watching::{BLOCKED, NEXT, SCRIPT, Seeded, Still, context, monitor, program, put, watched};

async fn analyze(
    kind: &str,
    id: &str,
    action: usize,
    scheme: Option<&str>,
    reply: &str,
) -> (AnalysisResult, Arc<Seeded>) {
    let project = tempfile::tempdir().unwrap();
    let program = program(project.path(), scheme);
    let provider = Seeded::new(reply, 0);
    let context = context(&program, action, &provider, 12);
    (monitor(kind).analyze_with_llm(&watched(kind, id, "敷衍"), &context).await, provider)
}

fn outcome(metrics: Value, parse_error: bool) -> Outcome {
    let mut metadata = Map::new();
    metadata.insert("parse_error".into(), json!(parse_error));
    Outcome { metrics: metrics.as_object().unwrap().clone(), metadata, ..Outcome::default() }
}

#[test]
fn parse_metrics_takes_the_metrics_of_its_kind_and_fills_in_what_is_missing() {
    let mixed = outcome(json!({ "user_engagement": "投入", "reply_relevance": 5, "other": "x" }), false);
    let expected = json!({
        "information_completeness": "信息不可用", "user_engagement": "投入", "emotional_intensity": "信息不可用",
        "reply_relevance": "信息不可用",
    });
    assert_eq!(monitor("ai_ask").parse_metrics(&mixed, PromptLanguage::Zh), expected.as_object().cloned());
    let expected =
        json!({ "user_engagement": "投入", "emotional_intensity": "信息不可用", "understanding_level": "信息不可用" });
    assert_eq!(monitor("ai_say").parse_metrics(&mixed, PromptLanguage::Zh), expected.as_object().cloned());
    // An opening turn has none, and those of an unreadable reply are not about the person.
    assert_eq!(monitor("ai_ask").parse_metrics(&outcome(json!({}), false), PromptLanguage::Zh), None);
    assert_eq!(
        monitor("ai_ask").parse_metrics(&outcome(json!({ "user_engagement": "x" }), true), PromptLanguage::Zh),
        None
    );
}

#[tokio::test]
async fn analyze_with_llm_shows_the_model_all_that_004_lists_and_reads_its_answer() {
    let (result, provider) = analyze("ai_ask", "ask", 0, None, BLOCKED).await;
    let prompt = provider.prompt(Role::User);
    for shown in [
        "ask（ai_ask）",
        "第 2 轮，共 3 轮",
        "job（必需）：父亲的职业",
        "退出条件：知道职业",
        "<提问>\n您父亲做什么工作？\n</提问>",
        "<回答>\n> 嗯\n> </回答>\n</回答>",
        "关于 ask 第 1 轮：先问气氛\n  之后：blocked；投入度：更短了",
        "还不知道职业",
        "敷衍",
        "语气变冷",
        "没有偏题",
        "continue_needed",
        "至少知道大致行业",
        "2 次",
        "起初愿意谈",
    ] {
        assert!(prompt.contains(shown), "{shown}: {prompt}");
    }
    assert!(result.analysis.intervention_needed);
    assert_eq!(result.analysis.intervention_reason, InterventionReason::Blocked);
    assert_eq!(result.analysis.metadata, MonitorMetadata { parse_error: false, parse_retry_count: 1 });
    let call = result.calls.into_iter().next().unwrap();
    assert_eq!((call.call_id.as_str(), call.purpose, call.model.as_str()), ("c12.m", "monitor", "seeded"));
    assert_eq!(
        (call.tokens_in, call.tokens_out, call.parse_retry_count, &call.error),
        (Some(7), Some(7), Some(1), &None)
    );
    assert_eq!(call.debug_info["llm_response"], json!(BLOCKED));
    let asked = provider.asked.lock().unwrap();
    assert_eq!((asked[0].task.purpose, asked[0].task.action_id.as_str()), (Purpose::Monitor, "ask"));
}

#[tokio::test]
async fn the_monitor_of_ai_say_sees_what_the_person_answered_and_gives_an_example() {
    let reply = r#"好的：```json
{"understanding_issue": "true", "issue_type": "too_abstract", "feedback_for_action": "概念太抽象", "example_suggestion": "换个角度看问题"}
```"#;
    let (result, provider) = analyze("ai_say", "say", 1, None, reply).await;
    let prompt = provider.prompt(Role::User);
    assert!(prompt.contains("不太想说") && prompt.contains("只听懂了一半"), "{prompt}");
    assert_eq!(result.analysis.understanding_issue, Some(true));
    assert_eq!(result.analysis.metadata.parse_retry_count, 3);
    let monitor = monitor("ai_say");
    insta::assert_snapshot!(monitor.build_feedback_prompt(&result.analysis, &result.feedback_texts.unwrap()).unwrap(), @r"
    【表达优化建议】
    概念太抽象

    【具体例子】
    换个角度看问题

    请调整你的表达方式，确保用户能够理解。
    ");
}

#[tokio::test]
async fn integration_5_a_monitor_that_fails_in_any_way_gives_the_empty_analysis() {
    for (reply, metadata, error) in [
        ("not { json", MonitorMetadata { parse_error: true, parse_retry_count: 3 }, Some("could not be read")),
        ("", MonitorMetadata { parse_error: true, parse_retry_count: 3 }, Some("could not be read")),
        ("unreachable", MonitorMetadata::default(), Some("no such server")),
        ("{}", MonitorMetadata { parse_error: false, parse_retry_count: 1 }, None),
        (
            r#"{"intervention_needed": [], "feedback_for_action": 5}"#,
            MonitorMetadata { parse_error: false, parse_retry_count: 1 },
            None,
        ),
    ] {
        let (result, _) = analyze("ai_ask", "ask", 0, None, reply).await;
        let text = result.analysis.feedback_for_action.clone();
        assert!(text.is_none() || text.as_deref() == Some("5"), "{reply}: {text:?}");
        assert!(!result.analysis.intervention_needed && !result.analysis.orchestration_needed, "{reply}");
        assert_eq!(result.analysis.metadata, metadata, "{reply}");
        let reported = result.calls.into_iter().next().unwrap().error;
        assert_eq!(reported.is_some(), error.is_some(), "{reply}: {reported:?}");
        assert!(reported.unwrap_or_default().to_string().contains(error.unwrap_or_default()), "{reply}");
    }
}

#[tokio::test]
async fn a_monitor_s_model_is_asked_again_as_its_reply_policy_allows_and_the_last_readable_reply_counts() {
    let incomplete = r#"{"intervention_needed": true, "feedback_for_action": "先共情"}"#;
    for (replies, calls, feedback, error) in [
        (format!("不会{NEXT}{BLOCKED}"), 2, true, false),
        (format!("{incomplete}{NEXT}不会"), 2, true, false),
        (format!("不会{NEXT}不会{NEXT}不会"), 3, false, true),
        (format!("{incomplete}{NEXT}unreachable"), 2, true, false),
        (format!("{BLOCKED}{NEXT}不会"), 1, true, false),
    ] {
        let (result, provider) = analyze("ai_ask", "ask", 0, None, &replies).await;
        assert_eq!((result.calls.len(), provider.count()), (calls, calls), "{replies}");
        assert_eq!(result.analysis.feedback_for_action.is_some(), feedback, "{replies}");
        assert_eq!(result.analysis.metadata.parse_error, error, "{replies}");
        assert_eq!(result.succeeded(), !error, "{replies}");
        for (number, call) in (0..).zip(&result.calls) {
            let id = if number == 0 { "c12.m".to_owned() } else { format!("c12.m.{number}") };
            assert_eq!((call.reask, call.call_id.as_str()), (number, id.as_str()), "{replies}");
        }
        if calls > 1 {
            assert!(provider.prompt(Role::User).contains("上面的回复不能使用"), "{replies}");
            assert_eq!(provider.prompt(Role::Assistant).split("\n---\n").count(), calls - 1, "{replies}");
        }
    }
}

#[test]
fn unit_8_feedback_is_built_whenever_there_is_some_whether_or_not_an_intervention_is_needed() {
    let monitor = monitor("ai_ask");
    let analysis = |feedback: Option<&str>, approach: Option<&str>| MonitorAnalysis {
        feedback_for_action: feedback.map(str::to_owned),
        modified_approach: approach.map(str::to_owned),
        ..MonitorAnalysis::default()
    };
    let built = monitor
        .build_feedback_prompt(
            &analysis(Some("少问一点"), Some("先问气氛")),
            &monitor.feedback_texts(PromptLanguage::Zh),
        )
        .unwrap();
    insta::assert_snapshot!(built, @r"
    【Topic层策略建议】
    少问一点

    【建议调整方式】
    先问气氛

    请根据以上建议调整你的提问方式。
    ");
    let built = monitor
        .build_feedback_prompt(&analysis(Some("少问一点"), None), &monitor.feedback_texts(PromptLanguage::Zh))
        .unwrap();
    assert!(!built.contains("【建议调整方式】"), "{built}");
    for nothing in [None, Some(" \n")] {
        assert_eq!(
            monitor.build_feedback_prompt(
                &analysis(nothing, Some("先问气氛")),
                &monitor.feedback_texts(PromptLanguage::Zh)
            ),
            None
        );
    }
    let long = monitor
        .build_feedback_prompt(&analysis(Some(&"长".repeat(50_000)), None), &monitor.feedback_texts(PromptLanguage::Zh))
        .unwrap();
    assert!(long.chars().count() < 3_000);
}

#[tokio::test]
async fn under_the_english_scheme_advice_is_worded_in_english() {
    let (result, provider) = analyze("ai_ask", "ask", 0, Some("english"), BLOCKED).await;
    assert!(provider.prompt(Role::System).contains("You supervise"));
    let built = monitor("ai_ask").build_feedback_prompt(&result.analysis, &result.feedback_texts.unwrap()).unwrap();
    assert!(built.starts_with("[Advice from the topic level]\n") && built.ends_with("Adjust how you ask accordingly."));
}

#[test]
fn unit_9_only_a_need_of_orchestration_triggers_the_second_path() {
    for kind in ["ai_ask", "ai_say"] {
        for needed in [false, true] {
            let analysis = MonitorAnalysis {
                orchestration_needed: needed,
                intervention_needed: true,
                ..MonitorAnalysis::default()
            };
            assert_eq!(monitor(kind).should_trigger_orchestration(&analysis), needed);
        }
    }
}

#[tokio::test]
async fn integration_6_the_scheme_s_monitor_template_stands_before_the_default_one() {
    let project = tempfile::tempdir().unwrap();
    put(project.path(), "default/ai_ask_monitor_v1.md", "默认层 {{ metrics.user_engagement }}");
    put(project.path(), "custom/cbt/ai_ask_monitor_v1.md", "CBT层 {{ metrics.user_engagement }}");
    put(project.path(), "custom/other/part.md", "x");
    for (scheme, expected) in [(Some("cbt"), "CBT层 敷衍"), (Some("other"), "默认层 敷衍"), (None, "默认层 敷衍")]
    {
        let program = program(project.path(), scheme);
        let provider = Seeded::new("{}", 0);
        let context = context(&program, 0, &provider, 1);
        let result = monitor("ai_ask").analyze_with_llm(&watched("ai_ask", "ask", "敷衍"), &context).await;
        assert_eq!(provider.prompt(Role::User), expected);
        let own = monitor("ai_ask").feedback_texts(PromptLanguage::Zh);
        assert_eq!(result.feedback_texts, Some(own), "a template without texts leaves them to the monitor");
    }
}

#[tokio::test]
async fn a_prompt_that_cannot_be_rendered_asks_no_model() {
    let project = tempfile::tempdir().unwrap();
    put(project.path(), "default/ai_ask_monitor_v1.md", "{{ metrics.user_engagement + 1 }}");
    let program = program(project.path(), None);
    let provider = Seeded::new(BLOCKED, 0);
    let result = monitor("ai_ask")
        .analyze_with_llm(&watched("ai_ask", "ask", "敷衍"), &context(&program, 0, &provider, 1))
        .await;
    assert_eq!((provider.count(), result.calls.is_empty()), (0, true));
    assert!(!result.prompt_error.unwrap().to_string().contains("敷衍"));
    assert_eq!(result.analysis, MonitorAnalysis::default());
}

#[test]
fn monitor_off_is_respected_and_targets_are_known() {
    let project = tempfile::tempdir().unwrap();
    let program = program(project.path(), None);
    let steps = &program.phases[0].topics[0].steps;
    let ask = steps[0].action.watched().unwrap();
    let targets: Vec<&str> = ask.targets.iter().map(|target| target.get.as_str()).collect();
    assert_eq!((ask.max_rounds, targets), (3, vec!["job"]));
    assert_eq!(steps[1].action.watched().unwrap().max_rounds, 3);
    assert!(steps[2].action.watched().is_none());
}

#[test]
fn a_monitor_template_of_a_project_is_checked_like_any_other() {
    let project = tempfile::tempdir().unwrap();
    put(project.path(), "default/ai_ask_monitor_v1.md", "{{ metrics }} {{ engagment_trend }} {{ tone }}");
    let script = SCRIPT.replace("  template_scheme: SCHEME\n", "");
    let found = checking::findings(project.path(), &script, &[]);
    let unknown: Vec<String> = found
        .iter()
        .filter(|found| found.rule == "unknown-template-name")
        .map(|found| found.message.to_string())
        .collect();
    assert_eq!(unknown.len(), 2, "{}", checking::findings_report(&found));
    assert!(unknown[0].contains("`engagment_trend`") && unknown[1].contains("`tone`"), "{unknown:?}");
}

// ── advice in the prompt ────────────────────────────────────────────────────────────────────────────────────────────────────

const ADVICE: &str = "【Topic层策略建议】\n别问得太直接";

/// The user prompt of an opening turn with this advice, and whether the advice was used.
async fn prompt_with_advice(project: &Path, action: usize, advice: Option<&str>) -> (String, bool) {
    let program = program(project, None);
    let provider = Seeded::new(r#"{"content": "好", "EXIT": "NO"}"#, 0);
    let (models, clock) = (test_session::FixedModels::of(provider.clone()), Arc::new(Still));
    let services = Services {
        models,
        clock,
        observer: Arc::new(test_session::SilentObserver),
        recheck: Arc::new(test_session::SilentObserver),
        recorder: None,
        keeps_globals: false,
        host: Default::default(),
    };
    let (recent, place) = (RecentTranscript::new(20, 8000, true), EventLocation::default());
    let topic = &program.phases[0].topics[0];
    let notebook = NotebookState::default();
    let resources = TurnResources {
        program: &program,
        phase: &program.phases[0],
        topic,
        place: &place,
        session_id: "s",
        kind: topic.steps[action].kind,
        state: &ExactValue::default(),
        answer: None,
        entered: None,
        recent: &recent,
        services: &services,
        plans: &PlanAccess::in_memory(),
        reasons_with_route: &[],
        resumed: false,
        advice,
        max_rounds: None,
        calls_before: 0,
        last_seq: 0,
        branch: "",
        notebook: &notebook,
        cells: &NoCells,
        masker: &Masker::default(),
        decision: None,
        push_backs: 0,
        effect: None,
        effect_is_due: false,
        is_in_cleanup: false,
        on_interrupted: topic.steps[action].on_interrupted,
        options: &topic.steps[action].options,
    };
    let turn = Turn::new(resources, Scopes::default());
    topic.steps[action].action.turn(&turn).await.unwrap();
    (provider.prompt(Role::User), turn.into_work().advice_used)
}

#[tokio::test]
async fn unit_8_advice_stands_where_the_template_puts_it_or_else_at_the_end() {
    let project = tempfile::tempdir().unwrap();
    for action in [0, 1] {
        let (prompt, used) = prompt_with_advice(project.path(), action, Some(ADVICE)).await;
        assert_eq!((prompt.matches(ADVICE).count(), used), (1, true), "{prompt}");
        assert!(!prompt.ends_with(ADVICE), "{prompt}");
    }
    put(project.path(), "default/ai_ask_v1.md", "<!-- system -->\n规则\n<!-- user -->\n{{ task }}");
    let (prompt, used) = prompt_with_advice(project.path(), 0, Some(ADVICE)).await;
    assert_eq!((prompt.as_str(), used), (format!("父亲做什么工作？\n\n{ADVICE}").as_str(), true));
    // An included template part may place the advice.
    put(project.path(), "default/ai_ask_v1.md", "{% include 'part.md' %}\n{{ task }}");
    put(project.path(), "default/part.md", "[{{ strategy_suggestion }}]");
    let (prompt, _) = prompt_with_advice(project.path(), 0, Some(ADVICE)).await;
    assert_eq!(prompt, format!("[{ADVICE}]\n父亲做什么工作？"));
    let (prompt, used) = prompt_with_advice(project.path(), 0, None).await;
    assert_eq!((prompt.as_str(), used), ("[]\n父亲做什么工作？", false));
}
