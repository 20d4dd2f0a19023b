//! Tests of `validate` with paths in documents: the script of a test, the skills of a script.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::process::Home;

const SKILL: &str = "\
skill:
  skill_id: comfort
  actions:
    - { action_type: ai_say, action_id: comforting, config: { content: 慢慢来。 } }
";

/// A script that uses a skill at this path, written as YAML.
fn script(skill: &str) -> String {
    format!(
        "\
session:
  session_id: visit
  skills: [{skill}]
  phases:
    - phase_id: opening
      topics:
        - topic_id: greeting
          actions:
            - {{ action_type: ai_say, action_id: greet, config: {{ content: 您好 }} }}
"
    )
}

/// A test of the script at this path.
fn test(script: &str) -> String {
    format!("test: greets\nscript: {script}\ndialogue:\n  - ai: {{ contains: 您好 }}\n")
}

/// Rule and message of each finding of one file.
fn found(home: &Home, file: &str) -> Vec<(String, String)> {
    let finished = home.finish(["validate", "--format", "json", file], "");
    let document: Value = serde_json::from_str(&finished.out).unwrap_or_else(|_| panic!("{}", finished.err));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let diagnostics = document["diagnostics"].as_array().unwrap();
    diagnostics.iter().map(|found| (text(&found["rule"]), text(&found["message"]))).collect()
}

/// A project with unusual files of each kind in `lib/`.
fn unusual_project() -> Home {
    let home = Home::new();
    fs::create_dir_all(home.path().join("lib/folder.yaml")).unwrap();
    assert!(Command::new("mkfifo").arg(home.path().join("lib/pipe.yaml")).status().unwrap().success());
    symlink("/dev/zero", home.path().join("lib/device.yaml")).unwrap();
    symlink("nowhere", home.path().join("lib/dangling.yaml")).unwrap();
    home.put("lib/notes.txt", "买菜，做饭\n");
    fs::write(home.path().join("lib/photo.jpg"), b"\xff\xd8\xff\xe0").unwrap();
    home
}

/// Paths in [`unusual_project`] with their messages. A device is outside of the project, where its link points.
const UNUSUAL_PATHS: [(&str, &str); 7] = [
    ("../lib/folder.yaml", "is a folder"),
    ("../lib", "is a folder"),
    ("../lib/pipe.yaml", "it is not a regular file"),
    ("../lib/device.yaml", "is outside the project"),
    ("../lib/dangling.yaml", "there is no"),
    ("../lib/nowhere.yaml", "there is no"),
    ("../../../../../../../../etc/hostname", "is outside the project"),
];

#[test]
fn a_test_with_an_unusable_script_is_reported_with_the_reason() {
    let home = unusual_project();
    let no_script = [
        ("''", "is empty"),
        ("/etc/passwd", "is an absolute path"),
        ("/dev/zero", "is an absolute path"),
        ("../lib/notes.txt", "is not a script"),
        ("../lib/photo.jpg", "is not a script"),
    ];
    for (path, part) in UNUSUAL_PATHS.into_iter().chain(no_script) {
        home.put("tests/a.yaml", test(path));
        let found = found(&home, "tests/a.yaml");
        let [(rule, message)] = found.as_slice() else { panic!("{path}: {found:?}") };
        assert!(rule == "missing-script" && message.contains(part), "{path}: {message}");
    }
}

#[test]
fn a_script_with_unusable_skills_is_reported_with_the_reason() {
    let home = unusual_project();
    let no_skill = [
        ("''", "cannot be the path"),
        ("/etc/passwd", "cannot be the path"),
        ("../lib/notes.txt", "does not contain a skill"),
        ("../scripts/a.yaml", "does not contain a skill"),
    ];
    for (path, part) in UNUSUAL_PATHS.into_iter().chain(no_skill) {
        home.put("scripts/a.yaml", script(path));
        let found = found(&home, "scripts/a.yaml");
        let [(rule, message)] = found.as_slice() else { panic!("{path}: {found:?}") };
        assert!(
            ["unknown-skill-file", "invalid-name"].contains(&rule.as_str()) && message.contains(part),
            "{path}: {message}"
        );
    }
}

#[test]
fn paths_to_scripts_and_skills_of_the_project_are_clean() {
    let home = Home::new();
    home.put("lib/comfort.yaml", SKILL);
    home.put("scripts/a.yaml", script("./../scripts/../lib/comfort.yaml"));
    home.put("tests/deep/a.yaml", test("../../scripts/a.yaml"));
    symlink("../scripts/a.yaml", home.path().join("lib/linked.yaml")).unwrap();
    home.put("tests/b.yaml", test("../lib/linked.yaml"));
    // An error in a script is reported there, not at each of its tests.
    home.put("scripts/broken.yaml", "session:\n  session_id: [\n");
    home.put("tests/c.yaml", test("../scripts/broken.yaml"));
    for file in ["scripts/a.yaml", "tests/deep/a.yaml", "tests/b.yaml", "tests/c.yaml"] {
        assert_eq!(found(&home, file), [], "{file}");
    }
}

#[test]
fn folders_without_a_project_file_belong_together() {
    let home = Home::new();
    fs::remove_dir(home.path().join(".bcc")).unwrap();
    home.put("skills/comfort.yaml", SKILL);
    home.put("scripts/a.yaml", script("../skills/comfort.yaml"));
    home.put("tests/a.yaml", test("../scripts/a.yaml"));
    home.put("conversations/a.yaml", test("../scripts/a.yaml"));
    for file in ["scripts/a.yaml", "tests/a.yaml", "conversations/a.yaml"] {
        assert_eq!(found(&home, file), [], "{file}");
    }
}
