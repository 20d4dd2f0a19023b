//! Tests of `templates render` through the program: the rendered prompt is the one that a run sends, a stored session's prompt is the one
//! that was sent, and problems of a template are reported with their place.

mod behaviors;
mod names_and_secrets;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bcc_authoring::render::comparison::{PromptComparison, compare};
use bcc_authoring::render::request::SentRequest;
use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::export::export;
use bcc_engine::project::Project;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use serde_json::Value;

use crate::process::{Finished, Home};

const CLOCK: &str = "2026-11-22T08:59:00Z";

const SCRIPT: &str = r#"
session:
  session_id: talk
  who: 林医生
  global_goal: 认识{{ city }}的人
  declare:
    - { var: name, type: string }
    - { var: city, value: 北京 }
    - { var: people, type: list, value: [母亲, 父亲] }
    - { var: pin, type: string, sensitive: true }
  skills:
    - skill_id: comfort
      inputs: [ { var: what } ]
      actions:
        - { action_type: ai_say, action_id: soothe, config: { content: "{{ what }}会过去的。" } }
  phases:
    - phase_id: p
      phase_goal: 开始
      topics:
        - topic_id: t
          topic_goal: 了解{{ name }}
          strategy: { text: 慢慢来, orchestration: on }
          actions:
            - action_type: ai_ask
              action_id: ask_name
              config: { content: 怎么称呼您？, reask: 1, tone: 温和, exit: 说了名字, output: [{ get: name, define: 名字 }], max_rounds: 3 }
            - action_type: ai_ask
              action_id: ask_pin
              config: { content: "{{ name }}，请说暗号。", max_rounds: 2, delivery: verbatim, output: [{ get: pin }] }
            - { action_type: ai_say, action_id: bye, config: { content: "再见，{{ name }}。", goal: 道别 } }
            - { action_type: set, action_id: move, config: { values: { city: 上海 } } }
            - action_type: condition
              action_id: check
              config:
                cases:
                  - when: city == '上海'
                    actions:
                      - { action_type: ai_think, action_id: sum_up, config: { content: 总结一下, input_variables: [name], output: [{ get: idea }] } }
        - topic_id: each
          for_each: { in: people, as: person }
          actions:
            - { action_type: ai_think, action_id: think, config: { content: "想想{{ person }}", output: [{ get: idea }] } }
            - { action_type: use_skill, action_id: call, config: { skill: comfort, input: { what: "{{ person }}" } } }
"#;

/// The first reply is the content of the action, and those of later rounds are the placeholders of `render`, so that both
/// conversations are the same.
const REPLIES: &str = r#"
replies:
  ask_name:
    - { content: 怎么称呼您？, EXIT: "NO", safety_risk: { detected: false } }
    - { content: ⟦reply of round 1⟧, EXIT: "NO", name: null, BRIEF: "", progress_suggestion: continue_needed, safety_risk: { detected: false }, metadata: { emotional_tone: 平, crisis_signal: false }, metrics: { information_completeness: 缺, user_engagement: 好, emotional_intensity: 静, reply_relevance: 切 } }
    - 这不是 JSON
    - { content: 记下了, EXIT: "YES", name: 小林 }
  ask_pin:
    - { content: 是芝麻开门对吧？, EXIT: "NO", pin: 芝麻开门 }
    - { content: 好, EXIT: "YES", pin: 芝麻开门吧 }
  bye: [ { content: 再见小林 } ]
  sum_up: [ { idea: 很好 } ]
  think: [ { idea: 一 }, { idea: 二 } ]
  soothe: [ { content: 会好的 }, { content: 都会好的 } ]
"#;

struct RenderFixture {
    home: Home,
}

impl RenderFixture {
    fn new(script: &str) -> Self {
        let home = Home::new();
        home.file("script.yaml", script);
        home.file("replies.yaml", REPLIES);
        fs::create_dir_all(home.path().join("_system/config/default")).unwrap();
        Self { home }
    }

    fn with_session(script: &str) -> Self {
        let fixture = Self::new(script);
        let finished = fixture.run(&["--model", "replay:replies.yaml"]);
        assert_eq!(finished.code, Some(0), "{}", finished.err);
        fixture
    }

    fn run(&self, options: &[&str]) -> Finished {
        let arguments = ["run", "script.yaml", "--session", "s", "--clock", CLOCK];
        self.home.finish(arguments.iter().chain(options), "我姓林\n小林\n芝麻开门\n对\n")
    }

    fn template(&self, name: &str, text: &str) {
        let path = self.home.path().join("_system/config").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn render(&self, options: &[&str]) -> Finished {
        self.home.finish(["templates", "render"].iter().chain(options), "")
    }

    fn json(&self, options: &[&str]) -> Value {
        let finished = self.render(&[options, &["--json"]].concat());
        assert_eq!(finished.code, Some(0), "{options:?}: {}", finished.err);
        assert_eq!(finished.err, "", "{options:?}");
        serde_json::from_str(&finished.out).unwrap()
    }

    fn action(&self, id: &str, options: &[&str]) -> Value {
        self.json(&[&["--script", "script.yaml", "--action", id, "--clock", CLOCK], options].concat())
    }
}

fn role_and_text(messages: &Value) -> Vec<(String, String)> {
    let text = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
    messages.as_array().unwrap().iter().map(|one| (text(one, "role"), text(one, "content"))).collect()
}

/// The prompts of an action in an export, in order.
fn sent(export: &Value, id: &str) -> Vec<Vec<(String, String)>> {
    let of_action =
        |event: &&Value| event["location"]["action_id"] == id && event["debug_info"]["llm_prompt"].is_array();
    let mut events: Vec<&Value> = ["outcomes", "model_calls"]
        .iter()
        .flat_map(|part| export[*part].as_array().unwrap())
        .filter(of_action)
        .collect();
    events.sort_by_key(|event| event["seq"].as_u64());
    events.iter().map(|event| role_and_text(&event["debug_info"]["llm_prompt"])).collect()
}

#[test]
fn the_rendered_prompt_is_the_one_that_a_run_sends() {
    let messages = "---\nhistory: messages\ntemperature: 0.5\nmax_tokens: 300\nmodel: fast\n---\n<!-- system -->\n{{ who }} {{ time }} {{ city }}\n<!-- user -->\n{{ task }}|{{ tone }}|{{ exit }}|{{ answer }}|{{ opening }}|{{ current_round }}/{{ max_rounds }}|{{ output_list }}|{{ chat }}|{{ global_goal }}{{ topic_goal }}{{ last_user_message }}{{ name }}\n";
    for (name, template, scheme) in
        [("built in", None, None), ("messages", Some(messages), None), ("english", None, Some("english"))]
    {
        let fixture = RenderFixture::new(SCRIPT);
        // Without `model: fast`, because the replay has the replies of all calls.
        if let Some(text) = template {
            fixture.template("default/ai_ask_v1.md", &text.replace("model: fast\n", ""));
        }
        let scheme: Vec<&str> = scheme.map(|scheme| vec!["--scheme", scheme]).unwrap_or_default();
        let finished = fixture.run(&[&["--model", "replay:replies.yaml"], &scheme[..]].concat());
        assert_eq!(finished.code, Some(0), "{name}: {}", finished.err);
        let sent = sent(&fixture.home.export("s"), "ask_name");
        assert_eq!(sent.len(), 4, "{name}");
        if let Some(text) = template {
            fixture.template("default/ai_ask_v1.md", text);
        }
        let opening = fixture.action("ask_name", &scheme);
        assert_eq!(role_and_text(&opening["messages"]), sent[0], "{name}");
        let first = fixture.action("ask_name", &[&["--answer", "我姓林"], &scheme[..]].concat());
        assert_eq!(role_and_text(&first["messages"]), sent[1], "{name}");
        let second = ["--round", "2", "--answer", "我姓林", "--answer", "小林"];
        let second = fixture.action("ask_name", &[&second, &scheme[..]].concat());
        assert_eq!(role_and_text(&second["messages"]), sent[2], "{name}");
        assert_eq!((&second["round"], &second["answer"]), (&Value::from(2), &Value::from("小林")));
        assert_eq!(opening["schema"], "ai_ask");
        if name == "messages" {
            assert_eq!((&opening["temperature"], &opening["max_tokens"]), (&Value::from(0.5), &Value::from(300)));
            assert_eq!((&opening["model"], &opening["history"]), (&Value::from("fast"), &Value::from("messages")));
            let roles: Vec<&str> =
                second["messages"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
            // The last answer is in the text of the template, and not repeated before it.
            assert_eq!(roles, ["system", "assistant", "user", "assistant", "user"]);
            let tokens: u64 =
                second["messages"].as_array().unwrap().iter().map(|one| one["tokens"].as_u64().unwrap()).sum();
            assert_eq!(second["tokens"], tokens);
        }
    }
}

#[test]
fn an_action_is_found_anywhere_and_gets_declared_and_given_variables() {
    let fixture = RenderFixture::new(SCRIPT);
    let content =
        |prompt: &Value| role_and_text(&prompt["messages"]).into_iter().map(|(_, text)| text).collect::<String>();
    let prompt_text = |id: &str, options: &[&str]| content(&fixture.action(id, options));
    assert!(prompt_text("think", &[]).contains("想想母亲"), "the first element of the list");
    assert!(prompt_text("think", &["--var", "person=姑姑"]).contains("想想姑姑"));
    assert!(prompt_text("think", &["--var", r#"people=["外婆"]"#]).contains("想想外婆"));
    assert!(prompt_text("soothe", &["--var", "what=难过"]).contains("难过会过去的"));
    assert!(prompt_text("sum_up", &["--var", "name=小林"]).contains("小林"));
    let file = fixture.home.file("vars.yaml", "name: 大林\ncity: 上海\n");
    let bye = prompt_text("bye", &["--vars", file.to_str().unwrap(), "--var", "name=小林"]);
    assert!(bye.contains("再见，小林。") && bye.contains("认识上海的人"), "{bye}");
    let wrong = fixture.render(&["--script", "script.yaml", "--action", "bye", "--var", "nmae=x"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.contains("the variable `nmae` is not visible") && wrong.err.contains("did you mean `name`?"),
        "{}",
        wrong.err
    );
    let skill = fixture.render(&["--script", "script.yaml", "--action", "soothe"]);
    assert!(skill.err.contains("is in the skill `comfort`"), "{}", skill.err);
}

#[test]
fn the_prompts_of_monitors_and_planners_are_rendered_with_placeholders() {
    let fixture = RenderFixture::new(SCRIPT);
    let script = ["--script", "script.yaml", "--action", "ask_name"];
    let monitor = fixture.json(&[&["ai_ask_monitor"], &script[..], &["--answer", "不想说"]].concat());
    let text: String = role_and_text(&monitor["messages"]).into_iter().map(|(_, text)| text).collect();
    assert!(text.contains("⟦user_engagement⟧") && text.contains("不想说") && text.contains("慢慢来"), "{text}");
    assert_eq!(
        (&monitor["schema"], &monitor["template"]),
        (&Value::from("ai_ask_monitor"), &Value::from("ai_ask_monitor_v1.md"))
    );
    let plan = fixture.json(&[&["topic_orchestrator"], &script[..]].concat());
    let text: String = role_and_text(&plan["messages"]).into_iter().map(|(_, text)| text).collect();
    assert!(text.contains("⟦orchestration_reason⟧") && text.contains(r#""action_id":"ask_pin""#), "{text}");
    let other = fixture.render(&[&["ai_say_monitor"], &script[..]].concat());
    assert_eq!(other.code, Some(2));
    assert!(other.err.contains("its templates are `ai_ask` and `ai_ask_monitor`"), "{}", other.err);
}

#[test]
fn an_action_without_a_prompt_is_reported_with_help() {
    let fixture = RenderFixture::new(SCRIPT);
    for (options, expected) in [
        (&["--action", "ask_pin"][..], "`--answer TEXT` shows the call that judges the answer to it"),
        (&["--action", "move"], "`move` is of type `set` and asks no model"),
        (&["--action", "check"], "it contains the actions `sum_up`"),
        (&["--action", "bye", "--answer", "好"], "`bye` does not wait for an answer in round 1"),
        (&["--action", "ask_name", "--round", "4"], "at most 3 rounds"),
        (&["--action", "ask_name", "--answer", "a", "--answer", "b"], "2 answers are too many for round 1"),
        (&["--action", "ask_nmae"], "did you mean `ask_name`?"),
        (&["--action", "ask_name", "--scheme", "../x"], "`../x` is not a valid name for a template scheme"),
    ] {
        let finished = fixture.render(&[&["--script", "script.yaml"], options].concat());
        assert_eq!(finished.code, Some(2), "{options:?}: {}", finished.err);
        assert!(finished.err.contains(expected) && finished.out.is_empty(), "{options:?}: {}", finished.err);
    }
    let judgement = fixture.action("ask_pin", &["--answer", "芝麻", "--var", "name=小林"]);
    assert_eq!(judgement["answer"], "芝麻");
}

#[test]
fn undefined_names_are_marked_and_differ_from_those_without_a_value() {
    let fixture = RenderFixture::new(SCRIPT);
    fixture.template("default/part.md", "\n{{ 部分 }}\n");
    fixture.template(
        "default/ai_ask_v1.md",
        "---\ndescription: d\n---\n您好{{ 用户命 }}，{{ name }}{{ pin | default('无') }}{{ topic_goal }}\n{% if opening %}{% include 'part.md' %}{% else %}{{ later }}{% endif %}\n{{ maybe | default('x') }}",
    );
    let shown = fixture.render(&["--script", "script.yaml", "--action", "ask_name"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert_eq!(shown.out, "── 1 · user · about 18 tokens ──\n您好⟦用户命?⟧，无了解\n\n⟦部分?⟧\nx\n");
    let lines: Vec<&str> =
        shown.err.lines().filter(|line| line.starts_with("undefined") || line.starts_with("empty")).collect();
    assert_eq!(
        lines,
        [
            "undefined: `用户命` at _system/config/default/ai_ask_v1.md:4:6",
            "undefined: `later` at _system/config/default/ai_ask_v1.md:5:53 (not reached this time)",
            "undefined: `部分` at _system/config/default/part.md:2:4",
            "empty: `name` at _system/config/default/ai_ask_v1.md:4:16 is defined but has no value yet",
            "empty: `pin` at _system/config/default/ai_ask_v1.md:4:26 is defined but has no value yet",
        ]
    );
    let json = fixture.action("ask_name", &["--var", "name=小林"]);
    assert_eq!(json["unknown"].as_array().unwrap().len(), 3);
    assert_eq!(json["empty"].as_array().unwrap().len(), 1);
    // A run would send the same except for unknown names, and fails because of them.
    assert_eq!(fixture.run(&["--model", "offline"]).code, Some(2));
}

#[test]
fn a_template_alone_gets_the_given_names_and_no_others() {
    let fixture = RenderFixture::new(SCRIPT);
    fixture.template(
        "custom/gentle/ai_say_v2.md",
        "<!-- system -->\n{{ who }}\n<!-- user -->\n{{ list | join('、') }}{{ who.x }}\n",
    );
    let file = fixture.home.file("v.json", r#"{ "list": ["一", "二"] }"#);
    let alone = ["ai_say_v2", "--scheme", "gentle", "--vars", file.to_str().unwrap()];
    let prompt = fixture.json(&alone);
    let expected =
        [("system", "⟦who?⟧"), ("user", "一、二⟦who.x?⟧")].map(|(role, text)| (role.to_owned(), text.to_owned()));
    assert_eq!(role_and_text(&prompt["messages"]), expected);
    // An attribute that a value does not have is an error, as in a run.
    let given = fixture.render(&[&alone[..], &["--var", "who=林"]].concat());
    assert_eq!(given.code, Some(1));
    assert!(
        given.err.contains("_system/config/custom/gentle/ai_say_v2.md:4:26: `who.x` has no value"),
        "{}",
        given.err
    );
    let given = fixture.json(&["ai_say", "--var", "who=林"]);
    assert!(role_and_text(&given["messages"])[0].1.contains('林'));
    for (name, expected) in
        [("ai_sya", "did you mean"), ("ai_say_v9", "available versions: 1"), ("script.yaml", "`--script`")]
    {
        let finished = fixture.render(&[name]);
        assert_eq!(finished.code, Some(2), "{}", finished.err);
        assert!(finished.err.contains(expected), "{name}: {}", finished.err);
    }
}

#[test]
fn a_template_that_does_not_render_is_reported_as_by_validate() {
    for (text, expected) in [
        ("{% include 'ai_ask_v1.md' %}".to_owned(), "[include-loop]"),
        ("a\n{{ x | uper }}".to_owned(), "ai_ask_v1.md:2:8"),
        ("{% if %}".to_owned(), "[template-syntax]"),
        ("---\nmodle: m\n---\n".to_owned(), "did you mean `model`?"),
        (
            "{% for a in range(1000) %}{% for b in range(1000) %}{% set x = a %}{% endfor %}{% endfor %}".to_owned(),
            "500000 steps",
        ),
        ("x".repeat(10 * 1024 * 1024), "1 MiB"),
    ] {
        let fixture = RenderFixture::new(SCRIPT);
        fixture.template("default/ai_ask_v1.md", &text);
        let short: String = text.chars().take(40).collect();
        for options in [&["ai_ask"][..], &["--script", "script.yaml", "--action", "ask_name"]] {
            let finished = fixture.render(options);
            assert_eq!(finished.code, Some(1), "{short} {options:?}: {}", finished.err);
            let same =
                finished.err.contains(expected) || (expected == "1 MiB" && finished.err.contains("ai_ask_v1.md"));
            assert!(same && finished.out.is_empty(), "{short} {options:?}: {}", finished.err);
        }
    }
}

#[test]
fn every_call_of_a_stored_session_is_shown_as_it_was_sent() {
    let fixture = RenderFixture::with_session(SCRIPT);
    let export = fixture.home.export("s");
    let before = fs::read(fixture.home.store()).unwrap();
    for (id, rounds) in [
        ("ask_name", &[(1, 2), (2, 2)][..]),
        ("ask_pin", &[(1, 1), (2, 1)]),
        ("bye", &[(1, 1)]),
        ("sum_up", &[(1, 1)]),
        ("think", &[(1, 2)]),
        ("soothe", &[(1, 2)]),
    ] {
        let mut sent = sent(&export, id).into_iter();
        for (round, calls) in rounds {
            for call in 1..=*calls {
                let (round, call) = (round.to_string(), call.to_string());
                let shown = fixture.json(&["--session", "s", "--action", id, "--round", &round, "--call", &call]);
                let place = format!("{id} {round} {call}: {}", shown["error"]);
                assert_eq!(role_and_text(&shown["then"]["messages"]), sent.next().unwrap(), "{place}");
                assert_eq!((&shown["same"], &shown["repeated"]), (&Value::Bool(true), &Value::Bool(true)), "{place}");
                assert_eq!(shown["calls"], *calls, "{place}");
            }
        }
        assert!(sent.next().is_none(), "{id}");
    }
    assert_eq!(fs::read(fixture.home.store()).unwrap(), before, "nothing was written");
    let pin = fixture.render(&["--session", "s", "--action", "ask_pin"]);
    assert!(pin.out.contains("***") && !pin.out.contains("芝麻开门"), "{}", pin.out);
    assert!(pin.out.ends_with("── now ──\nthe same\n"), "{}", pin.out);
}

#[test]
fn a_changed_template_is_compared_with_the_sent_prompt() {
    let fixture = RenderFixture::new(SCRIPT);
    let text = "<!-- system -->\n规则一\n规则二\n<!-- user -->\n{{ task }}，第{{ current_round }}轮：{{ answer }}\n{{ chat }}\n";
    fixture.template("default/ai_ask_v1.md", text);
    assert_eq!(fixture.run(&["--model", "replay:replies.yaml"]).code, Some(0));
    fixture.template("default/ai_ask_v1.md", &text.replace("规则二", "规则三 {{ 新名 }}"));
    let shown = fixture.render(&["--session", "s", "--action", "ask_name", "--round", "1"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert_eq!(
        shown.out,
        "── 1 · system · about 11 tokens then, 14 now ──\n--- then\n+++ now\n@@ -1,2 +1,2 @@\n 规则一\n-规则二\n+规则三 ⟦新名?⟧\n\n── 2 · user · about 27 tokens then, 27 now ──\nthe same\n"
    );
    assert!(shown.err.contains("undefined: `新名` at _system/config/default/ai_ask_v1.md:3:8"), "{}", shown.err);
    let json = fixture.json(&["--session", "s", "--action", "ask_name", "--round", "1", "--call", "1"]);
    assert_eq!(
        (&json["same"], &json["repeated"], &json["call"]),
        (&Value::Bool(false), &Value::Bool(true), &Value::from(1))
    );
    // A template of another scheme.
    fixture.template("custom/other/ai_ask_v1.md", text);
    let other = fixture.json(&["--session", "s", "--action", "ask_name", "--scheme", "other"]);
    assert_eq!(other["same"], true);
    // The template no longer renders: the output shows what was sent, and why there is no current prompt.
    fixture.template("default/ai_ask_v1.md", "{{ broken");
    let broken = fixture.render(&["--session", "s", "--action", "ask_name"]);
    assert_eq!(broken.code, Some(1), "{}", broken.err);
    assert!(broken.out.contains("规则二") && broken.out.contains("this prompt is no longer sent"), "{}", broken.out);
    assert!(broken.out.contains("_system/config/default/ai_ask_v1.md:1"), "{}", broken.out);
}

#[test]
fn a_running_session_is_read_without_a_lock() {
    let fixture = RenderFixture::new(SCRIPT);
    let arguments =
        ["run", "script.yaml", "--session", "s", "--clock", CLOCK, "--model", "replay:replies.yaml", "--json"];
    let mut running = fixture.home.start(arguments);
    running.event_of("waiting");
    let shown = fixture.json(&["--session", "s", "--action", "ask_name"]);
    assert_eq!((&shown["same"], &shown["round"]), (&Value::Bool(true), &Value::from(1)));
    running.feed("我姓林\n小林\n芝麻开门\n对\n".as_bytes().to_vec());
    let finished = running.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.err);
}

#[test]
fn a_missing_part_of_a_session_is_reported_with_the_existing_ones() {
    let fixture = RenderFixture::with_session(SCRIPT);
    for (options, expected) in [
        (&["--session", "x", "--action", "ask_name"][..], "sessions list"),
        (&["--session", "s", "--action", "move"], "actions that asked a model are `ask_name`, `ask_pin`, `bye`"),
        (&["--session", "s", "--action", "ask_name", "--round", "9"], "it asked a model in these rounds: 1, 2"),
        (&["--session", "s", "--action", "bye", "--call", "2"], "its calls are numbered from 1 to 1"),
        (&["--session", "s", "--action", "bye", "--store", "none.db"], "there is no store"),
    ] {
        let finished = fixture.render(options);
        assert_eq!(finished.code, Some(2), "{options:?}: {}", finished.err);
        assert!(finished.err.contains(expected), "{options:?}: {}", finished.err);
    }
}

struct SilentObserver;

impl Observer for SilentObserver {
    fn delta(&self, _delta: &Delta<'_>) {}
}

/// Runs the demonstration, with monitors and the planner finishing while the person thinks.
async fn demonstration() -> (Arc<dyn Store>, Project, String) {
    let root = PathBuf::from(crate::ROOT);
    let environment = Environment::default();
    let file = root.join("scripts/cbt_anxiety.yaml");
    let project = Project::of(&file, None, false, &environment).unwrap();
    let engine = Engine::new(project.clone(), environment, Arc::new(MemoryStore::default()));
    let model = Some(format!("replay:{}", root.join("examples/cbt_anxiety.replies.yaml").display()));
    let request = RunRequest { file, model, session: Some("s".into()), ..RunRequest::default() };
    let mut session = engine.run(&request, Arc::new(SilentObserver)).await.unwrap().session;
    for answer in fs::read_to_string(Path::new(&root).join("examples/cbt_anxiety.answers.txt")).unwrap().lines() {
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        while tokio::time::timeout(Duration::from_secs(1_000), session.wait_for_result()).await.is_ok() {
            session.commit_results().await.unwrap();
        }
        session.answer(answer, None).await.unwrap();
    }
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    (Arc::clone(engine.store()), project, "s".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_conversation_with_every_feature_is_shown_call_by_call() {
    let (store, project, session) = demonstration().await;
    let export = export(store.as_ref(), &session, true).await.unwrap();
    assert!(export["plans"].as_array().unwrap().iter().any(|plan| plan["accepted"] == true), "there is a plan");
    assert!(export["monitor_feedback"].as_array().unwrap().iter().any(|row| row["used"] == true), "there is advice");
    let mut places: Vec<(String, u32)> = Vec::new();
    for call in export["model_calls"].as_array().unwrap().iter().filter(|call| call["purpose"] == "action") {
        let place = &call["location"];
        let round = u32::try_from(place["round"].as_u64().unwrap()).unwrap();
        places.push((place["action_id"].as_str().unwrap().to_owned(), round));
    }
    assert!(places.len() > 10);
    let mut numbers: std::collections::BTreeMap<(String, u32), usize> = std::collections::BTreeMap::new();
    for (action, round) in places {
        let call = numbers.entry((action.clone(), round)).or_default();
        *call += 1;
        let request = SentRequest {
            session: session.clone(),
            action: action.clone(),
            round: Some(round),
            call: Some(*call),
            ..SentRequest::default()
        };
        let PromptComparison { same, repeated, current, .. } =
            compare(store.as_ref(), &project, &request).await.unwrap();
        assert!(repeated && same, "{action} {round} {call}: {:?}", current.err());
    }
}
