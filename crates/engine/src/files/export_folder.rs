//! A folder of files that appears as a whole: it is written under a hidden name next to its place, and then renamed. It has a list of
//! its files with their hashes, so that a later one replaces it only if nobody has changed anything in it.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::files::open_named;
use crate::files::temporary::temporary_name;

/// The list of the files, as `sha256sum` writes and checks it.
pub const FILE_LIST: &str = "files.sha256";

/// The start of the name of a file for what is only needed while the folder is written.
const SCRATCH: &str = ".scratch-";

/// How many folders are inside each other at most.
const MAX_DEPTH: usize = 8;

/// The number of bytes that are read at once.
const BUFFER: usize = 64 * 1024;

/// What is at the place of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderPlace {
    /// Nothing, or an empty folder.
    Free,
    /// A folder of an earlier export, as it was written.
    Unchanged,
    /// It has a file that is not in its list, or has no list: this one, by its path in the folder.
    Foreign(String),
    /// It has a list, and this file of it was changed or removed.
    Changed(String),
    /// Something other than a folder, or a link.
    NoFolder,
}

/// What is at this place.
///
/// # Errors
/// Errors of the operating system.
pub fn examine_place(place: &Path) -> io::Result<FolderPlace> {
    let metadata = match place.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FolderPlace::Free),
        Err(error) => return Err(error),
    };
    if !metadata.is_dir() {
        return Ok(FolderPlace::NoFolder);
    }
    let list = match open_named(&place.join(FILE_LIST)) {
        Ok(list) => BufReader::new(list),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let first = fs::read_dir(place)?.next().transpose()?;
            return Ok(match first {
                None => FolderPlace::Free,
                Some(entry) => FolderPlace::Foreign(entry.file_name().to_string_lossy().into_owned()),
            });
        }
        Err(error) => return Err(error),
    };
    // One short hash for each name: a folder may have a file for each of very many interviews.
    let mut listed: HashSet<u64> = HashSet::new();
    for line in list.lines() {
        let line = line?;
        let Some((hash, name)) = line.split_once("  ").filter(|(_, name)| is_inside(name)) else {
            return Ok(FolderPlace::Changed(FILE_LIST.to_owned()));
        };
        if hash_of_file(&place.join(name)).ok().as_deref() != Some(hash) {
            return Ok(FolderPlace::Changed(name.to_owned()));
        }
        listed.insert(short_hash(name));
    }
    let mut foreign = None;
    visit(place, "", MAX_DEPTH, &mut |name, is_file| {
        if (!is_file || !listed.contains(&short_hash(name))) && name != FILE_LIST {
            foreign.get_or_insert_with(|| name.to_owned());
        }
    })?;
    Ok(foreign.map_or(FolderPlace::Unchanged, FolderPlace::Foreign))
}

/// Whether a name of a list stays in the folder.
fn is_inside(name: &str) -> bool {
    name.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

fn short_hash(name: &str) -> u64 {
    let digest = Sha256::digest(name.as_bytes());
    digest.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Calls `seen` with the path of every entry that is no folder, and whether it is a regular file. Links are not followed.
fn visit(folder: &Path, before: &str, depth: usize, seen: &mut dyn FnMut(&str, bool)) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            visit(&entry.path(), &format!("{name}/"), depth - 1, seen)?;
        } else {
            seen(&name, kind.is_file());
        }
    }
    Ok(())
}

fn hash_of_file(path: &Path) -> io::Result<String> {
    if !path.symlink_metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = open_named(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            count => hasher.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A folder that is being written. If it is dropped before [`ExportFolder::finish`], nothing of it remains, and what is at its place
/// stays as it is.
#[derive(Debug)]
pub struct ExportFolder {
    place: PathBuf,
    staging: PathBuf,
    list: BufWriter<File>,
    is_finished: bool,
}

/// A new file of the folder, which its owner alone can read.
#[derive(Debug)]
pub struct ExportFile {
    name: String,
    file: BufWriter<File>,
    hasher: Sha256,
}

/// A file that is written or read in any order.
#[derive(Debug)]
pub struct SeekableFile(File);

impl SeekableFile {
    /// Its length in bytes.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// A file without a name, for what is only needed while the folder is written.
#[derive(Debug)]
pub struct ScratchFile(BufWriter<File>);

impl ExportFolder {
    /// Starts to write a folder at `place`. Missing folders above it are created.
    ///
    /// # Errors
    /// Errors of the operating system; `InvalidInput` if the path has no name.
    pub fn start(place: &Path) -> io::Result<Self> {
        let place = std::path::absolute(place)?;
        let staging = temporary_name(&place)?;
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        DirBuilder::new().mode(0o700).create(&staging)?;
        let list = match new_file(&staging.join(FILE_LIST)) {
            Ok(file) => BufWriter::new(file),
            Err(error) => {
                let _ = fs::remove_dir_all(&staging);
                return Err(error);
            }
        };
        Ok(Self { place, staging, list, is_finished: false })
    }

    /// Creates a folder in the folder, and the missing ones above it.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn folder(&self, name: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.staging.join(name))
    }

    /// A new file. Its name is a path in the folder.
    ///
    /// # Errors
    /// Errors of the operating system; also if there is such a file.
    pub fn file(&self, name: &str) -> io::Result<ExportFile> {
        let file = BufWriter::new(new_file(&self.staging.join(name))?);
        Ok(ExportFile { name: name.to_owned(), file, hasher: Sha256::new() })
    }

    /// Adds a file that is complete to the list.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn complete(&mut self, file: ExportFile) -> io::Result<()> {
        let ExportFile { name, mut file, hasher } = file;
        file.flush()?;
        writeln!(self.list, "{}  {name}", hexadecimal(&hasher.finalize()))
    }

    /// A new file that is written in any order.
    ///
    /// # Errors
    /// As [`ExportFolder::file`].
    pub fn seekable(&self, name: &str) -> io::Result<SeekableFile> {
        new_file(&self.staging.join(name)).map(SeekableFile)
    }

    /// Adds a file that was written with [`ExportFolder::seekable`] to the list.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn complete_seekable(&mut self, name: &str) -> io::Result<()> {
        let hash = hash_of_file(&self.staging.join(name))?;
        writeln!(self.list, "{hash}  {name}")
    }

    /// A file with all of its content.
    ///
    /// # Errors
    /// As [`ExportFolder::file`].
    pub fn whole_file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file(name)?;
        file.write_all(bytes)?;
        self.complete(file)
    }

    /// # Errors
    /// Errors of the operating system.
    pub fn scratch(&self) -> io::Result<ScratchFile> {
        Ok(ScratchFile(BufWriter::new(self.unnamed()?.0)))
    }

    /// A file without a name, which does not belong to the folder, and exists as long as it is open.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn unnamed(&self) -> io::Result<SeekableFile> {
        let path = self.staging.join(format!("{SCRATCH}{}", uuid::Uuid::now_v7().simple()));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        fs::remove_file(&path)?;
        Ok(SeekableFile(file))
    }

    /// Gives each file with its name to `take`, and removes it then; the list of the files comes last. Nothing is left of
    /// the folder.
    ///
    /// # Errors
    /// Errors of the operating system, and the first one of `take`.
    pub fn move_out(mut self, mut take: impl FnMut(&str, SeekableFile) -> io::Result<()>) -> io::Result<()> {
        self.list.flush()?;
        let list = BufReader::new(open_named(&self.staging.join(FILE_LIST))?);
        let lines = list.lines().chain([Ok(format!("  {FILE_LIST}"))]);
        for line in lines {
            let line = line?;
            let name = line.split_once("  ").map_or("", |(_, name)| name);
            let path = self.staging.join(name);
            let file = open_named(&path)?;
            take(name, SeekableFile(file))?;
            fs::remove_file(&path)?;
        }
        Ok(())
    }

    /// Gives the folder its place, at which there is nothing, an empty folder or an earlier export.
    ///
    /// # Errors
    /// Errors of the operating system; `AlreadyExists` if something else is there now. What was at the place is there again then.
    pub fn finish(mut self) -> io::Result<()> {
        self.list.flush()?;
        sync_all_of(&File::open(&self.staging)?)?;
        let earlier = match self.place.symlink_metadata() {
            Ok(_) => {
                let earlier = temporary_name(&self.place)?;
                fs::rename(&self.place, &earlier)?;
                Some(earlier)
            }
            Err(_) => None,
        };
        // It is aside, where nobody writes into it: what came there while the folder was written is not deleted with it.
        let renamed = match earlier.as_deref().map(examine_place) {
            None | Some(Ok(FolderPlace::Free | FolderPlace::Unchanged)) => fs::rename(&self.staging, &self.place),
            Some(Ok(_)) => Err(io::ErrorKind::AlreadyExists.into()),
            Some(Err(error)) => Err(error),
        };
        if let Err(error) = renamed {
            if let Some(earlier) = earlier {
                fs::rename(earlier, &self.place)?;
            }
            return Err(error);
        }
        self.is_finished = true;
        if let Some(parent) = self.place.parent() {
            File::open(parent)?.sync_all()?;
        }
        earlier.map_or(Ok(()), fs::remove_dir_all)
    }
}

impl Drop for ExportFolder {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_dir_all(&self.staging);
        }
    }
}

impl Write for ExportFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hasher.update(bytes.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl ScratchFile {
    /// Everything that was written, from its start.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn reader(&mut self) -> io::Result<impl BufRead> {
        self.0.flush()?;
        self.0.get_mut().rewind()?;
        Ok(BufReader::new(self.0.get_mut()))
    }
}

impl Write for ScratchFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Read for SeekableFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for SeekableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for SeekableFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Makes everything on the file system of `folder` durable: one call, where a call for each of many files would take minutes.
#[cfg(target_os = "linux")]
fn sync_all_of(folder: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(folder)?)
}

#[cfg(not(target_os = "linux"))]
fn sync_all_of(folder: &File) -> io::Result<()> {
    rustix::fs::sync();
    folder.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn export(place: &Path) {
        let mut folder = ExportFolder::start(place).unwrap();
        folder.folder("one/texts").unwrap();
        folder.whole_file("README.md", b"read").unwrap();
        folder.whole_file("one/texts/a.txt", b"a").unwrap();
        folder.scratch().unwrap().write_all(b"scratch").unwrap();
        folder.finish().unwrap();
    }

    #[test]
    fn a_folder_appears_as_a_whole_and_only_its_owner_can_read_it() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("new/study");
        let folder = ExportFolder::start(&place).unwrap();
        folder.file("half.csv").unwrap().write_all(b"half").unwrap();
        assert!(!place.exists());
        drop(folder);
        assert_eq!(fs::read_dir(root.path().join("new")).unwrap().count(), 0);
        export(&place);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place), mode(&place.join("one/texts"))), (0o700, 0o700));
        assert_eq!((mode(&place.join("README.md")), mode(&place.join(FILE_LIST))), (0o600, 0o600));
        assert_eq!(fs::read_to_string(place.join(FILE_LIST)).unwrap().lines().count(), 2);
        assert_eq!(fs::read_dir(root.path().join("new")).unwrap().count(), 1);
    }

    #[test]
    fn the_files_of_a_folder_are_moved_out_and_nothing_is_left() {
        let root = tempfile::tempdir().unwrap();
        let mut folder = ExportFolder::start(&root.path().join("study")).unwrap();
        folder.folder("one").unwrap();
        folder.whole_file("one/a.txt", b"a").unwrap();
        let mut moved = vec![];
        folder
            .move_out(|name, mut file| {
                let (length, mut text) = (file.length()?, String::new());
                file.read_to_string(&mut text)?;
                moved.push((name.to_owned(), length == text.len() as u64, text));
                Ok(())
            })
            .unwrap();
        assert_eq!(moved.len(), 2, "{moved:?}");
        assert_eq!(moved[0], ("one/a.txt".into(), true, "a".into()));
        assert!(moved[1].0 == FILE_LIST && moved[1].1 && moved[1].2.ends_with("  one/a.txt\n"), "{moved:?}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_comes_to_the_place_while_the_folder_is_written_stays_there() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("study");
        export(&place);
        let folder = ExportFolder::start(&place).unwrap();
        fs::write(place.join("notes.txt"), "mine").unwrap();
        assert_eq!(folder.finish().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(place.join("notes.txt")).unwrap(), "mine");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_an_export_that_nobody_changed_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("study");
        assert_eq!(examine_place(&place).unwrap(), FolderPlace::Free);
        fs::create_dir(&place).unwrap();
        assert_eq!(examine_place(&place).unwrap(), FolderPlace::Free);
        export(&place);
        assert_eq!(examine_place(&place).unwrap(), FolderPlace::Unchanged);
        export(&place);
        assert_eq!(examine_place(&place).unwrap(), FolderPlace::Unchanged);
        fs::write(place.join("one/notes.txt"), "mine").unwrap();
        assert_eq!(examine_place(&place).unwrap(), FolderPlace::Foreign("one/notes.txt".into()));
        fs::remove_file(place.join("one/notes.txt")).unwrap();
        fs::write(place.join("README.md"), "edited").unwrap();
        assert_eq!(examine_place(&place).unwrap(), FolderPlace::Changed("README.md".into()));
        fs::write(place.join(FILE_LIST), "abc  ../../etc/passwd\n").unwrap();
        assert_eq!(examine_place(&place).unwrap(), FolderPlace::Changed(FILE_LIST.into()));
        fs::remove_file(place.join(FILE_LIST)).unwrap();
        assert!(matches!(examine_place(&place).unwrap(), FolderPlace::Foreign(_)));
        symlink("study", root.path().join("link")).unwrap();
        assert_eq!(examine_place(&root.path().join("link")).unwrap(), FolderPlace::NoFolder);
    }
}
