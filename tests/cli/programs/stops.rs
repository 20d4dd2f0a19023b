//! Tests of sessions that stop: what a person is told, and with which model the session can continue.

use super::*;
use crate::server::{Server, ServerBehavior};

/// `two_phases.yaml` with a server as its model from the environment.
fn with_server(home: &Home, server: &Server, arguments: &[&str], input: &str) -> Finished {
    let mut command = home.command(arguments);
    command.env("OPENAI_API_KEY", "k").env("OPENAI_BASE_URL", &server.base_url).env("BCC_MODEL", "some-model");
    process::finished(command, input)
}

#[test]
fn a_person_is_told_once_that_nothing_is_lost_and_sees_no_log() {
    let home = Home::new();
    let replies = json!({ "replies": { "hello": ["你好"], "ask_name": [{ "content": "?" }, "no JSON"] } });
    let model = format!("replay:{}", home.file("replies.json", &replies.to_string()).display());
    for arguments in [&["--model", &model][..], &["--model", &model, "--json"]] {
        let home = Home::new();
        let stopped = talk(&home, arguments, "小林\n小林\n");
        assert_eq!(stopped.code, Some(3), "{}", stopped.err);
        assert_eq!(stopped.err.matches("nothing is lost").count(), 1, "{}", stopped.err);
        assert!(!stopped.out.contains("nothing is lost"), "{}", stopped.out);
        // The log is for programs; a person sees the error and how to continue.
        assert_eq!(stopped.err.contains(" WARN "), arguments.contains(&"--json"), "{}", stopped.err);
    }
}

#[test]
fn a_session_of_a_real_model_never_continues_silently_with_the_offline_responder() {
    let home = Home::new();
    let script = home.script("two_phases.yaml").display().to_string();
    let server = Server::start(vec![
        ServerBehavior::Answers(json!({ "content": "你好。" }).to_string()),
        ServerBehavior::Answers(json!({ "content": "怎么称呼你？", "EXIT": "NO" }).to_string()),
        ServerBehavior::Answers(json!({ "content": "", "EXIT": "YES", "name": "小林" }).to_string()),
        ServerBehavior::Answers(json!({ "content": "几岁？", "EXIT": "NO" }).to_string()),
    ]);
    let started = with_server(&home, &server, &["run", &script, "--session", "t"], "");
    assert_eq!(started.code, Some(3), "{}", started.err);
    for arguments in [&["sessions", "resume", "t"][..], &["run", &script, "--session", "t"]] {
        let refused = home.finish(arguments, "小林\n");
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        for part in ["openai:some-model", "BCC_MODEL", "`--model offline`"] {
            assert!(refused.err.contains(part), "{part} in {}", refused.err);
        }
    }
    assert_eq!(user_messages(&home), Vec::<String>::new());
    let resumed = with_server(&home, &server, &["sessions", "resume", "t"], "小林\n");
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(3), "几岁？\n"), "{}", resumed.err);
    let offline = home.finish(["sessions", "resume", "t", "--model", "offline"], "35\n");
    assert_eq!(offline.code, Some(3), "{}", offline.err);
    assert_eq!(user_messages(&home), ["小林", "35"]);
    // The model of the session did not change with that.
    assert_eq!(home.finish(["sessions", "resume", "t"], "").code, Some(2));
}

#[test]
fn a_session_that_began_offline_continues_offline() {
    let home = Home::new();
    assert_eq!(talk(&home, &[], "小林\n").code, Some(3));
    let resumed = home.finish(["sessions", "resume", "t"], "35\n");
    assert_eq!(resumed.code, Some(3), "{}", resumed.err);
    assert_eq!(user_messages(&home), ["小林", "35"]);
}
