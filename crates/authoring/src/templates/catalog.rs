//! The template files of a project and of the binary, each as its text or as what keeps it from being read, and which of them
//! is served in which scheme (docs/templates.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use bcc_engine::error::EngineError;
use bcc_engine::files::TemplateFolders;
use bcc_engine::project::absolute;
use bcc_lang::template::builtin::{BUILTINS, Builtin, schemes};
use bcc_lang::template::layers::{
    DEFAULT_SCHEME, MAX_FILES, TemplateFile, TemplateFolder, TemplateSource, is_scheme_name, is_template_name,
    no_scheme, order, own_scheme, shown,
};

/// The most schemes of a project that are looked into.
const MOST_SCHEMES: usize = 200;

#[derive(Clone, Debug)]
pub struct CatalogEntry {
    /// [`TemplateFile::place`].
    pub place: String,
    /// `ai_ask_v1.md`
    pub name: String,
    /// What it holds, or why it cannot be read.
    pub text: Result<String, Message>,
}

impl CatalogEntry {
    /// Its path in the project as people are shown it; `built-in …` where the binary has it.
    pub fn shown(&self) -> String {
        shown(&self.place, &self.name)
    }

    pub fn is_built_in(&self) -> bool {
        self.place.starts_with("builtin/")
    }

    /// Errors: `Usage` when it cannot be read.
    pub fn readable(&self) -> Result<&str, EngineError> {
        self.text.as_deref().map_err(|why| {
            EngineError::usage(msg!("{} cannot be read: {why}", self.shown()))
                .with_help("fix or remove the file: sessions that need it cannot start")
        })
    }
}

/// What is wrong with a file or a folder of templates, beside what `validate` tells of the files that can be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CatalogError {
    pub path: String,
    pub why: Message,
    /// Whether no session that needs it can begin.
    pub fatal: bool,
}

#[derive(Clone, Debug)]
pub struct TemplateCatalog {
    folders: TemplateFolders,
    files: Vec<CatalogEntry>,
    faults: Vec<CatalogError>,
    /// The schemes of the project that hold a template.
    own: BTreeSet<String>,
}

impl TemplateCatalog {
    /// Reads all layers of the project in this directory; it may have none. What cannot be read is among the files, and told
    /// by [`faults`](Self::faults).
    pub fn of(project: &Path) -> Self {
        let folders = TemplateFolders::of(project);
        let mut shelf = Self { folders, files: Vec::new(), faults: Vec::new(), own: BTreeSet::new() };
        let root = absolute(project);
        shelf.read(&root, TemplateFolder::Default, "default");
        for scheme in shelf.schemes_of_project() {
            let before = shelf.files.len();
            let place = format!("custom/{scheme}");
            shelf.read(&root, TemplateFolder::Scheme(&scheme), &place);
            if shelf.files.len() > before {
                shelf.own.insert(scheme);
            } else if !shelf.faults.iter().any(|fault| fault.path == bare(&place)) {
                shelf.fault(bare(&place), "it contains no template: there is no scheme with this name yet", false);
            }
        }
        let built_in = |file: &Builtin| CatalogEntry {
            place: format!("builtin/{}", file.place),
            name: file.name.to_owned(),
            text: Ok(file.text.to_owned()),
        };
        shelf.files.extend(BUILTINS.iter().map(built_in));
        shelf.faults.sort();
        shelf
    }

    fn fault(&mut self, path: String, why: impl Into<Message>, fatal: bool) {
        self.faults.push(CatalogError { path, why: why.into(), fatal });
    }

    fn schemes_of_project(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        for name in self.folders.schemes() {
            let path = bare(&format!("custom/{name}"));
            let real = self.folders.folder(TemplateFolder::Scheme(&name));
            if name.starts_with('.') || !real.is_dir() {
                // Files beside the schemes are told by the rule for templates that no look-up finds.
                if real.is_symlink() && !real.exists() {
                    self.fault(path, "it is a broken link", false);
                }
            } else if name == DEFAULT_SCHEME {
                let why = "it is ignored: `default` is the name of the templates in _system/config/default";
                self.fault(path, why, false);
            } else if !is_scheme_name(&name) {
                self.fault(
                    path,
                    "this cannot be the name of a scheme: names consist of letters, digits, `_` and `-`",
                    false,
                );
            } else if names.len() == MOST_SCHEMES {
                self.fault(path, msg!("there are more than {MOST_SCHEMES} schemes; this one was skipped"), false);
                break;
            } else {
                names.push(name);
            }
        }
        names
    }

    fn read(&mut self, root: &Path, folder: TemplateFolder<'_>, place: &str) {
        let path = self.folders.folder(folder);
        if let Some(why) = leads_out(root, &path) {
            self.fault(bare(place), why, false);
        }
        let mut names = match self.folders.list(folder) {
            Ok(names) => names,
            Err(why) => {
                let why = if path.is_file() { msg!("it is a file, but a template folder was expected") } else { why };
                self.fault(bare(place), msg!("it cannot be read: {why}"), true);
                return;
            }
        };
        names.retain(|name| is_template_name(name));
        if names.len() > MAX_FILES {
            self.fault(bare(place), msg!("it contains more than {MAX_FILES} templates; the rest are not listed"), true);
            names.truncate(MAX_FILES);
        }
        for name in names {
            let real = path.join(&name);
            let text = match self.folders.read(folder, &name) {
                Ok(Some(text)) => Ok(text),
                // Gone since it was listed.
                Ok(None) => continue,
                Err(why) => Err(plainer(&real, why)),
            };
            if let Err(why) = &text {
                self.fault(shown(place, &name), why.clone(), true);
            } else if let Some(why) = leads_out(root, &real) {
                self.fault(shown(place, &name), why, false);
            }
            self.files.push(CatalogEntry { place: place.to_owned(), name, text });
        }
    }

    /// Every file, in no order that means anything.
    pub fn files(&self) -> &[CatalogEntry] {
        &self.files
    }

    pub fn faults(&self) -> &[CatalogError] {
        &self.faults
    }

    /// The names of all schemes: the default one, those of the binary and those of the project.
    pub fn schemes(&self) -> Vec<String> {
        let mut named: BTreeSet<String> = self.own.clone();
        named.extend(schemes().map(str::to_owned));
        std::iter::once(DEFAULT_SCHEME.to_owned()).chain(named).collect()
    }

    pub fn is_of_project(&self, scheme: &str) -> bool {
        match own_scheme(Some(scheme)) {
            Some(scheme) => self.own.contains(scheme),
            None => self.files.iter().any(|file| file.place == DEFAULT_SCHEME),
        }
    }

    /// Errors: `Usage`, with near names and what was tried.
    pub fn known(&self, scheme: &str) -> Result<(), EngineError> {
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

    /// The templates of a scheme by the names of their files: for each, the file that is served, and behind it those that it
    /// overrides, in the order of look-up. A scheme that there is not has those of the default one.
    pub fn served(&self, scheme: &str) -> BTreeMap<&str, Vec<&CatalogEntry>> {
        let mut served: BTreeMap<&str, Vec<&CatalogEntry>> = BTreeMap::new();
        for place in order(Some(scheme)) {
            for file in self.files.iter().filter(|file| file.place == place) {
                served.entry(file.name.as_str()).or_default().push(file);
            }
        }
        served
    }

    /// The files of a scheme that can be read, as a session would pin them.
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

fn bare(place: &str) -> String {
    shown(place, "").trim_end_matches('/').to_owned()
}

/// Why a template cannot be read, in words of its own where those of the operating system say little.
fn plainer(path: &Path, why: Message) -> Message {
    if path.is_dir() {
        return msg!("it is a folder, but a template must be a file");
    }
    match path.metadata() {
        Err(error) if path.is_symlink() && error.kind() == io::ErrorKind::NotFound => {
            msg!("it is a broken link")
        }
        _ => why,
    }
}

/// That a link leads out of the project, which is told because what it leads to is in no copy of the project.
fn leads_out(root: &Path, path: &Path) -> Option<Message> {
    if !path.is_symlink() {
        return None;
    }
    let target: PathBuf = std::fs::canonicalize(path).ok().filter(|target| !target.starts_with(root))?;
    let kind = Message::word(if target.is_dir() { "folder" } else { "file" });
    Some(msg!(
        "it is a link to a {kind} outside the project; sessions follow the link, but a copy of the project does not include its target"
    ))
}
