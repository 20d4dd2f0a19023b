//! Which values a data set has: masked ones, those of sensitive variables, and those of sessions that were retried.

use std::fs;

use serde_json::json;

use crate::data_sets::{export, exported, files, lines, rows, text};
use crate::process::{Home, finished};

fn run(home: &Home, line: &str, input: &str, code: i32) {
    let mut command = home.command(line.split(' '));
    command.env("BCC_TRUST", "1");
    let ran = finished(command, input);
    assert_eq!(ran.code, Some(code), "{line}: {ran:?}");
}

#[test]
fn sensitive_values_in_keys_and_numbers_in_lists_are_in_no_column() {
    let home = Home::new();
    home.file(
        "s.yaml",
        "session:\n  session_id: s\n  declare:\n    - { var: pin, value: hunter2, sensitive: true }\n    - { var: code, value: 471147, sensitive: true }\n    \
         - { var: table, type: object, value: { hunter2: 1, a: 471147 } }\n    - { var: found, type: list, value: [{ hunter2: 1, n: 5 }, { n: 471147 }] }\n    \
         - { var: numbers, type: list, value: [1, 471147, 3] }\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          \
         actions: [{ action_type: ai_say, action_id: say, config: { content: 好, delivery: verbatim } }]\n",
    );
    run(&home, "run s.yaml --session one", "", 0);
    for format in ["csv", "jsonl"] {
        for (name, bytes) in files(&exported(&home, &format!("--format {format}"))) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("hunter2") && !text.contains("471147"), "{name}: {text}");
        }
    }
    let out = home.path().join("out");
    let variables = &lines(&out, "s/interviews.jsonl")[0]["variables"];
    assert_eq!(variables["numbers"], json!([1, null, 3]));
    assert_eq!(variables["table"], json!({ "***": 1, "a": null }));
    assert_eq!(variables["found"], json!([{ "***": 1, "n": 5 }, { "n": null }]));
    let out = exported(&home, "");
    let codebook = rows(&out, "s/codebook.csv");
    let numbers = codebook.iter().filter(|row| row["variable"] == "numbers").map(|row| row["type"].as_str());
    assert!(numbers.clone().all(|kind| kind == "integer"), "{:?}", numbers.collect::<Vec<_>>());
}

#[test]
fn a_date_that_is_sensitive_elsewhere_leaves_its_column_one_of_dates() {
    let home = Home::new();
    let declare =
        "{ var: birth, type: date, value: 2026-01-05, sensitive: true }, { var: visit, type: date, value: 2026-01-05 }";
    let say = "{ action_type: ai_say, action_id: say, config: { content: 好, delivery: verbatim } }";
    home.put(
        "s.yaml",
        format!(
            "session: {{ session_id: s, declare: [{declare}], phases: [{{ phase_id: p, topics: [{{ topic_id: t, actions: [{say}] }}] }}] }}\n"
        ),
    );
    // Ids that differ only in the case of letters have files of their own also where these are not told apart.
    for id in ["One", "one"] {
        run(&home, &format!("run s.yaml --session {id}"), "", 0);
    }
    let out = exported(&home, "");
    let codebook = rows(&out, "s/codebook.csv");
    let visit = codebook.iter().find(|row| row["variable"] == "visit").unwrap();
    assert_eq!(visit["type"], "date");
    assert!(rows(&out, "s/interviews.csv").iter().all(|row| row["visit"].is_empty()));
    let transcripts: Vec<String> = files(&out).into_keys().filter(|name| name.starts_with("s/transcripts/")).collect();
    let lower: std::collections::BTreeSet<String> = transcripts.iter().map(|name| name.to_lowercase()).collect();
    assert_eq!((transcripts.len(), lower.len()), (2, 2), "{transcripts:?}");
}

#[test]
fn sensitive_values_are_those_of_their_visit_and_not_from_a_later_session() {
    let home = Home::new();
    home.file(
        "s.yaml",
        "session:\n  session_id: s\n  declare:\n    - { var: own, type: string, sensitive: true, scope: global }\n    - { var: times, type: integer, value: 0 }\n  \
         phases:\n    - phase_id: p\n      declare: [{ var: inner, type: string, sensitive: true }]\n      topics:\n        - topic_id: t\n          actions:\n            \
         - { action_type: set, action_id: count, config: { values: { times: '{{ times + 1 }}', inner: \"{{ 'visit ' ~ (times + 1) }}\" } } }\n            \
         - { action_type: condition, action_id: again, config: { cases: [{ when: 'times < 2', goto: p }] } }\n            \
         - { action_type: ai_ask, action_id: ask, config: { content: 谁？, delivery: verbatim, max_rounds: 1, output: [{ get: own }] } }\n",
    );
    run(&home, "run s.yaml --session one --user lin --clock 2026-11-21T20:00:00Z", "first\n", 0);
    run(&home, "run s.yaml --session two --user lin --clock 2026-11-22T20:00:00Z", "second\n", 0);
    let interviews = rows(&exported(&home, "--include-sensitive"), "s/interviews.csv");
    let values = |id: &str| {
        let row = interviews.iter().find(|row| row["session_id"] == id).unwrap();
        (row["own"].clone(), row["inner"].clone())
    };
    // What the user said first is not known any more.
    assert_eq!(values("one"), (String::new(), "visit 2".to_owned()));
    assert_eq!(values("two"), ("second".to_owned(), "visit 2".to_owned()));
}

#[test]
fn of_a_session_that_was_retried_only_the_newest_one_counts() {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put(
        "s.yaml",
        "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
         - { action_type: set, action_id: first, config: { values: { x: 1 } } }\n            \
         - { action_type: set, action_id: second, config: { values: { x: 2 } } }\n            \
         - { action_type: command, action_id: check, config: { command: [test, -e, ok] } }\n",
    );
    run(&home, "run s.yaml --session one", "", 1);
    run(&home, "run s.yaml --session other", "", 1);
    run(&home, "sessions retry one", "", 1);
    let newest = || {
        let listed = home.finish(["sessions", "list"], "").out;
        listed.split_whitespace().next().unwrap().to_owned()
    };
    fs::write(home.path().join("ok"), "").unwrap();
    run(&home, &format!("sessions retry {}", newest()), "", 0);
    let done = export(&home, "-o out");
    assert!(done.err.contains("2 sessions were left out, because others continue them from a step"), "{done:?}");
    let out = home.path().join("out");
    let ids: Vec<String> = rows(&out, "s/interviews.csv").iter().map(|row| row["session_id"].clone()).collect();
    assert_eq!(ids, [newest(), "other".to_owned()]);
    assert!(text(&out, "README.md").contains("2 sessions that another one continues from a step"));
    let codebook = rows(&out, "s/codebook.csv");
    assert_eq!(codebook.iter().find(|row| row["column"] == "x").unwrap()["set_by"], "first; second");
}

/// An interview that ends or is left while a question is open has that question.
#[test]
fn the_open_question_of_a_session_that_is_over_is_a_question() {
    let home = Home::new();
    home.put(
        "s.yaml",
        "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
         - { action_type: ai_say, action_id: hello, config: { content: Hello., delivery: verbatim } }\n            \
         - { action_type: ai_ask, action_id: ask, config: { content: How old?, delivery: verbatim, max_rounds: 3, output: [{ get: age, type: integer, required: true }] } }\n",
    );
    let roles = || -> Vec<String> {
        let done = export(&home, "-o out");
        assert_eq!(done.code, Some(0), "{done:?}");
        let messages = rows(&home.path().join("out"), "s/messages.csv");
        messages.into_iter().map(|row| format!("{} {}", row["session_id"], row["role"])).collect()
    };
    run(&home, "run s.yaml --session one --model offline", "no\n", 3);
    let open = ["one statement", "one question", "one answer", "one follow_up"];
    assert_eq!(roles(), open);
    run(&home, "cancel one", "", 0);
    assert_eq!(roles(), open);
    let follow_ups = rows(&home.path().join("out"), "s/follow_ups.csv");
    assert_eq!((follow_ups.len(), follow_ups[0]["answer"].as_str()), (1, ""));
}

#[test]
fn interviews_that_replay_a_recording_are_counted() {
    let home = Home::new();
    home.put(
        "s.yaml",
        "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
         - { action_type: ai_ask, action_id: ask, config: { content: How old?, max_rounds: 1, monitor: off } }\n",
    );
    run(&home, "run s.yaml --session one --model offline --record talk.jsonl", "30\n", 0);
    run(&home, "run s.yaml --session two --replay talk.jsonl", "30\n", 0);
    let done = export(&home, "-o out");
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = text(&home.path().join("out"), "README.md");
    assert!(text.contains("- 1 of the interviews replay a recording"), "{text}");
    assert!(!text.contains("are forks"), "{text}");
}

/// Topics for the elements of sensitive lists, which are numbers and objects, and for those of a list that is not sensitive.
const SENSITIVE_LISTS: &str = "
session:
  session_id: s
  declare:
    - { var: ages, type: list, sensitive: true, value: [34, 7] }
    - { var: children, type: list, sensitive: true, value: [{ name: Al, ill: true }] }
    - { var: rooms, type: list, value: [12] }
  phases:
    - phase_id: p
      topics:
        - topic_id: aged
          for_each: { in: ages, as: age }
          declare: [{ var: note, type: string, value: seen }]
          actions: [{ action_type: set, action_id: double, config: { values: { age: '{{ age * 2 }}' } } }]
        - topic_id: child
          for_each: { in: children, as: child }
          declare: [{ var: note, type: string, value: seen }]
          actions: [{ action_type: ai_say, action_id: hello, config: { content: 好, delivery: verbatim } }]
        - topic_id: room
          for_each: { in: rooms, as: room }
          actions: [{ action_type: ai_say, action_id: knock, config: { content: 好, delivery: verbatim } }]
";

#[test]
fn elements_of_a_sensitive_list_are_in_no_column() {
    let home = Home::new();
    home.file("s.yaml", SENSITIVE_LISTS);
    run(&home, "run s.yaml --session one", "", 0);
    let column = |out: &std::path::Path, table: &str, name: &str| -> Vec<Option<String>> {
        rows(out, &format!("s/{table}.csv")).iter().map(|row| row.get(name).cloned()).collect()
    };
    let out = exported(&home, "");
    assert_eq!(column(&out, "aged", "age"), [None, None]);
    assert_eq!(column(&out, "child", "child"), [None]);
    assert_eq!(column(&out, "room", "room"), [Some("12".to_owned())]);
    let codebook = rows(&out, "s/codebook.csv");
    let known = |name: &str| {
        let row = codebook.iter().find(|row| row["variable"] == name).unwrap();
        (row["sensitive"].clone(), row["included"].clone())
    };
    assert_eq!(known("age"), ("true".to_owned(), "false".to_owned()));
    assert_eq!(known("room"), ("false".to_owned(), "true".to_owned()));
    let out = exported(&home, "--include-sensitive");
    assert_eq!(column(&out, "aged", "age"), [Some("68".to_owned()), Some("14".to_owned())]);
    exported(&home, "--format jsonl");
    for (name, bytes) in files(&home.path().join("out")) {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("\"Al\"") && !text.contains("\"ill\""), "{name}: {text}");
    }
}

#[test]
fn an_export_with_sensitive_values_has_no_mask_in_any_variable() {
    let home = Home::new();
    home.file(
        "s.yaml",
        "
session:
  session_id: s
  declare:
    - { var: secret, value: Hush-hush, sensitive: true }
    - { var: kept, type: string, scope: global }
    - { var: rooms, type: list, value: [one] }
    - { var: own, type: string }
  phases:
    - phase_id: p
      declare: [{ var: of_phase, type: string }]
      topics:
        - topic_id: t
          declare: [{ var: of_topic, type: object }]
          actions:
            - { action_type: set, action_id: copy, config: { values: { own: 'own {{ secret }}', kept: 'kept {{ secret }}', of_phase: 'phase {{ secret }}', of_topic: \"{{ { 'a': ['topic ' ~ secret] } }}\" } } }
        - topic_id: each
          for_each: { in: rooms, as: room }
          declare: [{ var: of_room, type: string }]
          actions: [{ action_type: set, action_id: again, config: { values: { of_room: 'room {{ secret }}' } } }]
",
    );
    run(&home, "run s.yaml --session one", "", 0);
    let out = exported(&home, "--include-sensitive --format jsonl");
    let variables = &lines(&out, "s/interviews.jsonl")[0]["variables"];
    assert_eq!(variables["own"], "own Hush-hush");
    assert_eq!(variables["kept"], "kept Hush-hush");
    assert_eq!(variables["of_phase"], "phase Hush-hush");
    assert_eq!(variables["of_topic"], json!({ "a": ["topic Hush-hush"] }));
    for options in ["", "--include-sensitive"] {
        for (name, bytes) in files(&exported(&home, options)) {
            let (text, is_included) = (String::from_utf8_lossy(&bytes), !options.is_empty());
            assert!(text.contains("Hush-hush") <= is_included, "{name}: {text}");
            assert!(!name.ends_with(".csv") || text.contains("***") <= !is_included, "{name}: {text}");
        }
    }
    let rooms = rows(&exported(&home, "--include-sensitive"), "s/each.csv");
    assert_eq!(rooms[0]["of_room"], "room Hush-hush");
}
