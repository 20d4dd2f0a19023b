//! A data set as one file: a ZIP archive with the files of its folder.

use std::io::{self, BufWriter, Seek};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::data_set::project_file::written;
use crate::files::export_folder::{ExportFolder, SeekableFile};

/// From this size on, in bytes, a file needs the large form of archives.
const LARGE: u64 = 4 * 1024 * 1024 * 1024 - 1;

/// Extensions of files that are compressed already.
const COMPRESSED: [&str; 2] = [".parquet", ".qdpx"];

/// Moves the files of a complete folder into an archive, which has no name, and is read from its start.
pub(crate) fn zip_of(folder: ExportFolder) -> io::Result<SeekableFile> {
    let mut archive = ZipWriter::new(BufWriter::new(folder.unnamed()?));
    folder.move_out(|name, mut file| {
        let is_compressed = COMPRESSED.iter().any(|extension| name.ends_with(extension));
        let options = SimpleFileOptions::default()
            .compression_method(if is_compressed { CompressionMethod::Stored } else { CompressionMethod::Deflated })
            .last_modified_time(DateTime::default())
            .unix_permissions(0o600)
            .large_file(file.length()? >= LARGE);
        archive.start_file(name, options).map_err(written)?;
        io::copy(&mut file, &mut archive).map(drop)
    })?;
    let mut file = archive.finish().map_err(written)?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}
