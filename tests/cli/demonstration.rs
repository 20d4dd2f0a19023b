//! Tests of the demonstration in `scripts/cbt_anxiety.yaml`, with the replies and answers in `examples/`: the transcript in the Chinese
//! README is the exact output of the library and the program, and the run contains every event that the script demonstrates.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_runtime::program::event::{Delta, Observer};
use bcc_runtime::run::session::SessionPause;
use bcc_store::memory::MemoryStore;
use serde_json::Value;

use crate::process::Home;

const SCRIPT: &str = "scripts/cbt_anxiety.yaml";
const REPLIES: &str = "examples/cbt_anxiety.replies.yaml";
const ANSWERS: &str = "examples/cbt_anxiety.answers.txt";

fn root() -> PathBuf {
    PathBuf::from(crate::ROOT)
}

fn answers() -> String {
    fs::read_to_string(root().join(ANSWERS)).unwrap()
}

/// The transcript on a page: the text block that starts with the script's first message.
fn transcript_of(page: &str, first: &str) -> String {
    let page = fs::read_to_string(root().join(page)).unwrap();
    let (_, rest) = page.split_once(&format!("```text\n{first}")).expect("the page shows the demonstration");
    let (block, _) = rest.split_once("\n```").unwrap();
    format!("{first}{block}")
}

fn shown() -> String {
    transcript_of("README.zh.md", "您好，我是 AI 咨询助手")
}

#[derive(Default)]
struct Events(Mutex<Vec<Value>>);

impl Observer for Events {
    fn committed(&self, committed: &bcc_runtime::program::event::Committed<'_>) {
        self.0.lock().unwrap().push(serde_json::from_str(committed.line).unwrap());
    }

    fn delta(&self, _delta: &Delta<'_>) {}
}

/// All events of a run in which the person answers slowly enough for monitors and plans to finish.
async fn talk() -> Vec<Value> {
    let environment = Environment::default();
    let file = root().join(SCRIPT);
    let project = Project::of(&file, None, false, &environment).unwrap();
    let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
    let events = Arc::new(Events::default());
    let model = Some(format!("replay:{}", root().join(REPLIES).display()));
    let request = RunRequest { file, model, ..RunRequest::default() };
    let started = engine.run(&request, events.clone()).await.unwrap();
    assert!(started.diagnostics.is_empty(), "{:?}", started.diagnostics[0].message);
    let mut session = started.session;
    for answer in answers().lines() {
        assert_eq!(session.advance().await.unwrap(), SessionPause::Waiting);
        let analysis_time = std::time::Duration::from_secs(1_000);
        while tokio::time::timeout(analysis_time, session.wait_for_result()).await.is_ok() {
            session.commit_results().await.unwrap();
        }
        session.answer(answer, None).await.unwrap();
    }
    assert_eq!(session.advance().await.unwrap(), SessionPause::Completed);
    events.0.lock().unwrap().clone()
}

fn transcript(events: &[Value]) -> String {
    let lines = events.iter().filter(|event| event["type"] == "message").map(|event| {
        let text = event["text"].as_str().unwrap();
        if event["role"] == "user" { format!("> {text}") } else { text.to_owned() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test(start_paused = true)]
async fn the_demonstration_runs_as_the_chinese_readme_shows() {
    let events = talk().await;
    assert_eq!(transcript(&events), shown());
    let events_of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    let fields = |kind: &str, names: &[&str]| -> Vec<String> {
        let line =
            |event: &&Value| names.iter().map(|name| event[*name].as_str().unwrap()).collect::<Vec<_>>().join(" ");
        events_of(kind).iter().map(line).collect()
    };
    let routes = fields("routed", &["from", "reason", "route"]);
    for (from, reason, skill) in
        [("ask_worry", "user_blocked", "comfort"), ("ask_situations", "off_topic", "come_back")]
    {
        let decision = format!("{from} {reason} insert: {skill}, then: resume");
        assert_eq!(routes.iter().filter(|found| **found == decision).count(), 1, "{routes:#?}");
    }
    assert_eq!(fields("triggered", &["reason", "route"]), ["crisis insert: crisis_protocol, then: resume"]);
    assert_eq!(fields("orchestrated", &["from", "route"]), ["ask_situations insert"]);
    assert_eq!(events_of("orchestrated")[0]["accepted"], true);
    let advices: Vec<(&str, bool)> = events_of("monitor_feedback")
        .iter()
        .filter(|event| !event["analysis"]["feedback_for_action"].is_null())
        .map(|event| (event["action_id"].as_str().unwrap(), event["used"].as_bool().unwrap()))
        .collect();
    assert_eq!(
        advices,
        [("ask_worry", false), ("ask_worry", true), ("ask_situations", false), ("ask_situations", true)],
    );
    let entered = events_of("topic_entered");
    let paths: Vec<&str> = entered.iter().filter_map(|event| event["location"]["path"].as_str()).collect();
    // The list is sensitive, so paths do not contain its elements.
    assert_eq!(paths.iter().filter(|path| path.starts_with("caregiver_topic")).count(), 2, "{paths:?}");
    assert_eq!(events_of("warning"), Vec::<&Value>::new());
}

#[test]
fn both_readmes_show_what_the_program_prints_every_time() {
    let english = transcript_of("README.md", "Hello, this is the repair desk.");
    let (script, replies) = ("scripts/repair_en.yaml", "examples/repair_en.replies.yaml");
    for (script, replies, transcript) in [(SCRIPT, REPLIES, shown()), (script, replies, english)] {
        let lines_of = |answers: bool| {
            let lines = transcript.lines().filter(move |line| line.starts_with("> ") == answers);
            lines.map(|line| format!("{}\n", line.trim_start_matches("> "))).collect::<String>()
        };
        let answers = fs::read_to_string(root().join(replies.replace("replies.yaml", "answers.txt"))).unwrap();
        assert_eq!(answers, lines_of(true), "{script}");
        let home = Home::new();
        for folder in ["scripts", "examples"] {
            fs::create_dir(home.path().join(folder)).unwrap();
        }
        for file in [script, replies] {
            fs::copy(root().join(file), home.path().join(Path::new(file))).unwrap();
        }
        let model = format!("replay:{replies}");
        for _ in 0..3 {
            let finished = home.finish(["run", script, "--model", model.as_str()], &answers);
            assert_eq!(finished.code, Some(0), "{}", finished.err);
            assert_eq!(finished.out, lines_of(false), "{script}");
        }
    }
}
