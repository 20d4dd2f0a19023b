//! Tests of workflow state files through the program: the file after each run, decisions and other edits of the file, kills, and two
//! processes.

use std::fs;

use serde_json::{Value, json};

use crate::process::Home;
use crate::state_file_project::{RUN, WATCH, code, edit, file, log, project, sessions, text};

type FileChange = fn(&mut Value);

fn workflow(steps: Value) -> Value {
    json!({ "workflow_id": "w", "status": "pending", "variables": { "stage": "test" }, "mine": [1, { "x": null }], "steps": steps })
}

/// A step that appends its id to the file `log`.
fn logged(id: &str) -> Value {
    json!({ "id": id, "status": "pending", "command": ["sh", "-c", format!("echo {id} >> log")] })
}

fn approval(id: &str) -> Value {
    json!({ "id": id, "type": "approval", "name": format!("{id}?"), "status": "pending" })
}

fn step<'v>(file: &'v mut Value, id: &str) -> &'v mut Value {
    file["steps"].as_array_mut().unwrap().iter_mut().find(|step| step["id"] == id).unwrap()
}

fn statuses(home: &Home) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    file(home)["steps"].as_array().unwrap().iter().map(|step| (text(&step["id"]), text(&step["status"]))).collect()
}

fn expect_statuses(home: &Home, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> =
        expected.iter().map(|(id, status)| ((*id).into(), (*status).into())).collect();
    assert_eq!(statuses(home), expected);
}

#[test]
fn a_run_changes_only_the_progress_and_a_second_one_runs_nothing() {
    let home = project(&workflow(
        json!([logged("a"), { "id": "b", "simulate": { "stdout": "built" }, "output": { "built": "stdout" } }]),
    ));
    code(&home.finish(RUN, ""), 0);
    let mut expected = workflow(
        json!([logged("a"), { "id": "b", "simulate": { "stdout": "built" }, "output": { "built": "stdout" } }]),
    );
    expected["status"] = "completed".into();
    expected["current_step"] = "b".into();
    expected["variables"]["built"] = "built".into();
    let mut after = file(&home);
    for id in ["a", "b"] {
        let step = step(&mut after, id).as_object_mut().unwrap();
        for field in ["started_at", "completed_at", "result"] {
            assert!(step.remove(field).is_some(), "{id} {field}");
        }
        assert_eq!(step.insert("status".into(), "pending".into()), Some("completed".into()));
    }
    step(&mut expected, "b")["status"] = "pending".into();
    assert_eq!(after, expected);
    assert_eq!(log(&home), ["a"]);
    let text_before = text(&home);
    code(&home.finish(RUN, ""), 4);
    assert_eq!((text(&home), log(&home).len()), (text_before, 1));
}

#[test]
fn conditions_next_and_end_decide_what_runs() {
    let condition = |target: &str| json!({ "id": "c", "type": "condition", "status": "pending", "cases": [{ "when": "stage == 'production'", "next": "a" }], "else": target });
    let steps = |target: &str| {
        let mut last = logged("b");
        last["next"] = "end".into();
        workflow(json!([condition(target), logged("a"), last, logged("never")]))
    };
    let home = project(&steps("b"));
    code(&home.finish(RUN, ""), 0);
    assert_eq!(log(&home), ["b"]);
    expect_statuses(&home, &[("c", "completed"), ("a", "pending"), ("b", "completed"), ("never", "pending")]);
    assert_eq!(file(&home)["current_step"], "b");

    let home = project(&steps("end"));
    code(&home.finish(RUN, ""), 0);
    assert_eq!((log(&home), file(&home)["status"].clone()), (vec![], json!("completed")));

    let home = project(&steps("b"));
    edit(&home, |file| file["variables"]["stage"] = "production".into());
    code(&home.finish(RUN, ""), 0);
    assert_eq!(log(&home), ["a", "b"]);
}

#[test]
fn a_failed_workflow_starts_again_at_the_failed_step() {
    let failing = json!({ "id": "b", "status": "pending", "command": ["sh", "-c", "echo b >> log; test -e ready"] });
    let home = project(&workflow(json!([logged("a"), failing, logged("c")])));
    code(&home.finish(RUN, ""), 1);
    expect_statuses(&home, &[("a", "completed"), ("b", "failed"), ("c", "pending")]);
    assert_eq!((file(&home)["status"].clone(), file(&home)["current_step"].clone()), (json!("failed"), json!("b")));
    assert_eq!(file(&home)["steps"][1]["result"]["exit_code"], 1);
    home.put("ready", "");
    code(&home.finish(RUN, ""), 0);
    assert_eq!(log(&home), ["a", "b", "b", "c"]);

    let mut tolerated = logged("x");
    tolerated["command"] = json!(["false"]);
    tolerated["on_failure"] = json!({ "goto": "c" });
    let home = project(&workflow(json!([tolerated, logged("b"), logged("c")])));
    code(&home.finish(RUN, ""), 0);
    assert_eq!(log(&home), ["c"]);
}

#[test]
fn decisions_are_made_by_the_file_and_the_step() {
    let mut ask = approval("ok");
    ask["rewind_to"] = "a".into();
    ask["approvers"] = json!(["Li"]);
    let home = project(&workflow(
        json!([logged("a"), ask, { "id": "by_hand", "status": "pending", "description": "Call the customer" }]),
    ));
    code(&home.finish(RUN, ""), 3);
    expect_status_of_file(&home, "waiting_approval");
    code(&home.finish(["approve", "w.json", "other", "--by", "Li", "--trust"], ""), 2);
    code(&home.finish(["approve", "w.json", "ok", "--by", "Xu", "--trust"], ""), 2);
    code(&home.finish(["push-back", "w.json", "ok", "--by", "Li", "--comment", "again", "--trust"], ""), 0);
    code(&home.finish(RUN, ""), 3);
    assert_eq!(log(&home), ["a", "a"]);
    code(&home.finish(["approve", "w.json", "ok", "--by", "Li", "--trust"], ""), 0);
    code(&home.finish(RUN, ""), 3);
    expect_statuses(&home, &[("a", "completed"), ("ok", "completed"), ("by_hand", "waiting")]);
    let decided = file(&home)["steps"][1]["result"].clone();
    assert_eq!(decided, json!({ "decision": "approve", "by": "Li", "iteration": 2 }));
    code(&home.finish(["approve", "w.json", "--trust"], ""), 0);
    code(&home.finish(RUN, ""), 0);
    assert_eq!(sessions(&home), ["completed"]);
    code(&home.finish(["approve", "w.json", "--trust"], ""), 2);
}

fn expect_status_of_file(home: &Home, expected: &str) {
    assert_eq!(file(home)["status"], expected);
}

#[test]
fn an_edit_of_the_status_decides_at_rest_and_while_a_process_waits() {
    let steps = || workflow(json!([approval("ok"), logged("a")]));
    let home = project(&steps());
    code(&home.finish(RUN, ""), 3);
    edit(&home, |file| step(file, "ok")["status"] = "completed".into());
    code(&home.finish(RUN, ""), 0);
    assert_eq!((log(&home), sessions(&home)), (vec!["a".to_owned()], vec!["completed".to_owned()]));

    let home = project(&steps());
    let running = home.start(WATCH);
    running.event_of("waiting");
    edit(&home, |file| {
        step(file, "ok")["status"] = "completed".into();
        step(file, "ok")["result"] = json!({ "by": "Wang", "comment": "go" });
    });
    let answered = running.event_of("request_answered");
    assert_eq!(
        (&answered["decision"], &answered["by"], &answered["comment"]),
        (&json!("approve"), &json!("Wang"), &json!("go"))
    );
    code(&running.finish(), 0);
    expect_statuses(&home, &[("ok", "completed"), ("a", "completed")]);

    let home = project(&steps());
    let running = home.start(WATCH);
    running.event_of("waiting");
    edit(&home, |file| step(file, "ok")["status"] = "failed".into());
    code(&running.finish(), 1);
    expect_statuses(&home, &[("ok", "failed"), ("a", "pending")]);
}

#[test]
fn several_decisions_in_one_edit_are_all_taken() {
    let tasks = json!([approval("m1"), approval("m2"), approval("m3")]);
    let steps = || workflow(json!([{ "id": "par", "type": "parallel", "sub_tasks": tasks.clone() }, logged("a")]));
    let decide = |file: &mut Value| {
        for task in step(file, "par")["sub_tasks"].as_array_mut().unwrap() {
            task["status"] = "completed".into();
        }
    };
    let home = project(&steps());
    let running = home.start(WATCH);
    running.event_of("waiting");
    // The edit follows the last write at once.
    let is_waiting = |task: &Value| task["status"] == "waiting_approval";
    while !file(&home)["steps"][0]["sub_tasks"].as_array().unwrap().iter().all(is_waiting) {
        std::thread::yield_now();
    }
    edit(&home, decide);
    code(&running.finish(), 0);
    assert_eq!((log(&home), sessions(&home)), (vec!["a".to_owned()], vec!["completed".to_owned()]));

    let home = project(&steps());
    code(&home.finish(RUN, ""), 3);
    edit(&home, decide);
    code(&home.finish(RUN, ""), 0);
    assert_eq!((log(&home), sessions(&home)), (vec!["a".to_owned()], vec!["completed".to_owned()]));
}

#[test]
fn an_edit_that_contradicts_the_run_is_refused_and_the_file_stays() {
    let table: [(&str, FileChange); 4] = [
        ("`a` is `completed`, but the file now says `pending`", |file| step(file, "a")["status"] = "pending".into()),
        ("the step `a` is missing now", |file| step(file, "a")["id"] = "b".into()),
        ("`current_step` is now `a`", |file| file["current_step"] = "a".into()),
        ("used twice", |file| step(file, "c")["id"] = "a".into()),
    ];
    for (message, change) in table {
        let home = project(&workflow(json!([logged("a"), approval("ok"), logged("c")])));
        let running = home.start(WATCH);
        running.event_of("waiting");
        let mine = edit(&home, change);
        let finished = running.finish();
        code(&finished, 1);
        assert!(finished.err.contains(message), "{finished:?}");
        assert_eq!(text(&home), mine);
    }
}

#[test]
fn a_changed_plan_goes_on_in_a_new_session_and_nothing_runs_twice() {
    let home = project(&workflow(json!([logged("a"), approval("ok"), logged("c")])));
    let running = home.start(WATCH);
    running.event_of("waiting");
    edit(&home, |file| *step(file, "c") = logged("d"));
    running.event_of("session_started");
    running.event_of("waiting");
    edit(&home, |file| step(file, "ok")["status"] = "completed".into());
    code(&running.finish(), 0);
    assert_eq!(log(&home), ["a", "d"]);
    assert_eq!(sessions(&home), ["completed", "cancelled"]);

    // At rest, the file is what counts.
    let home = project(&workflow(json!([logged("a"), approval("ok"), logged("c")])));
    code(&home.finish(RUN, ""), 3);
    edit(&home, |file| {
        step(file, "a")["status"] = "pending".into();
        file["current_step"] = "a".into();
    });
    let finished = home.finish(RUN, "");
    code(&finished, 3);
    assert!(finished.err.contains("is cancelled, because the file was edited"), "{finished:?}");
    assert_eq!(
        (log(&home), sessions(&home)),
        (vec!["a".to_owned(); 2], vec!["waiting_approval".to_owned(), "cancelled".to_owned()])
    );
}

#[test]
fn what_is_done_is_passed_over_and_other_fields_are_kept() {
    let mut done = logged("b");
    done["status"] = "completed".into();
    let mut skipped = logged("c");
    skipped["status"] = "skipped".into();
    let mut file_with_progress = workflow(json!([logged("a"), done, skipped, logged("d")]));
    file_with_progress["current_step"] = "a".into();
    let home = project(&file_with_progress);
    code(&home.finish(RUN, ""), 0);
    assert_eq!(log(&home), ["a", "d"]);
    expect_statuses(&home, &[("a", "completed"), ("b", "completed"), ("c", "skipped"), ("d", "completed")]);
}

#[test]
fn a_command_that_was_killed_is_asked_about_with_and_without_its_session() {
    for loses_store in [false, true] {
        let slow = json!({ "id": "slow", "status": "pending", "command": ["sh", "-c", "echo slow >> log; test -e ready || sleep 100"] });
        let home = project(&workflow(json!([slow, logged("after")])));
        let mut running = home.start(["run", "w.json", "--trust", "--json"]);
        running.event_of("effect_started");
        while log(&home).is_empty() {
            std::thread::yield_now();
        }
        running.kill();
        expect_statuses(&home, &[("slow", "running"), ("after", "pending")]);
        if loses_store {
            fs::remove_dir_all(home.path().join(".bcc")).unwrap();
        }
        home.put("ready", "");
        code(&home.finish(RUN, ""), 3);
        assert_eq!(log(&home), ["slow"], "it did not run again");
        assert_eq!(file(&home)["steps"][0]["status"], "waiting");
        code(&home.finish(RUN, "skip\n"), 0);
        assert_eq!(log(&home), ["slow", "after"]);
        assert_eq!(file(&home)["steps"][0]["result"], json!({ "skipped": true }));
    }
}

#[test]
fn two_processes_do_not_run_one_file() {
    let home = project(&workflow(json!([approval("ok")])));
    let running = home.start(WATCH);
    running.event_of("waiting");
    let second = home.finish(RUN, "");
    code(&second, 1);
    assert!(second.err.contains("is in use by pid"), "{second:?}");
    edit(&home, |file| step(file, "ok")["status"] = "completed".into());
    code(&running.finish(), 0);
}

#[test]
fn parallel_sub_tasks_are_written_one_by_one() {
    let tasks = json!([logged("p1"), logged("p2")]);
    let parallel = json!({ "id": "p", "type": "parallel", "status": "pending", "sub_tasks": tasks });
    let home = project(&workflow(json!([parallel, logged("last")])));
    code(&home.finish(RUN, ""), 0);
    let file = file(&home);
    for task in file["steps"][0]["sub_tasks"].as_array().unwrap() {
        assert_eq!((&task["status"], &task["result"]["exit_code"]), (&json!("completed"), &json!(0)));
    }
    expect_statuses(&home, &[("p", "completed"), ("last", "completed")]);
    assert_eq!(log(&home).len(), 3);
}

#[test]
fn commands_need_the_permission_of_the_project() {
    let home = project(&workflow(json!([logged("a")])));
    home.put("bcc-script.toml", "");
    let before = text(&home);
    let finished = home.finish(RUN, "");
    code(&finished, 2);
    assert!(finished.err.contains("needs `command:sh`"), "{finished:?}");
    assert_eq!(text(&home), before);
}

#[test]
fn progress_does_not_end_the_trust_in_a_project_but_other_commands_do() {
    let home = project(&workflow(json!([logged("a"), approval("ok"), logged("c")])));
    code(&home.finish(["trust"], ""), 0);
    code(&home.finish(["run", "w.json"], ""), 3);
    code(&home.finish(["approve", "w.json"], ""), 0);
    edit(&home, |file| *step(file, "c") = logged("d"));
    let finished = home.finish(["run", "w.json"], "");
    code(&finished, 2);
    assert!(finished.err.contains("changed: `w.json`"), "{finished:?}");
    assert_eq!(log(&home), ["a"]);
}
