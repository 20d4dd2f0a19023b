//! Reads files with a size limit, reply schemas, and the template layers of a project. Every file is opened in this module: those that a
//! person named here, and those of a project in `within.rs`.

pub mod create;
pub mod export_folder;
pub mod matching;
pub mod private_folder;
pub mod temporary;
pub mod within;
pub mod write;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::error::EngineError;
use crate::files::within::{normalize, read_within, resolve_within};
use bcc_lang::source::text::{MAX_STATE_FILE_BYTES, SourceFile};
use bcc_lang::template::layers::{TemplateFolder, TemplateSource};

/// The largest template or schema, in bytes.
pub const MAX_TEMPLATE_BYTES: u64 = 1024 * 1024;

pub(crate) fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Opens a regular file that a person named. Links are followed.
///
/// # Errors
/// Errors of the operating system; `InvalidInput` for a directory or a device.
pub(crate) fn open_named(path: &Path) -> io::Result<File> {
    let regular = |metadata: &Metadata| if metadata.is_file() { Ok(()) } else { Err(not_regular()) };
    // Checked before it is opened, because opening some devices has effects, and again after that, because it may have been
    // replaced with a pipe. Without `NONBLOCK`, opening a pipe would block until there is a writer.
    regular(&std::fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file that a person named, of at most `max_bytes` bytes. Of a larger file, one more byte is read, so that the caller can tell.
///
/// # Errors
/// Errors of the operating system; `InvalidInput` for a directory or a device.
pub fn read_bounded(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    read_file(open_named(path)?, max_bytes)
}

fn read_file(file: File, max_bytes: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len().min(max_bytes);
    // One allocation, with an extra byte to detect the end.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0).saturating_add(1));
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file that the configuration of a trusted project names. If the path as written is in the project, no link may lead out of
/// it: what was trusted is the text of the configuration.
///
/// # Errors
/// As [`read_bounded`] and [`read_within`].
pub(crate) fn read_configured(project: &Path, written: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let path = project.join(written);
    match normalize(&path).starts_with(project) {
        true => read_within(project, &path, max_bytes),
        false => read_bounded(&path, max_bytes),
    }
}

/// Reads a script, with `path` as its name.
///
/// # Errors
/// `Usage` when it cannot be read; `Invalid` when it is not a text or too large.
pub fn script(path: &Path) -> Result<Arc<SourceFile>, EngineError> {
    script_named(path, path.display().to_string())
}

/// Reads a script, with `shown` as its name.
///
/// # Errors
/// As [`script`].
pub(crate) fn script_named(path: &Path, shown: String) -> Result<Arc<SourceFile>, EngineError> {
    let bytes = read_bounded(path, MAX_STATE_FILE_BYTES as u64).map_err(|error| {
        let message = match error.kind() {
            io::ErrorKind::NotFound => msg!("there is no file {shown}"),
            _ => msg!("{shown} cannot be read: {error}"),
        };
        EngineError::usage(message)
    })?;
    SourceFile::from_bytes(shown, bytes).map(Arc::new).map_err(|diagnostic| EngineError::Invalid(vec![*diagnostic]))
}

/// The limit on reply schemas of a project.
const MAX_SCHEMAS: usize = 200;

/// The reply schemas of a project, by name: `schemas/replies/<name>.json` (docs/templates.md, `output_schema`).
///
/// # Errors
/// When the folder or a file in it cannot be read, or exceeds a limit.
pub fn reply_schemas(project: &Path) -> Result<BTreeMap<String, String>, EngineError> {
    let read = |(path, name, text): (PathBuf, String, Result<String, Message>)| match text {
        Ok(text) => Ok((name, text)),
        Err(reason) => Err(EngineError::usage(msg!("{path} cannot be read: {reason}", path = path.display()))),
    };
    reply_schema_files(project).into_iter().map(read).collect()
}

/// The files of [`reply_schemas`] with their paths and names, each with its text or its error; the folder itself if it cannot be
/// read.
pub fn reply_schema_files(project: &Path) -> Vec<(PathBuf, String, Result<String, Message>)> {
    let folder = project.join("schemas").join("replies");
    let mut files = Vec::new();
    let entries = match folder_entries(project, &folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return files,
        Err(error) => return vec![(folder, String::new(), Err(error.to_message()))],
    };
    for entry in entries {
        let path = match entry {
            Ok(entry) => folder.join(entry.file_name()),
            Err(error) => {
                files.push((folder, String::new(), Err(error.to_message())));
                break;
            }
        };
        let name = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
        let (Some(name), true) = (name, path.extension().is_some_and(|extension| extension == "json")) else {
            continue;
        };
        if files.len() == MAX_SCHEMAS {
            let message = msg!("it contains more than {MAX_SCHEMAS} schemas");
            files.push((folder, String::new(), Err(message)));
            break;
        }
        let text = read_text(project, &path);
        files.push((path, name, text));
    }
    files.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    files
}

/// The entries of a folder of a project.
fn folder_entries(project: &Path, folder: &Path) -> io::Result<std::fs::ReadDir> {
    std::fs::read_dir(resolve_within(project, folder)?)
}

/// Reads a template or a schema of a project.
fn read_text(project: &Path, path: &Path) -> Result<String, Message> {
    let max_bytes = MAX_TEMPLATE_BYTES;
    let bytes = read_within(project, path, max_bytes).map_err(|error| error.to_message())?;
    if bytes.len() as u64 > max_bytes {
        return Err(msg!("it is larger than {max_bytes} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| msg!("it is not UTF-8 text"))
}

/// The template layers of a project directory.
#[derive(Clone, Debug)]
pub struct TemplateFolders {
    project: PathBuf,
    config: PathBuf,
}

impl TemplateFolders {
    /// The layers under `_system/config` of `project`.
    pub fn of(project: &Path) -> Self {
        Self { project: project.to_path_buf(), config: project.join("_system").join("config") }
    }

    /// The folder of the files of `place`.
    pub fn folder(&self, place: TemplateFolder<'_>) -> PathBuf {
        match place {
            TemplateFolder::Scheme(scheme) => self.config.join("custom").join(scheme),
            TemplateFolder::Default => self.config.join("default"),
        }
    }
}

impl TemplateSource for TemplateFolders {
    fn read(&self, place: TemplateFolder<'_>, file: &str) -> Result<Option<String>, Message> {
        let path = self.folder(place).join(file);
        // Only a missing file is `None`; a broken link is an error.
        if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        read_text(&self.project, &path).map(Some)
    }

    fn schemes(&self) -> Vec<String> {
        let entries = folder_entries(&self.project, &self.config.join("custom")).into_iter().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn list(&self, place: TemplateFolder<'_>) -> Result<Vec<String>, Message> {
        let entries = match folder_entries(&self.project, &self.folder(place)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(error.to_message()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| error.to_message())?.file_name();
            if let Ok(name) = name.into_string()
                && Path::new(&name).extension().is_some_and(|extension| extension == "md")
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}
