//! Tests that no process survives its command: children that ignore SIGTERM, leave the group, lose their parent or clear their
//! environment, for every way in which a command ends.

use std::fs;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::commands::{ALLOWED, RUN, command, gone, outcome, project, run_one, text};
use crate::process::{POLL_INTERVAL, Running, TIMEOUT};

/// A process that ends only when it is killed, and that writes its id to `child`.
const STUBBORN: &str = "sh -c 'trap \"\" TERM HUP INT; echo $$ > child; while :; do sleep 0.05; done'";

/// Ways to start [`STUBBORN`] so that it has less and less to do with the command.
fn starts() -> Vec<String> {
    vec![
        format!("{STUBBORN} &"),
        format!("setsid {STUBBORN} &"),
        // Its parent ends at once.
        format!("(setsid {STUBBORN} > /dev/null 2>&1 &)"),
        "(setsid sh -c '(exec setsid ./stubborn) &' > /dev/null 2>&1 &)".to_owned(),
        // Nothing in its environment refers to the command.
        format!("(env -i PATH=\"$PATH\" setsid {STUBBORN} > /dev/null 2>&1 &)"),
    ]
}

/// Tries each of [`starts`], side by side: most of the time is spent waiting for processes that do not end by themselves.
fn for_each_start(tried: impl Fn(String) + Sync) {
    std::thread::scope(|scope| {
        for start in starts() {
            scope.spawn(|| tried(start));
        }
    });
}

const WAIT_FOR_CHILD: &str = "while [ ! -s child ]; do sleep 0.01; done";

fn script(start: &str, end: &str) -> Value {
    let prepare = "printf '#!/bin/sh\\nexec %s\\n' \"$STUBBORN\" > stubborn; chmod +x stubborn";
    json!({ "shell": true, "command": format!("{prepare}\n{start}\n{WAIT_FOR_CHILD}; {end}"), "env": { "STUBBORN": STUBBORN } })
}

#[test]
fn processes_that_a_successful_command_leaves_are_ended_and_reported() {
    for_each_start(|start| {
        let (home, finished) = run_one(script(&start, "echo done"), json!({}));
        assert_eq!(finished.code, Some(0), "{start}: {finished:?}");
        gone(&home, "child");
        assert_eq!(outcome(&finished, "c")["metadata"]["stdout"], "done\n");
        let warning = finished.events().into_iter().find(|event| event["code"] == "processes-left");
        let message = warning.unwrap_or_else(|| panic!("{start}: {finished:?}"))["message"].clone();
        assert!(message.as_str().unwrap().starts_with("the command of `c` left processes running, which were ended: "));
    });
}

#[test]
fn processes_of_a_command_that_takes_too_long_are_ended() {
    for_each_start(|start| {
        let (home, finished) = run_one(script(&start, "sleep 1000"), json!({ "timeout": "1s" }));
        assert_eq!(outcome(&finished, "c")["exit_reason"], "timed_out", "{start}: {finished:?}");
        gone(&home, "child");
    });
}

#[test]
fn processes_of_a_command_end_when_the_program_is_interrupted() {
    for_each_start(|start| {
        for signal in [Signal::INT, Signal::TERM] {
            let home = project(ALLOWED, &json!([command("c", script(&start, "sleep 1000"), json!({}))]));
            let running = Running::start(home.command(RUN));
            let deadline = Instant::now() + TIMEOUT;
            while !text(&home, "child").ends_with('\n') {
                assert!(Instant::now() < deadline, "{start}: it does not start");
                std::thread::sleep(POLL_INTERVAL);
            }
            kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), signal).unwrap();
            assert_eq!(running.finish().code, Some(130), "{start}");
            gone(&home, "child");
        }
    });
}

#[test]
fn ended_orphans_do_not_remain_as_zombies_and_the_exit_code_is_that_of_the_command() {
    // Each of them loses its parent and ends, and bcc-script becomes its parent.
    let start = "for i in 1 2 3 4 5 6 7 8; do (setsid sh -c 'exit 7' &) ; done; sleep 1.5; ps -o stat= --ppid $PPID | grep -c Z; exit 3";
    let (_, finished) = run_one(
        json!({ "shell": true, "command": start, "ok_codes": [3], "output": { "code": "exit_code", "zombies": "stdout" } }),
        json!({}),
    );
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let metadata = &outcome(&finished, "c")["metadata"];
    assert_eq!((&metadata["exit_code"], &metadata["stdout"]), (&json!(3), &json!("0\n")), "{finished:?}");
}

#[test]
fn a_command_does_not_end_processes_of_others() {
    let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let (home, finished) = run_one(script(&starts()[0], "exit 0"), json!({}));
    assert_eq!(finished.code, Some(0));
    gone(&home, "child");
    assert!(other.try_wait().unwrap().is_none(), "it still runs");
    assert!(fs::metadata(format!("/proc/{}", other.id())).is_ok());
    other.kill().unwrap();
    other.wait().unwrap();
}
