//! Runs the tests of the repository's own scripts through the library; `bcc-script test scripts/tests` does the same.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bcc_authoring::test_runner::coverage::coverage::Coverage;
use bcc_authoring::test_runner::coverage::table::table;
use bcc_authoring::test_runner::find::find;
use bcc_authoring::test_runner::request::TestRequest;
use bcc_authoring::test_runner::result::{TestResult, TestStatus};
use bcc_authoring::test_runner::run::run;
use bcc_engine::environment::Environment;
use bcc_lang::message::language::Language;
use bcc_lang::source::render::human::human;
use bcc_script::cli::test_report::case;

fn all() -> Vec<TestResult> {
    let request = TestRequest { paths: vec!["scripts/tests".into()], ..TestRequest::default() };
    let environment = Environment::default();
    let tests = find(&request, &environment).unwrap();
    assert!(tests.diagnostics.is_empty(), "{}", human(&tests.diagnostics, false));
    run(&tests, &request, &environment).unwrap().results
}

#[test]
fn the_tests_of_our_own_scripts_pass() {
    for result in all() {
        assert_eq!(result.status, TestStatus::Passed, "{}", case(&result, false, Language::English));
    }
}

#[test]
fn every_script_of_our_own_has_a_test() {
    let tested: BTreeSet<PathBuf> = all().into_iter().filter_map(|result| result.script).collect();
    let own = ["scripts", "examples"].into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    for file in own.map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if file.extension().is_some_and(|extension| extension == "yaml") && text.contains("\nsession:") {
            assert!(tested.contains(&Path::new(&file).canonicalize().unwrap()), "{} has no test", file.display());
        }
    }
}

#[test]
fn every_part_of_our_own_scripts_runs_in_some_test() {
    let mut coverage = Coverage::default();
    for result in all() {
        coverage.add(result.program.as_ref().unwrap(), &result.events());
    }
    let total = coverage.total();
    assert_eq!(total.covered, total.total, "{}", table(&coverage, false, Language::English));
}
