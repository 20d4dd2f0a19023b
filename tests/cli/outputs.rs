//! Tests of files that outputs replace: documents of the same form, and nothing else without `--force`.

use std::fs;
use std::os::unix::fs::symlink;

use crate::process::{Finished, Home, finished};

const SCRIPT: &str = "
session:
  session_id: talk
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_say, action_id: say, config: { delivery: verbatim, content: 您好。 } }
";

/// A command that writes to a file, and the name of that file.
const OUTPUTS: [(&[&str], &str); 11] = [
    (&["sessions", "export", "s", "-o"], "out.json"),
    (&["sessions", "export", "s", "-o"], "out.md"),
    (&["sessions", "export", "s", "-o"], "out.html"),
    (&["sessions", "export", "s", "-o"], "out.ipynb"),
    (&["sessions", "export", "s", "--format", "json", "-o"], "out"),
    (&["graph", "scripts/talk.yaml", "-o"], "out.mmd"),
    (&["graph", "scripts/talk.yaml", "-o"], "out.dot"),
    (&["test", "--junit"], "out.xml"),
    (&["test", "--coverage=table", "--coverage-out"], "coverage.txt"),
    (&["test", "--coverage=json", "--coverage-out"], "coverage.json"),
    (&["test", "--coverage=html", "--coverage-out"], "coverage.html"),
];

fn project() -> Home {
    let home = Home::new();
    home.put("bcc-script.toml", "# mine\n");
    home.put("scripts/talk.yaml", SCRIPT);
    home.put("tests/talk.yaml", "test: talks\nscript: ../scripts/talk.yaml\ndialogue:\n  - ai: 您好。\n");
    home.put("package.json", "{ \"name\": \"mine\" }\n");
    home.put("README.md", "# Mine\n\n- a list\n");
    home.put("page.html", "<!DOCTYPE html>\n<html><head><title>Mine</title></head></html>\n");
    home.put("mine.ipynb", "{ \"cells\": [], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5 }\n");
    home.put("mine.dot", "digraph mine {}\n");
    home.put("drawing.dot", "digraph script {\n  a -> b\n}\n");
    home.put("drawing.mmd", "flowchart TB\n  a[a drawing of mine] --> b\n");
    home.put("notes.md", "# Notes\n\n- session: Monday, with Ann\n");
    home.put("督导.md", "# 督导记录\n\n- 会话：小林，周一\n");
    home.put("coverage-of-the-clinic.txt", "Coverage of our clinic\n");
    home.put("pom.xml", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<project/>\n");
    let started = home.finish(["run", "scripts/talk.yaml", "--session", "s"], "");
    assert_eq!(started.code, Some(0), "{}", started.err);
    home
}

fn run(home: &Home, language: &str, arguments: &[&str]) -> Finished {
    let mut command = home.command(arguments);
    command.env("LANG", language);
    finished(command, "")
}

#[test]
fn an_output_replaces_documents_of_its_form_and_nothing_else() {
    let home = project();
    let precious = [
        ".bcc/sessions.db",
        "bcc-script.toml",
        "scripts/talk.yaml",
        "package.json",
        "README.md",
        "page.html",
        "mine.ipynb",
        "mine.dot",
        "drawing.dot",
        "drawing.mmd",
        "notes.md",
        "督导.md",
        "coverage-of-the-clinic.txt",
        "pom.xml",
    ];
    for (command, own) in OUTPUTS {
        // What was written before, in any language, is replaced.
        for language in ["zh", "en", "zh"] {
            let finished = run(&home, language, &[command, &[own]].concat());
            assert_eq!(finished.code, Some(0), "{command:?} {own}: {}{}", finished.out, finished.err);
        }
        let others = OUTPUTS.iter().map(|(_, other)| *other).filter(|other| home.path().join(other).exists());
        let same =
            |other: &str| own == other || ["out", "out.json"].contains(&own) && ["out", "out.json"].contains(&other);
        let others: Vec<&str> = others.filter(|other| !same(other)).collect();
        for name in precious.into_iter().chain(others) {
            // With the format of the command, whatever the name of the file is.
            let format: &[&str] = match (command[0], own.rsplit('.').next()) {
                ("sessions", Some(format)) if !command.contains(&"--format") => &["--format", format],
                ("graph", Some("dot")) => &["--format", "dot"],
                ("graph", _) => &["--format", "mermaid"],
                _ => &[],
            };
            let before = fs::read(home.path().join(name)).unwrap();
            let finished = run(&home, "en", &[command, &[name], format].concat());
            assert_eq!(finished.code, Some(2), "{command:?} {name}: {}{}", finished.out, finished.err);
            assert!(finished.err.contains(name), "{command:?} {name}: {}", finished.err);
            assert!(fs::read(home.path().join(name)).unwrap() == before, "{command:?} {name}");
        }
    }
    let refused = run(&home, "en", &["sessions", "export", "s", "--format", "json", "-o", ".bcc/sessions.db"]);
    assert!(refused.err.contains("is a session store or another database"), "{}", refused.err);
    assert!(refused.err.contains("`--force`"), "{}", refused.err);
}

#[test]
fn an_output_replaces_anything_with_force_and_empty_files_without() {
    let home = project();
    for (command, own) in OUTPUTS {
        home.put("empty", "");
        home.put("mine", "mine");
        symlink("empty", home.path().join("link")).unwrap();
        let format: &[&str] = match command {
            ["sessions", "export", "s", "-o"] => &["--format", own.rsplit('.').next().unwrap()],
            _ => &[],
        };
        for (name, more) in [("link", &[] as &[&str]), ("mine", &["--force"]), ("/dev/null", &[])] {
            let finished = run(&home, "en", &[command, &[name], format, more].concat());
            assert_eq!(finished.code, Some(0), "{command:?} {name}: {}{}", finished.out, finished.err);
        }
        assert!(fs::metadata(home.path().join("empty")).unwrap().len() > 0, "{command:?}");
        assert!(home.path().join("link").is_symlink());
        assert!(fs::read(home.path().join("mine")).unwrap() != b"mine", "{command:?}");
        fs::remove_file(home.path().join("link")).unwrap();
    }
}

#[test]
fn manual_pages_replace_manual_pages_and_nothing_else() {
    let home = Home::new();
    for _ in 0..2 {
        assert_eq!(home.finish(["man", "pages"], "").code, Some(0));
    }
    let page = home.put("pages/bcc-script.1", "mine");
    assert_eq!(home.finish(["man", "pages"], "").code, Some(2));
    assert_eq!(fs::read(&page).unwrap(), b"mine");
    assert_eq!(home.finish(["man", "pages", "--force"], "").code, Some(0));
    assert!(fs::read(&page).unwrap() != b"mine");
}
