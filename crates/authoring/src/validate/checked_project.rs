//! A project that files are checked against: its configuration, reply schemas and the templates of each scheme, read
//! once, with their findings. Errors here do not prevent other checks.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

use crate::validate::configuration::{BROKEN, KnownConfiguration, configuration, levels};
use crate::validate::read_file::read_failure;
use crate::validate::tested_scripts::TestedScripts;
use bcc_check::document_paths::DocumentPathError;
use bcc_check::levels::RuleLevels;
use bcc_check::library::SkillLibrary;
use bcc_check::secrets::secrets;
use bcc_check::test::{ScriptOutline, TestedScript};
use bcc_engine::config::config::{Config, value_span as place_in};
use bcc_engine::config::kinds::kinds;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::skills;
use bcc_engine::discovery::walk::{boundary, unreadable};
use bcc_engine::discovery::written_path::resolve;
use bcc_engine::files::within::normalize;
use bcc_engine::files::{TemplateFolders, reply_schema_files};
use bcc_engine::pin::builtin_reply_schemas;
use bcc_engine::project::{absolute, is_marked};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::layers::{TemplateFile, TemplateFolder, TemplateSource, collect};
use bcc_lang::template::templates::Templates;
use bcc_runtime::program::custom::CustomKind;

#[derive(Debug)]
pub(crate) struct CheckedProject {
    /// The directory, absolute.
    pub directory: PathBuf,
    /// Its configuration; the default one if there is none or it cannot be read.
    pub config: Config,
    /// The names of its models; `None` if they are not known.
    pub models: Option<Vec<String>>,
    /// Whether `config` is what is written, apart from levels of rules.
    pub is_configuration_known: bool,
    pub kinds: BTreeMap<String, CustomKind>,
    /// The reply schemas of this release, overridden by those of the project.
    pub reply_schemas: BTreeMap<String, Value>,
    pub diagnostics: Vec<Diagnostic>,
    /// The rule levels of the configuration and the command line.
    pub levels: RuleLevels,
    /// The configuration file, if it is valid text.
    config_file: Option<Arc<SourceFile>>,
    names: PathNames,
    stamp: Option<u64>,
    library: OnceLock<SkillLibrary>,
    tested: TestedScripts,
    schemes: Mutex<HashMap<Option<String>, Arc<Scheme>>>,
}

/// The templates that scripts of one scheme are checked against.
#[derive(Debug)]
pub struct Scheme {
    /// The compiled templates; `None` if they cannot be used.
    pub templates: Option<Arc<Templates>>,
    /// Their texts, in lookup order.
    pub files: Vec<TemplateFile>,
    pub diagnostics: Vec<Diagnostic>,
    /// Why there is no such scheme, and the help text; `templates` are then those of the default scheme.
    pub missing: Option<(Message, Message)>,
}

impl CheckedProject {
    /// The project in `directory`. `rules` are applied after those of its configuration; `stamp` was computed before.
    pub(crate) fn of(directory: PathBuf, names: &PathNames, rules: &[(String, String)], stamp: Option<u64>) -> Self {
        let mut diagnostics = Vec::new();
        let known = configuration(&directory, names, &mut diagnostics);
        let KnownConfiguration { config, file: config_file, models, is_complete: is_configuration_known } = known;
        let kinds = kinds(&config);
        let reply_schemas = schemas(&directory, names, &mut diagnostics);
        let levels = levels(&config, rules);
        let mut keys: Vec<Diagnostic> = config_file.iter().flat_map(secrets).collect();
        // The errors of these lines already say that a key is not allowed there.
        let line = |found: &Diagnostic| found.file.line(found.span.start);
        let reported_lines: Vec<usize> =
            diagnostics.iter().filter(|finding| finding.rule == BROKEN).map(line).collect();
        keys.retain(|key| !reported_lines.contains(&line(key)));
        diagnostics.extend(levels.apply(keys));
        let (names, library, schemes) = (names.clone(), OnceLock::new(), Mutex::default());
        let tested = TestedScripts::default();
        Self {
            directory,
            config,
            models,
            is_configuration_known,
            kinds,
            reply_schemas,
            diagnostics,
            levels,
            config_file,
            names,
            stamp,
            library,
            tested,
            schemes,
        }
    }

    /// The templates of a scheme; `None` is the default one.
    pub(crate) fn scheme(&self, scheme: Option<&str>) -> Arc<Scheme> {
        // The lock is held while loading, so that each scheme is loaded once.
        let mut schemes = self.schemes.lock().unwrap_or_else(PoisonError::into_inner);
        let made = schemes.entry(scheme.map(str::to_owned)).or_insert_with(|| Arc::new(self.load(scheme)));
        Arc::clone(made)
    }

    /// The hash of everything that its scripts depend on ([`stamp`](crate::validate::cache::stamp)), computed before
    /// any of it was read; `None` without a cache.
    pub(crate) fn stamp(&self) -> Option<u64> {
        self.stamp
    }

    /// Whether its documents may refer to this file, whose path is absolute.
    pub(crate) fn may_hold(&self, file: &Path) -> bool {
        // Without a project marker, the directory is just the folder of a document, and other files may be next to it.
        !is_marked(&self.directory) || file.starts_with(absolute(&self.directory))
    }

    /// Whether no link on the path `written` in the document at `document` leads out of the project to `real`. Without a project
    /// marker, a path may lead anywhere as it is written.
    fn is_inside(&self, real: &Path, document: &Path, written: &str) -> bool {
        let folder = document.parent().unwrap_or(document);
        is_marked(&self.directory) || real.starts_with(boundary(folder)) || normalize(&folder.join(written)) == real
    }

    pub(crate) fn library(&self) -> &SkillLibrary {
        self.library.get_or_init(|| skills::library(&self.directory, &self.names))
    }

    /// Its skills, after those that the script at `real` names by these paths.
    pub(crate) fn library_with<'p>(&self, paths: impl Iterator<Item = &'p str>, real: &Path) -> SkillLibrary {
        skills::with_paths(self.library(), paths, (real, &self.directory), &self.names)
    }

    /// The script that the test at `test` names by this path ([`TestedScripts::get`]).
    pub(crate) fn tested(
        &self,
        path: &str,
        test: &Path,
        outline: impl FnOnce(&Arc<SourceFile>, &YamlNode) -> Option<ScriptOutline>,
    ) -> TestedScript {
        match resolve(path, test) {
            Ok(real) if self.may_hold(&real) && self.is_inside(&real, test, path) => {
                self.tested.get(&real, &self.names, outline)
            }
            Ok(_) => TestedScript::Unusable(DocumentPathError::Outside),
            Err(error) => TestedScript::Unusable(error),
        }
    }

    pub(crate) fn schemes(&self) -> Vec<Arc<Scheme>> {
        self.schemes.lock().unwrap_or_else(PoisonError::into_inner).values().map(Arc::clone).collect()
    }

    /// The finding for an unknown scheme in the configuration.
    pub(crate) fn wrong_scheme_of_config(&self, message: Message, help: Message) -> Option<Diagnostic> {
        let file = self.config_file.as_ref()?;
        let place = place_in(file.text(), "project", "scheme")?;
        let span = Span::new(place.start, place.end);
        Some(Diagnostic::error("unknown-scheme", message, file, span).with_help(help))
    }

    fn load(&self, scheme: Option<&str>) -> Scheme {
        let folders = LenientFolders {
            project: &self.directory,
            folders: TemplateFolders::of(&self.directory),
            names: &self.names,
            diagnostics: Mutex::default(),
        };
        let mut missing = None;
        let files = collect(&folders, scheme).or_else(|error| {
            if scheme.is_some() {
                missing = Some((error.message, error.help.unwrap_or_default()));
            }
            collect(&folders, None)
        });
        let mut diagnostics = folders.diagnostics.into_inner().unwrap_or_else(PoisonError::into_inner);
        // A random nonce, so that no text can contain a line that is taken for a role marker.
        let nonce = uuid::Uuid::now_v7().simple().to_string();
        let made = files.and_then(|files| Ok((Arc::new(Templates::new(&files, &nonce)?), files)));
        let (templates, files) = match made {
            Ok((templates, files)) => (Some(templates), files),
            Err(error) => {
                let folder = self.names.display_name(&self.directory.join("_system/config"));
                diagnostics.push(unreadable(&folder, msg!("the templates cannot be used: {error}")));
                (None, Vec::new())
            }
        };
        Scheme { templates, files, diagnostics, missing }
    }
}

/// Template folders that skip unreadable files and collect findings for them.
struct LenientFolders<'n> {
    project: &'n Path,
    folders: TemplateFolders,
    names: &'n PathNames,
    diagnostics: Mutex<Vec<Diagnostic>>,
}

impl LenientFolders<'_> {
    fn report(&self, finding: Diagnostic) {
        self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner).push(finding);
    }
}

impl TemplateSource for LenientFolders<'_> {
    fn read(&self, place: TemplateFolder<'_>, file: &str) -> Result<Option<String>, Message> {
        Ok(self.folders.read(place, file).unwrap_or_else(|reason| {
            let path = self.folders.folder(place).join(file);
            self.report(read_failure(self.project, &path, &self.names.display_name(&path), reason));
            None
        }))
    }

    fn list(&self, place: TemplateFolder<'_>) -> Result<Vec<String>, Message> {
        Ok(self.folders.list(place).unwrap_or_else(|reason| {
            let shown = self.names.display_name(&self.folders.folder(place));
            self.report(unreadable(&shown, msg!("{shown} cannot be read: {reason}")));
            Vec::new()
        }))
    }

    fn schemes(&self) -> Vec<String> {
        self.folders.schemes()
    }
}

fn schemas(directory: &Path, names: &PathNames, diagnostics: &mut Vec<Diagnostic>) -> BTreeMap<String, Value> {
    let parsed =
        builtin_reply_schemas().filter_map(|(name, text)| Some((name.to_owned(), serde_json::from_str(text).ok()?)));
    let mut schemas: BTreeMap<String, Value> = parsed.collect();
    for (path, name, text) in reply_schema_files(directory) {
        let shown = names.display_name(&path);
        let text = match text {
            Ok(text) => text,
            Err(reason) => {
                diagnostics.push(read_failure(directory, &path, &shown, reason));
                continue;
            }
        };
        match serde_json::from_str(&text) {
            Ok(schema) => {
                schemas.insert(name, schema);
            }
            Err(error) => {
                let file = Arc::new(SourceFile::new(shown, text));
                let line = file.line_span(error.line()).unwrap_or_default();
                let column = error.column().saturating_sub(1);
                let span = Span::new((line.start + column).min(line.end), line.end);
                let message = msg!("this reply schema is not valid JSON: {error}");
                let diagnostic = Diagnostic::error("reply-schema", message, &file, span);
                diagnostics.push(
                    diagnostic.with_help(
                        "it must be a single JSON object; check for a missing or extra comma, quote or brace",
                    ),
                );
            }
        }
    }
    schemas
}

/// The finding for an unknown scheme in a script.
pub(crate) fn wrong_scheme_of_script(
    message: &Message,
    help: &Message,
    file: &Arc<SourceFile>,
    written: &Spanned<String>,
) -> Diagnostic {
    Diagnostic::error("unknown-scheme", message, file, written.span).with_help(help)
}
