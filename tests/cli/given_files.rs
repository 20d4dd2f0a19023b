//! What `run` and `validate` say of files that are no scripts: states that are cut off or damaged, notebooks, and other JSON.

use serde_json::json;

use crate::process::Home;

const STATE: &str = "{
  \"observation\": {
    \"location\": {\"current_stage_id\": \"read\", \"current_step_id\": \"load\"},
    \"context\": {\"notebook\": {\"title\": \"Rivers\", \"cells\": []}}
  }
}
";

/// What the program says of this file, with the exit code, in the language.
fn told(home: &Home, command: &str, name: &str, bytes: &[u8], language: &str) -> (Option<i32>, String) {
    home.put(name, bytes);
    let finished = home.finish(["--lang", language, command, name], "");
    (finished.code, format!("{}{}", finished.out, finished.err))
}

#[test]
fn a_state_that_is_cut_off_is_told_as_json_with_its_place_and_what_to_do() {
    let home = Home::new();
    let cut = STATE.find("step_id").unwrap();
    for command in ["run", "validate"] {
        let (code, text) = told(&home, command, "state.json", &STATE.as_bytes()[..cut], "en");
        assert_eq!(code, Some(if command == "run" { 2 } else { 1 }), "{text}");
        assert!(
            text.contains(
                "error[broken-json]: the state file is not whole JSON: it ends in the middle, at line 3, column "
            ),
            "{text}"
        );
        assert!(text.contains("--> state.json:3:"), "{text}");
        assert!(text.contains("get it again from the program that wrote it"), "{text}");
        assert!(!text.contains("YAML") && !text.contains("error[yaml-syntax]"), "{text}");
    }
    let (_, text) = told(&home, "run", "state.json", &STATE.as_bytes()[..cut], "zh");
    assert!(text.contains("状态文件不是完整的 JSON：内容在第 3 行第 "), "{text}");
}

#[test]
fn a_state_that_is_damaged_is_told_with_the_place_of_the_damage() {
    let home = Home::new();
    let without_comma = STATE.replace("\"read\",", "\"read\"");
    let mut with_zeros = STATE.as_bytes().to_vec();
    with_zeros[60..70].fill(0);
    let mut with_other_bytes = STATE.as_bytes().to_vec();
    with_other_bytes[60] = 0xff;
    let cases: [(&[u8], &str); 3] = [
        (without_comma.as_bytes(), "at line 3, column 45: expected `,` or `}`"),
        (&with_zeros, "at line 3, column 40 is a byte that is no text"),
        (&with_other_bytes, "at line 3, column 40 is a byte that is no text"),
    ];
    for (bytes, expected) in cases {
        let (code, text) = told(&home, "run", "state.json", bytes, "en");
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("the state file is not whole JSON: "), "{text}");
        assert!(text.contains(expected), "{expected}: {text}");
        assert!(text.contains("sessions export ID --format protocol"), "{text}");
    }
}

#[test]
fn notebooks_and_other_json_are_told_for_what_they_are() {
    let home = Home::new();
    let notebook = json!({ "cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5 }).to_string();
    let large = format!("{{\"cells\": [\"{}\"]}}", "x".repeat(9_000_000));
    let cases: [(&str, &str, &str); 5] = [
        ("analysis.ipynb", &notebook, "this is a Jupyter notebook, not a script"),
        ("large.ipynb", &large, "a Jupyter notebook is no script"),
        ("data.json", "{\"rivers\": [1, 2]}", "this JSON is neither a script nor a state"),
        ("empty.json", "", "the file is empty"),
        ("empty.yaml", "", "the file is empty"),
    ];
    for (name, text, expected) in cases {
        for command in ["run", "validate"] {
            let (code, said) = told(&home, command, name, text.as_bytes(), "en");
            assert_eq!(code, Some(if command == "run" { 2 } else { 1 }), "{said}");
            assert!(said.contains(expected), "{name}: {said}");
        }
    }
    let (_, said) = told(&home, "run", "analysis.ipynb", notebook.as_bytes(), "en");
    assert!(said.contains("--from NOTEBOOK.ipynb"), "{said}");
    let (_, said) = told(&home, "run", "empty.json", b"", "en");
    assert!(said.contains("get it again") && !said.contains("write a script"), "{said}");
    assert!(!home.finish(["sessions", "list"], "").out.contains("session"), "nothing has begun");
}
