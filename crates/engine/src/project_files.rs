//! Reads and writes files of a project for its scripts: none outside of it, and none on which its trust depends.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::script::project_path::{is_hidden, may_run_by_name};

use crate::config::config::Config;
use crate::files::within::{
    create_within, lock_folder_within, read_within, replace_document_within, replace_within, resolve_within,
};
use crate::trust::covered::{RunnableFiles, is_json, name_in, runnable_files};
use crate::trust::document_hash::is_state_file;
use bcc_runtime::effects::files::{FileError, ProjectFiles, WriteMode};

/// The maximum size of a file to which a script appends, in bytes.
const MAX_APPENDED_BYTES: u64 = 64 * 1024 * 1024;

/// The start of a database: it may be the store of sessions, or that of another program.
const DATABASE: &[u8] = b"SQLite format 3\0";

/// The files of one project.
pub(crate) struct ScriptFiles {
    config: Config,
    /// What may run in the project, from the first write on, with real paths.
    runnable: OnceLock<Result<RunnableFiles, Message>>,
}

impl ScriptFiles {
    pub(crate) fn new(config: &Config) -> Self {
        Self { config: config.clone(), runnable: OnceLock::new() }
    }

    /// Refuses to write what may run or what decides what may run.
    fn check_writable(&self, root: &Path, inside: &Path) -> Result<(), FileError> {
        if may_run_by_name(inside) {
            let help = "write a data file, such as `.txt`, `.md`, `.csv` or `.json`";
            return Err(error(
                "a script cannot write files that may run or that are scripts, templates or schemas",
                help,
            ));
        }
        let path = root.join(inside);
        let runnable = self.runnable.get_or_init(|| {
            let RunnableFiles { hashes, run } = runnable_files(root, &self.config)?.unwrap_or_default();
            Ok(RunnableFiles { hashes, run: run.with_real_paths(root) })
        });
        let runnable = runnable.as_ref().map_err(|reason| FileError { message: reason.clone(), help: None })?;
        if runnable.hashes.contains_key(&name_in(root, &path)) || is_executable(&path) {
            let help = "write another file";
            return Err(error("the trust in the project covers this file, because it may run", help));
        }
        if runnable.run.may_run(&path) {
            let help = "write another file; a command gets its content with `input`, or its name if it only reads data, as `cat` does";
            return Err(error("a command of the project may run this file", help));
        }
        let is_database =
            |path: &Path| read_within(root, path, DATABASE.len() as u64).is_ok_and(|start| start.starts_with(DATABASE));
        if is_database(&path) || database_of(&path).is_some_and(|database| is_database(&database)) {
            return Err(error("the file is a database, or a part of one", "write another file"));
        }
        Ok(())
    }
}

impl ProjectFiles for ScriptFiles {
    fn read(&self, root: &Path, path: &str, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        let (root, inside) = resolve(root, path)?;
        let bytes = read_within(&root, &root.join(inside), max_bytes).map_err(|error| of_system(&error))?;
        if bytes.len() as u64 > max_bytes {
            let message = msg!("it is larger than {max_bytes} bytes");
            return Err(FileError {
                message,
                help: Some(Message::word("increase `max_bytes`, or read a smaller file")),
            });
        }
        Ok(bytes)
    }

    fn write_conversation(&self, root: &Path, path: &str, bytes: &[u8]) -> Result<(), FileError> {
        let (root, inside) = resolve(root, path)?;
        self.check_writable(&root, &inside)?;
        let path = root.join(&inside);
        check_content(&path, bytes)?;
        replace_document_within(&root, &path, bytes).map_err(|error| of_system(&error))
    }

    fn write(&self, root: &Path, path: &str, bytes: &[u8], mode: WriteMode) -> Result<(), FileError> {
        let (root, inside) = resolve(root, path)?;
        self.check_writable(&root, &inside)?;
        let path = root.join(&inside);
        let write = |bytes: &[u8]| {
            check_content(&path, bytes)?;
            replace_within(&root, &path, bytes).map_err(|error| of_system(&error))
        };
        match mode {
            WriteMode::Replace => write(bytes),
            WriteMode::Append => {
                // Two that append at the same time would each lose what the other one adds.
                let _alone = lock_folder_within(&root, &path).map_err(|error| of_system(&error))?;
                let mut content = match read_within(&root, &path, MAX_APPENDED_BYTES) {
                    Ok(content) => content,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => vec![],
                    Err(error) => return Err(of_system(&error)),
                };
                if content.len() as u64 + bytes.len() as u64 > MAX_APPENDED_BYTES {
                    let message = msg!("it would be larger than {MAX_APPENDED_BYTES} bytes");
                    return Err(FileError { message, help: Some(Message::word("write another file")) });
                }
                content.extend_from_slice(bytes);
                write(&content)
            }
            WriteMode::Create => {
                check_content(&path, bytes)?;
                let created = create_within(&root, &path, bytes);
                match created.map_err(|error| of_system(&error))? {
                    true => Ok(()),
                    false => Err(error("it exists already", "remove it, choose another name, or use `mode: replace`")),
                }
            }
        }
    }
}

/// The database that a file belongs to, if its path is that of a log or a lock: replacing them loses what is in the database.
fn database_of(path: &Path) -> Option<PathBuf> {
    let without =
        |name: &OsStr, end: &str| Some(OsStr::from_bytes(name.as_bytes().strip_suffix(end.as_bytes())?).to_owned());
    let name = path.file_name()?;
    let log =
        ["-wal", "-shm", "-journal"].iter().find_map(|end| without(name, end)).map(|name| path.with_file_name(name));
    let locks = path
        .ancestors()
        .skip(1)
        .find_map(|folder| Some(folder.with_file_name(without(folder.file_name()?, ".locks")?)));
    log.or(locks)
}

/// Refuses a JSON file that would be a workflow: its steps may run commands.
fn check_content(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    match is_json(path) && is_state_file(bytes) {
        true => Err(error("a script cannot write workflows", "write a file without `workflow_id` at its root")),
        false => Ok(()),
    }
}

fn error(message: &'static str, help: &'static str) -> FileError {
    FileError { message: Message::word(message), help: Some(Message::word(help)) }
}

fn of_system(error: &io::Error) -> FileError {
    let help =
        (error.kind() == io::ErrorKind::NotFound).then(|| Message::word("paths are relative to the project directory"));
    FileError { message: error.to_message(), help }
}

/// The real path of the project, and that of the file relative to it, whether or not it exists. Links are followed inside the
/// project only.
fn resolve(root: &Path, path: &str) -> Result<(PathBuf, PathBuf), FileError> {
    let outside =
        || error("it leads out of the project", "write a path in the project, relative to the project, without `..`");
    let path = Path::new(path);
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !path.components().all(is_inside) || path.as_os_str().as_encoded_bytes().contains(&0) {
        return Err(outside());
    }
    let real_root = fs::canonicalize(root).map_err(|error| of_system(&error))?;
    let path = real_root.join(path);
    // What does not exist yet is below something that does.
    let existing = path.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok()).unwrap_or(&real_root);
    let missing = path.strip_prefix(existing).map_err(|_| outside())?;
    let real = resolve_within(&real_root, existing).map_err(|error| of_system(&error))?;
    let real = if missing.as_os_str().is_empty() { real } else { real.join(missing) };
    let inside = real.strip_prefix(&real_root).map_err(|_| outside())?.to_path_buf();
    if inside.file_name().is_none() {
        return Err(error("it is the directory of the project", "write the path of a file"));
    }
    if is_hidden(&inside) {
        let help = "use a file whose path has no name that starts with `.`";
        return Err(error("scripts cannot use hidden files and folders and the configuration", help));
    }
    Ok((real_root, inside))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    const EXECUTE: u32 = 0o111;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & EXECUTE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::parse;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn files() -> ScriptFiles {
        ScriptFiles::new(&parse("bcc-script.toml", "[project]\nallow = [\"command\", \"write_file\"]\n").unwrap())
    }

    const SCRIPT: &str = "- { action_type: command, config: { command: [sh, plain] } }\n\
                          - { action_type: command, config: { command: [sh, data/job.txt], cwd: sub } }\n\
                          - { action_type: command, config: { command: [sh, later] } }\n\
                          - { action_type: command, config: { command: [cp, copied.txt, data/job.txt] } }\n\
                          - { action_type: command, config: { command: [sh, \"jobs/{{ name }}.txt\"] } }\n\
                          - { action_type: command, config: { command: [cat, ok], env: { BASH_ENV: loaded.txt } } }\n\
                          - { action_type: command, config: { command: [cat, data/in.csv] } }\n";

    fn project() -> (tempfile::TempDir, PathBuf) {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("project");
        fs::create_dir_all(root.join("data")).unwrap();
        fs::create_dir_all(outer.path().join("other")).unwrap();
        fs::create_dir_all(root.join(".bcc")).unwrap();
        fs::write(outer.path().join("other/secret"), "secret").unwrap();
        for (name, text) in [
            ("data/a.txt", "a"),
            (".bcc/store.txt", "x"),
            ("bcc-script.toml", ""),
            ("plain", "runs"),
            ("tool", "x"),
            ("s.yaml", SCRIPT),
            ("sessions", "SQLite format 3\0…"),
            ("sessions-wal", "committed"),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        fs::set_permissions(root.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("../other/secret", root.join("out")).unwrap();
        symlink("../other", root.join("outer")).unwrap();
        symlink(".bcc", root.join("hidden")).unwrap();
        symlink("s.yaml", root.join("script.txt")).unwrap();
        symlink("data/a.txt", root.join("link.txt")).unwrap();
        symlink("data/target.txt", root.join("later")).unwrap();
        symlink("data/linked.txt", root.join("linked.py")).unwrap();
        fs::write(root.join("data/linked.txt"), "x").unwrap();
        (outer, root)
    }

    /// What is refused for reading and for writing.
    const OUTSIDE: [&str; 11] = [
        "../other/secret",
        "data/../../other/secret",
        "/etc/passwd",
        "out",
        "outer/secret",
        "outer/new",
        "hidden/store.txt",
        ".bcc/store.txt",
        "bcc-script.toml",
        "",
        ".",
    ];

    #[test]
    fn only_files_of_the_project_are_read() {
        let (_outer, root) = project();
        for name in ["data/a.txt", "./data/./a.txt", "link.txt"] {
            assert_eq!(files().read(&root, name, 1).unwrap(), b"a", "{name}");
        }
        for name in OUTSIDE.into_iter().chain(["missing", "data", "data/a.txt/b"]) {
            let error = files().read(&root, name, 100).unwrap_err().message.to_string();
            assert!(!error.contains("secret"), "{name}: {error}");
        }
        let error = files().read(&root, "s.yaml", 10).unwrap_err().message.to_string();
        assert_eq!(error, "it is larger than 10 bytes");
    }

    #[test]
    fn files_that_may_run_and_files_outside_are_not_written() {
        let (outer, root) = project();
        let refused = [
            "s.yaml",
            "script.txt",
            "new.yml",
            "new.py",
            "run.sh",
            "Makefile",
            "_system/config/x.md",
            "schemas/replies/x.json",
            "plain",
            "tool",
            "sessions",
            "sessions-wal",
            "sessions-journal",
            "sessions.locks/s.lock",
            ".git/config",
            "sub/bcc-script.toml",
            "data",
            "data/job.txt",
            "sub/data/job.txt",
            "later",
            "data/target.txt",
            "data/linked.txt",
            "copied.txt",
            "jobs/any.txt",
            "loaded.txt",
        ];
        for mode in [WriteMode::Replace, WriteMode::Append, WriteMode::Create] {
            for name in OUTSIDE.iter().chain(&refused) {
                assert!(files().write(&root, name, b"new", mode).is_err(), "{name} {mode:?}");
            }
        }
        assert_eq!(fs::read_to_string(outer.path().join("other/secret")).unwrap(), "secret");
        assert_eq!(fs::read_dir(outer.path().join("other")).unwrap().count(), 1);
        for (name, text) in
            [("plain", "runs"), (".bcc/store.txt", "x"), ("bcc-script.toml", ""), ("sessions-wal", "committed")]
        {
            assert_eq!(fs::read_to_string(root.join(name)).unwrap(), text, "{name}");
        }
        files().write(&root, "data/in.csv", b"data", WriteMode::Create).unwrap();
        files().write(&root, "jobs/any.csv", b"data", WriteMode::Create).unwrap();
        assert!(!root.join("new.py").exists() && !root.join(".git").exists() && !root.join("_system").exists());
    }

    #[test]
    fn files_are_replaced_appended_to_and_created_with_their_permissions() {
        let (_outer, root) = project();
        let text = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        fs::set_permissions(root.join("data/a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
        files().write(&root, "link.txt", b"b", WriteMode::Replace).unwrap();
        files().write(&root, "data/a.txt", b"c", WriteMode::Append).unwrap();
        assert_eq!(text("data/a.txt"), "bc");
        assert!(root.join("link.txt").is_symlink());
        assert_eq!(root.join("data/a.txt").metadata().unwrap().permissions().mode() & 0o777, 0o640);
        files().write(&root, "new/deep/x.json", b"{}", WriteMode::Create).unwrap();
        files().write(&root, "log.txt", b"one", WriteMode::Append).unwrap();
        let error = files().write(&root, "new/deep/x.json", b"[]", WriteMode::Create).unwrap_err();
        assert_eq!((error.message.to_string().as_str(), text("new/deep/x.json").as_str()), ("it exists already", "{}"));
        assert_eq!(text("log.txt"), "one");
        let names = fs::read_dir(root.join("data")).unwrap().count();
        assert_eq!(names, 2, "no temporary file is left");
    }

    #[test]
    fn a_workflow_is_not_written() {
        let (_outer, root) = project();
        let workflow = br#"{"workflow_id": "w", "steps": [{"id": "a", "command": ["sh"]}]}"#;
        for mode in [WriteMode::Replace, WriteMode::Append, WriteMode::Create] {
            assert!(files().write(&root, "data/w.json", workflow, mode).is_err(), "{mode:?}");
        }
        files().write(&root, "data/w.json", &workflow[..20], WriteMode::Append).unwrap();
        assert!(files().write(&root, "data/w.json", &workflow[20..], WriteMode::Append).is_err());
        files().write(&root, "data/mood.json", br#"{"mood": "my workflow_id is 5"}"#, WriteMode::Create).unwrap();
    }

    #[test]
    fn what_is_appended_at_the_same_time_is_all_there() {
        let (_outer, root) = project();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        files().write(&root, "data/log.txt", b"line\n", WriteMode::Append).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(root.join("data/log.txt")).unwrap(), "line\n".repeat(100));
    }
}
