//! What code prints is seen while it runs, and Ctrl-C at a terminal interrupts only the code.

use serde_json::Value;

use crate::kernel::bench::is_running;
use crate::process::{Home, Running};
use crate::pseudo_terminal::{CTRL_C, Terminal};
use crate::test_kernel::{kernel_python, kernel_variables};

const ALLOWED: &str = "[project]\nallow = [\"exec\"]\n";

/// Prints, and goes on when the test has created a file.
const WAITS: &str = "
import os, sys, time
open('pid', 'w').write(str(os.getpid()))
print('first line')
print('no end', end='', flush=True)
print('a warning', file=sys.stderr, flush=True)
for step in range(3):
    print(f'\\rstep {step}', end='', file=sys.stderr, flush=True)
    time.sleep(0.05)
while not os.path.exists('go'):
    time.sleep(0.01)
print()
print('last line')
";

/// Prints parts of a line, the next when the test has created the next file. One part ends with the beginning of a sensitive value.
const PARTS: &str = "
import os, time
for number, part in enumerate(['partial', ' line and hun', 'ter', '2 now\\n', '\\rstep 1', '\\rstep 2']):
    print(part, end='', flush=True)
    while not os.path.exists(f'go{number}'):
        time.sleep(0.01)
";

fn home_of_parts() -> Home {
    let home = home(&[PARTS]);
    let mut script: Value = serde_json::from_str(&script(&[PARTS])).unwrap();
    script["session"]["declare"] = serde_json::json!([{ "var": "pin", "value": "hunter2", "sensitive": true }]);
    home.file("script.yaml", &script.to_string());
    home
}

/// Runs until it is interrupted.
const ENDLESS: &str = "
import time
x = 41
print('it has begun')
while True:
    time.sleep(0.01)
";

/// Does not let itself be interrupted.
const STUBBORN: &str = "
import signal, time
y = 1
signal.signal(signal.SIGINT, lambda *_: print('no'))
print('it has begun')
while True:
    time.sleep(0.01)
";

/// A script that runs each of these codes.
fn script(codes: &[&str]) -> String {
    let add = |(number, code): (usize, &&str)| {
        serde_json::json!({ "action_type": "add", "action_id": format!("a{number}"),
        "config": { "shot_type": "action", "content": code, "metadata": { "should_execute": true } } })
    };
    let actions: Vec<Value> = codes.iter().enumerate().map(add).collect();
    let topics = serde_json::json!([{ "topic_id": "t", "actions": actions }]);
    serde_json::json!({ "session": { "session_id": "code", "phases": [{ "phase_id": "p", "topics": topics }] } })
        .to_string()
}

fn home(codes: &[&str]) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    home.file("script.yaml", &script(codes));
    home
}

const RUN: [&str; 7] = ["run", "script.yaml", "--session", "s", "--trust", "--model", "offline"];

fn terminal(home: &Home, python: &std::path::Path) -> Terminal {
    let mut variables = vec![("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned())];
    variables.extend(kernel_variables(python));
    Terminal::start_with(home, &RUN, &variables)
}

#[test]
fn what_code_prints_comes_as_events_while_it_runs_and_is_kept_as_before() {
    let Some(python) = kernel_python() else { return };
    let home = home(&[WAITS]);
    let mut command = home.command(RUN.iter().chain(&["--json"]));
    command.envs(kernel_variables(&python));
    let running = Running::start(command);
    let (mut text, mut bar) = (String::new(), String::new());
    while !text.contains("first line\n") || !bar.contains("step 1") {
        let piece = running.event_of("cell_output");
        assert!(
            piece.get("seq").is_none() && piece["cell_id"] == "cell-1" && piece["effect_id"].is_string(),
            "{piece}"
        );
        let to = if piece["stream"] == "stderr" { &mut bar } else { &mut text };
        to.push_str(piece["text"].as_str().unwrap());
    }
    home.file("go", "");
    let mut seen = vec![];
    while let Some(event) = running.event() {
        seen.push(event);
    }
    let last = seen.iter().rfind(|event| event["type"] == "cell_output" && event["stream"] == "stdout").unwrap();
    assert!(last["text"].as_str().unwrap().ends_with("last line\n"), "{last}");
    let cell = seen.iter().rfind(|event| event["type"] == "cell").unwrap();
    assert_eq!(cell["outputs"][0]["text"], "first line\nno end", "{cell}");
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn an_unfinished_line_comes_as_events_that_are_its_parts_without_a_sensitive_value() {
    let Some(python) = kernel_python() else { return };
    let home = home_of_parts();
    let mut command = home.command(RUN.iter().chain(&["--json"]));
    command.envs(kernel_variables(&python));
    let running = Running::start(command);
    let mut text = String::new();
    let parts =
        [(0, "partial"), (1, "partial line and "), (3, "partial line and *** now\n"), (4, "\rstep 1"), (5, "\rstep 2")];
    for (number, end) in parts {
        while !text.ends_with(end) {
            text.push_str(running.event_of("cell_output")["text"].as_str().unwrap());
        }
        if number == 1 {
            // What may be a sensitive value is not shown before it is known.
            home.file("go2", "");
        }
        home.file(&format!("go{number}"), "");
    }
    while let Some(event) = running.event() {
        assert_ne!(event["type"], "cell_output", "everything was shown: {event}");
    }
    assert_eq!(text, "partial line and *** now\n\rstep 1\rstep 2");
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn a_terminal_shows_an_unfinished_line_and_continues_it() {
    let Some(python) = kernel_python() else { return };
    let home = home_of_parts();
    let mut terminal = terminal(&home, &python);
    home.file("go2", "");
    for (number, part) in [(0, "  partial"), (1, " line and "), (3, "*** now\r\n"), (4, "  step 1"), (5, "  step 2")] {
        terminal.until(part);
        home.file(&format!("go{number}"), "");
    }
    assert_eq!(terminal.end(), Some(0));
    let shown = terminal.all_output();
    assert!(shown.contains("  partial line and *** now\r\n  step 1\r\u{1b}[2K  step 2\r\n"), "{shown:?}");
}

#[test]
fn a_terminal_shows_output_once_while_the_code_runs_and_a_progress_bar_on_one_line() {
    let Some(python) = kernel_python() else { return };
    let home = home(&[WAITS]);
    let mut terminal = terminal(&home, &python);
    terminal.until("first line");
    terminal.until("step 1");
    home.file("go", "");
    terminal.until("last line");
    assert_eq!(terminal.end(), Some(0));
    let shown = terminal.all_output();
    let pid = std::fs::read_to_string(home.path().join("pid")).unwrap();
    assert!(!is_running(&pid), "the kernel ended with the session");
    for once in ["  first line\r\n", "  a warning\r\n", "last line\r\n"] {
        assert_eq!(shown.matches(once).count(), 1, "{once:?} in {shown:?}");
    }
    assert!(shown.contains("\r\u{1b}[2K  step 1"), "{shown:?}");
}

#[test]
fn ctrl_c_interrupts_the_code_and_the_session_asks_with_the_memory_and_the_output_kept() {
    let Some(python) = kernel_python() else { return };
    let home = home(&[ENDLESS, "print('x is', x + 1)"]);
    let mut terminal = terminal(&home, &python);
    terminal.until("  it has begun");
    terminal.types(CTRL_C);
    terminal.until("the code is being interrupted; press Ctrl-C again to stop the session");
    terminal.answers("skip");
    terminal.until("x is 42");
    assert_eq!(terminal.end(), Some(0));
    let export = home.export("s");
    let cell = &export["notebook"]["cells"][0];
    assert_eq!((&cell["ended"], &cell["outputs"][0]["text"]), (&"interrupted".into(), &"it has begun\n".into()));
}

#[test]
fn code_that_was_interrupted_runs_again_when_the_person_says_so() {
    let Some(python) = kernel_python() else { return };
    let home = home(&[
        "import os, time\nprint('try')\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nprint('went on')",
    ]);
    let mut terminal = terminal(&home, &python);
    terminal.until("  try");
    terminal.types(CTRL_C);
    terminal.until("It is not known how far it got.\r\n\r\n    import os, time\r\n    print('try')\r\n");
    terminal.until("Answer `again` to run it again");
    terminal.prompt();
    home.file("go", "");
    terminal.types("again\r");
    terminal.until("went on");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn the_loss_of_the_variables_is_said_when_code_ignores_ctrl_c() {
    let Some(python) = kernel_python() else { return };
    let home = home(&[STUBBORN, "print('y' in globals())"]);
    let mut terminal = terminal(&home, &python);
    terminal.until("  it has begun");
    terminal.types(CTRL_C);
    terminal.until("! the code of the cell ignored the interrupt, so its kernel was ended: all variables are lost");
    terminal.until("This operation was interrupted");
    terminal.answers("skip");
    terminal.until("  False");
    assert_eq!(terminal.end(), Some(0));
    let cell = &home.export("s")["notebook"]["cells"][0];
    assert_eq!(cell["ended"], "interrupted");
    let note = cell["outputs"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
    assert!(note.contains("the code ignored the interrupt, so its kernel was ended"), "{note}");
}

#[test]
fn a_second_ctrl_c_stops_the_session_which_asks_about_the_code_when_it_is_resumed() {
    let Some(python) = kernel_python() else { return };
    let home = home(&[STUBBORN]);
    let mut terminal = terminal(&home, &python);
    terminal.until("  it has begun");
    terminal.types(CTRL_C);
    terminal.until("press Ctrl-C again");
    terminal.types(CTRL_C);
    terminal.until("Resume with:");
    assert_eq!(terminal.end(), Some(130));
    let resumed = home.finish(["sessions", "resume", "s", "--trust", "--json"], "");
    let waiting = resumed.events().into_iter().find(|event| event["type"] == "waiting").unwrap();
    assert_eq!(waiting["for"], "interrupted_effect");
}
