//! `validate --fix` and `migrate`: the texts of a request, mended one by one, and written where that is asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fix::fix_text::{PassInput, passes};
use crate::fix::rules::{Rules, WHOLE_DOCUMENTS};
use crate::fix::write_back::{WriteOutcome, put};
use crate::validate::read_file::{FileRead, absent, document};
use crate::validate::request::ValidateRequest;
use crate::validate::roots::nothing;
use crate::validate::templates;
use crate::validate::threads::on_threads;
use crate::validate::validate::PreparedValidation;
use bcc_check::allow::allow;
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
    /// Whether the texts are written. If not, files stay as they are.
    pub write: bool,
}

#[derive(Debug)]
pub struct FixReport {
    pub files: usize,
    /// Those whose texts are others now, by their names; with [`FixRequest::write`] they were written, but for what was kept.
    pub mended: Vec<FixedFile>,
    /// What of the wanted rules is left, what keeps files from being read, and every error of a file that was written anew as a
    /// whole, by file and place. The places are those of the mended texts.
    pub left: Vec<Diagnostic>,
    /// The names of files in which fixes were not even tried, because too many others do not go together.
    pub cut: Vec<String>,
}

#[derive(Debug)]
pub struct FixedFile {
    pub before: Arc<SourceFile>,
    pub after: Arc<SourceFile>,
    /// The rule of each finding that was mended.
    pub made: Vec<&'static str>,
    /// Why it was not written, where it was to be.
    pub kept: Option<WriteOutcome>,
}

impl FixReport {
    /// Whether a file should have been written and was not.
    pub fn kept_any(&self) -> bool {
        self.mended.iter().any(|file| file.kept.is_some())
    }
}

/// Mends the texts of the files of a request: scripts, skills, tests and templates. Each is mended by itself: the fixes of a
/// finding are about its own file.
/// Errors: as those of [`validate`](crate::validate::validate::validate), also where no file was looked at. That one cannot be
/// written is none: the report tells it.
pub fn mend(request: &FixRequest, environment: &Environment) -> Result<FixReport, EngineError> {
    let prepared = PreparedValidation::of(&request.check, environment, false)?;
    let mut report = FixReport { files: 0, mended: Vec::new(), left: prepared.diagnostics.clone(), cut: Vec::new() };
    let mut passed_over = 0;
    let mut changed: Vec<(PathBuf, FixedFile)> = Vec::new();
    for (found, one) in
        prepared.found.iter().zip(on_threads(&prepared.found, |found| one(found, &prepared, request.rules))?)
    {
        match one {
            One::PassedOver => passed_over += 1,
            One::Other => report.files += 1,
            One::Looked { left, mended, cut } => {
                report.files += 1;
                report.cut.extend(cut.then(|| found.shown.clone()));
                report.left.extend(left);
                changed.extend(mended.map(|mended| (found.path.clone(), mended)));
            }
        }
    }
    if report.files == 0 && report.left.is_empty() {
        return Err(nothing(&request.check, environment, passed_over));
    }
    changed.extend(of_templates(&prepared, request.rules, &mut report.left));
    changed.sort_by(|(_, a), (_, b)| a.before.name().cmp(b.before.name()));
    for (path, mut file) in changed {
        if request.write {
            file.kept = put(&path, file.before.text(), file.after.text()).err();
        }
        report.mended.push(file);
    }
    sort(&mut report.left);
    Ok(report)
}

enum One {
    PassedOver,
    /// No document: a template, which is looked at with the others of its project, or a configuration, which has no fixes.
    Other,
    Looked {
        left: Vec<Diagnostic>,
        mended: Option<FixedFile>,
        cut: bool,
    },
}

fn one(found: &FoundFile, prepared: &PreparedValidation, rules: Rules) -> One {
    if found.role != FileRole::Document {
        return absent(found).map_or(One::Other, |absent| One::Looked { left: vec![absent], mended: None, cut: false });
    }
    let file = match document(found, &prepared.own) {
        FileRead::PassedOver => return One::PassedOver,
        FileRead::Wrong(diagnostic) => return One::Looked { left: vec![*diagnostic], mended: None, cut: false },
        FileRead::Text(file) => file,
    };
    let look = |file: &Arc<SourceFile>| PassInput::of_document(file, prepared.findings(file, &found.real));
    let passed = passes(look(&file), rules, look);
    let after = passed.look.file;
    // A text that YAML cannot read may hold older forms that nobody sees.
    let broken: Vec<&'static str> = match passed.look.unread {
        0 => Vec::new(),
        _ => parse(&after).diagnostics.iter().map(|diagnostic| diagnostic.rule).collect(),
    };
    // Whoever had a whole document written anew wants to know what is still wrong with it, and so does whoever has a file of
    // which nothing could be said.
    let anew = passed.made.iter().any(|rule| WHOLE_DOCUMENTS.contains(rule)) || passed.look.unread > 0;
    let mut left = passed.look.findings;
    left.retain(|finding| rules.have(finding.rule) || broken.contains(&finding.rule) || anew && finding.is_error());
    let mended = (!passed.made.is_empty()).then(|| FixedFile { before: file, after, made: passed.made, kept: None });
    One::Looked { left, mended, cut: passed.cut }
}

/// The templates that can be mended. What is wrong with a template shows only beside the others of its project.
fn of_templates(prepared: &PreparedValidation, rules: Rules, left: &mut Vec<Diagnostic>) -> Vec<(PathBuf, FixedFile)> {
    let mut projects: BTreeMap<&Path, BTreeMap<&str, &Path>> = BTreeMap::new();
    for found in &prepared.found {
        if let FileRole::Template { project, .. } = &found.role {
            projects.entry(project).or_default().insert(&found.shown, &found.path);
        }
    }
    let mut mended = Vec::new();
    for (project, asked) in projects {
        let levels = &prepared.homes.of_directory(project).levels;
        let names = prepared.homes.names();
        let of = |found: Vec<Diagnostic>, name: &str| -> Vec<Diagnostic> {
            found.into_iter().filter(|diagnostic| diagnostic.file.name() == name).collect()
        };
        let all = templates::examine(project, names, None, &|_| None);
        for (name, path) in asked {
            let found = of(all.clone(), name);
            let Some(file) = found.first().map(|first| Arc::clone(&first.file)) else { continue };
            let told = |file: &Arc<SourceFile>, found| PassInput::of_template(file, levels.apply(allow(file, found)));
            let look = |file: &Arc<SourceFile>| {
                let instead = |other: &str| (other == name).then(|| file.text().to_owned());
                told(file, of(templates::examine(project, names, None, &instead), name))
            };
            let passed = passes(told(&file, found), rules, look);
            left.extend(passed.look.findings.into_iter().filter(|finding| rules.have(finding.rule)));
            if !passed.made.is_empty() {
                let after = passed.look.file;
                mended.push((path.to_owned(), FixedFile { before: file, after, made: passed.made, kept: None }));
            }
        }
    }
    mended
}
