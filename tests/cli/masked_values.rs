//! Sensitive values in lists, exports and recordings: in keys, in paths of elements, in requests and in plans.

use serde_json::{Value, json};

use crate::process::{Finished, Home};
use crate::pseudo_terminal::Terminal;

fn call(home: &Home, line: &str, input: &str) -> Finished {
    let done = home.finish(line.split(' '), input);
    assert!(matches!(done.code, Some(0 | 3)), "{line}: {done:?}");
    done
}

/// A topic for each of two people, whose names are said to be sensitive only when the topic has begun.
const PEOPLE: &str = "
session:
  session_id: people
  declare:
    - { var: people, value: [张三丰, 李四光] }
    - { var: secret, type: string, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: each
          for_each: { in: people, as: person }
          declare: [ { var: mood, type: string } ]
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: 谁？, monitor: off, output: [{ get: secret }] } }
            - { action_type: ai_ask, action_id: more, config: { content: 怎么样？, monitor: off, output: [{ get: mood }] } }
";

/// Raw replies of a model, of which each prompt gets the next one.
fn people_replies() -> String {
    let asked = json!({ "content": "谁？", "EXIT": "NO" });
    let more = json!({ "content": "怎么样？", "EXIT": "NO" });
    let secret = |name: &str| json!({ "content": "好", "EXIT": "YES", "secret": name });
    let mood = |mood: &str| json!({ "content": format!("{mood}，好"), "EXIT": "YES", "mood": mood });
    json!({ "replies": {
        "ask": [asked, secret("张三丰"), asked, secret("李四光")],
        "more": [more, mood("还行"), more, mood("不错")],
    } })
    .to_string()
}

#[test]
fn a_name_of_an_element_that_becomes_sensitive_is_in_no_export_and_a_replay_still_finds_its_calls() {
    let home = Home::new();
    home.file("s.yaml", PEOPLE);
    // Each visit of an action begins with the first reply of its list.
    home.file("r.json", &people_replies());
    let run = "run s.yaml --session one --model replay:r.json --record r.jsonl";
    assert_eq!(call(&home, run, "张三丰\n还行\n李四光\n").code, Some(3));
    let whole = home.export("one");
    let shown = whole.to_string();
    assert!(!shown.contains("张三丰") && !shown.contains("李四光"), "{shown}");
    assert_eq!(whole["session"]["location"]["path"], "each@***/more");
    assert_eq!(whole["variables"]["topic"]["each@***"]["mood"]["value"], "还行");
    assert!(whole["variables"]["topic"]["each@***_2"].is_object(), "{shown}");
    assert_eq!(whole["outcomes"][0]["location"]["path"], "each@***/ask");
    assert_eq!(whole["outcomes"][0]["location"]["action_id"], "ask");
    for line in ["sessions show one", "report one --format json", "sessions export one --format md"] {
        let shown = call(&home, line, "").out;
        assert!(!shown.contains("张三丰") && !shown.contains("李四光"), "{line}: {shown}");
    }
    let ended = call(&home, "sessions resume one --record r.jsonl", "不错\n");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let recording = std::fs::read_to_string(home.path().join("r.jsonl")).unwrap();
    assert!(!recording.contains("张三丰") && !recording.contains("李四光"), "{recording}");
    assert!(recording.contains(r#""path":"each@***/ask""#), "{recording}");
    let again = call(&home, "run s.yaml --session two --replay r.jsonl", "张三丰\n还行\n李四光\n不错\n");
    assert_eq!(again.code, Some(0), "{again:?}");
    for part in ["还行，好", "不错，好"] {
        assert_eq!(again.out.matches(part).count(), 1, "{part}: {again:?}");
    }
}

#[test]
fn requests_are_listed_with_masked_questions() {
    let home = Home::new();
    home.file(
        "s.yaml",
        "session:\n  session_id: s\n  declare: [{ var: pin, value: hunter2, sensitive: true }]\n  phases:\n    - phase_id: p\n      topics:\n        \
         - topic_id: t\n          actions:\n            - { action_type: ai_ask, action_id: ask, config: { content: '暗号是 {{ pin }} 吗？', delivery: verbatim } }\n",
    );
    let asked = call(&home, "run s.yaml --session one", "").out;
    assert!(asked.contains("暗号是 hunter2 吗？"), "the person sees it: {asked}");
    let listed = call(&home, "requests list", "").out;
    assert!(listed.contains("暗号是 *** 吗？") && !listed.contains("hunter2"), "{listed}");
    let listed: Value = serde_json::from_str(&call(&home, "requests list --json", "").out).unwrap();
    assert_eq!(listed["requests"][0]["prompt"], "暗号是 *** 吗？");
}

#[test]
fn plans_are_shown_without_the_sensitive_values_of_the_session_that_made_them() {
    let home = Home::new();
    home.file(
        "s.yaml",
        "session:\n  session_id: s\n  declare: [{ var: pin, value: hunter2, sensitive: true }]\n  phases:\n    - phase_id: p\n      topics:\n        \
         - topic_id: t\n          actions: [{ action_type: ai_say, action_id: say, config: { content: 好, delivery: verbatim } }]\n",
    );
    call(&home, "run s.yaml --session one", "");
    let plan = json!({
        "bcc_plan": 1, "plan_id": 42, "title": "Find hunter2", "goal": "Of hunter2.", "notes": "hunter2", "session_id": "one",
        "tasks": [{
            "id": 104, "name": "Ask hunter2", "instruction": "hunter2", "status": "completed",
            "metadata": { "approve": "always", "hunter2": "hunter2" }, "result": { "hunter2": ["hunter2"] },
        }],
    });
    home.file("plan.json", &plan.to_string());
    call(&home, "plans import plan.json", "");
    for line in ["list", "list --json", "show 42", "export 42", "export 42 --format md", "export 42 --format mermaid"] {
        let shown = call(&home, &format!("plans {line}"), "").out.replace("#42;", "*");
        assert!(shown.contains("***") && !shown.contains("hunter2"), "{line}: {shown}");
        let whole = call(&home, &format!("plans {line} --include-sensitive"), "").out;
        assert!(whole.contains("hunter2") && !whole.contains("***"), "{line}: {whole}");
    }
    let exported: Value = serde_json::from_str(&call(&home, "plans export 42", "").out).unwrap();
    let task = &exported["tasks"][0];
    assert_eq!(task["metadata"], json!({ "approve": "always", "***": "***" }));
    assert_eq!(task["result"], json!({ "***": ["***"] }));
}

#[test]
fn the_command_vars_masks_sensitive_values_in_other_variables() {
    let home = Home::new();
    home.file(
        "s.yaml",
        "session:\n  session_id: s\n  declare:\n    - { var: pin, value: hunter2, sensitive: true }\n    - { var: about, value: { of hunter2: [hunter2], n: 1.10 } }\n  \
         phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions: [{ action_type: ai_ask, action_id: ask, config: { content: 好吗？, delivery: verbatim } }]\n",
    );
    let mut terminal = Terminal::start(&home, &["run", "s.yaml", "--session", "one"], false);
    terminal.answers("/vars");
    terminal.until(r#"about = {"of ***":["***"],"n":1.10}"#);
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
    assert!(!terminal.all_output().contains("hunter2"));
}

#[test]
fn a_sensitive_value_in_another_case_or_as_a_key_of_a_sensitive_object_is_masked() {
    let home = Home::new();
    home.file(
        "s.yaml",
        "
session:
  session_id: names
  declare:
    - { var: full_name, type: string, sensitive: true }
    - { var: profile, type: object, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: Who?, monitor: off, output: [{ get: full_name }, { get: profile }] } }
",
    );
    let asked = json!({ "content": "Who?", "EXIT": "NO" });
    let heard = json!({ "content": "Welcome, tom sawyer", "EXIT": "YES", "full_name": "Tom Sawyer", "profile": { "Tom Sawyer": 3 } });
    home.file("r.json", &json!({ "replies": { "ask": [asked, heard] } }).to_string());
    let run = "run s.yaml --scheme english --session one --model replay:r.json --record r.jsonl";
    assert_eq!(call(&home, run, "TOM SAWYER\n").code, Some(0));
    let recording = std::fs::read_to_string(home.path().join("r.jsonl")).unwrap();
    let exports =
        ["sessions export one --format md", "sessions export one --format json", "sessions export one --calls"];
    for shown in exports.map(|line| call(&home, line, "").out).into_iter().chain([recording]) {
        assert!(!shown.to_lowercase().contains("tom sawyer"), "{shown}");
    }
    let again = call(&home, "run s.yaml --scheme english --session two --replay r.jsonl", "TOM SAWYER\n");
    assert_eq!(again.code, Some(0), "{again:?}");
}

#[test]
fn the_command_vars_masks_elements_of_a_sensitive_list() {
    let home = Home::new();
    home.file(
        "s.yaml",
        "session:\n  session_id: s\n  declare:\n    - { var: ages, type: list, value: [34], sensitive: true }\n    - { var: rooms, type: list, value: [12] }\n  \
         phases:\n    - phase_id: p\n      topics:\n        - topic_id: each\n          for_each: { in: ages, as: age }\n          \
         actions: [{ action_type: ai_ask, action_id: ask, config: { content: 好吗？, delivery: verbatim, max_rounds: 1, monitor: off } }]\n        \
         - topic_id: room\n          for_each: { in: rooms, as: room }\n          \
         actions: [{ action_type: ai_ask, action_id: knock, config: { content: 在吗？, delivery: verbatim, max_rounds: 1, monitor: off } }]\n",
    );
    let run: &[&str] = &["run", "s.yaml", "--session", "one", "--model", "offline"];
    // A new process reads the variables from the store.
    for line in [run, &["sessions", "resume", "one", "--model", "offline"]] {
        let mut terminal = Terminal::start(&home, line, false);
        terminal.answers("/vars");
        terminal.until("age = ***   (for_each)");
        terminal.answers("/quit");
        assert_eq!(terminal.end(), Some(3));
        assert!(!terminal.all_output().contains("34"), "{}", terminal.all_output());
    }
    let mut terminal = Terminal::start(&home, &["sessions", "resume", "one", "--model", "offline"], false);
    terminal.answers("好");
    terminal.until("在吗？");
    terminal.answers("/vars");
    terminal.until("room = 12   (for_each)");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
}

#[test]
fn a_sensitive_global_variable_is_masked_although_another_script_set_it() {
    let home = Home::new();
    let script = |id: &str, sensitive: &str, value: &str| {
        format!(
            "session:\n  session_id: {id}\n  declare:\n    - {{ var: kept, type: string, scope: global{sensitive} }}\n    - {{ var: free, type: string, scope: global }}\n  \
             phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
             - {{ action_type: set, action_id: put, config: {{ values: {{ kept: {value}, free: 'from {id}' }} }} }}\n            \
             - {{ action_type: ai_say, action_id: say, config: {{ content: 'as {{{{ kept }}}}', delivery: verbatim }} }}\n"
        )
    };
    home.file("g.yaml", &script("g", ", sensitive: true", "Hush-hush"));
    home.file("h.yaml", &script("h", "", "Loudly"));
    call(&home, "run g.yaml --session one --user lin", "");
    call(&home, "run h.yaml --session two --user lin", "");
    for line in [
        "sessions export one",
        "sessions show one",
        "report one --format json",
        "sessions export one --format protocol",
    ] {
        let shown = call(&home, line, "").out;
        assert!(!shown.contains("Loudly") && !shown.contains("Hush-hush"), "{line}: {shown}");
        assert!(shown.contains("from h"), "{line}: {shown}");
    }
    let done = home.finish(["sessions", "export", "--all", "-o", "out"], "");
    assert_eq!(done.code, Some(0), "{done:?}");
    let of = |script: &str| std::fs::read_to_string(home.path().join(format!("out/{script}/interviews.csv"))).unwrap();
    assert!(!of("g").contains("Loudly") && of("h").contains("Loudly"), "{}\n{}", of("g"), of("h"));
    // To the other script, what it set is not sensitive.
    assert!(call(&home, "sessions export two", "").out.contains("\"Loudly\""));
}
