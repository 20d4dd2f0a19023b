//! Finds the files of a project that may run, and hashes them: everything that its trust covers in addition to `bcc-script.toml`.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::config::Config;
use crate::config::kinds::kinds;
use crate::config::values::TextOrEnv;
use crate::discovery::walk::{GENERATED_FOLDERS, MAX_WALK_DEPTH, MAX_WALK_ENTRIES};
use crate::files::read_bounded;
use crate::files::within::normalize;
use crate::project::{CONFIG_FILE, absolute};
use crate::trust::FileHashes;
use crate::trust::command_arguments::{NamedCommand, RunByCommands};
use crate::trust::document_hash::{SEARCHED_BYTES, document_hash, is_state_file};
use crate::trust::named_files::{commands_of_script, loaded_code, written_by_script};
use bcc_lang::script::project_path::{PathUse, is_yaml, may_run_by_name, path_problem};
use bcc_lang::source::span::Span;
use bcc_lang::source::text::{SourceFile, may_be_state_file};
use bcc_runtime::program::custom::CustomBody;

/// The number of covered files of one project.
const MAX_FILES: usize = 10_000;

/// The size of one covered file, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// The size of all covered files of one project, in bytes.
const MAX_TOTAL_BYTES: u64 = 512 * 1024 * 1024;

/// The cache of Python, which changes with every run.
const PYTHON_CACHE: &str = "__pycache__";

/// Whether a project lets anything of its files run: code, commands, or servers of tools.
pub(crate) fn covers_files(config: &Config) -> bool {
    !config.project.allow.is_empty() || config.mcp_servers.values().any(|server| server.command.is_some())
}

/// What of a project may run.
#[derive(Debug, Default)]
pub(crate) struct RunnableFiles {
    /// The files that there are.
    pub(crate) hashes: FileHashes,
    /// What its commands may run, whether or not it exists, and all files.
    pub(crate) run: RunByCommands,
}

/// The files of `directory` that may run, with their hashes: YAML files, templates and schemas, programs, and the files that
/// its commands may run. `None` if its configuration allows neither code nor commands, and starts no
/// servers of tools.
///
/// # Errors
/// When a folder or a file cannot be read, or a limit is exceeded.
pub fn covered_files(directory: &Path, config: &Config) -> Result<Option<FileHashes>, Message> {
    Ok(runnable_files(directory, config)?.map(|files| files.hashes))
}

/// [`covered_files`], with what commands may run as soon as it exists.
///
/// # Errors
/// As [`covered_files`].
pub(crate) fn runnable_files(directory: &Path, config: &Config) -> Result<Option<RunnableFiles>, Message> {
    if !covers_files(config) {
        return Ok(None);
    }
    let RunnableFiles { mut hashes, mut run } = RunnableFiles::default();
    let mut total = 0;
    let mut paths = walk(directory)?;
    run.paths.extend(paths.iter().cloned());
    let add = |run: &mut RunByCommands, paths: &mut BTreeSet<PathBuf>, command: NamedCommand| {
        paths.extend(run.add(directory, command).into_iter().filter(|path| is_named(directory, path)));
    };
    for command in commands_of_config(directory, config) {
        add(&mut run, &mut paths, command);
    }
    loop {
        // Scripts add the files that they name.
        while let Some(path) = paths.pop_first() {
            let name = name_in(directory, &path);
            if hashes.contains_key(&name) {
                continue;
            }
            if hashes.len() >= MAX_FILES {
                return Err(msg!("the project has more than {MAX_FILES} files that may run"));
            }
            let bytes = read_bounded(&path, MAX_FILE_BYTES)
                .map_err(|error| msg!("{path} cannot be read: {error}", path = name))?;
            total += bytes.len() as u64;
            if bytes.len() as u64 > MAX_FILE_BYTES {
                return Err(msg!("{name} is larger than {MAX_FILE_BYTES} bytes"));
            }
            if total > MAX_TOTAL_BYTES {
                return Err(msg!("the files of the project that may run are larger than {MAX_TOTAL_BYTES} bytes"));
            }
            if is_yaml(&path) || may_be_state_file(&bytes) {
                for command in commands_of_script(directory, &bytes) {
                    add(&mut run, &mut paths, command);
                }
            }
            hashes.insert(name, document_hash(&bytes));
        }
        paths.extend(run.add_copied(directory).into_iter().filter(|path| is_named(directory, path)));
        if paths.is_empty() {
            return Ok(Some(RunnableFiles { hashes, run }));
        }
    }
}

/// Where a document names a file that it writes, and that a command of it or of the configuration may run.
pub fn written_and_run(directory: &Path, config: &Config, file: &Arc<SourceFile>) -> Vec<Span> {
    let mut written = written_by_script(file);
    // These are reported by their name.
    written.retain(|(path, _)| path_problem(path, "path", PathUse::Written).is_none());
    if written.is_empty() {
        return vec![];
    }
    let mut run = RunByCommands::default();
    let of_script = commands_of_script(directory, file.text().as_bytes());
    for command in commands_of_config(directory, config).into_iter().chain(of_script) {
        run.add(directory, command);
    }
    run.add_copied(directory);
    let is_run = |path: &str| run.may_run(&normalize(&directory.join(path)));
    written.into_iter().filter(|(path, _)| is_run(path)).map(|(_, span)| span).collect()
}

/// The name of a file: its path, relative to the project. Distinct paths have distinct names, and none contains a line break,
/// which could look like a line of this program.
pub(crate) fn name_in(directory: &Path, path: &Path) -> String {
    let path = path.strip_prefix(directory).unwrap_or(path);
    match path.to_str() {
        Some(name) if !name.contains(|c: char| c.is_control() || c == '\\') => name.to_owned(),
        _ => path.as_os_str().as_encoded_bytes().escape_ascii().to_string(),
    }
}

/// The covered files below `directory`. Links are followed, because programs follow them. Iterative, because a tree of links may
/// be deeper than the stack.
fn walk(directory: &Path) -> Result<BTreeSet<PathBuf>, Message> {
    let mut found = BTreeSet::new();
    let mut visited = BTreeSet::new();
    let mut entries = 0;
    let mut pending = vec![(directory.to_path_buf(), 0)];
    while let Some((folder, depth)) = pending.pop() {
        if !visited.insert(absolute(&folder)) {
            continue;
        }
        let name = || name_in(directory, &folder);
        if depth > MAX_WALK_DEPTH {
            return Err(msg!("the folder {} is nested more than {MAX_WALK_DEPTH} folders deep", name()));
        }
        let unreadable = |error: std::io::Error| msg!("the folder {} cannot be read: {}", name(), error.to_message());
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            entries += 1;
            if entries > MAX_WALK_ENTRIES {
                return Err(msg!("the project has more than {MAX_WALK_ENTRIES} files and folders"));
            }
            let path = entry.map_err(unreadable)?.path();
            // A link that leads nowhere cannot run.
            let (Some(name), Ok(metadata)) = (path.file_name(), std::fs::metadata(&path)) else { continue };
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if metadata.is_dir() {
                if !GENERATED_FOLDERS.iter().chain(&[PYTHON_CACHE]).any(|generated| name == *generated) {
                    pending.push((path, depth + 1));
                }
            } else if metadata.is_file() && may_run(directory, &path, &metadata) {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

fn may_run(directory: &Path, path: &Path, metadata: &Metadata) -> bool {
    const EXECUTE: u32 = 0o111;
    let relative = path.strip_prefix(directory).unwrap_or(path);
    // The configuration has its own hash.
    relative != Path::new(CONFIG_FILE)
        && (may_run_by_name(relative) || metadata.permissions().mode() & EXECUTE != 0 || is_json_state_file(path))
}

/// Whether a JSON file is a state file, whose steps may run commands. What cannot be read as one cannot run.
fn is_json_state_file(path: &Path) -> bool {
    is_json(path)
        && read_bounded(path, SEARCHED_BYTES).is_ok_and(|bytes| may_be_state_file(&bytes))
        && read_bounded(path, MAX_FILE_BYTES).is_ok_and(|bytes| is_state_file(&bytes))
}

pub(crate) fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// The commands of action types and of servers of tools. Programs of the system, which are named by an absolute path or found in
/// `PATH`, are not part of the project.
fn commands_of_config(directory: &Path, config: &Config) -> Vec<NamedCommand> {
    let command = |words: &[String], cwd: Option<&str>, loaded: Vec<String>| {
        // A path with `/` starts at the project, an argument in the working directory.
        let folders = [Some(directory.to_path_buf()), cwd.map(|cwd| directory.join(cwd))];
        let folders = folders.into_iter().flatten().collect();
        NamedCommand { words: words.to_vec(), loaded, folders, is_shell: false }
    };
    let kinds = kinds(config);
    let of_kinds = kinds.values().flat_map(|kind| kind.parts()).filter_map(|body| match body {
        CustomBody::Command(words) => Some(command(words, None, vec![])),
        CustomBody::Skill(_) => None,
    });
    let servers = config.mcp_servers.values();
    let of_servers = servers.filter_map(|server| {
        let variables = server.env.iter().filter_map(|(name, value)| match value {
            TextOrEnv::Text(text) => Some((name.clone(), text.clone())),
            TextOrEnv::Env(_) => None,
        });
        Some(command(server.command.as_ref()?, server.cwd.as_deref(), loaded_code(variables)))
    });
    of_kinds.chain(of_servers).collect()
}

/// Whether a path that a command names is a file of the project.
fn is_named(directory: &Path, path: &Path) -> bool {
    path.is_file() && path.strip_prefix(directory).is_ok_and(|relative| relative != Path::new(CONFIG_FILE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::parse;
    use std::fs;

    fn covered(directory: &Path, config: &str) -> Result<Option<FileHashes>, Message> {
        covered_files(directory, &parse("bcc-script.toml", config).unwrap())
    }

    #[test]
    fn what_may_run_is_covered_and_data_is_not() {
        let root = tempfile::tempdir().unwrap();
        let root = absolute(root.path());
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("linked.py"), "").unwrap();
        let (covered_names, others) = (
            vec![
                "a.yaml",
                "skills/b.YML",
                "lib/c.py",
                "_system/config/default/d.md",
                "schemas/replies/e.json",
                "Makefile",
                "run",
                ".tools/hook",
                "nested/f.yaml",
            ],
            vec![
                "bcc-script.toml",
                "nested/bcc-script.toml",
                "data.csv",
                "out.ipynb",
                "notes.md",
                "rec.jsonl",
                ".bcc/sessions.db",
                ".git/hooks/pre-commit.sh",
                "__pycache__/c.pyc",
                "node_modules/x/i.js",
            ],
        );
        for name in covered_names.iter().chain(&others) {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), name).unwrap();
        }
        fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("lib/linked")).unwrap();
        std::os::unix::fs::symlink(&root, root.join("lib/loop")).unwrap();
        let config = "[project]\nallow = [\"command\"]\n[kinds.k]\ncommand = [\"sh\", \".tools/hook\", \"/bin/sh\"]\n";
        let found: Vec<String> = covered(&root, config).unwrap().unwrap().into_keys().collect();
        let expected = [
            ".tools/hook",
            "Makefile",
            "_system/config/default/d.md",
            "a.yaml",
            "lib/c.py",
            "lib/linked/linked.py",
            "nested/f.yaml",
            "run",
            "schemas/replies/e.json",
            "skills/b.YML",
        ];
        assert_eq!(found, expected);
        assert_eq!(covered(&root, "").unwrap(), None, "nothing runs where nothing is allowed");
    }

    #[test]
    fn the_files_that_commands_of_scripts_name_are_covered() {
        let root = tempfile::tempdir().unwrap();
        let root = absolute(root.path());
        let script = "session:\n  a:\n    - &x { action_type: command, config: { command: [sh, .tools/one, data, \"{{ x }}\", 5], cwd: sub } }\n    - *x\n\
                      \x20   - { action_type: condition, config: { else: { actions: [{ action_type: command, config: { shell: true, command: \"cat <.two|sh .tools/three\" } }] } } }\n\
                      \x20   - { action_type: other, config: { command: [.tools/four] } }\n\
                      \x20   - { action_type: command, config: { command: [bash, -c, \"set -e; . .tools/five\"] } }\n";
        fs::create_dir_all(root.join(".tools")).unwrap();
        fs::create_dir_all(root.join("sub/.tools")).unwrap();
        for name in
            [".tools/one", "sub/.tools/one", "data", ".two", ".tools/three", ".tools/four", ".tools/five", "other"]
        {
            fs::write(root.join(name), name).unwrap();
        }
        fs::write(root.join("s.yaml"), script).unwrap();
        let found = covered(&root, "[project]\nallow = [\"command:sh\"]\n").unwrap().unwrap();
        let expected = [".tools/five", ".tools/one", ".tools/three", ".two", "data", "s.yaml", "sub/.tools/one"];
        assert_eq!(found.into_keys().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_programs_only_read_or_copy_as_data_is_not_covered() {
        let root = tempfile::tempdir().unwrap();
        let root = absolute(root.path());
        for name in ["in.csv", "out.txt", "job", "staged"] {
            fs::write(root.join(name), name).unwrap();
        }
        let commands = |commands: &[&str]| -> String {
            let action =
                |command: &&str| format!("    - {{ action_type: command, config: {{ command: {command} }} }}\n");
            format!("session:\n  a:\n{}", commands.iter().map(action).collect::<String>())
        };
        let found = |text: String| {
            fs::write(root.join("s.yaml"), text).unwrap();
            let found = covered(&root, "[project]\nallow = [\"command\"]\n").unwrap().unwrap();
            found.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(found(commands(&["[cat, in.csv]", "[cp, in.csv, out.txt]"])), ["s.yaml"]);
        assert_eq!(found(commands(&["[cp, staged, job]", "[sh, job]"])), ["job", "s.yaml", "staged"]);
    }

    #[test]
    fn a_json_file_is_covered_if_it_is_a_workflow() {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("w.json", "{\"workflow_id\": \"w\", \"steps\": []}"),
            ("mood.json", "{\"mood\": \"my workflow_id is 5\"}"),
            ("broken.json", "{\"workflow_id\": "),
            ("inner.json", "[{\"workflow_id\": 1}]"),
        ] {
            fs::write(root.path().join(name), text).unwrap();
        }
        let found = covered(root.path(), "[project]\nallow = [\"exec\"]\n").unwrap().unwrap();
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["w.json"]);
    }

    #[test]
    fn a_name_is_one_line_and_unique() {
        let name = |path: &str| name_in(Path::new("/p"), Path::new(path));
        assert_eq!(name("/p/访谈/a.sh"), "访谈/a.sh");
        assert_eq!(name("/p/a\nb.sh"), "a\\nb.sh");
        assert_eq!(name("/p/a\\nb.sh"), "a\\\\nb.sh");
    }

    #[test]
    fn a_file_that_cannot_be_read_completely_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let file = fs::File::create(root.path().join("large.py")).unwrap();
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        let error = covered(root.path(), "[project]\nallow = [\"exec\"]\n").unwrap_err().to_string();
        assert!(error.contains("large.py is larger than 67108864 bytes"), "{error}");
    }
}
