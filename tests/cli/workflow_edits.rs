//! State files that are edited while steps wait: what was decided or done before is not lost.

use serde_json::{Value, json};

use crate::process::Home;
use crate::state_file_project::{self, RUN, WATCH, code, edit, file, log, sessions, text};

type FileChange = fn(&mut Value);

fn project(steps: &Value) -> Home {
    state_file_project::project(
        &json!({ "workflow_id": "w", "status": "pending", "variables": { "env": "a" }, "steps": steps }),
    )
}

/// A step that appends a line to the file `log`.
fn logs(id: &str, line: &str) -> Value {
    json!({ "id": id, "command": ["sh", "-c", format!("echo {line} >> log")] })
}

/// Ann decides, and gives a port.
fn asks_for_port() -> Value {
    json!({ "id": "q", "type": "approval", "prompt": "Which port?", "approvers": ["Ann"],
        "form": [{ "get": "port", "type": "integer", "required": true }] })
}

fn change_variable(file: &mut Value) {
    file["variables"]["env"] = "b".into();
}

fn decide(file: &mut Value, status: &str, by: &str, values: Value) {
    file["steps"][0]["status"] = status.into();
    file["steps"][0]["result"] = json!({ "by": by, "comment": "ok", "values": values });
}

#[test]
fn a_decision_that_is_saved_with_another_edit_is_judged_and_taken() {
    let steps = json!([asks_for_port(), logs("z", "deploy {{ port }} to {{ env }}")]);
    let approved = json!({ "port": 80 });
    let edits: [FileChange; 2] = [change_variable, |file| {
        // This contradicts what has run as well.
        change_variable(file);
        file["current_step"] = "z".into();
    }];
    for more in edits {
        for waits in [false, true] {
            let decided = |by: &str, status: &str, values: Value| {
                let home = project(&steps);
                let change = |file: &mut Value| {
                    more(file);
                    decide(file, status, by, values);
                };
                let finished = match waits {
                    false => {
                        code(&home.finish(RUN, ""), 3);
                        edit(&home, change);
                        home.finish(RUN, "")
                    }
                    true => {
                        let running = home.start(WATCH);
                        running.event_of("waiting");
                        edit(&home, change);
                        running.finish()
                    }
                };
                (home, finished)
            };
            let (home, finished) = decided("Bob", "completed", approved.clone());
            code(&finished, 1);
            assert!(finished.err.contains("was not accepted") && finished.err.contains("by others"), "{finished:?}");
            assert_eq!(log(&home), [""; 0]);
            code(&home.finish(RUN, ""), 1);

            let (home, finished) = decided("Ann", "completed", json!({}));
            code(&finished, 1);
            assert!(finished.err.contains("port"), "{finished:?}");

            let (home_rejected, finished) = decided("Ann", "failed", json!({}));
            code(&finished, 1);
            assert_eq!((log(&home_rejected), sessions(&home_rejected)), (vec![], vec!["failed".to_owned()]));
            assert_eq!(file(&home_rejected)["steps"][0]["result"]["decision"], "reject");
            drop(home);

            let (home, finished) = decided("Ann", "completed", approved.clone());
            code(&finished, 0);
            assert_eq!(log(&home), ["deploy 80 to b"]);
            let file = file(&home);
            assert_eq!((&file["variables"]["port"], &file["status"]), (&json!(80), &json!("completed")));
            assert_eq!(file["steps"][0]["result"]["by"], "Ann");
            assert_eq!(sessions(&home), ["completed", "cancelled"]);
        }
    }
}

#[test]
fn a_rejection_that_is_saved_with_another_edit_goes_where_the_step_leads() {
    let steps = |on_failure: Value| {
        let mut ask = asks_for_port();
        ask["on_failure"] = on_failure;
        json!([ask, logs("y", "y"), logs("z", "z {{ env }}")])
    };
    for (on_failure, expected) in [(json!("continue"), vec!["y", "z b"]), (json!({ "goto": "z" }), vec!["z b"])] {
        let home = project(&steps(on_failure));
        code(&home.finish(RUN, ""), 3);
        edit(&home, |file| {
            change_variable(file);
            decide(file, "failed", "Ann", json!({}));
        });
        code(&home.finish(RUN, ""), 0);
        assert_eq!(log(&home), expected);
        assert_eq!(file(&home)["steps"][0]["status"], "failed");
    }
}

#[test]
fn a_rejection_that_is_saved_with_another_edit_undoes_what_was_done() {
    let mut first = logs("a", "a");
    first["compensate"] = json!([{ "action_type": "command", "action_id": "undo", "config": { "command": ["sh", "-c", "echo undo >> log"] } }]);
    let home = project(&json!([asks_for_port(), first]));
    edit(&home, |file| file["steps"].as_array_mut().unwrap().swap(0, 1));
    code(&home.finish(RUN, ""), 3);
    edit(&home, |file| {
        change_variable(file);
        file["steps"][1]["status"] = "failed".into();
        file["steps"][1]["result"] = json!({ "by": "Ann" });
    });
    code(&home.finish(RUN, ""), 1);
    assert_eq!((log(&home), sessions(&home)), (vec!["a".to_owned(), "undo".to_owned()], vec!["failed".to_owned()]));
    assert_eq!((&file(&home)["status"], &file(&home)["variables"]["env"]), (&json!("failed"), &json!("b")));
}

#[test]
fn the_decision_about_the_last_step_can_be_saved_with_another_edit() {
    let home = project(&json!([asks_for_port()]));
    code(&home.finish(RUN, ""), 3);
    edit(&home, |file| {
        change_variable(file);
        decide(file, "completed", "Ann", json!({ "port": 80 }));
    });
    code(&home.finish(RUN, ""), 0);
    assert_eq!((sessions(&home), &file(&home)["variables"]["port"]), (vec!["completed".to_owned()], &json!(80)));

    // A step that is added in the same edit runs, in a new session.
    let home = project(&json!([asks_for_port()]));
    code(&home.finish(RUN, ""), 3);
    edit(&home, |file| {
        decide(file, "completed", "Ann", json!({ "port": 80 }));
        file["steps"].as_array_mut().unwrap().push(logs("z", "added {{ port }}"));
    });
    code(&home.finish(RUN, ""), 0);
    assert_eq!((log(&home), sessions(&home)), (vec!["added 80".to_owned()], vec!["completed".to_owned(); 2]));
}

#[test]
fn a_recorded_decision_is_taken_before_an_edited_file_goes_on() {
    let steps = json!([asks_for_port(), logs("z", "deploy {{ port }} to {{ env }}")]);
    let approve = ["approve", "w.json", "q", "--by", "Ann", "--set", "port=80", "--trust"];
    let home = project(&steps);
    code(&home.finish(RUN, ""), 3);
    code(&home.finish(approve, ""), 0);
    edit(&home, change_variable);
    code(&home.finish(RUN, ""), 0);
    assert_eq!(
        (log(&home), sessions(&home)),
        (vec!["deploy 80 to b".to_owned()], vec!["completed".to_owned(), "cancelled".to_owned()])
    );

    // What the file says about it afterwards must not be something else.
    for (status, expected) in [("completed", 0), ("failed", 1)] {
        for more in [None, Some(change_variable as FileChange)] {
            let home = project(&steps);
            code(&home.finish(RUN, ""), 3);
            code(&home.finish(approve, ""), 0);
            let mine = edit(&home, |file| {
                decide(file, status, "Bob", json!({}));
                more.into_iter().for_each(|more| more(file));
            });
            let finished = home.finish(RUN, "");
            code(&finished, expected);
            if expected == 0 {
                assert_eq!(log(&home).len(), 1);
                assert_eq!(file(&home)["steps"][0]["result"]["by"], "Ann");
            } else {
                assert!(finished.err.contains("was answered by Ann"), "{finished:?}");
                assert_eq!((text(&home), log(&home)), (mine, vec![]));
            }
        }
    }
}

#[test]
fn decisions_in_branches_are_taken_before_an_edited_file_goes_on() {
    let ask = |id: &str| json!({ "id": id, "type": "approval", "prompt": id });
    let steps = json!([{ "id": "par", "type": "parallel", "sub_tasks": [ask("m1"), ask("m2"), logs("c", "c")] }, logs("z", "z {{ env }}")]);
    let task = |file: &mut Value, position: usize, status: &str| {
        file["steps"][0]["sub_tasks"][position]["status"] = status.into();
    };
    let home = project(&steps);
    code(&home.finish(RUN, ""), 3);
    edit(&home, |file| {
        change_variable(file);
        task(file, 0, "completed");
    });
    code(&home.finish(RUN, ""), 3);
    let tasks = file(&home)["steps"][0]["sub_tasks"].clone();
    assert_eq!(tasks[0]["result"]["decision"], "approve", "{tasks}");
    assert_eq!((&tasks[0]["status"], &tasks[1]["status"]), (&json!("completed"), &json!("waiting_approval")));
    code(&home.finish(["approve", "w.json", "m2", "--trust"], ""), 0);
    edit(&home, |file| file["variables"]["env"] = "c".into());
    code(&home.finish(RUN, ""), 0);
    assert_eq!(log(&home), ["c", "z c"]);
    let tasks = file(&home)["steps"][0]["sub_tasks"].clone();
    assert_eq!(tasks[1]["result"]["decision"], "approve", "{tasks}");
}

#[test]
fn the_values_of_completed_sub_tasks_are_kept_if_the_file_is_edited_while_others_wait() {
    let tasks = json!([
        { "id": "p1", "command": ["sh", "-c", "echo image-7"], "output": { "image": "stdout" } },
        { "id": "p0", "type": "approval", "prompt": "Which port?", "form": [{ "get": "port", "type": "integer" }] },
        { "id": "p2", "type": "approval", "prompt": "Go on?" },
    ]);
    let steps = json!([{ "id": "par", "type": "parallel", "sub_tasks": tasks }, logs("z", "deploy {{ image }} {{ port }} to {{ env }}")]);
    let home = project(&steps);
    code(&home.finish(RUN, ""), 3);
    code(&home.finish(["approve", "w.json", "p0", "--set", "port=80", "--run", "--trust"], ""), 3);
    assert_eq!(file(&home)["variables"], json!({ "env": "a", "image": "image-7", "port": 80 }));
    edit(&home, change_variable);
    code(&home.finish(RUN, ""), 3);
    code(&home.finish(["approve", "w.json", "p2", "--run", "--trust"], ""), 0);
    assert_eq!(log(&home), ["deploy image-7 80 to b"]);
}

#[test]
fn what_a_skill_did_is_undone_by_the_session_that_goes_on_from_an_edited_file() {
    let undo = |id: &str| json!([{ "action_type": "command", "action_id": id, "config": { "command": ["sh", "-c", format!("echo {id} {{{{ img }}}} >> log")] } }]);
    let fails = json!({ "id": "z", "command": ["sh", "-c", "echo z >> log; false"] });
    let skill = r#"skill:
  skill_id: rel
  inputs: [{ var: image }]
  actions:
    - action_type: command
      action_id: push
      compensate: [{ action_type: command, action_id: unpush, config: { command: [sh, -c, "echo unpush {{ image }} >> log"] } }]
      config: { command: [sh, -c, "echo push {{ image }} >> log"] }
"#;
    let call = |id: &str| json!({ "id": id, "skill": "rel", "input": { "image": format!("{{{{ img }}}}-{id}") }, "compensate": undo(&format!("undo_{id}")) });
    let parallel = json!({ "id": "par", "type": "parallel", "sub_tasks": [call("p")] });
    let ask = json!({ "id": "q", "type": "approval", "prompt": "Go on?" });
    let home = project(&json!([call("s"), parallel, ask, fails]));
    home.put("skills/rel.yaml", skill);
    edit(&home, |file| file["variables"]["img"] = "shop".into());
    code(&home.finish(RUN, ""), 3);
    edit(&home, change_variable);
    code(&home.finish(RUN, ""), 3);
    code(&home.finish(["approve", "w.json", "q", "--run", "--trust"], ""), 1);
    let expected = ["push shop-s", "push shop-p", "z", "undo_p shop", "unpush shop-p", "undo_s shop", "unpush shop-s"];
    assert_eq!(log(&home), expected);
}

/// Lets the time of the open requests be over.
fn make_overdue(home: &Home) {
    let store = rusqlite::Connection::open(home.path().join(".bcc/sessions.db")).unwrap();
    let changed =
        store.execute("UPDATE request SET due_at = '2026-01-01T00:00:00Z' WHERE due_at IS NOT NULL", ()).unwrap();
    assert_eq!(changed, 1);
}

#[test]
fn a_decision_in_the_file_that_is_late_is_refused_and_the_file_stays() {
    let ask = json!({ "id": "q", "type": "approval", "prompt": "Go on?", "timeout": "1h", "on_timeout": "approve" });
    for (status, more) in [("failed", None), ("completed", None), ("failed", Some(change_variable as FileChange))] {
        let home = project(&json!([ask, logs("z", "z")]));
        code(&home.finish(RUN, ""), 3);
        make_overdue(&home);
        let mine = edit(&home, |file| {
            decide(file, status, "Ann", json!({}));
            more.into_iter().for_each(|more| more(file));
        });
        for command in [&RUN[..], &["tick", "--trust"], &RUN] {
            // Another session does not go on in `tick`, which says so.
            let finished = home.finish(command, "");
            code(&finished, 1);
            let said = format!("{}{}", finished.out, finished.err);
            let expected = if more.is_some() && command[0] == "tick" {
                "was edited"
            } else {
                "the time for this decision is over"
            };
            assert!(said.contains(expected), "{finished:?}");
            assert_eq!((text(&home), log(&home)), (mine.clone(), vec![]));
        }
        edit(&home, |file| file["steps"][0]["status"] = "waiting_approval".into());
        if more.is_some() {
            // The session that goes on asks again.
            code(&home.finish(RUN, ""), 3);
            continue;
        }
        code(&home.finish(RUN, ""), 0);
        assert_eq!(log(&home), ["z"]);
        assert_eq!(file(&home)["steps"][0]["result"]["decision"], "timed_out");
    }
}

#[test]
fn a_file_that_is_put_back_to_an_earlier_text_is_written_again_and_the_person_is_told() {
    let home = project(&json!([asks_for_port(), logs("deploy", "deploy")]));
    let first = text(&home);
    code(&home.finish(RUN, ""), 3);
    let waiting = text(&home);
    assert_ne!(waiting, first);

    home.put("w.json", &first);
    let resumed = home.finish(RUN, "");
    code(&resumed, 3);
    assert!(resumed.err.contains("w.json had an earlier state than session"), "{}", resumed.err);
    assert!(resumed.err.contains("`bcc-script cancel w.json`"), "{}", resumed.err);
    assert_eq!((text(&home), sessions(&home).len()), (waiting, 1));
    let again = home.finish(RUN, "");
    assert!(!again.err.contains("had an earlier state"), "{}", again.err);

    // As the message says.
    code(&home.finish(["cancel", "w.json", "--comment", "anew", "--trust"], ""), 0);
    home.put("w.json", &first);
    let anew = home.finish(RUN, "");
    code(&anew, 3);
    assert!(!anew.err.contains("had an earlier state"), "{}", anew.err);
    assert_eq!(sessions(&home), ["waiting_approval", "cancelled"]);
}
