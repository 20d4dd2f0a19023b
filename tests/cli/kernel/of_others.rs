//! Review and large outputs are the same in a kernel that others started, over its file and on a server.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::live_kernels::{LiveKernel, LiveServer, TOKEN};
use crate::process::{Home, finished};
use crate::test_kernel::{kernel_python, kernel_variables};

/// A kernel that others started. It ends with this.
enum Other {
    File(#[expect(dead_code, reason = "it is running")] LiveKernel),
    Server(LiveServer, String),
}

impl Other {
    /// One of each kind, with a project in its directory.
    fn all(python: &Path) -> [(Home, Self); 2] {
        let [file, server] = [Home::new(), Home::new()];
        let kernel = LiveKernel::start(python, file.path(), "k.json");
        let jupyter = LiveServer::start(python, server.path(), &[]);
        let id = jupyter.start_kernel();
        [(file, Self::File(kernel)), (server, Self::Server(jupyter, id))]
    }

    fn settings(&self) -> Value {
        match self {
            Self::File(_) => json!({ "connection_file": "k.json" }),
            Self::Server(server, id) => json!({ "jupyter": server.url(), "kernel_id": id }),
        }
    }

    fn project(&self, more: &str) -> String {
        let server = match self {
            Self::File(_) => String::new(),
            Self::Server(server, _) => {
                format!("\n[[kernel.jupyter]]\nurl = \"{}\"\ntoken_env = \"MY_JUPYTER\"\n", server.url())
            }
        };
        format!("[project]\nallow = [\"exec\"]\n{more}{server}")
    }
}

fn command(home: &Home, arguments: &[&str], python: &Path) -> Command {
    let mut command = home.command(arguments);
    command.envs(kernel_variables(python)).env("JUPYTER_RUNTIME_DIR", home.path().join("runtime"));
    command.env("MY_JUPYTER", TOKEN);
    command
}

fn write_script(home: &Home, settings: &Value, actions: &Value) {
    let phases = json!([{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }]);
    let session = json!({ "session_id": "w", "kernel": settings, "phases": phases });
    home.file("script.yaml", &json!({ "session": session }).to_string());
}

#[test]
fn code_of_a_model_waits_for_a_person_before_it_runs_in_a_kernel_of_others() {
    let Some(python) = kernel_python() else { return };
    for ((home, other), is_of_script) in Other::all(&python).into_iter().zip([true, false]) {
        // The policy is that of the script, or that of the project.
        let mut settings = other.settings();
        if is_of_script {
            settings["exec"] = "approve".into();
        }
        home.file(
            "bcc-script.toml",
            &other.project(if is_of_script { "" } else { "\n[kernel]\nexec = \"approve\"\n" }),
        );
        let work = json!({ "action_type": "behavior_loop", "action_id": "work", "config": { "target": "Write it", "reflection": "off" } });
        let shared = json!({ "action_type": "add", "action_id": "first",
            "config": { "shot_type": "action", "content": "shared = 41", "metadata": { "should_execute": true } } });
        write_script(&home, &settings, &json!([shared, work]));
        let code = "open('ran', 'w').close()\nprint(shared + 1)";
        let add = json!({ "action": { "type": "add", "shot_type": "action", "content": code, "metadata": { "should_execute": true } } });
        let transition = json!({ "continue_behaviors": false, "target_achieved": true });
        let replies = json!({ "replies": { "work": [{ "actions": [add], "transition": transition }] } });
        home.file("replies.yaml", &replies.to_string());
        let run = ["run", "script.yaml", "--session", "s", "--trust", "--json", "--model", "replay:replies.yaml"];
        let waits = finished(command(&home, &run, &python), "");
        assert_eq!(waits.code, Some(3), "{}", waits.err);
        let events = waits.events();
        let request = events.iter().find(|event| event["type"] == "request_opened").unwrap();
        assert!(request["prompt"].as_str().unwrap().contains(code), "{request}");
        assert!(!home.path().join("ran").exists());
        let decided = home.finish(["approve", "s", "work", "--by", "ann", "--trust"], "");
        assert_eq!(decided.code, Some(0), "{}", decided.err);
        let done = finished(command(&home, &["sessions", "resume", "s", "--trust", "--json"], &python), "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        // The kernel has its memory, although another process runs the session now.
        let cells = &home.export("s")["notebook"]["cells"];
        assert_eq!(cells[1]["outputs"][0]["text"], "42\n", "{cells}");
        assert!(!done.out.contains("kernel-memory-gone"), "{}", done.out);
    }
}

/// Displays a picture whose bytes are 200 KiB, and prints 100 KiB.
const LARGE: &str = "
from IPython.display import display, Image
display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + bytes(range(256)) * 800, format='png'))
print('text ' * 20_480)
";

#[test]
fn large_outputs_of_a_kernel_of_others_are_stored_once_outside_of_their_cells() {
    let Some(python) = kernel_python() else { return };
    for (home, other) in Other::all(&python) {
        home.file("bcc-script.toml", &other.project(""));
        let add = |id: &str| {
            json!({ "action_type": "add", "action_id": id,
            "config": { "shot_type": "action", "content": LARGE.trim(), "metadata": { "should_execute": true } } })
        };
        write_script(&home, &other.settings(), &json!([add("a"), add("b")]));
        let run = ["run", "script.yaml", "--session", "s", "--trust", "--json", "--model", "offline"];
        let done = finished(command(&home, &run, &python), "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        // Events have the sizes in place of the data.
        assert!(done.out.contains("\"left_out\":"), "{}", done.out.len());
        assert!(done.out.lines().all(|line| line.len() < 64 * 1024 || line.contains("cell_output")));
        // The notebook has all of it.
        let file = home.path().join("out.ipynb").display().to_string();
        let exported = home.finish(["sessions", "export", "s", "-o", &file], "");
        assert_eq!(exported.code, Some(0), "{}", exported.err);
        let notebook: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for cell in notebook["cells"].as_array().unwrap() {
            let outputs = cell["outputs"].to_string();
            let picture =
                cell["outputs"].as_array().unwrap().iter().find_map(|output| output["data"]["image/png"].as_str());
            assert!(picture.unwrap_or_default().len() > 270_000, "the picture is whole: {}", outputs.len());
            assert_eq!(outputs.matches("text text ").count(), 10_240, "and so is the text");
        }
        // Each is stored once, although two cells have it.
        let store = rusqlite::Connection::open(home.store()).unwrap();
        let rows: Vec<i64> = store
            .prepare("SELECT length(text) FROM blob WHERE length(text) > 60000")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(rows.len(), 2, "{rows:?}");
    }
}
