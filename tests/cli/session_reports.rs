//! Tests of reports (docs/reports.md): their content in each format, the files that they replace, and the report that a script names.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::process::{Finished, Home, finished};

/// What somebody might say who knows Markdown and HTML.
const HOSTILE: &str = "<img src=x onerror=alert(1)> | **b** ``` # tops3cret";

const RELEASE: &str = "
session:
  session_id: release
  session_name: 发布流程
  declare:
    - { var: version, value: '1.10' }
    - { var: amount, value: 1.10 }
    - { var: window, type: string }
    - { var: password, value: tops3cret, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: command
              action_id: check
              config: { command: [echo, 'all is well'], output: { result: stdout } }
            - action_type: ai_ask
              action_id: ask
              config: { content: 为什么要发布？, delivery: verbatim, max_rounds: 1, output: [{ get: why, define: 原因 }] }
            - action_type: set
              action_id: prepare
              config: { values: { notes: \"{{ approval.iteration }}: {{ approval.comment }}\" } }
            - action_type: approval
              action_id: release
              config:
                prompt: '部署 {{ version }}？'
                form: [{ get: window, define: 部署时间, required: true }]
                rewind_to: prepare
            - action_type: command
              action_id: deploy
              retry: { times: 1, backoff: 1ms }
              config: { command: [sh, -c, 'echo deploying; echo broken >&2; exit 7'] }
";

/// A script whose report is written to `out`.
fn with_report(out: &str, action: &str) -> String {
    format!(
        "session:\n  session_id: small\n  report: {{ out: {out} }}\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          \
         actions:\n            - {action}\n"
    )
}

const SET: &str = "{ action_type: set, action_id: done, config: { values: { a: 1 } } }";
const FAIL: &str = "{ action_type: command, action_id: done, config: { command: ['false'] } }";
const APPROVE: &str = "{ action_type: approval, action_id: ask, config: { prompt: 可以吗？ } }";

fn call(home: &Home, line: &[&str], input: &str) -> Finished {
    let mut command = home.command(line);
    command.env("TZ", "UTC").env("BCC_TRUST", "1");
    finished(command, input)
}

fn ok(home: &Home, line: &str) -> String {
    let done = call(home, &line.split(' ').collect::<Vec<_>>(), "");
    assert_eq!(done.code, Some(0), "{line}: {done:?}");
    done.out
}

fn project(script: &str) -> Home {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\", \"write_file\"]\n");
    home.put("s.yaml", script);
    home
}

/// The session of [`RELEASE`], which was pushed back, approved, and failed.
fn released() -> Home {
    let home = project(RELEASE);
    let run = ["run", "s.yaml", "--session", "one", "--clock", "2026-11-21T20:00:00Z"];
    assert_eq!(call(&home, &run, &format!("{HOSTILE}\n")).code, Some(3));
    let back = ["push-back", "one", "--by", "王主管", "--comment", "先补<b>测试</b>", "--run"];
    assert_eq!(call(&home, &back, "").code, Some(3));
    let approved = call(&home, &["approve", "one", "--by", "王主管", "--set", "window=今晚 | 22:00", "--run"], "");
    assert_eq!(approved.code, Some(1), "{approved:?}");
    home
}

#[test]
fn a_report_has_everything_that_a_session_did() {
    let home = released();
    let report = ok(&home, "report one");
    insta::assert_snapshot!(report);
    assert!(!report.contains("tops3cret"), "masked");
    let page = ok(&home, "report one --format html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("default-src 'none'"), "{page}");
    for tag in ["<img", "<b>测试", "<script", "tops3cret"] {
        assert!(!page.contains(tag), "{tag} in {page}");
    }
    assert!(page.contains("先补&lt;b&gt;测试&lt;/b&gt;"), "{page}");

    let text = ok(&home, "report one --format json");
    assert!(text.contains("\"value\": 1.10,"), "numbers keep their digits: {text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    let keys: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
    let documented = [
        "version",
        "kind",
        "session",
        "steps",
        "decisions",
        "iterations",
        "failures",
        "timeline",
        "variables",
        "transcript",
        "diagram",
    ];
    assert_eq!(keys, documented);
    let steps: Vec<(&Value, &Value, &Value)> = document["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (&step["action_id"], &step["status"], &step["visit"]))
        .collect();
    let step = |id: &str, status: &str, visit: u64| (json!(id), json!(status), json!(visit));
    let expected = [
        step("check", "done", 1),
        step("ask", "done", 1),
        step("prepare", "done", 1),
        step("release", "pushed_back", 1),
        step("prepare", "done", 2),
        step("release", "done", 2),
        step("deploy", "failed", 1),
    ];
    assert_eq!(steps, expected.iter().map(|(a, b, c)| (a, b, c)).collect::<Vec<_>>());
    let rounds = document["steps"].as_array().unwrap().iter().map(|step| step["rounds"].as_u64());
    assert_eq!(rounds.collect::<Vec<_>>(), [Some(1); 7]);
    let deploy = &document["steps"][6];
    assert_eq!((&deploy["attempts"], &deploy["exit_code"]), (&json!(2), &json!(7)));
    assert_eq!(document["iterations"][0]["back_to"], "prepare");
    assert_eq!(document["failures"][0]["stderr"], json!({ "text": "broken\n", "left_out": 0 }));
    assert_eq!(document["session"]["status"], "failed");
}

#[test]
fn the_rounds_of_a_question_are_as_many_as_its_answers() {
    let home = project(
        "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            \
         - { action_type: ai_ask, action_id: ask, config: { content: 几岁？, delivery: verbatim, max_rounds: 2, output: [{ get: age, type: integer, required: true }] } }\n",
    );
    let run = ["run", "s.yaml", "--session", "one", "--model", "offline"];
    assert_eq!(call(&home, &run, "no\nno\n").code, Some(0));
    let document: Value = serde_json::from_str(&ok(&home, "report one --format json")).unwrap();
    assert_eq!(document["steps"][0]["rounds"], 2);
}

#[test]
fn a_report_is_in_the_language_of_the_reader() {
    let home = released();
    let report = call(&home, &["--lang", "zh", "report", "one"], "").out;
    for part in ["# 报告：发布流程", "- 结果: 失败", "## 步骤", "## 决定", "| 已退回 |"] {
        assert!(report.contains(part), "{part} in {report}");
    }
}

#[test]
fn a_session_that_waits_has_a_report_and_long_parts_are_cut() {
    let home = project(&with_report("later.md", APPROVE).replace("  report: { out: later.md }\n", ""));
    assert_eq!(call(&home, &["run", "s.yaml", "--session", "one"], "").code, Some(3));
    let report: Value = serde_json::from_str(&ok(&home, "report one --format json")).unwrap();
    assert_eq!(
        (&report["steps"][0]["status"], &report["session"]["status"]),
        (&json!("waiting"), &json!("waiting_approval"))
    );
    assert!(report["diagram"].as_str().unwrap().contains(":::active"));

    let noisy = "{ action_type: command, action_id: noisy, config: { command: [sh, -c, 'seq 1 5000; exit 3'] } }";
    let home = project(&with_report("later.md", noisy));
    assert_eq!(call(&home, &["run", "s.yaml", "--session", "one"], "").code, Some(1));
    let report: Value = serde_json::from_str(&ok(&home, "report one --format json")).unwrap();
    let stdout = &report["failures"][0]["stdout"];
    let (text, left_out) = (stdout["text"].as_str().unwrap(), stdout["left_out"].as_u64().unwrap());
    assert!(text.ends_with("4999\n5000\n") && text.len() <= 4096, "the end is what matters");
    assert_eq!(text.len() as u64 + left_out, 23_893, "all bytes are counted");
    assert!(ok(&home, "report one").contains(&format!("stdout, without the first {left_out} bytes:")));
}

#[test]
fn a_report_replaces_only_reports_and_never_a_directory_or_a_link() {
    let home = released();
    let refused = |out: &str, reason: &str| {
        let done = call(&home, &["report", "one", "--out", out], "");
        assert_eq!(done.code, Some(2), "{out}: {done:?}");
        assert!(done.err.contains(reason), "{out}: {}", done.err);
    };
    ok(&home, "report one --out new/report.md");
    ok(&home, "report one --out new/report.html");
    ok(&home, "report one --out new/report.json");
    ok(&home, "report one --out new/report.md");
    let written = std::fs::read_to_string(home.path().join("new/report.md")).unwrap();
    assert_eq!(written, ok(&home, "report one"));
    home.put("notes.md", "# mine");
    refused("notes.md", "would be replaced");
    refused("new", "is a directory");
    refused("report.txt", "extension");
    symlink(home.path().join("notes.md"), home.path().join("link.md")).unwrap();
    symlink("/nowhere/at/all.md", home.path().join("dangling.md")).unwrap();
    refused("link.md", "is a link");
    refused("dangling.md", "is a link");
    assert_eq!(std::fs::read_to_string(home.path().join("notes.md")).unwrap(), "# mine");
    ok(&home, "report one --out notes.md --force");
    assert_eq!(call(&home, &["report", "two"], "").code, Some(2));
}

#[test]
fn the_report_of_a_script_is_written_however_its_session_ends() {
    let home = project(&with_report("reports/a.md", SET));
    let done = call(&home, &["run", "s.yaml", "--session", "one"], "");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("the report is in reports/a.md"), "{}", done.err);
    let report = std::fs::read_to_string(home.path().join("reports/a.md")).unwrap();
    assert_eq!(report, ok(&home, "report one"));

    let home = project(&with_report("a.json", FAIL));
    assert_eq!(call(&home, &["run", "s.yaml", "--session", "one"], "").code, Some(1));
    let written = || -> Value { serde_json::from_slice(&std::fs::read(home.path().join("a.json")).unwrap()).unwrap() };
    assert_eq!(written()["session"]["status"], "failed");

    let home = project(&with_report("a.json", APPROVE));
    let written = || -> Value { serde_json::from_slice(&std::fs::read(home.path().join("a.json")).unwrap()).unwrap() };
    let start = |id: &str| assert_eq!(call(&home, &["run", "s.yaml", "--session", id], "").code, Some(3));
    start("one");
    assert!(!home.path().join("a.json").exists(), "it has not ended");
    ok(&home, "cancel one --comment 不需要了");
    assert_eq!(
        (&written()["session"]["status"], &written()["session"]["reason"]),
        (&json!("cancelled"), &json!("不需要了"))
    );
    start("two");
    ok(&home, "approve two");
    assert_eq!(written()["session"]["id"], "one", "a decision that is only recorded ends nothing");
    ok(&home, "tick --unfinished");
    assert_eq!((&written()["session"]["id"], &written()["session"]["status"]), (&json!("two"), &json!("completed")));
    start("three");
    assert_eq!(call(&home, &["reject", "three", "--run"], "").code, Some(1));
    assert_eq!((&written()["session"]["id"], &written()["session"]["status"]), (&json!("three"), &json!("failed")));
}

#[test]
fn a_report_that_cannot_be_written_fails_the_command_and_not_the_session() {
    let outside = tempfile::tempdir().unwrap();
    let home = project(&with_report("link/a.md", SET));
    symlink(outside.path(), home.path().join("link")).unwrap();
    let done = call(&home, &["run", "s.yaml", "--session", "one"], "");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("the report link/a.md is not written"), "{}", done.err);
    assert_eq!(home.export("one")["session"]["status"], "completed");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn the_report_of_a_script_stays_in_the_project_and_needs_permission() {
    for (out, reason) in
        [("../a.md", "leads out of the project"), ("/tmp/a.md", "leads out of the project"), ("a.txt", "format")]
    {
        let done = call(&project(&with_report(out, SET)), &["run", "s.yaml"], "");
        assert_eq!(done.code, Some(2), "{out}: {done:?}");
        assert!(done.err.contains(reason), "{out}: {}", done.err);
    }
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("s.yaml", with_report("a.md", SET));
    let done = call(&home, &["run", "s.yaml"], "");
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("`report` needs `write_file`"), "{}", done.err);
}

#[test]
fn a_graph_is_colored_by_what_a_session_did() {
    let home = released();
    let drawn = ok(&home, "graph s.yaml --session one");
    for line in [
        "[\"check<br/>command\"]:::done",
        "[/\"release<br/>approval<br/>approve, reject, push_back\"/]:::done",
        "[\"deploy<br/>command\"]:::failed",
        "subgraph legend[\"legend\"]",
        "==>|\"push_back\"|",
    ] {
        assert!(drawn.contains(line), "{line} in {drawn}");
    }
    let dot = ok(&home, "graph s.yaml --session one --format dot");
    assert!(dot.contains("[label=\"deploy\\ncommand\", fillcolor=\"#fbd9d5\""), "{dot}");
    assert!(dot.contains("subgraph cluster_legend"), "{dot}");
    assert!(!ok(&home, "graph s.yaml").contains("legend"));
    // A collapsed part has the color of what failed in it.
    assert!(ok(&home, "graph s.yaml --session one --depth 1").contains("]]:::failed"));

    assert_eq!(call(&home, &["run", "s.yaml", "--session", "two"], "").code, Some(3));
    let waiting = ok(&home, "graph s.yaml --session two");
    assert!(
        waiting.contains("[\"ask<br/>ai_ask\"]:::active") && waiting.contains("[\"deploy<br/>command\"]:::not_reached")
    );
    home.put("s.yaml", RELEASE.replace("all is well", "all is fine"));
    let edited = call(&home, &["graph", "s.yaml", "--session", "one"], "");
    assert!(edited.err.contains("the script was edited after the session started"), "{}", edited.err);
    home.put("other.yaml", with_report("a.md", SET));
    let other = call(&home, &["graph", "other.yaml", "--session", "one"], "");
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.err.contains("belongs to the script `release`"), "{}", other.err);
}

#[test]
fn branches_are_drawn_side_by_side() {
    let branch = |id: &str| {
        format!(
            "{{ id: {id}, actions: [{{ action_type: set, action_id: set_{id}, config: {{ values: {{ {id}: 1 }} }} }}] }}"
        )
    };
    let parallel = format!(
        "{{ action_type: parallel, action_id: all, config: {{ branches: [{}, {}] }} }}",
        branch("eu"),
        branch("us")
    );
    let home = project(&with_report("a.md", &parallel));
    let drawn = ok(&home, "graph s.yaml");
    for line in [
        "subgraph g6[\"branch eu\"]",
        "n7[\"set_eu<br/>set\"]",
        "subgraph g8[\"branch us\"]",
        "n5 --> n7",
        "n5 --> n9",
        "n7 --> n1",
        "n9 --> n1",
    ] {
        assert!(drawn.contains(line), "{line} in {drawn}");
    }
    assert!(!drawn.contains("otherwise"), "{drawn}");
    ok(&home, "run s.yaml --session one");
    let report: Value = serde_json::from_str(&ok(&home, "report one --format json")).unwrap();
    let diagram = report["diagram"].as_str().unwrap();
    assert!(
        diagram.contains("n0 --> n1") && diagram.contains("n0 --> n2") && !diagram.contains("n1 --> n2"),
        "{diagram}"
    );
}
