//! Finds and opens the files of a project that patterns name: none outside of it.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::files::within::open_within;

/// The limit on folders and files that a pattern is compared with.
const MAX_ENTRIES: usize = 200_000;

/// The depth of folders that `**` reaches.
const MAX_DEPTH: usize = 16;

/// Folders that `**` does not enter, in addition to those whose name starts with `.`.
const SKIPPED: [&str; 3] = ["node_modules", "target", "__pycache__"];

/// By what a changed file is recognized without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct ContentStamp {
    pub size: u64,
    /// When its content was changed, in nanoseconds.
    pub modified: i128,
    /// When the content or the owner, the permissions or the times were changed, in nanoseconds.
    pub changed: i128,
    pub inode: u64,
}

impl ContentStamp {
    pub fn of(metadata: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            size: metadata.len(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }
}

/// Whether `text` matches `pattern`, in which `*` is any text and `?` any character.
pub fn name_matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    // Where the last `*` is, and how much of the text it takes.
    let mut star: Option<(usize, usize)> = None;
    while let Some(c) = text.get(read) {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == c => {
                at += 1;
                read += 1;
            }
            _ => match star.as_mut() {
                Some((position, taken)) => {
                    *taken += 1;
                    (at, read) = (*position + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|rest| *rest == '*')
}

/// The regular files in the directory `root` that match one of `patterns`, by their path relative to it, in the order of these paths,
/// each with its stamp or why it has none. In a pattern, `*` and `?` match within a name, and `**` matches any folders. A name without
/// these characters is in the result even if there is no such file.
///
/// # Errors
/// When a folder cannot be read, or there are too many entries.
pub fn files_matching(root: &Path, patterns: &[String]) -> io::Result<BTreeMap<String, io::Result<ContentStamp>>> {
    let mut found = BTreeMap::new();
    let mut left = MAX_ENTRIES;
    for pattern in patterns {
        let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        walk(root, &mut PathBuf::new(), &parts, 0, &mut left, &mut found)?;
    }
    Ok(found)
}

fn walk(
    root: &Path,
    inside: &mut PathBuf,
    parts: &[&str],
    depth: usize,
    left: &mut usize,
    found: &mut BTreeMap<String, io::Result<ContentStamp>>,
) -> io::Result<()> {
    let Some((part, rest)) = parts.split_first() else { return Ok(()) };
    if *part == "**" {
        walk(root, inside, rest, depth, left, found)?;
    } else if !part.contains(['*', '?']) {
        inside.push(part);
        match rest.is_empty() {
            true => add(root, inside, found),
            false => walk(root, inside, rest, depth, left, found)?,
        }
        inside.pop();
        return Ok(());
    }
    for (name, is_folder) in entries(&root.join(&*inside), left)? {
        let enters = is_folder && !name.starts_with('.') && !SKIPPED.contains(&name.as_str());
        inside.push(&name);
        if *part == "**" {
            if enters && depth < MAX_DEPTH {
                walk(root, inside, parts, depth + 1, left, found)?;
            }
        } else if name_matches(part, &name) && (!name.starts_with('.') || part.starts_with('.')) {
            match rest.is_empty() {
                true if !is_folder => add(root, inside, found),
                true => {}
                false => walk(root, inside, rest, depth, left, found)?,
            }
        }
        inside.pop();
    }
    Ok(())
}

fn add(root: &Path, inside: &Path, found: &mut BTreeMap<String, io::Result<ContentStamp>>) {
    let Some(name) = inside.to_str() else { return };
    let stamp = open_within(root, &root.join(inside)).and_then(|file| Ok(ContentStamp::of(&file.metadata()?)));
    found.insert(name.to_owned(), stamp);
}

/// The names in a folder, in order, each with whether it is a folder; none if there is no such folder. Links to folders are not
/// entered.
fn entries(folder: &Path, left: &mut usize) -> io::Result<Vec<(String, bool)>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(vec![]);
        }
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        *left = left.checked_sub(1).ok_or_else(|| io::Error::other("there are too many files"))?;
        if let Ok(name) = entry.file_name().into_string() {
            names.push((name, entry.file_type()?.is_dir()));
        }
    }
    names.sort();
    Ok(names)
}

/// Opens a regular file of the project in `root` for reading in pieces.
///
/// # Errors
/// As [`read_within`](crate::files::within::read_within).
pub fn open_project_file(root: &Path, name: &str) -> io::Result<File> {
    open_within(root, &root.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_pattern_matches_within_a_name() {
        for (pattern, text) in [("*.csv", "a.csv"), ("a?c", "a咨c"), ("*", ""), ("a*b*c", "axxbyc"), ("**", "x")] {
            assert!(name_matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("*.csv", "a.tsv"), ("a?c", "ac"), ("a*b", "abc"), ("", "a")] {
            assert!(!name_matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn files_are_found_in_order_and_none_outside() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("project");
        for name in
            ["k/b.csv", "k/a.csv", "k/deep/er/c.csv", "k/d.txt", ".git/e.csv", "k/.hidden.csv", "node_modules/f.csv"]
        {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "x").unwrap();
        }
        std::fs::write(directory.path().join("out.csv"), "x").unwrap();
        symlink("../../out.csv", root.join("k/out.csv")).unwrap();
        symlink("..", root.join("k/up")).unwrap();
        let names = |patterns: &[&str]| -> Vec<(String, bool)> {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            files_matching(&root, &patterns).unwrap().into_iter().map(|(name, stamp)| (name, stamp.is_ok())).collect()
        };
        let of = |names: &[(&str, bool)]| names.iter().map(|(name, ok)| ((*name).to_owned(), *ok)).collect::<Vec<_>>();
        assert_eq!(names(&["k/*.csv", "./k/a.csv"]), of(&[("k/a.csv", true), ("k/b.csv", true), ("k/out.csv", false)]));
        assert_eq!(
            names(&["**/*.csv"]),
            of(&[("k/a.csv", true), ("k/b.csv", true), ("k/deep/er/c.csv", true), ("k/out.csv", false)])
        );
        assert_eq!(names(&["missing.csv", "nowhere/*.csv"]), of(&[("missing.csv", false)]));
    }
}
