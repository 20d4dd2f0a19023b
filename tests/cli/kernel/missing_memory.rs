//! A kernel that has lost its memory is told before the code runs, and the cells that run again are seen while they do.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::kernel::attached::script;
use crate::live_kernels::{LiveKernel, eventually};
use crate::process::{Home, Running, finished, wait};
use crate::pseudo_terminal::Terminal;
use crate::test_kernel::{kernel_python, kernel_variables};

const RUN: [&str; 7] = ["run", "script.yaml", "--session", "s", "--trust", "--model", "offline"];
const RESUME: [&str; 4] = ["sessions", "resume", "s", "--trust"];

/// Defines a variable, and goes on when the file `go` exists.
const WAITS: &str = "import os, time\nx = 41\nwhile not os.path.exists('go'):\n    time.sleep(0.01)";

fn command(home: &Home, arguments: &[&str], python: &Path) -> Command {
    let mut command = home.command(arguments);
    command.envs(kernel_variables(python));
    command
}

/// A session whose cells ran in a kernel that is gone, and that asks the person before its last cells. No file `go` exists.
fn home(python: &Path, kernel: &Value, codes: &[&str]) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    home.file("script.yaml", &script(kernel, codes));
    home.file("go", "");
    let waiting = finished(command(&home, &RUN, python), "");
    assert_eq!(waiting.code, Some(3), "{}", waiting.err);
    std::fs::remove_file(home.path().join("go")).unwrap();
    home
}

fn fresh(python: &Path) -> Home {
    home(python, &json!({}), &["x = 41", "?", WAITS, "print(x + 1)"])
}

fn rerun(python: &Path) -> Home {
    home(python, &json!({ "on_resume": "rerun" }), &[WAITS, "y = 1", "?", "print(x + y)"])
}

fn resumed_as_program(home: &Home, python: &Path) -> Running {
    let arguments: Vec<&str> = RESUME.into_iter().chain(["--json"]).collect();
    let mut running = Running::start(command(home, &arguments, python));
    assert!(running.send("yes"));
    running
}

fn resumed_at_terminal(home: &Home, python: &Path, term: &str) -> Terminal {
    let mut variables = vec![("TERM", term.to_owned()), ("NO_COLOR", "1".to_owned())];
    variables.extend(kernel_variables(python));
    let mut terminal = Terminal::start_with(home, &RESUME, &variables);
    terminal.answers("yes");
    terminal
}

/// Resumes the session in a pipe. Returns it with its standard error.
fn resumed_in_a_pipe(home: &Home, python: &Path, more: &[&str]) -> (Child, impl BufRead + use<>) {
    let arguments: Vec<&str> = more.iter().copied().chain(RESUME).collect();
    let mut command = command(home, &arguments, python);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"yes\n").unwrap();
    let err = BufReader::new(child.stderr.take().unwrap());
    (child, err)
}

fn read_until(err: &mut impl BufRead, part: &str) {
    let mut line = String::new();
    while !line.contains(part) {
        line.clear();
        assert_ne!(err.read_line(&mut line).unwrap(), 0, "`{part}` is not told");
    }
}

#[test]
fn the_loss_is_told_once_before_the_code_runs() {
    let Some(python) = kernel_python() else { return };
    let told = "the kernel starts with empty memory: what earlier cells defined is lost";
    // A program gets a stored event.
    let home = fresh(&python);
    let running = resumed_as_program(&home, &python);
    let warning = running.event_of("warning");
    assert_eq!((&warning["code"], &warning["message"]), (&"kernel-memory-gone".into(), &told.into()));
    let announced = running.event_of("effect_started");
    assert!(warning["seq"].as_u64() < announced["seq"].as_u64(), "{warning} {announced}");
    home.file("go", "");
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(!done.out.contains("kernel-memory-gone"), "it is told once: {}", done.out);
    // A terminal, and a pipe.
    let home = fresh(&python);
    let mut terminal = resumed_at_terminal(&home, &python, "xterm");
    terminal.until(&format!("! {told}"));
    home.file("go", "");
    terminal.until("  42");
    assert_eq!(terminal.end(), Some(0));
    assert_eq!(terminal.all_output().matches(told).count(), 1);
    let home = fresh(&python);
    let (mut child, mut err) = resumed_in_a_pipe(&home, &python, &[]);
    read_until(&mut err, &format!("warning: {told}"));
    home.file("go", "");
    assert_eq!(wait(&mut child).code(), Some(0));
}

#[test]
fn the_loss_of_a_kernel_that_others_started_is_told_once_before_the_code_runs() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    let codes = ["x = 1", "?", WAITS, "print(x + 1)"];
    home.file("script.yaml", &script(&json!({ "connection_file": "k.json" }), &codes));
    let kernel = LiveKernel::start(&python, home.path(), "k.json");
    let waiting = finished(command(&home, &RUN, &python), "");
    assert_eq!(waiting.code, Some(3), "{}", waiting.err);
    drop(kernel);
    let _another = LiveKernel::start(&python, home.path(), "k.json");
    let running = resumed_as_program(&home, &python);
    let message = running.event_of("warning")["message"].to_string();
    assert!(message.contains("this is not the kernel in which the earlier cells ran"), "{message}");
    running.event_of("effect_started");
    home.file("go", "");
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(!done.out.contains("kernel-memory-gone"), "{}", done.out);
}

#[test]
fn a_program_sees_the_cells_that_run_again() {
    let Some(python) = kernel_python() else { return };
    let home = rerun(&python);
    let running = resumed_as_program(&home, &python);
    let piece = |event: &Value| {
        assert!(event.get("seq").is_none() && event["effect_id"].is_string(), "{event}");
        ["cell_id", "number", "total", "ended"].map(|name| event[name].clone())
    };
    let first = running.event_of("cell_rerun");
    assert_eq!(piece(&first), [json!("cell-1"), json!(1), json!(2), Value::Null]);
    home.file("go", "");
    let done = running.finish();
    let pieces: Vec<_> = done.events().iter().filter(|event| event["type"] == "cell_rerun").map(piece).collect();
    let expected = [("cell-1", 1, json!("ok")), ("cell-2", 2, Value::Null), ("cell-2", 2, json!("ok"))];
    let expected = expected.map(|(id, number, ended)| [json!(id), json!(number), json!(2), ended]);
    assert_eq!(pieces, expected);
    assert_eq!(done.code, Some(0), "{}", done.err);
    // What is stored says it as well.
    let warnings: Vec<Value> = done.events().into_iter().filter(|event| event["type"] == "warning").collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0]["message"].as_str().unwrap().ends_with("earlier cells that were run again first: 2"));
}

#[test]
fn a_terminal_and_a_pipe_show_the_cell_that_runs_again() {
    let Some(python) = kernel_python() else { return };
    let told = "the kernel starts with empty memory; earlier cells that are run again first: 2";
    for term in ["xterm", "dumb"] {
        let home = rerun(&python);
        let mut terminal = resumed_at_terminal(&home, &python, term);
        terminal.until(&format!("! {told}"));
        terminal.until("running cell 1 of 2 again: cell-1");
        home.file("go", "");
        terminal.until("  42");
        assert_eq!(terminal.end(), Some(0));
    }
    for (language, parts) in [
        ("en", [told, "running cell 1 of 2 again: cell-1"]),
        ("zh", ["内核启动时内存是空的；先重新运行前面的 2 个单元格", "正在重新运行单元格 cell-1（第 1 个，共 2 个）"]),
    ] {
        let home = rerun(&python);
        let (mut child, mut err) = resumed_in_a_pipe(&home, &python, &["--lang", language]);
        parts.iter().for_each(|part| read_until(&mut err, part));
        home.file("go", "");
        assert_eq!(wait(&mut child).code(), Some(0));
    }
}

#[test]
fn the_cell_that_runs_next_is_one_of_those_that_run_again_if_it_ran_before() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    let mut whole: Value =
        serde_json::from_str(&script(&json!({ "on_resume": "rerun" }), &["x = 1", "y = x + 1", "?", "print('x', y)"]))
            .unwrap();
    let actions = whole.pointer_mut("/session/phases/0/topics/0/actions").and_then(Value::as_array_mut).unwrap();
    let again = json!({ "action_type": "exec", "action_id": "again", "config": { "codecell_id": "cell-1" } });
    actions.insert(3, again);
    home.file("script.yaml", &whole.to_string());
    let waiting = finished(command(&home, &RUN, &python), "");
    assert_eq!(waiting.code, Some(3), "{}", waiting.err);
    let done = resumed_as_program(&home, &python).finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    let ended: Vec<_> = done
        .events()
        .iter()
        .filter(|event| event["type"] == "cell_rerun")
        .map(|event| (event["cell_id"].clone(), event["ended"].clone()))
        .filter(|(_, ended)| !ended.is_null())
        .collect();
    assert_eq!(ended, [(json!("cell-1"), json!("ok")), (json!("cell-2"), json!("ok"))]);
    assert_eq!(home.export("s")["notebook"]["cells"][2]["outputs"][0]["text"], "x 2\n");
}

/// What ran of the earlier cells is not the memory that they left: whatever the person answers, the next code runs all of them first.
#[test]
fn cells_that_were_interrupted_when_they_ran_again_run_once_more_from_the_first_one() {
    let Some(python) = kernel_python() else { return };
    let begins = WAITS.replace("x = 41\n", "x = 41\nopen('begun', 'w').close()\n");
    let codes = ["y = 1", &begins, "?", "print(x + y)"];
    interrupted_and_run_again(&home(&python, &json!({ "on_resume": "rerun" }), &codes), &python);
    // A kernel that others started again keeps what it has, which is not all of it either.
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    home.file("script.yaml", &script(&json!({ "connection_file": "k.json", "on_resume": "rerun" }), &codes));
    home.file("go", "");
    let kernel = LiveKernel::start(&python, home.path(), "k.json");
    let waiting = finished(command(&home, &RUN, &python), "");
    assert_eq!(waiting.code, Some(3), "{}", waiting.err);
    drop(kernel);
    std::fs::remove_file(home.path().join("go")).unwrap();
    let _another = LiveKernel::start(&python, home.path(), "k.json");
    interrupted_and_run_again(&home, &python);
}

/// Resumes the session, interrupts the second of its two earlier cells when it runs again, and answers `again`.
fn interrupted_and_run_again(home: &Home, python: &Path) {
    let begun = home.path().join("begun");
    std::fs::remove_file(&begun).unwrap();
    let mut running = resumed_as_program(home, python);
    eventually("the code", || begun.exists().then_some(()));
    kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    let warning = running.event_of("warning");
    let told = "1 of 2 earlier cells ran again, then `cell-2` did not finish";
    assert!(warning["message"].as_str().unwrap().ends_with(told), "{warning}");
    assert_eq!(running.event_of("waiting")["for"], "interrupted_effect");
    home.file("go", "");
    assert!(running.send("again"));
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    let ended = |event: &Value| event["type"] == "cell_rerun" && event["ended"] == "ok";
    assert_eq!(done.events().iter().filter(|event| ended(event)).count(), 2, "{}", done.out);
    assert_eq!(home.export("s")["notebook"]["cells"][2]["outputs"][0]["text"], "42\n");
}

/// Code with a variable that cannot be listed, because of this `__repr__`.
fn unlistable(body: &str) -> String {
    format!("import os\nclass Table:\n    def __repr__(self):\n{body}\ntable = Table()\nprint('done')")
}

#[test]
fn a_kernel_that_is_lost_while_its_variables_are_listed_is_reported_and_the_cell_has_succeeded() {
    let Some(python) = kernel_python() else { return };
    let endless =
        "        import signal\n        signal.signal(signal.SIGINT, signal.SIG_IGN)\n        while True: pass";
    for (body, told) in [
        (
            endless,
            "the code of the cell has ended, but listing its variables did not, so its kernel was ended: all variables are lost",
        ),
        (
            "        os._exit(3)",
            "the kernel died while the variables were listed, after the code of the cell had ended: all variables are lost",
        ),
    ] {
        let home = Home::new();
        home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
        home.file("script.yaml", &script(&json!({}), &[&unlistable(body), "print('table' in globals())"]));
        let done = finished(command(&home, &RUN, &python), "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(done.err.contains(&format!("warning: {told}")), "{}", done.err);
        assert!(done.err.contains("help: the `__repr__` of a variable may not end"), "{}", done.err);
        // The next cell runs in a new kernel, which is told as well.
        assert!(done.err.contains("the kernel starts with empty memory"), "{}", done.err);
        let cells = &home.export("s")["notebook"]["cells"];
        assert_eq!((&cells[0]["ended"], &cells[0]["outputs"][0]["text"]), (&"ok".into(), &"done\n".into()));
        assert_eq!(cells[1]["outputs"][0]["text"], "False\n");
    }
}

#[test]
fn a_kernel_that_others_started_stays_when_listing_its_variables_does_not_end() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    let body = "        while not os.path.exists('go'):\n            try:\n                while not os.path.exists('go'): pass\n            except BaseException: pass\n        return 'x'";
    home.file("script.yaml", &script(&json!({ "connection_file": "k.json" }), &[&unlistable(body)]));
    let mut kernel = LiveKernel::start(&python, home.path(), "k.json");
    let done = finished(command(&home, &RUN, &python), "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let told =
        "warning: the code of the cell has ended, but listing its variables did not, and may still run in the kernel";
    assert!(done.err.contains(told), "{}", done.err);
    assert_eq!(home.export("s")["notebook"]["cells"][0]["ended"], "ok");
    home.file("go", "");
    kernel.run("assert table");
    assert!(kernel.is_running());
}

#[test]
fn cells_that_lose_the_kernel_again_when_their_variables_are_listed_are_reported() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    let codes = [unlistable("        os._exit(3)"), "print('table' in globals())".to_owned()];
    home.file("script.yaml", &script(&json!({ "on_resume": "rerun" }), &codes.each_ref().map(String::as_str)));
    let done = finished(command(&home, &RUN, &python), "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let told = "0 of 1 earlier cells ran again, then the kernel died while running `cell-1`";
    assert!(done.err.contains(told), "{}", done.err);
}
