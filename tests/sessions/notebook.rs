//! Notebooks: the eleven actions of docs/notebook.md as data: their forms, their effects, and what is rejected. Worked examples
//! of each action and of a sequence are in `tests/notebook/examples/`; examples of other rules are in `tests/notebook/more/`.

mod book;
mod bounds;
mod moves;
mod same;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use bcc_runtime::notebook::action::{NAMES, Read, is_known, read, read_with_notes};
use bcc_runtime::notebook::apply::failure;
use book::{Book, execution};
use same::differences;
use serde_json::{Value, json};

fn read_json(name: &str) -> Value {
    let path = Path::new(crate::ROOT).join("tests/notebook").join(name);
    serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
}

/// Runs every example of a folder and returns their number.
fn run_examples(folder: &str) -> usize {
    let path = Path::new(crate::ROOT).join("tests/notebook").join(folder);
    let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let mut problems = Vec::new();
    for name in &names {
        let name = format!("{folder}/{}", name.to_str().unwrap());
        let case = read_json(&name);
        let mut book = Book::from(&case["before"]);
        book.executions = case["executions"].as_array().into_iter().flatten().map(execution).collect::<VecDeque<_>>();
        let mut results = Vec::new();
        for action in case["actions"].as_array().unwrap() {
            results.push(book.act(action).unwrap_or_else(|error| panic!("{name}: {error}")));
            book.check();
        }
        assert!(book.executions.is_empty(), "{name}: code did not run");
        if let Some(expected) = case.get("results") {
            assert_eq!(Value::Array(results), *expected, "{name}");
        }
        if let Some(expected) = case.get("given_to_kernel") {
            problems.extend(differences(
                &format!("{name}: given to the kernel"),
                expected,
                &json!(book.given_to_kernel),
            ));
        }
        problems.extend(differences(&format!("{name}: after"), &case["after"], &book.view()));
        if let Some(after) = case.get("after_behavior") {
            assert!(book.state.end_behavior(book::AT), "{name}: no plan waited");
            problems.extend(differences(&format!("{name}: after the behavior"), after, &book.view()));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    names.len()
}

#[test]
fn the_worked_examples_of_000_have_its_results() {
    assert_eq!(run_examples("examples"), 13, "the eleven, one of them twice, and the sequence");
}

#[test]
fn the_other_rules_of_000_hold() {
    assert!(run_examples("more") >= 15);
}

#[test]
fn every_form_of_an_action_is_the_same_action() {
    for case in read_json("forms.json").as_array().unwrap() {
        let (mut notes, description) = (Vec::new(), &case["says"]);
        let plain =
            read_with_notes(&case["plain"], &mut notes).unwrap_or_else(|error| panic!("{description}: {error}"));
        let Read::Known(action) = &plain else { panic!("{description}: unknown") };
        assert_eq!(case["plain"]["action"], action.name(), "{description}");
        let noted: Vec<_> = notes.iter().map(|note| json!(note.field)).collect();
        assert_eq!(Value::Array(noted), case["notes"], "{description}");
        for form in case["others"].as_array().unwrap() {
            let (mut other_notes, other) = (Vec::new(), form.to_string());
            assert_eq!(read_with_notes(form, &mut other_notes).as_ref(), Ok(&plain), "{description}: {other}");
            assert_eq!(other_notes, notes, "{description}: {other}");
        }
    }
}

#[test]
fn invalid_actions_are_reported_with_their_field() {
    for case in read_json("faults.json").as_array().unwrap() {
        let error = read(&case["action"]).expect_err(&case.to_string());
        assert_eq!(json!(error.field), case["field"], "{case}: {error}");
        assert!(!error.message.is_empty());
    }
}

#[test]
fn other_kinds_are_returned_with_their_fields() {
    for form in [
        json!({"action": "make_report", "Pages": 2}),
        json!({"type": "make_report", "Pages": 2}),
        json!({"action": {"type": "make_report", "Pages": 2}}),
    ] {
        let Read::Unknown { name, fields } = read(&form).unwrap() else { panic!("{form}") };
        assert_eq!((name.as_str(), fields.get("Pages")), ("make_report", Some(&json!(2))), "{form}");
    }
    assert!(is_known("add_content") && is_known("isThinking") && is_known("new_step") && !is_known("make_report"));
}

#[test]
fn a_rejected_action_does_not_change_the_notebook() {
    for case in read_json("refusals.json").as_array().unwrap() {
        let mut book = Book::from(&case["before"]);
        let before = (book.state.clone(), book.cells.clone());
        let rejection = book.try_act(&case["action"]).expect_err(&case.to_string());
        assert_eq!(case["code"], rejection.code, "{case}: {rejection}");
        assert_eq!((book.state, book.cells), before, "{case}");
    }
}

#[test]
fn a_failure_has_the_form_of_000() {
    let result = failure(&bcc_lang::message::message::Message::text("Code execution failed: NameError"), "action-123");
    let expected = json!({"success": false, "error": "Code execution failed: NameError", "action_id": "action-123"});
    assert_eq!(result, expected);
}

#[test]
fn the_forms_on_the_page_are_read() {
    let page = fs::read_to_string(Path::new(crate::ROOT).join("docs/notebook.md")).unwrap();
    let (_, block) = page.split_once("```json\n").unwrap();
    let forms: Value = serde_json::from_str(block.split_once("```").unwrap().0).unwrap();
    let mut book = Book::default();
    for form in forms.as_array().unwrap() {
        book.act(form).unwrap_or_else(|error| panic!("{form}: {error}"));
    }
    assert_eq!((book.given_to_kernel.len(), book.cells.len()), (2, 6));
    for name in NAMES {
        assert!(page.contains(&format!("[`{name}`](actions/{name}.md)")), "{name}");
    }
}
