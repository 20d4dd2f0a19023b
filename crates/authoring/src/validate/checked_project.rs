//! A project as its files are checked against it: configuration, reply schemas and the templates of each scheme, read once,
//! with what is wrong with them. Nothing that is wrong here keeps the rest from being checked.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

use crate::validate::configuration::{BROKEN, configuration, levels};
use crate::validate::read_file::refused;
use crate::validate::tested_scripts::TestedScripts;
use bcc_check::document_paths::DocumentPathError;
use bcc_check::levels::RuleLevels;
use bcc_check::library::SkillLibrary;
use bcc_check::secrets::secrets;
use bcc_check::test::{ScriptOutline, TestedScript};
use bcc_engine::config::config::{Config, place as place_in};
use bcc_engine::config::kinds::kinds;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::skills;
use bcc_engine::discovery::walk::unreadable;
use bcc_engine::discovery::written_path::place;
use bcc_engine::files::{TemplateFolders, reply_schema_files};
use bcc_engine::pin::own_schemas;
use bcc_engine::project::{absolute, is_marked};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::layers::{TemplateFile, TemplateFolder, TemplateSource, collect};
use bcc_lang::template::templates::Templates;
use bcc_runtime::program::custom::CustomKind;

#[derive(Debug)]
pub struct CheckedProject {
    /// The directory, absolute.
    pub directory: PathBuf,
    /// Its configuration; the default one when it has none that can be read.
    pub config: Config,
    /// The names of its models; none when the configuration cannot be read.
    pub models: Option<Vec<String>>,
    pub kinds: BTreeMap<String, CustomKind>,
    /// The schemas of replies: those of this release, and the project's own before them.
    pub reply_schemas: BTreeMap<String, Value>,
    pub diagnostics: Vec<Diagnostic>,
    /// What its configuration and the command line set rules to.
    pub levels: RuleLevels,
    /// The configuration file, when it is a text.
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
    /// The same compiled; none when nothing could be made of them.
    pub templates: Option<Arc<Templates>>,
    /// Their texts, in look-up order.
    pub files: Vec<TemplateFile>,
    pub diagnostics: Vec<Diagnostic>,
    /// Why there is no such scheme, and what to do; the templates are then those without one.
    pub missing: Option<(Message, Message)>,
}

impl CheckedProject {
    /// The project in `directory`; `rules` are set after those of its configuration, and `stamp` was taken before.
    pub fn of(directory: PathBuf, names: &PathNames, rules: &[(String, String)], stamp: Option<u64>) -> Self {
        let mut diagnostics = Vec::new();
        let (config, config_file) = configuration(&directory, names, &mut diagnostics);
        let models = diagnostics.is_empty().then(|| config.models.keys().cloned().collect());
        let kinds = kinds(&config);
        let reply_schemas = schemas(&directory, names, &mut diagnostics);
        let levels = levels(&config, config_file.as_ref(), rules, &mut diagnostics);
        let mut keys: Vec<Diagnostic> = config_file.iter().flat_map(secrets).collect();
        // What is told of them already says that a key does not stand here.
        let line = |found: &Diagnostic| found.file.line(found.span.start);
        let told: Vec<usize> = diagnostics.iter().filter(|told| told.rule == BROKEN).map(line).collect();
        keys.retain(|key| !told.contains(&line(key)));
        diagnostics.extend(levels.apply(keys));
        let (names, library, schemes) = (names.clone(), OnceLock::new(), Mutex::default());
        let tested = TestedScripts::default();
        Self {
            directory,
            config,
            models,
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
    pub fn scheme(&self, scheme: Option<&str>) -> Arc<Scheme> {
        // Whoever else wants one waits: it is made once, and all need it.
        let mut schemes = self.schemes.lock().unwrap_or_else(PoisonError::into_inner);
        let made = schemes.entry(scheme.map(str::to_owned)).or_insert_with(|| Arc::new(self.load(scheme)));
        Arc::clone(made)
    }

    /// The number for all that its scripts depend on ([`stamp`](crate::validate::cache::stamp)), as it was before any
    /// of that was read; none where nobody remembers what was found.
    pub fn stamp(&self) -> Option<u64> {
        self.stamp
    }

    /// Whether its documents may name this file, whose path is absolute.
    pub fn may_hold(&self, file: &Path) -> bool {
        // Where nothing marks a project, it is taken for the folder of a document, and others lie beside that.
        !is_marked(&self.directory) || file.starts_with(absolute(&self.directory))
    }

    pub fn library(&self) -> &SkillLibrary {
        self.library.get_or_init(|| skills::library(&self.directory, &self.names))
    }

    /// Its skills, and before them those that a script at `real` names by these paths.
    pub fn library_with<'p>(&self, paths: impl Iterator<Item = &'p str>, real: &Path) -> SkillLibrary {
        skills::with_paths(self.library(), paths, (real, &self.directory), &self.names)
    }

    /// The script that a test at `test` names by this path ([`TestedScripts::look`]).
    pub fn tested(
        &self,
        path: &str,
        test: &Path,
        outline: impl FnOnce(&Arc<SourceFile>, &YamlNode) -> Option<ScriptOutline>,
    ) -> TestedScript {
        match place(path, test) {
            Ok(real) if self.may_hold(&real) => self.tested.look(&real, &self.names, outline),
            Ok(_) => TestedScript::Refused(DocumentPathError::Outside),
            Err(refused) => TestedScript::Refused(refused),
        }
    }

    pub fn schemes(&self) -> Vec<Arc<Scheme>> {
        self.schemes.lock().unwrap_or_else(PoisonError::into_inner).values().map(Arc::clone).collect()
    }

    /// The finding that the scheme of the configuration does not exist, at its place there.
    pub fn wrong_scheme_of_config(&self, message: Message, help: Message) -> Option<Diagnostic> {
        let file = self.config_file.as_ref()?;
        let place = place_in(file.text(), "project", "scheme")?;
        let span = Span::new(place.start, place.end);
        Some(Diagnostic::error("unknown-scheme", message, file, span).with_help(help))
    }

    fn load(&self, scheme: Option<&str>) -> Scheme {
        let folders = Lenient {
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
        // Nobody can write a line that is taken for a role marker without knowing this.
        let mark = uuid::Uuid::now_v7().simple().to_string();
        let made = files.and_then(|files| Ok((Arc::new(Templates::new(&files, &mark)?), files)));
        let (templates, files) = match made {
            Ok((templates, files)) => (Some(templates), files),
            Err(error) => {
                let folder = self.names.shown(&self.directory.join("_system/config"));
                diagnostics.push(unreadable(&folder, msg!("the templates cannot be used: {error}")));
                (None, Vec::new())
            }
        };
        Scheme { templates, files, diagnostics, missing }
    }
}

/// Template folders in which what cannot be read is not there, and is told at the end.
struct Lenient<'n> {
    folders: TemplateFolders,
    names: &'n PathNames,
    diagnostics: Mutex<Vec<Diagnostic>>,
}

impl Lenient<'_> {
    fn tell(&self, finding: Diagnostic) {
        self.diagnostics.lock().unwrap_or_else(PoisonError::into_inner).push(finding);
    }
}

impl TemplateSource for Lenient<'_> {
    fn read(&self, place: TemplateFolder<'_>, file: &str) -> Result<Option<String>, Message> {
        Ok(self.folders.read(place, file).unwrap_or_else(|why| {
            let path = self.folders.folder(place).join(file);
            self.tell(refused(&path, &self.names.shown(&path), why));
            None
        }))
    }

    fn list(&self, place: TemplateFolder<'_>) -> Result<Vec<String>, Message> {
        Ok(self.folders.list(place).unwrap_or_else(|why| {
            let shown = self.names.shown(&self.folders.folder(place));
            self.tell(unreadable(&shown, msg!("{shown} cannot be read: {why}")));
            Vec::new()
        }))
    }

    fn schemes(&self) -> Vec<String> {
        self.folders.schemes()
    }
}

fn schemas(directory: &Path, names: &PathNames, diagnostics: &mut Vec<Diagnostic>) -> BTreeMap<String, Value> {
    let parsed = own_schemas().filter_map(|(name, text)| Some((name.to_owned(), serde_json::from_str(text).ok()?)));
    let mut schemas: BTreeMap<String, Value> = parsed.collect();
    for (path, name, text) in reply_schema_files(directory) {
        let shown = names.shown(&path);
        let text = match text {
            Ok(text) => text,
            Err(why) => {
                diagnostics.push(refused(&path, &shown, why));
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

/// The finding that the scheme which a script names does not exist.
pub fn wrong_scheme_of_script(
    message: &Message,
    help: &Message,
    file: &Arc<SourceFile>,
    written: &Spanned<String>,
) -> Diagnostic {
    Diagnostic::error("unknown-scheme", message, file, written.span).with_help(help)
}
