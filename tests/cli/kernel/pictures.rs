//! Pictures, tables and long texts that code shows are kept whole, through the program: each once, and outside of its cell.

use serde_json::{Value, json};

use crate::process::{Finished, Home, finished};
use crate::test_kernel::{kernel_python, kernel_variables};

const ALLOWED: &str = "[project]\nallow = [\"exec\"]\n";

/// Shows random bytes as pictures: they cannot be compressed, and are the same in each run of the cell.
const PICTURE: &str = "
import base64, random
random.seed(SEED)
from IPython.display import display
picture = base64.b64encode(random.randbytes(SIZE)).decode()
display({'image/png': picture, 'text/plain': '<Figure>'}, raw=True)
";

/// A script with these cells, each with how often it runs.
fn script(cells: &[(&str, usize)]) -> String {
    let mut actions = vec![];
    for (number, (code, runs)) in cells.iter().enumerate() {
        actions.push(json!({ "action_type": "add", "action_id": format!("add_{number}"), "config": { "shot_type": "action", "content": code } }));
        for run in 0..*runs {
            actions.push(json!({ "action_type": "exec", "action_id": format!("run_{number}_{run}"), "config": { "codecell_id": "lastAddedCellId" } }));
        }
    }
    json!({ "session": { "session_id": "code", "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }] } })
        .to_string()
}

fn finish(home: &Home, python: &std::path::Path, arguments: &[&str]) -> Finished {
    let mut command = home.command(arguments);
    command.envs(kernel_variables(python));
    finished(command, "")
}

fn run(config: &str, cells: &[(&str, usize)]) -> Option<(Home, Finished)> {
    let python = kernel_python()?;
    let home = Home::new();
    home.file("bcc-script.toml", config);
    home.file("script.yaml", &script(cells));
    let done = finish(&home, &python, &["run", "script.yaml", "--session", "s", "--trust", "--json"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    Some((home, done))
}

fn notebook(home: &Home, id: &str) -> Value {
    let exported = home.finish(["sessions", "export", id, "--format", "ipynb"], "");
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    serde_json::from_str(&exported.out).unwrap()
}

fn store_bytes(home: &Home) -> u64 {
    let find = |folder: &std::path::Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let mut folders = vec![home.path().to_path_buf()];
    let mut bytes = 0;
    while let Some(folder) = folders.pop() {
        for path in find(&folder) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.contains(".db") {
                bytes += path.metadata().unwrap().len();
            }
        }
    }
    bytes
}

#[test]
fn a_picture_is_kept_whole_and_once_however_often_its_cell_runs() {
    let code = PICTURE.replace("SEED", "1").replace("SIZE", "3_000_000");
    let Some((home, done)) = run(ALLOWED, &[(&code, 5)]) else { return };
    let shown = done.events().into_iter().rfind(|event| event["type"] == "cell").unwrap();
    assert_eq!(
        shown["outputs"][0]["data"],
        json!({ "image/png": { "left_out": 4_000_000 }, "text/plain": "<Figure>" })
    );
    let output = &notebook(&home, "s")["cells"][0]["outputs"][0];
    assert_eq!(output["data"]["image/png"].as_str().unwrap().len(), 4_000_000);
    assert!(output.get("kept").is_none(), "{:?}", output.as_object().unwrap().keys());
    let bytes = store_bytes(&home);
    assert!((4_000_000..7_000_000).contains(&bytes), "{bytes}");
    // The page shows it, and the complete export has it.
    let page = home.finish(["sessions", "export", "s", "--format", "html"], "").out;
    assert!(page.contains("src=\"data:image/png;base64,") && page.len() > 4_000_000);
    let export = home.finish(["sessions", "export", "s", "--format", "json"], "").out;
    let export: Value = serde_json::from_str(&export).unwrap();
    let output = &export["notebook"]["cells"][0]["outputs"][0];
    assert_eq!((output["data"]["image/png"].as_str().unwrap().len(), output.get("kept")), (4_000_000, None));
}

#[test]
fn twelve_plots_of_a_loop_and_a_table_of_five_thousand_rows_are_all_kept() {
    let plots = PICTURE
        .replace("SEED", "2")
        .replace("SIZE", "1_500_000")
        .replace("\ndisplay(", "\nfor _ in range(12): display(");
    let table =
        "from IPython.display import HTML\nHTML('<table>' + '<tr><td>one</td><td>2.0</td></tr>' * 50_000 + '</table>')";
    let Some((home, _)) = run(ALLOWED, &[(&plots, 1), (table, 1)]) else { return };
    let notebook = notebook(&home, "s");
    let plots = notebook["cells"][0]["outputs"].as_array().unwrap();
    assert_eq!(plots.len(), 12);
    assert!(plots.iter().all(|plot| plot["data"]["image/png"].as_str().unwrap().len() == 2_000_000));
    let table = &notebook["cells"][1]["outputs"][0]["data"]["text/html"];
    let table: String = table.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(table.len(), 1_650_015);
}

#[test]
fn many_outputs_that_are_not_large_are_kept_as_well() {
    let code = "from IPython.display import display\nfor n in range(900):\n    display({'text/html': '\"' * 60_000 + str(n), 'text/plain': 'row'}, raw=True)";
    let Some((home, _)) = run(ALLOWED, &[(code, 1)]) else { return };
    let notebook = notebook(&home, "s");
    let outputs = notebook["cells"][0]["outputs"].as_array().unwrap();
    assert_eq!(outputs.len(), 900);
    assert!(outputs.iter().all(|output| output["data"]["text/html"][0].as_str().unwrap().len() > 60_000));
}

#[test]
fn what_is_larger_than_a_limit_is_said_in_its_place_with_what_to_set() {
    let picture = PICTURE.replace("SEED", "3").replace("SIZE", "300_000");
    let prints = "print('a' * 5_000)\nimport sys\nprint('err', file=sys.stderr)\nprint('end')";
    let config = format!("{ALLOWED}[kernel]\nmax_text = \"2 KiB\"\nmax_display = \"200 KiB\"\n");
    let Some((home, _)) = run(&config, &[(&picture, 1), (prints, 1)]) else { return };
    let notebook = notebook(&home, "s");
    let text =
        |value: &Value| -> String { value.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect() };
    let plain = text(&notebook["cells"][0]["outputs"][0]["data"]["text/plain"]);
    assert_eq!(
        plain,
        "<Figure>\n[bcc-script left out image/png, 300000 bytes: `max_display` of `[kernel]` in bcc-script.toml sets the limit]"
    );
    let printed = text(&notebook["cells"][1]["outputs"][0]["text"]);
    assert!(printed.starts_with("aaaa") && printed.contains(" of 500") && printed.contains("`max_text`"), "{printed}");
}

#[test]
fn a_session_keeps_no_more_than_it_may_and_says_so() {
    let cells: Vec<String> =
        (0..4).map(|seed| PICTURE.replace("SEED", &seed.to_string()).replace("SIZE", "300_000")).collect();
    // The first one again needs no more space.
    let mut runs: Vec<(&str, usize)> = cells.iter().map(|code| (code.as_str(), 2)).collect();
    runs.push((cells[0].as_str(), 1));
    let config = format!("{ALLOWED}[kernel]\nmax_session = \"900 KiB\"\n");
    let Some((home, _)) = run(&config, &runs) else { return };
    let notebook = notebook(&home, "s");
    let kept: Vec<bool> = notebook["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["outputs"][0]["data"].get("image/png").is_some())
        .collect();
    assert_eq!(kept, [true, true, false, false, true], "what is stored already counts once");
    let last = notebook["cells"][3]["outputs"][0]["data"]["text/plain"].to_string();
    assert!(last.contains("<Figure>") && last.contains("`max_session` of `[kernel]`"), "{last}");
}

#[test]
fn a_text_that_two_limits_cut_says_both_and_how_large_it_was() {
    let config = format!("{ALLOWED}[kernel]\nmax_session = \"300 KiB\"\n");
    let Some((home, _)) = run(&config, &[("print('x' * 3_000_000)", 1), ("print('x' * 400_000)", 1)]) else { return };
    let notebook = notebook(&home, "s");
    let last_line = |cell: usize| notebook["cells"][cell]["outputs"][0]["text"].as_array().unwrap().last().unwrap();
    assert_eq!(
        last_line(0),
        "[bcc-script left out text, 3000001 bytes: `max_text` and `max_session` of `[kernel]` in bcc-script.toml set the limits]\n"
    );
    assert_eq!(
        last_line(1),
        "[bcc-script left out text, 400001 bytes: `max_session` of `[kernel]` in bcc-script.toml sets the limit]\n"
    );
}

#[test]
fn a_session_that_is_tried_again_has_the_pictures_of_the_earlier_one() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    let code = PICTURE.replace("SEED", "5").replace("SIZE", "200_000");
    home.file("script.yaml", &script(&[(&code, 1), ("print(1)", 1)]));
    let done = finish(&home, &python, &["run", "script.yaml", "--session", "first", "--trust", "--json"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let again = finish(&home, &python, &["sessions", "retry", "first", "--from", "run_1_0", "--trust", "--json"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let id = again.events()[0]["session_id"].as_str().unwrap().to_owned();
    assert_ne!(id, "first");
    assert_eq!(home.finish(["sessions", "delete", "first"], "").code, Some(0));
    assert_eq!(notebook(&home, &id)["cells"][0]["outputs"][0]["data"]["image/png"].as_str().unwrap().len(), 266_668);
}

#[test]
fn the_file_says_what_the_kernel_says_about_its_language() {
    let Some((home, _)) = run(ALLOWED, &[("1", 1)]) else { return };
    let metadata = &notebook(&home, "s")["metadata"];
    let language = &metadata["language_info"];
    assert_eq!((&language["name"], &language["file_extension"]), (&"python".into(), &".py".into()), "{language}");
    assert!(language["version"].as_str().unwrap().starts_with("3."), "{language}");
    assert_eq!(metadata["kernelspec"]["language"], "python");
    // Also before code has run.
    home.file("text.yaml", &json!({ "session": { "session_id": "text", "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [
        { "action_type": "add", "action_id": "a", "config": { "shot_type": "action", "content": "1" } }] }] }] } }).to_string());
    assert_eq!(
        home.finish(["run", "text.yaml", "--session", "text", "--trust", "--model", "offline"], "").code,
        Some(0)
    );
    assert_eq!(notebook(&home, "text")["metadata"]["language_info"]["file_extension"], ".py");
}

#[test]
fn code_that_ran_when_it_was_added_is_not_run_again_by_the_exec_that_follows() {
    let Some(python) = kernel_python() else { return };
    let home = Home::new();
    home.file("bcc-script.toml", ALLOWED);
    let code = "with open('ran', 'a') as file: file.write('x')";
    let add = |id: &str| {
        json!({ "action_type": "add", "action_id": id, "config": { "shot_type": "action", "content": code,
        "metadata": { "should_execute": true } } })
    };
    let exec =
        |id: &str| json!({ "action_type": "exec", "action_id": id, "config": { "codecell_id": "lastAddedCellId" } });
    let set = json!({ "action_type": "set", "action_id": "between", "config": { "values": { "seen": 1 } } });
    let actions = json!([add("a"), exec("b"), exec("c"), add("d"), exec("e"), add("f"), set, exec("g")]);
    let topics = json!([{ "topic_id": "t", "actions": actions }]);
    let script = json!({ "session": { "session_id": "code", "declare": [{ "var": "seen", "type": "integer" }],
        "phases": [{ "phase_id": "p", "topics": topics }] } });
    home.file("script.yaml", &script.to_string());
    let done = finish(&home, &python, &["run", "script.yaml", "--session", "s", "--trust", "--json"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    // `b` and `e` follow the addition; `c` is a further run, and another action comes before `g`.
    assert_eq!(std::fs::read_to_string(home.path().join("ran")).unwrap(), "xxxxx");
    let events = done.events();
    let actions: Vec<_> = events.iter().filter(|event| event["type"] == "notebook_action").collect();
    assert!(actions.iter().all(|event| event["success"] == true), "{actions:?}");
    let outcomes = events.iter().filter(|event| event["type"] == "outcome" && event["metadata"]["success"] == true);
    assert_eq!(outcomes.count(), 7);
}

#[test]
fn a_size_that_is_none_is_reported_where_it_stands() {
    let home = Home::new();
    home.file("script.yaml", &script(&[("1", 1)]));
    for (line, part) in [
        ("max_display = \"sixteen\"", "`max_display` of `[kernel]` is not a size: `sixteen`"),
        ("max_display = \"9 GiB\"", "`max_display` of `[kernel]` is larger than 128.0 MiB"),
        ("max_text = \"\"", "`max_text` of `[kernel]` is not a size"),
    ] {
        home.file("bcc-script.toml", &format!("{ALLOWED}[kernel]\n{line}\n"));
        let done = home.finish(["run", "script.yaml", "--trust"], "");
        assert_eq!(done.code, Some(2), "{}", done.err);
        assert!(done.err.contains(part) && done.err.contains("bcc-script.toml, line 4"), "{}", done.err);
    }
}
