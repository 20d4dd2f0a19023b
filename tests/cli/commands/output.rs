//! Tests of the output of commands: shown while they run, bounded, stored, and read back.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use crate::commands::{ALLOWED, RUN, command, outcome, project, run_one, text, variable};
use crate::process::{Home, Running, TIMEOUT};
use crate::pseudo_terminal::Terminal;

/// Waits for the file `go`.
const WAIT: &str = "while [ ! -e go ]; do sleep 0.01; done";

/// The arguments that resume the session and write its events again.
const AGAIN: [&str; 6] = ["sessions", "resume", "one", "--json", "--after", "0"];

fn live(events: &[Value]) -> Vec<(&str, &str)> {
    let outputs = events.iter().filter(|event| event["type"] == "effect_output");
    outputs.map(|event| (event["stream"].as_str().unwrap(), event["text"].as_str().unwrap())).collect()
}

#[test]
fn output_is_written_while_the_command_runs_and_not_stored_in_this_form() {
    let line = format!("echo first; echo bad >&2; printf '\\377half'; {WAIT}; echo second");
    let home = project(ALLOWED, &json!([command("c", json!({ "shell": true, "command": line }), json!({}))]));
    let running = Running::start(home.command(RUN));
    let started = running.event_of("effect_started");
    let mut outputs = [running.event_of("effect_output"), running.event_of("effect_output")];
    outputs.sort_by_key(|event| event["stream"].to_string());
    for (event, (stream, text)) in outputs.iter().zip([("stderr", "bad\n"), ("stdout", "first\n")]) {
        assert_eq!((&event["stream"], &event["text"]), (&json!(stream), &json!(text)));
        assert_eq!((&event["effect_id"], &event["location"]["action_id"]), (&started["effect_id"], &json!("c")));
        assert_eq!(event["session_id"], "one");
        assert!(event["at"].is_string() && event.get("seq").is_none() && event.get("left_out").is_none(), "{event}");
    }
    home.file("go", "");
    let finished = running.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(live(&finished.events()), [("stdout", "\u{fffd}halfsecond\n")]);
    assert_eq!(outcome(&finished, "c")["metadata"]["stdout"], "first\n\u{fffd}halfsecond\n");
    let again = home.finish(AGAIN, "");
    assert!(again.events().iter().any(|event| event["type"] == "effect_started"), "{again:?}");
    assert!(live(&again.events()).is_empty(), "{again:?}");
}

#[test]
fn output_is_shown_at_a_terminal_while_the_command_runs() {
    let line = format!("printf 'one\\033[2Jtwo\\n10%%\\r20%%\\n\\007bell\\n'; {WAIT}; echo three");
    let home = project(ALLOWED, &json!([command("c", json!({ "shell": true, "command": line }), json!({}))]));
    let mut terminal = Terminal::start(&home, &["run", "s.yaml", "--trust"], true);
    terminal.until("bell");
    let shown = terminal.all_output();
    assert!(shown.contains("\u{1b}[2m  onetwo\u{1b}[0m") && shown.contains("  20%"), "dimmed: {shown:?}");
    assert!(!shown.contains("\u{1b}[2J") && !shown.contains('\u{7}') && !shown.contains("three"), "{shown:?}");
    home.file("go", "");
    terminal.until("  three");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn a_sensitive_output_is_shown_nowhere_and_sensitive_values_are_masked_in_others() {
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    let hidden =
        command("c", json!({ "command": ["/bin/echo", "top secret value"], "output": { "key": "stdout" } }), json!({}));
    let shown = command("d", json!({ "command": ["/bin/echo", "a {{ key }} b"] }), json!({}));
    let many = command(
        "many",
        json!({ "shell": true, "command": "for i in $(seq 9000); do echo \"$KEY\"; done", "env": { "KEY": "{{ key }}" } }),
        json!({}),
    );
    let script = json!({ "session": { "session_id": "s", "declare": [{ "var": "key", "sensitive": true }],
        "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [hidden, shown, many] }] }] } });
    home.file("s.yaml", &script.to_string());
    let finished = home.finish(RUN, "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(!finished.out.contains("top secret"), "{finished:?}");
    assert!(!home.export("one").to_string().contains("top secret"));
    assert_eq!(outcome(&finished, "c")["metadata"]["stdout_bytes"], 17);
    assert_eq!(live(&finished.events())[0], ("stdout", "a *** b\n"));
    let hidden = home.finish(["sessions", "output", "one", "c"], "");
    assert_eq!(hidden.code, Some(2), "{hidden:?}");
    assert!(hidden.err.contains("the output of the command `c` is not stored"), "{hidden:?}");
    let stored = home.finish(["sessions", "output", "one", "many"], "");
    assert_eq!(stored.out, "***\n".repeat(9000));
    let rows = fs::read(home.store()).unwrap();
    let is_line = |window: &[u8]| window == b"top secret value\ntop secret value";
    assert!(!rows.windows(33).any(is_line), "the store has only the value of the variable");
}

#[test]
fn much_output_is_bounded_and_its_beginning_and_end_are_stored() {
    let start = Instant::now();
    let (home, finished) = run_one(
        json!({ "shell": true, "command": "echo first; yes | head -c 200000000; echo last; printf 'a\\377\\033[31m' >&2", "output": { "much": "stdout", "bad": "stderr" } }),
        json!({}),
    );
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert!(start.elapsed() < TIMEOUT);
    let metadata = &outcome(&finished, "c")["metadata"];
    assert_eq!((&metadata["stdout_bytes"], &metadata["stdout_truncated"]), (&json!(200_000_011), &json!(true)));
    let stored = metadata["stdout"].as_str().unwrap();
    assert!(stored.starts_with("first\ny\n") && stored.ends_with("y\nlast\n"), "{stored}");
    assert!(stored.contains("\n[… 199934475 bytes left out …]\n") && stored.len() < 64 * 1024 + 50);
    assert_eq!(variable(&finished, "much").as_str().unwrap().len(), stored.len() - 1);
    assert_eq!((&metadata["stderr"], &metadata["stderr_not_utf8"]), (&json!("a\u{fffd}\u{1b}[31m"), &json!(true)));
    assert!(!finished.out.contains('\u{1b}'), "control characters are escaped");
    // What is shown while it runs is bounded, too, and says what is missing.
    let events = finished.events();
    let live: u64 = events
        .iter()
        .filter(|event| event["stream"] == "stdout")
        .map(|event| event["text"].as_str().unwrap().len() as u64 + event["left_out"].as_u64().unwrap_or_default())
        .sum();
    assert_eq!(live, 200_000_011);
    assert!(finished.out.len() < 20_000_000, "{}", finished.out.len());
    // The store keeps 8 MiB.
    assert!(fs::metadata(home.store()).unwrap().len() < 12_000_000);
    assert_eq!((&metadata["stdout_kept_truncated"], metadata["stderr_sha256"].is_null()), (&json!(true), true));
    let output = home.finish(["sessions", "output", "one", "-o", "out.txt"], "");
    assert_eq!((output.code, output.out.as_str()), (Some(0), ""), "{output:?}");
    assert!(output.err.contains("the command printed 200000011 bytes; "), "{output:?}");
    let kept = text(&home, "out.txt");
    assert_eq!(metadata["stdout_kept_bytes"], kept.len());
    assert!(kept.len() > 8 << 20 && kept.starts_with("first\n") && kept.ends_with("\nlast\n"));
    assert!(kept.contains(" bytes left out …]\n"));
    let bad = home.finish(["sessions", "output", "one", "c", "--stderr"], "");
    assert_eq!((bad.code, bad.out.as_str()), (Some(0), "a\u{fffd}␛[31m\n"), "{bad:?}");
    // Deleting the session deletes it.
    assert_eq!(home.finish(["sessions", "delete", "one"], "").code, Some(0));
    let gone = home.finish(["sessions", "output", "one"], "");
    assert_eq!(gone.code, Some(2), "{gone:?}");
}

#[test]
fn an_output_above_64_kib_is_stored_completely() {
    let (home, finished) = run_one(json!({ "command": ["seq", "100000"] }), json!({}));
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    let lines: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    let metadata = &outcome(&finished, "c")["metadata"];
    assert_eq!(
        (&metadata["stdout_kept_bytes"], &metadata["stdout_kept_truncated"]),
        (&json!(lines.len()), &Value::Null)
    );
    let output = home.finish(["sessions", "output", "on", "c"], "");
    assert_eq!((output.code, output.err.as_str()), (Some(0), ""));
    assert_eq!(output.out, lines);
    for (arguments, expected) in [
        (["sessions", "output", "one", "d"], "the session `one` has no command `d` that has ended"),
        (["sessions", "output", "two", "c"], "there is no session `two`"),
    ] {
        let error = home.finish(arguments, "");
        assert_eq!(error.code, Some(2), "{error:?}");
        assert!(error.err.contains(expected), "{error:?}");
    }
}
