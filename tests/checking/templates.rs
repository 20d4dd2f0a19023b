//! Findings in templates: each file of `tests/templates/` is a small project, with the expected report in a snapshot; the projects in
//! `ok/` have no findings.
//!
//! A line `=== path` starts a file of the project; `=== variables` lists the names that its scripts set,
//! `=== models` the models of its configuration.

use crate::examining;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::human::human;

fn examine(case: &str) -> Vec<Diagnostic> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in case.split_inclusive('\n') {
        match line.strip_prefix("=== ") {
            Some(path) => files.push((path.trim_end().to_owned(), String::new())),
            None => files.last_mut().expect("a case begins with `=== path`").1.push_str(line),
        }
    }
    let variables = files.iter().find(|(path, _)| path == "variables");
    let variables = variables.map(|(_, text)| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<String>>());
    examining::template_findings(&files, variables.as_ref())
}

fn cases(folder: &str, min_count: usize) -> Vec<PathBuf> {
    crate::change_to_root();
    let mut files: Vec<PathBuf> = std::fs::read_dir(Path::new("tests/templates").join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    assert!(files.len() >= min_count, "only {} cases", files.len());
    files
}

#[test]
fn every_mistake_is_reported_as_its_snapshot_says() {
    for file in cases("err", 25) {
        let found = examine(&std::fs::read_to_string(&file).unwrap());
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(!found.is_empty() && found.iter().all(|found| found.help.is_some()), "{name}");
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../templates/err");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, human(&found, false)));
    }
}

#[test]
fn valid_templates_have_no_findings() {
    for file in cases("ok", 8) {
        let found = examine(&std::fs::read_to_string(&file).unwrap());
        assert!(found.is_empty(), "{}:\n{}", file.display(), human(&found, false));
    }
}

#[test]
fn the_templates_of_this_repository_have_no_findings() {
    crate::change_to_root();
    let mut files = Vec::new();
    for place in ["default", "custom/english"] {
        for entry in std::fs::read_dir(Path::new("_system/config").join(place)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("_system/config/{place}/{name}");
            files.push((path.clone(), std::fs::read_to_string(path).unwrap()));
        }
    }
    assert_eq!(files.len(), 32);
    // With an empty set of variables, every unknown name would be reported.
    let found = examining::template_findings(&files, Some(&BTreeSet::new()));
    assert!(found.is_empty(), "{}", human(&found, false));
}

#[test]
fn an_unreadable_template_and_those_that_include_it_have_no_further_findings() {
    let root = "{% include 'part.md' %}".to_owned();
    let mut files = examining::system(&[
        ("_system/config/default/ai_think_v1.md".to_owned(), root),
        ("_system/config/default/part.md".to_owned(), "{% broken".to_owned()),
    ]);
    files[1].readable = false;
    assert!(examining::examine(&files, &[], None).is_empty());
}

#[test]
fn a_template_of_ten_megabytes_is_one_finding() {
    let files = [("_system/config/default/ai_ask_v1.md".to_owned(), "{{ x }} ".repeat(1_310_720))];
    let found = examining::template_findings(&files, None);
    assert_eq!(found.iter().map(|found| found.rule).collect::<Vec<_>>(), ["file-too-large"]);
}
