//! What test runs produce besides results: snapshots and the messages of simulated persons. Run through the library as
//! `bcc-script test` does it, with recorded replies in place of every model.

use std::path::{Path, PathBuf};

use bcc_authoring::test_runner::coverage::coverage::Coverage;
use bcc_authoring::test_runner::find::find;
use bcc_authoring::test_runner::request::TestRequest;
use bcc_authoring::test_runner::result::{TestResult, TestStatus};
use bcc_authoring::test_runner::run::{TestReport, run};
use bcc_engine::environment::Environment;
use bcc_lang::source::render::human::human;
use tempfile::TempDir;

const SCRIPT: &str = "session:
  session_id: intake
  declare:
    - { var: user_name, type: string }
    - { var: secret, type: string, sensitive: true }
  phases:
    - phase_id: opening
      topics:
        - topic_id: greeting
          actions:
            - action_type: ai_ask
              action_id: ask_name
              config: { content: 怎么称呼您？, max_rounds: 20, output: [{ get: user_name }, { get: secret }] }
            - { action_type: ai_say, action_id: bye, config: { content: '再见，{{ user_name }}。', delivery: verbatim } }
";

/// A project with the script and these tests in its `tests/` folder.
fn project(tests: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("tests")).unwrap();
    std::fs::create_dir_all(folder.path().join("_system")).unwrap();
    std::fs::write(folder.path().join("intake.yaml"), SCRIPT).unwrap();
    for (name, text) in tests {
        write_test(&folder, name, text);
    }
    folder
}

fn write_test(folder: &TempDir, name: &str, text: &str) {
    let text = format!("script: ../intake.yaml\n{text}");
    std::fs::write(folder.path().join("tests").join(name), text).unwrap();
}

fn report(folder: &Path, update: bool, filter: Option<&str>) -> TestReport {
    let request = TestRequest {
        paths: vec![folder.join("tests")],
        filter: filter.map(str::to_owned),
        update,
        ..TestRequest::default()
    };
    let environment = Environment::default();
    let tests = find(&request, &environment).unwrap();
    assert!(tests.diagnostics.is_empty(), "{}", human(&tests.diagnostics, false));
    run(&tests, &request, &environment).unwrap()
}

/// Runs the only case of the only test.
fn run_case(folder: &TempDir, update: bool) -> TestResult {
    let mut ran = report(folder.path(), update, None).results;
    assert_eq!(ran.len(), 1);
    ran.remove(0)
}

fn snapshot_files(folder: &TempDir) -> Vec<String> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { collect(&path, found) } else { found.push(path) }
        }
    }
    let root = folder.path().join("tests/snapshots");
    let mut found = vec![];
    collect(&root, &mut found);
    let mut names: Vec<String> =
        found.iter().map(|path| path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/")).collect();
    names.sort();
    names
}

const TALK: &str = "test: greets
model:
  ask_name:
    - { content: 怎么称呼您？ }
    - { content: 好的。, EXIT: 'YES', user_name: 小林, secret: 住在三号楼, metrics: { user_engagement: 愿意谈 } }
dialogue:
  - user: 小林，住在三号楼
";

#[test]
fn a_snapshot_is_asked_for_kept_compared_and_masked() {
    let folder =
        project(&[("a.yaml", &format!("{TALK}snapshot: [variables, transcript, outcomes, events, prompts]\n"))]);
    let missing = run_case(&folder, false);
    assert_eq!(missing.status, TestStatus::Failed);
    let failure = &missing.failures[0];
    assert!(failure.message.to_string().ends_with("tests/snapshots/a.yaml yet"), "{}", failure.message);
    assert!(failure.help.as_ref().map(ToString::to_string).as_deref().unwrap().contains("--update"));
    assert_eq!(snapshot_files(&folder), Vec::<String>::new(), "nothing is kept that nobody asked for");

    let written = run_case(&folder, true);
    assert_eq!(written.status, TestStatus::Passed, "{:?} {:?}", written.reason, written.failures);
    assert!(
        written.notes.iter().any(|note| note.to_string().contains("snapshots/a.yaml is new")),
        "{:?}",
        written.notes
    );
    let text = std::fs::read_to_string(folder.path().join("tests/snapshots/a.yaml")).unwrap();
    assert!(
        !text.contains("三号楼") && text.contains("2026-01-01 "),
        "prompts have the test's own clock, and no secret"
    );
    let (before, prompts) = text.split_once("\nprompts:").unwrap();
    assert_eq!(prompts.matches("- system: ").count(), 2);
    for hidden in ["2026", "seq:", "session_id", "call_id", "tokens", "ms:"] {
        assert!(!before.contains(hidden), "{hidden} in\n{text}");
    }
    insta::assert_snapshot!(before);
    // The snapshot is the same each time, and nothing is written.
    let repeated = run_case(&folder, true);
    assert!(!repeated.notes.iter().any(|note| note.to_string().contains("snapshot")), "{:?}", repeated.notes);
    assert_eq!(run_case(&folder, false).status, TestStatus::Passed);

    write_test(&folder, "a.yaml", &format!("{}snapshot: transcript\n", TALK.replace("好的。", "好。")));
    let compare = run_case(&folder, false);
    assert_eq!(compare.status, TestStatus::Failed);
    assert!(compare.failures[0].found.to_string().contains('-'), "{}", compare.failures[0].found);
    let updated = run_case(&folder, true);
    assert!(updated.notes.iter().any(|note| note.to_string().contains("was updated")), "{:?}", updated.notes);
    assert_eq!(run_case(&folder, false).status, TestStatus::Passed);
}

#[test]
fn a_failed_test_writes_no_snapshot() {
    let folder = project(&[(
        "a.yaml",
        &format!("{TALK}expect: {{ variables: {{ user_name: 别人 }} }}\nsnapshot: transcript\n"),
    )]);
    assert_eq!(run_case(&folder, true).status, TestStatus::Failed);
    assert_eq!(snapshot_files(&folder), Vec::<String>::new());
}

#[test]
fn each_case_has_a_snapshot_and_stale_snapshots_are_reported() {
    let cases = "for:\n  - { case: 小林, name: 小林 }\n  - { case: ../../小李, name: 小李 }\n";
    let text =
        TALK.replace("user_name: 小林", "user_name: '{{ name }}'").replace("- user: 小林", "- user: 我是{{ name }}");
    let folder = project(&[("a.yaml", &format!("{text}{cases}snapshot: transcript\n")), ("b.yaml", TALK)]);
    let first = report(folder.path(), true, None);
    assert!(first.results.iter().all(|ran| ran.status == TestStatus::Passed), "{:?}", first.results[0].failures);
    let names = snapshot_files(&folder);
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&"a/小林.yaml".to_owned()) && names.iter().all(|name| name.starts_with("a/")), "{names:?}");
    assert!(first.stale.is_empty());
    std::fs::write(folder.path().join("tests/snapshots/b.yaml"), "transcript: []\n").unwrap();
    std::fs::write(folder.path().join("tests/snapshots/a/gone.yaml"), "transcript: []\n").unwrap();
    let second = report(folder.path(), true, None);
    let ends: Vec<&str> = second.stale.iter().map(|path| path.rsplit("/snapshots/").next().unwrap()).collect();
    assert_eq!(ends, ["a/gone.yaml", "b.yaml"]);
    assert_eq!(snapshot_files(&folder).len(), 4, "they are told, and left where they are");
    assert!(report(folder.path(), false, Some("小李")).stale.is_empty(), "of a part of the tests nothing is known");
}

/// A test with a simulated person whose messages are recorded replies.
fn simulated_person_test(persona: &str, replies: &str, answers: usize) -> String {
    let questions = "    - { content: 怎么称呼您？ }\n".repeat(answers + 1);
    format!("test: a person\nmodel:\n  ask_name:\n{questions}  'persona:*': {replies}\nuser: {persona}\n")
}

#[test]
fn a_simulated_person_talks_until_the_session_ends() {
    let text = "test: a person
model:
  ask_name:
    - { content: 怎么称呼您？ }
    - { content: 您是？ }
    - { content: 昵称也好。 }
    - { content: 好的。, EXIT: 'YES', user_name: 小周 }
  'persona:ask_name': [ '<think>先不说</think>来访者：随便聊聊', 小周 ]
user: { persona: 一位话不多的程序员 }
dialogue:
  - user: 你好
expect: { status: completed, variables: { user_name: 小周 } }
";
    let folder = project(&[("a.yaml", text)]);
    let ran = run_case(&folder, false);
    assert_eq!(ran.status, TestStatus::Passed, "{:?} {:?} {:?}", ran.reason, ran.failures, ran.notes);
    let messages: Vec<&str> = ran.transcript.iter().map(|line| line.text.as_str()).collect();
    let expected = ["怎么称呼您？", "你好", "您是？", "随便聊聊", "昵称也好。", "小周", "好的。", "再见，小周。"];
    assert_eq!(messages, expected);
    assert!(
        ran.notes.iter().any(|note| note.to_string().starts_with("simulated person: 2 calls to ")),
        "{:?}",
        ran.notes
    );
    // Calls of the simulated person do not count as calls of the session.
    assert_eq!(ran.model_calls, 4);
}

#[test]
fn a_simulated_person_who_reaches_the_turn_limit_fails_unless_that_is_allowed() {
    let replies = "[一, 二, 三]";
    let folder = project(&[("a.yaml", &simulated_person_test("{ persona: 谁, turns: 3 }", replies, 3))]);
    let ran = run_case(&folder, false);
    assert_eq!(ran.status, TestStatus::Failed);
    assert_eq!(ran.failures[0].message, "the simulated person sent 3 messages, but the session is still waiting");
    write_test(&folder, "a.yaml", &simulated_person_test("{ persona: 谁, turns: 3, bound: ok }", replies, 3));
    let ran = run_case(&folder, false);
    assert_eq!(ran.status, TestStatus::Passed, "{:?} {:?}", ran.reason, ran.failures);
}

#[test]
fn a_simulated_person_who_is_silent_or_stuck_fails_with_help() {
    let folder = project(&[("a.yaml", &simulated_person_test("{ persona: 谁 }", "['   ']", 1))]);
    let ran = run_case(&folder, false);
    assert_eq!(
        (ran.status, ran.failures[0].message.to_string()),
        (TestStatus::Failed, "the simulated person said nothing".to_owned())
    );
    write_test(&folder, "a.yaml", &simulated_person_test("{ persona: 谁 }", "[嗯, 嗯, 嗯, 嗯]", 4));
    let ran = run_case(&folder, false);
    assert_eq!(ran.failures[0].message, "the simulated person said the same thing 3 times in a row");
    assert!(ran.failures[0].help.is_some());
    let long_message = "长".repeat(5_000);
    write_test(
        &folder,
        "a.yaml",
        &simulated_person_test("{ persona: 谁, turns: 1, bound: ok }", &format!("[{long_message}]"), 1),
    );
    let ran = run_case(&folder, false);
    assert_eq!(ran.status, TestStatus::Passed, "{:?} {:?}", ran.reason, ran.failures);
    assert_eq!(ran.transcript[1].text.chars().count(), 2_000);
}

#[test]
fn without_a_model_a_test_with_a_simulated_person_is_skipped_with_a_reason() {
    let folder = project(&[("a.yaml", "test: a person\nuser: { persona: 谁 }\n")]);
    let ran = run_case(&folder, false);
    assert_eq!(ran.status, TestStatus::Skipped);
    assert!(ran.reason.as_ref().map(ToString::to_string).as_deref().unwrap().contains("--model"), "{:?}", ran.reason);
}

#[test]
fn coverage_of_a_test_run_is_of_the_scripts_that_were_run() {
    let folder = project(&[("a.yaml", TALK), ("b.yaml", "test: only asks\ndialogue:\n  - ai: 怎么称呼您？\n")]);
    let mut coverage = Coverage::default();
    for ran in report(folder.path(), false, None).results {
        coverage.add(ran.program.as_ref().unwrap(), &ran.events());
    }
    let covered = coverage.files().next().unwrap();
    assert_eq!((coverage.files().count(), covered.sessions), (1, 2));
    assert_eq!((covered.total().covered, covered.total().total), (4, 4));
}
