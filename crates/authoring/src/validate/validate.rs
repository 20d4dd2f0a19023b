//! `validate`: checks scripts, skills, tests and templates, and reports all findings in order.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::validate::cache::{CachedCheck, CheckCache};
use crate::validate::checked_project::{CheckedProject, wrong_scheme_of_script};
use crate::validate::checked_projects::CheckedProjects;
use crate::validate::needs::{unmet_needs, written_programs};
use crate::validate::read_file::{FileRead, absent, document};
use crate::validate::request::{ValidateReport, ValidateRequest};
use crate::validate::roots::{OwnFolders, nothing, roots};
use crate::validate::services::NeededServices;
use crate::validate::templates;
use crate::validate::threads::on_threads;
use bcc_check::allow::allow;
use bcc_check::check::examine;
use bcc_check::context::CheckContext;
use bcc_check::levels::{LevelError, RuleLevels};
use bcc_check::templates::deduplication::{confirmed, joined, without_template_duplicates};
use bcc_check::test::{examine_test, outline};
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{DiscoveredFiles, FileRole, FoundFile, current_directory, walk};
use bcc_engine::discovery::written_path::resolve;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::files::TemplateFolders;
use bcc_engine::files::within::normalize;
use bcc_engine::project::given_directory;
use bcc_lang::script::read::{scheme as scheme_of, skill_paths, tested_script};
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::{Diagnostic, sort};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::layers::scheme_of_language;
use bcc_runtime::actions::{KINDS, project_kinds};
use bcc_runtime::program::kind::Kind;

/// Checks the requested files. Problems of files are findings, and other files are still checked.
/// Errors: `Usage` if there is no file to check, or if the given project does not exist; `Failed` if threads cannot be started.
pub fn validate(request: &ValidateRequest, environment: &Environment) -> Result<ValidateReport, EngineError> {
    let report = validate_again(request, environment, None)?;
    // A pipeline that checks nothing, for example because a folder was renamed, must fail.
    if report.files == 0 && report.diagnostics.is_empty() {
        return Err(nothing(request, environment, report.skipped_files));
    }
    Ok(report)
}

/// [`validate`] with a cache: reuses and stores the findings of unchanged scripts. A cache belongs to one request.
/// Having no files is not an error, because one may be added later.
pub fn validate_again(
    request: &ValidateRequest,
    environment: &Environment,
    cache: Option<&CheckCache>,
) -> Result<ValidateReport, EngineError> {
    let prepared = PreparedValidation::of(request, environment, cache.is_some())?;
    let mut diagnostics = prepared.diagnostics.clone();
    let check = Check { prepared: &prepared, cache };
    let results = on_threads(&prepared.found, |found| check.one(found))?;
    let mut files = 0;
    let mut skipped_files = 0;
    let mut needed = Vec::new();
    let mut first_files: BTreeMap<PathBuf, Arc<SourceFile>> = BTreeMap::new();
    let mut assigned_names = AssignedNames::default();
    for result in results {
        match result {
            Checked::Skipped => skipped_files += 1,
            Checked::Unread(diagnostic) => {
                files += 1;
                diagnostics.push(*diagnostic);
            }
            Checked::Document { file, project, findings, names, services } => {
                files += 1;
                needed.extend(services.map(|services| *services));
                assigned_names.add(&project, names.as_deref());
                first_files.entry(project).or_insert(file);
                diagnostics.extend(findings);
            }
            Checked::Other => files += 1,
        }
    }
    // The given files may not be all that use a template.
    if !request.paths.is_empty() {
        assigned_names = AssignedNames::default();
    }
    check.templates(&assigned_names, &mut diagnostics);
    for project in prepared.projects.all() {
        project_findings(&project, request.scheme.as_deref(), first_files.get(&project.directory), &mut diagnostics);
    }
    sort(&mut diagnostics);
    Ok(ValidateReport { files, skipped_files, diagnostics: joined(diagnostics), services: needed })
}

fn rules(written: &[String]) -> Result<Vec<(String, String)>, EngineError> {
    let wrong = |error: LevelError| EngineError::usage(msg!("`--rule`: {error}")).with_help(error.help());
    let pair = |text: &String| RuleLevels::pair(text).map(|(slug, level)| (slug.to_owned(), level.to_owned()));
    let pairs: Vec<(String, String)> = written.iter().map(pair).collect::<Result<_, _>>().map_err(wrong)?;
    RuleLevels::parse(pairs.iter().map(|(slug, level)| (slug, level))).map_err(wrong)?;
    Ok(pairs)
}

/// The names that the documents of each project assign. Unknown if a document could not be read completely.
#[derive(Debug, Default)]
pub(crate) struct AssignedNames(BTreeMap<PathBuf, Option<BTreeSet<String>>>);

impl AssignedNames {
    pub(crate) fn add(&mut self, project: &Path, names: Option<&BTreeSet<String>>) {
        let all = self.0.entry(project.to_owned()).or_insert_with(|| Some(BTreeSet::new()));
        match names {
            Some(names) => all.iter_mut().for_each(|all| all.extend(names.iter().cloned())),
            None => *all = None,
        }
    }

    pub(crate) fn of(&self, project: &Path) -> Option<&BTreeSet<String>> {
        self.0.get(project).and_then(Option::as_ref)
    }
}

enum Checked {
    Skipped,
    Unread(Box<Diagnostic>),
    Document {
        file: Arc<SourceFile>,
        project: PathBuf,
        findings: Vec<Diagnostic>,
        names: Option<Arc<BTreeSet<String>>>,
        services: Option<Box<NeededServices>>,
    },
    Other,
}

/// What is known of a request before any document is read: the files and their projects.
pub(crate) struct PreparedValidation {
    /// The projects, each loaded on first use.
    pub projects: CheckedProjects,
    pub found: Vec<FoundFile>,
    /// The folders that contain only documents of the language.
    pub own: OwnFolders,
    scheme: Option<String>,
    folders: BTreeSet<PathBuf>,
    /// Where kernels are installed depends on it.
    environment: Environment,
    pub diagnostics: Vec<Diagnostic>,
}

impl PreparedValidation {
    /// Finds the requested files. `stamped`: whether projects get stamps ([`CheckedProject::stamp`]).
    pub(crate) fn of(request: &ValidateRequest, environment: &Environment, stamped: bool) -> Result<Self, EngineError> {
        let rules = rules(&request.rules)?;
        let here = current_directory()?;
        let names = PathNames::relative_to(request.named_from.as_ref().unwrap_or(&here).clone());
        let given = given_directory(request.project.as_deref(), environment)?;
        let roots = roots(request, given.as_deref(), &here)?;
        let own = OwnFolders::of(request, given.as_deref(), &here);
        let DiscoveredFiles { found, folders, diagnostics } = walk(&roots, &names);
        let projects = CheckedProjects::new(given, names, rules).stamped(stamped);
        let environment = environment.clone();
        Ok(Self { projects, found, own, scheme: request.scheme.clone(), folders, environment, diagnostics })
    }

    /// The findings for a text at the path `real`, whether it is stored there or not. Needs a deep stack: call it
    /// inside [`on_threads`].
    pub(crate) fn findings(&self, file: &Arc<SourceFile>, real: &Path) -> Vec<Diagnostic> {
        self.checked(file, real, &self.projects.of_file(real)).findings
    }

    /// The names that a text at the path `real` assigns, and its project; `None` if it could not be read completely. Like
    /// [`findings`](Self::findings), it needs a deep stack.
    pub(crate) fn assigned_names(
        &self,
        file: &Arc<SourceFile>,
        real: &Path,
    ) -> (PathBuf, Option<Arc<BTreeSet<String>>>) {
        let project = self.projects.of_file(real);
        (project.directory.clone(), self.checked(file, real, &project).names)
    }

    fn checked(&self, file: &Arc<SourceFile>, real: &Path, project: &CheckedProject) -> CachedCheck {
        Check { prepared: self, cache: None }.document(file, real, project)
    }
}

struct Check<'c> {
    prepared: &'c PreparedValidation,
    cache: Option<&'c CheckCache>,
}

impl Check<'_> {
    fn one(&self, found: &FoundFile) -> Checked {
        match &found.role {
            FileRole::Document => {}
            // Templates are checked together after all documents.
            FileRole::Template { .. } => {
                return absent(found).map_or(Checked::Other, |absent| Checked::Unread(absent.into()));
            }
            FileRole::Configuration => {
                self.prepared.projects.of_directory(found.resolved.parent().unwrap_or(&found.resolved));
                return absent(found).map_or(Checked::Other, |absent| Checked::Unread(absent.into()));
            }
        }
        match document(found, &self.prepared.own) {
            FileRead::Skipped(_) => Checked::Skipped,
            FileRead::Wrong(diagnostic) => Checked::Unread(diagnostic),
            FileRead::Text(file) => {
                let project = self.prepared.projects.of_file(&found.resolved);
                let CachedCheck { findings, names, services, .. } = self.remembered(found, &file, &project);
                let services = services.map(Box::new);
                Checked::Document { file, project: project.directory.clone(), findings, names, services }
            }
        }
    }

    /// The findings of a document, from the cache if nothing changed.
    fn remembered(&self, found: &FoundFile, file: &Arc<SourceFile>, project: &CheckedProject) -> CachedCheck {
        let Some((cache, stamp)) = self.cache.zip(project.stamp()) else {
            return self.document(file, &found.resolved, project);
        };
        if let Some(known) = cache.recall(&found.resolved, file, stamp) {
            // The findings of templates are reported by the project for each used scheme, so load the scheme.
            project.scheme(known.scheme.as_deref());
            return known;
        }
        let check = self.document(file, &found.resolved, project);
        cache.store(&found.resolved, file, stamp, &check);
        check
    }

    /// The findings of a document, the scheme that it was checked against, and the names that it assigns.
    fn document(&self, file: &Arc<SourceFile>, real: &Path, project: &CheckedProject) -> CachedCheck {
        let parsed = parse(file);
        let written = parsed.root.as_deref().filter(|_| self.prepared.scheme.is_none()).and_then(scheme_of);
        let asked = self.prepared.scheme.as_deref().or_else(|| written.as_ref().map(|written| written.value.as_str()));
        let asked = asked.or(project.config.project.scheme.as_deref());
        let asked =
            asked.or_else(|| scheme_of_language(&TemplateFolders::of(&project.directory), parsed.root.as_deref()));
        let scheme = project.scheme(asked);
        let (mut findings, mut names, mut named, mut services) = (Vec::new(), None, Vec::new(), None);
        if let (Some((message, help)), Some(written)) = (&scheme.missing, &written) {
            findings.push(wrong_scheme_of_script(message, help, file, written));
        }
        if let Some(templates) = &scheme.templates {
            let templates = Arc::clone(templates);
            let paths = parsed.root.as_deref().map(skill_paths).unwrap_or_default();
            named.extend(paths.iter().flat_map(|path| named_files(path, real, project)));
            let own = (!paths.is_empty()).then(|| project.library_with(paths.into_iter(), real));
            let library = own.as_ref().unwrap_or_else(|| project.library());
            let models = project.models.as_deref();
            let own = project_kinds(&project.kinds);
            let kinds: Vec<&dyn Kind> = KINDS.iter().copied().chain(own.iter().map(AsRef::as_ref)).collect();
            let (kinds, custom, reply_schemas) = (kinds.as_slice(), &project.kinds, &project.reply_schemas);
            let context = CheckContext { kinds, custom, templates, reply_schemas, library, models };
            if let Some(root) = parsed.root.as_deref()
                && let Some(script) = tested_script(root)
            {
                named.extend(named_files(script, real, project));
                let tested = project.tested(script, real, |file, root| outline(file, root, &context));
                findings.extend(examine_test(file, root, &tested));
            }
            let examined = examine(file, parsed, &context);
            findings.extend(examined.diagnostics);
            // What a configuration with errors permits and names is unknown.
            if project.is_configuration_known {
                findings.extend(unmet_needs(file, &examined.needs, &project.config, &self.prepared.environment));
                findings.extend(written_programs(file, &project.config, &project.directory));
                services = NeededServices::of(file, &examined.needs, project);
            }
            names = examined.names.map(Arc::new);
        }
        let findings = project.levels.apply(allow(file, findings));
        CachedCheck { findings, scheme: asked.map(str::to_owned), names, named, services }
    }

    /// Checks the found templates and the reply schemas. A problem of a template is reported there, and not again for
    /// each script that uses it.
    fn templates(&self, assigned_names: &AssignedNames, diagnostics: &mut Vec<Diagnostic>) {
        let mut by_project: BTreeMap<&Path, BTreeSet<&str>> = BTreeMap::new();
        let projects = &self.prepared.projects;
        for found in &self.prepared.found {
            if let FileRole::Template { project, scheme } = &found.role {
                by_project.entry(project).or_default().insert(&found.shown);
                // Load the scheme, so that unreadable files are reported.
                projects.of_directory(project).scheme(scheme.as_deref());
            }
        }
        for (project, asked) in by_project {
            let checked_project = projects.of_directory(project);
            let variables = assigned_names.of(project);
            let in_system = |name: &str| Path::new(name).components().any(|part| part.as_os_str() == "_system");
            let mut by_file: BTreeMap<String, Vec<Diagnostic>> = BTreeMap::new();
            let models = checked_project.models.as_deref();
            for diagnostic in templates::examine(project, projects.names(), variables, models, &|_| None) {
                let name = diagnostic.file.name();
                let is_reported = |known: &Diagnostic| known.rule == diagnostic.rule && known.file.name() == name;
                // A file that no lookup finds is in no template folder, so it was not found as a template.
                let stray = || {
                    diagnostic.rule == "unused-template"
                        && projects.names().folder(name).is_some_and(|folder| self.prepared.folders.contains(&folder))
                };
                let wanted = asked.contains(name) || !in_system(name) || stray();
                if wanted && !checked_project.diagnostics.iter().any(is_reported) {
                    by_file.entry(name.to_owned()).or_default().push(diagnostic);
                }
            }
            for found in by_file.into_values() {
                let Some(file) = found.first().map(|first| Arc::clone(&first.file)) else { continue };
                let found = confirmed(found, diagnostics);
                *diagnostics = without_template_duplicates(std::mem::take(diagnostics), &found);
                diagnostics.extend(checked_project.levels.apply(allow(&file, found)));
            }
        }
    }
}

/// The files that the path in a document at `real` refers to, if its findings may depend on them; both ends of a link.
fn named_files(path: &str, real: &Path, project: &CheckedProject) -> impl Iterator<Item = PathBuf> {
    let resolved = resolve(path, real).ok();
    let written = resolved.is_some().then(|| normalize(&real.parent().unwrap_or(real).join(path)));
    resolved.into_iter().chain(written).filter(|file| project.may_hold(file))
}

fn project_findings(
    project: &CheckedProject,
    asked: Option<&str>,
    first: Option<&Arc<SourceFile>>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    diagnostics.extend(project.diagnostics.iter().cloned());
    let mut seen = BTreeSet::new();
    for diagnostic in project.schemes().iter().flat_map(|scheme| &scheme.diagnostics) {
        // Several schemes share the same default templates.
        if seen.insert((diagnostic.file.name().to_owned(), diagnostic.message.clone())) {
            diagnostics.push(diagnostic.clone());
        }
    }
    let missing = |scheme: Option<&str>| scheme.and_then(|scheme| project.scheme(Some(scheme)).missing.clone());
    if let (Some(first), Some((message, help))) = (first, missing(asked)) {
        let message = msg!("{message}, which is specified with `--scheme`");
        diagnostics.push(Diagnostic::error("unknown-scheme", message, first, Span::default()).with_help(help));
    }
    if let Some((message, help)) = missing(project.config.project.scheme.as_deref().filter(|_| asked.is_none())) {
        diagnostics.extend(project.wrong_scheme_of_config(message, help));
    }
}
