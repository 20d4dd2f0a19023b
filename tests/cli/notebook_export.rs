//! Tests of notebook export: the content of each format, validation with Python's nbformat, escaping, and how a stored session's notebook
//! is written by `sessions export` and `--notebook`.

use crate::process;
use crate::test_kernel as kernel;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bcc_lang::message::language::Language;
use bcc_runtime::notebook::cell::Cell;
use bcc_runtime::notebook::export::brief::NotebookMetadata;
use bcc_runtime::notebook::export::form::{ExportForm, Writer};
use bcc_store::contract::Store;
use bcc_store::rows::{CellRow, Commit, VariableRow};
use bcc_store::sqlite::open::open;
use serde_json::{Value, json};

use process::Home;

const FORMS: [(ExportForm, &str); 3] =
    [(ExportForm::Ipynb, "ipynb"), (ExportForm::Markdown, "md"), (ExportForm::Html, "html")];

/// A notebook of `tests/notebooks/`.
struct Case {
    name: String,
    brief: NotebookMetadata,
    cells: Vec<Cell>,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(crate::ROOT).join("tests/notebooks");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    paths.iter().map(|path| case(path)).collect()
}

fn case(path: &Path) -> Case {
    let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let brief = &case["brief"];
    let text = |name: &str| brief[name].as_str().unwrap_or_default().to_owned();
    Case {
        name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
        brief: NotebookMetadata {
            session: text("session"),
            script: text("script"),
            title: brief["title"].as_str().map(str::to_owned),
            shows_title: brief["shows_title"] == true,
            kernel: text("kernel"),
            kernel_language: brief["kernel_language"].as_object().cloned().unwrap_or_default(),
            language: Language::parse(&text("language")).unwrap(),
            pictures: None,
            runs_scripts: false,
        },
        cells: serde_json::from_value(case["cells"].clone()).unwrap(),
    }
}

fn written(form: ExportForm, brief: &NotebookMetadata, cells: &[Cell]) -> String {
    let mut writer = Writer::new(form, brief.clone(), vec![]);
    let mut file = writer.head();
    for cell in cells {
        file.push_str(&writer.cell(cell));
    }
    file.push_str(&writer.tail());
    file
}

#[test]
fn every_format_contains_the_notebook() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../notebooks/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    for case in cases() {
        for (form, ending) in FORMS {
            let file = written(form, &case.brief, &case.cells);
            // The style sheet is checked by eye, not in a snapshot.
            let shown = match (file.split_once("<style>"), file.split_once("</style>\n</head>")) {
                (Some((before, _)), Some((_, after))) if form == ExportForm::Html => format!("{before}…{after}"),
                _ => file,
            };
            settings.bind(|| insta::assert_snapshot!(format!("{}.{ending}", case.name), shown));
        }
    }
}

/// A Python check of notebooks: they are valid, and nbformat writes the same bytes again.
const EXAMINE: &str = r#"
import sys, warnings, nbformat
warnings.simplefilter("error", DeprecationWarning)
warnings.simplefilter("error", nbformat.warnings.MissingIDFieldWarning)
for path in sys.argv[1:]:
    text = open(path, "rb").read().decode("utf-8")
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len(ids) == len(set(ids)), "ids"
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    again = nbformat.writes(notebook) + "\n"
    assert again == text, path + " is written otherwise by nbformat"
    print(len(notebook.cells))
"#;

#[test]
fn python_finds_every_notebook_valid_and_would_write_the_same_bytes() {
    let Some(python) = kernel::kernel_python() else { return };
    let home = Home::new();
    let (mut paths, mut expected) = (Vec::new(), String::new());
    for case in cases() {
        let file = written(ExportForm::Ipynb, &case.brief, &case.cells);
        paths.push(home.file(&format!("{}.ipynb", case.name), &file));
        expected += &format!("{}\n", case.cells.len());
    }
    let found = Command::new(python).args(["-c", EXAMINE]).args(paths).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), expected, "{}", String::from_utf8_lossy(&found.stderr));
}

#[test]
fn notebook_content_is_escaped_in_the_page() {
    for case in cases() {
        let page = written(ExportForm::Html, &case.brief, &case.cells);
        // Attribute values contain no quote and no `<`, so the tags of the page can be parsed simply.
        let body = page.split_once("</style>\n</head>").unwrap().1;
        for tag in body.split('<').skip(1).map(|tag| tag.split_once('>').unwrap().0) {
            let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
            assert!(!matches!(name, "script" | "object" | "embed" | "form" | "base" | "link" | "style"), "{name}");
            let mut outside_quotes = String::new();
            tag.split('"').step_by(2).for_each(|part| outside_quotes.push_str(part));
            assert!(!outside_quotes.contains(" on"), "{}: a handler in <{tag}>", case.name);
            let attribute =
                |name: &str| tag.split_once(&format!(" {name}=\"")).map(|(_, rest)| rest.split('"').next().unwrap());
            if let Some(link) = attribute("href") {
                assert!(
                    ["http://", "https://", "mailto:", "#c"].iter().any(|scheme| link.starts_with(scheme)),
                    "{link}"
                );
            }
            if let Some(source) = attribute("src") {
                assert!(source.starts_with("data:image/"), "{source}");
            }
            assert!(name != "iframe" || tag.starts_with('/') || tag.contains("sandbox=\"\""), "{tag}");
        }
        assert!(!body.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')), "{}", case.name);
    }
}

/// Writes cells into the store of `home`, like a commit of its session.
fn write_cells(home: &Home, id: &str, cells: &[Cell], state: &Value, sensitive: &[Value]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = open(&home.store()).unwrap();
        let row = store.session(id).await.unwrap().unwrap();
        let secret = |(at, value): (usize, &Value)| VariableRow {
            scope: "session".into(),
            name: format!("secret_{at}"),
            value: value.to_string(),
            sensitive: true,
            ..VariableRow::default()
        };
        let state = VariableRow {
            scope: "notebook".into(),
            name: "state".into(),
            value: state.to_string(),
            ..VariableRow::default()
        };
        let commit = Commit {
            revision: row.revision,
            status: row.status,
            updated_at: row.updated_at,
            location: row.location,
            head: row.head,
            answers: row.answers,
            variables_put: sensitive.iter().enumerate().map(secret).chain([state]).collect(),
            cells_put: cells
                .iter()
                .map(|cell| CellRow {
                    number: cell.number,
                    id: cell.id.clone(),
                    body: serde_json::to_string(cell).unwrap(),
                })
                .collect(),
            ..Commit::default()
        };
        store.commit(id, &commit).await.unwrap();
    });
}

/// A session with the id `t` that waits for its first answer.
fn waiting_session() -> Home {
    let home = Home::new();
    home.script("two_phases.yaml");
    let started = home.finish(["run", "two_phases.yaml", "--session", "t"], "");
    assert_eq!(started.code, Some(3), "{}", started.err);
    home
}

fn exported(home: &Home, more: &[&str]) -> String {
    let finished = home.finish(["sessions", "export", "t"].iter().chain(more), "");
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    finished.out
}

fn read(home: &Home, name: &str) -> String {
    std::fs::read_to_string(home.path().join(name)).unwrap()
}

#[test]
fn a_stored_session_is_exported_in_every_format_without_sensitive_values() {
    let home = waiting_session();
    let cells: Vec<Cell> = serde_json::from_value(json!([
        { "number": 1, "id": "a", "type": "markdown", "content": "## 关于芝麻", "metadata": { "is_chapter": true } },
        { "number": 2, "id": "b", "type": "thinking", "content": "芝麻？", "metadata": { "thinking_text": "芝麻？" } },
        { "number": 3, "id": "c", "type": "code", "content": "print('芝麻')", "ended": "ok", "execution_count": 1,
          "outputs": [{ "output_type": "stream", "name": "stdout", "text": ["芝", "麻\n"] },
                      { "output_type": "display_data", "metadata": {}, "data": { "text/html": "<b>芝麻</b>", "image/png": "iVBORw==" } }] },
    ]))
    .unwrap();
    write_cells(&home, "t", &cells, &json!({ "title": "芝麻 report" }), &[json!("芝麻"), json!("VBO")]);
    for (_, ending) in FORMS {
        let by_format = exported(&home, &["--format", ending]);
        assert!(!by_format.contains("芝麻") && by_format.contains("***"), "{ending}: {by_format}");
        assert!(by_format.contains("iVBORw=="), "{ending}: a picture is no text: {by_format}");
        assert_eq!(exported(&home, &["-o", &format!("out.{ending}")]), "", "{ending}");
        let mode = home.path().join(format!("out.{ending}")).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{ending}");
        assert_eq!(read(&home, &format!("out.{ending}")), format!("{}\n", by_format.trim_end()), "{ending}");
    }
    let shown = home.finish(["sessions", "show", "t"], "").out;
    let counts = "- notebook “*** report”: 3 cells, 1 of which are code; 1 ran, 0 of which failed\n";
    assert!(shown.contains(counts) && shown.contains("## Notebook\n\n- 关于***"), "{shown}");
    assert_eq!(shown.matches("3 cells").count(), 1, "{shown}");
    assert!(exported(&home, &[]).starts_with("{\n  \"version\": 1"), "json is still what is written without a format");
}

#[test]
fn a_session_without_cells_is_exported_as_its_messages() {
    let home = waiting_session();
    let page = exported(&home, &["--format", "html"]);
    assert!(page.contains("<h1>") && page.contains("怎么称呼你？"), "{page}");
    assert!(exported(&home, &["--format", "md"]).contains("): 怎么称呼你？\n"));
    let finished = home.finish(["sessions", "export", "t", "--format", "ipynb"], "");
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), "session t has no cells: its notebook is empty\n"));
    let notebook: Value = serde_json::from_str(&finished.out).unwrap();
    assert_eq!((&notebook["cells"], &notebook["nbformat_minor"]), (&json!([]), &json!(5)));
}

#[test]
fn a_failed_export_is_reported_and_leaves_no_file() {
    let home = waiting_session();
    std::fs::create_dir(home.path().join("folder")).unwrap();
    for (arguments, code, reason) in [
        (["sessions", "export", "u", "-o", "u.ipynb"], 2, "there is no session `u` in this store"),
        (["sessions", "export", "t", "-o", "folder"], 2, "folder is a directory, but the document is a single file"),
        (["sessions", "export", "t", "-o", ".bcc/sessions.db/x.md"], 1, "cannot be written"),
    ] {
        let finished = home.finish(arguments, "");
        assert_eq!(finished.code, Some(code), "{}", finished.err);
        assert!(finished.err.contains(reason), "{}", finished.err);
    }
    assert!(!home.path().join("u.ipynb").exists());
}

#[test]
fn ten_thousand_cells_with_outputs_are_written_piece_by_piece() {
    let output = json!({ "output_type": "stream", "name": "stdout", "text": "x".repeat(2_000) });
    let mut cell = Cell { id: "c".into(), content: "print()".into(), outputs: vec![output], ..Cell::default() };
    for (form, ending) in FORMS {
        let mut writer = Writer::new(form, NotebookMetadata::default(), vec![]);
        let (mut largest, mut total) = (writer.head().len(), 0);
        for number in 1..=10_000 {
            (cell.number, cell.id) = (number, format!("c{number}"));
            cell.kind = bcc_runtime::notebook::cell::CellKind::Code;
            let piece = writer.cell(&cell).len();
            largest = largest.max(piece);
            total += piece;
        }
        let tail = writer.tail().len();
        assert!(total > 20_000_000, "{ending}: {total}");
        assert!(largest < 20_000 && tail < 2_000, "{ending}: a piece of {largest}, a tail of {tail}");
    }
}

#[test]
fn a_file_is_updated_as_the_notebook_of_the_session() {
    let home = Home::new();
    home.script("two_phases.yaml");
    for (_, ending) in FORMS {
        let (id, name) = (format!("s-{ending}"), format!("deep/{ending}.{ending}"));
        let started = home.finish(["run", "two_phases.yaml", "--session", &id, "--notebook", &name], "");
        assert_eq!(started.code, Some(3), "{}", started.err);
        assert!(started.err.contains(&format!("--notebook {name}")), "the way back keeps it: {}", started.err);
        let empty = read(&home, &name);
        let cells: Vec<Cell> =
            serde_json::from_value(json!([{ "number": 1, "id": "a", "type": "markdown", "content": "第一格" }]))
                .unwrap();
        write_cells(&home, &id, &cells, &json!({}), &[]);
        let resumed = home.finish(["sessions", "resume", &id, "--notebook", &name], "小林\n");
        assert_eq!(resumed.code, Some(3), "{}", resumed.err);
        let full = read(&home, &name);
        assert!(!empty.contains("第一格") && full.contains("第一格"), "{empty}\n{full}");
        // The file names its session, so no other session overwrites it.
        let other = home.finish(["run", "two_phases.yaml", "--session", "other", "--notebook", &name], "");
        assert_eq!(other.code, Some(2), "{}", other.err);
        assert!(other.err.contains(&format!("is the notebook of session `{id}`")), "{}", other.err);
        assert_eq!(read(&home, &name), full);
    }
    let sessions = home.finish(["sessions", "list"], "").out;
    assert!(!sessions.contains("other"), "it was refused before its session began: {sessions}");
}

#[test]
fn a_foreign_file_is_never_overwritten() {
    let home = Home::new();
    home.script("two_phases.yaml");
    std::fs::create_dir(home.path().join("folder.md")).unwrap();
    home.file("empty.md", "");
    home.file("mine.md", "# My own\n");
    home.file("mine.ipynb", "{\"cells\": [], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5}");
    home.file("mine.html", "<p>mine <!-- bcc-script notebook of session: s -->");
    home.file("broken.ipynb", "{");
    let table = [
        ("mine.md", 2, "mine.md already exists and is not a notebook of this session"),
        ("mine.ipynb", 2, "already exists"),
        ("mine.html", 2, "already exists"),
        ("broken.ipynb", 2, "already exists"),
        ("folder.md", 2, "is not a regular file"),
        ("notes.txt", 2, "its extension does not indicate a format"),
        ("notebook", 2, "its extension does not indicate a format"),
        ("empty.md", 3, ""),
    ];
    for (name, code, reason) in table {
        let before = std::fs::read(home.path().join(name)).ok();
        let result = home.finish(["run", "two_phases.yaml", "--session", "s", "--notebook", name], "");
        assert_eq!(result.code, Some(code), "{name}: {}", result.err);
        assert!(result.err.contains(reason), "{name}: {}", result.err);
        assert!(code == 3 || std::fs::read(home.path().join(name)).ok() == before, "{name}");
    }
}

#[test]
fn a_notebook_that_cannot_be_written_is_reported_once_and_stops_nothing() {
    let home = Home::new();
    home.script("two_phases.yaml");
    // A place where no file can be created, although none exists.
    let name = "/proc/none/of/this/x.ipynb";
    let result = home.finish(["run", "two_phases.yaml", "--notebook", name], "小林\n35\n芝麻开门\n从前\n");
    assert_eq!(result.code, Some(0), "{}", result.err);
    assert!(result.out.contains("再见，小林。"), "{}", result.out);
    assert_eq!(result.err.matches("cannot be written").count(), 1, "{}", result.err);
    home.file("file", "");
    let result = home.finish(["run", "two_phases.yaml", "--notebook", "file/x.ipynb"], "");
    assert_eq!(result.code, Some(2), "{}", result.err);
}

const KINDS: &str = r#"
session:
  session_id: nb
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: update_title, action_id: title, config: { title: 销售报告 } }
            - { action_type: new_chapter, action_id: chapter, config: { content: 读取数据 } }
            - { action_type: is_thinking, action_id: think, config: { thinking_text: "先看\u001b[31m列名\u0007", agent_name: Analyst } }
            - { action_type: finish_thinking, action_id: thought }
            - { action_type: add, action_id: code, config: { shot_type: action, content: "print('一')" } }
            - { action_type: ai_ask, action_id: ask, config: { content: 继续吗？, output: [{ get: 回答 }] } }
            - { action_type: add, action_id: end, config: { content: 这是结论 } }
"#;

#[test]
fn a_script_with_notebook_kinds_is_printed_and_its_file_updated_as_it_runs() {
    let home = Home::new();
    home.file("nb.yaml", KINDS);
    let started = home.finish(["run", "nb.yaml", "--session", "s", "--notebook", "s.ipynb"], "");
    assert_eq!(started.code, Some(3), "{}", started.err);
    for shown in ["## 读取数据\n", "Analyst is thinking: 先看列名␇\n", "│ print('一')\n", "继续吗？\n"]
    {
        assert_eq!(started.out.matches(shown).count(), 1, "{shown} in {}", started.out);
    }
    assert!(!started.out.contains('\u{1b}'), "{}", started.out);
    let sources = |text: &str| {
        let notebook: Value = serde_json::from_str(text).unwrap();
        assert_eq!(notebook["metadata"]["title"], "销售报告");
        notebook["cells"].as_array().unwrap().iter().map(|cell| cell["source"].to_string()).collect::<String>()
    };
    let waiting = sources(&read(&home, "s.ipynb"));
    assert!(
        waiting.contains("读取数据") && !waiting.contains("结论"),
        "it is written before the person answers: {waiting}"
    );
    let resumed = home.finish(["sessions", "resume", "s", "--notebook", "s.ipynb"], "好\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(sources(&read(&home, "s.ipynb")).contains("这是结论"));
    assert!(resumed.out.contains("这是结论\n"), "{}", resumed.out);
    let direct_export = home.finish(["sessions", "export", "s", "--format", "ipynb"], "");
    assert_eq!(direct_export.out, read(&home, "s.ipynb"), "what is kept up to date is what is exported");
}
