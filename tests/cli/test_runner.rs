//! Tests of conversation tests: passing tests, reports of failures, and problems that are found before a test runs.
//!
//! All of `tests/test_runner/passes` must pass; `fails` and `wrong` have their reports next to them, in the human format.

use std::fs;
use std::path::PathBuf;

use bcc_authoring::test_runner::find::find;
use bcc_authoring::test_runner::request::TestRequest;
use bcc_authoring::test_runner::result::{TestResult, TestStatus};
use bcc_authoring::test_runner::run::run;
use bcc_engine::environment::Environment;
use bcc_lang::message::language::Language;
use bcc_lang::source::render::human::human;
use bcc_script::cli::test_report::{case, summary};

fn run_tests(paths: &[PathBuf], change: impl FnOnce(&mut TestRequest)) -> (Vec<TestResult>, String) {
    let environment = Environment::default();
    let mut request = TestRequest { paths: paths.to_vec(), ..TestRequest::default() };
    change(&mut request);
    let tests = find(&request, &environment).unwrap();
    let report = run(&tests, &request, &environment).unwrap();
    let mut text = human(&tests.diagnostics, false);
    for result in &report.results {
        text += &case(result, false, Language::English);
    }
    text += &summary(&report.results, tests.unreadable(), tests.skipped_files, Language::English);
    (report.results, text)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(PathBuf::from("tests/test_runner").join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn what_must_pass_passes() {
    let (results, text) = run_tests(&["tests/test_runner/passes".into()], |_| ());
    assert!(results.iter().all(|result| result.status == TestStatus::Passed), "{text}");
    assert!(results.len() > 12);
}

#[test]
fn a_failure_is_told_as_a_story() {
    for file in files("fails") {
        let (results, text) = run_tests(std::slice::from_ref(&file), |_| ());
        assert!(results.iter().any(TestResult::failed), "{}", file.display());
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        insta::with_settings!({ snapshot_path => "../test_runner/fails", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
    }
}

#[test]
fn problems_of_a_test_are_reported_before_it_runs() {
    for file in files("wrong") {
        let (results, text) = run_tests(std::slice::from_ref(&file), |_| ());
        assert!(results.iter().all(|result| result.status == TestStatus::Broken), "{text}");
        assert!(text.contains("0 passed, 1 failed"), "{text}");
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        insta::with_settings!({ snapshot_path => "../test_runner/wrong", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
    }
}

#[test]
fn the_order_of_the_report_does_not_depend_on_the_number_of_threads() {
    let titles = |jobs| {
        let (results, _) = run_tests(&["tests/test_runner/passes".into()], |request| request.jobs = Some(jobs));
        results.iter().map(|result| (result.title(), result.journal.clone())).collect::<Vec<_>>()
    };
    assert_eq!(titles(1), titles(8));
}

#[test]
fn a_filter_selects_tests_and_a_failure_may_end_the_run() {
    let (results, _) = run_tests(&["tests/test_runner/fails".into()], |request| request.filter = Some("小李".into()));
    assert_eq!(results.iter().map(TestResult::title).collect::<Vec<_>>(), ["one of two cases fails [小李]"]);
    let (results, text) = run_tests(&["tests/test_runner/fails".into()], |request| {
        request.fail_fast = true;
        request.jobs = Some(1);
    });
    assert!(results[0].failed() && results[1..].iter().all(|result| result.status == TestStatus::Skipped), "{text}");
}

/// A folder with the script and one test.
fn folder(test: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy("tests/test_runner/talk.yaml", folder.path().join("talk.yaml")).unwrap();
    fs::write(folder.path().join("a.test.yaml"), test).unwrap();
    folder
}

#[test]
fn ten_thousand_cases_run_and_more_are_rejected() {
    let test = |cases: usize| {
        let rows: String = (0..cases).map(|case| format!("  - [小{case}]\n")).collect();
        format!(
            "test: many\nscript: talk.yaml\nfor:\n  - [name]\n{rows}model: {{ ask_name: [{{ content: \"{{{{ name }}}}\" }}] }}\ndialogue:\n  - ai: \"{{{{ name }}}}\"\n"
        )
    };
    let many = folder(&test(500));
    let (results, text) = run_tests(&[many.path().to_path_buf()], |_| ());
    assert!(results.len() == 500 && results.iter().all(|result| result.status == TestStatus::Passed), "{text}");
    let more = folder(&test(10_001));
    let (results, text) = run_tests(&[more.path().to_path_buf()], |_| ());
    assert!(results.len() == 1 && text.contains("10002 cases") && text.contains("out-of-range"), "{text}");
}

#[test]
fn a_script_with_errors_breaks_only_its_own_tests() {
    let both = folder("test: sound\nscript: talk.yaml\ndialogue:\n  - ai: 您好。\n");
    fs::write(both.path().join("bad.yaml"), "session:\n  session_id: bad\n").unwrap();
    fs::write(both.path().join("b.test.yaml"), "test: unsound\nscript: bad.yaml\ndialogue:\n  - ai: 好\n").unwrap();
    let (results, text) = run_tests(&[both.path().to_path_buf()], |_| ());
    assert_eq!(
        results.iter().map(|result| result.status).collect::<Vec<_>>(),
        [TestStatus::Passed, TestStatus::Broken],
        "{text}"
    );
    assert!(results[1].reason.as_ref().unwrap().to_string().contains("the script has an error"), "{text}");
    assert!(text.ends_with("1 passed, 1 failed, 0 skipped (2 YAML files are not tests and were skipped)\n"), "{text}");
}

#[test]
fn tests_with_a_simulated_user_are_skipped_without_a_real_model() {
    let alone = folder("test: talks\nscript: talk.yaml\nuser: { persona: 话不多 }\nexpect: { status: completed }\n");
    let (results, text) = run_tests(&[alone.path().to_path_buf()], |_| ());
    assert_eq!(results[0].status, TestStatus::Skipped, "{text}");
    assert!(text.contains("– talks") && text.contains("needs a configured model"), "{text}");
}

#[test]
fn a_simulated_user_with_an_unknown_model_breaks_the_test() {
    let mistyped = folder("test: talks\nscript: talk.yaml\nuser: { persona: 话不多, model: gtp }\n");
    let (results, text) = run_tests(&[mistyped.path().to_path_buf()], |_| ());
    assert_eq!(results[0].status, TestStatus::Broken, "{text}");
    assert!(text.contains("the model of the simulated person: there is no model `gtp`"), "{text}");
}

#[test]
fn a_text_of_a_megabyte_is_said_and_compared() {
    let long = "一".repeat(300_000);
    let test = format!(
        "test: long\nscript: talk.yaml\nmodel: {{ ask_name: [{{ content: {long} }}] }}\ndialogue:\n  - ai: {long}二\n"
    );
    let (results, text) = run_tests(&[folder(&test).path().to_path_buf()], |_| ());
    assert_eq!(results[0].status, TestStatus::Failed);
    assert!(text.len() < 100_000 && text.contains("300000 characters"), "{}", text.len());
}

#[test]
fn a_folder_without_tests_has_no_results() {
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join("a.yaml"), "a: 1\n").unwrap();
    let request = TestRequest { paths: vec![empty.path().to_path_buf()], ..TestRequest::default() };
    let error = find(&request, &Environment::default()).unwrap_err().to_string();
    assert!(error.contains("there is nothing to test") && error.contains("1 other YAML file"), "{error}");
    let script = TestRequest { paths: vec!["tests/test_runner/talk.yaml".into()], ..TestRequest::default() };
    let error = find(&script, &Environment::default()).unwrap_err().to_string();
    assert!(error.contains("contains no test"), "{error}");
}

#[test]
fn every_example_of_the_page_about_tests_runs() {
    let folder = tempfile::tempdir().unwrap();
    for part in ["scripts", "tests"] {
        fs::create_dir(folder.path().join(part)).unwrap();
    }
    let page = fs::read_to_string("docs/tests.md").unwrap();
    let mut tests = 0;
    for block in page.split("\n```yaml").skip(1) {
        let (head, rest) = block.split_once('\n').unwrap();
        let (text, _) = rest.split_once("\n```").unwrap();
        match head.trim() {
            "" => {
                tests += 1;
                fs::write(folder.path().join(format!("tests/{tests}.yaml")), text).unwrap();
            }
            name => fs::write(folder.path().join(name), text).unwrap(),
        }
    }
    let (results, text) = run_tests(&[folder.path().join("tests")], |request| request.update = true);
    assert!(tests >= 5 && results.len() > tests);
    // No model is configured for simulated users.
    let (others, skipped): (Vec<TestResult>, Vec<TestResult>) =
        results.into_iter().partition(|result| result.status != TestStatus::Skipped);
    assert!(others.iter().all(|result| result.status == TestStatus::Passed), "{text}");
    assert_eq!(skipped.iter().map(TestResult::title).collect::<Vec<_>>(), ["somebody of few words gets through"]);
}

#[test]
fn the_limits_of_a_model_apply_to_all_conversations_together() {
    let many = folder(
        "test: many\nscript: talk.yaml\nmodel: slow\nfor: [[n], [1], [2], [3], [4]]\ndialogue:\n  - ai: { contains: \"{{ n }}\" }\n",
    );
    let table = "[models.slow]\nprovider = \"replay\"\nfile = \"slow.replies\"\nconcurrency = 1\n";
    fs::write(many.path().join("bcc-script.toml"), table).unwrap();
    let replies = "replies:\n  ask_name:\n    - { $after_ms: 100, reply: { content: \"1234\" } }\n";
    fs::write(many.path().join("slow.replies"), replies).unwrap();
    let started = std::time::Instant::now();
    let (results, text) =
        run_tests(&[many.path().to_path_buf()], |request| (request.jobs, request.trust) = (Some(4), true));
    assert!(results.len() == 4 && results.iter().all(|result| result.status == TestStatus::Passed), "{text}");
    // Four sequential calls take at least this time on any machine; four parallel calls would not.
    assert!(started.elapsed() >= std::time::Duration::from_millis(400), "{:?}", started.elapsed());
}

/// Runs the program; returns its exit code, standard output and standard error.
fn program(arguments: &[&str]) -> (i32, String, String) {
    let program = env!("CARGO_BIN_EXE_bcc-script");
    let output = std::process::Command::new(program).args(arguments).env_clear().output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_exit_code_reports_the_result_of_the_tests() {
    let (code, out, err) = program(&["test", "tests/test_runner/passes", "--jobs", "2"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("passed, 0 failed, 0 skipped\n"), "{out}");
    let (code, out, _) = program(&["test", "tests/test_runner/fails", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &report["version"], &report["passed"]), (1, &1.into(), &1.into()));
    let first = &report["tests"][0];
    assert_eq!((&first["status"], &first["failures"][0]["line"]), (&"failed".into(), &3.into()), "{first:#}");
    for wrong in [
        ["test", "tests/test_runner/talk.yaml"],
        ["test", "tests/nowhere.yaml"],
        ["test", "--filter=nothing-is-called-so"],
    ] {
        let (code, out, err) = program(&wrong);
        assert!(code > 0 && !err.is_empty(), "{wrong:?}: {code} {out} {err}");
    }
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(program(&["test", folder.path().to_str().unwrap()]).0, 2);
}

#[test]
fn a_snapshot_is_written_with_update_and_compared_afterwards() {
    let test_with_reply = |reply: &str| {
        format!(
            "test: kept\nscript: talk.yaml\nsnapshot: [transcript, variables]\nmodel: {{ ask_name: [{{ content: {reply} }}] }}\ndialogue:\n  - ai: 您好。\n"
        )
    };
    let folder = folder(&test_with_reply("怎么称呼？"));
    let path = [folder.path().to_path_buf()];
    let (results, text) = run_tests(&path, |_| ());
    assert!(results[0].status == TestStatus::Failed && text.contains("there is no snapshot"), "{text}");
    let (results, text) = run_tests(&path, |request| request.update = true);
    assert!(results[0].status == TestStatus::Passed && text.contains("is new"), "{text}");
    let (results, text) = run_tests(&path, |_| ());
    assert!(results[0].status == TestStatus::Passed && results[0].notes.is_empty(), "{text}");
    fs::write(folder.path().join("a.test.yaml"), test_with_reply("叫什么？")).unwrap();
    let (results, text) = run_tests(&path, |_| ());
    assert!(
        results[0].status == TestStatus::Failed && text.contains("叫什么？") && text.contains("怎么称呼？"),
        "{text}"
    );
}

#[test]
fn no_report_contains_sensitive_values() {
    let script = "session:\n  session_id: s\n  declare: [{ var: phone, type: string, sensitive: true }, { var: age, type: integer, sensitive: true }]\n  phases:\n    - { phase_id: p, topics: [{ topic_id: t, actions: [{ action_type: ai_ask, action_id: ask, config: { content: 电话, max_rounds: 3, output: [{ get: phone, define: 电话, type: string }, { get: age, define: 年龄, type: integer }] } }, { action_type: ai_ask, action_id: more, config: { content: 还有吗, output: [{ get: other, define: 别的, type: string }] } }] }] }\n";
    let test = "test: masked\nscript: s.yaml\nmodel:\n  ask: [{ content: 电话？ }, { content: 记下了13800001111。, EXIT: \"YES\", phone: \"13800001111\", age: 34 }]\n  more: [{ content: 还有吗？ }]\ndialogue:\n  - user: 我的号码是13800001111\n  - expect: { variables: { phone: \"1\", age: 35 }, prompt: { more: { contains: zzz } }, said: { contains: zzz } }\n";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), script).unwrap();
    fs::write(folder.path().join("a.test.yaml"), test).unwrap();
    let (file, path) = (folder.path().join("junit.xml"), folder.path().to_str().unwrap());
    for format in ["human", "json"] {
        let (code, out, _) = program(&["test", path, "--format", format, "--junit", file.to_str().unwrap()]);
        // Durations differ between runs.
        let out: String = out.split_inclusive('\n').filter(|line| !line.contains("\"ms\":")).collect();
        let found =
            out.contains("***") && out.contains("the variable `age` has a different value") && !out.contains("34\n");
        assert!(code == 1 && found && !out.contains("13800001111") && !out.contains("\"34\""), "{out}");
        assert!(!fs::read_to_string(&file).unwrap().contains("13800001111"));
    }
}

#[test]
fn junit_has_a_case_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("junit.xml");
    let (code, _, err) = program(&["test", "tests/test_runner/fails", "--junit", file.to_str().unwrap()]);
    assert_eq!(code, 1, "{err}");
    let xml = fs::read_to_string(file).unwrap();
    assert!(xml.matches("<testcase").count() == 24 && xml.contains("小[-林-]{+李+}"), "{xml}");
}

#[test]
fn coverage_is_printed_after_the_report_or_to_a_file() {
    let (code, out, _) = program(&["test", "scripts/tests", "--filter", "welcome", "--coverage"]);
    assert!(code == 0 && out.contains("scripts/welcome.yaml"), "{out}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep/coverage.html");
    let file = file.to_str().unwrap();
    let (code, _, err) = program(&["test", "scripts/tests", "--coverage=html", "--coverage-out", file]);
    assert_eq!(code, 0, "{err}");
    assert!(fs::read_to_string(file).unwrap().contains("<html"));
    let skipped = self::folder("test: talks\nscript: talk.yaml\nuser: { persona: 话不多 }\n");
    let (_, out, _) = program(&["test", skipped.path().to_str().unwrap(), "--coverage=json"]);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["files"][0]["sessions"], 0, "a session that was not held counts for nothing: {report:#}");
    let (_, out, err) = program(&["test", "scripts/tests", "--filter", "welcome", "--coverage=json"]);
    assert!(serde_json::from_str::<serde_json::Value>(&out).unwrap().is_object());
    assert!(err.contains("passed"), "the report stands aside: {err}");
}

#[test]
fn the_scheme_of_the_command_line_replaces_that_of_the_test_and_of_the_script() {
    let home = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    for scheme in ["own", "other", "third"] {
        write(&format!("_system/config/custom/{scheme}/ai_think_v1.md"), &format!("Think as {scheme} does."));
    }
    let action = "{ action_type: ai_think, action_id: think, config: { content: x, output: [{ get: y }] } }";
    write(
        "talk.yaml",
        &format!(
            "session:\n  session_id: talk\n  template_scheme: own\n  phases: [{{ phase_id: p, topics: [{{ topic_id: t, actions: [{action}] }}] }}]\n"
        ),
    );
    let test = |scheme: &str, expected: &str| {
        format!(
            "test: t\nscript: talk.yaml\n{scheme}dialogue:\n  - expect: {{ prompt: {{ think: {{ contains: Think as {expected} does }} }} }}\n"
        )
    };
    let table = [("", "own", None), ("scheme: other\n", "other", None), ("scheme: other\n", "third", Some("third"))];
    for (written, expected, given) in table {
        let path = write("t.test.yaml", &test(written, expected));
        let (results, text) = run_tests(&[path], |request| request.scheme = given.map(str::to_owned));
        assert_eq!(results[0].status, TestStatus::Passed, "{expected}: {text}");
    }
}
