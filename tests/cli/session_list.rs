//! `sessions list` with its filters, in words and as JSON, and the stores of other projects.

use serde_json::{Value, json};

use crate::process::{Finished, Home, Running};

fn script(id: &str) -> String {
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "好吗？", "output": [{ "get": "x" }] } });
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [ask] }] }]);
    json!({ "session": { "session_id": id, "phases": phases } }).to_string()
}

/// A project with four sessions, in the folder `work`.
fn project() -> Home {
    let home = Home::new();
    for (id, script_id, user, input) in [
        ("one", "intake", "ann", "yes\n"),
        ("two", "intake", "ben", ""),
        ("three", "review", "ann", "yes\n"),
        ("four", "review", "ann", ""),
    ] {
        home.put(&format!("work/{script_id}.yaml"), script(script_id));
        home.put("work/bcc-script.toml", "");
        let file = format!("work/{script_id}.yaml");
        let ran = home.finish(["run", &file, "--session", id, "--user", user, "--project", "work"], input);
        assert_eq!(ran.code, Some(if input.is_empty() { 3 } else { 0 }), "{ran:?}");
    }
    home
}

fn list(home: &Home, more: &str) -> Finished {
    let line = format!("sessions list --project work {more}");
    home.finish(line.split_whitespace(), "")
}

fn ids(home: &Home, more: &str) -> Vec<String> {
    let listed = list(home, more);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let in_words: Vec<String> =
        listed.out.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect();
    let as_json: Value = serde_json::from_str(&list(home, &format!("{more} --json")).out).unwrap();
    let sessions = as_json["sessions"].as_array().unwrap();
    let found: Vec<String> = sessions.iter().map(|session| session["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(in_words, found, "{more}");
    found
}

#[test]
fn sessions_are_listed_by_script_status_user_and_time() {
    let home = project();
    assert_eq!(ids(&home, ""), ["four", "three", "two", "one"]);
    assert_eq!(ids(&home, "--script intake"), ["two", "one"]);
    assert_eq!(ids(&home, "--status waiting_input"), ["four", "two"]);
    assert_eq!(ids(&home, "--user ann"), ["four", "three", "one"]);
    assert_eq!(ids(&home, "--user ann --status completed --limit 1"), ["three"]);
    assert_eq!(ids(&home, "--limit 0"), [""; 0]);
    assert_eq!(ids(&home, "--since 1h"), ["four", "three", "two", "one"]);
    assert_eq!(ids(&home, "--since 2026-01-01"), ["four", "three", "two", "one"]);
    assert_eq!(ids(&home, "--since 2999-01-01T00:00:00Z"), [""; 0]);
    assert!(list(&home, "--user nobody").err.contains("no such session"));

    let one: Value = serde_json::from_str(&list(&home, "--script intake --user ann --json").out).unwrap();
    let one = &one["sessions"][0];
    assert_eq!(
        (&one["id"], &one["script"], &one["status"], &one["user"], &one["answers"]),
        (&json!("one"), &json!("intake"), &json!("completed"), &json!("ann"), &json!(1))
    );
    assert_eq!(one["used"]["turns"], 2);

    // A line has always as many fields.
    let odd = home.finish(["run", "work/intake.yaml", "--session", "odd", "--user", "a\tb", "--project", "work"], "");
    assert_eq!(odd.code, Some(3), "{odd:?}");
    let lines = list(&home, "").out;
    assert!(lines.contains("user a b") && lines.lines().all(|line| line.split('\t').count() == 7), "{lines}");

    for (more, expected) in [
        ("--since 2026-13-01", "2026-11-01T09:30"),
        ("--since yesterday", "`yesterday` is no duration, date or time"),
        ("--since 99999999y", "goes back too far"),
        ("--status ended", "waiting_input"),
    ] {
        let listed = list(&home, more);
        assert!(listed.code == Some(2) && listed.err.contains(expected), "{listed:?}");
    }
}

#[test]
fn commands_about_stored_sessions_find_the_store_of_another_project() {
    let home = project();
    for command in [
        "sessions show one",
        "sessions export one",
        "report one",
        "requests list --session two",
        "store check",
        "plans list",
        "sessions prune --older-than 30d",
        "sessions delete one",
    ] {
        let line = format!("{command} --project work");
        let done = home.finish(line.split(' '), "");
        assert_eq!(done.code, Some(0), "{command}: {done:?}");
        let elsewhere = home.finish(command.split(' '), "");
        let found_nothing = ["plans list", "requests list --session two"].contains(&command);
        assert!(elsewhere.code == Some(2) || found_nothing, "{command}: {elsewhere:?}");
    }
    assert_eq!(ids(&home, ""), ["four", "three", "two"]);
    for command in ["sessions list", "requests list", "plans list"] {
        let named = |path: &str| {
            let mut command = home.command(command.split(' '));
            command.env("BCC_STORE", path);
            Running::start(command).finish()
        };
        let wrong = named("nosuch.db");
        assert!(wrong.code == Some(2) && wrong.err.contains("nosuch.db"), "{command}: {wrong:?}");
        assert_eq!(named("work/.bcc/sessions.db").code, Some(0), "{command}");
    }
    let missing = home.finish(["sessions", "list", "--project", "nowhere"], "");
    assert!(missing.code == Some(2) && missing.err.contains("nowhere"), "{missing:?}");
}
