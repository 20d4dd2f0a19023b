//! Recordings of sessions in which the person took an answer back (docs/record-and-replay.md).

use serde_json::{Value, json};

use crate::process::Home;
use crate::pseudo_terminal::Terminal;

const SCRIPT: &str = "
session:
  session_id: s
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: first, config: { content: 你是谁？, max_rounds: 1, monitor: off, output: [{ get: name }] } }
            - { action_type: ai_ask, action_id: second, config: { content: 好吗？, max_rounds: 3, output: [{ get: mood }] } }
";

/// The answers that counted.
const ANSWERS: &str = "小林\n嗯\n还行\n";

fn replies() -> String {
    let asked = |content: &str| json!({ "content": content, "EXIT": "NO", "metrics": { "user_engagement": "冷" } });
    json!({ "replies": {
        "first": [asked("你是谁？"), { "content": "你好", "EXIT": "YES", "name": "小林" }],
        "second": [asked("一切好吗？"), asked("再说说？"), { "content": "谢谢，再见", "EXIT": "YES", "mood": "还行" }],
        "monitor:second": [{ "feedback_for_action": "问得慢一点" }],
    } })
    .to_string()
}

/// A session that was recorded, in which the first answer was taken back.
fn recorded() -> Home {
    let home = Home::new();
    home.file("s.yaml", SCRIPT);
    home.file("r.json", &replies());
    let run = ["run", "s.yaml", "--session", "one", "--model", "replay:r.json", "--record", "r.jsonl"];
    let mut terminal = Terminal::start(&home, &run, false);
    terminal.until("你是谁？");
    terminal.answers("大林");
    terminal.until("一切好吗？");
    terminal.answers("/back");
    terminal.until("(your last answer was taken back)");
    terminal.answers("小林");
    terminal.until("一切好吗？");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
    // A process whose input ends waits for the monitor.
    for (answer, code) in [("嗯\n", 3), ("还行\n", 0)] {
        let resumed = home.finish(["sessions", "resume", "one", "--record", "r.jsonl"], answer);
        assert_eq!(resumed.code, Some(code), "{resumed:?}");
    }
    home
}

fn lines(home: &Home) -> Vec<Value> {
    let text = std::fs::read_to_string(home.path().join("r.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_recording_in_which_an_answer_was_taken_back_is_replayed_with_its_advice() {
    let home = recorded();
    let with_advice = lines(&home).into_iter().filter(|line| line["messages"].to_string().contains("问得慢一点"));
    assert_eq!(with_advice.filter(|line| line["purpose"] == "action").count(), 1);
    let again = home.finish(["run", "s.yaml", "--session", "again", "--replay", "r.jsonl"], ANSWERS);
    assert_eq!(again.code, Some(0), "{again:?}");
    let calls = |id: &str| home.export(id)["monitor_feedback"].as_array().unwrap().len();
    assert_eq!(calls("again"), calls("one"));
}

#[test]
fn a_replay_by_order_gives_no_reply_to_an_answer_that_was_taken_back() {
    let home = recorded();
    let again = ["run", "s.yaml", "--session", "again", "--replay", "r.jsonl", "--replay-by", "order"];
    let again = home.finish(again, ANSWERS);
    assert_eq!(again.code, Some(0), "{again:?}");
    let of = |id: &str| home.export(id)["transcript"].as_array().unwrap().len();
    assert_eq!(of("again"), of("one"));
}

#[test]
fn a_replay_in_which_the_same_answer_is_taken_back_shows_the_same() {
    let home = recorded();
    let mut terminal = Terminal::start(&home, &["run", "s.yaml", "--session", "again", "--replay", "r.jsonl"], false);
    terminal.until("你是谁？");
    terminal.answers("大林");
    terminal.until("一切好吗？");
    terminal.answers("/back");
    terminal.until("(your last answer was taken back)");
    for answer in ANSWERS.lines() {
        terminal.answers(answer);
    }
    terminal.until("谢谢，再见");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn what_was_taken_back_while_recording_was_off_is_in_a_recording_that_is_continued() {
    let home = Home::new();
    home.file("s.yaml", SCRIPT);
    home.file("r.json", &replies());
    let run = ["run", "s.yaml", "--session", "one", "--model", "replay:r.json", "--record", "r.jsonl"];
    assert_eq!(home.finish(run, "大林\n").code, Some(3));
    let mut terminal = Terminal::start(&home, &["sessions", "resume", "one"], false);
    terminal.answers("/back");
    terminal.until("(your last answer was taken back)");
    terminal.answers("/quit");
    assert_eq!(terminal.end(), Some(3));
    let resumed = home.finish(["sessions", "resume", "one", "--record", "r.jsonl"], ANSWERS);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let ranges: Vec<Value> = lines(&home).into_iter().filter(|line| line["taken_back"].is_object()).collect();
    assert_eq!(ranges.len(), 1, "{ranges:?}");
    let again = ["run", "s.yaml", "--session", "again", "--replay", "r.jsonl", "--replay-by", "order"];
    let again = home.finish(again, ANSWERS);
    assert_eq!(again.code, Some(0), "{again:?}");
}
