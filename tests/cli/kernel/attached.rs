//! A session uses a kernel that runs already, over its connection file, and leaves it running.

use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::live_kernels::{Killed, LiveKernel};
use crate::process::{Finished, Home, Running, finished};
use crate::pseudo_terminal::{CTRL_C, Terminal};
use crate::test_kernel::{kernel_python, kernel_variables};

const RUN: [&str; 7] = ["run", "script.yaml", "--session", "s", "--trust", "--model", "offline"];
const RESUME: [&str; 5] = ["sessions", "resume", "s", "--trust", "--json"];

/// A script whose session has this kernel and runs these codes. Before `?`, it asks the person.
pub fn script(kernel: &Value, codes: &[&str]) -> String {
    let action = |(number, code): (usize, &&str)| match *code {
        "?" => {
            json!({ "action_type": "ai_ask", "action_id": format!("a{number}"), "config": { "content": "Ready?" } })
        }
        code => json!({ "action_type": "add", "action_id": format!("a{number}"),
            "config": { "shot_type": "action", "content": code, "metadata": { "should_execute": true } } }),
    };
    let actions: Vec<Value> = codes.iter().enumerate().map(action).collect();
    let topics = json!([{ "topic_id": "t", "actions": actions }]);
    let phases = json!([{ "phase_id": "p", "topics": topics }]);
    json!({ "session": { "session_id": "code", "kernel": kernel, "phases": phases } }).to_string()
}

fn home(kernel: &Value, codes: &[&str]) -> Home {
    let home = Home::new();
    home.file("bcc-script.toml", "[project]\nallow = [\"exec\"]\n");
    home.file("script.yaml", &script(kernel, codes));
    home
}

fn command(home: &Home, arguments: &[&str], python: &Path) -> Command {
    let mut command = home.command(arguments);
    command.envs(kernel_variables(python)).env("JUPYTER_RUNTIME_DIR", home.path().join("runtime"));
    command
}

fn run(home: &Home, python: &Path) -> Finished {
    finished(command(home, &RUN, python), "")
}

/// What the cell with this number printed.
fn printed(home: &Home, cell: usize) -> String {
    let export = home.export("s");
    export["notebook"]["cells"][cell]["outputs"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn code_runs_in_a_kernel_that_runs_already_which_stays_with_what_it_defined() {
    let Some(python) = kernel_python() else { return };
    // A path in the project, and a name in the runtime directory of Jupyter.
    for (file, written) in [("kernels/mine.json", "kernels/mine.json"), ("runtime/kernel-77.json", "77")] {
        let home = home(&json!({ "connection_file": written }), &["print(shared + 1)", "mine = 7"]);
        let mut kernel = LiveKernel::start(&python, home.path(), file);
        kernel.run("shared = 41");
        let done = run(&home, &python);
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(!done.err.contains("memory"), "{}", done.err);
        assert_eq!(printed(&home, 0), "42\n");
        assert!(kernel.is_running());
        kernel.run("assert (shared, mine) == (41, 7)");
        assert!(kernel.file.exists());
    }
}

#[test]
fn the_variables_of_a_kernel_are_there_after_the_program_was_killed() {
    let Some(python) = kernel_python() else { return };
    let home = home(&json!({ "connection_file": "k.json" }), &["x = 41", "?", "print(x + 1)"]);
    let kernel = LiveKernel::start(&python, home.path(), "k.json");
    let mut running = Running::start(command(
        &home,
        &["run", "script.yaml", "--session", "s", "--trust", "--model", "offline", "--json"],
        &python,
    ));
    running.event_of("waiting");
    running.kill();
    let resumed = finished(command(&home, &RESUME, &python), "yes\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(!resumed.out.contains("kernel-memory-gone"), "{}", resumed.out);
    assert_eq!(printed(&home, 1), "42\n");
    drop(kernel);
}

/// The variables of the kernel in the exported state of the session, in their order.
fn exported_variables(home: &Home) -> String {
    let exported = home.finish(["sessions", "export", "s", "--format", "protocol"], "");
    let state: Value = serde_json::from_str(&exported.out).unwrap();
    state["observation"]["context"]["kernel_variables"].to_string()
}

#[test]
fn each_variable_of_a_kernel_is_stored_on_its_own_and_those_of_older_stores_are_read() {
    let Some(python) = kernel_python() else { return };
    for is_older in [false, true] {
        let codes = ["z, a, b = 1, [2], 3", "del a\nc = 'new'", "?", "b, d = 4, None", "?"];
        let home = home(&json!({ "connection_file": "k.json" }), &codes);
        let _kernel = LiveKernel::start(&python, home.path(), "k.json");
        assert_eq!(run(&home, &python).code, Some(3));
        assert_eq!(exported_variables(&home), r#"{"z":1,"b":3,"c":"new"}"#);
        let store = Connection::open(home.store()).unwrap();
        let sql = "SELECT group_concat(name || value, ' ') FROM (SELECT * FROM variable WHERE scope = 'kernel' ORDER BY name)";
        let rows = || store.query_row(sql, [], |row| row.get::<_, Option<String>>(0)).unwrap().unwrap_or_default();
        assert_eq!(rows(), r#"b[196608,3] c[262144,"new"] z[65536,1]"#);
        if is_older {
            let moved = "UPDATE variable SET value = json_insert(value, '$.kernel_variables', json('{\"z\":1,\"b\":3,\"c\":\"new\"}'))
                         WHERE scope = 'notebook'; DELETE FROM variable WHERE scope = 'kernel'";
            store.execute_batch(moved).unwrap();
            assert_eq!(exported_variables(&home), r#"{"z":1,"b":3,"c":"new"}"#);
        }
        let mut variables = vec![("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned())];
        variables.extend(kernel_variables(&python));
        let mut terminal = Terminal::start_with(&home, &["sessions", "resume", "s", "--trust"], &variables);
        terminal.answers("yes");
        terminal.prompt();
        assert_eq!(exported_variables(&home), r#"{"z":1,"b":4,"c":"new","d":null}"#);
        let (older, newer) = (
            r#"b[131072,4] c[196608,"new"] d[262144,null] z[65536,1]"#,
            r#"b[196608,4] c[262144,"new"] d[327680,null] z[65536,1]"#,
        );
        assert_eq!(rows(), if is_older { older } else { newer });
        // They are what they were before an answer that is taken back.
        terminal.types("/back\r");
        terminal.until("taken back");
        assert_eq!(exported_variables(&home), r#"{"z":1,"b":3,"c":"new"}"#);
        terminal.answers("/quit");
        assert_eq!(terminal.end(), Some(3));
    }
}

#[test]
fn code_that_still_runs_after_the_program_was_killed_is_waited_for() {
    let Some(python) = kernel_python() else { return };
    let waits =
        "import os, time\nprint('it runs', flush=True)\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nx = 41";
    let home = home(&json!({ "connection_file": "k.json", "start_timeout": "2s" }), &[waits, "print(x + 1)"]);
    let _kernel = LiveKernel::start(&python, home.path(), "k.json");
    let arguments: Vec<&str> = RUN.into_iter().chain(["--json"]).collect();
    let mut running = Running::start(command(&home, &arguments, &python));
    running.event_of("cell_output");
    running.kill();
    // It is not known how much ran, so the person decides; the kernel is busy with it.
    let busy = finished(command(&home, &RESUME, &python), "skip\n");
    assert_eq!(busy.code, Some(3), "{}", busy.err);
    assert!(busy.out.contains("kernel-busy"), "{}", busy.out);
    home.file("go", "");
    let done = finished(command(&home, &RESUME, &python), "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(printed(&home, 1), "42\n");
}

#[test]
fn another_kernel_with_the_same_file_is_reported_or_the_cells_run_again() {
    let Some(python) = kernel_python() else { return };
    for (on_resume, second) in [("fresh", "lost\n"), ("rerun", "41\n")] {
        let settings = json!({ "connection_file": "k.json", "on_resume": on_resume });
        let home = home(&settings, &["x = 41", "?", "print(globals().get('x', 'lost'))"]);
        let kernel = LiveKernel::start(&python, home.path(), "k.json");
        let waiting = run(&home, &python);
        assert_eq!(waiting.code, Some(3), "{}", waiting.err);
        drop(kernel);
        // Without one, the session stops, and the code runs when there is one again.
        let stopped = finished(command(&home, &RESUME, &python), "yes\n");
        assert_eq!(stopped.code, Some(3), "{}", stopped.err);
        assert!(stopped.out.contains("kernel-unreachable"), "{}", stopped.out);
        let _another = LiveKernel::start(&python, home.path(), "k.json");
        let done = finished(command(&home, &RESUME, &python), "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(done.out.contains("kernel-memory-gone"), "{}", done.out);
        assert_eq!(printed(&home, 1), second);
    }
}

#[test]
fn a_kernel_that_does_not_say_when_it_was_started_again_counts_as_the_same_kernel() {
    let Some(python) = kernel_python() else { return };
    // Kernels of R and Julia repeat the session of the client in their replies, others name none.
    for session in ["parent.get('header', parent).get('session')", "''"] {
        let settings = json!({ "connection_file": "k.json", "on_resume": "rerun" });
        let home = home(&settings, &["runs = globals().get('runs', 0) + 1", "?", "print(runs)"]);
        let kernel = LiveKernel::start(&python, home.path(), "k.json");
        kernel.run(&format!(
            "
session = get_ipython().kernel.session
made = session.msg
def msg(*arguments, parent=None, **named):
    message = made(*arguments, parent=parent, **named)
    if parent:
        message['header']['session'] = {session}
    return message
session.msg = msg
"
        ));
        let waiting = run(&home, &python);
        assert_eq!(waiting.code, Some(3), "{}", waiting.err);
        let done = finished(command(&home, &RESUME, &python), "yes\n");
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(!done.out.contains("kernel-memory-gone"), "{}", done.out);
        assert_eq!(printed(&home, 1), "1\n", "the first cell does not run again");
    }
}

#[test]
fn a_kernel_that_ends_while_code_runs_is_reported_and_the_next_code_stops_the_session() {
    let Some(python) = kernel_python() else { return };
    let home = home(&json!({ "connection_file": "k.json" }), &["import os; os._exit(3)", "print('after')"]);
    let kernel = LiveKernel::start(&python, home.path(), "k.json");
    let stopped = run(&home, &python);
    assert_eq!(stopped.code, Some(3), "{}", stopped.err);
    assert!(
        stopped.err.contains("the connection to the kernel was lost while the code of a cell ran"),
        "{}",
        stopped.err
    );
    assert!(stopped.err.contains("k.json cannot be used: nothing listens at its address"), "{}", stopped.err);
    drop(kernel);
    let _another = LiveKernel::start(&python, home.path(), "k.json");
    let done = finished(command(&home, &RESUME, &python), "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(printed(&home, 1), "after\n");
}

#[test]
fn ctrl_c_interrupts_the_code_and_the_kernel_keeps_its_memory() {
    let Some(python) = kernel_python() else { return };
    let endless = "import time\nx = 41\nprint('it has begun')\nwhile True:\n    time.sleep(0.01)";
    let home = home(&json!({ "connection_file": "k.json" }), &[endless, "print('x is', x + 1)"]);
    let mut kernel = LiveKernel::start(&python, home.path(), "k.json");
    let mut variables = vec![("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned())];
    variables.extend(kernel_variables(&python));
    let mut terminal = Terminal::start_with(&home, &RUN, &variables);
    terminal.until("  it has begun");
    terminal.types(CTRL_C);
    terminal.until("the code is being interrupted");
    terminal.answers("skip");
    terminal.until("x is 42");
    assert_eq!(terminal.end(), Some(0));
    assert!(kernel.is_running());
}

#[test]
fn code_that_ignores_the_interrupt_is_left_to_the_kernel() {
    let Some(python) = kernel_python() else { return };
    let stubborn = "import os, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\nx = 41";
    let settings = json!({ "connection_file": "k.json", "timeout": "500ms" });
    let home = home(&settings, &[stubborn, "?", "print(x + 1)"]);
    let mut kernel = LiveKernel::start(&python, home.path(), "k.json");
    let waiting = run(&home, &python);
    assert_eq!(waiting.code, Some(3), "{}", waiting.err);
    assert!(kernel.is_running(), "somebody else's kernel is never killed");
    home.file("go", "");
    let done = finished(command(&home, &RESUME, &python), "yes\n");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(printed(&home, 1), "42\n");
}

#[test]
fn what_the_kernel_prints_for_other_clients_is_not_of_the_session() {
    let Some(python) = kernel_python() else { return };
    let waits = "import os, time\nprint('mine')\nstart = lines\nwhile lines < start + 50:\n    time.sleep(0.01)\nopen('end', 'w').close()";
    let home = home(&json!({ "connection_file": "k.json" }), &[waits]);
    let kernel = LiveKernel::start(&python, home.path(), "k.json");
    // Messages with the parent of another client, from a thread.
    kernel.run(
        "
import os, threading, time
lines = 0
def chatter(kernel):
    global lines
    parent = {'header': {'msg_id': 'other', 'msg_type': 'execute_request', 'session': 'other', 'username': 'other'}}
    while not os.path.exists('end'):
        content = {'name': 'stdout', 'text': 'of another client'}
        kernel.session.send(kernel.iopub_socket, 'stream', content, parent=parent, ident=b'stream')
        lines += 1
        time.sleep(0.01)
threading.Thread(target=chatter, args=[get_ipython().kernel], daemon=True).start()
",
    );
    let done = run(&home, &python);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(printed(&home, 0), "mine\n");
}

#[test]
fn code_of_another_client_is_not_interrupted_when_the_variables_cannot_be_listed_before_it_ends() {
    let Some(python) = kernel_python() else { return };
    let waits = |file: &str| format!("import os, time\nwhile not os.path.exists('{file}'):\n    time.sleep(0.01)");
    let mine = format!("x = [object()]\nprint('it runs', flush=True)\n{}", waits("sent"));
    let home = home(&json!({ "connection_file": "k.json", "start_timeout": "500ms" }), &[&mine, "print(x and 'mine')"]);
    let kernel = LiveKernel::start(&python, home.path(), "k.json");
    std::fs::remove_file(home.path().join("sent")).unwrap();
    let arguments: Vec<&str> = RUN.into_iter().chain(["--json"]).collect();
    let running = Running::start(command(&home, &arguments, &python));
    running.event_of("cell_output");
    let mut other = Killed(kernel.request(&waits("go"), "sent"));
    // The second cell does not start, and does not wait in the kernel.
    let busy = running.finish();
    assert_eq!(busy.code, Some(3), "{}", busy.err);
    assert!(busy.out.contains("kernel-busy"), "{}", busy.out);
    assert!(other.0.try_wait().unwrap().is_none(), "the other code was interrupted");
    home.file("go", "");
    assert!(other.0.wait().unwrap().success());
    let done = finished(command(&home, &RESUME, &python), "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(printed(&home, 1), "mine\n");
}

#[test]
fn a_kernel_that_cannot_be_used_is_reported_before_the_session_exists() {
    let Some(python) = kernel_python() else { return };
    let home = home(&json!({ "connection_file": "k.json", "start_timeout": "2s" }), &["print(1)"]);
    let refused = |part: &str| {
        let refused = run(&home, &python);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains(part) && refused.err.contains("help:"), "{}", refused.err);
        assert!(!refused.err.contains("geheim"), "{}", refused.err);
    };
    refused("k.json cannot be used: there is no such file");
    home.file("k.json", "{ geheim");
    refused("it is not JSON");
    let kernel = LiveKernel::start(&python, home.path(), "k.json");
    let text = std::fs::read_to_string(&kernel.file).unwrap();
    let mut wrong: Value = serde_json::from_str(&text).unwrap();
    wrong["key"] = "geheim".into();
    home.file("k.json", &wrong.to_string());
    refused("it did not answer within 2s");
    wrong["transport"] = "ipc".into();
    home.file("k.json", &wrong.to_string());
    refused("its `transport` is not `tcp`");
    home.file("k.json", &text);
    drop(kernel);
    home.file("k.json", &text);
    refused("nothing listens at its address");
    let listed = home.finish(["sessions", "list"], "");
    assert!(!listed.out.contains("code"), "{}", listed.out);
}

#[test]
fn a_project_without_permission_connects_to_no_kernel() {
    let Some(python) = kernel_python() else { return };
    let home = home(&json!({ "connection_file": "k.json" }), &["ran = True"]);
    let kernel = LiveKernel::start(&python, home.path(), "k.json");
    home.file("bcc-script.toml", "");
    let refused = run(&home, &python);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("needs `exec`"), "{}", refused.err);
    kernel.run("assert 'ran' not in globals()");
}
