//! Tests of `init`, `new`, `completions`, `man` and `--version` through the program.

use crate::process;
mod new;
mod shells;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use process::{Finished, Home, Running};
use serde_json::Value;

/// Both languages, with the answers that complete the first conversation and its last message.
const LANGUAGES: [(&str, &str, &str); 2] = [
    ("en", "Ann\n3\na walk\n", "I like that: a walk. Thank you for talking with me, Ann. Take care!"),
    ("zh", "小林\n三\n喝杯水\n", "真好，那就喝杯水吧。谢谢你陪我聊这一会儿，小林。照顾好自己，再见！"),
];

/// Runs the program in `directory`.
fn run_in(home: &Home, directory: &Path, arguments: &[&str], input: &str) -> Finished {
    let mut command = home.command(arguments);
    command.current_dir(directory);
    let mut running = Running::start(command);
    running.feed(input.as_bytes().to_vec());
    running.finish()
}

/// Runs the program in `directory`; it must exit with 0. Returns its standard output.
fn output_in(home: &Home, directory: &Path, arguments: &[&str]) -> String {
    let finished = run_in(home, directory, arguments, "");
    assert_eq!(finished.code, Some(0), "{arguments:?}\n{}\n{}", finished.out, finished.err);
    finished.out
}

/// Runs the program in `directory`; it must exit with `code` and print each of `expected` to standard error.
fn fails_in(home: &Home, directory: &Path, arguments: &[&str], code: i32, expected: &[&str]) {
    let finished = run_in(home, directory, arguments, "");
    assert_eq!(finished.code, Some(code), "{arguments:?}\n{}\n{}", finished.out, finished.err);
    for expected in expected {
        assert!(finished.err.contains(expected), "{arguments:?}: {expected}\n{}", finished.err);
    }
}

/// Creates the project `p` in this language.
fn project(home: &Home, language: &str) -> PathBuf {
    output_in(home, home.path(), &["init", "p", "--lang", language]);
    home.path().join("p")
}

/// Every file, link and folder below `root`, with its content.
fn tree(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_dir() {
                found.insert(format!("{name}/"), vec![]);
                pending.push(path);
            } else if metadata.is_symlink() {
                found.insert(name, fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec());
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn findings(text: &str) -> Value {
    serde_json::from_str::<Value>(text).unwrap()["diagnostics"].clone()
}

#[test]
fn a_new_project_validates_tests_and_runs_at_once_in_both_languages() {
    for (language, answers, last) in LANGUAGES {
        let home = Home::new();
        let project = project(&home, language);
        let found = findings(&output_in(&home, &project, &["validate", "--format", "json", "--deny", "warnings"]));
        assert_eq!(found, Value::Array(vec![]), "{language}");
        let tested: Value = serde_json::from_str(&output_in(&home, &project, &["test", "--format", "json"])).unwrap();
        assert_eq!((&tested["passed"], &tested["failed"]), (&Value::from(2), &Value::from(0)), "{language}");
        assert_eq!(tested["diagnostics"], Value::Array(vec![]));
        let run = run_in(&home, &project, &["run", "scripts/first_talk.yaml"], answers);
        assert_eq!(run.code, Some(0), "{}", run.err);
        assert_eq!(run.out.lines().last(), Some(last));
        assert_eq!(run.err, "", "nothing is to be told of a run with what `init` wrote");
        // A guest with high energy does not need a small step: the topic is skipped.
        let run = run_in(&home, &project, &["run", "scripts/first_talk.yaml"], &answers.replace(['3', '三'], "9"));
        assert_eq!((run.code, run.out.lines().count()), (Some(0), 3), "{}", run.out);
    }
}

#[test]
fn every_part_of_the_first_conversation_is_tested_by_its_tests() {
    let home = Home::new();
    let project = project(&home, "en");
    let coverage = output_in(&home, &project, &["test", "--coverage"]);
    let summary = coverage.lines().rfind(|line| line.contains('%')).unwrap();
    let parts: Vec<&str> = summary.split_whitespace().filter(|word| word.ends_with('%')).collect();
    assert!(!parts.is_empty() && parts.iter().all(|part| *part == "100%"), "{coverage}");
}

#[test]
fn a_new_project_is_trusted_and_stays_so_until_its_configuration_changes() {
    let home = Home::new();
    let project = project(&home, "en");
    let listed: Value = serde_json::from_str(&output_in(&home, &project, &["models", "list", "--json"])).unwrap();
    assert_eq!(listed["trusted"], Value::Bool(true));
    assert_eq!(listed["default"]["name"], "default");
    let config = project.join("bcc-script.toml");
    fs::write(&config, format!("{}\n", fs::read_to_string(&config).unwrap())).unwrap();
    let listed: Value = serde_json::from_str(&output_in(&home, &project, &["models", "list", "--json"])).unwrap();
    assert_eq!(listed["trusted"], Value::Bool(false));
}

#[test]
fn a_project_is_created_where_trust_cannot_be_stored_and_says_so() {
    let home = Home::new();
    fs::remove_dir(home.path().join("config")).unwrap();
    fs::write(home.path().join("config"), "a file").unwrap();
    let finished = home.finish(["init", "p"], "");
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    assert!(finished.err.contains("not trusted yet; to trust it later, run `bcc-script trust`"), "{}", finished.err);
    assert!(home.path().join("p/bcc-script.toml").is_file());
}

#[test]
fn a_key_in_the_environment_sends_nothing_of_a_new_project_anywhere() {
    let home = Home::new();
    let project = project(&home, "en");
    let mut command = home.command(["run", "scripts/first_talk.yaml"]);
    command.current_dir(&project).env("OPENAI_API_KEY", "k").env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let mut running = Running::start(command);
    running.feed(b"Ann\n9\n".to_vec());
    assert_eq!(running.finish().code, Some(0));
}

#[test]
fn the_schemas_of_a_new_project_are_those_that_schema_prints_and_what_names_them_finds_them() {
    let home = Home::new();
    let project = project(&home, "zh");
    for name in ["script", "skill", "test", "document", "template", "config"] {
        let printed = output_in(&home, &project, &["schema", name]);
        let written = fs::read_to_string(project.join(format!("schemas/{name}.schema.json"))).unwrap();
        assert_eq!(written, printed, "{name}");
    }
    let mut references = 0;
    for (path, bytes) in tree(&project).iter().filter(|(path, _)| path.ends_with(".yaml") || path.ends_with(".toml")) {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let first = text.lines().next().unwrap();
        let schema = first.strip_prefix("# yaml-language-server: $schema=").or_else(|| first.strip_prefix("#:schema "));
        let file = project.join(path).parent().unwrap().join(schema.unwrap_or_else(|| panic!("{path}: {first}")));
        assert!(file.is_file(), "{path}: {first}");
        references += 1;
    }
    assert_eq!(references, 5);
    let settings: Value =
        serde_json::from_str(&fs::read_to_string(project.join(".vscode/settings.json")).unwrap()).unwrap();
    for (schema, files) in settings["yaml.schemas"].as_object().unwrap() {
        assert!(project.join(schema).is_file(), "{schema}");
        let folder = files.as_str().unwrap().strip_suffix("/*.yaml").unwrap();
        assert!(project.join(folder).is_dir(), "{files}");
    }
    let extensions: Value =
        serde_json::from_str(&fs::read_to_string(project.join(".vscode/extensions.json")).unwrap()).unwrap();
    assert!(extensions["recommendations"].as_array().is_some_and(|recommendations| !recommendations.is_empty()));
}

#[test]
fn the_scheme_of_a_new_project_is_the_one_that_its_scripts_use() {
    for (language, place) in [("en", "custom/english"), ("zh", "default")] {
        let home = Home::new();
        output_in(&home, home.path(), &["init", "p", "--lang", language, "--scheme", "温和"]);
        let scheme = home.path().join("p/_system/config/custom/温和");
        let shipped = Path::new(crate::ROOT).join("_system/config").join(place);
        assert_eq!(tree(&scheme), tree(&shipped));
        // A template that cannot be rendered stops the script, which shows that it is the one in use.
        fs::write(scheme.join("ai_ask_v1.md"), "{{ nobody_gives_this }}").unwrap();
        fails_in(&home, &home.path().join("p"), &["run", "scripts/first_talk.yaml"], 2, &["nobody_gives_this", "温和"]);
    }
}

#[test]
fn existing_files_in_the_directory_keep_their_bytes_and_permissions() {
    let home = Home::new();
    let project = home.path().join("p");
    fs::create_dir_all(project.join("scripts")).unwrap();
    for (path, text) in [("notes.txt", "\u{feff}mine\r\n"), ("scripts/older.txt", "mine"), ("LICENSE", "")] {
        fs::write(project.join(path), text).unwrap();
    }
    fs::set_permissions(project.join("notes.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    symlink("nowhere", project.join("link")).unwrap();
    let before = tree(&project);
    let out = output_in(&home, home.path(), &["init", "p"]);
    let after = tree(&project);
    for (path, bytes) in &before {
        assert_eq!(after.get(path), Some(bytes), "{path}");
    }
    assert_eq!(project.join("notes.txt").metadata().unwrap().permissions().mode() & 0o777, 0o640);
    let new: Vec<&String> = after.keys().filter(|path| !before.contains_key(*path) && !path.ends_with('/')).collect();
    for path in new {
        let listed = out
            .lines()
            .any(|line| line == path || line.contains("/ (") && path.starts_with(line.split(" (").next().unwrap()));
        assert!(listed, "{path} was written and is not in the list:\n{out}");
    }
}

#[test]
fn an_existing_project_file_is_reported_and_nothing_is_written() {
    type Create = fn(&Path);
    let table: [(&str, Create); 6] = [
        (".vscode", |p| symlink("nowhere", p.join(".vscode")).unwrap()),
        ("tests/first_talk.yaml", |p| {
            fs::create_dir(p.join("tests")).unwrap();
            fs::write(p.join("tests/first_talk.yaml"), "mine").unwrap();
        }),
        ("scripts", |p| fs::write(p.join("scripts"), "a file").unwrap()),
        ("skills", |p| symlink("nowhere", p.join("skills")).unwrap()),
        ("schemas", |p| symlink("..", p.join("schemas")).unwrap()),
        ("_system/config/custom/own/ai_say_v1.md", |p| {
            fs::create_dir_all(p.join("_system/config/custom/own/ai_say_v1.md")).unwrap();
        }),
    ];
    for (path, create) in table {
        let home = Home::new();
        let project = home.path().join("p");
        fs::create_dir(&project).unwrap();
        create(&project);
        let before = tree(home.path());
        fails_in(&home, home.path(), &["init", "p"], 2, &[path, "nothing was written", "help: "]);
        assert_eq!(tree(home.path()), before, "{path}");
    }
}

#[test]
fn existing_files_of_a_repository_stay_and_are_reported() {
    let home = Home::new();
    let project = home.path().join("p");
    fs::create_dir(&project).unwrap();
    fs::write(project.join("README.md"), "mine").unwrap();
    fs::write(project.join(".gitignore"), "target/\n").unwrap();
    let finished = run_in(&home, home.path(), &["init", "p"], "");
    assert_eq!(finished.code, Some(0), "{}", finished.err);
    for name in ["README.md", ".gitignore"] {
        assert!(finished.err.contains(&format!("{name} already exists and was not changed")), "{}", finished.err);
        assert!(!finished.out.lines().any(|line| line == name), "{}", finished.out);
    }
    assert!(finished.err.contains("`.bcc/`"), "{}", finished.err);
    assert_eq!(fs::read_to_string(project.join("README.md")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(project.join(".gitignore")).unwrap(), "target/\n");
    output_in(&home, &project, &["test"]);
}

#[test]
fn an_interrupted_init_is_continued() {
    let home = Home::new();
    let project = project(&home, "en");
    let complete = tree(&project);
    // The state after a killed `init`: the configuration is written last.
    for gone in ["bcc-script.toml", "tests/quiet_guest.yaml", ".gitignore"] {
        fs::remove_file(project.join(gone)).unwrap();
    }
    fs::remove_dir_all(project.join("schemas")).unwrap();
    output_in(&home, home.path(), &["init", "p", "--lang", "en"]);
    assert_eq!(tree(&project), complete);
    // Files that were changed since are the user's.
    fs::remove_file(project.join("bcc-script.toml")).unwrap();
    fs::write(project.join("scripts/first_talk.yaml"), "mine").unwrap();
    fails_in(&home, home.path(), &["init", "p", "--lang", "en"], 2, &["already has scripts/first_talk.yaml"]);
    assert!(!project.join("bcc-script.toml").exists());
}

#[test]
fn a_project_is_not_created_over_or_inside_another() {
    let home = Home::new();
    let project = project(&home, "en");
    let before = tree(home.path());
    fails_in(&home, home.path(), &["init", "p"], 2, &["p already contains a project", "bcc-script new script"]);
    fails_in(&home, &project, &["init"], 2, &["already contains a project"]);
    fails_in(&home, &project, &["init", "inner/deep"], 2, &["is inside the project", "--nested"]);
    fails_in(&home, &project.join("scripts"), &["init"], 2, &["is inside the project"]);
    assert_eq!(tree(home.path()), before);
    output_in(&home, &project, &["init", "inner/deep", "--nested"]);
    output_in(&home, &project.join("inner/deep"), &["test"]);
}

#[test]
fn an_unusable_directory_is_rejected_and_nothing_is_created() {
    let home = Home::new();
    home.file("file", "");
    symlink("nowhere", home.path().join("dangling")).unwrap();
    let before = tree(home.path());
    let table: [(&[&str], &str); 9] = [
        (&["file"], "file is a file, but"),
        (&["file/below"], "file is a file, so"),
        (&["dangling"], "dangling is a broken link"),
        (&["dangling/below"], "dangling is a broken link"),
        (&[""], "value is required"),
        (&["p", "--scheme", "../out"], "is a path"),
        (&["p", "--scheme", ""], "empty"),
        (&["p", "--scheme", "default"], "no other scheme can use it"),
        (&["p", "--lang", "fr"], "fr"),
    ];
    for (arguments, reason) in table {
        let command: Vec<&str> = std::iter::once("init").chain(arguments.iter().copied()).collect();
        fails_in(&home, home.path(), &command, 2, &[reason]);
        assert_eq!(tree(home.path()), before, "{arguments:?}");
    }
    let finished = home.finish([OsStr::new("init"), OsStr::from_bytes(b"caf\xe9")], "");
    assert_eq!(finished.code, Some(2));
    assert!(finished.err.contains("not UTF-8"), "{}", finished.err);
    assert_eq!(tree(home.path()), before);
}

#[test]
fn a_read_only_directory_is_reported_and_not_changed() {
    let home = Home::new();
    // No user can create a directory there.
    if Path::new("/proc/self").is_dir() {
        let expected = ["cannot be written", "no files were left behind"];
        fails_in(&home, home.path(), &["init", "/proc/bcc-project"], 1, &expected);
    }
    let locked = home.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    // Root can write here, too.
    let may_write = fs::write(locked.join("probe"), "").is_ok();
    let _ = fs::remove_file(locked.join("probe"));
    if !may_write {
        fails_in(&home, home.path(), &["init", "locked"], 1, &["cannot be written", "no files were left behind"]);
        fails_in(&home, home.path(), &["init", "locked/new"], 1, &["cannot be written"]);
    } else {
        eprintln!("SKIPPED: this user may write to any directory, so a locked one tells nothing");
    }
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(tree(&locked), BTreeMap::new());
}

#[test]
fn a_failed_init_removes_the_files_that_it_created() {
    let home = Home::new();
    // So deep that the paths of the first files are just within the limit, and those of the templates are not.
    let mut deep = home.path().to_path_buf();
    while deep.as_os_str().len() < 4050 {
        let rest = 4050 - deep.as_os_str().len() - 1;
        deep.push("x".repeat(rest.min(if rest > 202 && rest < 404 { 202 } else { 200 })));
    }
    assert_eq!(deep.as_os_str().len(), 4050);
    fs::create_dir_all(&deep).unwrap();
    let finished = home.finish(["init", deep.to_str().unwrap()], "");
    assert_eq!(finished.code, Some(1), "{}", finished.err);
    assert!(finished.err.contains("no files were left behind") && finished.err.contains("_system"), "{}", finished.err);
    assert_eq!(fs::read_dir(&deep).unwrap().count(), 0);
}

#[test]
fn the_three_next_commands_are_printed_and_work() {
    let home = Home::new();
    let directory = "两 个's";
    let out = output_in(&home, home.path(), &["init", directory]);
    let (_, next) = out.split_once("\n\n").unwrap();
    let commands: Vec<&str> = next.lines().skip(1).map(str::trim).collect();
    let (cd, commands) = commands.split_first().unwrap();
    assert!(cd.starts_with("cd "), "{next}");
    assert_eq!(commands, ["bcc-script run scripts/first_talk.yaml", "bcc-script validate", "bcc-script test"]);
    let program = Path::new(env!("CARGO_BIN_EXE_bcc-script")).parent().unwrap();
    let line = format!("PATH={}:$PATH; {cd} && {}", program.display(), commands.join(" && "));
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &line]).env_clear().envs(home.variables()).current_dir(home.path());
    let mut running = Running::start(command);
    running.feed(b"Ann\n9\n".to_vec());
    let finished = running.finish();
    assert_eq!(finished.code, Some(0), "{line}\n{}\n{}", finished.out, finished.err);
    // In the current directory, no `cd` command is shown.
    fs::create_dir(home.path().join("here")).unwrap();
    let out = output_in(&home, &home.path().join("here"), &["init", "."]);
    assert!(!out.contains("cd "), "{out}");
}
