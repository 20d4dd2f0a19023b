//! The templates of a project and the built-in ones, each with its text or its read error, and which file each scheme
//! uses (docs/templates.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use bcc_engine::error::EngineError;
use bcc_engine::files::TemplateFolders;
use bcc_lang::template::builtin::{BUILTINS, Builtin, schemes};
use bcc_lang::template::layers::{
    DEFAULT_SCHEME, MAX_FILES, TemplateFile, TemplateFolder, TemplateSource, display_name, is_scheme_name,
    is_template_name, no_scheme, order, own_scheme,
};

/// The maximum number of schemes of a project that are read.
const MAX_SCHEMES: usize = 200;

#[derive(Clone, Debug)]
pub struct CatalogEntry {
    /// [`TemplateFile::place`].
    pub place: String,
    /// `ai_ask_v1.md`
    pub name: String,
    /// The text, or why it cannot be read.
    pub text: Result<String, Message>,
}

impl CatalogEntry {
    /// The displayed path in the project; `built-in …` for a built-in template.
    pub fn shown(&self) -> String {
        display_name(&self.place, &self.name)
    }

    pub fn is_built_in(&self) -> bool {
        self.place.starts_with("builtin/")
    }

    /// Errors: `Usage` if it cannot be read.
    pub fn readable(&self) -> Result<&str, EngineError> {
        self.text.as_deref().map_err(|reason| {
            EngineError::usage(msg!("{} cannot be read: {reason}", self.shown()))
                .with_help("fix or remove the file: sessions that need it cannot start")
        })
    }
}

/// A problem of a template file or folder that `validate` does not report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CatalogError {
    pub path: String,
    pub reason: Message,
    /// Whether sessions that need it cannot start.
    pub fatal: bool,
}

#[derive(Clone, Debug)]
pub struct TemplateCatalog {
    folders: TemplateFolders,
    files: Vec<CatalogEntry>,
    errors: Vec<CatalogError>,
    /// The schemes of the project that contain a template.
    project_schemes: BTreeSet<String>,
}

impl TemplateCatalog {
    /// Reads all layers of the project in this directory, which may have none. Unreadable files are included, and
    /// reported by [`errors`](Self::errors).
    pub fn of(project: &Path) -> Self {
        let folders = TemplateFolders::of(project);
        let mut catalog = Self { folders, files: Vec::new(), errors: Vec::new(), project_schemes: BTreeSet::new() };
        catalog.read(TemplateFolder::Default, "default");
        for scheme in catalog.schemes_of_project() {
            let before = catalog.files.len();
            let place = format!("custom/{scheme}");
            catalog.read(TemplateFolder::Scheme(&scheme), &place);
            if catalog.files.len() > before {
                catalog.project_schemes.insert(scheme);
            } else if !catalog.errors.iter().any(|error| error.path == folder_path(&place)) {
                catalog.add_error(
                    folder_path(&place),
                    "it contains no template: there is no scheme with this name yet",
                    false,
                );
            }
        }
        let built_in = |file: &Builtin| CatalogEntry {
            place: format!("builtin/{}", file.place),
            name: file.name.to_owned(),
            text: Ok(file.text.to_owned()),
        };
        catalog.files.extend(BUILTINS.iter().map(built_in));
        catalog.errors.sort();
        catalog
    }

    fn add_error(&mut self, path: String, reason: impl Into<Message>, fatal: bool) {
        self.errors.push(CatalogError { path, reason: reason.into(), fatal });
    }

    fn schemes_of_project(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        for name in self.folders.schemes() {
            let path = folder_path(&format!("custom/{name}"));
            let real = self.folders.folder(TemplateFolder::Scheme(&name));
            if name.starts_with('.') || !real.is_dir() {
                // Files next to the schemes are reported by the rule for unused templates.
                if real.is_symlink() && !real.exists() {
                    self.add_error(path, "it is a broken link", false);
                }
            } else if name == DEFAULT_SCHEME {
                let reason = "it is ignored: `default` is the name of the templates in _system/config/default";
                self.add_error(path, reason, false);
            } else if !is_scheme_name(&name) {
                self.add_error(
                    path,
                    "this cannot be the name of a scheme: names consist of letters, digits, `_` and `-`",
                    false,
                );
            } else if names.len() == MAX_SCHEMES {
                self.add_error(path, msg!("there are more than {MAX_SCHEMES} schemes; this one was skipped"), false);
                break;
            } else {
                names.push(name);
            }
        }
        names
    }

    fn read(&mut self, folder: TemplateFolder<'_>, place: &str) {
        let path = self.folders.folder(folder);
        let mut names = match self.folders.list(folder) {
            Ok(names) => names,
            Err(reason) => {
                let reason =
                    if path.is_file() { msg!("it is a file, but a template folder was expected") } else { reason };
                self.add_error(folder_path(place), msg!("it cannot be read: {reason}"), true);
                return;
            }
        };
        names.retain(|name| is_template_name(name));
        if names.len() > MAX_FILES {
            self.add_error(
                folder_path(place),
                msg!("it contains more than {MAX_FILES} templates; the rest are not listed"),
                true,
            );
            names.truncate(MAX_FILES);
        }
        for name in names {
            let real = path.join(&name);
            let text = match self.folders.read(folder, &name) {
                Ok(Some(text)) => Ok(text),
                // Deleted after it was listed.
                Ok(None) => continue,
                Err(reason) => Err(read_error_message(&real, reason)),
            };
            if let Err(reason) = &text {
                self.add_error(display_name(place, &name), reason.clone(), true);
            }
            self.files.push(CatalogEntry { place: place.to_owned(), name, text });
        }
    }

    /// All files, in no particular order.
    pub fn files(&self) -> &[CatalogEntry] {
        &self.files
    }

    pub fn errors(&self) -> &[CatalogError] {
        &self.errors
    }

    /// The names of all schemes: the default one, the built-in ones and those of the project.
    pub fn schemes(&self) -> Vec<String> {
        let mut named: BTreeSet<String> = self.project_schemes.clone();
        named.extend(schemes().map(str::to_owned));
        std::iter::once(DEFAULT_SCHEME.to_owned()).chain(named).collect()
    }

    pub(crate) fn is_of_project(&self, scheme: &str) -> bool {
        match own_scheme(Some(scheme)) {
            Some(scheme) => self.project_schemes.contains(scheme),
            None => self.files.iter().any(|file| file.place == DEFAULT_SCHEME),
        }
    }

    /// Checks that a scheme exists.
    /// Errors: `Usage`, with similar names and the searched locations.
    pub(crate) fn check_scheme(&self, scheme: &str) -> Result<(), EngineError> {
        if self.schemes().iter().any(|known| known == scheme) {
            return Ok(());
        }
        if !is_scheme_name(scheme) {
            let message = msg!("`{}` is not a valid name for a template scheme", scheme.escape_debug());
            return Err(EngineError::usage(message)
                .with_help("a scheme name consists of letters, digits, `_` and `-`, without a folder"));
        }
        Err(no_scheme(&self.folders, scheme).into())
    }

    /// The templates of a scheme by file name: the file that is used, followed by the files that it overrides, in
    /// lookup order. An unknown scheme has the templates of the default one.
    pub(crate) fn served(&self, scheme: &str) -> BTreeMap<&str, Vec<&CatalogEntry>> {
        let mut served: BTreeMap<&str, Vec<&CatalogEntry>> = BTreeMap::new();
        for place in order(Some(scheme)) {
            for file in self.files.iter().filter(|file| file.place == place) {
                served.entry(file.name.as_str()).or_default().push(file);
            }
        }
        served
    }

    /// The readable files of a scheme, as a session would pin them.
    pub fn pinned(&self, scheme: &str) -> Vec<TemplateFile> {
        let mut pinned = Vec::new();
        for place in order(Some(scheme)) {
            let readable = self.files.iter().filter(|file| file.place == place);
            pinned.extend(readable.filter_map(|file| {
                let (place, name) = (file.place.clone(), file.name.clone());
                Some(TemplateFile { place, name, text: file.text.as_ref().ok()?.clone() })
            }));
        }
        pinned.truncate(MAX_FILES);
        pinned
    }
}

fn folder_path(place: &str) -> String {
    display_name(place, "").trim_end_matches('/').to_owned()
}

/// Why a template cannot be read, with a clearer message for common operating system errors.
fn read_error_message(path: &Path, reason: Message) -> Message {
    if path.is_dir() {
        return msg!("it is a folder, but a template must be a file");
    }
    match path.metadata() {
        Err(error) if path.is_symlink() && error.kind() == io::ErrorKind::NotFound => {
            msg!("it is a broken link")
        }
        _ => reason,
    }
}
