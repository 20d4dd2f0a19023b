//! The files of conversation tests: those that the test contains. None of the project is read or written.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::span::Spanned;
use bcc_runtime::effects::files::{FileError, ProjectFiles, WriteMode};

pub(crate) struct TestFiles(Mutex<BTreeMap<PathBuf, Vec<u8>>>);

impl TestFiles {
    pub(crate) fn new(files: &[(Spanned<String>, String)]) -> Self {
        let files = files.iter().map(|(path, text)| (normalized(&path.value), text.clone().into_bytes()));
        Self(Mutex::new(files.collect()))
    }
}

/// The path without `.`.
fn normalized(path: &str) -> PathBuf {
    Path::new(path).components().filter(|part| *part != Component::CurDir).collect()
}

/// The same for a path that an action uses. Errors: it leads out of the project.
fn inside(path: &str) -> Result<PathBuf, FileError> {
    let path = normalized(path);
    match path.components().all(|part| matches!(part, Component::Normal(_))) {
        true => Ok(path),
        false => Err(FileError { message: Message::word("it leads out of the project"), help: None }),
    }
}

impl ProjectFiles for TestFiles {
    fn needs_permission(&self) -> bool {
        false
    }

    fn read(&self, _: &Path, path: &str, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let content = files.get(&inside(path)?).ok_or_else(|| FileError {
            message: Message::word("the test has no such file"),
            help: Some(Message::word(
                "no file of the project is read in tests: write its content under `files:` of the test",
            )),
        })?;
        match content.len() as u64 > max_bytes {
            true => Err(FileError { message: msg!("it is larger than {max_bytes} bytes"), help: None }),
            false => Ok(content.clone()),
        }
    }

    fn write(&self, _: &Path, path: &str, bytes: &[u8], mode: WriteMode) -> Result<(), FileError> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let path = inside(path)?;
        match mode {
            WriteMode::Create if files.contains_key(&path) => {
                return Err(FileError { message: Message::word("it exists already"), help: None });
            }
            WriteMode::Append => files.entry(path).or_default().extend_from_slice(bytes),
            WriteMode::Create | WriteMode::Replace => _ = files.insert(path, bytes.to_vec()),
        }
        Ok(())
    }
}
