//! Tests of `bcc-script models list` and `models check`, fallbacks, and API keys in the environment, through the program.
use crate::server;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{Finished, finished};
use server::{Server, ServerBehavior};

const KEY: &str = "q7-very-secret-key";

const SCRIPT: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_say
              action_id: greet
              config: { content: 您好。 }
";

fn project(configuration: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("talk.yaml"), SCRIPT).unwrap();
    if !configuration.is_empty() {
        std::fs::write(directory.path().join("bcc-script.toml"), configuration).unwrap();
    }
    directory
}

/// Runs the program; asserts that its output contains none of the API keys of these tests.
fn program(directory: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
    command.args(arguments).current_dir(directory).env_clear().env("XDG_CONFIG_HOME", directory.join("home"));
    command.env("TALK_KEY", KEY).env("BCC_LOG", "trace").envs(environment.iter().copied());
    let finished = finished(command, "");
    for written in [&finished.out, &finished.err] {
        assert!(!written.contains(KEY), "{written}");
    }
    finished
}

fn document(output: &Finished) -> Value {
    serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{output:?}"))
}

/// The lines of standard error that are not log lines.
fn notes(output: &Finished) -> String {
    let lines = output.err.lines().filter(|line| !line.contains(" TRACE ") && !line.contains(" DEBUG "));
    lines.map(|line| format!("{line}\n")).collect()
}

fn openai(name: &str, base_url: &str, more: &str) -> String {
    format!("[models.{name}]\nprovider = \"openai\"\nbase_url = \"{base_url}\"\nmodel = \"m\"\n{more}\n")
}

const LISTED: &str = "
[models.default]
provider = \"openai\"
base_url = \"https://ann.llm.example/v1?key=q7-very-secret-key\"
model = \"qwen3\"
api_key_env = \"TALK_KEY\"
concurrency = 4
requests_per_minute = 60
price = { input = 0.5, output = 1.5 }
fallback = [\"咨询\"]

[models.\"咨询\"]
provider = \"anthropic\"
model = \"模型\"
api_key_file = \"key.txt\"
headers = { X-Team = { env = \"TEAM\" } }
fallback = [\"offline\"]

[models.monitor]
provider = \"replay\"
file = \"replies.yaml\"
";

#[test]
fn models_are_listed_with_everything_but_their_keys() {
    let directory = project(LISTED);
    let listed = program(directory.path(), &["models", "list"], &[]);
    assert_eq!(listed.code, Some(0));
    insta::assert_snapshot!(listed.out);
    let notes = notes(&listed);
    assert!(notes.contains("model `咨询`: the environment variable TEAM is not set"), "{notes}");
    assert!(notes.contains("is not trusted") && notes.contains("bcc-script trust"), "{notes}");

    std::fs::write(directory.path().join("key.txt"), KEY).unwrap();
    let listed = program(directory.path(), &["models", "list", "--json", "--trust"], &[("TEAM", "a")]);
    let document = document(&listed);
    assert_eq!(document["default"], json!({ "name": "default", "why": "[models.default] in bcc-script.toml" }));
    assert_eq!(document["trusted"], true);
    assert_eq!(document["models"].as_array().unwrap().len(), 3);
    let first = &document["models"][0];
    assert_eq!(
        (&first["name"], &first["key"], &first["key_from"]),
        (&json!("default"), &json!("set"), &json!("TALK_KEY"))
    );
    assert_eq!(first["server"], "https://ann.llm.example/v1");
    assert_eq!(first["fallback"], json!(["咨询", "offline"]));
    assert_eq!(first["price"]["currency"], "USD");
    assert_eq!(first["requests_per_minute"], 60);
    assert_eq!((&first["structured"], &first["reask"]), (&json!("auto"), &json!(1)));
    let anthropic = document["models"].as_array().unwrap().iter().find(|model| model["name"] == "咨询").unwrap();
    assert_eq!((&anthropic["key"], &anthropic["missing"]), (&json!("set"), &json!([])));
}

#[test]
fn without_a_configuration_the_list_says_which_model_is_used_and_why() {
    let directory = project("");
    let default_model = |environment: &[(&str, &str)]| {
        let listed = program(directory.path(), &["models", "list", "--json"], environment);
        assert_eq!(listed.code, Some(0));
        let document = document(&listed);
        (
            document["default"]["name"].as_str().unwrap().to_owned(),
            document["default"]["why"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(default_model(&[]).0, "offline");
    assert!(default_model(&[("OPENAI_API_KEY", KEY)]).1.contains("OPENAI_API_KEY is set"));
    assert!(
        default_model(&[("ANTHROPIC_API_KEY", KEY), ("BCC_MODEL", "claude")]).1.contains("ANTHROPIC_API_KEY is set")
    );
    assert_eq!(default_model(&[("BCC_MODEL", "replay:x.yaml")]).0, "replay:x.yaml");
    let plain = program(directory.path(), &["models", "list"], &[]);
    assert!(plain.out.contains("[models.default]"), "{}", plain.out);
    let both = program(directory.path(), &["models", "list"], &[("OPENAI_API_KEY", KEY), ("ANTHROPIC_API_KEY", KEY)]);
    let notes = notes(&both);
    assert!(notes.contains("openai is used; to use the other one, set BCC_MODEL=anthropic:NAME"), "{notes}");
    assert!(notes.contains("the environment variable BCC_MODEL is not set"), "{notes}");
}

#[test]
fn a_check_says_what_a_model_supports() {
    let server = Server::start(vec![
        ServerBehavior::Answers("Hello! How can I help you today?".into()),
        ServerBehavior::Answers("{\"hello\": true}".into()),
        ServerBehavior::Answers("I would rather talk.".into()),
        ServerBehavior::Rejects(400, "{\"error\": {\"message\": \"tools are not supported\"}}"),
    ]);
    let directory = project(&openai("default", &server.base_url, "api_key_env = \"TALK_KEY\""));
    let checked = program(directory.path(), &["models", "check", "--trust", "--json"], &[]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    let document = document(&checked);
    assert_eq!(document["ok"], true);
    let model = &document["models"][0];
    for (field, expected) in [
        ("name", json!("default")),
        ("model", json!("openai:m")),
        ("ok", json!(true)),
        ("reachable", json!(true)),
        ("answers", json!(true)),
        ("streams", json!(true)),
        ("counts_tokens", json!(false)),
        ("json_schema", json!(true)),
        ("json_object", json!(false)),
        ("tool", json!(false)),
        ("error", json!(null)),
    ] {
        assert_eq!(model[field], expected, "{field} in {model}");
    }
    assert!(model["first_token_ms"].as_u64() <= model["ms"].as_u64());
    let requests = server.requests();
    assert_eq!(requests.len(), 4, "one request for each question");
    let body: Value = serde_json::from_str(&requests[0].body).unwrap();
    assert_eq!(body["messages"], json!([{ "role": "user", "content": "Hello" }]));
    assert_eq!(body["max_tokens"], 512);
    assert!(body.get("response_format").is_none());
}

#[test]
fn a_check_fails_with_the_reason_when_one_model_does_and_tries_the_others() {
    let rejecting = Server::start(vec![ServerBehavior::Rejects(401, "wrong key: q7-very-secret-key")]);
    let good = Server::start(vec![ServerBehavior::Answers("Hello! How can I help you today?".into())]);
    let silent = Server::start(vec![ServerBehavior::Answers(String::new())]);
    let closed_port_url = {
        // A port on which no server listens any more.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/v1", listener.local_addr().unwrap())
    };
    let hanging = Server::start(vec![ServerBehavior::Hangs]);
    let flooding = Server::start(vec![ServerBehavior::Floods]);
    let toml_text = openai("a_good", &good.base_url, "")
        + &openai("b_refusing", &rejecting.base_url, "api_key_env = \"TALK_KEY\"")
        + &openai("c_gone", &closed_port_url, "max_attempts = 1")
        + &openai("d_keyless", &good.base_url, "api_key_env = \"NOT_SET\"")
        + &openai("e_silent", &silent.base_url, "")
        + "[models.f_offline]\nprovider = \"offline\"\n[models.g_replay]\nprovider = \"replay\"\nfile = \"none.yaml\"\n"
        + &openai("h_hanging", &hanging.base_url, "first_token_timeout = \"200ms\"\nmax_attempts = 1")
        + &openai("i_flooding", &flooding.base_url, "");
    let directory = project(&toml_text);
    let checked = program(directory.path(), &["models", "check", "--trust", "--json"], &[]);
    assert_eq!(checked.code, Some(1), "{}", checked.err);
    let document = document(&checked);
    let models = document["models"].as_array().unwrap();
    let column = |field: &str| -> Vec<Value> { models.iter().map(|model| model[field].clone()).collect() };
    assert_eq!(column("ok"), [true, false, false, false, false, true, false, false, false].map(Value::from));
    let (yes, no, nothing) = (json!(true), json!(false), Value::Null);
    assert_eq!(
        column("reachable"),
        [&yes, &yes, &no, &nothing, &yes, &nothing, &nothing, &nothing, &yes].map(Clone::clone)
    );
    for (number, part) in [
        (1, "returned 401"),
        (2, "cannot reach"),
        (3, "NOT_SET is not set"),
        (4, "it returned no text"),
        (6, "cannot be read"),
        (7, "did not start its reply"),
        (8, "larger than"),
    ] {
        assert!(models[number]["error"].as_str().unwrap().contains(part), "{}", models[number]);
    }
    assert!(models[3]["help"].as_str().unwrap().contains("set it to the API key"));

    let one = program(directory.path(), &["models", "check", "f_offline", "b_refusing", "f_offline", "--trust"], &[]);
    assert_eq!(one.code, Some(1));
    let table = &one.out;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.lines().nth(1).unwrap().starts_with("f_offline"), "{table}");
    let notes = notes(&one);
    assert!(
        notes.contains("f_offline: built in, rule-based, no AI") && notes.contains("b_refusing: error: "),
        "{notes}"
    );
}

#[test]
fn a_configured_reply_format_that_the_server_rejects_fails_the_check() {
    let rejects = || ServerBehavior::Rejects(400, "{\"error\": {\"message\": \"response_format is not supported\"}}");
    let mut behaviours = vec![ServerBehavior::Answers("Hello!".into())];
    behaviours.extend((0..6).map(|_| rejects()));
    let server = Server::start(behaviours);
    let directory = project(&openai("strict", &server.base_url, "structured = \"json_schema\""));
    let output = program(directory.path(), &["models", "check", "--trust", "--json"], &[]);
    assert_eq!(output.code, Some(1), "{}", output.err);
    let strict = &document(&output)["models"][0];
    assert_eq!((&strict["answers"], &strict["ok"]), (&json!(true), &json!(false)));
    assert!(strict["error"].as_str().unwrap().contains("response_format"), "{strict}");
    assert!(strict["help"].as_str().unwrap().contains("structured = \"auto\""), "{strict}");
}

#[test]
fn nothing_is_sent_where_the_configuration_is_not_trusted_or_the_name_is_wrong() {
    let server = Server::start(vec![ServerBehavior::Answers("Hello".into())]);
    let directory = project(&openai("default", &server.base_url, "api_key_env = \"TALK_KEY\""));
    let rejected = program(directory.path(), &["models", "check"], &[]);
    assert_eq!(rejected.code, Some(2));
    assert!(rejected.err.contains("bcc-script trust"), "{}", rejected.err);
    let unknown = program(directory.path(), &["models", "check", "defaul", "--trust"], &[]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("did you mean `default`?"), "{}", unknown.err);
    assert!(server.requests().is_empty());
}

#[test]
fn without_any_model_a_check_says_so_and_how_to_configure_one() {
    let directory = project("");
    let checked = program(directory.path(), &["models", "check"], &[]);
    assert_eq!(checked.code, Some(0));
    let notes = notes(&checked);
    assert!(notes.contains("no model is configured") && notes.contains("[models.default]"), "{notes}");
}

#[test]
fn an_anthropic_key_alone_selects_anthropic() {
    let server = Server::start(vec![ServerBehavior::Rejects(401, "no")]);
    let base_url = server.base_url.strip_suffix("/v1").unwrap();
    let environment = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", base_url), ("BCC_MODEL", "claude")];
    let directory = project("");
    let checked = program(directory.path(), &["models", "check", "--json"], &environment);
    assert_eq!(checked.code, Some(1));
    assert_eq!(document(&checked)["models"][0]["model"], "anthropic:claude");
    let run = program(directory.path(), &["run", "talk.yaml"], &environment);
    assert_eq!(run.code, Some(3), "{}", run.err);
    for request in server.requests() {
        assert!(request.headers.starts_with("POST /v1/messages "), "{}", request.headers);
        assert!(request.headers.contains(&format!("x-api-key: {KEY}")), "{}", request.headers);
    }
    assert_eq!(server.requests().len(), 2);
}

fn reply(content: &str) -> String {
    json!({
        "safety_risk": { "detected": false, "risk_type": null, "confidence": null, "reason": null },
        "content": content, "EXIT": "YES", "BRIEF": "",
        "metrics": { "user_engagement": "b", "emotional_intensity": "c", "understanding_level": "d" },
        "progress_suggestion": "completed", "metadata": { "emotional_tone": "", "crisis_signal": false },
    })
    .to_string()
}

#[test]
fn a_session_continues_with_the_next_fallback() {
    let broken = Server::start(vec![ServerBehavior::CutsOff(reply("半句话"))]);
    let busy = Server::start(vec![ServerBehavior::Rejects(503, "busy")]);
    let good = Server::start(vec![ServerBehavior::Answers(reply("您好。"))]);
    let toml_text = openai("default", &broken.base_url, "max_attempts = 1\nfallback = [\"busy\"]")
        + &openai("busy", &busy.base_url, "max_attempts = 1\nfallback = [\"good\"]")
        + &openai("good", &good.base_url, "headers = { X-Team = { env = \"TALK_KEY\" } }\nextra = { top_p = 0.5 }");
    let directory = project(&toml_text);
    let run = program(directory.path(), &["run", "talk.yaml", "--trust", "--json"], &[]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let events = run.events();
    let messages: Vec<&str> =
        events.iter().filter(|event| event["type"] == "message").map(|event| event["text"].as_str().unwrap()).collect();
    assert_eq!(messages, ["您好。"]);
    let call = events.iter().find(|event| event["type"] == "model_call").unwrap();
    assert_eq!(call["attempts"], 3);
    let sent = &good.requests()[0];
    assert!(sent.headers.contains(&format!("x-team: {KEY}")), "{}", sent.headers);
    assert_eq!(serde_json::from_str::<Value>(&sent.body).unwrap()["top_p"], 0.5);

    // When all models fail, the session stops with the error of each.
    let none = openai("default", &broken.base_url, "max_attempts = 1\nfallback = [\"busy\"]")
        + &openai("busy", &busy.base_url, "max_attempts = 1");
    let directory = project(&none);
    let run = program(directory.path(), &["run", "talk.yaml", "--trust"], &[]);
    assert_eq!(run.code, Some(3));
    let notes = &run.err;
    assert!(notes.contains("none of the 2 models answered") && notes.contains("returned 503"), "{notes}");
}

#[test]
fn a_mistake_in_a_fallback_is_found_before_anything_is_sent() {
    let server = Server::start(vec![ServerBehavior::Answers(reply("您好。"))]);
    let toml_text = openai("default", &server.base_url, "fallback = [\"spare\"]")
        + &openai("spare", &server.base_url, "api_key_env = \"NOT_SET\"");
    let directory = project(&toml_text);
    let run = program(directory.path(), &["run", "talk.yaml", "--trust"], &[]);
    assert_eq!(run.code, Some(2));
    let notes = &run.err;
    assert!(notes.contains("NOT_SET is not set; `default` may fall back to it"), "{notes}");
    assert!(server.requests().is_empty());
}

#[test]
fn trusting_a_directory_says_what_each_model_may_do() {
    let toml_text = openai("default", "https://llm.example/v1?key=q7-very-secret-key", "api_key_env = \"TALK_KEY\"")
        + "headers = { Authorization = { env = \"HEADER_KEY\" } }\nproxy = \"http://proxy.example:8080\"\n\
           [models.claude]\nprovider = \"anthropic\"\nmodel = \"m\"\nproxy = { env = \"PROXY\" }\n\
           [tools.web_search]\nprovider = \"searxng\"\nurl = \"http://search.example\"\n\
           [[tools.web_search.more]]\nprovider = \"brave\"\napi_key_env = \"BRAVE_KEY\"\n";
    let directory = project(&toml_text);
    let trusted = program(directory.path(), &["trust"], &[]);
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
    let notes = notes(&trusted);
    for line in [
        "model `default` may send conversations to https://llm.example/v1\n",
        "through the proxy http://proxy.example:8080",
        "model `default` may send the environment variable HEADER_KEY in the header Authorization",
        "model `default` may use the key in the environment variable TALK_KEY",
        "model `claude` may send conversations to https://api.anthropic.com\n",
        "through the proxy specified in PROXY",
        "searches of the web may be sent to searxng at http://search.example\n",
        "searches of the web may be sent to brave at https://api.search.brave.com\n",
        "with the key in the environment variable BRAVE_KEY",
    ] {
        assert!(notes.contains(line), "{line}: {notes}");
    }
    let listed = program(directory.path(), &["models", "list"], &[]);
    assert!(!listed.err.contains("not trusted"), "{}", listed.err);
}
