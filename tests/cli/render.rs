//! `templates render` through the program: what it shows of an action is what a run sends, word for word; what it repeats of a
//! kept session is what was sent then; and whatever a template lacks or does wrong is told where it stands.

mod behaviors;
mod names_and_secrets;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bcc_authoring::render::comparison::{PromptComparison, changed};
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

/// The first reply is the action's content and those of later rounds are the placeholders of `render`, so that the talk is the
/// same in both.
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

struct Desk {
    home: Home,
}

impl Desk {
    fn new(script: &str) -> Self {
        let home = Home::new();
        home.file("script.yaml", script);
        home.file("replies.yaml", REPLIES);
        fs::create_dir_all(home.path().join("_system/config/default")).unwrap();
        Self { home }
    }

    fn talked(script: &str) -> Self {
        let desk = Self::new(script);
        let done = desk.run(&["--model", "replay:replies.yaml"]);
        assert_eq!(done.code, Some(0), "{}", done.err);
        desk
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
        let done = self.render(&[options, &["--json"]].concat());
        assert_eq!(done.code, Some(0), "{options:?}: {}", done.err);
        assert_eq!(done.err, "", "{options:?}");
        serde_json::from_str(&done.out).unwrap()
    }

    fn action(&self, id: &str, options: &[&str]) -> Value {
        self.json(&[&["--script", "script.yaml", "--action", id, "--clock", CLOCK], options].concat())
    }
}

fn said(messages: &Value) -> Vec<(String, String)> {
    let text = |message: &Value, name: &str| message[name].as_str().unwrap().to_owned();
    messages.as_array().unwrap().iter().map(|one| (text(one, "role"), text(one, "content"))).collect()
}

/// The prompts of an action in an export, in order.
fn sent(export: &Value, id: &str) -> Vec<Vec<(String, String)>> {
    let of = |event: &&Value| event["location"]["action_id"] == id && event["debug_info"]["llm_prompt"].is_array();
    let mut events: Vec<&Value> =
        ["outcomes", "model_calls"].iter().flat_map(|part| export[*part].as_array().unwrap()).filter(of).collect();
    events.sort_by_key(|event| event["seq"].as_u64());
    events.iter().map(|event| said(&event["debug_info"]["llm_prompt"])).collect()
}

#[test]
fn what_is_rendered_of_an_action_is_what_a_run_sends() {
    let messages = "---\nhistory: messages\ntemperature: 0.5\nmax_tokens: 300\nmodel: fast\n---\n<!-- system -->\n{{ who }} {{ time }} {{ city }}\n<!-- user -->\n{{ task }}|{{ tone }}|{{ exit }}|{{ answer }}|{{ opening }}|{{ current_round }}/{{ max_rounds }}|{{ output_list }}|{{ chat }}|{{ global_goal }}{{ topic_goal }}{{ last_user_message }}{{ name }}\n";
    for (name, template, scheme) in
        [("built in", None, None), ("messages", Some(messages), None), ("english", None, Some("english"))]
    {
        let desk = Desk::new(SCRIPT);
        // A model of the project's own would be asked for by name; the run has written replies for all.
        if let Some(text) = template {
            desk.template("default/ai_ask_v1.md", &text.replace("model: fast\n", ""));
        }
        let scheme: Vec<&str> = scheme.map(|scheme| vec!["--scheme", scheme]).unwrap_or_default();
        let done = desk.run(&[&["--model", "replay:replies.yaml"], &scheme[..]].concat());
        assert_eq!(done.code, Some(0), "{name}: {}", done.err);
        let sent = sent(&desk.home.export("s"), "ask_name");
        assert_eq!(sent.len(), 4, "{name}");
        if let Some(text) = template {
            desk.template("default/ai_ask_v1.md", text);
        }
        let opening = desk.action("ask_name", &scheme);
        assert_eq!(said(&opening["messages"]), sent[0], "{name}");
        let first = desk.action("ask_name", &[&["--answer", "我姓林"], &scheme[..]].concat());
        assert_eq!(said(&first["messages"]), sent[1], "{name}");
        let second = ["--round", "2", "--answer", "我姓林", "--answer", "小林"];
        let second = desk.action("ask_name", &[&second, &scheme[..]].concat());
        assert_eq!(said(&second["messages"]), sent[2], "{name}");
        assert_eq!((&second["round"], &second["answer"]), (&Value::from(2), &Value::from("小林")));
        assert_eq!(opening["schema"], "ai_ask");
        if name == "messages" {
            assert_eq!((&opening["temperature"], &opening["max_tokens"]), (&Value::from(0.5), &Value::from(300)));
            assert_eq!((&opening["model"], &opening["history"]), (&Value::from("fast"), &Value::from("messages")));
            let roles: Vec<&str> =
                second["messages"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
            assert_eq!(roles, ["system", "assistant", "user", "assistant", "user", "user"]);
            let tokens: u64 =
                second["messages"].as_array().unwrap().iter().map(|one| one["tokens"].as_u64().unwrap()).sum();
            assert_eq!(second["tokens"], tokens);
        }
    }
}

#[test]
fn an_action_is_found_wherever_it_stands_and_gets_what_is_declared_or_given() {
    let desk = Desk::new(SCRIPT);
    let content = |prompt: &Value| said(&prompt["messages"]).into_iter().map(|(_, text)| text).collect::<String>();
    let of = |id: &str, options: &[&str]| content(&desk.action(id, options));
    assert!(of("think", &[]).contains("想想母亲"), "the first element of the list");
    assert!(of("think", &["--var", "person=姑姑"]).contains("想想姑姑"));
    assert!(of("think", &["--var", r#"people=["外婆"]"#]).contains("想想外婆"));
    assert!(of("soothe", &["--var", "what=难过"]).contains("难过会过去的"));
    assert!(of("sum_up", &["--var", "name=小林"]).contains("小林"));
    let file = desk.home.file("vars.yaml", "name: 大林\ncity: 上海\n");
    let bye = of("bye", &["--vars", file.to_str().unwrap(), "--var", "name=小林"]);
    assert!(bye.contains("再见，小林。") && bye.contains("认识上海的人"), "{bye}");
    let wrong = desk.render(&["--script", "script.yaml", "--action", "bye", "--var", "nmae=x"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.err.contains("the variable `nmae` is not visible") && wrong.err.contains("did you mean `name`?"),
        "{}",
        wrong.err
    );
    let skill = desk.render(&["--script", "script.yaml", "--action", "soothe"]);
    assert!(skill.err.contains("is in the skill `comfort`"), "{}", skill.err);
}

#[test]
fn the_prompts_of_monitors_and_planners_are_rendered_with_placeholders() {
    let desk = Desk::new(SCRIPT);
    let script = ["--script", "script.yaml", "--action", "ask_name"];
    let monitor = desk.json(&[&["ai_ask_monitor"], &script[..], &["--answer", "不想说"]].concat());
    let text: String = said(&monitor["messages"]).into_iter().map(|(_, text)| text).collect();
    assert!(text.contains("⟦user_engagement⟧") && text.contains("不想说") && text.contains("慢慢来"), "{text}");
    assert_eq!(
        (&monitor["schema"], &monitor["template"]),
        (&Value::from("ai_ask_monitor"), &Value::from("ai_ask_monitor_v1.md"))
    );
    let plan = desk.json(&[&["topic_orchestrator"], &script[..]].concat());
    let text: String = said(&plan["messages"]).into_iter().map(|(_, text)| text).collect();
    assert!(text.contains("⟦orchestration_reason⟧") && text.contains(r#""action_id":"ask_pin""#), "{text}");
    let other = desk.render(&[&["ai_say_monitor"], &script[..]].concat());
    assert_eq!(other.code, Some(2));
    assert!(other.err.contains("its templates are `ai_ask` and `ai_ask_monitor`"), "{}", other.err);
}

#[test]
fn an_action_that_asks_no_model_is_told_so_and_what_to_do() {
    let desk = Desk::new(SCRIPT);
    for (options, told) in [
        (&["--action", "ask_pin"][..], "`--answer TEXT` shows the call that judges the answer to it"),
        (&["--action", "move"], "`move` is of type `set` and asks no model"),
        (&["--action", "check"], "it contains the actions `sum_up`"),
        (&["--action", "bye", "--answer", "好"], "`bye` does not wait for an answer in round 1"),
        (&["--action", "ask_name", "--round", "4"], "at most 3 rounds"),
        (&["--action", "ask_name", "--answer", "a", "--answer", "b"], "2 answers are too many for round 1"),
        (&["--action", "ask_nmae"], "did you mean `ask_name`?"),
        (&["--action", "ask_name", "--scheme", "../x"], "`../x` is not a valid name for a template scheme"),
    ] {
        let done = desk.render(&[&["--script", "script.yaml"], options].concat());
        assert_eq!(done.code, Some(2), "{options:?}: {}", done.err);
        assert!(done.err.contains(told) && done.out.is_empty(), "{options:?}: {}", done.err);
    }
    let judged = desk.action("ask_pin", &["--answer", "芝麻", "--var", "name=小林"]);
    assert_eq!(judged["answer"], "芝麻");
}

#[test]
fn undefined_names_are_marked_at_their_place_and_those_without_a_value_are_told_apart() {
    let desk = Desk::new(SCRIPT);
    desk.template("default/part.md", "\n{{ 部分 }}\n");
    desk.template(
        "default/ai_ask_v1.md",
        "---\ndescription: d\n---\n您好{{ 用户命 }}，{{ name }}{{ pin | default('无') }}{{ topic_goal }}\n{% if opening %}{% include 'part.md' %}{% else %}{{ later }}{% endif %}\n{{ maybe | default('x') }}",
    );
    let shown = desk.render(&["--script", "script.yaml", "--action", "ask_name"]);
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
    let json = desk.action("ask_name", &["--var", "name=小林"]);
    assert_eq!(json["unknown"].as_array().unwrap().len(), 3);
    assert_eq!(json["empty"].as_array().unwrap().len(), 1);
    // A run sends the same but for the names that nobody knows, and is refused because of them.
    assert_eq!(desk.run(&["--model", "offline"]).code, Some(2));
}

#[test]
fn a_template_alone_gets_the_given_names_and_no_others() {
    let desk = Desk::new(SCRIPT);
    desk.template(
        "custom/gentle/ai_say_v2.md",
        "<!-- system -->\n{{ who }}\n<!-- user -->\n{{ list | join('、') }}{{ who.x }}\n",
    );
    let file = desk.home.file("v.json", r#"{ "list": ["一", "二"] }"#);
    let alone = ["ai_say_v2", "--scheme", "gentle", "--vars", file.to_str().unwrap()];
    let prompt = desk.json(&alone);
    let expected =
        [("system", "⟦who?⟧"), ("user", "一、二⟦who.x?⟧")].map(|(role, text)| (role.to_owned(), text.to_owned()));
    assert_eq!(said(&prompt["messages"]), expected);
    // A part of a value that is there and has no such part fails, as it would in a run.
    let given = desk.render(&[&alone[..], &["--var", "who=林"]].concat());
    assert_eq!(given.code, Some(1));
    assert!(
        given.err.contains("_system/config/custom/gentle/ai_say_v2.md:4:26: `who.x` has no value"),
        "{}",
        given.err
    );
    let given = desk.json(&["ai_say", "--var", "who=林"]);
    assert!(said(&given["messages"])[0].1.contains('林'));
    for (name, told) in
        [("ai_sya", "did you mean"), ("ai_say_v9", "available versions: 1"), ("script.yaml", "`--script`")]
    {
        let done = desk.render(&[name]);
        assert_eq!(done.code, Some(2), "{}", done.err);
        assert!(done.err.contains(told), "{name}: {}", done.err);
    }
}

#[test]
fn a_template_that_cannot_be_rendered_is_told_as_validate_tells_it() {
    for (text, told) in [
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
        let desk = Desk::new(SCRIPT);
        desk.template("default/ai_ask_v1.md", &text);
        let short: String = text.chars().take(40).collect();
        for options in [&["ai_ask"][..], &["--script", "script.yaml", "--action", "ask_name"]] {
            let done = desk.render(options);
            assert_eq!(done.code, Some(1), "{short} {options:?}: {}", done.err);
            let same = done.err.contains(told) || (told == "1 MiB" && done.err.contains("ai_ask_v1.md"));
            assert!(same && done.out.is_empty(), "{short} {options:?}: {}", done.err);
        }
    }
}

#[test]
fn every_call_of_a_kept_session_is_repeated_as_it_was_sent() {
    let desk = Desk::talked(SCRIPT);
    let export = desk.home.export("s");
    let before = fs::read(desk.home.store()).unwrap();
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
                let shown = desk.json(&["--session", "s", "--action", id, "--round", &round, "--call", &call]);
                let place = format!("{id} {round} {call}: {}", shown["error"]);
                assert_eq!(said(&shown["then"]["messages"]), sent.next().unwrap(), "{place}");
                assert_eq!((&shown["same"], &shown["repeated"]), (&Value::Bool(true), &Value::Bool(true)), "{place}");
                assert_eq!(shown["calls"], *calls, "{place}");
            }
        }
        assert!(sent.next().is_none(), "{id}");
    }
    assert_eq!(fs::read(desk.home.store()).unwrap(), before, "nothing was written");
    let pin = desk.render(&["--session", "s", "--action", "ask_pin"]);
    assert!(pin.out.contains("***") && !pin.out.contains("芝麻开门"), "{}", pin.out);
    assert!(pin.out.ends_with("── now ──\nthe same\n"), "{}", pin.out);
}

#[test]
fn a_changed_template_is_shown_beside_what_was_sent_then() {
    let desk = Desk::new(SCRIPT);
    let text = "<!-- system -->\n规则一\n规则二\n<!-- user -->\n{{ task }}，第{{ current_round }}轮：{{ answer }}\n{{ chat }}\n";
    desk.template("default/ai_ask_v1.md", text);
    assert_eq!(desk.run(&["--model", "replay:replies.yaml"]).code, Some(0));
    desk.template("default/ai_ask_v1.md", &text.replace("规则二", "规则三 {{ 新名 }}"));
    let shown = desk.render(&["--session", "s", "--action", "ask_name", "--round", "1"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert_eq!(
        shown.out,
        "── 1 · system · about 11 tokens then, 14 now ──\n--- then\n+++ now\n@@ -1,2 +1,2 @@\n 规则一\n-规则二\n+规则三 ⟦新名?⟧\n\n── 2 · user · about 34 tokens then, 34 now ──\nthe same\n"
    );
    assert!(shown.err.contains("undefined: `新名` at _system/config/default/ai_ask_v1.md:3:8"), "{}", shown.err);
    let json = desk.json(&["--session", "s", "--action", "ask_name", "--round", "1", "--call", "1"]);
    assert_eq!(
        (&json["same"], &json["repeated"], &json["call"]),
        (&Value::Bool(false), &Value::Bool(true), &Value::from(1))
    );
    // Of another scheme.
    desk.template("custom/other/ai_ask_v1.md", text);
    let other = desk.json(&["--session", "s", "--action", "ask_name", "--scheme", "other"]);
    assert_eq!(other["same"], true);
    // It does not render any more: what was sent then is shown, and why there is nothing beside it.
    desk.template("default/ai_ask_v1.md", "{{ broken");
    let broken = desk.render(&["--session", "s", "--action", "ask_name"]);
    assert_eq!(broken.code, Some(1), "{}", broken.err);
    assert!(broken.out.contains("规则二") && broken.out.contains("this prompt is no longer sent"), "{}", broken.out);
    assert!(broken.out.contains("_system/config/default/ai_ask_v1.md:1"), "{}", broken.out);
}

#[test]
fn a_session_that_runs_is_looked_at_without_being_held() {
    let desk = Desk::new(SCRIPT);
    let arguments =
        ["run", "script.yaml", "--session", "s", "--clock", CLOCK, "--model", "replay:replies.yaml", "--json"];
    let mut running = desk.home.start(arguments);
    running.event_of("waiting");
    let shown = desk.json(&["--session", "s", "--action", "ask_name"]);
    assert_eq!((&shown["same"], &shown["round"]), (&Value::Bool(true), &Value::from(1)));
    running.feed("我姓林\n小林\n芝麻开门\n对\n".as_bytes().to_vec());
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
}

#[test]
fn what_is_not_there_of_a_session_is_told_with_what_there_is() {
    let desk = Desk::talked(SCRIPT);
    for (options, told) in [
        (&["--session", "x", "--action", "ask_name"][..], "sessions list"),
        (&["--session", "s", "--action", "move"], "actions that asked a model are `ask_name`, `ask_pin`, `bye`"),
        (&["--session", "s", "--action", "ask_name", "--round", "9"], "it asked a model in these rounds: 1, 2"),
        (&["--session", "s", "--action", "bye", "--call", "2"], "its calls are numbered from 1 to 1"),
        (&["--session", "s", "--action", "bye", "--store", "none.db"], "there is no store"),
    ] {
        let done = desk.render(options);
        assert_eq!(done.code, Some(2), "{options:?}: {}", done.err);
        assert!(done.err.contains(told), "{options:?}: {}", done.err);
    }
}

struct Nobody;

impl Observer for Nobody {
    fn delta(&self, _delta: &Delta<'_>) {}
}

/// Runs the demonstration, whose monitors and planner come in while the person thinks.
async fn demonstration() -> (Arc<dyn Store>, Project, String) {
    let root = PathBuf::from(crate::ROOT);
    let environment = Environment::default();
    let file = root.join("scripts/cbt_anxiety.yaml");
    let project = Project::of(&file, None, false, &environment).unwrap();
    let engine = Engine::new(project.clone(), environment, Arc::new(MemoryStore::default()));
    let model = Some(format!("replay:{}", root.join("examples/cbt_anxiety.replies.yaml").display()));
    let request = RunRequest { file, model, session: Some("s".into()), ..RunRequest::default() };
    let mut session = engine.run(&request, Arc::new(Nobody)).await.unwrap().session;
    for answer in fs::read_to_string(Path::new(&root).join("examples/cbt_anxiety.answers.txt")).unwrap().lines() {
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        while tokio::time::timeout(Duration::from_secs(1_000), session.arrived()).await.is_ok() {
            session.note_arrivals().await.unwrap();
        }
        session.answer(answer, None).await.unwrap();
    }
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    (Arc::clone(engine.archive()), project, "s".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_talk_with_routes_skills_triggers_lists_monitors_and_a_plan_is_repeated_call_by_call() {
    let (archive, project, session) = demonstration().await;
    let export = export(archive.as_ref(), &session, true).await.unwrap();
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
        let PromptComparison { same, repeated, now, .. } = changed(archive.as_ref(), &project, &request).await.unwrap();
        assert!(repeated && same, "{action} {round} {call}: {:?}", now.err());
    }
}
