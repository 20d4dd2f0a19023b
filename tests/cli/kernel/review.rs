//! `exec: approve`: code that a model wrote waits for a person, who lets it run, changes it or rejects it.

use serde_json::{Value, json};

use crate::process::{Finished, Home, finished};
use crate::pseudo_terminal::Terminal;
use crate::test_kernel::{kernel_python, kernel_variables};

const ALLOWED: &str = "[project]\nallow = [\"exec\"]\n";
const REVIEWED: &str = "[project]\nallow = [\"exec\"]\n\n[kernel]\nexec = \"approve\"\n";

/// A loop in which a model writes code that creates these files, one for each behavior.
fn loop_of(files: &[&str]) -> (String, String) {
    let behavior = |(number, file): (usize, &&str)| {
        let code =
            format!("import os\nfolder = '.'\nopen(os.path.join(folder, '{file}'), 'w').close()\nprint('done')\n");
        let add = json!({ "action": { "type": "add", "shot_type": "action", "content": code } });
        let exec = json!({ "action": { "type": "exec", "codecell_id": "lastAddedCellId" } });
        let is_last = number + 1 == files.len();
        json!({ "actions": [add, exec], "transition": { "continue_behaviors": !is_last, "target_achieved": is_last } })
    };
    let behaviors: Vec<Value> = files.iter().enumerate().map(behavior).collect();
    let actions = json!([{ "action_type": "behavior_loop", "action_id": "work", "config": { "target": "Write it", "reflection": "off" } }]);
    let script = json!({ "session": { "session_id": "w", "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }] } });
    (script.to_string(), json!({ "replies": { "work": behaviors } }).to_string())
}

fn run(home: &Home, input: &str) -> Option<Finished> {
    let python = kernel_python()?;
    let arguments = ["run", "w.yaml", "--session", "s", "--json", "--trust", "--model", "replay:replies.yaml"];
    let mut command = home.command(arguments);
    command.envs(kernel_variables(&python));
    Some(finished(command, input))
}

fn requests(done: &Finished) -> Vec<String> {
    let events = done.events();
    let opened = events.iter().filter(|event| event["type"] == "request_opened");
    opened.map(|event| event["prompt"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn nothing_runs_before_a_person_has_decided() {
    let home = Home::new();
    home.file("bcc-script.toml", REVIEWED);
    let (script, replies) = loop_of(&["one"]);
    home.file("w.yaml", &script);
    home.file("replies.yaml", &replies);
    let Some(waits) = run(&home, "") else { return };
    assert_eq!(waits.code, Some(3), "{}", waits.err);
    let prompts = requests(&waits);
    assert_eq!(prompts.len(), 1);
    assert!(prompts[0].starts_with("Run this code?\nimport os\nfolder = '.'\n"), "{}", prompts[0]);
    assert!(!home.path().join("one").exists());
    assert!(!waits.events().iter().any(|event| event["type"] == "effect_started"));
    // Somebody else decides, and the session goes on.
    let decided = home.finish(["approve", "s", "work", "--by", "ann"], "");
    assert_eq!(decided.code, Some(0), "{}", decided.err);
    let mut resume = home.command(["sessions", "resume", "s", "--trust", "--json"]);
    resume.envs(kernel_variables(&kernel_python().unwrap()));
    let done = finished(resume, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(home.path().join("one").exists());
}

#[test]
fn rejected_code_does_not_run_and_what_is_written_again_is_shown_as_a_diff() {
    let home = Home::new();
    home.file("bcc-script.toml", REVIEWED);
    let (script, replies) = loop_of(&["one", "two"]);
    home.file("w.yaml", &script);
    home.file("replies.yaml", &replies);
    let Some(done) = run(&home, "reject call it two\napprove\n") else { return };
    assert_eq!(done.code, Some(0), "{}", done.err);
    let prompts = requests(&done);
    assert!(prompts[1].starts_with("The code was written again. Run it? The changes:\n@@"), "{prompts:?}");
    assert!(
        prompts[1].contains("\n-open(os.path.join(folder, 'one'), 'w').close()\n+open(os.path.join(folder, 'two')")
    );
    assert!(prompts[1].contains("\n\nAll of the code:\nimport os\n"), "nothing is hidden: {}", prompts[1]);
    assert_eq!(["one", "two"].map(|name| home.path().join(name).exists()), [false, true]);
    let events = done.events();
    let exec = events.iter().find(|event| event["action"] == "exec").unwrap();
    assert_eq!(
        (&exec["success"], exec["error"].as_str()),
        (&false.into(), Some("a person rejected the code, and it did not run"))
    );
    // The model is told why.
    assert!(exec["effects"].to_string().contains("call it two"), "{exec}");
    assert_eq!(events.iter().filter(|event| event["type"] == "effect_started").count(), 1);
}

#[test]
fn a_person_can_change_the_code_before_it_runs() {
    let home = Home::new();
    home.file("bcc-script.toml", REVIEWED);
    let (script, replies) = loop_of(&["one"]);
    home.file("w.yaml", &script);
    home.file("replies.yaml", &replies);
    let Some(done) = run(&home, "edit open('changed', 'w').close()\n") else { return };
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(["one", "changed"].map(|name| home.path().join(name).exists()), [false, true]);
    let cells = &home.export("s")["notebook"]["cells"];
    assert_eq!(cells[0]["content"], "open('changed', 'w').close()");
}

#[test]
fn a_session_asks_about_the_code_of_a_model_and_not_about_that_of_its_author() {
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    let add = json!({ "action_type": "add", "action_id": "a", "config": { "shot_type": "action", "content": "x = 1\nprint(unknown)\n" } });
    let exec = json!({ "action_type": "exec", "action_id": "e", "config": { "codecell_id": "lastAddedCellId", "auto_debug": true } });
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [add, exec] }] }]);
    let script = json!({ "session": { "session_id": "w", "kernel": { "exec": "approve" }, "phases": phases } });
    home.file("w.yaml", &script.to_string());
    home.file("replies.yaml", "replies:\n  e:\n    - { explanation: a name, code: \"x = 1\\nprint(x)\" }\n");
    let Some(done) = run(&home, "approve\n") else { return };
    assert_eq!(done.code, Some(0), "{}", done.err);
    let prompts = requests(&done);
    assert_eq!(prompts.len(), 1, "the author's code ran");
    assert!(prompts[0].contains("\n x = 1\n-print(unknown)\n+print(x)"), "{}", prompts[0]);
    assert_eq!(home.export("s")["notebook"]["cells"][0]["outputs"][0]["text"], "1\n");
}

#[test]
fn rejected_code_does_not_run_later_either() {
    let home = Home::new();
    home.file("bcc-script.toml", REVIEWED);
    let (script, replies) = loop_of(&["one"]);
    let mut script: Value = serde_json::from_str(&script).unwrap();
    // The author runs the last cell, which a model wrote.
    let exec = json!({ "action_type": "exec", "action_id": "again", "config": { "codecell_id": "lastAddedCellId" } });
    script["session"]["phases"][0]["topics"][0]["actions"].as_array_mut().unwrap().push(exec);
    home.file("w.yaml", &script.to_string());
    home.file("replies.yaml", &replies);
    let Some(waits) = run(&home, "reject no\n") else { return };
    assert_eq!(waits.code, Some(3), "{}", waits.err);
    assert_eq!(requests(&waits).len(), 2, "the script asks as well");
    assert!(!home.path().join("one").exists());
}

#[test]
fn a_rejected_fix_leaves_the_cell_as_it_is() {
    let home = Home::new();
    home.file("bcc-script.toml", REVIEWED);
    let add = json!({ "action_type": "add", "action_id": "a", "config": { "shot_type": "action", "content": "print(unknown)\n" } });
    let exec = |id: &str, debug: bool| json!({ "action_type": "exec", "action_id": id, "config": { "codecell_id": "lastAddedCellId", "auto_debug": debug } });
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [add, exec("e", true), exec("f", false)] }] }]);
    home.file("w.yaml", &json!({ "session": { "session_id": "w", "phases": phases } }).to_string());
    home.file("replies.yaml", "replies:\n  e:\n    - { explanation: a file, code: \"open('fixed', 'w').close()\" }\n");
    let Some(done) = run(&home, "reject no\n") else { return };
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(requests(&done).len(), 1);
    assert!(!home.path().join("fixed").exists());
    let cell = &home.export("s")["notebook"]["cells"][0];
    assert_eq!((&cell["content"], &cell["outputs"][0]["ename"]), (&"print(unknown)".into(), &"NameError".into()));
}

#[test]
fn code_that_is_too_long_to_be_shown_is_not_approved() {
    let home = Home::new();
    home.file("bcc-script.toml", REVIEWED);
    let code = format!("#{}\nopen('unseen', 'w').close()\n#{}\n", "a".repeat(70_000), "b".repeat(70_000));
    let shown = format!("#{}\nopen('seen', 'w').close()\n#{}\n", "a".repeat(50_000), "b".repeat(50_000));
    let behavior = |code: &str, is_last: bool| {
        json!({ "actions": [{ "action": { "type": "add", "shot_type": "action", "content": code, "metadata": { "should_execute": true } } }],
        "transition": { "continue_behaviors": !is_last, "target_achieved": is_last } })
    };
    let (script, _) = loop_of(&["x"]);
    home.file("w.yaml", &script);
    home.file(
        "replies.yaml",
        &json!({ "replies": { "work": [behavior(&code, false), behavior(&shown, true)] } }).to_string(),
    );
    let Some(done) = run(&home, "approve\n") else { return };
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(["unseen", "seen"].map(|name| home.path().join(name).exists()), [false, true]);
    assert!(requests(&done)[0].contains("open('seen', 'w')"), "all of it is shown");
    assert!(done.out.contains("too much for a person to approve"));
}

#[test]
fn a_person_at_a_terminal_is_told_what_to_write() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", REVIEWED);
    let (script, replies) = loop_of(&["one"]);
    home.file("w.yaml", &script);
    home.file("replies.yaml", &replies);
    let mut variables = vec![("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned())];
    variables.extend(kernel_variables(&python));
    let arguments = ["run", "w.yaml", "--session", "s", "--trust", "--model", "replay:replies.yaml"];
    let mut terminal = Terminal::start_with(&home, &arguments, &variables);
    terminal.until("Run this code?");
    terminal.prompt();
    let shown = terminal.all_output().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["write `approve`, `reject`", "or `edit` and the code", "edit --set code=TEXT`"] {
        assert!(shown.contains(part), "{shown}");
    }
    terminal.types("yes\r");
    assert_eq!(terminal.end(), Some(0));
    assert!(home.path().join("one").exists());
}
