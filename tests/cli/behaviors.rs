//! Loops of behaviors (docs/protocol.md): what is asked, carried out, fed back and decided; what bad sources and deaths come to.

use crate::behaving;
use crate::mortal;
use crate::stage;
mod bad_servers;
mod joints;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bcc_runtime::effects::behaviors::BehaviorPiece;
use bcc_runtime::notebook::state::NotebookState;
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::program::program::Program;
use bcc_runtime::run::session::SessionPause;
use bcc_store::contract::Store;
use behaving::{Answer, Log, Shared, Translate, World};
use mortal::{Death, MortalArchive};
use serde_json::{Value, json};

/// How many processes one session may take: many more than there are commits.
const MOST_LIVES: usize = 400;

/// A script of three topics, the first two with a loop each.
fn script(config: &str) -> String {
    format!(
        "session:\n  session_id: report\n  declare:\n    - {{ var: rows, type: integer }}\n    - {{ var: phone, type: string, sensitive: true, value: '13800001111' }}\n    \
         - {{ var: file, type: string, value: housing.csv }}\n  phases:\n    - phase_id: p\n      topics:\n        \
         - topic_id: a\n          topic_goal: the first part\n          actions:\n            \
         - {{ action_type: behavior_loop, action_id: loop_a, config: {{ {config} }} }}\n            \
         - {{ action_type: set, action_id: after_a, config: {{ values: {{ seen: true }} }} }}\n        \
         - topic_id: b\n          actions:\n            \
         - {{ action_type: behavior_loop, action_id: loop_b, config: {{ {config} }} }}\n        \
         - topic_id: c\n          actions:\n            \
         - {{ action_type: set, action_id: after_c, config: {{ values: {{ seen: true }} }} }}\n"
    )
}

fn program(config: &str) -> Arc<Program> {
    stage::checked(&script(config), Path::new(crate::ROOT))
}

fn world(behaviors: Value, judgements: Value) -> Arc<World> {
    let answers = |value: Value| -> BTreeMap<String, Answer> {
        value.as_object().unwrap().iter().map(|(key, value)| (key.clone(), Answer::Whole(value.clone()))).collect()
    };
    Arc::new(World {
        log: Shared::default(),
        behaviors: answers(behaviors),
        judgements: answers(judgements),
        may_run: true,
    })
}

fn nobody() -> Arc<dyn ModelProviders> {
    said(&[])
}

fn said(replies: &[(&str, &str)]) -> Arc<dyn ModelProviders> {
    let replies = replies.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    stage::Only::without_monitors(Some(Arc::new(Translate(replies, Mutex::default()))))
}

/// What a session came to.
struct Ran {
    pause: SessionPause,
    journal: Vec<Value>,
    state: NotebookState,
    contents: Vec<String>,
    lives: usize,
}

/// Runs a session until it waits or ends, dying as `death` says, at each commit.
async fn run(program: &Arc<Program>, world: &Arc<World>, models: &Arc<dyn ModelProviders>, death: Death) -> Ran {
    let archive = MortalArchive::new(death);
    let stored = || Arc::clone(&archive) as Arc<dyn Store>;
    let mut session = stage::begin_in(program, stored(), Arc::clone(models), None, world.outside()).await;
    let mut lives = 1;
    let pause = loop {
        match archive.mortal(session.advance()).await {
            Some(pause) => break pause.unwrap(),
            None => {
                lives += 1;
                assert!(lives < MOST_LIVES, "it does not come to its end");
                drop(session);
                // The last commit of all was deadly, too.
                match archive.session(stage::SESSION).await.unwrap().unwrap().status.as_str() {
                    "completed" => break SessionPause::Completed,
                    "stopped" => break SessionPause::Stopped,
                    "failed" => break SessionPause::Failed,
                    _ => {}
                }
                session = stage::resume_in(program, stored(), Arc::clone(models), None, world.outside()).await;
            }
        }
    };
    let rows = archive.variables(stage::SESSION).await.unwrap();
    let state = rows.iter().find(|row| row.scope == "notebook").map(|row| serde_json::from_str(&row.value).unwrap());
    let cells = archive.cells(stage::SESSION, 0, 10_000).await.unwrap();
    let content = |body: &str| serde_json::from_str::<Value>(body).unwrap()["content"].as_str().unwrap().to_owned();
    let contents = cells.iter().map(|cell| content(&cell.body)).collect();
    let journal = stage::journal(archive.as_ref()).await;
    Ran { pause, journal, state: state.unwrap_or_default(), contents, lives }
}

impl Ran {
    fn events(&self, kind: &str) -> Vec<&Value> {
        self.journal.iter().filter(|event| event["type"] == kind).collect()
    }

    fn codes(&self) -> Vec<&str> {
        self.events("warning").into_iter().map(|event| event["code"].as_str().unwrap()).collect()
    }

    /// The behaviors as `id iteration achieved by`.
    fn behaviors(&self) -> Vec<String> {
        let told = |event: &Value| {
            format!(
                "{} {} {} {}",
                event["behavior_id"].as_str().unwrap(),
                event["iteration"],
                event["target_achieved"],
                event["decided_by"].as_str().unwrap()
            )
        };
        self.events("behavior").into_iter().map(told).collect()
    }

    /// Topics in the order in which they were entered.
    fn topics(&self) -> Vec<&str> {
        self.events("topic_entered").into_iter().map(|event| event["location"]["topic_id"].as_str().unwrap()).collect()
    }

    fn outcome(&self, action: &str) -> &Value {
        let outcomes = self.events("outcome");
        let outcome = outcomes.into_iter().rfind(|event| event["location"]["action_id"] == action);
        outcome.unwrap_or_else(|| panic!("no outcome of {action}"))
    }
}

fn text(content: &str) -> Value {
    json!({ "action": "add", "content_type": "text", "content": content })
}

fn done() -> Value {
    json!({ "actions": [], "transition": { "target_achieved": true } })
}

#[tokio::test]
async fn a_loop_goes_on_until_the_judgement_says_that_the_target_is_achieved_and_feeds_back_what_was() {
    let behaviors = json!({
        "a#1": { "behavior": { "target": "begin" }, "actions": [
            { "type": "add_section", "content": "Data", "metadata": { "section_id": "data" } },
            text("what we have"),
            { "action": { "type": "add", "content_type": "code", "content": "x = 1", "metadata": { "should_execute": true } } },
            { "action": "exec", "codecell_id": "nobody" },
        ], "transition": { "target_achieved": true } },
        "a#2": { "actions": [text("the end")], "transition": { "target_achieved": false } },
        "b#1": done(),
    });
    let judgements = json!({
        "a#1": { "target_achieved": false, "reason": "one is missing", "metadata": { "target_achieved": true } },
        "a#2": { "targetAchieved": true, "reason": "all is there" },
        "b#1": { "metadata": { "target_achieved": false } },
    });
    let world = world(behaviors, judgements);
    let ran = run(&program("server: s"), &world, &nobody(), Death::Never).await;
    assert_eq!(ran.pause, SessionPause::Completed);
    let expected =
        ["behavior_001 1 false reflection", "behavior_002 2 true reflection", "behavior_003 1 true transition"];
    assert_eq!(ran.behaviors(), expected);
    let log = world.log.lock().unwrap();
    let feedback = &log.asked[1]["behavior_feedback"];
    let counts = json!({ "behavior_id": "behavior_001", "actions_executed": 4, "actions_succeeded": 3, "actions_failed": 1,
        "sections_added": 1, "cells_added": 3, "code_cells_executed": 1 });
    for (name, count) in counts.as_object().unwrap() {
        assert_eq!(feedback[name], *count, "{name}");
    }
    assert!(feedback["execution_time_ms"].as_u64().unwrap() >= 7);
    assert!(!feedback["last_action_result"].as_str().unwrap().is_empty());
    assert_ne!(feedback["last_action_result"], "success");
    // The judgement is asked with the feedback of the behavior that it is about.
    assert_eq!(log.judged[1]["behavior_feedback"]["last_action_result"], "success");
    assert_eq!(log.ran, ["x = 1"]);
    let outcome = ran.outcome("loop_a");
    assert_eq!(
        (&outcome["exit_reason"], &outcome["metadata"]["target_achieved"]),
        (&json!("exit_criteria_met"), &json!(true))
    );
    assert_eq!(outcome["metadata"]["actions_executed"], 5);
    assert_eq!(ran.state.location.completed_steps, ["a", "b"]);
}

#[tokio::test]
async fn killed_at_every_commit_a_loop_comes_to_the_same_end_and_does_nothing_twice() {
    let code = |content: &str| json!({ "action": "add", "shot_type": "action", "content": content, "metadata": { "should_execute": true } });
    let behaviors = json!({
        "a#1": { "actions": [text("one"), text("two"), text("three")],
                 "context_update": { "todo_list_update": { "operation": "add", "items": ["more"] } } },
        "a#2": { "actions": [text("four")], "context_update": { "variables": { "rows": 5, "kept": [1] } } },
        "b#1": { "actions": [code("y = 2"), text("five")], "transition": { "target_achieved": true } },
    });
    let judgements = json!({ "a#1": { "target_achieved": false }, "a#2": { "target_achieved": true }, "b#1": {"target_achieved": true} });
    let script = script("server: s").replace("action_id: loop_b,", "action_id: loop_b, on_interrupted: retry,");
    let program = stage::checked(&script, Path::new(crate::ROOT));
    let undisturbed = run(&program, &world(behaviors.clone(), judgements.clone()), &nobody(), Death::Never).await;
    assert_eq!(undisturbed.contents, ["one", "two", "three", "four", "y = 2", "five"]);
    let mut lives = 0;
    for seed in 0..12 {
        let world = world(behaviors.clone(), judgements.clone());
        let ran = run(&program, &world, &nobody(), Death::Sometimes(seed)).await;
        lives += ran.lives;
        assert_eq!(ran.pause, SessionPause::Completed);
        assert_eq!(ran.contents, undisturbed.contents, "seed {seed}");
        assert_eq!(ran.behaviors(), undisturbed.behaviors(), "seed {seed}");
        assert_eq!(ran.state.todo_list, ["more"]);
        assert_eq!(ran.state.variables["kept"], json!([1]));
        // Code is announced first, and runs again only because the author said `retry`.
        let announced = ran.events("effect_started").len();
        assert!(world.log.lock().unwrap().ran.len() <= announced);
    }
    assert!(lives > 12, "nobody died");
    // Without code, a process may die before and after every commit.
    for death in [Death::Before, Death::After] {
        let without = json!({ "a#1": behaviors["a#1"], "a#2": behaviors["a#2"], "b#1": done() });
        let ran = run(&program, &world(without, judgements.clone()), &nobody(), death).await;
        assert_eq!(ran.contents, ["one", "two", "three", "four"], "{death:?}");
        assert!(ran.lives > 8);
    }
}

#[tokio::test]
async fn a_stream_is_carried_out_as_it_arrives_and_what_is_lost_of_it_is_never_done() {
    let action = |content: &str| Ok(BehaviorPiece::Action(text(content)));
    let around = json!({ "behavior": { "id": "theirs", "iteration": 4, "target": "t" }, "transition": { "continue_behaviors": true },
        "context_update": { "todo_list_update": { "operation": "replace", "items": ["left"] } } });
    let streams = |broken: bool| {
        let mut first = vec![action("one"), action("two"), Ok(BehaviorPiece::Response(around.clone()))];
        if broken {
            first[2] = Err("server-timeout");
        }
        let mut world = World {
            log: Arc::new(Mutex::new(Log::default())),
            behaviors: BTreeMap::new(),
            judgements: BTreeMap::new(),
            may_run: true,
        };
        world.behaviors.insert("a#1".into(), Answer::Stream(first));
        for key in ["a#2", "a#5", "b#1"] {
            world.behaviors.insert(key.into(), Answer::Whole(done()));
        }
        for (key, achieved) in [("a#4", false), ("a#2", true), ("a#5", true), ("b#1", true)] {
            world.judgements.insert(key.into(), Answer::Whole(json!({ "target_achieved": achieved })));
        }
        Arc::new(world)
    };
    let program = program("server: s");
    // Whole: the server's own id and count are kept, and ours go on from there.
    let world = streams(false);
    let ran = run(&program, &world, &nobody(), Death::Never).await;
    assert_eq!(ran.contents, ["one", "two"]);
    assert_eq!(ran.behaviors()[..2], ["theirs 4 false reflection", "behavior_002 5 true reflection"]);
    assert_eq!(ran.state.todo_list, ["left"]);
    // Broken off: what came counts, the next behavior is told, and nobody judges the half of one.
    let world = streams(true);
    let ran = run(&program, &world, &nobody(), Death::Never).await;
    assert_eq!(ran.contents, ["one", "two"]);
    assert_eq!(ran.behaviors()[0], "behavior_001 1 false interrupted");
    assert_eq!(ran.codes(), ["behavior-cut-short"]);
    let asked = world.log.lock().unwrap().asked[1]["behavior_feedback"].clone();
    assert_eq!((&asked["actions_executed"], &asked["last_action_result"]), (&json!(2), &json!("interrupted")));
    // The process dies after the first commit of the stream: its rest is lost, and nothing is repeated.
    let world = streams(false);
    let ran = run(&program, &world, &nobody(), Death::After).await;
    assert_eq!(ran.pause, SessionPause::Completed);
    assert_eq!(ran.contents, ["one"], "what arrived first stands in the frame, the rest was in memory");
    assert_eq!(ran.behaviors()[0], "behavior_001 1 false interrupted");
}

#[tokio::test]
async fn a_source_that_never_comes_to_its_end_is_bounded() {
    let many: Vec<Value> = (0..30).map(|number| text(&format!("{number}"))).collect();
    let world = world(
        json!({ "*": { "actions": many, "transition": { "continue_behaviors": true } } }),
        json!({ "*": { "target_achieved": false } }),
    );
    let ran = run(&program("server: s, max_behaviors: 3, max_actions: 4"), &world, &nobody(), Death::Never).await;
    assert_eq!(ran.pause, SessionPause::Completed);
    assert_eq!(ran.contents.len(), 3 * 4 * 2);
    let outcome = ran.outcome("loop_a");
    assert_eq!(outcome["exit_reason"], "max_rounds_reached");
    assert_eq!(outcome["metadata"]["behaviors"], 3);
    assert!(ran.behaviors()[2].ends_with("false bound"), "{:?}", ran.behaviors());
    assert_eq!(ran.codes().iter().filter(|code| **code == "too-many-actions").count(), 6);
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_is_asked_for_again_three_times_and_then_the_session_stops() {
    for (answer, code, asked) in [
        (Answer::Whole(json!("I would rather not")), "behavior-unreadable", 4),
        (Answer::Whole(json!({ "actions": 12 })), "behavior-unreadable", 4),
        (Answer::Nothing("server-rubbish"), "behavior-unreadable", 4),
        (Answer::Stream(vec![Err("server-flood")]), "behavior-unreadable", 4),
        (Answer::Nothing("server-unreachable"), "server-unreachable", 1),
        (Answer::Stream(vec![Err("server-timeout")]), "server-timeout", 1),
    ] {
        let mut world =
            World { log: Shared::default(), behaviors: BTreeMap::new(), judgements: BTreeMap::new(), may_run: true };
        world.behaviors.insert("*".into(), answer.clone());
        let world = Arc::new(world);
        let ran = run(&program("server: s"), &world, &nobody(), Death::Never).await;
        assert_eq!(ran.pause, SessionPause::Stopped, "{answer:?}");
        assert_eq!(world.log.lock().unwrap().asked.len(), asked, "{answer:?}");
        assert_eq!(ran.events("error")[0]["code"], code, "{answer:?}");
        assert_eq!(ran.codes().len(), asked - 1);
        assert!(ran.contents.is_empty());
    }
    // The same of judgements; what was done is not done again.
    let mut judged =
        World { log: Shared::default(), behaviors: BTreeMap::new(), judgements: BTreeMap::new(), may_run: true };
    judged.behaviors.insert("*".into(), Answer::Whole(json!({ "actions": [text("one")] })));
    judged.judgements.insert("*".into(), Answer::Whole(json!([1])));
    let ran = run(&program("server: s"), &Arc::new(judged), &nobody(), Death::Never).await;
    assert_eq!((ran.pause, ran.contents.len()), (SessionPause::Stopped, 1));
    let ran = run(&program("server: elsewhere"), &world(json!({}), json!({})), &nobody(), Death::Never).await;
    assert_eq!((ran.pause, &ran.events("error")[0]["code"]), (SessionPause::Stopped, &json!("server-unknown")));
}

#[tokio::test]
async fn a_source_moves_the_session_only_to_where_its_plan_has_something() {
    let to = |stage: Value, step: Value| json!({ "actions": [], "transition": { "next_stage_id": stage, "next_step_id": step } });
    // An unknown step: the session stays.
    let behaviors = json!({ "a#1": to(json!("nowhere"), json!("never")), "a#2": done(), "b#1": done() });
    let ran =
        run(&program("server: s, reflection: 'off'"), &world(behaviors, json!({})), &nobody(), Death::Never).await;
    assert_eq!((ran.pause, ran.topics()), (SessionPause::Completed, vec!["a", "b", "c"]));
    assert_eq!(ran.codes(), ["unknown-step"]);
    // A topic of the script: the session goes there, past what lies between.
    let ran = run(
        &program("server: s, reflection: 'off'"),
        &world(json!({ "a#1": to(Value::Null, json!("c")) }), json!({})),
        &nobody(),
        Death::Never,
    )
    .await;
    assert_eq!((ran.pause, ran.topics()), (SessionPause::Completed, vec!["a", "c"]));
    // A step that was planned since: the loop goes on with it, counted from 1, and then with the script.
    let plan = json!({ "name": "p", "stages": [{ "id": "p", "steps": [{ "id": "a" }, { "id": "extra", "name": "Extra", "goal": "more" }, { "id": "b" }, { "id": "c" }] }] });
    let behaviors = json!({
        "a#1": { "actions": [], "transition": { "target_achieved": true, "workflow_update": plan } },
        "extra#1": { "actions": [text("extra")] }, "extra#2": done(), "b#1": done(),
    });
    let world = world(behaviors, json!({}));
    let ran = run(&program("server: s, reflection: 'off'"), &world, &nobody(), Death::After).await;
    assert_eq!((ran.pause, ran.topics()), (SessionPause::Completed, vec!["a", "b", "c"]));
    let expected = [
        "behavior_001 1 true transition",
        "behavior_002 1 false nobody",
        "behavior_003 2 true transition",
        "behavior_004 1 true transition",
    ];
    assert_eq!(ran.behaviors(), expected);
    assert_eq!(ran.contents, ["extra"]);
}

#[tokio::test]
async fn two_topics_that_send_a_session_back_and_forth_do_not_do_so_for_ever() {
    let to = |step: &str| json!({ "actions": [], "transition": { "next_step_id": step } });
    let behaviors = json!({ "a#1": to("b"), "b#1": to("a"), "*": done() });
    let ran =
        run(&program("server: s, reflection: 'off'"), &world(behaviors, json!({})), &nobody(), Death::Never).await;
    assert_eq!(ran.pause, SessionPause::Completed);
    assert!(ran.codes().contains(&"too-many-moves"));
    assert_eq!(ran.topics().iter().filter(|topic| **topic == "b").count(), 26);
}

#[tokio::test]
async fn code_that_is_not_allowed_is_a_failure_and_unknown_actions_are_skipped() {
    let behaviors = json!({ "*": { "actions": [
        { "action": "add", "content_type": "code", "content": "x", "metadata": { "should_execute": true } },
        { "action": "dance" }, 7, { "action": "exec" }, text("after"),
    ], "transition": { "target_achieved": true } } });
    let world = world(behaviors, json!({ "*": { "target_achieved": true } }));
    let mut forbidden = Arc::into_inner(world).unwrap();
    forbidden.may_run = false;
    let world = Arc::new(forbidden);
    let ran = run(&program("server: s"), &world, &nobody(), Death::Never).await;
    assert_eq!(ran.pause, SessionPause::Completed);
    assert_eq!(world.log.lock().unwrap().ran, Vec::<String>::new());
    assert!(ran.events("effect_started").is_empty());
    assert_eq!(ran.codes(), ["unknown-action", "unknown-action"]);
    let counts = &world.log.lock().unwrap().judged[0]["behavior_feedback"];
    let told = ["actions_executed", "actions_succeeded", "actions_failed"].map(|name| counts[name].as_u64().unwrap());
    // What is no object at all is left out by the reader of responses.
    assert_eq!(told, [3, 1, 2], "{counts}");
}

#[tokio::test]
async fn declared_variables_keep_their_type_and_sensitive_ones_are_shown_to_nobody() {
    let behaviors = json!({
        "a#1": { "actions": [text("call 13800001111")],
                 "context_update": { "variables": { "rows": "many", "note": { "deep": [1] } } } },
        "a#2": { "actions": [], "context_update": { "variables": { "phone": "13900002222" } }, "transition": { "target_achieved": true } },
        "b#1": done(),
    });
    let judgements = json!({ "a#1": { "target_achieved": false, "context_update": { "variables": { "rows": 7 } } }, "*": { "target_achieved": true } });
    let world = world(behaviors, judgements);
    let ran = run(&program("server: s"), &world, &nobody(), Death::Never).await;
    assert_eq!(ran.codes(), ["variable-misfit"]);
    let asked = &world.log.lock().unwrap().asked;
    let variables = &asked[1]["observation"]["context"]["variables"];
    assert_eq!(
        (&variables["rows"], &variables["file"], &variables["note"]),
        (&json!(7), &json!("housing.csv"), &json!({ "deep": [1] }))
    );
    assert_eq!(variables.get("phone"), None);
    assert!(!asked[1].to_string().contains("13800001111"), "{}", asked[1]);
    assert!(asked[1].to_string().contains("call "));
    for told in asked.iter().chain(ran.events("variable_set")).map(Value::to_string) {
        assert!(!told.contains("13900002222"), "{told}");
    }
}

#[tokio::test]
async fn a_model_is_a_source_and_is_asked_for_its_judgement() {
    let one = r##"{"behavior": {"target": "begin"}, "actions": [{"action": "new_section", "content": "Data"}], "context_update": {"todo_list_update": {"operation": "remove", "items": ["Data"]}}, "transition": {"target_achieved": true}}"##;
    let models = said(&[
        ("behavior 1", one),
        ("reflection 1", r#"{"target_achieved": false, "reason": "not yet"}"#),
        // A list of actions alone is a behavior, too.
        (
            "behavior 2",
            "```json\n[{\"action\": \"add\", \"content\": \"the rest\"},\n {\"type\": \"add\", \"content\": \"and more\"}]\n```",
        ),
        ("reflection 2", r#"{"target_achieved": true, "reason": "now"}"#),
    ]);
    let script = script("target: 'a report on {{ file }}', todo_list: [Data, 'of {{ file }}']")
        .replace("action_id: loop_b,", "action_id: loop_b, condition: 'false',");
    let program = stage::checked(&script, Path::new(crate::ROOT));
    for death in [Death::Never, Death::Before, Death::After] {
        let ran = run(&program, &world(json!({}), json!({})), &models, death).await;
        assert_eq!(ran.pause, SessionPause::Completed);
        assert_eq!(ran.contents, ["### Data", "the rest", "and more"]);
        assert_eq!(ran.behaviors(), ["behavior_001 1 false reflection", "behavior_002 2 true reflection"]);
        assert_eq!(ran.state.todo_list, ["of housing.csv"]);
        assert_eq!(ran.events("behavior")[0]["why"], "not yet");
    }
}

#[tokio::test]
async fn prose_from_a_model_is_asked_for_again_and_never_breaks_a_session() {
    let models = said(&[("*", "I am sorry, I cannot do that.")]);
    let ran = run(&program("target: x"), &world(json!({}), json!({})), &models, Death::Never).await;
    assert_eq!(ran.pause, SessionPause::Stopped);
    assert_eq!(ran.codes().iter().filter(|code| **code == "behavior-unreadable").count(), 3);
    assert_eq!(ran.events("model_call").len(), 4);
}

/// What the example of docs/protocol.md changes.
#[tokio::test]
async fn the_worked_example_of_001_is_carried_out_as_it_says() {
    let folder = Path::new(crate::ROOT).join("tests/behaviors/worked_example.json");
    let case: Value = serde_json::from_str(&std::fs::read_to_string(folder).unwrap()).unwrap();
    let mut behaviors = case["responses"].clone();
    behaviors["b#1"] = done();
    let world = world(behaviors, case["judgements"].clone());
    let script = script("server: s, total_expected: 5, todo_list: [x]")
        .replace("todo_list: [x]", &format!("todo_list: {}", case["todo_list"]));
    let program = stage::checked(&script, Path::new(crate::ROOT));
    let ran = run(&program, &world, &nobody(), Death::Never).await;
    assert_eq!(ran.pause, SessionPause::Completed);
    let log = world.log.lock().unwrap();
    for (at, expected) in case["requests"].as_array().unwrap().iter().enumerate() {
        let asked = &log.asked[at];
        for (pointer, value) in expected.as_object().unwrap() {
            assert_eq!(asked.pointer(pointer), Some(value), "request {}: {pointer}", at + 1);
        }
    }
    assert_eq!(json!(log.ran), case["ran"]);
    assert_eq!(json!(ran.contents), case["contents"]);
}
