//! Servers that misbehave, each a process of its own, and the real program: the documented outcome, and the session alive.

use crate::behavior_process::Process;
use crate::process::{Finished, Home};

const SCRIPT: &str = "session:\n  session_id: led\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: a\n          actions:\n            \
    - action_type: behavior_loop\n              action_id: loop_a\n              on_exit: { max_rounds_reached: next }\n              \
    config: { server: s, max_behaviors: 3, max_actions: 20, todo_list: [begin] }\n";

fn configure(home: &Home, server: &Process) {
    let text = format!(
        "[behavior_servers.s]\nurl = \"{}\"\ntimeout = \"3s\"\nfirst_byte_timeout = \"500ms\"\nidle_timeout = \"500ms\"\n",
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
fn whatever_a_server_does_the_session_ends_as_documented_or_can_be_resumed() {
    // The fault, how the program ends, and a code that tells of it, as a warning or an error.
    let table = [
        ("garbage", 3, "behavior-unreadable"),
        ("web-page", 3, "behavior-unreadable"),
        ("wrong-types", 3, "behavior-unreadable"),
        ("status:500", 3, "server-refused"),
        ("hang", 3, "server-timeout"),
        ("cut", 0, "behavior-cut-short"),
        ("endless", 0, "too-many-actions"),
        ("many", 0, "too-many-actions"),
        ("unknown-cells", 0, ""),
        ("unknown-actions", 0, "unknown-action"),
        ("unknown-steps", 0, "unknown-step"),
        ("forever", 0, ""),
    ];
    for (fault, code, told) in table {
        let server = Process::start(&["--fault", fault, "--pause", "1"]);
        let home = Home::new();
        let script = home.file("led.yaml", SCRIPT).display().to_string();
        configure(&home, &server);
        let run = home.finish(["run", &script, "--session", "led", "--json", "--trust"], "");
        assert_eq!(run.code, Some(code), "{fault}: {}\n{}", run.err, run.out);
        let mut found = codes(&run, "warning");
        found.extend(codes(&run, "error"));
        assert!(told.is_empty() || found.iter().any(|code| code == told), "{fault}: {found:?}");
        assert!(!run.out.contains("a-secret-of-the-server"), "{fault}");
        if code == 0 {
            continue;
        }
        // Mended, the session goes on.
        let mended = Process::start(&[]);
        configure(&home, &mended);
        let resumed = home.finish(["sessions", "resume", "led", "--json", "--trust"], "");
        assert_eq!(resumed.code, Some(0), "{fault}: {}\n{}", resumed.err, resumed.out);
    }
}
