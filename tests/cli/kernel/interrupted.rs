//! Ctrl-C while code runs, where the session is not driven at a terminal: the first one interrupts the code, whose outputs are stored, and
//! the question is open afterwards.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::live_kernels::eventually;
use crate::process::{Finished, Home, Running, binary, finished, wait};
use crate::pseudo_terminal::{CTRL_C, CTRL_D, Terminal};
use crate::test_kernel::{kernel_python, kernel_variables};

const RUN: [&str; 7] = ["run", "script.yaml", "--session", "s", "--trust", "--model", "offline"];

/// Prints a line, creates a file, and runs until it is interrupted.
const ENDLESS: &str = "
import time
x = 41
print('it has begun', flush=True)
open('begun', 'w').close()
while True:
    time.sleep(0.01)
";

/// Does not let itself be interrupted, but says that it was.
const STUBBORN: &str = "
import signal, time
signal.signal(signal.SIGINT, lambda *_: print('no', flush=True))
print('it has begun', flush=True)
while True:
    time.sleep(0.01)
";

const QUESTION: &str =
    "This operation was interrupted: runs the code of `cell-1` (exec). It is not known how far it got.";

/// The code as the question shows it.
const SHOWN_CODE: &str = "\n\n    import time\n    x = 41\n    print('it has begun', flush=True)\n    open('begun', 'w').close()\n    … 2 more lines\n\n";

/// A session that runs this code and another one, and then asks the person.
fn home(code: &str) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    let add = |id: &str, code: &str| {
        json!({ "action_type": "add", "action_id": id,
        "config": { "shot_type": "action", "content": code.trim_start(), "metadata": { "should_execute": true } } })
    };
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "What now?" } });
    let actions = json!([add("a", code), add("b", "print('x is', x + 1)"), ask]);
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }]);
    home.file("script.yaml", &json!({ "session": { "session_id": "code", "phases": phases } }).to_string());
    home
}

fn command(home: &Home, arguments: &[&str], python: &Path) -> Command {
    let mut command = home.command(arguments);
    command.envs(kernel_variables(python));
    command
}

fn json_command(home: &Home, python: &Path) -> Command {
    json_command_of(home, python, &RUN)
}

fn json_command_of(home: &Home, python: &Path, arguments: &[&str]) -> Command {
    command(home, &arguments.iter().copied().chain(["--json"]).collect::<Vec<_>>(), python)
}

fn interrupt(id: u32) {
    kill_process(Pid::from_raw(id.cast_signed()).unwrap(), Signal::INT).unwrap();
}

fn wait_for_code(home: &Home) {
    eventually("the code", || home.path().join("begun").exists().then_some(()));
}

/// The only open request.
fn open_request(home: &Home) -> Value {
    let listed = home.finish(["requests", "list", "--json"], "");
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let requests = listed["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 1, "{listed}");
    requests[0].clone()
}

/// The cell keeps what was printed, and the question about it is open.
fn check_is_asked(home: &Home) {
    let cell = &home.export("s")["notebook"]["cells"][0];
    assert_eq!(
        (&cell["ended"], &cell["outputs"][0]["text"]),
        (&"interrupted".into(), &"it has begun\n".into()),
        "{cell}"
    );
    let request = open_request(home);
    assert_eq!(request["kind"], "interrupted_effect");
    assert_eq!(request["decisions"], json!(["again", "skip", "fail"]));
    let prompt = request["prompt"].as_str().unwrap();
    assert!(prompt.starts_with(&format!("{QUESTION}{SHOWN_CODE}Answer `again`")), "{prompt}");
}

/// Resumes the session, which asks, and skips the code.
fn resume(home: &Home, python: &Path) -> Finished {
    let resumed = finished(command(home, &["sessions", "resume", "s", "--trust", "--json"], python), "skip\n");
    let events = resumed.events();
    let waiting = events.iter().find(|event| event["type"] == "waiting").unwrap();
    assert_eq!(waiting["for"], "interrupted_effect");
    assert!(waiting["prompt"].as_str().unwrap().starts_with(QUESTION), "{waiting}");
    let last = events.iter().rfind(|event| event["type"] == "waiting").unwrap();
    assert_eq!((&last["for"], resumed.code), (&"input".into(), Some(3)), "{}", resumed.err);
    resumed
}

#[test]
fn in_a_pipe_the_output_is_stored_and_lines_that_were_written_before_do_not_answer_the_question() {
    let Some(python) = kernel_python() else { return };
    let home = home(ENDLESS);
    let mut running = Running::start(command(&home, &RUN, &python));
    assert!(running.send("skip\nfail"));
    wait_for_code(&home);
    interrupt(running.id());
    let stopped = running.finish();
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    assert!(stopped.out.contains(&format!("{QUESTION}{SHOWN_CODE}Answer `again`")), "{}", stopped.out);
    assert!(stopped.out.contains("it has begun"), "{}", stopped.out);
    let told = "the code was interrupted, and what it printed is stored; the session asks what to do when it is resumed: bcc-script sessions resume s";
    assert!(stopped.err.contains(told), "{}", stopped.err);
    check_is_asked(&home);
    resume(&home, &python);
}

#[test]
fn a_program_gets_the_cell_and_the_question_and_answers_it_while_the_kernel_keeps_its_memory() {
    let Some(python) = kernel_python() else { return };
    let home = home(ENDLESS);
    let mut running = Running::start(json_command(&home, &python));
    running.event_of("cell_output");
    interrupt(running.id());
    let cell = running.event_of("cell");
    assert_eq!(
        (&cell["ended"], &cell["outputs"][0]["text"]),
        (&"interrupted".into(), &"it has begun\n".into()),
        "{cell}"
    );
    let waiting = running.event_of("waiting");
    assert_eq!(waiting["for"], "interrupted_effect");
    assert!(waiting["prompt"].as_str().unwrap().contains(SHOWN_CODE), "{waiting}");
    check_is_asked(&home);
    assert!(running.send(&json!({ "user": "skip", "answer_id": waiting["answer_id"] }).to_string()));
    while running.event_of("cell")["outputs"][0]["text"] != "x is 42\n" {}
    assert_eq!(running.finish().code, Some(3));
}

#[test]
fn the_question_does_not_show_a_sensitive_value_that_is_in_the_code() {
    let Some(python) = kernel_python() else { return };
    let home = home("import time\nname = 'hunter2'\nprint('on', flush=True)\nwhile True:\n    time.sleep(0.01)");
    let script = std::fs::read_to_string(home.path().join("script.yaml")).unwrap();
    let mut script: Value = serde_json::from_str(&script).unwrap();
    script["session"]["declare"] = json!([{ "var": "pin", "value": "hunter2", "sensitive": true }]);
    home.file("script.yaml", &script.to_string());
    let mut running = Running::start(json_command(&home, &python));
    running.event_of("cell_output");
    interrupt(running.id());
    let prompt = running.event_of("waiting")["prompt"].to_string();
    assert!(prompt.contains("name = '***'") && !prompt.contains("hunter2"), "{prompt}");
    // The question is repeated when its answer is not understood.
    assert!(running.send("what?"));
    assert_eq!(running.event_of("warning")["code"], "unexpected-answer");
    assert_eq!(running.event_of("waiting")["prompt"].to_string(), prompt);
}

/// A kernel that starts forever, until another one is installed in its place.
#[test]
fn while_the_kernel_starts_ctrl_c_stops_the_session_and_nobody_is_asked_about_code_that_has_not_begun() {
    let Some(python) = kernel_python() else { return };
    let home = home("print('it has begun')");
    let script = std::fs::read_to_string(home.path().join("script.yaml")).unwrap();
    let mut script: Value = serde_json::from_str(&script).unwrap();
    script["session"]["kernel"] = json!({ "name": "slow" });
    home.file("script.yaml", &script.to_string());
    let install = |argv: Value| {
        let spec = json!({ "argv": argv, "display_name": "Slow", "language": "python" });
        home.put("jupyter/kernels/slow/kernel.json", spec.to_string());
    };
    let command = |arguments: &[&str]| {
        let mut command = json_command_of(&home, &python, arguments);
        command.env("JUPYTER_PATH", home.path().join("jupyter"));
        command
    };
    let starting = home.path().join("starting");
    install(json!(["sh", "-c", "echo > \"$0\"; exec sleep 1000", starting]));
    let running = Running::start(command(&RUN));
    eventually("the kernel", || starting.exists().then_some(()));
    interrupt(running.id());
    let stopped = running.finish();
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    let told = "interrupted; nothing is lost. Resume with: bcc-script sessions resume s";
    assert!(stopped.err.contains(told) && !stopped.err.contains("code"), "{}", stopped.err);
    // What was done before is stored: the cell is there.
    assert_eq!(home.export("s")["notebook"]["cells"][0]["content"], "print('it has begun')");
    install(json!([python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]));
    let resumed = finished(command(&["sessions", "resume", "s", "--trust"]), "");
    let events = resumed.events();
    let waiting = events.iter().find(|event| event["type"] == "waiting").unwrap();
    assert_eq!((&waiting["for"], resumed.code), (&"input".into(), Some(3)), "{}", resumed.err);
    let cells = &home.export("s")["notebook"]["cells"];
    assert_eq!(cells[0]["outputs"][0]["text"], "it has begun\n", "{cells}");
}

#[test]
fn the_session_of_a_program_that_does_not_answer_waits() {
    let Some(python) = kernel_python() else { return };
    let home = home(ENDLESS);
    let mut running = Running::start(json_command(&home, &python));
    running.end_input();
    running.event_of("cell_output");
    interrupt(running.id());
    let waits = running.finish();
    assert_eq!(waits.code, Some(3), "{}", waits.err);
    check_is_asked(&home);
    resume(&home, &python);
}

#[test]
fn a_second_ctrl_c_stops_the_session_of_a_program_at_once() {
    let Some(python) = kernel_python() else { return };
    let home = home(STUBBORN);
    let running = Running::start(json_command(&home, &python));
    running.event_of("cell_output");
    interrupt(running.id());
    while running.event_of("cell_output")["text"] != "no\n" {}
    interrupt(running.id());
    let stopped = running.finish();
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    assert!(stopped.err.contains("press Ctrl-C again to stop the session"), "{}", stopped.err);
    assert!(stopped.err.contains("interrupted while code ran: what it has printed is not stored"), "{}", stopped.err);
    resume(&home, &python);
}

#[test]
fn a_signal_that_stops_the_session_while_code_runs_says_what_is_not_stored() {
    let Some(python) = kernel_python() else { return };
    let home = home(ENDLESS);
    let running = Running::start(json_command(&home, &python));
    wait_for_code(&home);
    kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
    let stopped = running.finish();
    assert!(stopped.err.contains("interrupted while code ran: what it has printed is not stored"), "{}", stopped.err);
    assert!(home.export("s")["notebook"]["cells"][0]["outputs"].is_null());
}

/// Runs the session with `--json`, whose reader leaves when the code runs. Returns what standard error says.
fn reader_leaves(home: &Home, python: &Path, code: i32, then: impl FnOnce(u32)) -> String {
    let mut command = json_command(home, python);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"cell_output\"") {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "no output");
    }
    drop(output);
    then(child.id());
    let err = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert_eq!(wait(&mut child).code(), Some(code), "{err}");
    err
}

#[test]
fn the_output_is_stored_although_ctrl_c_also_ended_the_reader() {
    let Some(python) = kernel_python() else { return };
    let home = home(ENDLESS);
    let err = reader_leaves(&home, &python, 130, interrupt);
    assert!(err.contains("the code was interrupted, and what it printed is stored"), "{err}");
    check_is_asked(&home);
    resume(&home, &python);
}

#[test]
fn the_output_is_stored_when_the_reader_leaves_while_code_prints() {
    let Some(python) = kernel_python() else { return };
    let home = home("import time\nwhile True:\n    print('a line', flush=True)\n    time.sleep(0.01)");
    let err = reader_leaves(&home, &python, 3, |_| {});
    assert!(err.contains("cannot write to standard output") && err.contains("Resume with:"), "{err}");
    let cell = &home.export("s")["notebook"]["cells"][0];
    assert_eq!(cell["ended"], "interrupted");
    assert!(cell["outputs"][0]["text"].as_str().unwrap().starts_with("a line\n"), "{cell}");
    assert_eq!(open_request(&home)["kind"], "interrupted_effect");
}

/// A pipeline of a shell in a terminal. `{run}` is the program with its arguments.
fn pipeline(home: &Home, python: &Path, shell: &str) -> Terminal {
    let run = [binary().display().to_string()].into_iter().chain(RUN.map(str::to_owned)).collect::<Vec<_>>().join(" ");
    let mut variables = vec![("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned())];
    variables.extend(kernel_variables(python));
    let terminal = Terminal::start_program(home, "sh", &["-c", &shell.replace("{run}", &run)], &variables);
    wait_for_code(home);
    terminal.types(CTRL_C);
    terminal
}

#[test]
fn a_person_who_keeps_a_log_of_the_session_is_asked() {
    let Some(python) = kernel_python() else { return };
    let home = home(ENDLESS);
    let mut terminal = pipeline(&home, &python, "{run} | (trap '' INT; exec tee log)");
    terminal.until(QUESTION);
    terminal.types("skip\n");
    terminal.until("x is 42");
    terminal.until("What now?");
    terminal.types(CTRL_D);
    terminal.until("Resume with:");
    // The shell ends as Ctrl-C ends it.
    terminal.end();
    assert!(std::fs::read_to_string(home.path().join("log")).unwrap().contains("it has begun"));
}

#[test]
fn the_output_is_stored_when_ctrl_c_ends_the_rest_of_a_pipeline() {
    let Some(python) = kernel_python() else { return };
    for shell in ["{run} | tee log", "(printf 'skip\\n'; exec cat) | {run}", "{run} < /dev/null"] {
        let home = home(ENDLESS);
        let mut terminal = pipeline(&home, &python, shell);
        terminal.until("the code was interrupted, and what it printed is stored");
        terminal.end();
        check_is_asked(&home);
    }
}

#[test]
fn the_result_of_code_that_has_ended_stays_when_listing_its_variables_is_interrupted() {
    let Some(python) = kernel_python() else { return };
    let home = home(
        "
import signal, time
class Table:
    def __repr__(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        open('begun', 'w').close()
        while True:
            time.sleep(0.01)
table = Table()
x = 41
print('it has ended')
",
    );
    let running = Running::start(json_command(&home, &python));
    wait_for_code(&home);
    interrupt(running.id());
    let waits = running.finish();
    assert_eq!(waits.code, Some(3), "{}", waits.err);
    let cells = &home.export("s")["notebook"]["cells"];
    assert_eq!((&cells[0]["ended"], &cells[0]["outputs"][0]["text"]), (&"ok".into(), &"it has ended\n".into()));
    // Its kernel was ended, and nothing is asked about the code.
    assert_eq!(cells[1]["outputs"][0]["ename"], "NameError");
    assert_eq!(open_request(&home)["kind"], "input");
}
