//! Finds the tests: the given files, those below the given folders, or those in `tests/` of the project.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::test_runner::request::TestRequest;
use crate::test_runner::snapshots::files::FOLDER;
use crate::test_runner::snapshots::orphaned::SnapshotFolder;
use crate::validate::read_file::{FileRead, document};
use crate::validate::request::ValidateRequest;
use crate::validate::roots::OwnFolders;
use crate::validate::validate::validate_again;
use bcc_engine::discovery::documents::test_value;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{FileRole, FoundFile, boundary, current_directory, walk};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::{absolute, given_directory, nearest};
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::root_key;
use bcc_lang::script::test::cases::{CaseValues, cases};
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;

/// The folder of a project whose tests are run by default.
pub(crate) const USUAL_FOLDER: &str = "tests";

#[derive(Clone, Debug)]
pub struct TestFile {
    /// Its text, under the name that messages use.
    pub file: Arc<SourceFile>,
    /// The real path.
    pub real: PathBuf,
    /// The folder that no link to its snapshots may lead out of: its project, or its own folder.
    pub boundary: PathBuf,
    /// The value of `test`: a sentence that describes the test.
    pub name: String,
    pub root: Arc<YamlNode>,
    /// Its cases; `None` for a test without `for`.
    pub cases: Option<Vec<CaseValues>>,
    pub errors: usize,
}

#[derive(Debug, Default)]
pub struct Tests {
    pub files: Vec<TestFile>,
    pub diagnostics: Vec<Diagnostic>,
    pub skipped_files: usize,
    /// The folders of snapshots below the folders that were searched.
    pub snapshot_folders: Vec<SnapshotFolder>,
}

/// Errors: `Usage` if there is nothing to test, `Failed` if a check is aborted.
pub fn find(request: &TestRequest, environment: &Environment) -> Result<Tests, EngineError> {
    let here = current_directory()?;
    let names = PathNames::relative_to(request.named_from.as_ref().unwrap_or(&here).clone());
    let given = given_directory(request.project.as_deref(), environment)?;
    let project = given.clone().unwrap_or_else(|| nearest(&absolute(&here)));
    let roots = if request.paths.is_empty() { vec![project.join(USUAL_FOLDER)] } else { request.paths.clone() };
    if request.paths.is_empty() && !roots.iter().any(|root| root.is_dir()) {
        let message =
            msg!("there is nothing to test: {path} has no folder {USUAL_FOLDER}/", path = names.display_name(&project));
        let help = "specify files or folders, as in `bcc-script test my_test.yaml`";
        return Err(EngineError::usage(message).with_help(help));
    }
    // The same rules as in `validate`: a file found below a folder may be unrelated.
    let check = |paths| ValidateRequest {
        paths,
        project: request.project.clone(),
        named_from: request.named_from.clone(),
        ..ValidateRequest::default()
    };
    let asked = check(roots.clone());
    let own = OwnFolders::of(&asked, given.as_deref(), &here);
    let found = walk(&roots, &names);
    let snapshot_folders = found.folders.iter().filter_map(|folder| snapshot_folder(folder, &roots, &names)).collect();
    let mut tests = Tests { diagnostics: found.diagnostics, snapshot_folders, ..Tests::default() };
    let mut checked = Vec::new();
    for found in found.found {
        if found.role != FileRole::Document {
            continue;
        }
        let file = match document(&found, &own) {
            FileRead::Skipped(bytes) => {
                match is_broken_test(&found, bytes) {
                    true => checked.push(found.path.clone()),
                    false => tests.skipped_files += 1,
                }
                continue;
            }
            FileRead::Wrong(diagnostic) => {
                tests.diagnostics.push(*diagnostic);
                continue;
            }
            FileRead::Text(file) => file,
        };
        let root = parse(&file).root;
        match root {
            Some(root) if root_key(&root) == Some("test") => {
                checked.push(found.path.clone());
                tests.files.push(test_file(file, found.resolved, root));
            }
            // An invalid or unrelated file: if it was given by name, the check reports it.
            Some(root) if found.named && root_key(&root).is_some() => {
                let message = msg!("{} contains no test", found.shown);
                let help = "a test starts with a `test:` line; `bcc-script validate` checks other files";
                return Err(EngineError::usage(message).with_help(help));
            }
            None if found.named || test_value(file.text()).is_some() => checked.push(found.path.clone()),
            _ if found.named => checked.push(found.path.clone()),
            _ => tests.skipped_files += 1,
        }
    }
    if !checked.is_empty() {
        tests.diagnostics.extend(validate_again(&check(checked), environment, None)?.diagnostics);
    }
    sort(&mut tests.diagnostics);
    for test in &mut tests.files {
        let own = |diagnostic: &&Diagnostic| diagnostic.is_error() && diagnostic.file.name() == test.file.name();
        test.errors = tests.diagnostics.iter().filter(own).count();
    }
    if tests.files.is_empty() && tests.diagnostics.is_empty() {
        let shown: Vec<String> = roots.iter().map(|root| names.display_name(root)).collect();
        let others = match tests.skipped_files {
            0 => Message::default(),
            1 => msg!("; 1 other YAML file was skipped"),
            more => msg!("; {more} other YAML files were skipped"),
        };
        let message = msg!("there is nothing to test in {}{others}", shown.join(", "));
        return Err(EngineError::usage(message).with_help("a test is a YAML file that starts with a `test:` line"));
    }
    Ok(tests)
}

/// Whether a file that is no document of the language was meant as a test all the same: it says so, and cannot be read for the rest.
/// Files of other programs, in which `test` is a section, are not.
fn is_broken_test(found: &FoundFile, bytes: Vec<u8>) -> bool {
    let Ok(file) = SourceFile::from_bytes(found.shown.as_str(), bytes) else { return false };
    let says_so = test_value(file.text()).is_some_and(|value| !value.is_empty() && !value.starts_with('#'));
    says_so && parse(&Arc::new(file)).root.is_none()
}

/// A folder of snapshots below one of `roots`, which may be named by another path.
fn snapshot_folder(real: &Path, roots: &[PathBuf], names: &PathNames) -> Option<SnapshotFolder> {
    real.file_name().filter(|name| *name == FOLDER)?;
    let named = |root: &PathBuf| Some(root.join(real.strip_prefix(absolute(root)).ok()?));
    let shown = roots.iter().find_map(named).unwrap_or_else(|| real.to_path_buf());
    let shown = PathBuf::from(names.display_name(&shown));
    Some(SnapshotFolder { real: real.to_path_buf(), shown, boundary: boundary(real.parent()?) })
}

fn test_file(file: Arc<SourceFile>, real: PathBuf, root: Arc<YamlNode>) -> TestFile {
    let name = root.get("test").and_then(|name| name.as_scalar()).map(|name| name.text.trim().to_owned());
    let cases = cases(&root, &file, &Findings::new());
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| "(unnamed test)".to_owned());
    let boundary = boundary(real.parent().unwrap_or(&real));
    TestFile { file, real, boundary, name, root, cases, errors: 0 }
}

impl Tests {
    /// The number of files with errors that contain no test that could be run.
    pub fn unreadable(&self) -> usize {
        self.unreadable_files().iter().map(|error| error.file.name()).collect::<HashSet<_>>().len()
    }

    /// The errors of files that contain no test that could be run, in the order of the files.
    pub fn unreadable_files(&self) -> Vec<&Diagnostic> {
        let known: HashSet<&str> = self.files.iter().map(|test| test.file.name()).collect();
        let wrong = self.diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
        wrong.filter(|diagnostic| !known.contains(diagnostic.file.name())).collect()
    }

    /// The errors of a test.
    pub(crate) fn errors_of<'t>(&'t self, test: &'t TestFile) -> impl Iterator<Item = &'t Diagnostic> {
        self.diagnostics.iter().filter(|found| found.is_error() && found.file.name() == test.file.name())
    }
}
