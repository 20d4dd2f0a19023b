//! A session uses a kernel of a Jupyter server: one that runs there, or one that it starts, finds again and ends.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::kernel::attached::script;
use crate::live_kernels::{LiveServer, TOKEN, eventually};
use crate::process::{Finished, Home, Running, finished};
use crate::pseudo_terminal::{CTRL_C, Terminal};
use crate::test_kernel::{kernel_python, kernel_variables};

const RUN: [&str; 7] = ["run", "script.yaml", "--session", "s", "--trust", "--model", "offline"];
const RESUME: [&str; 5] = ["sessions", "resume", "s", "--trust", "--json"];

/// A project that names this server, with a script that uses it.
fn write(home: &Home, url: &str, more: Value, codes: &[&str]) {
    home.file(
        "bcc-script.toml",
        &format!("[project]\nallow = [\"exec\"]\n\n[[kernel.jupyter]]\nurl = \"{url}\"\ntoken_env = \"MY_JUPYTER\"\n"),
    );
    let mut kernel = json!({ "jupyter": url, "token_env": "MY_JUPYTER" });
    kernel.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    home.file("script.yaml", &script(&kernel, codes));
}

fn command(home: &Home, arguments: &[&str], token: &str) -> Command {
    let mut command = home.command(arguments);
    command.env("MY_JUPYTER", token);
    command
}

fn run(home: &Home) -> Finished {
    finished(command(home, &RUN, TOKEN), "")
}

fn printed(home: &Home, cell: usize) -> String {
    let export = home.export("s");
    export["notebook"]["cells"][cell]["outputs"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Everything that the program wrote for this session.
fn holds_token(home: &Home, finished: &Finished) -> bool {
    let store = std::fs::read(home.store()).unwrap();
    let in_store = store.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
    in_store || finished.out.contains(TOKEN) || finished.err.contains(TOKEN)
}

fn server(python: &Path, home: &Home, arguments: &[&str]) -> LiveServer {
    LiveServer::start(python, home.path(), arguments)
}

#[test]
fn a_session_starts_a_kernel_on_a_server_and_ends_it_and_its_token_is_nowhere() {
    let Some(python) = kernel_python() else { return };
    // The second server speaks only the older form of messages.
    for arguments in [&[][..], &["--ZMQChannelsWebsocketConnection.kernel_ws_protocol="][..]] {
        let home = Home::new();
        let server = server(&python, &home, arguments);
        write(&home, &server.url(), json!({ "name": "python3" }), &["x = 41", "print(x + 1)", "1 / 0"]);
        let done = finished(
            command(&home, &["run", "script.yaml", "--session", "s", "--trust", "--model", "offline", "--json"], TOKEN),
            "",
        );
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(!done.out.contains("kernel-memory-gone"), "{}", done.out);
        assert_eq!(printed(&home, 1), "42\n");
        let export = home.export("s");
        assert_eq!(export["notebook"]["cells"][2]["outputs"][0]["ename"], "ZeroDivisionError");
        assert_eq!(server.kernels(), Vec::<Value>::new(), "the kernel ends with its session");
        assert!(!holds_token(&home, &done));
    }
}

#[test]
fn deleting_a_session_that_has_not_ended_names_the_kernel_that_it_leaves_on_the_server() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let server = server(&python, &home, &[]);
    write(&home, &server.url(), json!({}), &["x = 41", "?"]);
    for arguments in [&["sessions", "delete", "s"][..], &["sessions", "prune", "--older-than", "0s"][..]] {
        let waiting = run(&home);
        assert_eq!(waiting.code, Some(3), "{}", waiting.err);
        let kernels = server.kernels();
        let deleted = finished(command(&home, arguments, TOKEN), "");
        assert_eq!(deleted.code, Some(0), "{}", deleted.err);
        assert!(
            deleted.err.contains("is left on the Jupyter server") && deleted.err.contains(&server.url()),
            "{}",
            deleted.err
        );
        let is_named = |kernel: &Value| deleted.err.contains(kernel["id"].as_str().unwrap());
        assert!(kernels.iter().any(is_named), "{}", deleted.err);
    }
}

/// A server whose kernels do not answer.
fn server_of_silent_kernels(python: &Path, home: &Home) -> LiveServer {
    home.put("ipython/profile_default/startup/silent.py", "import time\nwhile True:\n    time.sleep(60)");
    server(python, home, &["--KernelManager.shutdown_wait_time=0.1"])
}

#[test]
fn a_kernel_that_does_not_answer_in_time_is_ended_on_its_server() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let server = server_of_silent_kernels(&python, &home);
    write(&home, &server.url(), json!({ "start_timeout": "300ms" }), &["print(1)"]);
    let stopped = run(&home);
    assert_eq!(stopped.code, Some(3), "{}", stopped.err);
    assert!(stopped.err.contains("did not answer within 300ms"), "{}", stopped.err);
    for _ in 0..2 {
        let stopped = finished(command(&home, &RESUME, TOKEN), "");
        assert!(stopped.out.contains("kernel-unreachable"), "{}", stopped.out);
    }
    eventually("the end of the kernels", || server.try_kernels()?.is_empty().then_some(()));
}

#[test]
fn a_kernel_that_is_not_ready_when_the_session_is_stopped_is_ended_on_its_server() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let server = server_of_silent_kernels(&python, &home);
    write(&home, &server.url(), json!({}), &["print(1)"]);
    let arguments: Vec<&str> = RUN.into_iter().chain(["--json"]).collect();
    let running = Running::start(command(&home, &arguments, TOKEN));
    eventually("a kernel", || (!server.try_kernels()?.is_empty()).then_some(()));
    kill_process(Pid::from_raw(running.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    let stopped = running.finish();
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    eventually("the end of the kernel", || server.try_kernels()?.is_empty().then_some(()));
}

#[test]
fn a_kernel_that_runs_on_a_server_is_used_and_left_there() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let server = server(&python, &home, &[]);
    let id = server.start_kernel();
    write(&home, &server.url(), json!({ "kernel_id": id }), &["x = 41", "print(x + 1)"]);
    let done = run(&home);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(server.kernels().len(), 1);
    // Another session finds what the first one left.
    home.file("script.yaml", &script(&json!({ "jupyter": server.url(), "kernel_id": id }), &["print(x + 2)"]));
    let mut other = RUN;
    other[3] = "t";
    let done = finished(command(&home, &other, TOKEN), "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(home.export("t")["notebook"]["cells"][0]["outputs"][0]["text"], "43\n");
}

#[test]
fn a_session_finds_its_kernel_again_after_a_kill_and_reports_one_that_was_started_again() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let server = server(&python, &home, &[]);
    write(&home, &server.url(), json!({}), &["x = 41", "?", "print(x + 1)", "?", "print(globals().get('x', 'lost'))"]);
    let arguments: Vec<&str> = RUN.into_iter().chain(["--json"]).collect();
    let mut running = Running::start(command(&home, &arguments, TOKEN));
    running.event_of("waiting");
    running.kill();
    let kernels = server.kernels();
    assert_eq!(kernels.len(), 1);
    let waiting = finished(command(&home, &RESUME, TOKEN), "yes\n");
    assert_eq!(waiting.code, Some(3), "{}", waiting.err);
    assert!(!waiting.out.contains("kernel-memory-gone"), "{}", waiting.out);
    assert_eq!(printed(&home, 1), "42\n");
    assert_eq!(server.kernels()[0]["id"], kernels[0]["id"]);
    server.restart_kernel(kernels[0]["id"].as_str().unwrap());
    let done = finished(command(&home, &RESUME, TOKEN), "yes\n");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("kernel-memory-gone"), "{}", done.out);
    assert_eq!(printed(&home, 2), "lost\n");
    assert_eq!(server.kernels(), Vec::<Value>::new());
}

#[test]
fn ctrl_c_interrupts_code_on_a_server() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let server = server(&python, &home, &[]);
    let endless = "import time\nx = 41\nprint('it has begun')\nwhile True:\n    time.sleep(0.01)";
    write(&home, &server.url(), json!({}), &[endless, "print('x is', x + 1)"]);
    let mut variables =
        vec![("TERM", "xterm".to_owned()), ("NO_COLOR", "1".to_owned()), ("MY_JUPYTER", TOKEN.to_owned())];
    variables.extend(kernel_variables(&python));
    let mut terminal = Terminal::start_with(&home, &RUN, &variables);
    terminal.until("  it has begun");
    terminal.types(CTRL_C);
    terminal.until("the code is being interrupted");
    terminal.answers("skip");
    terminal.until("x is 42");
    assert_eq!(terminal.end(), Some(0));
}

/// Passes connections on to a server, until the test cuts them.
struct Relay {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
    /// Whether nobody can connect.
    is_closed: Arc<AtomicBool>,
    /// Whether connections stay open and nothing is passed on.
    hangs: Arc<AtomicBool>,
}

impl Relay {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (is_closed, hangs) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (connections, refuses, stops) = (Arc::clone(&open), Arc::clone(&is_closed), Arc::clone(&hangs));
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if refuses.load(Ordering::Acquire) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let copies = [&near, &far].map(|stream| stream.try_clone().unwrap());
                connections.lock().unwrap().extend(copies);
                for (mut from, mut to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                    let stops = Arc::clone(&stops);
                    std::thread::spawn(move || {
                        let mut bytes = [0; 4096];
                        while let Ok(count @ 1..) = from.read(&mut bytes) {
                            if !stops.load(Ordering::Acquire) && to.write_all(&bytes[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        Self { port: own, open, is_closed, hangs }
    }

    fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

#[test]
fn a_connection_that_is_lost_while_code_runs_is_opened_again_and_nothing_is_missing() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let server = server(&python, &home, &[]);
    let relay = Relay::to(server.port);
    let waits = "import os, time\nprint('before', flush=True)\nwhile not os.path.exists(GO):\n    time.sleep(0.01)\nprint('after')";
    let go = home.path().join("go");
    let waits = waits.replace("GO", &format!("{:?}", go.display().to_string()));
    write(&home, &format!("http://127.0.0.1:{}", relay.port), json!({}), &[&waits, "print('next')"]);
    let arguments: Vec<&str> = RUN.into_iter().chain(["--json"]).collect();
    let running = Running::start(command(&home, &arguments, TOKEN));
    running.event_of("cell_output");
    relay.cut();
    eventually("a new connection", || (!relay.open.lock().unwrap().is_empty()).then_some(()));
    home.file("go", "");
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!((printed(&home, 0).as_str(), printed(&home, 1).as_str()), ("before\nafter\n", "next\n"));
}

/// A server that answers every request with this.
fn answering(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 8192]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn a_server_that_cannot_be_used_is_reported_before_the_session_exists() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let server = server(&python, &home, &[]);
    let refused = |token: &str, part: &str| {
        let refused = finished(command(&home, &RUN, token), "");
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains(part) && refused.err.contains("help:"), "{part} in {}", refused.err);
        assert!(!refused.err.contains("geheim"), "{}", refused.err);
    };
    write(&home, &server.url(), json!({}), &["print(1)"]);
    refused("geheim-but-wrong", "refuses the request (status 403)");
    refused("", "the environment variable MY_JUPYTER with the token of the Jupyter server");
    write(&home, &server.url(), json!({ "name": "nowhere" }), &["print(1)"]);
    refused(TOKEN, "has no kernel `nowhere`");
    write(&home, &server.url(), json!({ "kernel_id": "0-1-2" }), &["print(1)"]);
    refused(TOKEN, "has no kernel with the id `0-1-2`");
    let named = answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n{\"kernelspecs\": {\"geheim\\nsecond line\": {}, \"ir\": {}, \"a b\": {}}}",
    );
    write(&home, &format!("http://127.0.0.1:{named}"), json!({}), &["print(1)"]);
    refused(TOKEN, "these are installed there: `ir`; choose one");
    let page = answering("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>");
    write(&home, &format!("http://127.0.0.1:{page}"), json!({}), &["print(1)"]);
    refused(TOKEN, "there is no Jupyter server");
    let missing = answering("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    write(&home, &format!("http://127.0.0.1:{missing}"), json!({}), &["print(1)"]);
    refused(TOKEN, "there is no Jupyter server");
    let login = answering("HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n");
    write(&home, &format!("http://127.0.0.1:{login}"), json!({}), &["print(1)"]);
    refused(TOKEN, "redirects the request (status 302)");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    write(&home, &format!("http://127.0.0.1:{closed}"), json!({}), &["print(1)"]);
    refused(TOKEN, "cannot be reached");
    assert!(!home.finish(["sessions", "list"], "").out.contains("code"));
}

#[test]
fn a_script_cannot_send_a_token_to_a_server_that_the_project_does_not_name_for_it() {
    let home = Home::new();
    let named = answering("HTTP/1.1 500 Wrong\r\nContent-Length: 0\r\n\r\n");
    write(&home, &format!("http://127.0.0.1:{named}"), json!({}), &["print(1)"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    for (kernel, part) in [
        (json!({ "jupyter": other, "token_env": "MY_JUPYTER" }), "bcc-script.toml does not name the Jupyter server"),
        (
            json!({ "jupyter": format!("http://127.0.0.1:{named}"), "token_env": "OTHER_KEY" }),
            "names another variable for the token",
        ),
    ] {
        home.file("script.yaml", &script(&kernel, &["print(1)"]));
        let mut command = command(&home, &RUN, TOKEN);
        command.env("OTHER_KEY", "geheim");
        let refused = finished(command, "");
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains(part) && !refused.err.contains("geheim"), "{}", refused.err);
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody connected");
}

#[test]
fn a_server_that_is_gone_in_the_middle_stops_the_session_until_it_is_back() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let server = server(&python, &home, &[]);
    let relay = Relay::to(server.port);
    write(&home, &format!("http://127.0.0.1:{}", relay.port), json!({}), &["x = 41", "?", "print(x + 1)"]);
    let waiting = run(&home);
    assert_eq!(waiting.code, Some(3), "{}", waiting.err);
    let stopped = finished(command(&home, &RESUME, "wrong"), "yes\n");
    assert_eq!(stopped.code, Some(3), "{}", stopped.err);
    assert!(stopped.out.contains("kernel-unreachable"), "{}", stopped.out);
    let done = finished(command(&home, &RESUME, TOKEN), "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(printed(&home, 1), "42\n");
}

/// How the code of a cell ended.
fn ended(home: &Home, cell: usize) -> String {
    home.export("s")["notebook"]["cells"][cell]["ended"].as_str().unwrap_or_default().to_owned()
}

/// All that a cell printed.
fn all_printed(home: &Home, cell: usize) -> String {
    let export = home.export("s");
    let outputs = export["notebook"]["cells"][cell]["outputs"].as_array().cloned().unwrap_or_default();
    outputs.iter().filter_map(|output| output["text"].as_str()).collect()
}

/// A server, and a relay to it that a session uses to run this code in a kernel that is there already.
fn relayed(python: &Path, home: &Home, more: Value, codes: &[&str]) -> (LiveServer, Relay, String, Running) {
    let server = server(python, home, &["--ZMQChannelsWebsocketConnection.limit_rate=False"]);
    let (relay, id) = (Relay::to(server.port), server.start_kernel());
    let mut settings = json!({ "kernel_id": id });
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    write(home, &format!("http://127.0.0.1:{}", relay.port), settings, codes);
    let arguments: Vec<&str> = RUN.into_iter().chain(["--json"]).collect();
    let running = Running::start(command(home, &arguments, TOKEN));
    (server, relay, id, running)
}

#[test]
fn a_reply_that_is_lost_with_the_connection_ends_the_cell_which_says_so() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let go = home.path().join("go");
    let waits = format!(
        "import os, time\nprint('before', flush=True)\nwhile not os.path.exists({:?}):\n    time.sleep(0.01)\nprint('after')",
        go.display().to_string()
    );
    let (server, relay, id, running) = relayed(&python, &home, json!({}), &[&waits, "print('next')"]);
    running.event_of("cell_output");
    // The server keeps nothing for a client that is gone while there is another one.
    let _other = server.watch_kernel(&python, home.path(), &id);
    relay.is_closed.store(true, Ordering::Release);
    relay.cut();
    home.file("go", "");
    eventually("the end of the code", || (server.try_kernels()?.first()?["execution_state"] == "idle").then_some(()));
    relay.is_closed.store(false, Ordering::Release);
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(ended(&home, 0), "died");
    assert!(done.out.contains("kernel-died") && done.out.contains("outputs may be missing"), "{}", done.out);
    let printed = all_printed(&home, 0);
    assert!(printed.starts_with("before\n") && printed.contains("outputs may be missing here"), "{printed}");
    assert!(!done.out.contains("kernel-memory-gone"), "{}", done.out);
    assert_eq!(all_printed(&home, 1), "next\n");
}

#[test]
fn a_kernel_that_a_person_starts_again_on_the_server_ends_the_cell() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let endless = "import time\nprint('it runs', flush=True)\nwhile True:\n    time.sleep(0.01)";
    let (server, _relay, id, running) =
        relayed(&python, &home, json!({ "timeout": "1h" }), &[endless, "print('next')"]);
    running.event_of("cell_output");
    server.restart_kernel(&id);
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(ended(&home, 0), "died");
    assert!(done.out.contains("kernel-memory-gone"), "{}", done.out);
    assert_eq!(all_printed(&home, 1), "next\n");
}

#[test]
fn a_server_that_hangs_does_not_delay_the_end_of_a_cell_and_of_its_session() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let endless = "import time\nprint('it runs', flush=True)\nwhile True:\n    time.sleep(0.01)";
    let server = server(&python, &home, &[]);
    let relay = Relay::to(server.port);
    write(&home, &format!("http://127.0.0.1:{}", relay.port), json!({ "timeout": "1s" }), &[endless]);
    let arguments: Vec<&str> = RUN.into_iter().chain(["--json"]).collect();
    let running = Running::start(command(&home, &arguments, TOKEN));
    running.event_of("cell_output");
    relay.hangs.store(true, Ordering::Release);
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(ended(&home, 0), "timed_out");
}

#[test]
fn outputs_after_one_that_is_too_large_to_be_received_are_not_missing_without_a_note() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    let large = "from IPython.display import display\nprint('before', flush=True)\ndisplay({'text/html': 'x' * 60_000_000}, raw=True)\nprint('after')";
    let (_server, _relay, _, running) = relayed(&python, &home, json!({}), &[large, "print('next')"]);
    let done = running.finish();
    assert_eq!(done.code, Some(0), "{}", done.err);
    let printed = all_printed(&home, 0);
    assert!(printed.contains("left out an output") && printed.contains("outputs may be missing here"), "{printed}");
    assert_eq!(all_printed(&home, 1), "next\n");
}
