//! Tests of the progress of steps at a terminal: states, times, the lines of steps that run, and that they disturb nothing.

use crate::behavior_process::Process;
use crate::process::{Home, Running};
use crate::pseudo_terminal::{CTRL_C, Terminal};
use serde_json::{Value, json};

/// What erases the line of a step that runs.
const ERASE: &str = "\u{1b}[2K";

/// Waits for this file.
fn wait_for(file: &str) -> String {
    format!("while [ ! -e {file} ]; do sleep 0.01; done")
}

fn command(id: &str, line: &str, more: Value) -> Value {
    let config = json!({ "shell": true, "command": line });
    let mut action = json!({ "action_type": "command", "action_id": id, "config": config });
    action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    action
}

fn project(actions: &Value) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"command\", \"write_file\"]\n");
    let script = json!({ "session": { "session_id": "s", "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }] } });
    home.file("s.yaml", &script.to_string());
    home
}

/// A workflow that waits for the file `go`, and then for a decision.
fn workflow() -> Home {
    project(&json!([
        command("build", &format!("echo compiling; {}", wait_for("go")), json!({})),
        command("check", "exit 3", json!({ "on_exit": { "failed": "next" } })),
        { "action_type": "write_file", "action_id": "note", "config": { "path": "out.txt", "content": "x" } },
        { "action_type": "approval", "action_id": "release", "config": { "prompt": "Release it?" } },
        { "action_type": "ai_say", "action_id": "bye", "config": { "content": "All done.", "delivery": "verbatim" } },
    ]))
}

const RUN: [&str; 5] = ["run", "s.yaml", "--trust", "--session", "one"];

#[test]
fn steps_are_shown_with_their_states_and_times() {
    let home = workflow();
    let mut terminal = Terminal::start(&home, &RUN, false);
    terminal.until("  compiling");
    // The line of the step moves and counts.
    terminal.until(" build  0.2s");
    terminal.until(" build  0.4s");
    home.file("go", "");
    terminal.until("✓ build  ");
    terminal.until("✗ check  failed  0.");
    terminal.until("✓ note  0.");
    terminal.until("… release  waits for a decision");
    terminal.until("Release it?");
    terminal.prompt();
    let asked = terminal.all_output().len();
    terminal.types("approve");
    terminal.until("approve");
    assert!(!terminal.all_output()[asked..].contains(ERASE), "nothing moves while a person types");
    terminal.types("\r");
    terminal.until("✓ release  approved  ");
    terminal.until("All done.");
    assert_eq!(terminal.end(), Some(0));
    let shown = terminal.all_output();
    assert!(shown.contains(ERASE) && !shown.contains("\u{1b}[32m"), "no colors: {shown}");
    assert_eq!(shown.matches("✓ build").count(), 1, "{shown}");
}

#[test]
fn steps_have_colors_where_the_terminal_has() {
    let home = project(&json!([command("build", "exit 0", json!({})), command("test", "exit 1", json!({}))]));
    let mut terminal = Terminal::start(&home, &RUN, true);
    terminal.until("\u{1b}[32m✓ build");
    terminal.until("\u{1b}[31m✗ test  failed");
    assert_eq!(terminal.end(), Some(1));
}

#[test]
fn an_interrupted_step_leaves_no_line_and_keys_are_echoed_again() {
    let home = workflow();
    let mut terminal = Terminal::start(&home, &RUN, false);
    terminal.until(" build  0.2s");
    terminal.types(CTRL_C);
    terminal.until("interrupted; nothing is lost");
    // The end also checks the settings of the terminal.
    assert_eq!(terminal.end(), Some(130));
    let shown = terminal.all_output();
    let last = shown.rsplit_once(ERASE).unwrap().1;
    assert!(!last.contains("build"), "{shown:?}");
    assert!(!shown.contains("^C"), "{shown:?}");
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_shows_only_the_results() {
    let home = workflow();
    home.file("go", "");
    let mut terminal = Terminal::start_as(&home, &RUN, false, "dumb");
    terminal.until("✓ build  ");
    terminal.until("Release it?");
    let shown = terminal.all_output();
    assert!(!shown.contains(ERASE) && !shown.contains('\u{1b}'), "{shown:?}");
    terminal.answers("approve");
    terminal.until("All done.");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn no_progress_is_written_where_no_person_reads() {
    for more in [&["--json"][..], &[]] {
        let home = workflow();
        home.file("go", "");
        let mut running = Running::start(home.command(RUN.iter().chain(more).copied()));
        running.feed(b"approve\n".to_vec());
        let finished = running.finish();
        for text in [&finished.out, &finished.err] {
            assert!(!text.contains('✓') && !text.contains('\u{1b}'), "{text}");
        }
    }
}

/// A loop whose behavior server takes its time: it never answers, and is given up after three seconds.
fn asks_slowly() -> (Home, Process) {
    let server = Process::start(&["--fault", "hang"]);
    let home = Home::new();
    let (url, first) = (&server.url, "first_byte_timeout = \"3s\"");
    home.file("bcc-script.toml", &format!("[behavior_servers.gauges]\nurl = \"{url}\"\n{first}\n"));
    let action = json!({ "action_type": "behavior_loop", "action_id": "l", "config": { "server": "gauges" } });
    let topics = json!([{ "topic_id": "t", "actions": [action] }]);
    let script = json!({ "session": { "session_id": "s", "phases": [{ "phase_id": "p", "topics": topics }] } });
    home.file("s.yaml", &script.to_string());
    (home, server)
}

#[test]
fn something_moves_while_a_source_is_asked_and_is_erased_before_anything_else_is_written() {
    let (home, _server) = asks_slowly();
    let mut terminal = Terminal::start(&home, &RUN, false);
    terminal.until("the behavior server gauges is asked  0.");
    terminal.until("the behavior server gauges is asked  1.");
    terminal.until("error: ");
    let shown = terminal.all_output();
    let before = &shown[..shown.find("error: ").unwrap()];
    let (line, rest) = before.rsplit_once("is asked").unwrap();
    assert!(line.contains(ERASE) && rest.contains(ERASE), "the line is erased: {before:?}");
    assert_eq!(terminal.end(), Some(3));
}

#[test]
fn nothing_moves_without_a_terminal_that_can_erase_a_line() {
    let (home, server) = asks_slowly();
    let piped = home.finish(RUN, "");
    assert!(!piped.out.contains("is asked") && !piped.err.contains("is asked"), "{}{}", piped.out, piped.err);
    drop(server);
    let mut terminal = Terminal::start_as(&home, &["run", "s.yaml", "--trust"], false, "dumb");
    terminal.until("error: ");
    assert!(!terminal.all_output().contains("is asked"));
    assert_eq!(terminal.end(), Some(2));
}
