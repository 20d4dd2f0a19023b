//! Tests of scripts that write notebooks and run code, through the program and a real kernel: complete runs, runs that are killed during a
//! cell and resumed, and runs without permission. Without a kernel, the tests that need one print a note and pass.

use crate::process;
use crate::test_kernel as kernel;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use kernel::{kernel_python, kernel_variables};
use process::{Finished, Home, POLL_INTERVAL, Running, TIMEOUT};
use serde_json::{Value, json};

const ALLOWED: &str = "[project]\nscheme = \"english\"\nallow = [\"exec\"]\n";

/// A cell that records that it ran, then one that does the same and waits until the test lets it continue.
const WAITS: &str = r#"
session:
  session_id: waits
  kernel: { on_resume: ON_RESUME }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: add
              action_id: add_first
              config:
                shot_type: action
                store_id: first
                content: |
                  x = 41
                  with open("ran.txt", "a") as file: file.write("first\n")
            - { action_type: exec, action_id: run_first, config: { codecell_id: first } }
            - action_type: add
              action_id: add_second
              config:
                shot_type: action
                store_id: second
                content: |
                  import os, time
                  with open("ran.txt", "a") as file: file.write("second\n")
                  while not os.path.exists("go"): time.sleep(0.01)
                  print(globals().get("x", 0) + 1)
            - { action_type: exec, action_id: run_second, on_interrupted: ON_INTERRUPTED, config: { codecell_id: second } }
            - { action_type: ai_say, action_id: bye, config: { delivery: verbatim, content: It is over. } }
"#;

fn command(home: &Home, python: &Path, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.envs(kernel_variables(python));
    command
}

fn start(home: &Home, python: &Path, arguments: &[&str]) -> Running {
    Running::start(command(home, python, arguments))
}

fn finish(home: &Home, python: &Path, arguments: &[&str]) -> Finished {
    start(home, python, arguments).finish()
}

fn events_of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

fn executed_cells(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.path().join("ran.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Waits until the code has written this number of lines.
fn wait_for(home: &Home, lines: usize) {
    let deadline = Instant::now() + TIMEOUT;
    while executed_cells(home).len() < lines {
        assert!(Instant::now() < deadline, "the code does not come so far");
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// A session that was killed during its second cell.
fn killed(python: &Path, on_resume: &str, on_interrupted: &str) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    home.file("waits.yaml", &WAITS.replace("ON_RESUME", on_resume).replace("ON_INTERRUPTED", on_interrupted));
    let mut running = start(&home, python, &["run", "waits.yaml", "--session", "s", "--json", "--trust"]);
    wait_for(&home, 2);
    running.kill();
    home.file("go", "");
    home
}

/// The exported notebook of the session, validated with Python's nbformat.
fn exported(home: &Home, python: &Path) -> Value {
    let file = home.path().join("out.ipynb");
    let finished = finish(home, python, &["sessions", "export", "s", "--format", "ipynb"]);
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    std::fs::write(&file, &finished.out).unwrap();
    let check = "import sys, nbformat; nbformat.validate(nbformat.read(sys.argv[1], as_version=nbformat.NO_CONVERT))";
    let validation = Command::new(python).args(["-c", check]).arg(&file).output().unwrap();
    assert!(validation.status.success(), "{}", String::from_utf8_lossy(&validation.stderr));
    serde_json::from_str(&finished.out).unwrap()
}

fn printed(notebook: &Value) -> String {
    let outputs = notebook["cells"].as_array().unwrap().iter().flat_map(|cell| cell["outputs"].as_array());
    let texts = outputs.flatten().map(|output| match &output["text"] {
        Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
        text => text.as_str().unwrap_or_default().to_owned(),
    });
    texts.collect()
}

fn example(home: &Home) {
    let folder = PathBuf::from(crate::ROOT).join("scripts/data_analysis");
    for name in ["bcc-script.toml", "data_analysis.yaml", "sleep.csv"] {
        home.file(name, &std::fs::read_to_string(folder.join(name)).unwrap());
    }
}

#[test]
fn the_example_analyses_its_data_and_its_notebook_opens_elsewhere() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    example(&home);
    let finished = finish(&home, &python, &["run", "data_analysis.yaml", "--session", "s", "--json", "--trust"]);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    let events = finished.events();
    assert_eq!(events_of(&events, "effect_started").len(), 3);
    assert_eq!(events_of(&events, "effect_finished").len(), 3);
    assert!(events_of(&events, "warning").is_empty(), "{:?}", events_of(&events, "warning"));
    assert!(
        events_of(&events, "notebook_action").iter().all(|event| event["success"] == true && event["by"] == "script")
    );
    let notebook = exported(&home, &python);
    let printed = printed(&notebook);
    assert!(printed.contains("60 people, 2 without hours"), "{printed}");
    assert!(printed.contains("night"), "{printed}");
}

#[test]
fn interrupted_code_waits_for_confirmation_and_never_runs_twice_without_it() {
    let Some(python) = kernel_python() else { return };
    let table = [
        ("again", vec!["first", "second", "second"], Some(0), "ok"),
        ("跳过", vec!["first", "second"], Some(0), "interrupted"),
        ("fail", vec!["first", "second"], Some(1), "interrupted"),
    ];
    for (answer, lines, code, ended) in table {
        let home = killed(&python, "fresh", "ask");
        let mut running = start(&home, &python, &["sessions", "resume", "s", "--json", "--trust"]);
        let waiting = running.event_of("waiting");
        assert_eq!(waiting["for"], "interrupted_effect", "{answer}");
        assert_eq!(executed_cells(&home), ["first", "second"], "{answer}: nothing runs before somebody says so");
        running.send("hm, what?");
        assert_eq!(running.event_of("waiting")["for"], "interrupted_effect", "{answer}");
        running.send(answer);
        let finished = running.finish();
        assert_eq!(finished.code, code, "{answer}: {}\n{}", finished.err, finished.out);
        assert_eq!(executed_cells(&home), lines, "{answer}");
        if answer != "fail" {
            let events = finished.events();
            let outcome =
                events_of(&events, "outcome").into_iter().find(|event| event["action_type"] == "exec").unwrap();
            assert_eq!(outcome["metadata"]["ended"], ended, "{answer}");
        }
        // With an empty memory, the second cell does not find the variables of the first.
        if answer == "again" {
            assert!(finished.out.contains("kernel-memory-gone"), "{}", finished.out);
            assert_eq!(printed(&exported(&home, &python)), "1\n");
        }
    }
}

#[test]
fn on_interrupted_needs_no_confirmation() {
    let Some(python) = kernel_python() else { return };
    let home = killed(&python, "rerun", "retry");
    let finished = finish(&home, &python, &["sessions", "resume", "s", "--json", "--trust"]);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    // The first cell ran again to restore the memory, the second because it was interrupted.
    assert_eq!(executed_cells(&home), ["first", "second", "first", "second"]);
    assert_eq!(printed(&exported(&home, &python)), "42\n");
    let events = finished.events();
    let run = events_of(&events, "notebook_action").into_iter().find(|event| event["action"] == "exec").unwrap();
    assert_eq!(run["effects"][0], "Ran earlier cells again: 1", "{run}");

    let home = killed(&python, "rerun", "skip");
    let finished = finish(&home, &python, &["sessions", "resume", "s", "--json", "--trust"]);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    assert_eq!(executed_cells(&home), ["first", "second"]);
}

#[test]
fn a_script_with_code_is_rejected_before_the_start_unless_allowed() {
    let table = [
        (None, true, "the project does not allow `exec`"),
        (Some("[project]\nallow = [\"command\"]\n"), true, "the project does not allow `exec`"),
        (Some(ALLOWED), false, "you have not marked this project as trusted"),
    ];
    for (configuration, trust, reason) in table {
        let home = Home::new();
        if let Some(configuration) = configuration {
            home.file("bcc-script.toml", configuration);
        }
        home.file("waits.yaml", &WAITS.replace("ON_RESUME", "fresh").replace("ON_INTERRUPTED", "ask"));
        let trust: &[&str] = if trust { &["--trust"] } else { &[] };
        let arguments = [&["run", "waits.yaml", "--session", "s", "--json"], trust].concat();
        let finished = home.finish(&arguments, "");
        assert_eq!(finished.code, Some(2), "{}\n{}", finished.err, finished.out);
        assert!(finished.err.contains(reason) && finished.err.contains("run_first"), "{}", finished.err);
        assert!(finished.out.is_empty(), "{}", finished.out);
        assert!(!home.store().exists() && executed_cells(&home).is_empty());
    }
}

/// A script with one cell that fails, with this config.
fn failing(code: &str, config: &str) -> String {
    format!(
        "session:\n  session_id: f\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n\
         \x20           - {{ action_type: add, action_id: a, config: {{ shot_type: action, store_id: c, content: {code:?} }} }}\n\
         \x20           - {{ action_type: exec, action_id: e, config: {{ codecell_id: c{config} }} }}\n"
    )
}

#[test]
fn failing_code_fails_the_session_only_if_the_script_says_so() {
    let Some(python) = kernel_python() else { return };
    let table = [
        ("nothing_of_this_name", "", Some(0), "exit_criteria_met", "error", "Code execution failed: NameError"),
        ("nothing_of_this_name", ", on_error: fail", Some(1), "failed", "error", "Code execution failed: NameError"),
        ("import os; os._exit(3)", "", Some(0), "exit_criteria_met", "died", "Code execution failed: the kernel died"),
        (
            "import time\nwhile True: time.sleep(0.01)",
            ", timeout: 1s",
            Some(0),
            "exit_criteria_met",
            "timed_out",
            "Code execution took longer than 1 seconds",
        ),
    ];
    for (code, config, exit, reason, ended, error) in table {
        let home = Home::new();
        home.file("bcc-script.toml", ALLOWED);
        home.file("f.yaml", &failing(code, config));
        let finished = finish(&home, &python, &["run", "f.yaml", "--json", "--trust"]);
        assert_eq!(finished.code, exit, "{code}: {}\n{}", finished.err, finished.out);
        let events = finished.events();
        let outcome = events_of(&events, "outcome").into_iter().find(|event| event["action_type"] == "exec").unwrap();
        assert_eq!(outcome["exit_reason"], reason, "{code}");
        let metadata = &outcome["metadata"];
        assert_eq!(metadata["ended"], ended, "{code}");
        assert_eq!((&metadata["success"], &metadata["error"]), (&false.into(), &error.into()), "{code}");
        assert_eq!(metadata["action_id"], "e", "{code}");
        assert_eq!(finished.out.contains("kernel-died"), ended == "died", "{code}");
    }
}

#[test]
fn a_model_repairs_failing_code_and_each_run_is_announced() {
    let Some(python) = kernel_python() else { return };
    let replies = "replies:\n  e:\n    - { explanation: a name, code: print(still_unknown) }\n    - { explanation: a name, code: print(6 * 7) }\n";
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    home.file("f.yaml", &failing("print(unknown)", ", auto_debug: true"));
    home.file("replies.yaml", replies);
    let arguments = ["run", "f.yaml", "--session", "s", "--json", "--trust", "--model", "replay:replies.yaml"];
    let finished = finish(&home, &python, &arguments);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    let events = finished.events();
    assert_eq!(events_of(&events, "effect_started").len(), 3);
    let calls = events_of(&events, "model_call");
    assert_eq!(calls.len(), 2);
    // No outcome has what was sent to the model.
    for (call, reply) in calls.iter().zip(["print(still_unknown)", "print(6 * 7)"]) {
        assert!(call["debug_info"]["llm_prompt"].is_array(), "{call}");
        assert!(call["debug_info"]["llm_response"].as_str().unwrap().contains(reply), "{call}");
    }
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let at = |kind: &str| kinds.iter().position(|other| *other == kind).unwrap();
    assert!(
        at("effect_finished") < at("model_call"),
        "what the code gave is committed before the model is asked: {kinds:?}"
    );
    let repaired = events_of(&events, "notebook_action").into_iter().filter(|event| event["action"] == "auto_debug");
    assert_eq!(repaired.map(|event| event["by"].clone()).collect::<Vec<_>>(), ["model", "model"]);
    let notebook = exported(&home, &python);
    assert_eq!(printed(&notebook), "42\n");
    assert!(notebook.to_string().contains("print(unknown)"), "the author's code is kept: {notebook}");
}

/// The fields of its first action are not those of the reply.
#[test]
fn a_bare_list_of_actions_is_said_to_be_one() {
    let home = Home::new();
    let config = "target: a report, max_behaviors: 1, reflection: off, reask: 2";
    let action = format!("{{ action_type: behavior_loop, action_id: work, config: {{ {config} }} }}");
    let topic = format!("{{ topic_id: t, actions: [{action}], on_exit: {{ max_rounds_reached: next }} }}");
    home.file("w.yaml", &format!("session: {{ session_id: w, phases: [{{ phase_id: p, topics: [{topic}] }}] }}\n"));
    home.file("replies.yaml", "replies:\n  work: ['[{\"action\": \"add\", \"content\": \"First.\"}]']\n");
    let finished = home.finish(["run", "w.yaml", "--json", "--model", "replay:replies.yaml"], "");
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    let events = finished.events();
    let warnings: Vec<&str> =
        events_of(&events, "warning").iter().map(|warning| warning["message"].as_str().unwrap()).collect();
    assert_eq!(warnings, ["the reply is a list instead of an object; the list was used as the reply's /actions"]);
    let calls = events_of(&events, "model_call");
    let record = json!([{ "path": "/actions", "bending": "bare_list", "expected": "object", "found": "array" }]);
    assert_eq!((calls.len(), &calls[0]["bent"]), (1, &record), "{calls:?}");
}

/// Actions in the wrapped form in which servers stream them: a title, a section, a step, text, code, and its execution.
const SENT: &str = r#"
replies:
  work:
    - actions:
        - { action: { type: update_title, content: Houses } }
        - { action: { type: new_section, content: What there is } }
        - { action: { type: new_step, content: Look at the file } }
        - { action: { type: add, shot_type: markdown, content: The file is read and **counted**. } }
        - action:
            type: add
            shot_type: action
            content: |
              import csv, os
              path = "./assets/houses.csv"
              rows = list(csv.DictReader(open(path)))
              print(f"File exists: {os.path.exists(path)}, rows: {len(rows)}, columns: {len(rows[0])}")
        - { action: { type: exec, codecell_id: lastAddedCellId, need_output: true } }
      transition: { continue_behaviors: false, target_achieved: true }
"#;

#[test]
fn wrapped_actions_of_a_model_run_against_a_real_kernel() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    std::fs::create_dir(home.path().join("assets")).unwrap();
    home.file("assets/houses.csv", "id,area,price\n1,80,200\n2,95,240\n3,60,150\n");
    home.file("replies.yaml", SENT);
    let script = "session:\n  session_id: w\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n\
                  \x20           - { action_type: behavior_loop, action_id: work, config: { target: Read it, reflection: off } }\n";
    home.file("w.yaml", script);
    let arguments = ["run", "w.yaml", "--session", "s", "--json", "--trust", "--model", "replay:replies.yaml"];
    let finished = finish(&home, &python, &arguments);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    let events = finished.events();
    let actions = events_of(&events, "notebook_action");
    let names: Vec<&str> = actions.iter().map(|event| event["action"].as_str().unwrap()).collect();
    assert_eq!(names, ["update_title", "new_section", "new_step", "add", "add", "exec"]);
    assert!(actions.iter().all(|event| event["success"] == true && event["by"] == "model"), "{actions:?}");
    assert_eq!(printed(&exported(&home, &python)), "File exists: True, rows: 3, columns: 3\n");
}

/// The directories of kernels, which contain their keys.
fn kernel_directories(home: &Home) -> usize {
    std::fs::read_dir(home.path().join("run/bcc-script")).map_or(0, Iterator::count)
}

#[test]
fn the_key_of_a_kernel_is_removed_with_it_and_that_of_a_killed_process_by_the_next_kernel() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    home.file("waits.yaml", &WAITS.replace("ON_RESUME", "fresh").replace("ON_INTERRUPTED", "ask"));
    std::fs::create_dir(home.path().join("run")).unwrap();
    let start = |session: &str| {
        let mut command = command(&home, &python, &["run", "waits.yaml", "--session", session, "--json", "--trust"]);
        command.env("XDG_RUNTIME_DIR", home.path().join("run"));
        Running::start(command)
    };
    let mut running = start("killed");
    wait_for(&home, 2);
    running.kill();
    assert_eq!(kernel_directories(&home), 1);
    home.file("go", "");
    let finished = start("next").finish();
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    assert_eq!(kernel_directories(&home), 0);
}

/// A cell that prints, waits for the file `go`, and prints more.
const PRINTS: &str = r#"
session:
  session_id: prints
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: add
              action_id: add
              config:
                shot_type: action
                metadata: { should_execute: true }
                content: |
                  import os, sys, time
                  print("one")
                  print("two", file=sys.stderr)
                  while not os.path.exists("go"): time.sleep(0.01)
                  print("three")
"#;

/// The lines that the first cell of a notebook file has printed, sorted: a kernel may send the two streams in any order.
fn printed_in(file: &Path) -> Vec<String> {
    let Ok(text) = std::fs::read_to_string(file) else { return vec![] };
    // A file that is replaced atomically is always a whole document.
    let notebook: Value = serde_json::from_str(&text).unwrap();
    let outputs = notebook["cells"][0]["outputs"].as_array().cloned().unwrap_or_default();
    let lines = outputs.iter().flat_map(|output| output["text"].as_array().cloned().unwrap());
    let mut lines: Vec<String> = lines.map(|line| line.as_str().unwrap().to_owned()).collect();
    lines.sort();
    lines
}

fn wait_until_printed(file: &Path, expected: &[&str]) {
    let started = Instant::now();
    while printed_in(file) != expected {
        assert!(started.elapsed() < TIMEOUT, "{:?}", printed_in(file));
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[test]
fn what_a_cell_prints_is_in_the_notebook_file_while_it_runs_and_stays_if_the_process_is_killed() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    home.file("s.yaml", PRINTS);
    let file = home.path().join("live.ipynb");
    let run = |session| ["run", "s.yaml", "--trust", "--json", "--notebook", "live.ipynb", "--session", session];
    let running = start(&home, &python, &run("one"));
    wait_until_printed(&file, &["one\n", "two\n"]);
    home.file("go", "");
    let finished = running.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert_eq!(printed_in(&file), ["one\n", "three\n", "two\n"]);
    // Killed while the cell runs.
    for name in ["go", "live.ipynb"] {
        std::fs::remove_file(home.path().join(name)).unwrap();
    }
    let mut running = start(&home, &python, &run("two"));
    wait_until_printed(&file, &["one\n", "two\n"]);
    running.kill();
    assert_eq!(printed_in(&file), ["one\n", "two\n"]);
    // It is still there when the session asks about the code, and when it runs again, only the new output is.
    let resume = ["sessions", "resume", "two", "--trust", "--notebook", "live.ipynb"];
    let asked = finish(&home, &python, &resume);
    assert_eq!(asked.code, Some(3), "{}", asked.err);
    assert_eq!(printed_in(&file), ["one\n", "two\n"]);
    home.file("go", "");
    let mut again = start(&home, &python, &[&resume[..], &["--json"]].concat());
    assert!(again.send("again"));
    let done = again.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(printed_in(&file), ["one\n", "three\n", "two\n"]);
}

#[test]
fn tables_and_arrays_are_shown_to_models_with_their_shape_and_types() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    let code = "import numpy, pandas\nframe = pandas.DataFrame({'gauge': [1, 2], 'level': [0.5, None], 'name': ['a', 'b']})\n\
        wide = pandas.DataFrame([range(30)])\nlarge = numpy.zeros((1000, 3))\nsmall = numpy.array([1, 2])\none = numpy.float64(2.5)\n\
        class Polars:\n    shape, columns, dtypes = (3, 1), ['x'], ['Int64']\nlike_polars = Polars()\n\
        class Broken:\n    shape = property(lambda self: 1 / 0)\n    def __repr__(self): return 'broken'\nbroken = Broken()\n";
    let action = serde_json::json!({"action_type": "add", "action_id": "a", "config": {
        "shot_type": "action", "content": code, "metadata": {"should_execute": true}}});
    let topics = serde_json::json!([{"topic_id": "t", "actions": [action]}]);
    let script = serde_json::json!({"session": {"session_id": "v", "phases": [{"phase_id": "p", "topics": topics}]}});
    home.file("s.yaml", &script.to_string());
    let finished = finish(&home, &python, &["run", "s.yaml", "--trust", "--json", "--session", "v"]);
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.err, finished.out);
    let exported = home.finish(["sessions", "export", "v", "--format", "protocol"], "");
    let exported: Value = serde_json::from_str(&exported.out).unwrap();
    let shown = &exported["observation"]["context"]["kernel_variables"];
    let text = |name: &str| shown[name].as_str().unwrap_or_else(|| panic!("{name}: {shown}")).to_owned();
    let frame = text("frame");
    assert!(frame.starts_with("DataFrame, 2 rows × 3 columns: gauge int64, level float64, name "), "{frame}");
    let wide = text("wide");
    assert!(wide.starts_with("DataFrame, 1 row × 30 columns: 0 int64, ") && wide.ends_with(", …"), "{wide}");
    assert_eq!(text("large"), "ndarray, 1000 × 3, float64");
    assert_eq!(text("small"), "array([1, 2])");
    assert!(text("one").contains("2.5"));
    assert_eq!(text("like_polars"), "Polars, 3 rows × 1 column: x Int64");
    assert_eq!(text("broken"), "broken");
}
