//! `validate --fix` and `migrate`: fixes the files of a request and writes them if requested.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fix::fix_text::{PassInput, apply_fixes};
use crate::fix::rules::{Rules, WHOLE_DOCUMENTS};
use crate::fix::write_back::{WriteError, replace_file};
use crate::validate::read_file::{FileRead, absent, document};
use crate::validate::request::ValidateRequest;
use crate::validate::roots::nothing;
use crate::validate::templates;
use crate::validate::threads::on_threads;
use crate::validate::validate::{AssignedNames, PreparedValidation};
use bcc_check::allow::allow;
use bcc_engine::discovery::documents::is_document;
use bcc_engine::discovery::walk::{FileRole, FoundFile};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::text::SourceFile;

#[derive(Clone, Debug)]
pub struct FixRequest {
    pub check: ValidateRequest,
    pub rules: Rules,
    /// Whether the fixed files are written to disk.
    pub write: bool,
}

#[derive(Debug, Default)]
pub struct FixReport {
    pub files: usize,
    /// The changed files, sorted by name. With [`FixRequest::write`] they were written, except those with [`FixedFile::write_error`].
    pub fixed: Vec<FixedFile>,
    /// The remaining findings, by file and position: those of the selected rules, those that prevent a file from being
    /// read, and all errors of rewritten documents. Positions refer to the fixed text.
    pub remaining: Vec<Diagnostic>,
    /// The names of files in which some fixes were not tried, because too many others conflict.
    pub incomplete: Vec<String>,
    /// The names of given files that do not look like a document of the language, and in which nothing was fixed.
    pub not_documents: Vec<String>,
    /// The findings whose safe fixes are left out, because a file would have more errors with them.
    pub rejected: Vec<Diagnostic>,
}

#[derive(Debug)]
pub struct FixedFile {
    pub before: Arc<SourceFile>,
    pub after: Arc<SourceFile>,
    /// The rule of each fixed finding.
    pub fixed_rules: Vec<&'static str>,
    /// Why the file was not written, if it should have been.
    pub write_error: Option<WriteError>,
}

impl FixReport {
    /// Whether any file should have been written but was not.
    pub fn any_not_written(&self) -> bool {
        self.fixed.iter().any(|file| file.write_error.is_some())
    }
}

/// Fixes the files of a request: scripts, skills, tests and templates. Each file is fixed separately, because the fixes
/// of a finding change only its own file.
/// Errors: as [`validate`](crate::validate::validate::validate), also if no file was checked. A file that cannot be
/// written is not an error; it is part of the report.
pub fn fix(request: &FixRequest, environment: &Environment) -> Result<FixReport, EngineError> {
    let prepared = PreparedValidation::of(&request.check, environment, false)?;
    let mut report = FixReport { remaining: prepared.diagnostics.clone(), ..FixReport::default() };
    let mut skipped_files = 0;
    let mut changed: Vec<(PathBuf, FixedFile)> = Vec::new();
    let results = on_threads(&prepared.found, |found| fix_file(found, &prepared, request.rules))?;
    for (found, result) in prepared.found.iter().zip(results) {
        match result {
            FileResult::Skipped => skipped_files += 1,
            FileResult::Other => report.files += 1,
            FileResult::Checked { remaining, fixed, incomplete, is_document, rejected } => {
                report.rejected.extend(rejected);
                report.files += 1;
                report.not_documents.extend((!is_document && fixed.is_none()).then(|| found.shown.clone()));
                report.incomplete.extend(incomplete.then(|| found.shown.clone()));
                report.remaining.extend(remaining);
                changed.extend(fixed.map(|fixed| (found.path.clone(), fixed)));
            }
        }
    }
    if report.files == 0 && report.remaining.is_empty() {
        return Err(nothing(&request.check, environment, skipped_files));
    }
    // The given files may not be all that use a template.
    let names =
        if request.check.paths.is_empty() { assigned_names(&prepared, &changed)? } else { AssignedNames::default() };
    changed.extend(fix_templates(&prepared, &names, request.rules, &mut report));
    changed.sort_by(|(_, a), (_, b)| a.before.name().cmp(b.before.name()));
    for (path, mut file) in changed {
        if request.write {
            file.write_error = replace_file(&path, file.before.text(), file.after.text()).err();
        }
        report.fixed.push(file);
    }
    sort(&mut report.remaining);
    Ok(report)
}

enum FileResult {
    Skipped,
    /// Not a document: a template, which is checked with the others of its project, or a configuration, which has no fixes.
    Other,
    Checked {
        remaining: Vec<Diagnostic>,
        fixed: Option<FixedFile>,
        incomplete: bool,
        is_document: bool,
        rejected: Vec<Diagnostic>,
    },
}

fn fix_file(found: &FoundFile, prepared: &PreparedValidation, rules: Rules) -> FileResult {
    let unfixable = |finding| FileResult::Checked {
        remaining: vec![finding],
        fixed: None,
        incomplete: false,
        is_document: true,
        rejected: Vec::new(),
    };
    if found.role != FileRole::Document {
        return absent(found).map_or(FileResult::Other, unfixable);
    }
    let file = match document(found, &prepared.own) {
        FileRead::Skipped(_) => return FileResult::Skipped,
        FileRead::Wrong(diagnostic) => return unfixable(*diagnostic),
        FileRead::Text(file) => file,
    };
    let is_document = is_document(file.text().as_bytes()) || prepared.own.contains(&found.resolved);
    let examine = |file: &Arc<SourceFile>| PassInput::of_document(file, prepared.findings(file, &found.resolved));
    let result = apply_fixes(examine(&file), rules, examine);
    let after = result.input.file;
    // A text that is not valid YAML may contain legacy forms that were not detected.
    let broken: Vec<&'static str> = match result.input.blocking_errors {
        0 => Vec::new(),
        _ => parse(&after).diagnostics.iter().map(|diagnostic| diagnostic.rule).collect(),
    };
    // After a whole document was rewritten, or while a file cannot be read, all of its errors are relevant.
    let is_rewritten = result.fixed_rules.iter().any(|rule| WHOLE_DOCUMENTS.contains(rule));
    let all_errors = is_rewritten || result.input.blocking_errors > 0;
    let mut remaining = result.input.findings;
    remaining.retain(|finding| {
        rules.concerns(finding) || broken.contains(&finding.rule) || all_errors && finding.is_error()
    });
    let fixed = (!result.fixed_rules.is_empty()).then(|| FixedFile {
        before: file,
        after,
        fixed_rules: result.fixed_rules,
        write_error: None,
    });
    FileResult::Checked { remaining, fixed, incomplete: result.incomplete, is_document, rejected: result.rejected }
}

/// The names that the documents assign after their fixes: a template may use them, so a name of an older engine among them is
/// not one of its own. Nothing without templates.
fn assigned_names(
    prepared: &PreparedValidation,
    changed: &[(PathBuf, FixedFile)],
) -> Result<AssignedNames, EngineError> {
    let mut all = AssignedNames::default();
    if !prepared.found.iter().any(|found| matches!(found.role, FileRole::Template { .. })) {
        return Ok(all);
    }
    let documents: Vec<&FoundFile> = prepared.found.iter().filter(|found| found.role == FileRole::Document).collect();
    let names = on_threads(&documents, |found| {
        if let Some((_, fixed)) = changed.iter().find(|(path, _)| *path == found.path) {
            return Some(prepared.assigned_names(&fixed.after, &found.resolved));
        }
        match document(found, &prepared.own) {
            FileRead::Text(file) => Some(prepared.assigned_names(&file, &found.resolved)),
            FileRead::Wrong(_) => Some((prepared.projects.of_file(&found.resolved).directory.clone(), None)),
            FileRead::Skipped(_) => None,
        }
    })?;
    for (project, names) in names.into_iter().flatten() {
        all.add(&project, names.as_deref());
    }
    Ok(all)
}

/// Fixes the templates. A template is checked together with the other templates of its project.
fn fix_templates(
    prepared: &PreparedValidation,
    assigned_names: &AssignedNames,
    rules: Rules,
    report: &mut FixReport,
) -> Vec<(PathBuf, FixedFile)> {
    let mut projects: BTreeMap<&Path, BTreeMap<&str, &Path>> = BTreeMap::new();
    for found in &prepared.found {
        if let FileRole::Template { project, .. } = &found.role {
            projects.entry(project).or_default().insert(&found.shown, &found.path);
        }
    }
    let mut fixed = Vec::new();
    for (project, files) in projects {
        let checked = prepared.projects.of_directory(project);
        let (levels, models) = (&checked.levels, checked.models.as_deref());
        let variables = assigned_names.of(project);
        let names = prepared.projects.names();
        let of = |found: Vec<Diagnostic>, name: &str| -> Vec<Diagnostic> {
            found.into_iter().filter(|diagnostic| diagnostic.file.name() == name).collect()
        };
        let all = templates::examine(project, names, variables, models, &|_| None);
        for (name, path) in files {
            let found = of(all.clone(), name);
            let Some(file) = found.first().map(|first| Arc::clone(&first.file)) else { continue };
            let input = |file: &Arc<SourceFile>, found| PassInput::of_template(file, levels.apply(allow(file, found)));
            let examine = |file: &Arc<SourceFile>| {
                let replacement = |other: &str| (other == name).then(|| file.text().to_owned());
                input(file, of(templates::examine(project, names, variables, models, &replacement), name))
            };
            let result = apply_fixes(input(&file, found), rules, examine);
            report.rejected.extend(result.rejected);
            report.remaining.extend(result.input.findings.into_iter().filter(|finding| rules.concerns(finding)));
            if !result.fixed_rules.is_empty() {
                let after = result.input.file;
                fixed.push((
                    path.to_owned(),
                    FixedFile { before: file, after, fixed_rules: result.fixed_rules, write_error: None },
                ));
            }
        }
    }
    fixed
}
