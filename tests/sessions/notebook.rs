//! Notebooks: the eleven actions of docs/notebook.md as data. What an action is written like, what it does, and what is
//! refused. The worked examples of 000 are `tests/notebook/examples/`; what its text says beside them is `more/`.

mod book;
mod bounds;
mod moves;
mod same;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use bcc_runtime::notebook::action::{NAMES, Read, is_known, read, read_noting};
use bcc_runtime::notebook::apply::failure;
use book::{Book, execution};
use same::differences;
use serde_json::{Value, json};

fn json_of(name: &str) -> Value {
    let path = Path::new(crate::ROOT).join("tests/notebook").join(name);
    serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
}

/// Plays every example of a folder.
fn play(folder: &str) -> usize {
    let path = Path::new(crate::ROOT).join("tests/notebook").join(folder);
    let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let mut wrong = Vec::new();
    for name in &names {
        let name = format!("{folder}/{}", name.to_str().unwrap());
        let case = json_of(&name);
        let mut book = Book::from(&case["before"]);
        book.executions = case["executions"].as_array().into_iter().flatten().map(execution).collect::<VecDeque<_>>();
        let mut results = Vec::new();
        for action in case["actions"].as_array().unwrap() {
            results.push(book.act(action).unwrap_or_else(|why| panic!("{name}: {why}")));
            book.check();
        }
        assert!(book.executions.is_empty(), "{name}: code did not run");
        if let Some(expected) = case.get("results") {
            assert_eq!(Value::Array(results), *expected, "{name}");
        }
        if let Some(given) = case.get("given_to_kernel") {
            wrong.extend(differences(&format!("{name}: given to the kernel"), given, &json!(book.given_to_kernel)));
        }
        wrong.extend(differences(&format!("{name}: after"), &case["after"], &book.view()));
        if let Some(after) = case.get("after_behavior") {
            assert!(book.state.end_behavior(book::AT), "{name}: no plan waited");
            wrong.extend(differences(&format!("{name}: after the behavior"), after, &book.view()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    names.len()
}

#[test]
fn the_worked_examples_of_000_come_out_as_it_says() {
    assert_eq!(play("examples"), 13, "the eleven, one of them twice, and the sequence");
}

#[test]
fn what_000_says_beside_its_examples_is_so() {
    assert!(play("more") >= 15);
}

#[test]
fn every_form_of_an_action_is_the_same_action() {
    for case in json_of("forms.json").as_array().unwrap() {
        let (mut notes, says) = (Vec::new(), &case["says"]);
        let plain = read_noting(&case["plain"], &mut notes).unwrap_or_else(|fault| panic!("{says}: {fault}"));
        let Read::Known(action) = &plain else { panic!("{says}: unknown") };
        assert_eq!(case["plain"]["action"], action.name(), "{says}");
        let noted: Vec<_> = notes.iter().map(|note| json!(note.field)).collect();
        assert_eq!(Value::Array(noted), case["notes"], "{says}");
        for form in case["others"].as_array().unwrap() {
            let (mut other_notes, other) = (Vec::new(), form.to_string());
            assert_eq!(read_noting(form, &mut other_notes).as_ref(), Ok(&plain), "{says}: {other}");
            assert_eq!(other_notes, notes, "{says}: {other}");
        }
    }
}

#[test]
fn what_is_no_action_is_told_by_its_field() {
    for case in json_of("faults.json").as_array().unwrap() {
        let fault = read(&case["action"]).expect_err(&case.to_string());
        assert_eq!(json!(fault.field), case["field"], "{case}: {fault}");
        assert!(!fault.message.is_empty());
    }
}

#[test]
fn other_kinds_are_given_back_with_their_fields() {
    for form in [
        json!({"action": "make_report", "Pages": 2}),
        json!({"type": "make_report", "Pages": 2}),
        json!({"action": {"type": "make_report", "Pages": 2}}),
    ] {
        let Read::Other { name, fields } = read(&form).unwrap() else { panic!("{form}") };
        assert_eq!((name.as_str(), fields.get("Pages")), ("make_report", Some(&json!(2))), "{form}");
    }
    assert!(is_known("add_content") && is_known("isThinking") && is_known("new_step") && !is_known("make_report"));
}

#[test]
fn a_refused_action_leaves_the_notebook_as_it_was() {
    for case in json_of("refusals.json").as_array().unwrap() {
        let mut book = Book::from(&case["before"]);
        let before = (book.state.clone(), book.cells.clone());
        let refusal = book.try_act(&case["action"]).expect_err(&case.to_string());
        assert_eq!(case["code"], refusal.code, "{case}: {refusal}");
        assert_eq!((book.state, book.cells), before, "{case}");
    }
}

#[test]
fn a_failure_is_told_as_000_says() {
    let told = failure(&bcc_lang::message::message::Message::text("Code execution failed: NameError"), "action-123");
    let expected = json!({"success": false, "error": "Code execution failed: NameError", "action_id": "action-123"});
    assert_eq!(told, expected);
}

#[test]
fn the_forms_on_the_page_are_read() {
    let page = fs::read_to_string(Path::new(crate::ROOT).join("docs/notebook.md")).unwrap();
    let (_, block) = page.split_once("```json\n").unwrap();
    let forms: Value = serde_json::from_str(block.split_once("```").unwrap().0).unwrap();
    let mut book = Book::default();
    for form in forms.as_array().unwrap() {
        book.act(form).unwrap_or_else(|why| panic!("{form}: {why}"));
    }
    assert_eq!((book.given_to_kernel.len(), book.cells.len()), (2, 6));
    for name in NAMES {
        assert!(page.contains(&format!("[`{name}`](actions/{name}.md)")), "{name}");
    }
}
