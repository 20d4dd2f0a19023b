//! Measures the time of conversation tests: 1,000 conversations of ten turns (target: at most 5 s on two processors).
//!
//! `BCC_BENCH_TALKS` sets the number of conversations (1,000).

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a bench may fail where it stands, and prints its figures"
)]

use std::fmt::Write;
use std::time::Instant;

use bcc_authoring::test_runner::find::find;
use bcc_authoring::test_runner::request::TestRequest;
use bcc_authoring::test_runner::result::TestStatus;
use bcc_authoring::test_runner::run::run;
use bcc_engine::environment::Environment;

const TURNS: usize = 10;

fn main() {
    let conversations: usize =
        std::env::var("BCC_BENCH_TALKS").ok().and_then(|conversations| conversations.parse().ok()).unwrap_or(1_000);
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).expect("a file");
    let mut script = "session:\n  session_id: talk\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          actions:\n".to_owned();
    let mut test = "test: ten turns\nscript: talk.yaml\nfor:\n  - [name]\n".to_owned();
    for number in 0..conversations {
        let _ = writeln!(test, "  - [小{number}]");
    }
    test.push_str("model:\n");
    let mut dialogue = "dialogue:\n".to_owned();
    for turn in 0..TURNS {
        let _ = writeln!(
            script,
            "            - {{ action_type: ai_ask, action_id: ask_{turn}, config: {{ content: 请说说第 {turn} 件事, output: [{{ get: answer_{turn}, define: 回答 }}] }} }}"
        );
        let _ = writeln!(
            test,
            "  ask_{turn}: [{{ content: 请说说第 {turn} 件事。 }}, {{ content: 好的。, EXIT: \"YES\", answer_{turn}: \"{{{{ name }}}}\" }}]"
        );
        let _ = writeln!(
            dialogue,
            "  - ai: {{ contains: 第 {turn} 件事 }}\n  - user: \"{{{{ name }}}}\"\n  - expect: {{ variables: {{ answer_{turn}: \"{{{{ name }}}}\" }} }}"
        );
    }
    write("talk.yaml", script);
    write("talk.test.yaml", test + &dialogue + "expect: { status: completed }\n");
    let environment = Environment::default();
    let request = TestRequest { paths: vec![folder.path().to_path_buf()], ..TestRequest::default() };
    for jobs in [None, Some(1)] {
        let began = Instant::now();
        let tests = find(&request, &environment).expect("tests");
        let found = began.elapsed();
        let request = TestRequest { jobs, ..request.clone() };
        let report = run(&tests, &request, &environment).expect("a report");
        let took = began.elapsed();
        assert!(report.results.iter().all(|ran| ran.status == TestStatus::Passed));
        println!(
            "{} conversations of {TURNS} turns, {} at a time: {:.2} s ({:.2} s of it to find and check them), {:.2} ms each",
            report.results.len(),
            jobs.map_or("one for each processor".to_owned(), |jobs| jobs.to_string()),
            took.as_secs_f64(),
            found.as_secs_f64(),
            took.as_secs_f64() * 1e3 / report.results.len() as f64
        );
    }
}
