//! Tests of `--record` and `--replay` through the program: a recording is replayed without a model and with the same output, and sensitive
//! values are not recorded.

use crate::process;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{Finished, Home};

/// A script with three turns that depend on each other: later prompts contain earlier answers.
const SCRIPT: &str = r#"
session:
  session_id: talk
  declare:
    - { var: name, type: string }
    - { var: pin, type: string, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_ask
              action_id: ask_name
              config: { content: 怎么称呼您？, reask: 1, output: [{ get: name }] }
            - action_type: ai_ask
              action_id: ask_pin
              config: { content: "{{ name }}，请说暗号。", max_rounds: 2, output: [{ get: pin }] }
            - action_type: ai_say
              action_id: bye
              config: { content: "再见，{{ name }}。" }
"#;

const REPLIES: &str = r#"
replies:
  ask_name:
    - { content: 怎么称呼您？, EXIT: "NO", safety_risk: { detected: false } }
    - 这不是 JSON
    - { content: 记下了, EXIT: "YES", name: 小林, BRIEF: "", progress_suggestion: completed, safety_risk: { detected: false }, metadata: { emotional_tone: 平, crisis_signal: false }, metrics: { information_completeness: 全, user_engagement: 好, emotional_intensity: 静, reply_relevance: 切 } }
  ask_pin:
    - { content: 请说暗号, EXIT: "NO" }
    - { content: "是芝麻开门对吧？", EXIT: "NO", pin: 芝麻开门 }
    - { content: 好, EXIT: "YES", pin: 芝麻开门吧 }
  bye: [ { content: 再见小林, EXIT: "YES" } ]
"#;

const ANSWERS: &str = "小林\n芝麻开门\n对\n";

struct Talk {
    home: Home,
    script: PathBuf,
    replies: String,
}

impl Talk {
    fn new() -> Self {
        let home = Home::new();
        let script = home.file("script.yaml", SCRIPT);
        let replies = format!("replay:{}", home.file("replies.yaml", REPLIES).display());
        Self { home, script, replies }
    }

    fn run(&self, id: &str, arguments: &[&str], input: &str) -> Finished {
        let script = self.script.display().to_string();
        self.home.finish(["run", &script, "--session", id].iter().chain(arguments), input)
    }

    fn recorded(&self, id: &str, file: &str) -> Finished {
        self.run(id, &["--model", &self.replies, "--record", file], ANSWERS)
    }

    fn lines(&self, file: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.home.path().join(file)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn sessions(&self, arguments: &[&str], input: &str) -> Finished {
        self.home.finish(["sessions"].iter().chain(arguments), input)
    }
}

#[test]
fn a_recording_is_replayed_without_the_model() {
    let talk = Talk::new();
    // An empty file that everyone may read becomes readable for the owner only.
    let empty = talk.home.file("talk.jsonl", "");
    fs::set_permissions(&empty, fs::Permissions::from_mode(0o644)).unwrap();
    let first = talk.recorded("first", "talk.jsonl");
    assert_eq!(first.code, Some(0), "{}", first.err);
    let lines = talk.lines("talk.jsonl");
    let header = &lines[0];
    assert_eq!(
        (&header["session_id"], &header["script"], &header["model"]),
        (&"first".into(), &"talk".into(), &"replay".into())
    );
    assert_eq!(header["script_sha256"].as_str().unwrap().len(), 64);
    let keys: Vec<String> = lines[1..]
        .iter()
        .map(|line| format!("{} {} {} {}", line["purpose"], line["path"], line["round"], line["call"]).replace('"', ""))
        .collect();
    let expected = [
        "action t/ask_name 1 0",
        "action t/ask_name 1 1",
        "action t/ask_name 1 2",
        "action t/ask_pin 1 0",
        "action t/ask_pin 1 1",
        "action t/ask_pin 2 2",
        "action t/bye 1 0",
    ];
    assert_eq!(keys, expected);
    let mode = fs::metadata(talk.home.path().join("talk.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The recording contains no path of the machine and no file name.
    let text = fs::read_to_string(talk.home.path().join("talk.jsonl")).unwrap();
    assert!(!text.contains(&talk.home.path().display().to_string()) && !text.contains("replies.yaml"), "{text}");

    fs::remove_file(talk.home.path().join("replies.yaml")).unwrap();
    let again = talk.run("again", &["--replay", "talk.jsonl"], ANSWERS);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_eq!(again.out, first.out.replace("芝麻开门", "***"));
    // The session stores the replay file, and uses it again when it is resumed.
    let first_half = talk.run("half", &["--replay", "talk.jsonl"], "小林\n");
    assert_eq!(first_half.code, Some(3), "{}", first_half.err);
    let rest = talk.sessions(&["resume", "half"], "芝麻开门\n对\n");
    assert_eq!(rest.code, Some(0), "{}", rest.err);
    assert_eq!(format!("{}{}", first_half.out, rest.out), again.out);
}

#[test]
fn a_replay_changes_no_global_variable_of_its_user() {
    let talk = Talk::new();
    let declared = SCRIPT.replace("var: name, type: string", "var: name, type: string, scope: global");
    fs::write(&talk.script, declared.replace("sensitive: true", "sensitive: true, scope: global")).unwrap();
    let known = talk.home.file(
        "known.yaml",
        "session:\n  session_id: known\n  declare:\n    - { var: name, type: string, scope: global }\n    - { var: pin, type: string, sensitive: true, scope: global }\n  \
         phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions: [{ action_type: ai_say, action_id: say, config: { content: '{{ name }}/{{ pin }}', delivery: verbatim } }]\n",
    );
    let known = known.display().to_string();
    let of_user = |more: &[&str]| talk.home.finish(["run", &known, "--user", "lin"].iter().chain(more), "").out;
    let first = talk.run("first", &["--model", &talk.replies, "--record", "talk.jsonl", "--user", "lin"], ANSWERS);
    assert_eq!(first.code, Some(0), "{}", first.err);
    assert_eq!(of_user(&[]), "小林/芝麻开门吧\n");
    assert_eq!(of_user(&["--var", "name=阿明"]), "阿明/芝麻开门吧\n");
    // The values that the replay has set are its own, also after it was resumed, with the recording or with a model.
    let options = ["--replay", "talk.jsonl", "--replay-by", "order", "--user", "lin"];
    for (id, model) in [("half", None), ("other", Some(talk.replies.as_str()))] {
        let half = talk.run(id, &options, "小林\n");
        assert_eq!(half.code, Some(3), "{}", half.err);
        assert_eq!(talk.home.export(id)["variables"]["global"]["name"]["value"], "小林");
        let resume: Vec<&str> = ["resume", id].into_iter().chain(model.map(|_| "--model")).chain(model).collect();
        let rest = talk.sessions(&resume, "芝麻开门\n对\n");
        assert_eq!(rest.code, Some(0), "{}", rest.err);
        let export = talk.home.export(id);
        assert_eq!(export["variables"]["global"]["name"]["value"], "小林", "{id}");
        assert_eq!(export["variables"]["global"]["pin"]["value"], "***", "{id}");
        assert_eq!(of_user(&[]), "阿明/芝麻开门吧\n", "{id}");
    }
}

#[test]
fn a_prompt_that_differs_stops_the_session_and_is_shown_line_by_line() {
    let talk = Talk::new();
    assert_eq!(talk.recorded("first", "talk.jsonl").code, Some(0));
    fs::write(&talk.script, SCRIPT.replace("请说暗号。", "请告诉我暗号。")).unwrap();
    let stopped = talk.run("other", &["--replay", "talk.jsonl"], ANSWERS);
    assert_eq!(stopped.code, Some(3), "{}", stopped.err);
    for part in ["`ask_pin`, call 1", "- ", "+ ", "小林，请说暗号。", "小林，请告诉我暗号。", "--replay-by order"]
    {
        assert!(stopped.err.contains(part), "{part}: {}", stopped.err);
    }
    let by_order = talk.run("by_order", &["--replay", "talk.jsonl", "--replay-by", "order"], ANSWERS);
    assert_eq!(by_order.code, Some(0), "{}", by_order.err);
    assert!(by_order.out.contains("再见小林"), "{}", by_order.out);
    // A stopped session can be resumed with other replay options.
    let resumed =
        talk.sessions(&["resume", "other", "--replay", "talk.jsonl", "--replay-by", "order"], "芝麻开门\n对\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
}

#[test]
fn sensitive_values_are_in_no_recording_no_export_and_no_log() {
    let talk = Talk::new();
    let script = talk.script.display().to_string();
    let mut command =
        talk.home.command(["run", &script, "--session", "s", "--model", &talk.replies, "--record", "r.jsonl"]);
    command.env("BCC_LOG", "bcc_script=trace");
    let mut running = process::Running::start(command);
    running.feed(ANSWERS.as_bytes().to_vec());
    let finished = running.finish();
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert!(finished.err.contains("a strategy could not read the reply"), "the log is on: {}", finished.err);
    let recording = fs::read_to_string(talk.home.path().join("r.jsonl")).unwrap();
    let export = talk.home.export("s").to_string();
    let events = talk.run("json", &["--model", &talk.replies, "--json"], "").out;
    for (name, text) in [("log", &finished.err), ("recording", &recording), ("export", &export), ("events", &events)] {
        assert!(!text.contains("芝麻开门"), "{name}: {text}");
        assert!(name == "log" || text.contains("小林") || name == "events", "{name}");
    }
    // The text was said before it was known to be sensitive.
    assert!(recording.contains("***"), "{recording}");
}

#[test]
fn a_session_killed_during_recording_is_replayed_completely() {
    let talk = Talk::new();
    let script = talk.script.display().to_string();
    let arguments = ["run", &script, "--session", "k", "--model", &talk.replies, "--record", "k.jsonl", "--json"];
    let mut running = talk.home.start(arguments);
    running.event_of("waiting");
    assert!(running.send("小林"));
    running.event_of("waiting");
    running.kill();
    // As if the process had crashed in the middle of a line, between the recording of a turn and its commit.
    let path = talk.home.path().join("k.jsonl");
    let mut text = fs::read_to_string(&path).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let mut uncommitted = last.clone();
    (uncommitted["seq"], uncommitted["at"], uncommitted["text"]) =
        (9999.into(), "later".into(), "never committed".into());
    text.push_str(&format!("{uncommitted}\n{{\"purpose\": \"act"));
    fs::write(&path, &text).unwrap();

    let resumed = talk.sessions(&["resume", "k", "--record", "k.jsonl"], "芝麻开门\n对\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(!resumed.err.contains("is missing"), "{}", resumed.err);
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("never committed") && !text.contains("芝麻开门"), "{text}");
    let again = talk.run("again", &["--replay", "k.jsonl"], ANSWERS);
    assert_eq!(again.code, Some(0), "{}", again.err);
    let uninterrupted = talk.recorded("u", "u.jsonl");
    assert_eq!(again.out, uninterrupted.out.replace("芝麻开门", "***"));
    // Resuming without recording leaves a gap, which is reported.
    talk.run("gap", &["--model", &talk.replies, "--record", "g.jsonl"], "小林\n");
    talk.sessions(&["resume", "gap"], "芝麻开门\n");
    let resumed = talk.sessions(&["resume", "gap", "--record", "g.jsonl"], "对\n");
    assert!(resumed.err.contains("is missing 1 calls"), "{}", resumed.err);
}

#[test]
fn a_session_stopped_by_a_failed_call_is_replayed_to_its_end() {
    let talk = Talk::new();
    let (some, rest) = REPLIES.split_once("  ask_pin:").unwrap();
    talk.home.file("replies.yaml", some);
    let stopped = talk.recorded("f", "f.jsonl");
    assert_eq!(stopped.code, Some(3), "{}", stopped.err);
    talk.home.file("replies.yaml", &format!("{some}  ask_pin:{rest}"));
    let resumed = talk.sessions(&["resume", "f", "--record", "f.jsonl"], "芝麻开门\n对\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    // Neither the address of the model nor its name is recorded.
    assert!(talk.lines("f.jsonl").iter().any(|line| line["error"] == "no_reply" && line.get("text").is_none()));
    for options in [&["--replay", "f.jsonl"][..], &["--replay", "f.jsonl", "--replay-by", "order"]] {
        let again = talk.run(if options.len() == 2 { "strict" } else { "order" }, options, ANSWERS);
        assert_eq!(again.code, Some(0), "{}", again.err);
        assert_eq!(again.out, format!("{}{}", stopped.out, resumed.out).replace("芝麻开门", "***"));
    }
}

#[test]
fn the_cost_of_a_session_is_shown_by_call_and_by_action() {
    let talk = Talk::new();
    assert_eq!(talk.run("c", &["--model", &talk.replies], ANSWERS).code, Some(0));
    let shown = talk.sessions(&["show", "c", "--calls"], "");
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    let rows: Vec<Vec<&str>> = shown.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..4], ["seq", "action", "round", "for"]);
    let again: Vec<_> = rows.iter().filter(|row| row.contains(&"again")).collect();
    assert_eq!(again[0][1..5], ["ask_name", "1", "action,", "again"], "{}", shown.out);
    assert!(rows.iter().any(|row| row.starts_with(&["ask_name", "action", "3", "1", "3", "0", "0"])), "{}", shown.out);
    assert!(rows.iter().any(|row| row.starts_with(&["all", "7"])), "{}", shown.out);
    let usage = talk.home.export("c")["usage"].clone();
    assert_eq!((&usage["session"]["calls"], &usage["session"]["reasks"]), (&7.into(), &1.into()));
    assert_eq!(usage["actions"][0]["action_id"], "ask_name");
    assert_eq!(talk.sessions(&["show", "nobody", "--calls"], "").code, Some(2));
}

#[test]
fn a_file_that_is_no_recording_of_the_session_is_not_changed() {
    let talk = Talk::new();
    talk.home.file("diary.txt", "mine");
    let rejected = talk.recorded("a", "diary.txt");
    assert_eq!((rejected.code, rejected.err.contains("already exists")), (Some(2), true), "{}", rejected.err);
    assert_eq!(fs::read_to_string(talk.home.path().join("diary.txt")).unwrap(), "mine");
    talk.run("b", &["--model", &talk.replies, "--record", "b.jsonl"], "小林\n");
    talk.run("c", &["--model", &talk.replies], "小林\n");
    for file in ["diary.txt", "b.jsonl"] {
        let before = fs::read_to_string(talk.home.path().join(file)).unwrap();
        let rejected = talk.sessions(&["resume", "c", "--record", file], "");
        assert_eq!(
            (rejected.code, rejected.err.contains("is not a recording of session `c`")),
            (Some(2), true),
            "{}",
            rejected.err
        );
        assert_eq!(fs::read_to_string(talk.home.path().join(file)).unwrap(), before);
    }
    let nowhere = talk.recorded("d", "nowhere/d.jsonl");
    assert_eq!(nowhere.code, Some(1), "{}", nowhere.err);
    assert!(!Path::new(&talk.home.path().join("nowhere")).exists());
    for wrong in [
        &["--replay", "b.jsonl", "--model", "offline"][..],
        &["--replay", "b.jsonl", "--record", "e.jsonl"],
        &["--replay-by", "order"],
        &["--replay", "script.yaml"],
        &["--replay", "nothing.jsonl"],
    ] {
        let rejected = talk.run("e", wrong, "");
        assert_eq!(rejected.code, Some(2), "{wrong:?}: {}", rejected.err);
    }
}

#[test]
fn a_recording_that_cannot_be_written_ends_the_run_without_losing_data() {
    let talk = Talk::new();
    let script = talk.script.display().to_string();
    let arguments = ["run", &script, "--session", "full", "--model", &talk.replies, "--record", "f.jsonl", "--json"];
    let mut running = talk.home.start(arguments);
    running.event_of("waiting");
    // The file cannot be written any more.
    let path = talk.home.path().join("f.jsonl");
    fs::rename(&path, talk.home.path().join("kept.jsonl")).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(running.send("小林"));
    running.end_input();
    let finished = running.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.err);
    assert!(finished.out.contains("cannot be written"), "{}", finished.out);
    let resumed = talk.sessions(&["resume", "full", "--record", "kept.jsonl"], "芝麻开门\n对\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(!resumed.err.contains("is missing"), "{}", resumed.err);
    let again = talk.run("again", &["--replay", "kept.jsonl"], ANSWERS);
    assert_eq!(again.code, Some(0), "{}", again.err);
}

#[test]
fn the_demonstration_with_monitors_and_a_plan_is_replayed() {
    let root = Path::new(crate::ROOT);
    let home = Home::new();
    let script = home.file("demo.yaml", &fs::read_to_string(root.join("scripts/cbt_anxiety.yaml")).unwrap());
    let script = script.display().to_string();
    let replies = format!("replay:{}", root.join("examples/cbt_anxiety.replies.yaml").display());
    let answers = fs::read_to_string(root.join("examples/cbt_anxiety.answers.txt")).unwrap();
    let first = home.finish(["run", &script, "--session", "a", "--model", &replies, "--record", "d.jsonl"], &answers);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let again = home.finish(["run", &script, "--session", "b", "--replay", "d.jsonl"], &answers);
    assert_eq!(again.code, Some(0), "{}", again.err);
    // Sensitive values were not recorded; all other text is the same.
    for (expected, actual) in first.out.lines().zip(again.out.lines()) {
        let pieces: Vec<&str> = actual.split("***").collect();
        assert!(pieces.iter().all(|piece| expected.contains(piece)), "{expected}\n{actual}");
    }
    assert_eq!(first.out.lines().count(), again.out.lines().count());
    let count = |id: &str, part: &str| home.export(id)[part].as_array().unwrap().len();
    for part in ["monitor_feedback", "plans", "model_calls", "outcomes"] {
        assert_eq!(count("a", part), count("b", part), "{part}");
    }
}

#[test]
fn a_conversation_that_depends_on_sensitive_replies_is_replayed_with_every_retry() {
    let home = Home::new();
    let script = home.file(
        "s.yaml",
        r#"
session:
  session_id: s
  declare:
    - { var: age, type: integer, sensitive: true }
    - { var: agreed, type: string, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask_age, config: { content: 您多大？, reask: 3, output: [{ get: age }] } }
            - action_type: ai_ask
              action_id: ask_ok
              config: { content: "您 {{ age }} 岁，愿意吗？", output: [{ get: agreed, enum: [YES, NOT YET] }] }
            - { action_type: ai_say, action_id: bye, config: { content: "再见，{{ age }}。" } }
"#,
    );
    let fields = r#"safety_risk: { detected: false }, BRIEF: "", progress_suggestion: completed, metadata: { emotional_tone: 平, crisis_signal: false }, metrics: { information_completeness: 全, user_engagement: 好, emotional_intensity: 静, reply_relevance: 切 }"#;
    let replies = format!(
        r#"
replies:
  ask_age:
    - {{ content: 您多大？, EXIT: "NO", safety_risk: {{ detected: false }} }}
    - {{ content: 好, EXIT: "YES", age: 34 }}
    - "我不会写 JSON，可是您 34 岁。"
    - {{ content: 好, EXIT: "YES", age: 三十四, {fields} }}
    - {{ content: 好, EXIT: "YES", age: "34", {fields} }}
  ask_ok:
    - {{ content: 愿意吗？, EXIT: "NO" }}
    - {{ content: 好, EXIT: "YES", agreed: "YES" }}
  bye: [ {{ content: 再见, EXIT: "YES" }} ]
"#
    );
    let replies = format!("replay:{}", home.file("r.yaml", &replies).display());
    let script = script.display().to_string();
    let answers = "34\n愿意\n";
    let first = home.finish(["run", &script, "--session", "a", "--model", &replies, "--record", "r.jsonl"], answers);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let recording = fs::read_to_string(home.path().join("r.jsonl")).unwrap();
    for text in ["三十四", "可是您", r#"\"agreed\":\"NOT"#] {
        assert!(!recording.contains(text), "{text}: {recording}");
    }
    let again = home.finish(["run", &script, "--session", "b", "--replay", "r.jsonl"], answers);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_eq!(again.out, first.out);
    let calls = |id: &str| home.export(id)["model_calls"].as_array().unwrap().len();
    assert_eq!((calls("a"), calls("b")), (8, 8));
}

#[test]
fn long_sensitive_values_that_later_prompts_show_are_recorded_without_any_part_and_replayed() {
    let home = Home::new();
    let script = r#"
session:
  session_id: s
  declare:
    - { var: moments, type: list, sensitive: true }
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_ask
              action_id: ask
              config: { content: 还有吗？, max_rounds: 6, output: [{ get: moments, append: true }] }
"#;
    let script = home.file("s.yaml", script).display().to_string();
    // Every part of these texts is longer than what a prompt shows of a value that is not sensitive.
    let moments: Vec<String> = ["春", "夏", "秋", "冬", "昼"].iter().map(|text| text.repeat(120)).collect();
    let reply = |(number, text): (usize, &String)| {
        let exit = if number + 1 < moments.len() { "NO" } else { "YES" };
        format!("    - {{ content: 还有吗？, EXIT: \"{exit}\", moments: {text} }}\n")
    };
    let replies: String = moments.iter().enumerate().map(reply).collect();
    let replies = format!("replies:\n  ask:\n    - {{ content: 有过怎样的时刻？, EXIT: \"NO\" }}\n{replies}");
    let replies = format!("replay:{}", home.file("r.yaml", &replies).display());
    let answers = "嗯\n".repeat(moments.len());
    let first = home.finish(
        [
            "run",
            &script,
            "--session",
            "a",
            "--model",
            &replies,
            "--record",
            "r.jsonl",
            "--clock",
            "2026-11-24T16:18:00Z",
        ],
        &answers,
    );
    assert_eq!(first.code, Some(0), "{}", first.err);
    let recording = fs::read_to_string(home.path().join("r.jsonl")).unwrap();
    let export = home.export("a").to_string();
    assert!(recording.contains(r#"moments：[…,\"***\",\"***\",\"***\"]"#), "{recording}");
    for character in ["春", "夏", "秋", "冬", "昼"] {
        let part = character.repeat(2);
        assert!(!recording.contains(&part) && !export.contains(&part), "{part}: {recording}");
    }
    // At another time: the time in the prompts is not compared.
    let again = home
        .finish(["run", &script, "--session", "b", "--replay", "r.jsonl", "--clock", "2027-01-03T08:00:00Z"], &answers);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_eq!(again.out, first.out);
}
