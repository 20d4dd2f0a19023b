//! `run --from NOTEBOOK.ipynb`: a session begins with the cells of a notebook that is there.

use serde_json::{Value, json};

use crate::process::{Home, finished};
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
        (
            "bad.ipynb".to_owned(),
            Some(cell(json!({ "cell_type": "code", "source": 7 }))),
            "cell 1 is not a cell of a notebook",
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
