//! Tests of real providers through the program: the effects of a bad server on a conversation, and which data may be sent.
use crate::server;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{Finished, Home, finished};
use server::{Server, ServerBehavior};

const KEY: &str = "sk-very-secret-key";

const SCRIPT: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_ask
              action_id: ask_name
              config:
                content: 怎么称呼您？
                output: [{ get: 姓名 }]
                monitor: 'off'
            - action_type: ai_say
              action_id: greet
              config: { content: '很高兴认识您，{{ 姓名 }}。' }
";

fn project(configuration: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("talk.yaml"), SCRIPT).unwrap();
    std::fs::write(directory.path().join("bcc-script.toml"), configuration).unwrap();
    directory
}

/// A configuration with short timeouts and this server as `default`.
fn configuration(base_url: &str) -> String {
    format!(
        "[models.default]\nprovider = \"openai\"\nbase_url = \"{base_url}\"\nmodel = \"m\"\napi_key_env = \"TALK_KEY\"\n\
         timeout = \"20s\"\nfirst_token_timeout = \"300ms\"\nidle_timeout = \"300ms\"\n"
    )
}

fn program(directory: &Path, arguments: &[&str], input: &str, environment: &[(&str, &str)]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
    command.args(arguments).current_dir(directory).env_clear().env("XDG_CONFIG_HOME", directory.join("home"));
    command.env("TALK_KEY", KEY).envs(environment.iter().copied());
    finished(command, input)
}

fn reply(content: &str, exit: &str, name: Value) -> String {
    json!({
        "safety_risk": { "detected": false, "risk_type": null, "confidence": null, "reason": null },
        "content": content, "EXIT": exit, "BRIEF": "",
        "metrics": { "information_completeness": "a", "user_engagement": "b", "emotional_intensity": "c", "reply_relevance": "d" },
        "progress_suggestion": "continue_needed", "metadata": { "emotional_tone": "", "crisis_signal": false }, "姓名": name,
    })
    .to_string()
}

fn good_conversation() -> Vec<ServerBehavior> {
    vec![
        ServerBehavior::Answers(reply("您好，请问怎么称呼？", "NO", Value::Null)),
        ServerBehavior::Answers(reply("谢谢您。", "YES", json!("小林"))),
        ServerBehavior::Answers(reply("小林，很高兴认识您。", "YES", Value::Null)),
    ]
}

#[test]
fn a_model_whose_reply_cannot_be_read_is_asked_again_once_before_the_person_notices() {
    let mut behaviors = good_conversation();
    behaviors.insert(1, ServerBehavior::Answers("好的，我来想想。".to_owned()));
    let server = Server::start(behaviors);
    let project = project(&configuration(&server.base_url));
    let run = program(project.path(), &["run", "talk.yaml", "--trust"], "小林\n", &[]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(run.out, "您好，请问怎么称呼？\n谢谢您。\n小林，很高兴认识您。\n");
    let again = server.requests()[2].body.to_string();
    assert!(again.contains("好的，我来想想。"), "the model sees its reply, and what is wrong with it: {again}");
}

#[test]
fn a_session_stopped_by_a_bad_server_continues_with_a_good_one() {
    let ask = ServerBehavior::Answers(reply("您好，请问怎么称呼？", "NO", Value::Null));
    let broken = [
        ("hangs", ServerBehavior::Hangs, "did not start its reply"),
        ("answers 500", ServerBehavior::Rejects(500, "oops"), "returned 500"),
        (
            "cuts the connection",
            ServerBehavior::CutsOff(reply("谢谢您。", "YES", json!("小林"))),
            "closed the connection",
        ),
        ("floods", ServerBehavior::Floods, "larger than"),
        ("does not know the key", ServerBehavior::Rejects(401, "bad key sk-very-secret-key"), "401"),
    ];
    for (name, behaviour, message) in broken {
        let bad = Server::start(vec![ask.clone(), behaviour]);
        let directory = project(&configuration(&bad.base_url));
        let run = program(directory.path(), &["run", "talk.yaml", "--session", "s", "--trust"], "我叫小林\n", &[]);
        assert_eq!(run.code, Some(3), "{name}: {}", run.err);
        assert_eq!(run.out, "您好，请问怎么称呼？\n", "{name}");
        assert!(run.err.contains(message), "{name}: {}", run.err);
        assert!(run.err.contains("bcc-script sessions resume s"), "{name}: {}", run.err);
        let lasts = ["floods", "does not know the key"].contains(&name);
        assert_eq!(run.err.contains("change that and resume the session"), lasts, "{name}: {}", run.err);
        assert_eq!(run.err.contains("when the model can be reached"), !lasts, "{name}: {}", run.err);

        let good = Server::start(good_conversation().split_off(1));
        std::fs::write(directory.path().join("bcc-script.toml"), configuration(&good.base_url)).unwrap();
        let resumed = program(directory.path(), &["sessions", "resume", "s", "--trust"], "", &[]);
        assert_eq!(resumed.code, Some(0), "{name}: {}", resumed.err);
        // The answer was committed before the server failed, and is not requested again.
        assert_eq!(resumed.out, "谢谢您。\n小林，很高兴认识您。\n", "{name}");
    }
}

#[test]
fn the_calls_of_all_branches_that_stop_are_kept() {
    let branch = |id: &str| json!({ "id": id, "actions": [{ "action_type": "ai_think", "action_id": format!("think_{id}"), "config": { "content": "x", "output": [{ "get": id }] } }] });
    let parallel = json!({ "action_type": "parallel", "action_id": "p", "config": { "branches": [branch("a"), branch("b"), branch("c")] } });
    let topic = json!({ "topic_id": "t", "actions": [parallel] });
    let script = json!({ "session": { "session_id": "s", "phases": [{ "phase_id": "p", "topics": [topic] }] } });
    let server = Server::start((0..3).map(|_| ServerBehavior::Rejects(401, "no")).collect());
    let project = project(&configuration(&server.base_url));
    std::fs::write(project.path().join("s.yaml"), script.to_string()).unwrap();
    let run = program(project.path(), &["run", "s.yaml", "--trust", "--json"], "", &[]);
    assert_eq!(run.code, Some(3), "{run:?}");
    let events = run.events();
    let calls = events.iter().filter(|event| event["type"] == "model_call").count();
    let stopped = events.iter().find(|event| event["type"] == "session_stopped").unwrap();
    assert_eq!((calls, &stopped["summary"]["model_calls"]), (3, &json!(3)), "{}", run.out);
}

#[test]
fn a_server_that_recovers_within_the_retries_is_not_noticed() {
    let mut behaviors =
        vec![ServerBehavior::Rejects(503, "busy"), ServerBehavior::CutsOff(reply("半句话", "NO", Value::Null))];
    behaviors.extend(good_conversation());
    let server = Server::start(behaviors);
    let directory = project(&configuration(&server.base_url));
    let run =
        program(directory.path(), &["run", "talk.yaml", "--trust", "--json", "--session", "s"], "我叫小林\n", &[]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let events = run.events();
    let texts: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "message" && event["role"] == "ai")
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["您好，请问怎么称呼？", "谢谢您。", "小林，很高兴认识您。"]);
    let first_call = events.iter().find(|event| event["type"] == "model_call").unwrap();
    assert_eq!(first_call["attempts"], 3);
    // Text of an attempt that was cut off is discarded, and the message of the next attempt has another id.
    let ids = |kind: &str| -> Vec<&str> {
        let events = events.iter().filter(|event| event["type"] == kind);
        events.map(|event| event["message_id"].as_str().unwrap()).collect()
    };
    let (discarded, messages) = (ids("message_discarded"), ids("message"));
    assert_eq!(discarded.len(), 1);
    assert!(ids("message_delta").contains(&discarded[0]) && !messages.contains(&discarded[0]));
    assert!(ids("message_delta").iter().all(|id| messages.contains(id) || discarded.contains(id)));
}

#[test]
fn text_is_shown_while_it_is_streamed_and_adds_up_to_the_message() {
    let server = Server::start(good_conversation());
    let directory = project(&configuration(&server.base_url));
    let run = program(directory.path(), &["run", "talk.yaml", "--trust", "--json"], "我叫小林\n", &[]);
    let events = run.events();
    let message = events.iter().find(|event| event["type"] == "message").unwrap();
    let pieces: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "message_delta" && event["message_id"] == message["message_id"])
        .map(|event| event["text"].as_str().unwrap())
        .collect();
    assert!(pieces.len() > 1, "{pieces:?}");
    assert_eq!(pieces.concat(), message["text"].as_str().unwrap());
    assert!(events.iter().filter(|event| event["type"] == "message_delta").all(|event| event.get("seq").is_none()));
}

#[test]
fn an_untrusted_configuration_sends_nothing_anywhere() {
    let server = Server::start(good_conversation());
    let directory = project(&configuration(&server.base_url));
    let rejected = program(directory.path(), &["run", "talk.yaml"], "x\n", &[]);
    assert_eq!(rejected.code, Some(2));
    assert!(rejected.err.contains("bcc-script trust"), "{}", rejected.err);
    assert!(server.requests().is_empty());

    let trusted = program(directory.path(), &["trust"], "", &[]);
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
    let run = program(directory.path(), &["run", "talk.yaml"], "我叫小林\n", &[]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(server.requests().len(), 3);

    // A file with one more byte is another file.
    let longer = configuration(&server.base_url) + "\n";
    std::fs::write(directory.path().join("bcc-script.toml"), longer).unwrap();
    assert_eq!(program(directory.path(), &["run", "talk.yaml"], "x\n", &[]).code, Some(2));
    assert_eq!(program(directory.path(), &["run", "talk.yaml"], "我叫小林\n", &[("BCC_TRUST", "1")]).code, Some(0));
}

#[test]
fn a_key_alone_in_the_environment_is_used_only_where_no_file_says_what_default_is() {
    let server = Server::start(good_conversation());
    let environment = [("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", server.base_url.as_str()), ("BCC_MODEL", "qwen3")];
    let directory = project("");
    let run = program(directory.path(), &["run", "talk.yaml"], "我叫小林\n", &environment);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].headers.to_ascii_lowercase().contains(&format!("authorization: bearer {KEY}")));
    assert_eq!(serde_json::from_str::<Value>(&requests[0].body).unwrap()["model"], "qwen3");

    let directory = project("[models.default]\nprovider = \"offline\"\n");
    let environment = [("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", server.base_url.as_str())];
    let run = program(directory.path(), &["run", "talk.yaml"], "小林\n", &environment);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(server.requests().len(), 3, "the file's own default was not asked");
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
    let server = Server::start(good_conversation());
    let directory = project(&configuration(&server.base_url));
    let environment = [("BCC_MODEL", "no_such_model")];
    let unknown = program(directory.path(), &["run", "talk.yaml", "--trust"], "x\n", &environment);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("there is no model `no_such_model`"), "{}", unknown.err);
    let offline = program(directory.path(), &["run", "talk.yaml", "--model", "offline"], "小林\n", &environment);
    assert_eq!(offline.out, "怎么称呼您？\n很高兴认识您，小林。\n");
    assert!(server.requests().is_empty());
}

#[test]
fn the_key_is_in_no_output_and_in_no_store() {
    let server = Server::start(vec![ServerBehavior::Rejects(400, "your key sk-very-secret-key is not welcome")]);
    let directory = project(&configuration(&server.base_url));
    let run = program(directory.path(), &["run", "talk.yaml", "--trust", "--json"], "x\n", &[("BCC_LOG", "trace")]);
    assert_eq!(run.code, Some(3));
    assert!(!run.out.contains(KEY) && !run.err.contains(KEY), "{}", run.err);
    for entry in std::fs::read_dir(directory.path().join(".bcc")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()), "{}", path.display());
        }
    }
}

#[test]
fn user_input_is_not_logged_above_debug_level() {
    let server = Server::start(vec![
        ServerBehavior::Answers("您好，这不是 JSON。".into()),
        ServerBehavior::Answers(reply("您好，请问怎么称呼？", "NO", Value::Null)),
        ServerBehavior::Answers("还是不是 JSON。".into()),
        ServerBehavior::Answers(reply("好。", "YES", json!("小林"))),
        ServerBehavior::Answers("也不是。".into()),
        ServerBehavior::Answers(reply("很高兴认识您。", "YES", Value::Null)),
    ]);
    let directory = project(&configuration(&server.base_url));
    let run = program(
        directory.path(),
        &["run", "talk.yaml", "--trust", "--json"],
        "我的秘密是糖\n还是秘密\n小林\n都是秘密\n",
        &[("BCC_LOG", "info")],
    );
    assert_eq!(run.code, Some(0), "{}", run.err);
    let log = &run.err;
    assert!(log.contains("direct_parse"), "failed strategies are logged: {log}");
    assert!(!log.contains("秘密") && !log.contains("不是 JSON"), "{log}");
}

#[test]
fn an_api_key_without_a_model_stops_only_scripts_that_may_ask_a_model() {
    let script = |action: &str| {
        format!(
            "session:\n  session_id: s\n  phases: [{{ phase_id: p, topics: [{{ topic_id: t, actions: [{action}] }}] }}]\n"
        )
    };
    let set = "{ action_type: add, action_id: a, config: { shot_type: dialogue, content: hello } }";
    let inside = "{ action_type: condition, action_id: c, config: { cases: [{ when: 1 < 2, actions: [ACTION] }] } }";
    let asks = "{ action_type: ai_ask, action_id: q, config: { content: 'Who?' } }";
    for (action, code) in [
        (set.to_owned(), 0),
        (inside.replace("ACTION", set), 0),
        (asks.to_owned(), 2),
        (inside.replace("ACTION", asks), 2),
    ] {
        let home = Home::new();
        home.file("s.yaml", &script(&action));
        let mut command = home.command(["run", "s.yaml"]);
        command.env("OPENAI_API_KEY", "k");
        let done = finished(command, "");
        assert_eq!(done.code, Some(code), "{action}: {}", done.err);
        assert_eq!(done.err.contains("no model is specified"), code == 2, "{action}: {}", done.err);
    }
}
