//! Tests of the program with servers that return errors: the documented exit code, and a session that can be resumed.

use crate::behavior_process::Process;
use crate::process::{Finished, Home};

const SCRIPT: &str = "session:\n  session_id: led\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: a\n          actions:\n            \
    - action_type: behavior_loop\n              action_id: loop_a\n              on_exit: { max_rounds_reached: next }\n              \
    config: { server: s, max_behaviors: 3, max_actions: 20, todo_list: [begin] }\n";

fn configure(home: &Home, server: &Process) {
    let text = format!(
        "[project]\nallow = [\"exec\"]\n[behavior_servers.s]\nurl = \"{}\"\ntimeout = \"3s\"\nfirst_byte_timeout = \"500ms\"\nidle_timeout = \"500ms\"\n",
        server.url
    );
    home.file("bcc-script.toml", &text);
}

fn codes(run: &Finished, kind: &str) -> Vec<String> {
    let events = run.events();
    let of_kind = events.iter().filter(|event| event["type"] == kind);
    of_kind.map(|event| event["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_server_that_accepts_connections_and_does_not_answer_is_told_before_the_session_exists() {
    let server = Process::start(&["--fault", "hang", "--on", "both"]);
    let home = Home::new();
    let script = home.file("led.yaml", SCRIPT).display().to_string();
    configure(&home, &server);
    let run = home.finish(["run", &script, "--session", "led", "--trust"], "");
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.err.contains("`s` did not start its response within 500ms"), "{}", run.err);
    assert!(!home.finish(["sessions", "list"], "").out.contains("led"));
}

#[test]
fn whatever_a_server_does_the_session_ends_as_documented_or_can_be_resumed() {
    // The injected error, the exit code, and the code of the expected warning or error.
    let table = [
        ("garbage", 3, "behavior-unreadable"),
        ("web-page", 3, "behavior-unreadable"),
        ("wrong-types", 3, "behavior-unreadable"),
        ("status:500", 3, "server-refused"),
        ("cut", 0, "behavior-cut-short"),
        ("endless", 0, "too-many-actions"),
        ("many", 0, "too-many-actions"),
        ("unknown-cells", 0, ""),
        ("unknown-actions", 0, "unknown-action"),
        ("unknown-steps", 0, "unknown-step"),
        ("forever", 0, ""),
    ];
    for (injected_error, code, diagnostic_code) in table {
        let server = Process::start(&["--fault", injected_error, "--pause", "1"]);
        let home = Home::new();
        let script = home.file("led.yaml", SCRIPT).display().to_string();
        configure(&home, &server);
        let run = home.finish(["run", &script, "--session", "led", "--json", "--trust"], "");
        assert_eq!(run.code, Some(code), "{injected_error}: {}\n{}", run.err, run.out);
        let mut found = codes(&run, "warning");
        found.extend(codes(&run, "error"));
        assert!(
            diagnostic_code.is_empty() || found.iter().any(|code| code == diagnostic_code),
            "{injected_error}: {found:?}"
        );
        assert!(!run.out.contains("a-secret-of-the-server"), "{injected_error}");
        if code == 0 {
            continue;
        }
        // With a working server, the session continues.
        let working_server = Process::start(&[]);
        configure(&home, &working_server);
        let resumed = home.finish(["sessions", "resume", "led", "--json", "--trust"], "");
        assert_eq!(resumed.code, Some(0), "{injected_error}: {}\n{}", resumed.err, resumed.out);
    }
}
