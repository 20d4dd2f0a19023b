//! Tests of the options of `test`, of what it refuses to begin, and of its reports.

use std::fs;

use serde_json::Value;

use crate::process::{Finished, Home};

const SCRIPT: &str = "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          \
    actions:\n            - { action_type: ai_say, action_id: say, config: { content: Hello there., delivery: verbatim } }\n";

fn test_of(script: &str, more: &str) -> String {
    format!("test: it says hello\nscript: ../scripts/{script}.yaml\n{more}dialogue:\n  - ai: Hello there.\n")
}

/// A project with a script and a test that passes.
fn project() -> Home {
    let home = Home::new();
    home.put("scripts/s.yaml", SCRIPT);
    home.put("tests/a.yaml", test_of("s", ""));
    home
}

fn run(home: &Home, arguments: &str) -> Finished {
    home.finish(std::iter::once("test").chain(arguments.split_whitespace()), "")
}

#[test]
fn a_project_that_was_changed_since_it_was_trusted_is_no_failed_test() {
    let home = project();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    assert_eq!(home.finish(["trust"], "").code, Some(0));
    assert_eq!(run(&home, "").code, Some(0));
    home.put("scripts/s.yaml", format!("{SCRIPT}# edit\n"));
    let refused = run(&home, "--junit report.xml");
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    for part in ["is not trusted any more", "changed: `scripts/s.yaml`"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    assert!(!home.path().join("report.xml").exists());
    assert_eq!(run(&home, "--trust").code, Some(0));
    assert_eq!(home.finish(["trust"], "").code, Some(0));
    assert_eq!(run(&home, "").code, Some(0));
}

#[test]
fn two_reports_do_not_go_to_the_same_file() {
    let home = project();
    fs::create_dir(home.path().join("out")).unwrap();
    for (one, other) in [("same.xml", "./same.xml"), ("out/new/same.xml", "out/../out/new/./same.xml")] {
        let refused = run(&home, &format!("--junit {one} --coverage=html --coverage-out {other}"));
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
        assert!(refused.err.contains("name the same file"), "{}", refused.err);
        assert!(!home.path().join(one).exists());
    }
    let both = run(&home, "--junit same.xml --coverage=html --coverage-out same.html");
    assert_eq!(both.code, Some(0), "{}", both.err);
    assert!(fs::read_to_string(home.path().join("same.xml")).unwrap().contains("<testsuites"));
}

#[test]
fn standard_output_has_one_document() {
    let home = project();
    for coverage in ["--coverage", "--coverage=json", "--coverage=html"] {
        let refused = run(&home, &format!("--format json {coverage}"));
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{coverage}");
        assert!(refused.err.contains("--coverage-out FILE"), "{coverage}: {}", refused.err);
        let both = run(&home, &format!("--format json {coverage} --coverage-out out/{coverage}"));
        let report: Value = serde_json::from_str(&both.out).unwrap();
        assert_eq!((both.code, &report["passed"]), (Some(0), &1.into()), "{coverage}: {}", both.err);
    }
}

#[test]
fn a_report_for_ci_servers_says_what_is_broken() {
    let home = project();
    home.put("scripts/wrong.yaml", SCRIPT.replace("action_id: say, ", ""));
    home.put("tests/b.yaml", test_of("nosuch", ""));
    home.put("tests/c.yaml", test_of("wrong", ""));
    home.put("tests/d.yaml", "test: it breaks\nscript: ../scripts/s.yaml\ndialogue: [\n");
    let finished = run(&home, "--junit report.xml");
    assert_eq!(finished.code, Some(1));
    let report = fs::read_to_string(home.path().join("report.xml")).unwrap();
    let error = |file: &str| {
        let of_file = report.split("<testsuite name=").find(|suite| suite.starts_with(&format!("\"tests/{file}\"")));
        let error = of_file.and_then(|suite| suite.split_once("<error message=\"")).map(|(_, error)| error);
        error.unwrap_or_else(|| panic!("no error of {file}: {report}")).split_once("</error>").unwrap().0
    };
    for (file, message) in [
        ("b.yaml", "tests/b.yaml:2: there is no script"),
        ("c.yaml", "scripts/wrong.yaml:8: an action needs `action_id`"),
        ("d.yaml", "tests/d.yaml:"),
    ] {
        let error = error(file);
        assert!(error.starts_with(message), "{file}: {error}");
        let text = error.split_once('>').unwrap().1;
        assert!(text.contains(message), "{file}: {text}");
    }
    let path = home.path().to_str().unwrap();
    assert!(!report.contains(path) && !finished.err.contains(path) && !finished.out.contains(path), "{finished:?}");
}

#[test]
fn snapshots_of_deleted_and_renamed_tests_are_listed() {
    let home = project();
    let snapshot = "snapshot: transcript\n";
    home.put("tests/a.yaml", test_of("s", snapshot));
    home.put("tests/old.yaml", test_of("s", snapshot));
    home.put("tests/deep/cases.yaml", {
        let cases = "for: [[n], [one], [two]]\n";
        test_of("s", &format!("{cases}{snapshot}")).replace("../scripts", "../../scripts")
    });
    assert_eq!(run(&home, "--update").code, Some(0));
    home.put("tests/snapshots/notes.yaml", "a: 1\n");
    assert!(!run(&home, "").err.contains("snapshots/"));
    fs::rename(home.path().join("tests/old.yaml"), home.path().join("tests/new.yaml")).unwrap();
    home.put("tests/new.yaml", test_of("s", ""));
    fs::remove_file(home.path().join("tests/deep/cases.yaml")).unwrap();
    let listed = |arguments: &str| {
        let lines = run(&home, arguments).err;
        let name =
            |line: &str| Some(line.strip_prefix("note: no test uses the snapshot ")?.split_once(' ')?.0.to_owned());
        lines.lines().filter_map(name).collect::<Vec<_>>()
    };
    let stale = [
        "tests/deep/snapshots/cases/n__one-92598e65.yaml",
        "tests/deep/snapshots/cases/n__two-0c196040.yaml",
        "tests/snapshots/old.yaml",
    ];
    assert_eq!(listed(""), stale);
    assert_eq!(listed("./tests"), stale);
    // Only some tests ran: other tests may use the others.
    for arguments in ["--filter hello", "--fail-fast", "tests/a.yaml"] {
        assert!(listed(arguments).is_empty(), "{arguments}");
    }
}

#[test]
fn a_broken_test_counts_as_failed_however_it_is_written() {
    let broken = [
        "{\"test\": \"json\", \"script\": ",
        "\"test\": quoted\nscript: [\n",
        "test: asks for the name\nscript: [\n",
        "test: \"unclosed\nscript: a\n",
    ];
    for text in broken {
        let home = project();
        home.put("tests/broken.yaml", text);
        let finished = run(&home, "tests");
        assert_eq!(finished.code, Some(1), "{text}: {finished:?}");
        assert!(finished.out.contains("1 passed, 1 failed"), "{text}: {finished:?}");
        assert!(finished.err.contains("tests/broken.yaml"), "{text}: {finished:?}");
    }
    // Files of other programs, in which nothing is wrong or `test` is a section.
    let home = project();
    home.put("tests/other.yaml", "test: [unit, all]\nscript: make\n");
    home.put("tests/ci.yaml", "test:\n  script: [\n");
    home.put("tests/package.yaml", "{ \"scripts\": { \"test\": \"jest\" }, \n");
    let finished = run(&home, "tests");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.out.contains("3 YAML files are not tests"), "{finished:?}");
}

#[test]
fn an_error_in_a_reply_schema_is_reported_without_errors_that_follow_from_it() {
    let home = project();
    let script = "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        \
        - topic_id: t\n          actions:\n            \
        - { action_type: ai_think, action_id: a, config: { content: Q, output: [{ get: found }] } }\n            \
        - { action_type: ai_say, action_id: say, config: { content: '{{ found }}', delivery: verbatim } }\n";
    home.put("scripts/s.yaml", script);
    let schema = serde_json::json!({
        "type": "object", "required": ["mood"],
        "properties": { "BRIEF": { "type": "string" }, "mood": { "enum": ["good", "bad"], "default": "unknown" } },
    });
    home.put("schemas/replies/my.json", schema.to_string());
    home.put(
        "_system/config/default/ai_think_v1.md",
        "---\noutput_schema: my.json\n---\n{{ task }} {{ output_list }} BRIEF mood\n",
    );
    for arguments in [vec!["validate", "."], vec!["run", "scripts/s.yaml"], vec!["test"]] {
        let finished = home.finish(&arguments, "");
        assert!(matches!(finished.code, Some(1 | 2)), "{arguments:?}: {finished:?}");
        let shown = format!("{}{}", finished.out, finished.err);
        assert!(shown.contains("error[reply-schema]"), "{arguments:?}: {shown}");
        assert_eq!(shown.matches("error[").count(), 1, "{arguments:?}: {shown}");
    }
}
