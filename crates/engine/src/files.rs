//! Reading files: bounded, and the template layers of a project. (Writing them is below: `write`, `create`.)

pub mod create;
pub mod write;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::fs::{Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::error::EngineError;
use bcc_lang::source::text::{MAX_FILE_BYTES, SourceFile};
use bcc_lang::template::layers::{TemplateFolder, TemplateSource};

/// The largest template or schema, in bytes.
pub const MOST_TEMPLATE_BYTES: u64 = 1024 * 1024;

/// Reads a regular file of at most `most` bytes; one byte more is read of a larger one, so that the caller sees that it is.
///
/// # Errors
/// As the operating system has them; a directory or a device is `InvalidInput`.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let regular = |metadata: &Metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    };
    // Before it is opened, because opening some devices does something; and after, because a pipe may have taken its place,
    // which without `NONBLOCK` would wait for somebody to write into it.
    regular(&std::fs::metadata(path)?)?;
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    regular(&metadata)?;
    // In one piece, with a byte to see the end by.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(most)).unwrap_or(0).saturating_add(1));
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A script as a source file, under the name that it was asked for.
///
/// # Errors
/// `Usage` when it cannot be read; `Invalid` when it is not a text of a size that a script may have.
pub fn script(path: &Path) -> Result<Arc<SourceFile>, EngineError> {
    let shown = path.display().to_string();
    let bytes = read_bounded(path, MAX_FILE_BYTES as u64).map_err(|error| {
        let message = match error.kind() {
            io::ErrorKind::NotFound => msg!("there is no file {shown}"),
            _ => msg!("{shown} cannot be read: {error}", error = Message::text(error.to_string())),
        };
        EngineError::usage(message)
    })?;
    SourceFile::from_bytes(shown, bytes).map(Arc::new).map_err(|diagnostic| EngineError::Invalid(vec![*diagnostic]))
}

/// The most reply schemas that a project may have.
const MOST_SCHEMAS: usize = 200;

/// The reply schemas of a project, by name: `schemas/replies/<name>.json` (docs/templates.md, `output_schema`).
///
/// # Errors
/// When the folder or a file in it cannot be read, or is larger or more than a project may have.
pub fn reply_schemas(project: &Path) -> Result<BTreeMap<String, String>, EngineError> {
    let read = |(path, name, text): (PathBuf, String, Result<String, Message>)| match text {
        Ok(text) => Ok((name, text)),
        Err(why) => Err(EngineError::usage(msg!("{path} cannot be read: {why}", path = path.display()))),
    };
    reply_schema_files(project).into_iter().map(read).collect()
}

/// The files of [`reply_schemas`] with their paths and names, each as its text or as what keeps it from being read; the
/// folder itself where it is at fault.
pub fn reply_schema_files(project: &Path) -> Vec<(PathBuf, String, Result<String, Message>)> {
    let folder = project.join("schemas").join("replies");
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return files,
        Err(error) => return vec![(folder, String::new(), Err(Message::text(error.to_string())))],
    };
    for entry in entries {
        let path = match entry {
            Ok(entry) => entry.path(),
            Err(error) => {
                files.push((folder, String::new(), Err(Message::text(error.to_string()))));
                break;
            }
        };
        let name = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
        let (Some(name), true) = (name, path.extension().is_some_and(|extension| extension == "json")) else {
            continue;
        };
        if files.len() == MOST_SCHEMAS {
            files.push((folder, String::new(), Err(msg!("it contains more than {MOST_SCHEMAS} schemas"))));
            break;
        }
        let text = read_text(&path, MOST_TEMPLATE_BYTES);
        files.push((path, name, text));
    }
    files.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    files
}

/// A text of at most `most` bytes, or what keeps it from being read.
fn read_text(path: &Path, most: u64) -> Result<String, Message> {
    let bytes = read_bounded(path, most).map_err(|error| Message::text(error.to_string()))?;
    if bytes.len() as u64 > most {
        return Err(msg!("it is larger than {most} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| msg!("it is not UTF-8 text"))
}

/// The template layers of a project directory.
#[derive(Clone, Debug)]
pub struct TemplateFolders {
    config: PathBuf,
}

impl TemplateFolders {
    /// The layers under `_system/config` of `project`.
    pub fn of(project: &Path) -> Self {
        Self { config: project.join("_system").join("config") }
    }

    /// Where the files of `place` lie.
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
        // Gone since it was listed; a link that leads nowhere is there.
        if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        read_text(&path, MOST_TEMPLATE_BYTES).map(Some)
    }

    fn schemes(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.config.join("custom")).into_iter().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn list(&self, place: TemplateFolder<'_>) -> Result<Vec<String>, Message> {
        let entries = match std::fs::read_dir(self.folder(place)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(Message::text(error.to_string())),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| Message::text(error.to_string()))?.file_name();
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
