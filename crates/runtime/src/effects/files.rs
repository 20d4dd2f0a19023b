//! The files of a project that actions read and write: those of the host, or in conversation tests those of the test.

use std::path::Path;

use bcc_lang::message::message::Message;

/// What happens to a file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteMode {
    Replace,
    /// The new content is added to its end.
    Append,
    /// Nothing is written.
    Create,
}

/// Why a file was not read or written. Contains neither its path nor its content, which may be text of a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FileError {
    pub message: Message,
    pub help: Option<Message>,
}

/// The files below the directory `root` of a project, by paths relative to it.
pub trait ProjectFiles: Send + Sync {
    /// Whether `allow` of bcc-script.toml must permit it.
    fn needs_permission(&self) -> bool {
        true
    }

    /// The content of a file of at most `max_bytes` bytes.
    fn read(&self, root: &Path, path: &str, max_bytes: u64) -> Result<Vec<u8>, FileError>;

    /// Writes a file completely or not at all. Creates missing folders.
    fn write(&self, root: &Path, path: &str, bytes: &[u8], mode: WriteMode) -> Result<(), FileError>;

    /// Replaces a file with a conversation in it: only its owner can read a new one.
    fn write_conversation(&self, root: &Path, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        self.write(root, path, bytes, WriteMode::Replace)
    }
}

/// No files.
pub(crate) struct NoFiles;

impl NoFiles {
    fn error() -> FileError {
        let message = Message::word("no file can be read or written here");
        FileError { message, help: Some(Message::word("run the script in its project")) }
    }
}

impl ProjectFiles for NoFiles {
    fn read(&self, _: &Path, _: &str, _: u64) -> Result<Vec<u8>, FileError> {
        Err(Self::error())
    }

    fn write(&self, _: &Path, _: &str, _: &[u8], _: WriteMode) -> Result<(), FileError> {
        Err(Self::error())
    }
}
