//! Reading and replacing files: bounded, atomic, and the template layers of a project.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::error::EngineError;
use crate::prompt::layers::{Place, Source};
use crate::source::text::{MAX_FILE_BYTES, SourceFile};

/// The largest template, in bytes.
const MOST_TEMPLATE_BYTES: u64 = 1024 * 1024;

/// Reads a regular file of at most `most` bytes; one byte more is read of a larger one, so that the caller sees that it is.
///
/// # Errors
/// As the operating system has them; a directory or a device is `InvalidInput`.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes `bytes` to `path` so that a reader sees the old file or the new one, never half; makes missing directories.
///
/// # Errors
/// As the operating system has them.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it has no directory"))?;
    std::fs::create_dir_all(directory)?;
    let temporary =
        directory.join(format!(".{}.{}", path.file_name().unwrap_or_default().to_string_lossy(), std::process::id()));
    let mut file = File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)
}

/// A script as a source file, under the name that it was asked for.
///
/// # Errors
/// `Usage` when it cannot be read; `Invalid` when it is not a text of a size that a script may have.
pub fn script(path: &Path) -> Result<Arc<SourceFile>, EngineError> {
    let shown = path.display().to_string();
    let bytes = read_bounded(path, MAX_FILE_BYTES as u64).map_err(|error| {
        let message = match error.kind() {
            io::ErrorKind::NotFound => format!("there is no file {shown}"),
            _ => format!("{shown} cannot be read: {error}"),
        };
        EngineError::usage(message)
    })?;
    SourceFile::from_bytes(shown, bytes).map(Arc::new).map_err(|diagnostic| EngineError::Invalid(vec![*diagnostic]))
}

/// The reply schemas of a project, by name: `schemas/replies/<name>.json` (LANGUAGE.md section 7, `output_schema`).
///
/// # Errors
/// When the folder or a file in it cannot be read, or is larger or more than a project may have.
pub fn reply_schemas(project: &Path) -> Result<BTreeMap<String, String>, EngineError> {
    const MOST_FILES: usize = 200;
    let folder = project.join("schemas").join("replies");
    let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
        EngineError::usage(format!("{} cannot be read: {error}", path.display()))
    };
    let mut schemas = BTreeMap::new();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(schemas),
        Err(error) => return Err(unreadable(&folder, &error)),
    };
    for entry in entries {
        let path = entry.map_err(|error| unreadable(&folder, &error))?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
        let (Some(name), true) = (name, path.extension().is_some_and(|extension| extension == "json")) else {
            continue;
        };
        let bytes = read_bounded(&path, MOST_TEMPLATE_BYTES).map_err(|error| unreadable(&path, &error))?;
        if bytes.len() as u64 > MOST_TEMPLATE_BYTES || schemas.len() == MOST_FILES {
            return Err(unreadable(&path, &"there is too much of it"));
        }
        let text = String::from_utf8(bytes).map_err(|_| unreadable(&path, &"it is not UTF-8 text"))?;
        schemas.insert(name, text);
    }
    Ok(schemas)
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

    fn folder(&self, place: Place<'_>) -> PathBuf {
        match place {
            Place::Scheme(scheme) => self.config.join("custom").join(scheme),
            Place::Default => self.config.join("default"),
        }
    }
}

impl Source for TemplateFolders {
    fn read(&self, place: Place<'_>, file: &str) -> Result<Option<String>, String> {
        let path = self.folder(place).join(file);
        let bytes = match read_bounded(&path, MOST_TEMPLATE_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        if bytes.len() as u64 > MOST_TEMPLATE_BYTES {
            return Err(format!("it is larger than {MOST_TEMPLATE_BYTES} bytes"));
        }
        String::from_utf8(bytes).map(Some).map_err(|_| "it is not UTF-8 text".into())
    }

    fn list(&self, place: Place<'_>) -> Result<Vec<String>, String> {
        let entries = match std::fs::read_dir(self.folder(place)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
            Err(error) => return Err(error.to_string()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(|error| error.to_string())?.file_name();
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
