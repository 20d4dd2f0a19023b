//! A state file on disk: what tells whether somebody else changed it, and how it is read and replaced.

use std::fs::{self, Metadata};
use std::io::{self, IoSlice};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::findings::Findings;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::workflow::read::state_file;
use bcc_lang::workflow::state_text::StateText;
use serde_json::Value;

use crate::files::script;
use crate::files::write::FileReplacement;

/// What changes whenever a file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileStamp {
    /// The stamp of a file; for a link, that of its target.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::of_metadata(&fs::metadata(path)?))
    }

    fn of_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// A state file that was read and is valid.
pub(crate) struct ReadStateFile {
    pub text: StateText,
    pub value: Value,
    pub source: Arc<SourceFile>,
}

/// Reads a state file.
///
/// # Errors
/// It cannot be read, or it has errors; the message names the first one.
pub(crate) fn read(path: &Path) -> Result<ReadStateFile, Message> {
    let source = script(path).map_err(|error| error.to_message())?;
    let parsed = parse(&source);
    let findings = Findings::new();
    findings.extend(parsed.diagnostics);
    if let Some(root) = parsed.root.as_deref() {
        let _ = state_file(&source, root, &findings);
    }
    let first = findings.into_vec().into_iter().find(|found| found.is_error());
    if let Some(first) = first {
        let (line, _) = source.line_column(first.span.start);
        return Err(msg!("it has an error in line {line}: {error}", error = first.message));
    }
    let value = parsed.root.map(|root| root.to_json()).unwrap_or_default();
    let text = StateText::new(&source).map_err(|error| error.to_message())?;
    Ok(ReadStateFile { text, value, source })
}

/// Replaces the file, all or nothing. `known` is the file that may be replaced.
///
/// # Errors
/// Those of the operating system, and if somebody else changed the file in the meantime; it is then left as it is.
pub(crate) fn write(path: &Path, text: &StateText, known: Option<FileStamp>) -> io::Result<FileStamp> {
    let mut replacement = FileReplacement::start_document(path)?;
    // As they are: to copy a text of many megabytes for each step takes as long as writing it.
    let pieces: Vec<IoSlice<'_>> = text.pieces().map(|piece| IoSlice::new(piece.as_bytes())).collect();
    replacement.write_pieces(pieces)?;
    replacement.sync()?;
    if known.is_some() && known != Some(FileStamp::of(path)?) {
        return Err(io::Error::other("somebody else changed it at the same time; run it again"));
    }
    // Before it is in place: what somebody else changes right afterwards is then not mistaken for this text.
    let stamp = FileStamp::of_metadata(&replacement.metadata()?);
    replacement.finish()?;
    Ok(stamp)
}
