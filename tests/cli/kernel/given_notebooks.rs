//! `run --from NOTEBOOK.ipynb`: a session begins with the cells of a notebook that is there.

use std::time::Instant;

use serde_json::{Value, json};

use crate::process::{Home, POLL_INTERVAL, TIMEOUT, finished};
use crate::pseudo_terminal::{CTRL_C, Terminal};
use crate::test_kernel::{kernel_python, kernel_variables};

const ALLOWED: &str = "[project]\nallow = [\"exec\"]\n";

fn script(kernel: &Value) -> String {
    let add = json!({ "action_type": "add", "action_id": "add", "config": { "shot_type": "action", "content": "print(x + 1)", "metadata": { "should_execute": true } } });
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [add] }] }]);
    json!({ "session": { "session_id": "more", "kernel": kernel, "phases": phases } }).to_string()
}

/// A notebook as other programs write it: with lists of lines, a cell without an id, an id that is there twice, and a large picture.
fn notebook() -> Value {
    let picture = "QUJD".repeat(40_000);
    json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": { "kernelspec": { "name": "python3" } }, "cells": [
        { "cell_type": "markdown", "id": "top", "metadata": {}, "source": ["# Rivers\n", "\n", "What there is."] },
        { "cell_type": "code", "id": "load", "metadata": { "tags": ["a"] }, "execution_count": 4, "source": ["x = 41\n", "x"],
          "outputs": [{ "output_type": "execute_result", "execution_count": 4, "data": { "text/plain": ["41"] }, "metadata": {}, "kept": { "text/plain": 1 } }] },
        { "cell_type": "code", "id": "load", "metadata": {}, "execution_count": null, "source": "", "outputs": [] },
        { "cell_type": "raw", "metadata": {}, "source": "raw text" },
        { "cell_type": "code", "id": "plot", "metadata": {}, "execution_count": 5, "source": "1/0",
          "outputs": [{ "output_type": "display_data", "data": { "image/png": picture }, "metadata": {} },
                      { "output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero", "traceback": [] }] },
    ]})
}

#[test]
fn a_session_begins_with_the_cells_of_a_notebook_and_can_run_them_again_for_their_variables() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    home.file("script.yaml", &script(&json!({ "on_resume": "rerun" })));
    home.file("rivers.ipynb", &notebook().to_string());
    let mut command =
        home.command(["run", "script.yaml", "--session", "s", "--trust", "--json", "--from", "rivers.ipynb"]);
    command.envs(kernel_variables(&python));
    let done = finished(command, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let export = home.export("s");
    let cells = export["notebook"]["cells"].as_array().unwrap();
    let ids: Vec<&str> = cells.iter().map(|cell| cell["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["top", "load", "cell-3", "cell-4", "plot", "cell-6"]);
    assert_eq!(export["notebook"]["title"], "Rivers");
    assert_eq!(
        cells[1]["outputs"],
        json!([{ "output_type": "execute_result", "execution_count": 4, "data": { "text/plain": "41" }, "metadata": {} }])
    );
    assert_eq!((&cells[1]["ended"], &cells[4]["ended"], cells[2].get("ended")), (&"ok".into(), &"error".into(), None));
    assert_eq!(cells[4]["outputs"][0]["data"]["image/png"].as_str().unwrap().len(), 160_000);
    // The kernel of the notebook is not this one: its cells ran again first.
    assert_eq!(cells[5]["outputs"][0]["text"], "42\n");
}

#[test]
fn ids_of_cells_that_are_not_there_yet_are_given_another_form() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    home.file("script.yaml", &script(&json!("python3")).replace("x + 1", "1"));
    let cell = |number: usize| json!({ "cell_type": "markdown", "id": format!("cell-{number}"), "metadata": {}, "source": "a" });
    let cells: Vec<Value> = (1_000..1_250).chain([252]).map(cell).collect();
    home.file(
        "ahead.ipynb",
        &json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells }).to_string(),
    );
    let mut command =
        home.command(["run", "script.yaml", "--session", "s", "--trust", "--json", "--from", "ahead.ipynb"]);
    command.envs(kernel_variables(&python));
    let done = finished(command, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let export = home.export("s");
    let cells = export["notebook"]["cells"].as_array().unwrap();
    let ids = [0, 250, 251].map(|index| cells[index]["id"].as_str().unwrap().to_owned());
    assert_eq!(ids, ["given-cell-1000", "given-cell-252", "cell-252"]);
}

#[test]
fn earlier_cells_that_are_interrupted_make_the_session_ask() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    home.file(
        "script.yaml",
        &script(&json!({ "on_resume": "rerun" })).replace("print(x + 1)", "open('ran', 'w').close()"),
    );
    let source = "import time\nopen('begun', 'w').close()\nwhile True:\n    time.sleep(0.01)";
    let cell = json!({ "cell_type": "code", "id": "a", "metadata": {}, "execution_count": 1, "source": source, "outputs": [] });
    home.file(
        "slow.ipynb",
        &json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell] }).to_string(),
    );
    let mut variables = vec![("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned())];
    variables.extend(kernel_variables(&python));
    let arguments = ["run", "script.yaml", "--session", "s", "--trust", "--model", "offline", "--from", "slow.ipynb"];
    let mut terminal = Terminal::start_with(&home, &arguments, &variables);
    let deadline = Instant::now() + TIMEOUT;
    while !home.path().join("begun").exists() {
        assert!(Instant::now() < deadline, "{}", terminal.all_output());
        std::thread::sleep(POLL_INTERVAL);
    }
    terminal.types(CTRL_C);
    terminal.answers("skip");
    assert_eq!(terminal.end(), Some(0));
    assert!(!home.path().join("ran").exists());
}

#[test]
fn what_is_no_notebook_is_refused_before_the_session_exists() {
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    home.file("script.yaml", "session:\n  session_id: s\n  phases: [{ phase_id: p, topics: [{ topic_id: t, actions: [{ action_type: ai_say, action_id: a, config: { content: Hi, delivery: verbatim } }] }] }]\n");
    let cell = |cell: Value| json!({ "nbformat": 4, "cells": [cell] }).to_string();
    let table = [
        ("missing.ipynb".to_owned(), None, "cannot be read"),
        ("text.ipynb".to_owned(), Some("# Not JSON".to_owned()), "is not a notebook: expected value"),
        ("old.ipynb".to_owned(), Some(r#"{"nbformat": 3, "worksheets": []}"#.to_owned()), "only version 4 can be read"),
        ("other.ipynb".to_owned(), Some("{}".to_owned()), "it has no `nbformat`"),
        ("empty.ipynb".to_owned(), Some(r#"{"nbformat": 4}"#.to_owned()), "it has no list of `cells`"),
        ("table.ipynb".to_owned(), Some(r#"{"nbformat": 4, "cells": {}}"#.to_owned()), "it has no list of `cells`"),
        (
            "bad.ipynb".to_owned(),
            Some(cell(json!({ "cell_type": "code", "source": 7 }))),
            "cell 1: `source` must be a text, or a list of texts",
        ),
        (
            "unknown.ipynb".to_owned(),
            Some(cell(json!({ "cell_type": "codex", "source": "1" }))),
            "cell 1: `cell_type` must be `code`, `markdown` or `raw`",
        ),
        (
            "long.ipynb".to_owned(),
            Some(cell(json!({ "cell_type": "raw", "source": "x".repeat(1_048_577) }))),
            "cell 1 has more than 1048576 bytes",
        ),
    ];
    for (name, text, part) in table {
        if let Some(text) = text {
            home.file(&name, &text);
        }
        let done = home.finish(["run", "script.yaml", "--from", &name], "");
        assert_eq!(done.code, Some(2), "{name}: {}", done.err);
        assert!(done.err.contains(part) && done.err.contains(&name), "{name}: {}", done.err);
    }
    assert!(!home.store().exists(), "no session was begun");
}

#[test]
fn a_script_runs_its_own_code_also_with_the_notebook_that_it_left_before() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    let run = |session: &str, rate: &str, from: &[&str]| {
        let add = json!({ "action_type": "add", "action_id": "add", "config": { "shot_type": "action", "store_id": "c1",
            "content": format!("open('ran', 'a').write('{rate} ')\nprint('rate {rate}')") } });
        let exec = json!({ "action_type": "exec", "action_id": "exec", "config": { "codecell_id": "c1" } });
        let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [add, exec] }] }]);
        home.file("script.yaml", &json!({ "session": { "session_id": "rates", "phases": phases } }).to_string());
        let arguments = ["run", "script.yaml", "--session", session, "--trust", "--model", "offline"];
        let mut command = home.command(arguments.iter().chain(from));
        command.envs(kernel_variables(&python));
        let done = finished(command, "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        let export = home.export(session);
        let cells = export["notebook"]["cells"].as_array().unwrap().clone();
        cells.iter().map(|cell| (cell["id"].clone(), cell["outputs"][0]["text"].clone())).collect::<Vec<_>>()
    };
    let first = run("day1", "0.1", &["--notebook", "day1.ipynb"]);
    assert_eq!(first, [("c1".into(), "rate 0.1\n".into())]);
    let second = run("day2", "0.2", &["--from", "day1.ipynb", "--notebook", "day2.ipynb"]);
    assert_eq!(second, [("given-c1".into(), "rate 0.1\n".into()), ("c1".into(), "rate 0.2\n".into())]);
    let third = run("day3", "0.3", &["--from", "day2.ipynb"]);
    let ids: Vec<_> = third.iter().map(|(id, _)| id.as_str().unwrap()).collect();
    assert_eq!(ids, ["given-c1", "given-given-c1", "c1"]);
    assert_eq!(std::fs::read_to_string(home.path().join("ran")).unwrap(), "0.1 0.2 0.3 ");
}

#[test]
fn a_byte_order_mark_is_skipped_and_attached_pictures_are_left_out_with_a_note() {
    let home = Home::new();
    let action = json!({ "action_type": "new_chapter", "action_id": "a", "config": { "content": "More" } });
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [action] }] }]);
    home.file("script.yaml", &json!({ "session": { "session_id": "s", "phases": phases } }).to_string());
    let cell = |attached: Value| json!({ "cell_type": "markdown", "metadata": {}, "source": "![a](attachment:a.png)", "attachments": attached });
    let picture = || cell(json!({ "a.png": { "image/png": "QUJD" } }));
    let cells = [picture(), cell(json!({})), picture()];
    let notebook = json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells });
    home.file("a.ipynb", &format!("\u{feff}{notebook}"));
    let done = home.finish(["run", "script.yaml", "--session", "s", "--from", "a.ipynb"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let note = "pictures that are attached to text cells of the notebook are left out; the cells: 1, 3\n";
    assert!(done.err.contains(note), "{}", done.err);
    assert_eq!(home.export("s")["notebook"]["cells"].as_array().unwrap().len(), 4);
}

#[test]
fn code_of_a_model_in_a_given_notebook_waits_for_approval_also_when_cells_run_again() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n\n[kernel]\nexec = \"approve\"\n");
    let exec = json!({ "action_type": "exec", "action_id": "exec", "config": { "codecell_id": "theirs" } });
    let add = json!({ "action_type": "add", "action_id": "add", "config": { "shot_type": "action", "content": "print(x + 1)", "metadata": { "should_execute": true } } });
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [add, exec] }] }]);
    let session = json!({ "session_id": "more", "kernel": { "on_resume": "rerun" }, "phases": phases });
    home.file("script.yaml", &json!({ "session": session }).to_string());
    let cell = |id: &str, code: &str, ours: Value| json!({ "cell_type": "code", "id": id, "metadata": { "bcc": ours }, "execution_count": 1, "source": code, "outputs": [] });
    let theirs = "open('ran', 'w').close()";
    let approved = bcc_store::content_hash::hash(theirs);
    let cells = [
        cell("own", "x = 41", json!({ "ended": "ok", "written_by": "somebody" })),
        cell("theirs", theirs, json!({ "ended": "ok", "written_by": "model", "approved": approved })),
    ];
    let notebook = json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells });
    home.file("a.ipynb", &notebook.to_string());
    let arguments =
        ["run", "script.yaml", "--session", "s", "--trust", "--json", "--from", "a.ipynb", "--notebook", "b.ipynb"];
    let mut command = home.command(arguments);
    command.envs(kernel_variables(&python));
    let done = finished(command, "");
    assert_eq!(done.code, Some(3), "{}", done.err);
    let events = done.events();
    let warnings = events.iter().filter(|event| event["code"] == "kernel-memory-gone");
    let warned: Vec<&str> = warnings.map(|event| event["message"].as_str().unwrap()).collect();
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert!(warned[0].ends_with("nobody has approved their code: `theirs`"), "{warned:?}");
    assert!(warned[1].ends_with("run again first: 1"), "{warned:?}");
    let asked = events.iter().find(|event| event["type"] == "request_opened").unwrap();
    assert!(asked["prompt"].as_str().unwrap().starts_with("Run this code?\nopen('ran'"), "{asked}");
    assert!(!home.path().join("ran").exists());
    let written: Value = serde_json::from_str(&std::fs::read_to_string(home.path().join("b.ipynb")).unwrap()).unwrap();
    assert_eq!(written["cells"][2]["outputs"][0]["text"], json!(["42\n"]));
    let ours = &written["cells"][1]["metadata"]["bcc"];
    assert_eq!((&ours["written_by"], ours.get("approved")), (&json!("model"), None), "{ours}");
}

#[test]
fn a_value_that_is_inserted_as_json_is_data_for_the_code() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    // As docs/actions/add.md recommends.
    let code = "import json\nvalue = json.loads({{ answer | tojson | tojson }})\nprint(value == json.load(open('answer.json')), value['none'], value['yes'])";
    let add = json!({ "action_type": "add", "action_id": "add", "config": { "shot_type": "action", "content": code, "metadata": { "should_execute": true } } });
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [add] }] }]);
    let value = json!({ "text": "it's \"here\"\n\\n {{ x }} ''' <b>&é😀\u{2028}", "none": null, "yes": [true, 1.5] });
    let declared = json!([{ "var": "answer", "type": "object", "value": {} }]);
    let session = json!({ "session_id": "code", "declare": declared, "phases": phases });
    home.file("script.yaml", &json!({ "session": session }).to_string());
    home.file("answer.json", &value.to_string());
    home.file("variables.json", &json!({ "answer": value }).to_string());
    let mut command = home.command(["run", "script.yaml", "--session", "s", "--trust", "--vars", "variables.json"]);
    command.envs(kernel_variables(&python));
    let done = finished(command, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(home.export("s")["notebook"]["cells"][0]["outputs"][0]["text"], "True None [True, 1.5]\n");
}
