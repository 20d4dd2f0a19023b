//! The deployment of `scripts/deployment`, as a script and as a state file: to the same result, also when a server fails, and with a
//! SIGKILL at every effect and every request.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process::{Finished, Home};

/// How often the process is killed at each point; more with the variable `BCC_KILLS`.
const KILLS: usize = 1;

/// A copy of the example.
fn deployment() -> Home {
    let home = Home::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/deployment");
    fs::create_dir(home.path().join("tools")).unwrap();
    for name in ["bcc-script.toml", "deployment.yaml", "workflow_state.json", "tools/step"] {
        fs::copy(folder.join(name), home.path().join(name)).unwrap();
    }
    home
}

fn call(home: &Home, line: &str) -> Finished {
    home.finish(line.split(' '), "")
}

fn expect(finished: &Finished, code: i32) {
    assert_eq!(finished.code, Some(code), "{finished:?}");
}

/// What the programs were asked to do, those of the two servers in order.
fn log(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.path().join("out/steps.log")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for pair in 1..lines.len() {
        if lines[pair - 1] == "deploy web-2" && lines[pair] == "deploy web-1" {
            lines.swap(pair - 1, pair);
        }
    }
    lines
}

/// The session's values of the variables that both forms have.
fn variables(home: &Home, id: &str) -> Vec<Value> {
    let session = home.export(id)["variables"]["session"].clone();
    ["environment", "docker_image", "window", "build_log"].iter().map(|name| session[*name]["value"].clone()).collect()
}

/// The only session of the project.
fn session(home: &Home) -> String {
    let listed = call(home, "sessions list");
    let id = listed.out.lines().next().and_then(|line| line.split('\t').next());
    id.unwrap_or_else(|| panic!("{listed:?}")).to_owned()
}

#[test]
fn the_script_and_the_state_file_deploy_alike() {
    let mut ends = Vec::new();
    for (file, approver) in [("deployment.yaml", "session"), ("workflow_state.json", "file")] {
        let home = deployment();
        expect(&call(&home, &format!("run {file} --trust")), 3);
        let id = session(&home);
        let target = if approver == "file" { file.to_owned() } else { id.clone() };
        expect(
            &call(&home, &format!("push-back {target} approve_release --by 王 --comment 再测一次 --trust --run")),
            3,
        );
        let done =
            call(&home, &format!("approve {target} approve_release --by 王主管 --set window=今晚 --trust --run"));
        expect(&done, 0);
        assert_eq!(
            log(&home),
            ["test", "build shop:2.4.0 -", "build shop:2.4.0 再测一次", "deploy web-1", "deploy web-2", "unlock"],
            "{file}"
        );
        ends.push(variables(&home, &id));
        let report = match file {
            "workflow_state.json" => fs::read_to_string(home.path().join("deployment_report.md")).unwrap(),
            _ => call(&home, &format!("report {id}")).out,
        };
        for part in ["王主管", "再测一次", "deploy_web_2", "approve_release", "今晚"] {
            assert!(report.contains(part), "{part}: {report}");
        }
        assert_eq!(call(&home, &format!("report {file}")).code == Some(0), file == "workflow_state.json");
    }
    assert_eq!(ends[0], ends[1]);
    assert_eq!(ends[0][2], "今晚");
}

#[test]
fn a_server_that_fails_undoes_what_was_done_in_both_forms() {
    for (file, unlocks) in [("deployment.yaml", true), ("workflow_state.json", false)] {
        let home = deployment();
        home.file("broken", "deploy web-2");
        expect(&call(&home, &format!("run {file} --trust")), 3);
        let failed =
            call(&home, &format!("approve {} approve_release --set window=今晚 --trust --run", session(&home)));
        expect(&failed, 1);
        let mut expected = vec!["test", "build shop:2.4.0 -", "deploy web-1", "deploy web-2"];
        // Only the script has a `finally`.
        expected.extend(unlocks.then_some("unlock"));
        expected.extend(["roll_back web-1", "remove shop:2.4.0"]);
        assert_eq!(log(&home), expected, "{file}");
        if !unlocks {
            let written: Value = serde_json::from_str(&fs::read_to_string(home.path().join(file)).unwrap()).unwrap();
            assert_eq!(written["status"], "failed");
            assert!(home.path().join("deployment_report.md").exists());
        }
    }
}

/// Continues a session that was killed to its end. Returns how often it asked about the program of each action.
fn finish(home: &Home) -> BTreeMap<String, usize> {
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..20 {
        let resumed = call(home, "sessions resume one --json --trust");
        if resumed.code == Some(0) || resumed.code == Some(4) {
            return asked;
        }
        expect(&resumed, 3);
        let waiting = resumed.events().into_iter().rfind(|event| event["type"] == "waiting").unwrap();
        if waiting["for"] == "interrupted_effect" {
            *asked.entry(waiting["location"]["action_id"].as_str().unwrap().to_owned()).or_default() += 1;
            expect(&call(home, "requests answer one again --trust"), 0);
        } else {
            expect(&call(home, "approve one --set window=今晚 --trust"), 0);
        }
    }
    panic!("the session does not end: {asked:?}");
}

/// Kills the process after this number of events that concern effects, requests and outcomes. Returns false if there are not so many.
fn killed_after(home: &Home, arguments: &[&str], count: usize) -> bool {
    let mut running = home.start(arguments);
    running.end_input();
    let mut seen = 0;
    while let Some(event) = running.event() {
        let is_point = ["effect_started", "effect_finished", "request_opened", "request_answered", "outcome"]
            .contains(&event["type"].as_str().unwrap_or_default());
        seen += usize::from(is_point);
        if is_point && seen == count {
            running.kill();
            return true;
        }
    }
    false
}

#[test]
fn a_sigkill_at_every_effect_and_request_repeats_nothing_silently() {
    let kills = std::env::var("BCC_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let commands = [
        ("run_tests", "test"),
        ("build_image", "build shop:2.4.0 -"),
        ("deploy_web_1", "deploy web-1"),
        ("deploy_web_2", "deploy web-2"),
        ("release_lock", "unlock"),
    ];
    let run = ["run", "deployment.yaml", "--json", "--trust", "--session", "one"];
    let approve = ["approve", "one", "--set", "window=今晚", "--run", "--json", "--trust"];
    for approved in [false, true] {
        for count in 1.. {
            let mut was_killed = false;
            for _ in 0..kills {
                let home = deployment();
                if approved {
                    expect(&home.finish(run, ""), 3);
                    was_killed = killed_after(&home, &approve, count);
                } else {
                    was_killed = killed_after(&home, &run, count);
                }
                if !was_killed {
                    break;
                }
                let asked = finish(&home);
                let log = log(&home);
                for (action, line) in commands {
                    let ran = log.iter().filter(|found| *found == line).count();
                    let asked = asked.get(action).copied().unwrap_or_default();
                    assert!((1..=1 + asked).contains(&ran), "{action} at {count}: ran {ran}, asked {asked}: {log:?}");
                }
                assert_eq!(
                    fs::read_to_string(home.path().join("out/released.txt")).unwrap(),
                    "shop:2.4.0 production 今晚\n"
                );
                assert_eq!(home.export("one")["session"]["status"], "completed");
            }
            if !was_killed {
                assert!(count > 8, "only {count} points");
                break;
            }
        }
    }
}
