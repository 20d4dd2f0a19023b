//! Checks the pages of `docs/diagnostics/`: wrong examples raise the diagnostic, right examples raise nothing, and each diagnostic of
//! the sources has a page of the same form.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bcc_authoring::validate::request::ValidateRequest;
use bcc_authoring::validate::validate::validate;
use bcc_check::diagnostics::{DIAGNOSTICS, Page};
use bcc_engine::engine::RunRequest;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::project::Project;
use bcc_lang::message::language::Language;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::render::human::human;
use regex::Regex;

use crate::diagnostic_page::{Example, Parts};

/// The folders whose sources define diagnostics.
const SOURCE_FOLDERS: [&str; 4] =
    ["crates/lang/src/source", "crates/lang/src/script", "crates/check/src", "crates/runtime/src/actions"];

/// Codes of errors and warnings of running scripts, which `validate` cannot raise and no page can show.
const RUNTIME_CODES: [&str; 23] = [
    "kernel-busy",
    "kernel-died",
    "variable-withheld",
    "unreadable-action",
    "action-failed",
    "code-failed",
    "code-interrupted",
    "code-rejected",
    "code-timed-out",
    "plan-failed",
    "no-plan",
    "approver-empty",
    "rewind-missing",
    "not-a-time",
    "approval-overdue",
    "behavior-unreadable",
    "effect-interrupted",
    "frame-unreadable",
    "no-such-action",
    "no-such-cell",
    "server-flood",
    "server-rubbish",
    "value-not-json",
];

/// The slug of the diagnostic that only `run` raises.
const NOT_A_SESSION: &str = "not-a-session";

fn root() -> &'static Path {
    Path::new(crate::ROOT)
}

const LANGUAGES: [Language; 2] = [Language::English, Language::Chinese];

/// Every page in every language, with its sections.
fn pages() -> impl Iterator<Item = (&'static Page, Language, Parts)> {
    let parts = |page: &Page, language| {
        let problem = |problem| panic!("docs/diagnostics/{} in {language:?}: {problem}", page.slug);
        Parts::of(page.text(language)).unwrap_or_else(problem)
    };
    DIAGNOSTICS.iter().flat_map(move |page| LANGUAGES.map(move |language| (page, language, parts(page, language))))
}

/// The diagnostics of `validate` for the example, laid out as a project.
fn findings(slug: &str, example: &Example) -> Vec<Diagnostic> {
    let directory = tempfile::tempdir().unwrap();
    for (path, bytes) in &example.files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    // A page about templates may have no script.
    let mut paths = vec![directory.path().join(Example::SCRIPT), directory.path().join("_system")];
    paths.retain(|path| path.exists());
    let request =
        ValidateRequest { paths, project: Some(directory.path().to_path_buf()), ..ValidateRequest::default() };
    let mut found = validate(&request, &Environment::default()).unwrap().diagnostics;
    if slug == NOT_A_SESSION {
        found.extend(run_diagnostics(directory.path()));
    }
    found
}

/// The diagnostic that only `run` raises: the file is not a session.
fn run_diagnostics(directory: &Path) -> Vec<Diagnostic> {
    let file = directory.join(Example::SCRIPT);
    let project = Project::of(&file, Some(directory), false, &Environment::default()).unwrap();
    match LoadedProgram::of(&project, &RunRequest { file, ..RunRequest::default() }) {
        Ok(_) => vec![],
        Err(EngineError::Invalid(mut found)) => {
            found.retain(|diagnostic| diagnostic.rule == NOT_A_SESSION);
            found
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn wrong_examples_raise_their_diagnostic_with_help_and_no_other_error() {
    let mut problems = String::new();
    for (page, language, parts) in pages() {
        for (number, example) in parts.wrong.iter().enumerate() {
            let found = findings(page.slug, example);
            let (own, other): (Vec<_>, Vec<_>) = found.iter().partition(|diagnostic| diagnostic.rule == page.slug);
            let raised = own.iter().any(|diagnostic| diagnostic.severity == page.severity);
            let helped = own.iter().all(|diagnostic| diagnostic.help.is_some());
            let alone = !other.iter().any(|diagnostic| diagnostic.is_error());
            if !(raised && helped && alone) || std::env::var_os("SHOW").is_some() {
                let place = format!("##### the wrong example {} of {} in {language:?}", number + 1, page.slug);
                problems += &format!("{place} ({raised}, {helped}, {alone})\n{}\n", human(&found, false));
            }
        }
    }
    assert!(problems.is_empty(), "not raised, without help, or with other errors:\n{problems}");
}

#[test]
fn right_examples_raise_nothing() {
    for (page, language, parts) in pages() {
        for (number, example) in parts.right.iter().enumerate() {
            let found = findings(page.slug, example);
            let shown = human(&found, false);
            assert!(found.is_empty(), "the right example {} of {} in {language:?}:\n{shown}", number + 1, page.slug);
        }
    }
}

#[test]
fn every_page_has_the_same_sections() {
    for (page, language, parts) in pages() {
        assert_eq!((&*parts.slug, &parts.summary), (page.slug, &page.summary(language)));
        let count = (parts.wrong.len(), parts.right.len());
        assert!(count.0 > 0 && count.0 == count.1, "{}: each wrong example is fixed once: {count:?}", page.slug);
    }
}

/// The text of each source file without its tests.
fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push(text.split("#[cfg(test)]").next().unwrap().to_owned());
        }
    }
}

#[test]
fn every_diagnostic_of_the_sources_has_a_page_and_every_page_a_diagnostic() {
    // In these folders a string of lowercase words and hyphens is a slug; warnings of running scripts have their own codes.
    let literal = Regex::new(r#"(warn\(\s*)?"([a-z]+(?:-[a-z]+)+)""#).unwrap();
    let comment = Regex::new(r"(?m)^\s*//.*$").unwrap();
    let constructor = Regex::new(r#"Diagnostic::(?:error|warning|info)\(\s*"([^"]+)""#).unwrap();
    let pages: BTreeSet<String> = DIAGNOSTICS.iter().map(|page| page.slug.to_owned()).collect();
    let mut texts = Vec::new();
    sources(&root().join("src"), &mut texts);
    sources(&root().join("crates"), &mut texts);
    let mut slugs: BTreeSet<String> = BTreeSet::new();
    for text in &texts {
        slugs.extend(constructor.captures_iter(text).map(|found| found[1].to_owned()));
    }
    texts.clear();
    SOURCE_FOLDERS.iter().for_each(|place| sources(&root().join(place), &mut texts));
    // The table itself does not count.
    texts.retain(|text| !text.contains("static DIAGNOSTICS"));
    for text in &texts {
        let text = comment.replace_all(text, "");
        let found = literal.captures_iter(&text).filter(|found| found.get(1).is_none());
        slugs.extend(
            found
                .map(|found| found[2].to_owned())
                .filter(|slug| !RUNTIME_CODES.contains(&slug.as_str()) && slug != "bcc-script"),
        );
    }
    assert_eq!(slugs, pages);
}

#[test]
fn every_page_is_in_the_table_and_in_the_readme_of_the_pages() {
    let folder = root().join("docs/diagnostics");
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = names.collect();
    let mut expected: BTreeSet<String> = DIAGNOSTICS.iter().map(|page| format!("{}.md", page.slug)).collect();
    let chinese = DIAGNOSTICS.iter();
    expected.extend(chinese.map(|page| format!("{}.zh.md", page.slug)));
    expected.insert("README.md".to_owned());
    assert_eq!(files, expected);

    let readme = fs::read_to_string(folder.join("README.md")).unwrap();
    let listed: Vec<&str> = readme.lines().filter(|line| line.starts_with("* [")).collect();
    let lines = DIAGNOSTICS.iter().map(|page| {
        let (slug, severity) = (page.slug, page.severity.name());
        let set = if page.adjustable { ", configurable" } else { "" };
        format!("* [`{slug}`]({slug}.md) ({severity}{set}): {}", page.summary(Language::English))
    });
    let lines: Vec<String> = lines.collect();
    assert_eq!(listed, lines, "the list should be:\n{}", lines.join("\n"));
}
