//! Keeps interviews in a file until all are read: one JSON line each, in a file without a name.

use std::io::{self, BufRead, Write};

use crate::data_set::interview::Interview;
use crate::files::export_folder::{ExportFolder, ScratchFile};

#[derive(Debug)]
pub(crate) struct InterviewSpool {
    file: ScratchFile,
    pub(crate) count: u64,
    /// The size of all interviews, in bytes.
    pub(crate) bytes: u64,
}

impl InterviewSpool {
    pub(crate) fn new(folder: &ExportFolder) -> io::Result<Self> {
        Ok(Self { file: folder.scratch()?, count: 0, bytes: 0 })
    }

    pub(crate) fn add(&mut self, interview: &Interview) -> io::Result<()> {
        let mut line = serde_json::to_vec(interview)?;
        line.push(b'\n');
        self.count += 1;
        self.bytes += line.len() as u64;
        self.file.write_all(&line)
    }

    /// Calls `each` with every interview, in their order, until one fails.
    pub(crate) fn each(&mut self, mut each: impl FnMut(Interview) -> io::Result<()>) -> io::Result<()> {
        let mut reader = self.file.reader()?;
        let mut line = String::new();
        while reader.read_line(&mut line)? > 0 {
            each(serde_json::from_str(&line)?)?;
            line.clear();
        }
        Ok(())
    }
}
