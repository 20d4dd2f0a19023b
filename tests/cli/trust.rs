//! Tests of trust: what a project from somebody else, and the store that came with it, can make this program run. Nothing, until the
//! person says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::process::{Finished, Home, Running, install_text};
use crate::tool_server;

/// A script that asks something and then runs `note.sh`.
const SCRIPT: &str = "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            - action_type: ai_ask\n              action_id: ask\n              config: { content: well?, max_rounds: 1 }\n            - { action_type: note, action_id: n }\n";

/// A script that runs nothing.
const PLAIN: &str = "session:\n  session_id: plain\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            - action_type: ai_ask\n              action_id: ask\n              config: { content: well?, max_rounds: 1 }\n";

/// A configuration in which `note` runs this program.
fn configuration(program: &str) -> String {
    format!("[project]\nallow = [\"command\"]\n[kinds.note]\ncommand = [\"{program}\"]\n")
}

fn program(path: &Path, text: &str) {
    install_text(path, &format!("#!/bin/sh\n{text}\n"));
}

/// A project in the folder `name`, whose program adds `word` to the file `ran` next to the projects.
fn project(home: &Home, name: &str, word: &str) -> PathBuf {
    let folder = home.path().join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("bcc-script.toml"), configuration("./note.sh")).unwrap();
    fs::write(folder.join("s.yaml"), SCRIPT).unwrap();
    program(&folder.join("note.sh"), &format!("echo {word} >> ../ran"));
    folder.canonicalize().unwrap()
}

fn ran(home: &Home) -> String {
    fs::read_to_string(home.path().join("ran")).unwrap_or_default()
}

fn finish(mut command: Command, folder: &Path, input: &str) -> Finished {
    command.current_dir(folder);
    let mut running = Running::start(command);
    running.feed(input.as_bytes().to_vec());
    running.finish()
}

/// Runs the program in `folder` as the person.
fn by_person(home: &Home, folder: &Path, arguments: &[&str], input: &str) -> Finished {
    finish(home.command(arguments), folder, input)
}

/// Runs the program in `folder` as somebody else, who trusts everything there.
fn by_other(home: &Home, folder: &Path, arguments: &[&str], input: &str) -> Finished {
    let mut command = home.command(arguments);
    command.env("XDG_CONFIG_HOME", home.path().join("other")).env("BCC_TRUST", "1");
    finish(command, folder, input)
}

fn trust(home: &Home, folder: &Path) {
    let finished = by_person(home, folder, &["trust"], "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

fn refused(finished: &Finished, parts: &[&str]) {
    assert_eq!(finished.code, Some(2), "{finished:?}");
    for part in parts {
        assert!(finished.err.contains(part), "{part} is not in {}", finished.err);
    }
}

fn store(folder: &Path) -> Connection {
    Connection::open(folder.join(".bcc/sessions.db")).unwrap()
}

/// Changes the settings of the session `one`, as somebody who ships a store can.
fn change_settings(folder: &Path, change: impl FnOnce(&mut Value)) {
    let store = store(folder);
    let text: String = store.query_row("SELECT settings FROM session WHERE id = 'one'", [], |row| row.get(0)).unwrap();
    let mut settings = serde_json::from_str(&text).unwrap();
    change(&mut settings);
    store.execute("UPDATE session SET settings = ?1 WHERE id = 'one'", [settings.to_string()]).unwrap();
}

/// What a message shows of a change of a project, and the change.
type ProjectChange = (&'static str, fn(&Path));

const RUN: [&str; 4] = ["run", "s.yaml", "--session", "one"];
const RESUME: [&str; 3] = ["sessions", "resume", "one"];

#[test]
fn a_store_runs_nothing_in_a_project_that_it_names() {
    let home = Home::new();
    let (mine, clone) = (project(&home, "mine", "mine"), project(&home, "clone", "evil"));
    trust(&home, &mine);
    assert_eq!(by_other(&home, &clone, &RUN, "").code, Some(3));
    change_settings(&clone, |settings| settings["project"] = json!(mine));
    // Where the person stands, nothing is trusted.
    let named = ["--project", mine.to_str().unwrap()];
    let here = ["--project", clone.to_str().unwrap()];
    let store = clone.join(".bcc/sessions.db");
    let stored = ["--store", store.to_str().unwrap()];
    refused(&by_person(&home, &clone, &RESUME, "fine\n"), &["belongs to the project", "--project"]);
    refused(&by_person(&home, &clone, &[&RESUME[..], &here].concat(), "fine\n"), &["bcc-script trust"]);
    // The store was not written by this person, even where the project is trusted.
    let not_own = ["may come from somebody else", "--trust"];
    refused(&by_person(&home, &mine, &[&RESUME[..], &stored].concat(), "fine\n"), &not_own);
    refused(&by_person(&home, &clone, &[&RESUME[..], &named, &stored].concat(), "fine\n"), &not_own);
    assert_eq!(ran(&home), "");
    // The permission alone does not make the commands of the store those of the project.
    fs::write(mine.join("bcc-script.toml"), configuration("true")).unwrap();
    let trusted = [&RESUME[..], &stored, &["--trust"]].concat();
    refused(&by_person(&home, &mine, &trusted, "fine\n"), &["are not those of bcc-script.toml"]);
    assert_eq!(ran(&home), "");
    // With the same commands, the person can decide it; the project's own program runs.
    fs::write(mine.join("bcc-script.toml"), configuration("./note.sh")).unwrap();
    assert_eq!(by_person(&home, &mine, &trusted, "fine\n").code, Some(0));
    assert_eq!(ran(&home), "mine\n");
}

#[test]
fn no_row_of_a_store_grants_a_permission() {
    let changes: [fn(&mut Value); 3] = [
        |_| {},
        |settings| settings["allowed"] = json!(["command", "exec"]),
        |settings| settings["origin"] = json!("00".repeat(32)),
    ];
    for change in changes {
        let home = Home::new();
        let clone = project(&home, "clone", "evil");
        assert_eq!(by_other(&home, &clone, &RUN, "").code, Some(3));
        change_settings(&clone, change);
        // The person has read the project and trusts it. The store was not part of that.
        trust(&home, &clone);
        // This person's key exists.
        assert_eq!(by_person(&home, &clone, &["run", "s.yaml", "--session", "own"], "").code, Some(3));
        refused(&by_person(&home, &clone, &RESUME, "fine\n"), &["may come from somebody else"]);
        refused(&by_person(&home, &clone, &RUN, "fine\n"), &["may come from somebody else"]);
        assert_eq!(ran(&home), "");
        assert_eq!(by_person(&home, &clone, &["sessions", "resume", "own"], "fine\n").code, Some(0));
        assert_eq!(ran(&home), "evil\n");
    }
}

#[test]
fn a_session_of_this_person_continues_as_it_was_trusted() {
    let home = Home::new();
    let mine = project(&home, "mine", "mine");
    trust(&home, &mine);
    assert_eq!(by_person(&home, &mine, &RUN, "").code, Some(3));
    fs::write(mine.join("s.yaml"), PLAIN).unwrap();
    refused(&by_person(&home, &mine, &RESUME, "fine\n"), &["changed: `s.yaml`"]);
    trust(&home, &mine);
    assert_eq!(by_person(&home, &mine, &RESUME, "fine\n").code, Some(0));
    assert_eq!(ran(&home), "mine\n");
    // A project that was moved takes its sessions with it, but must be trusted in its new place.
    fs::write(mine.join("s.yaml"), SCRIPT).unwrap();
    trust(&home, &mine);
    assert_eq!(by_person(&home, &mine, &["run", "s.yaml", "--session", "two"], "").code, Some(3));
    let moved = home.path().join("moved");
    fs::rename(&mine, &moved).unwrap();
    refused(&by_person(&home, &moved, &["sessions", "resume", "two"], "fine\n"), &["bcc-script trust"]);
    trust(&home, &moved);
    assert_eq!(by_person(&home, &moved, &["sessions", "resume", "two"], "fine\n").code, Some(0));
}

#[test]
fn a_session_that_was_started_without_a_permission_does_not_get_it_later() {
    let home = Home::new();
    let clone = project(&home, "clone", "evil");
    // The check does not see that the model asks for a command.
    let looped = "            - action_type: behavior_loop\n              action_id: work\n              config: { target: Note, reflection: 'off', max_behaviors: 1 }\n              on_exit: { max_rounds_reached: next }\n";
    fs::write(clone.join("loop.yaml"), format!("{PLAIN}{looped}")).unwrap();
    let actions = json!([{ "action": "note" }, { "action": "add", "content": "the end" }]);
    let replies = json!({ "ask": [{ "content": "well?" }, { "content": "yes", "EXIT": "YES" }], "work": [{ "actions": actions }] });
    fs::write(clone.join("replies.json"), json!({ "replies": replies }).to_string()).unwrap();
    let run = |id: &str| {
        let arguments = ["run", "loop.yaml", "--session", id, "--model", "replay:replies.json"];
        assert_eq!(by_person(&home, &clone, &arguments, "").code, Some(3));
    };
    let resume = |id: &str| by_person(&home, &clone, &["sessions", "resume", id, "--json"], "fine\n");
    run("early");
    trust(&home, &clone);
    let resumed = resume("early");
    assert_eq!((resumed.code, ran(&home).as_str()), (Some(0), ""), "{resumed:?}");
    assert!(resumed.out.contains("may come from somebody else"), "{}", resumed.out);
    run("late");
    let resumed = resume("late");
    assert_eq!((resumed.code, ran(&home).as_str()), (Some(0), "evil\n"), "{resumed:?}");
}

#[test]
fn code_of_a_store_needs_more_than_the_trust_of_the_project() {
    let home = Home::new();
    let clone = project(&home, "clone", "evil");
    fs::write(clone.join("bcc-script.toml"), "[project]\nallow = [\"exec\"]\n").unwrap();
    let code = "            - { action_type: add, action_id: a, config: { shot_type: action, content: 'open(\"ran\", \"w\")' } }\n            - { action_type: exec, action_id: e, config: { codecell_id: lastAddedCellId } }\n";
    fs::write(clone.join("s.yaml"), format!("{PLAIN}{code}")).unwrap();
    // A kernel that nobody gets to start.
    home.put(".local/share/jupyter/kernels/python3/kernel.json", "{\"argv\": [\"/bin/false\"]}");
    assert_eq!(by_other(&home, &clone, &RUN, "").code, Some(3));
    trust(&home, &clone);
    refused(&by_person(&home, &clone, &RESUME, "fine\n"), &["needs `exec`", "may come from somebody else"]);
}

#[test]
fn stored_documents_are_compared_with_their_hashes() {
    let home = Home::new();
    let mine = project(&home, "mine", "mine");
    fs::write(mine.join("s.yaml"), PLAIN).unwrap();
    assert_eq!(by_person(&home, &mine, &RUN, "").code, Some(3));
    let changed = store(&mine)
        .execute("UPDATE document SET text = replace(text, 'well?', 'evil?') WHERE text LIKE '%well?%'", []);
    assert_eq!(changed.unwrap(), 1);
    let finished = by_person(&home, &mine, &RESUME, "fine\n");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.err.contains("has another content than its hash says"), "{}", finished.err);
}

#[test]
fn only_the_person_names_files_outside_the_project() {
    let home = Home::new();
    let replies = home.file(
        "replies.yaml",
        "replies:\n  ask:\n    - { content: well? }\n    - { content: from outside, EXIT: \"YES\" }\n",
    );
    let model = format!("replay:{}", replies.display());
    for outside in ["model", "replay"] {
        let clone = project(&home, outside, "x");
        fs::write(clone.join("s.yaml"), PLAIN).unwrap();
        assert_eq!(by_other(&home, &clone, &[&RUN[..], &["--model", "offline"]].concat(), "").code, Some(3));
        change_settings(&clone, |settings| {
            settings["model"] = Value::Null;
            settings[outside] = json!(if outside == "model" { &model } else { replies.to_str().unwrap() });
        });
        let finished = by_person(&home, &clone, &RESUME, "fine\n");
        refused(&finished, &["a file outside the project", "--replay"]);
        let finished = by_person(&home, &clone, &[&RESUME[..], &["--model", "offline"]].concat(), "fine\n");
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    // What this person named when the session started is used again.
    let mine = project(&home, "mine", "x");
    fs::write(mine.join("s.yaml"), PLAIN).unwrap();
    assert_eq!(by_person(&home, &mine, &[&RUN[..], &["--model", &model]].concat(), "").code, Some(3));
    let finished = by_person(&home, &mine, &RESUME, "fine\n");
    assert!(finished.code == Some(0) && finished.out.contains("from outside"), "{finished:?}");
}

#[test]
fn an_id_of_a_store_is_one_word_of_the_command_that_is_shown() {
    let home = Home::new();
    let clone = project(&home, "clone", "x");
    fs::write(clone.join("s.yaml"), PLAIN).unwrap();
    assert_eq!(by_other(&home, &clone, &RUN, "").code, Some(3));
    store(&clone).execute("UPDATE session SET id = 'x; touch evil'", []).unwrap();
    let finished = by_person(&home, &clone, &["sessions", "resume"], "");
    assert!(finished.err.contains("sessions resume 'x; touch evil'"), "{finished:?}");
}

#[test]
fn trust_covers_everything_that_may_run() {
    let home = Home::new();
    let mine = project(&home, "mine", "mine");
    let run = |more: &[&str]| by_person(&home, &mine, &[&["run", "s.yaml"], more].concat(), "fine\n");
    refused(&run(&[]), &["bcc-script trust"]);
    trust(&home, &mine);
    assert_eq!(run(&[]).code, Some(0));
    let first = ran(&home);
    // Data, exports, and what the program writes itself are not covered.
    fs::write(mine.join("data.csv"), "1").unwrap();
    assert_eq!(run(&["--notebook", "out.ipynb", "--record", "rec.jsonl"]).code, Some(0));
    assert_eq!(run(&[]).code, Some(0));
    let count = ran(&home).lines().count();
    assert_eq!((first.as_str(), count), ("mine\n", 3));
    let changes: [ProjectChange; 5] = [
        ("changed: `note.sh`", |folder| program(&folder.join("note.sh"), "echo mine >> ../ran # other")),
        ("new: `later/x.yaml`", |folder| {
            fs::create_dir(folder.join("later")).unwrap();
            fs::write(folder.join("later/bcc-script.toml"), "").unwrap();
            fs::write(folder.join("later/x.yaml"), SCRIPT).unwrap();
        }),
        ("removed: `later/x.yaml`", |folder| fs::remove_file(folder.join("later/x.yaml")).unwrap()),
        ("new: `_system/config/default/ai_say_v1.md`", |folder| {
            fs::create_dir_all(folder.join("_system/config/default")).unwrap();
            fs::write(folder.join("_system/config/default/ai_say_v1.md"), "[system]\nSay it.\n").unwrap();
        }),
        ("changed: `bcc-script.toml`", |folder| {
            fs::write(folder.join("bcc-script.toml"), configuration("./note.sh") + "timeout = \"5s\"\n").unwrap();
        }),
    ];
    for (number, (shown, change)) in changes.into_iter().enumerate() {
        change(&mine);
        refused(&run(&[]), &["is not trusted any more", shown, "bcc-script trust"]);
        refused(&run(&["--session", "new"]), &[shown]);
        let doctor = by_person(&home, &mine, &["doctor"], "");
        assert!(doctor.out.contains(shown), "{doctor:?}");
        assert_eq!(ran(&home).lines().count(), count + 2 * number, "{shown}");
        assert_eq!(run(&["--trust"]).code, Some(0), "{shown}");
        refused(&run(&[]), &[shown]);
        let trusted = by_person(&home, &mine, &["trust"], "");
        assert!(trusted.code == Some(0) && trusted.err.contains(shown), "{trusted:?}");
        assert_eq!(run(&[]).code, Some(0), "{shown}");
    }
}

#[test]
fn a_test_of_a_changed_project_runs_nothing() {
    let home = Home::new();
    let mine = project(&home, "mine", "mine");
    let test = "test: it notes\nscript: s.yaml\ndialogue:\n  - user: fine\n  - expect: { status: completed }\n";
    fs::write(mine.join("s.test.yaml"), test).unwrap();
    trust(&home, &mine);
    let tested = by_person(&home, &mine, &["test", "s.test.yaml"], "");
    assert_eq!((tested.code, ran(&home).as_str()), (Some(0), "mine\n"), "{tested:?}");
    program(&mine.join("note.sh"), "echo evil >> ../ran");
    let tested = by_person(&home, &mine, &["test", "s.test.yaml"], "");
    refused(&tested, &["is not trusted any more", "changed: `note.sh`"]);
    assert_eq!(ran(&home), "mine\n");
}

#[test]
fn a_script_that_was_not_trusted_with_the_project_runs_nothing() {
    let home = Home::new();
    let mine = project(&home, "mine", "mine");
    fs::create_dir(mine.join(".hidden")).unwrap();
    fs::write(mine.join(".hidden/s.yaml"), SCRIPT).unwrap();
    let elsewhere = home.put("elsewhere/s.yaml", SCRIPT.replace("well?", "other?"));
    fs::write(mine.join(".hidden/s.yaml"), SCRIPT.replace("well?", "hidden?")).unwrap();
    trust(&home, &mine);
    let run = |script: &str, more: &[&str]| {
        by_person(&home, &mine, &[&["run", script, "--project", "."], more].concat(), "fine\n")
    };
    for script in [".hidden/s.yaml", elsewhere.to_str().unwrap()] {
        refused(&run(script, &[]), &["is not one of the files that you trusted", "--trust"]);
        assert_eq!(ran(&home), "");
    }
    assert_eq!(run(elsewhere.to_str().unwrap(), &["--trust"]).code, Some(0));
    // A script that needs no permission runs.
    let plain = home.put("elsewhere/plain.yaml", PLAIN);
    assert_eq!(run(plain.to_str().unwrap(), &[]).code, Some(0));
}

#[test]
fn trust_of_an_earlier_release_is_asked_for_again_where_code_may_run() {
    let home = Home::new();
    let mine = project(&home, "mine", "mine");
    trust(&home, &mine);
    let file = home.path().join("config/bcc-script/trust.json");
    let mut trusted: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    trusted["version"] = json!(1);
    trusted.as_object_mut().unwrap().remove("files");
    fs::write(&file, trusted.to_string()).unwrap();
    let run = || by_person(&home, &mine, &["run", "s.yaml"], "fine\n");
    refused(
        &run(),
        &["an earlier release of bcc-script stored only your trust in bcc-script.toml", "bcc-script trust"],
    );
    trust(&home, &mine);
    assert_eq!(run().code, Some(0));
}

#[test]
fn what_is_trusted_is_listed_with_hashes() {
    let home = Home::new();
    assert!(home.finish(["trust", "--list"], "").err.contains("you trust no project yet"));
    let mine = project(&home, "mine", "mine");
    trust(&home, &mine);
    let list = |arguments: &[&str]| {
        let finished = by_person(&home, &mine, &[&["trust", "--list"], arguments].concat(), "");
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished.out
    };
    let row = |out: &str| -> Vec<String> { out.lines().next().unwrap().split('\t').map(str::to_owned).collect() };
    let before = row(&list(&[]));
    assert_eq!(before[1..], ["unchanged".to_owned(), mine.display().to_string()]);
    let files = list(&["."]);
    let names: Vec<&str> = files.lines().skip(1).map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert_eq!(names, ["bcc-script.toml", "note.sh", "s.yaml"]);
    program(&mine.join("note.sh"), "true");
    let after = row(&list(&[]));
    assert_eq!((&after[0], after[1].as_str()), (&before[0], "changed"));
    trust(&home, &mine);
    assert_ne!(row(&list(&[]))[0], before[0]);
    fs::remove_file(mine.join("bcc-script.toml")).unwrap();
    assert_eq!(row(&list(&[]))[1], "missing");
    refused(&by_person(&home, &mine, &["trust", "--list", ".."], ""), &["you do not trust the project"]);
}

#[test]
fn the_command_that_resumes_names_the_project() {
    let home = Home::new();
    let mine = project(&home, "mine", "mine");
    trust(&home, &mine);
    let finished = by_person(&home, home.path(), &["run", "mine/s.yaml", "--session", "one"], "");
    let expected = format!("bcc-script sessions resume one --project {}", mine.display());
    assert!(finished.err.contains(&expected), "{finished:?}");
    let project = mine.to_str().unwrap();
    let resumed = by_person(&home, home.path(), &[&RESUME[..], &["--project", project]].concat(), "fine\n");
    assert_eq!((resumed.code, ran(&home).as_str()), (Some(0), "mine\n"), "{resumed:?}");
}

#[test]
fn a_prompt_is_compared_only_with_the_templates_of_the_project_of_the_person() {
    let home = Home::new();
    let (mine, clone) = (project(&home, "mine", "mine"), project(&home, "clone", "evil"));
    fs::write(clone.join("s.yaml"), PLAIN).unwrap();
    assert_eq!(by_other(&home, &clone, &RUN, "").code, Some(3));
    change_settings(&clone, |settings| settings["project"] = json!(mine));
    let render = ["templates", "render", "--session", "one", "--action", "ask"];
    refused(&by_person(&home, &clone, &render, ""), &["belongs to the project", "--project"]);
    let rendered = by_person(&home, &clone, &[&render[..], &["--project", "."]].concat(), "");
    assert_eq!(rendered.code, Some(0), "{rendered:?}");
}

#[test]
fn trust_lists_what_servers_of_tools_may_do_and_covers_their_programs() {
    let home = Home::new();
    let folder = home.path().join("tools");
    fs::create_dir_all(folder.join("bin")).unwrap();
    let configuration = "[mcp_servers.files]\ncommand = [\"python3\", \"server.txt\"]\ncwd = \"bin\"\n\
                         env = { KEY = { env = \"FILES_KEY\" } }\n\
                         [mcp_servers.web]\nurl = \"https://tools.example/mcp?a=secret\"\napi_key_env = \"WEB_KEY\"\n";
    fs::write(folder.join("bcc-script.toml"), configuration).unwrap();
    fs::write(folder.join("bin/server.txt"), "print(1)").unwrap();
    fs::write(folder.join("s.yaml"), PLAIN).unwrap();
    let trusted = by_person(&home, &folder, &["trust"], "");
    for part in [
        "the server of tools `files` may be started: python3 server.txt",
        "the value of the environment variable FILES_KEY",
        "calls may be sent to the server of tools `web` at https://tools.example/mcp\n",
        "the key in the environment variable WEB_KEY",
        "2 files of the project may run",
    ] {
        assert!(trusted.err.contains(part), "{part}: {}", trusted.err);
    }
    // Another program is another decision.
    fs::write(folder.join("bin/server.txt"), "print(2)").unwrap();
    let refused = by_person(&home, &folder, &["run", "s.yaml"], "x\n");
    assert!(refused.code == Some(2) && refused.err.contains("bin/server.txt"), "{}", refused.err);
}

#[test]
fn trust_in_a_state_file_covers_its_tools_and_what_deciders_read() {
    let tools = json!([{ "name": "mcp.s.write", "approve": "always", "approvers": ["boss"] }]);
    let home = tool_server::project(&json!([]), &json!([]));
    let file = |change: &dyn Fn(&mut Value)| {
        let mut file = json!({ "workflow_id": "w", "status": "pending", "tools": tools, "steps": [
            { "id": "ok", "type": "approval", "status": "pending", "description": "Wipe everything?" },
            { "id": "write", "name": "Write", "status": "pending", "tool": "mcp.s.write", "arguments": {} },
        ] });
        change(&mut file);
        home.file("w.json", &file.to_string());
    };
    file(&|_| {});
    trust(&home, home.path());
    // Its progress, and the name of a step that nobody decides about, may change.
    file(&|file| {
        file["steps"][1]["name"] = "Note".into();
        file["current_step"] = "ok".into();
    });
    assert_eq!(by_person(&home, home.path(), &["run", "w.json"], "").code, Some(3));
    let changes: [&dyn Fn(&mut Value); 2] = [&|file| file["tools"] = json!(["mcp.s.write"]), &|file| {
        file["steps"][0]["description"] = "Show the status?".into()
    }];
    for change in changes {
        file(change);
        refused(&by_person(&home, home.path(), &["run", "w.json"], ""), &["w.json"]);
    }
    assert_eq!(tool_server::calls(&home), [""; 0]);
}

#[test]
fn a_script_outside_of_a_trusted_project_does_not_get_its_tool_servers() {
    let step = json!({ "action_type": "tool", "action_id": "w", "config": { "name": "mcp.s.write", "arguments": {} } });
    let home = tool_server::project(&json!(["mcp.s.write"]), &json!([step]));
    let outside = tempfile::tempdir().unwrap();
    let script = outside.path().join("s.yaml");
    fs::rename(home.path().join("s.yaml"), &script).unwrap();
    trust(&home, home.path());
    let project = home.path().to_str().unwrap();
    let run = ["run", script.to_str().unwrap(), "--project", project];
    let finished = by_person(&home, home.path(), &run, "");
    assert_ne!(finished.code, Some(0), "{finished:?}");
    assert!(finished.err.contains("is not one of the files that you trusted with the project"), "{finished:?}");
    assert_eq!(tool_server::calls(&home), [""; 0]);
    let trusted = by_person(&home, home.path(), &[run[0], run[1], run[2], run[3], "--trust"], "");
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert_eq!(tool_server::calls(&home).len(), 1);
}
