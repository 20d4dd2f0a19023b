//! `sessions export --all`: data sets of many interviews, with the script `tests/fixtures/sessions/study.yaml`.

mod values;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use serde_json::{Value, json};

use crate::process::{Finished, Home, finished};

/// An interview with every kind of answer: follow-ups, a formula, quotes, line ends, and the sensitive name in another text.
const WHOLE: [&str; 13] = [
    "林小姐",
    "35",
    "=HYPERLINK(\"x\")",
    "7.50",
    "不知道",
    "是",
    "差",
    "2026-01-05",
    "我叫林小姐。\n\"昨晚\", 没睡",
    "读书, 画画",
    "{\"mail\": \"a@b\", \"n\": 1.10}",
    "安静",
    "-5",
];

const SHORT: [&str; 9] = ["Cy Young", "50", "+1", "8", "no", "好", "游泳", "没有", "健康"];

const UNFINISHED: [&str; 4] = ["Benjamin", "maybe", "28", "ok"];

/// A project with the script and a fixed key, so that pseudonyms are always the same.
fn project() -> Home {
    let home = Home::new();
    home.put("config/bcc-script/sessions.key", "01234567890123456789012345678901");
    home.script("study.yaml");
    home
}

fn interview(home: &Home, id: &str, user: &str, answers: &[&str]) {
    let run = ["run", "study.yaml", "--session", id, "--user", user, "--json", "--clock", "2026-11-21T20:00:00Z"];
    let input: String = answers.iter().map(|answer| format!("{}\n", json!({ "user": answer }))).collect();
    let ran = home.finish(run, input);
    assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
}

fn three_interviews() -> Home {
    let home = project();
    interview(&home, "i1", "lin", &WHOLE);
    interview(&home, "i2", "ben", &UNFINISHED);
    interview(&home, "i3", "cy", &SHORT);
    home
}

fn export(home: &Home, line: &str) -> Finished {
    home.finish(format!("sessions export --all {line}").split_whitespace(), "")
}

fn exported(home: &Home, line: &str) -> PathBuf {
    let done = export(home, &format!("{line} -o out"));
    assert_eq!(done.code, Some(0), "{done:?}");
    home.path().join("out")
}

/// The files of a folder, by their paths in it.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The rows of a table as CSV, each by the names of the columns.
fn rows(folder: &Path, name: &str) -> Vec<BTreeMap<String, String>> {
    let text = text(folder, name);
    let text = text.strip_prefix('\u{feff}').unwrap();
    assert!(text.ends_with("\r\n"), "{name}");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

fn lines(folder: &Path, name: &str) -> Vec<Value> {
    text(folder, name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_data_set_has_typed_tables_a_codebook_transcripts_and_follow_ups() {
    let home = three_interviews();
    let out = exported(&home, "");
    let mut shown = String::new();
    for (name, bytes) in files(&out) {
        let is_long =
            name.ends_with("messages.csv") || name.ends_with("files.sha256") || name.contains("transcripts/i3");
        if !is_long {
            let text = String::from_utf8(bytes).unwrap().replace('\u{feff}', "<BOM>").replace("\r\n", "<CRLF>\n");
            shown += &format!("==== {name}\n{text}");
        }
    }
    let moment = Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(UTC\)").unwrap();
    insta::assert_snapshot!(moment.replace(&shown, "MOMENT (UTC)"));
    assert!(!shown.contains("林小姐") && !shown.contains("Benjamin"), "masked and left out");
    for (name, _) in files(&out) {
        assert_eq!(out.join(&name).metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(out.join("sleep_study").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut check = Command::new("sha256sum");
    check.args(["--check", "--quiet", "files.sha256"]).current_dir(&out);
    assert_eq!(finished(check, "").code, Some(0));
}

#[test]
fn sensitive_values_and_users_are_included_on_request() {
    let home = three_interviews();
    let out = exported(&home, "--include-sensitive");
    let interviews = rows(&out, "sleep_study/interviews.csv");
    assert_eq!((interviews[0]["user"].as_str(), interviews[0]["name"].as_str()), ("lin", "林小姐"));
    assert!(text(&out, "sleep_study/transcripts/i1.txt").contains("我叫林小姐。"));
    assert!(text(&out, "README.md").contains("Nothing was left out or masked"));
    let codebook = rows(&out, "sleep_study/codebook.csv");
    let name = codebook.iter().find(|row| row["variable"] == "name").unwrap();
    assert_eq!((name["sensitive"].as_str(), name["included"].as_str()), ("true", "true"));
    let masked = exported(&home, "--lang zh");
    assert!(text(&masked, "README.md").contains("1 个敏感变量") && text(&masked, "README.md").contains("访谈"));
    assert!(!rows(&masked, "sleep_study/interviews.csv")[0].contains_key("user"));
}

/// Fifty interviews, of which some end early.
fn fifty() -> Home {
    let home = project();
    let moods = ["=1+1", "-5", "@x", "开心", "a \"quoted\" text", "two\nlines", "+86 138", "", "😀", "'=x"];
    std::thread::scope(|scope| {
        for part in 0..5 {
            let home = &home;
            scope.spawn(move || {
                for number in (part..50).step_by(5) {
                    let (name, age) = (format!("Person {number} Secret"), (18 + number).to_string());
                    let story = format!("{name} 没睡");
                    let hours = format!("{}.{}", 4 + number % 5, number % 10);
                    let mut answers = vec![name.as_str()];
                    if number % 4 == 0 {
                        answers.push("not telling");
                    }
                    answers.extend([age.as_str(), moods[number % 10], &hours]);
                    answers.push(if number % 2 == 0 { "是" } else { "不" });
                    if number % 3 == 0 {
                        answers.extend(["差", "2026-02-03", &story]);
                    } else {
                        answers.push(if number % 3 == 1 { "好" } else { "一般" });
                    }
                    answers.extend(["读书, 画画, 游泳", "{\"mail\": \"x\"}", "a", "b", "c"]);
                    if number % 7 == 6 {
                        answers.truncate(5);
                    }
                    interview(home, &format!("i{number:02}"), &format!("user{}", number % 40), &answers);
                }
            });
        }
    });
    home
}

#[test]
fn fifty_interviews_are_the_same_in_all_formats_and_their_codebook_is_true() {
    let home = fifty();
    let done = export(&home, "-o csv");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.err, "exported 50 sessions of 1 script to csv\n");
    for format in ["jsonl", "parquet", "qdpx"] {
        let done = export(&home, &format!("-o {format} --format {format}"));
        assert_eq!(done.code, Some(0), "{done:?}");
    }
    let [csv, jsonl, parquet, qdpx] =
        ["csv", "jsonl", "parquet", "qdpx"].map(|name| home.path().join(name).join("sleep_study"));
    let interviews = rows(&csv, "interviews.csv");
    let objects = lines(&jsonl, "interviews.jsonl");
    assert_eq!((interviews.len(), objects.len()), (50, 50));
    let participants: std::collections::BTreeSet<&str> =
        interviews.iter().map(|row| row["participant"].as_str()).collect();
    assert_eq!(participants.len(), 40);

    // The codebook says how often each column is empty.
    let mut checked = 0;
    for entry in
        rows(&csv, "codebook.csv").iter().filter(|entry| entry["included"] == "true" && !entry["cases"].is_empty())
    {
        let table = rows(&csv, &format!("{}.csv", entry["table"]));
        let empty = table.iter().filter(|row| row[&entry["column"]].is_empty()).count();
        assert_eq!(empty.to_string(), entry["empty"], "{entry:?}");
        assert_eq!(table.len().to_string(), entry["cases"], "{entry:?}");
        checked += 1;
    }
    assert_eq!(checked, 15);

    // The same values in JSON, without what protects spreadsheets.
    for (row, object) in interviews.iter().zip(&objects) {
        assert_eq!(row["session_id"], object["session_id"].as_str().unwrap());
        let variables = &object["variables"];
        for number in ["age", "hours", "naps"] {
            let value = if variables[number].is_null() { String::new() } else { variables[number].to_string() };
            assert_eq!(row[number], value);
        }
        let mood = variables["mood"].as_str().unwrap_or_default();
        let is_protected = ["=1+1", "@x", "+86 138", "'=x"].contains(&mood);
        assert_eq!(row["mood"], format!("{}{mood}", if is_protected { "'" } else { "" }));
        let hobbies = variables["hobbies"].as_array().map_or(0, Vec::len);
        assert_eq!(row["hobbies_count"], if hobbies == 0 { String::new() } else { hobbies.to_string() });
    }
    let hobbies: usize =
        objects.iter().map(|object| object["variables"]["hobbies"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!(rows(&csv, "hobbies.csv").len(), hobbies);

    // Every follow-up, and no other.
    let follow_ups = rows(&csv, "follow_ups.csv");
    let asked_again: usize = (0..50).filter(|number| number % 4 == 0).count();
    assert_eq!(follow_ups.len(), asked_again);
    assert!(follow_ups.iter().all(|row| row["action_id"] == "ask_age" && row["question"] == "您多大年纪？"));
    let counted: u64 = rows(&csv, "actions.csv").iter().map(|row| row["follow_ups"].parse::<u64>().unwrap()).sum();
    assert_eq!(counted, asked_again as u64);

    for folder in [&csv, &jsonl, &parquet, &qdpx] {
        for (name, bytes) in files(folder) {
            assert!(!bytes.windows(6).any(|part| part == b"Secret"), "{name}");
        }
        assert_eq!(fs::read_dir(folder.join("transcripts")).unwrap().count(), 50);
    }
    assert_eq!(fs::read(parquet.join("interviews.parquet")).unwrap()[..4], *b"PAR1");
}

#[test]
fn ranges_of_a_project_are_the_messages_of_the_transcript() {
    let home = three_interviews();
    let out = exported(&home, "--format qdpx").join("sleep_study");
    assert!(!out.join("interviews.csv").exists() && out.join("follow_ups.csv").exists());
    let mut archive = zip::ZipArchive::new(fs::File::open(out.join("interviews.qdpx")).unwrap()).unwrap();
    let mut read = |name: &str| {
        let mut text = String::new();
        archive.by_name(name).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    let project = read("project.qde");
    let source = Regex::new(r#"name="i1" plainTextPath="internal://([^"]+)""#).unwrap();
    let text = read(&format!("sources/{}", &source.captures(&project).unwrap()[1]));
    assert_eq!(text, fs::read_to_string(out.join("transcripts/i1.txt")).unwrap());
    let characters: Vec<char> = text.chars().collect();
    let own = project.split("<TextSource ").skip(1).find(|part| part.contains(r#"name="i1""#)).unwrap();
    let range = Regex::new(r#"name="(\w+) \d+" startPosition="(\d+)" endPosition="(\d+)""#).unwrap();
    let ranges = range.captures_iter(own).map(|found| {
        let [start, end] = [2, 3].map(|number| found[number].parse::<usize>().unwrap());
        (found[1].to_owned(), characters[start..end].iter().collect::<String>())
    });
    let ranges: Vec<(String, String)> = ranges.collect();
    assert_eq!(ranges.len(), 27);
    let of = |action: &str| {
        ranges.iter().filter(|(name, _)| name == action).map(|(_, text)| text.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of("ask_story"), ["说说最近一次失眠。", "我叫***。\n\"昨晚\", 没睡"]);
    assert_eq!(of("ask_naps"), ["您午睡吗？", "不知道", "您午睡吗？", "是"]);
    let again = exported(&home, "--format qdpx").join("sleep_study/interviews.qdpx");
    let mut archive = zip::ZipArchive::new(fs::File::open(again).unwrap()).unwrap();
    let mut second = String::new();
    archive.by_name("project.qde").unwrap().read_to_string(&mut second).unwrap();
    let moment = Regex::new(r#"creationDateTime="[^"]*""#).unwrap();
    assert_eq!(moment.replace_all(&project, ""), moment.replace_all(&second, ""), "the ids stay");
}

#[test]
fn versions_of_a_script_share_tables_and_scripts_have_folders_of_their_own() {
    let home = project();
    let script = |id: &str, output: &str| {
        let ask = format!(
            "{{ action_type: ai_ask, action_id: ask, config: {{ content: 好吗？, max_rounds: 1, output: [{output}] }} }}"
        );
        format!(
            "session:\n  session_id: {id}\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n            - {ask}\n"
        )
    };
    for (session, id, output) in [
        ("one", "intake", "{ get: x, type: integer }"),
        ("two", "intake", "{ get: x }, { get: y, define: second }"),
        ("three", "Intake", "{ get: interviews }"),
    ] {
        home.put("talk.yaml", script(id, output));
        let ran = home.finish(["run", "talk.yaml", "--session", session], "7\n");
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    let out = exported(&home, "");
    let folders: Vec<String> =
        files(&out).into_keys().filter_map(|name| Some(name.split_once('/')?.0.to_owned())).collect();
    assert!(folders.contains(&"Intake".to_owned()) && folders.contains(&"intake_2".to_owned()), "{folders:?}");
    let interviews = rows(&out, "intake_2/interviews.csv");
    let values: Vec<(&str, &str, &str)> =
        interviews.iter().map(|row| (row["session_id"].as_str(), row["x"].as_str(), row["y"].as_str())).collect();
    assert_eq!(values, [("two", "7", "7"), ("one", "7", "")]);
    assert_ne!(interviews[0]["script_version"], interviews[1]["script_version"]);
    let codebook = rows(&out, "intake_2/codebook.csv");
    // One version has the number 7, the other one the text.
    assert_eq!((codebook[0]["type"].as_str(), codebook[0]["cases"].as_str()), ("string", "2"));
    assert_eq!((codebook[1]["cases"].as_str(), codebook[1]["definition"].as_str()), ("1", "second"));
    let only = exported(&home, "--script Intake");
    assert!(!only.join("intake_2").exists() && only.join("Intake/interviews.csv").exists());
    assert!(text(&only, "README.md").contains("`--script Intake`"));
}

#[test]
fn nothing_of_a_person_is_replaced() {
    let home = three_interviews();
    home.put("notes/mine.txt", "mine");
    home.put("file", "mine");
    let out = exported(&home, "");
    let before = files(&out);
    // An earlier export that nobody has changed is replaced as a whole.
    let table = exported(&home, "--format jsonl").join("sleep_study/interviews.jsonl");
    assert!(table.exists() && !out.join("sleep_study/interviews.csv").exists());
    exported(&home, "");
    assert_eq!(files(&out).keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    for (line, expected) in [
        ("-o notes", "not part of an earlier export: mine.txt"),
        ("-o file", "is not a folder"),
        ("-o file/below", "cannot be"),
        ("-o .", "not part of an earlier export"),
        ("-o new --script nothing", "no session is selected"),
        ("-o new --status failed", "no session is selected"),
        ("-o new --since yesterday", "is no duration, date or time"),
        ("-o new --status ended", "waiting_input"),
        ("-o new --format md", "for a single session"),
        ("-o new --force", "--force"),
        ("", "--output"),
    ] {
        let refused = export(&home, line);
        assert!(matches!(refused.code, Some(1 | 2)) && refused.err.contains(expected), "{line}: {refused:?}");
    }
    for (line, expected) in [
        ("sessions export", "<ID>"),
        ("sessions export i1 --all -o new", "cannot be used with"),
        ("sessions export i1 --status completed", "add `--all`"),
        ("sessions export i1 --format csv", "many sessions"),
        ("sessions export i1 --include-sensitive", "--all"),
    ] {
        let refused = home.finish(line.split(' '), "");
        assert!(refused.code == Some(2) && refused.err.contains(expected), "{line}: {refused:?}");
    }
    assert_eq!(fs::read_to_string(home.path().join("notes/mine.txt")).unwrap(), "mine");
    assert!(!home.path().join("new").exists());
    fs::write(out.join("sleep_study/interviews.csv"), "edited").unwrap();
    let refused = export(&home, "-o out");
    assert!(
        refused.code == Some(2) && refused.err.contains("changed or removed: sleep_study/interviews.csv"),
        "{refused:?}"
    );
    assert_eq!(text(&out, "sleep_study/interviews.csv"), "edited");
}

#[test]
fn a_data_set_that_cannot_be_completed_is_not_left_looking_whole() {
    let home = three_interviews();
    let long = "睡不着。".repeat(5_000);
    let mut answers = WHOLE;
    answers[8] = &long;
    interview(&home, "i4", "lin", &answers);
    let out = exported(&home, "");
    let (before, entries) = (files(&out), fs::read_dir(home.path()).unwrap().count());
    let mut limited = home.command([""; 0]);
    let program = limited.get_program().to_owned();
    limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 64; exec \"$@\"", "sh"]).arg(program);
    limited
        .args(["sessions", "export", "--all", "-o", "out"])
        .env_clear()
        .envs(home.variables())
        .current_dir(home.path());
    // In blocks of 512 bytes, or 1024 in some shells: enough to open the store, and less than the interviews take.
    let failed = finished(limited, "");
    assert!(failed.code == Some(1) && failed.err.contains("the data set cannot be written to out"), "{failed:?}");
    assert_eq!(files(&out), before);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), entries, "nothing is left beside it");
}

#[test]
fn a_session_that_cannot_be_read_is_named_and_the_others_are_exported() {
    let home = three_interviews();
    let damage = |id: &str| {
        let store = rusqlite::Connection::open(home.store()).unwrap();
        let sql =
            "UPDATE variable SET value = '{' WHERE name = 'age' AND session = (SELECT key FROM session WHERE id = ?)";
        assert_eq!(store.execute(sql, [id]).unwrap(), 1, "{id}");
    };
    damage("i3");
    let done = export(&home, "-o out");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("session `i3` was left out"), "{done:?}");
    assert!(done.err.contains("exported 2 sessions of 1 script to out"), "{done:?}");
    let out = home.path().join("out");
    assert_eq!(rows(&out, "sleep_study/interviews.csv").len(), 2);
    assert!(text(&out, "README.md").contains("`i3`"));
    let codebook = rows(&out, "sleep_study/codebook.csv");
    assert!(codebook.iter().filter(|row| row["table"] == "interviews").all(|row| row["cases"] == "2"));
    damage("i1");
    damage("i2");
    let failed = export(&home, "-o none");
    assert!(failed.code == Some(1) && failed.err.contains("none of the selected sessions can be read"), "{failed:?}");
    assert!(!home.path().join("none").exists());
}

#[test]
fn an_interview_that_repeats_another_one_is_no_further_interview() {
    let home = three_interviews();
    let again = home.finish(["sessions", "retry", "i1", "--turn", "1"], "");
    assert!(matches!(again.code, Some(0 | 3)), "{again:?}");
    let done = export(&home, "-o out");
    assert!(done.err.contains("1 session was left out, because it gives the answers of another one again"), "{done:?}");
    let out = home.path().join("out");
    assert_eq!(rows(&out, "sleep_study/interviews.csv").len(), 3);
    assert!(text(&out, "README.md").contains("1 sessions that give the answers of another one again"));
}

/// Lists and texts whose names, with the endings of columns, are the same; and keys that a spreadsheet would take for formulas.
const NAMES: &str = "
session:
  session_id: README.md
  declare:
    - { var: notes, type: list, value: [session] }
    - { var: x, type: list, value: [1, 2] }
    - { var: x_list, type: string, value: text }
    - { var: x_count, type: list, value: [3] }
    - { var: objects, type: list, value: [{ '=cmd()': 1 }] }
  phases:
    - phase_id: p
      declare: [{ var: notes, type: list, value: [phase] }]
      topics:
        - topic_id: t
          declare: [{ var: notes, type: list, value: [topic] }]
          actions:
            - { action_type: ai_say, action_id: bye, config: { delivery: verbatim, content: Bye. } }
";

#[test]
fn names_that_would_be_the_same_are_different() {
    let home = Home::new();
    home.put("s.yaml", NAMES);
    let ran = home.finish(["run", "s.yaml", "--session", "one"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let out = exported(&home, "--format jsonl");
    let interview = &lines(&out, "README.md_2/interviews.jsonl")[0]["variables"];
    let lists: BTreeMap<&String, &Value> =
        interview.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("notes")).collect();
    let values: Vec<String> = lists.values().map(ToString::to_string).collect();
    assert_eq!(lists.len(), 3, "{interview}");
    for value in [r#"["session"]"#, r#"["phase"]"#, r#"["topic"]"#] {
        assert!(values.iter().any(|shown| shown == value), "{interview}");
    }
    let codebook = rows(&out, "README.md_2/codebook.csv");
    let columns: std::collections::BTreeSet<&str> = codebook.iter().map(|row| row["column"].as_str()).collect();
    assert_eq!(columns.len(), codebook.len(), "{codebook:?}");
    let objects = text(&exported(&home, ""), "README.md_2/objects.csv");
    assert!(objects.contains("'=cmd()") && !objects.contains(",=cmd()"), "{objects}");
    let archive = fs::read(exported(&home, "--format qdpx").join("README.md_2/interviews.qdpx")).unwrap();
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(archive)).unwrap();
    let mut project = String::new();
    std::io::Read::read_to_string(&mut archive.by_name("project.qde").unwrap(), &mut project).unwrap();
    let variable = Regex::new(r#"<Variable guid="([^"]+)" name="([^"]+)""#).unwrap();
    let found: Vec<(String, String)> =
        variable.captures_iter(&project).map(|found| (found[1].to_owned(), found[2].to_owned())).collect();
    let ids: std::collections::BTreeSet<&String> = found.iter().map(|(id, _)| id).collect();
    assert!(ids.len() == found.len() && found.len() > 10, "{found:?}");
}
