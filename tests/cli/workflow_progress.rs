//! What state files say after runs whose steps contain others, go back, are passed over, or are undone, and what the next run makes of it.

use std::fs;

use serde_json::{Value, json};

use crate::process::{Finished, Home};
use crate::state_file_project::{self, RUN, code, edit, file};

fn project(steps: &Value) -> Home {
    state_file_project::project(
        &json!({ "workflow_id": "w", "status": "pending", "variables": { "n": "0" }, "steps": steps }),
    )
}

/// A skill with these actions.
fn put_skill(home: &Home, actions: &Value) {
    let skill = json!({ "skill": { "skill_id": "release", "actions": actions } });
    home.put("skills/release.yaml", skill.to_string());
}

fn shell(script: &str) -> Value {
    json!(["sh", "-c", script])
}

/// A step, or the action of a skill, that appends its name to the file `log`.
fn logged(id: &str) -> Value {
    json!({ "id": id, "command": shell(&format!("echo {id} >> log")) })
}

/// The same, but it fails until the file `fixed` exists.
fn failing(id: &str) -> Value {
    json!({ "id": id, "command": shell(&format!("echo {id} >> log; test -e fixed")) })
}

fn command(id: &str, script: &str) -> Value {
    json!({ "action_type": "command", "action_id": id, "config": { "command": shell(script) } })
}

fn run(home: &Home, expected: i32) -> Finished {
    let done = home.finish(RUN, "");
    code(&done, expected);
    done
}

/// The status of the file, and those of its steps.
fn statuses(home: &Home) -> Vec<String> {
    let file = file(home);
    let of = |value: &Value| value["status"].as_str().unwrap_or("none").to_owned();
    std::iter::once(of(&file)).chain(file["steps"].as_array().unwrap().iter().map(of)).collect()
}

/// What ran since the last time.
fn take_log(home: &Home) -> String {
    let path = home.path().join("log");
    let text = fs::read_to_string(&path).unwrap_or_default();
    _ = fs::remove_file(path);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn an_action_of_a_skill_with_the_id_of_a_step_is_not_that_step() {
    let home = project(&json!([{ "id": "prepare", "skill": "release" }, failing("check"), logged("deploy")]));
    let approve = json!({ "action_type": "approval", "action_id": "check", "config": { "prompt": "Sure?" } });
    put_skill(&home, &json!([command("deploy", "echo of_skill >> log"), approve]));
    run(&home, 3);
    assert_eq!(statuses(&home), ["waiting", "waiting", "none", "none"]);
    assert_eq!(file(&home)["current_step"], "prepare");
    // The request is the skill's: no step waits for a decision.
    let done = home.finish(["approve", "w.json", "check", "--run", "--trust"], "");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(statuses(&home), ["failed", "completed", "failed", "none"]);
    assert_eq!(take_log(&home), "of_skill check");
    home.put("fixed", "");
    run(&home, 0);
    assert_eq!(take_log(&home), "check deploy");
    assert_eq!(statuses(&home), ["completed"; 4]);
}

#[test]
fn a_step_that_is_decided_in_the_file_does_not_decide_an_approval_of_a_skill() {
    let ask = json!({ "id": "check", "type": "approval", "prompt": "Later?" });
    let home = project(&json!([{ "id": "rollout", "skill": "release" }, ask]));
    let approve = json!({ "action_type": "approval", "action_id": "check", "config": { "prompt": "Sure?" } });
    put_skill(&home, &json!([approve, command("danger", "echo danger >> log")]));
    run(&home, 3);
    edit(&home, |file| file["steps"][1]["status"] = json!("completed"));
    let done = run(&home, 3);
    assert!(done.out.contains("Sure?"), "{done:?}");
    assert_eq!(take_log(&home), "");
}

#[test]
fn a_skill_that_ends_an_approval_leaves_that_of_a_step_with_the_same_id_open() {
    let ask = json!({ "id": "check", "type": "approval", "prompt": "Fine?", "approvers": ["Ann"] });
    let sub_tasks = json!([ask, { "id": "rollout", "skill": "release" }]);
    let home = project(&json!([{ "id": "both", "type": "parallel", "sub_tasks": sub_tasks }, logged("last")]));
    put_skill(&home, &json!([command("check", "echo inner >> log")]));
    run(&home, 3);
    assert_eq!(take_log(&home), "inner");
    edit(&home, |file| {
        file["variables"]["n"] = json!("1");
        file["steps"][0]["sub_tasks"][0]["status"] = json!("completed");
        file["steps"][0]["sub_tasks"][0]["result"] = json!({ "by": "Eve" });
    });
    let done = run(&home, 1);
    assert!(done.err.contains("Ann"), "{done:?}");
    assert_eq!(take_log(&home), "");
}

#[test]
fn what_a_route_led_to_after_a_failure_is_to_run_again_when_it_has_led_back() {
    let test = json!({ "id": "test", "command": shell("cp w.json seen; test -e fixed"), "on_failure": { "goto": "fix" }, "next": "end" });
    let mut fix = logged("fix");
    fix["command"] = shell("echo fix >> log; touch fixed");
    fix["next"] = json!("test");
    let home = project(&json!([test, fix]));
    run(&home, 0);
    assert_eq!(take_log(&home), "fix");
    // What the file said when the test ran for the second time.
    let seen: Value = serde_json::from_str(&fs::read_to_string(home.path().join("seen")).unwrap()).unwrap();
    assert_eq!((&seen["steps"][0]["status"], &seen["steps"][1]["status"]), (&json!("running"), &json!("pending")));
}

#[test]
fn a_step_runs_again_if_something_in_its_skill_was_undone() {
    let home = project(&json!([{ "id": "rollout", "skill": "release" }, failing("check")]));
    let mut push = command("push", "echo push >> log");
    push["compensate"] = json!([command("unpush", "echo unpush >> log")]);
    put_skill(&home, &json!([push]));
    run(&home, 1);
    assert_eq!(take_log(&home), "push check unpush");
    assert_eq!(
        (statuses(&home), &file(&home)["current_step"]),
        (["failed", "pending", "failed"].map(str::to_owned).to_vec(), &json!("rollout"))
    );
    home.put("fixed", "");
    run(&home, 0);
    assert_eq!(take_log(&home), "push check");
}

#[test]
fn what_could_not_be_undone_is_not_done_twice() {
    let mut migrate = logged("migrate");
    migrate["compensate"] = json!([command("back", "echo back >> log; false")]);
    let home = project(&json!([migrate, failing("check")]));
    run(&home, 1);
    assert_eq!(take_log(&home), "migrate check back");
    assert_eq!(statuses(&home), ["failed", "completed", "failed"]);
    home.put("fixed", "");
    run(&home, 0);
    assert_eq!(take_log(&home), "check");
}

#[test]
fn steps_between_which_a_route_goes_back_run_again_also_in_the_next_run() {
    let count = json!({ "id": "count", "command": shell("expr {{ n }} + 1"), "output": { "n": "stdout" } });
    let build =
        json!({ "id": "build", "command": shell("echo build{{ n }} >> log; test {{ n }} -ne 2 || test -e fixed") });
    let skipped = json!({ "id": "skipped", "condition": "n == '2'", "command": shell("echo second >> log") });
    let sub_tasks = json!([{ "id": "test_a", "command": shell("echo test{{ n }} >> log") }]);
    let test = json!({ "id": "test", "type": "parallel", "sub_tasks": sub_tasks });
    let again = json!({ "id": "again", "type": "condition", "cases": [{ "when": "n | int < 3", "next": "count" }], "else": "end" });
    let home = project(&json!([count, build, skipped, test, again]));
    run(&home, 1);
    assert_eq!(take_log(&home), "build1 test1 build2");
    assert_eq!(statuses(&home), ["failed", "completed", "failed", "pending", "pending", "pending"]);
    assert_eq!(file(&home)["steps"][3]["sub_tasks"][0]["status"], "pending");
    home.put("fixed", "");
    run(&home, 0);
    assert_eq!(take_log(&home), "build2 second test2 build3 test3");
}

#[test]
fn steps_before_an_approval_that_pushes_back_run_again_also_in_the_next_run() {
    let first = json!({ "id": "first", "command": shell("echo first >> log; ! test -e broken") });
    let ask = json!({ "id": "ask", "type": "approval", "prompt": "Fine?", "rewind_to": "first" });
    let home = project(&json!([first, logged("second"), ask]));
    run(&home, 3);
    home.put("broken", "");
    let done = home.finish(["push-back", "w.json", "ask", "--run", "--trust"], "");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(take_log(&home), "first second first");
    assert_eq!(statuses(&home), ["failed", "failed", "pending", "pending"]);
    fs::remove_file(home.path().join("broken")).unwrap();
    run(&home, 3);
    assert_eq!(take_log(&home), "first second");
}

#[test]
fn a_step_that_is_passed_over_or_skipped_leads_to_its_next_one() {
    let mut second = logged("second");
    second["status"] = json!("completed");
    second["next"] = json!("fourth");
    let mut fourth = logged("fourth");
    fourth["next"] = json!("end");
    fourth["condition"] = json!("n == '1'");
    let home = project(&json!([logged("first"), second, logged("third"), fourth, logged("rollback")]));
    run(&home, 0);
    assert_eq!(take_log(&home), "first");
    assert_eq!(statuses(&home), ["completed", "completed", "completed", "none", "skipped", "none"]);
    let done = run(&home, 4);
    assert!(take_log(&home).is_empty(), "{done:?}");
}

#[test]
fn a_completed_workflow_whose_last_step_failed_has_no_step_left() {
    let mut last = failing("last");
    last["on_failure"] = json!("continue");
    let home = project(&json!([logged("first"), last]));
    run(&home, 0);
    assert_eq!(
        (take_log(&home).as_str(), statuses(&home).join(" ").as_str()),
        ("first last", "completed completed failed")
    );
    run(&home, 4);
    assert!(take_log(&home).is_empty());
}

#[test]
fn a_file_says_that_its_workflow_waits_when_nothing_runs_beside_it() {
    let ask = json!({ "id": "ask", "type": "approval", "prompt": "Fine?" });
    let mut later = logged("later");
    later["depends_on"] = json!(["first"]);
    let home = project(&json!([{ "id": "all", "type": "parallel", "sub_tasks": [logged("first"), later, ask] }]));
    run(&home, 3);
    assert_eq!(take_log(&home), "first later");
    assert_eq!(statuses(&home), ["waiting_approval", "running"]);
}

#[test]
fn a_session_of_a_state_file_is_not_repeated_and_nothing_is_left_of_the_attempt() {
    let home = project(&json!([logged("first"), failing("second")]));
    run(&home, 1);
    let sessions = || home.finish(["sessions", "list"], "").out;
    let before = sessions();
    let id = before.split('\t').next().unwrap();
    for more in [&[][..], &["--from", "first"]] {
        let done = home.finish([&["sessions", "retry", id], more].concat(), "");
        assert_eq!(done.code, Some(2), "{done:?}");
        assert!(done.err.contains("bcc-script run FILE"), "{done:?}");
    }
    assert_eq!(sessions(), before);
    take_log(&home);
    home.put("fixed", "");
    run(&home, 0);
    assert_eq!(take_log(&home), "second");
}
