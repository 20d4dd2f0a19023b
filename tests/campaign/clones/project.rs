//! A clone next to what it must not touch: files outside of it with a canary, and an environment with another one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ROOT;
use crate::attack::{Case, ensure};
use crate::program::{Ended, command, run};

/// Stands in files outside of the project.
pub const FILE_CANARY: &str = "canary-of-a-file-5b1f";

/// Stands in the environment of the person.
pub const ENVIRONMENT_CANARY: &str = "canary-of-the-environment-77c0";

pub struct Project {
    pub project: PathBuf,
    pub outside: PathBuf,
    /// The person's own configuration.
    pub person: PathBuf,
    before: Vec<String>,
}

const SCRIPT: &str = r#"
session:
  session_id: talk
  declare: [{ var: name, type: string }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: "How are you?", max_rounds: 1, output: [{ get: name }] } }
            - { action_type: use_skill, action_id: call, config: { skill: calm } }
            - { action_type: ai_say, action_id: bye, config: { content: "Bye, {{ name }}." } }
"#;

const SKILL: &str = r#"
skill:
  skill_id: calm
  actions:
    - { action_type: ai_say, action_id: calming, config: { content: "Slowly.", delivery: verbatim } }
"#;

const TEST: &str = r#"
test: asks how the person is
script: ../scripts/talk.yaml
snapshot: [transcript]
dialogue:
  - ai: { contains: "How are you?" }
  - user: well
"#;

impl Project {
    pub fn new(case: &Case) -> Self {
        let [project, outside, person] = ["project", "outside", "person"].map(|name| case.directory.join(name));
        let clone = Self { project, outside, person, before: Vec::new() };
        let template = fs::read(format!("{ROOT}/_system/config/default/ai_ask_v1.md")).unwrap();
        let schema = fs::read(format!("{ROOT}/schemas/replies/ai_ask.json")).unwrap();
        clone.put("bcc-script.toml", "[models.default]\nprovider = \"offline\"\n");
        clone.put("scripts/talk.yaml", SCRIPT);
        clone.put("skills/calm.yaml", SKILL);
        clone.put("tests/t.yaml", TEST);
        clone.put("_system/config/default/ai_ask_v1.md", template);
        clone.put("schemas/replies/ai_ask.json", schema);
        fs::create_dir_all(clone.person.join("config")).unwrap();
        // What a link can lead to: a text, and a folder with the names of the project.
        let canary = format!("# {FILE_CANARY}\nsecret: {FILE_CANARY}\n");
        for name in
            ["secret.txt", "folder/secret.yaml", "folder/calm.yaml", "folder/t.yaml", "folder/replies/ai_ask.json"]
        {
            write(&clone.outside.join(name), &canary);
        }
        write(&clone.outside.join("folder/config/default/ai_ask_v1.md"), &canary);
        clone
    }

    pub fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        write(&self.project.join(name), text);
    }

    /// Remembers what is outside of the project; from here on, nothing there may change.
    pub fn is_ready(&mut self) {
        self.before = listing(&self.outside);
    }

    pub fn command(&self, words: &[impl AsRef<std::ffi::OsStr>]) -> Command {
        let mut command = command(&self.project, &self.person, words);
        command.env("OPENAI_API_KEY", ENVIRONMENT_CANARY).env("SECRET_TOKEN", ENVIRONMENT_CANARY);
        command.env("BCC_MODEL", "offline");
        command
    }

    /// Runs a command of the person, and checks that it ended well and neither showed nor changed anything outside of the project.
    pub fn run(&self, words: &[impl AsRef<std::ffi::OsStr>]) -> Result<Ended, String> {
        let ended = run(self.command(words), "fine\nwell\n\n");
        ended.orderly()?;
        self.check(&ended)?;
        Ok(ended)
    }

    pub fn check(&self, ended: &Ended) -> Result<(), String> {
        for canary in [FILE_CANARY, ENVIRONMENT_CANARY] {
            ensure(!ended.all().contains(canary), || format!("{}: {canary} in {}", ended.arguments, ended.all()))?;
        }
        let after = listing(&self.outside);
        ensure(after == self.before, || {
            let differences: Vec<&String> = after.iter().filter(|line| !self.before.contains(line)).collect();
            format!("{} changed something outside of the project: {differences:?}", ended.arguments)
        })?;
        ensure(!holds_canary(&self.project), || format!("{} copied a canary into the project", ended.arguments))
    }

    /// Runs a few of the commands that a person would run, in any order.
    pub fn explore(&self, case: &mut Case, count: usize) -> Result<usize, String> {
        let mut failed = 0;
        for _ in 0..count {
            let words = *case.one_of(&COMMANDS);
            failed += usize::from(self.run(words)?.code != Some(0));
        }
        Ok(failed)
    }
}

/// What a person runs in a project.
const COMMANDS: [&[&str]; 24] = [
    &["validate"],
    &["validate", "--fix"],
    &["validate", "--format", "json"],
    &["test"],
    &["test", "--update"],
    &["run", "scripts/talk.yaml"],
    &["run", "scripts/talk.yaml", "--session", "s"],
    &["run", "scripts/talk.yaml", "--json", "--session", "j"],
    &["run", "scripts/talk.yaml", "--record", "recording.jsonl"],
    &["sessions", "list"],
    &["sessions", "show", "s", "--calls"],
    &["sessions", "export", "s", "--calls"],
    &["sessions", "export", "s", "-o", "out.md"],
    &["sessions", "resume"],
    &["sessions", "delete", "s"],
    &["sessions", "prune", "--older-than", "0s"],
    &["templates", "list"],
    &["templates", "show", "ai_ask"],
    &["templates", "render", "--script", "scripts/talk.yaml", "--action", "ask"],
    &["templates", "check"],
    &["migrate", "--write"],
    &["graph", "scripts/talk.yaml"],
    &["models", "list"],
    &["doctor"],
];

pub fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// All files below a directory, with their kind, permissions and content.
fn listing(directory: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for path in all(directory) {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = metadata.permissions().mode();
        let content = if metadata.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        lines.push(format!("{} {mode:o} {}", path.display(), String::from_utf8_lossy(&content)));
    }
    lines
}

/// Everything below a directory, sorted. Links are not followed.
fn all(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

/// Whether a file of the project, such as its store, holds a canary.
fn holds_canary(project: &Path) -> bool {
    let holds = |bytes: &[u8], canary: &str| bytes.windows(canary.len()).any(|window| window == canary.as_bytes());
    all(project).iter().any(|path| {
        let small = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() < 2_000_000);
        small && fs::read(path).is_ok_and(|bytes| holds(&bytes, FILE_CANARY) || holds(&bytes, ENVIRONMENT_CANARY))
    })
}
