//! `validate`: everything that is wrong with scripts, skills, tests and templates, at once and in order.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::validate::cache::{CachedCheck, CheckCache};
use crate::validate::checked_project::{CheckedProject, wrong_scheme_of_script};
use crate::validate::checked_projects::CheckedProjects;
use crate::validate::read_file::{FileRead, absent, document};
use crate::validate::request::{ValidateReport, ValidateRequest};
use crate::validate::roots::{OwnFolders, nothing, roots};
use crate::validate::templates;
use crate::validate::threads::on_threads;
use bcc_check::allow::allow;
use bcc_check::check::examine;
use bcc_check::context::CheckContext;
use bcc_check::levels::{LevelError, RuleLevels};
use bcc_check::templates::deduplication::{confirmed, without_what_templates_tell};
use bcc_check::test::{examine_test, outline};
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{DiscoveredFiles, FileRole, FoundFile, here, walk};
use bcc_engine::discovery::written_path::{place, plain};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::project::given_directory;
use bcc_lang::script::read::{scheme as scheme_of, skill_paths, tested_script};
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::actions::{KINDS, project_kinds};
use bcc_runtime::program::kind::Kind;

/// Checks what is asked for. Faults of files are findings, whatever they are; the check of the rest goes on.
/// Errors: `Usage` when nothing was named and there is nothing usual to check, when there is no file to check in what was named, or
/// when the given project does not exist; `Failed` when threads cannot be started.
pub fn validate(request: &ValidateRequest, environment: &Environment) -> Result<ValidateReport, EngineError> {
    let report = validate_again(request, environment, None)?;
    // A pipeline that checks nothing, because a folder was renamed say, must not pass for ever.
    if report.files == 0 && report.diagnostics.is_empty() {
        return Err(nothing(request, environment, report.passed_over));
    }
    Ok(report)
}

/// [`validate`], which takes from `memory` what it found in scripts that are as they were, and leaves there what it finds. A
/// memory serves one request. That there is no file yet is no error: one may come.
pub fn validate_again(
    request: &ValidateRequest,
    environment: &Environment,
    memory: Option<&CheckCache>,
) -> Result<ValidateReport, EngineError> {
    let prepared = PreparedValidation::of(request, environment, memory.is_some())?;
    let mut diagnostics = prepared.diagnostics.clone();
    let check = Check { prepared: &prepared, memory };
    let results = on_threads(&prepared.found, |found| check.one(found))?;
    let mut files = 0;
    let mut passed_over = 0;
    let mut first_of: BTreeMap<PathBuf, Arc<SourceFile>> = BTreeMap::new();
    // What a project's documents give values to; none where one of them could not be read whole.
    let mut names_of: BTreeMap<PathBuf, Option<BTreeSet<String>>> = BTreeMap::new();
    for result in results {
        match result {
            Checked::PassedOver => passed_over += 1,
            Checked::Unread(diagnostic) => {
                files += 1;
                diagnostics.push(*diagnostic);
            }
            Checked::Document { file, home, findings, names } => {
                files += 1;
                let all = names_of.entry(home.clone()).or_insert_with(|| Some(BTreeSet::new()));
                match names {
                    Some(names) => all.iter_mut().for_each(|all| all.extend(names.iter().cloned())),
                    None => *all = None,
                }
                first_of.entry(home).or_insert(file);
                diagnostics.extend(findings);
            }
            Checked::Other => files += 1,
        }
    }
    // A few named files are not all that a template may serve.
    if !request.paths.is_empty() {
        names_of.clear();
    }
    check.templates(&names_of, &mut diagnostics);
    for home in prepared.homes.all() {
        of_home(&home, request.scheme.as_deref(), first_of.get(&home.directory), &mut diagnostics);
    }
    sort(&mut diagnostics);
    Ok(ValidateReport { files, passed_over, diagnostics })
}

fn rules(written: &[String]) -> Result<Vec<(String, String)>, EngineError> {
    let wrong = |error: LevelError| EngineError::usage(msg!("`--rule`: {error}")).with_help(error.help());
    let pair = |text: &String| RuleLevels::pair(text).map(|(slug, level)| (slug.to_owned(), level.to_owned()));
    let pairs: Vec<(String, String)> = written.iter().map(pair).collect::<Result<_, _>>().map_err(wrong)?;
    RuleLevels::parse(pairs.iter().map(|(slug, level)| (slug, level))).map_err(wrong)?;
    Ok(pairs)
}

enum Checked {
    PassedOver,
    Unread(Box<Diagnostic>),
    Document { file: Arc<SourceFile>, home: PathBuf, findings: Vec<Diagnostic>, names: Option<Arc<BTreeSet<String>>> },
    Other,
}

/// What of a request is known before any document is read: the files, and the projects that they belong to.
#[derive(Debug)]
pub struct PreparedValidation {
    /// The projects, each loaded when a file of it is looked at.
    pub homes: CheckedProjects,
    pub found: Vec<FoundFile>,
    /// In which folders no YAML file is another program's.
    pub own: OwnFolders,
    scheme: Option<String>,
    folders: BTreeSet<PathBuf>,
    pub diagnostics: Vec<Diagnostic>,
}

impl PreparedValidation {
    /// Looks for the files that are asked for; `stamped`: whether the projects are given stamps ([`CheckedProject::stamp`]).
    pub fn of(request: &ValidateRequest, environment: &Environment, stamped: bool) -> Result<Self, EngineError> {
        let rules = rules(&request.rules)?;
        let here = here()?;
        let names = PathNames::seen_from(here.clone());
        let given = given_directory(request.project.as_deref(), environment)?;
        let roots = roots(request, given.as_deref(), &here)?;
        let own = OwnFolders::of(request, given.as_deref(), &here);
        let DiscoveredFiles { found, folders, diagnostics } = walk(&roots, &names);
        let homes = CheckedProjects::new(given, names, rules).stamped(stamped);
        Ok(Self { homes, found, own, scheme: request.scheme.clone(), folders, diagnostics })
    }

    /// What is wrong with a text that stands, or is to stand, in the place of the document at `real`. Takes a deep stack:
    /// call it below [`on_threads`].
    pub fn findings(&self, file: &Arc<SourceFile>, real: &Path) -> Vec<Diagnostic> {
        let home = self.homes.of_file(real);
        Check { prepared: self, memory: None }.document(file, real, &home).findings
    }
}

struct Check<'c> {
    prepared: &'c PreparedValidation,
    memory: Option<&'c CheckCache>,
}

impl Check<'_> {
    fn one(&self, found: &FoundFile) -> Checked {
        match &found.role {
            FileRole::Document => {}
            // Checked together, when all are read.
            FileRole::Template { .. } => {
                return absent(found).map_or(Checked::Other, |absent| Checked::Unread(absent.into()));
            }
            FileRole::Configuration => {
                self.prepared.homes.of_directory(found.real.parent().unwrap_or(&found.real));
                return absent(found).map_or(Checked::Other, |absent| Checked::Unread(absent.into()));
            }
        }
        match document(found, &self.prepared.own) {
            FileRead::PassedOver => Checked::PassedOver,
            FileRead::Wrong(diagnostic) => Checked::Unread(diagnostic),
            FileRead::Text(file) => {
                let home = self.prepared.homes.of_file(&found.real);
                let CachedCheck { findings, names, .. } = self.remembered(found, &file, &home);
                Checked::Document { file, home: home.directory.clone(), findings, names }
            }
        }
    }

    /// What is wrong with a document, from memory where nothing changed.
    fn remembered(&self, found: &FoundFile, file: &Arc<SourceFile>, home: &CheckedProject) -> CachedCheck {
        let Some((memory, stamp)) = self.memory.zip(home.stamp()) else {
            return self.document(file, &found.real, home);
        };
        if let Some(known) = memory.recall(&found.real, file, stamp) {
            // What is wrong with the templates themselves is told by the project, for each scheme that is used.
            home.scheme(known.scheme.as_deref());
            return known;
        }
        let checking = self.document(file, &found.real, home);
        memory.keep(&found.real, file, stamp, &checking);
        checking
    }

    /// What is wrong with a document, the scheme that it was checked against, and the names that it gives values to.
    fn document(&self, file: &Arc<SourceFile>, real: &Path, home: &CheckedProject) -> CachedCheck {
        let parsed = parse(file);
        let written = parsed.root.as_deref().filter(|_| self.prepared.scheme.is_none()).and_then(scheme_of);
        let asked = self.prepared.scheme.as_deref().or_else(|| written.as_ref().map(|written| written.value.as_str()));
        let asked = asked.or(home.config.project.scheme.as_deref());
        let scheme = home.scheme(asked);
        let (mut findings, mut names, mut named) = (Vec::new(), None, Vec::new());
        if let (Some((message, help)), Some(written)) = (&scheme.missing, &written) {
            findings.push(wrong_scheme_of_script(message, help, file, written));
        }
        if let Some(templates) = &scheme.templates {
            let templates = Arc::clone(templates);
            let paths = parsed.root.as_deref().map(skill_paths).unwrap_or_default();
            named.extend(paths.iter().flat_map(|path| named_files(path, real, home)));
            let own = (!paths.is_empty()).then(|| home.library_with(paths.into_iter(), real));
            let library = own.as_ref().unwrap_or_else(|| home.library());
            let models = home.models.as_deref();
            let own = project_kinds(&home.kinds);
            let kinds: Vec<&dyn Kind> = KINDS.iter().copied().chain(own.iter().map(AsRef::as_ref)).collect();
            let (kinds, custom, reply_schemas) = (kinds.as_slice(), &home.kinds, &home.reply_schemas);
            let against = CheckContext { kinds, custom, templates, reply_schemas, library, models };
            if let Some(root) = parsed.root.as_deref()
                && let Some(script) = tested_script(root)
            {
                named.extend(named_files(script, real, home));
                let tested = home.tested(script, real, |file, root| outline(file, root, &against));
                findings.extend(examine_test(file, root, &tested));
            }
            let examined = examine(file, parsed, &against);
            findings.extend(examined.diagnostics);
            names = examined.names.map(Arc::new);
        }
        let findings = home.levels.apply(allow(file, findings));
        CachedCheck { findings, scheme: asked.map(str::to_owned), names, named }
    }

    /// What is wrong with the templates that were found, and with the reply schemas beside them. A fault of a template is told
    /// there, and not again at each script that takes it.
    fn templates(&self, names_of: &BTreeMap<PathBuf, Option<BTreeSet<String>>>, diagnostics: &mut Vec<Diagnostic>) {
        let mut projects: BTreeMap<&Path, BTreeSet<&str>> = BTreeMap::new();
        let homes = &self.prepared.homes;
        for found in &self.prepared.found {
            if let FileRole::Template { project, scheme } = &found.role {
                projects.entry(project).or_default().insert(&found.shown);
                // So that what cannot be read of it is told.
                homes.of_directory(project).scheme(scheme.as_deref());
            }
        }
        for (project, asked) in projects {
            let home = homes.of_directory(project);
            let variables = names_of.get(project).and_then(Option::as_ref);
            let in_system = |name: &str| Path::new(name).components().any(|part| part.as_os_str() == "_system");
            let mut by_file: BTreeMap<String, Vec<Diagnostic>> = BTreeMap::new();
            for diagnostic in templates::examine(project, homes.names(), variables, &|_| None) {
                let name = diagnostic.file.name();
                let told = |known: &Diagnostic| known.rule == diagnostic.rule && known.file.name() == name;
                // A file that no look-up finds is in no folder of templates, and was not found as one.
                let stray = || {
                    diagnostic.rule == "unused-template"
                        && homes.names().folder(name).is_some_and(|folder| self.prepared.folders.contains(&folder))
                };
                let wanted = asked.contains(name) || !in_system(name) || stray();
                if wanted && !home.diagnostics.iter().any(told) {
                    by_file.entry(name.to_owned()).or_default().push(diagnostic);
                }
            }
            for found in by_file.into_values() {
                let Some(file) = found.first().map(|first| Arc::clone(&first.file)) else { continue };
                let found = confirmed(found, diagnostics);
                *diagnostics = without_what_templates_tell(std::mem::take(diagnostics), &found);
                diagnostics.extend(home.levels.apply(allow(&file, found)));
            }
        }
    }
}

/// The file that a document at `real` names by this path, as far as its findings may depend on it; both ends of a link.
fn named_files(path: &str, real: &Path, home: &CheckedProject) -> impl Iterator<Item = PathBuf> {
    let resolved = place(path, real).ok();
    let written = resolved.is_some().then(|| plain(&real.parent().unwrap_or(real).join(path)));
    resolved.into_iter().chain(written).filter(|file| home.may_hold(file))
}

fn of_home(
    home: &CheckedProject,
    asked: Option<&str>,
    first: Option<&Arc<SourceFile>>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    diagnostics.extend(home.diagnostics.iter().cloned());
    let mut told = BTreeSet::new();
    for diagnostic in home.schemes().iter().flat_map(|scheme| &scheme.diagnostics) {
        // Several schemes stand before the same default templates.
        if told.insert((diagnostic.file.name().to_owned(), diagnostic.message.clone())) {
            diagnostics.push(diagnostic.clone());
        }
    }
    let missing = |scheme: Option<&str>| scheme.and_then(|scheme| home.scheme(Some(scheme)).missing.clone());
    if let (Some(first), Some((message, help))) = (first, missing(asked)) {
        let message = msg!("{message}, which is specified with `--scheme`");
        diagnostics.push(Diagnostic::error("unknown-scheme", message, first, Span::default()).with_help(help));
    }
    if let Some((message, help)) = missing(home.config.project.scheme.as_deref().filter(|_| asked.is_none())) {
        diagnostics.extend(home.wrong_scheme_of_config(message, help));
    }
}
