//! Tests of the progress of steps at a terminal: states, times, the lines of steps that run, and that they disturb nothing.

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
