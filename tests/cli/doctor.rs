//! Tests of `doctor`: it reports what works, explains how to fix what does not, and creates or writes nothing.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const SCRIPT: &str = "session:\n  session_id: s\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          \
    actions:\n            - { action_type: ai_ask, action_id: ask, config: { content: 您好？ } }\n";

/// A project with these files, and a home directory next to it.
struct Home(tempfile::TempDir);

impl Home {
    fn with(files: &[(&str, &str)]) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(home.0.path().join("project")).unwrap();
        for (name, text) in files {
            let path = home.project().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        home
    }

    fn project(&self) -> std::path::PathBuf {
        self.0.path().join("project")
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bcc-script"));
        command.args(arguments).current_dir(self.project()).env_clear();
        command.env("XDG_CONFIG_HOME", self.0.path().join("own")).env("LC_ALL", "C.UTF-8");
        command.envs(variables.iter().copied()).output().unwrap()
    }

    fn doctor(&self, variables: &[(&str, &str)]) -> Report {
        let before = all_files(self.0.path());
        let output = self.run(&["doctor", "--json"], variables);
        assert_eq!(all_files(self.0.path()), before, "doctor changed something");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document["version"], 1);
        assert_eq!(output.status.code(), Some(if document["ok"] == true { 0 } else { 1 }));
        Report(document)
    }
}

struct Report(Value);

impl Report {
    /// The lines about this item: status, message, and help.
    fn lines_about(&self, subject: &str) -> String {
        let checks = self.0["checks"].as_array().unwrap().iter().filter(|check| check["about"] == subject);
        let line = |check: &Value| {
            let text = |key: &str| check[key].as_str().unwrap_or("-").to_owned();
            format!("{}: {} | {}", text("state"), text("message"), text("help"))
        };
        checks.map(line).collect::<Vec<_>>().join("\n")
    }

    fn has(&self, subject: &str, parts: &[&str]) {
        let text = self.lines_about(subject);
        for part in parts {
            assert!(text.contains(part), "{subject}: {part} is not in\n{text}");
        }
    }

    fn ok(&self) -> bool {
        self.0["ok"] == true
    }
}

/// Every file below a directory, with its content and permissions.
fn all_files(directory: &Path) -> BTreeMap<String, (Vec<u8>, u32)> {
    let mut found = BTreeMap::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(at) = pending.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
            let bytes = if path.is_dir() { vec![] } else { std::fs::read(&path).unwrap() };
            found.insert(path.display().to_string(), (bytes, mode));
            if path.is_dir() {
                pending.push(path);
            }
        }
    }
    found
}

#[test]
fn a_directory_without_a_project_is_no_problem_and_stays_empty() {
    let home = Home::with(&[]);
    let report = home.doctor(&[]);
    assert!(report.ok());
    report.has(
        "project",
        &["note: there is no bcc-script.toml, _system/ or .bcc/ in this directory or above it", "`bcc-script init`"],
    );
    report.has("configuration", &["note: there is no bcc-script.toml"]);
    report.has("models", &["offline responder"]);
    report.has("templates", &["ok: the default templates can be rendered"]);
    report.has("store", &["ok: ", "does not exist yet"]);
    report.has("kernels", &["kernel"]);
    report.has("locale", &["ok: LC_ALL=C.UTF-8"]);
    report.has("language", &["messages are in English, because of LC_ALL=C.UTF-8; use `--lang zh` to change"]);
    for subject in ["release", "disk", "clock", "terminal"] {
        report.has(subject, &["ok: "]);
    }
}

#[test]
fn a_time_zone_that_cannot_be_found_is_a_problem() {
    let report = Home::with(&[]).doctor(&[("TZ", "Mars/Olympus")]);
    assert!(!report.ok());
    report
        .has("clock", &["problem: the time zone `Mars/Olympus` in TZ cannot be found; all times are in UTC", "tzdata"]);
    Home::with(&[]).doctor(&[("TZ", "CST-8")]).has("clock", &["ok: "]);
}

#[test]
fn a_working_project_is_reported_in_the_human_format_too() {
    let home = Home::with(&[("bcc-script.toml", "[rules]\nunused-variable = \"off\"\n"), ("scripts/s.yaml", SCRIPT)]);
    let report = home.doctor(&[("BCC_LANG", "zh")]);
    assert!(report.ok());
    report.has("project", &["ok: ", "because it has bcc-script.toml"]);
    report.has("configuration", &["ok: bcc-script.toml can be read (models: 0, rules: 1)"]);
    report
        .has("scripts", &["ok: scripts, skills, tests and templates were checked (files: 1, errors: 0, warnings: 0)"]);
    report.has("language", &["messages are in Chinese, because of BCC_LANG=zh; use `--lang en` to change"]);
    let output = home.run(&["doctor", "--offline"], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with("ok       project        ")), "{text}");
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("problems: 0, "));
    let output = home.run(&["doctor", "--lang", "zh"], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let language = text.lines().find(|line| line.contains("`--lang`"));
    assert!(
        language.is_some_and(|line| line.starts_with("正常") && line.ends_with("消息使用中文（由 `--lang` 指定）")),
        "{text}"
    );
    let output = home.run(&["doctor", "--lang", "en"], &[("BCC_LANG", "en")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("messages are in English, as specified by `--lang`"), "{text}");
    assert_eq!(home.run(&["doctor", "--offline", "--ask"], &[]).status.code(), Some(2));
}

#[test]
fn errors_of_scripts_are_counted() {
    let home = Home::with(&[("scripts/s.yaml", &SCRIPT.replace("content", "contend"))]);
    let report = home.doctor(&[("BCC_PROJECT", ".")]);
    assert!(!report.ok());
    report.has("project", &["as specified by `BCC_PROJECT`"]);
    report.has("scripts", &["problem: ", "errors: 1", "`bcc-script validate` shows them"]);
}

#[test]
fn a_broken_configuration_is_reported_and_everything_else_is_checked() {
    for (text, part) in [
        ("[models", "unclosed table"),
        ("[project]\nschem = \"x\"\n", "did you mean `scheme`?"),
        ("[models.a]\nprovider = \"openai\"\napi_key = \"geheim-0123456789\"\n", "line 3"),
        ("[models.a]\nbase_url = \"http://ann:geheim@host/v1\n", "line 2, column "),
        ("[rules]\nunusd-variable = \"off\"\n", "did you mean `unused-variable`?"),
        ("[rules]\nunused-variable = \"of\"\n", "line 2: `unused-variable` cannot be set to `of`"),
    ] {
        let home = Home::with(&[("bcc-script.toml", text), ("scripts/s.yaml", SCRIPT)]);
        let report = home.doctor(&[]);
        assert!(!report.ok());
        report.has("configuration", &["problem: ", part]);
        report.has("models", &["note: the models are unknown"]);
        report.has("store", &["does not exist yet"]);
        assert!(!report.0.to_string().contains("geheim"), "{}", report.0);
        let json = ["validate", "--format", "json"];
        for arguments in [["doctor"].as_slice(), &["validate"], &json, &["run", "scripts/s.yaml"]] {
            let output = home.run(arguments, &[]);
            let (stdout, stderr) =
                (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
            assert!(!stdout.contains("geheim") && !stderr.contains("geheim"), "{arguments:?}\n{stdout}\n{stderr}");
            assert_ne!(output.status.code(), Some(0), "{arguments:?}: {text}");
        }
    }
}

#[test]
fn keys_trust_and_permissions_of_key_files_are_reported_and_no_key_is_shown() {
    let toml = "[models.a]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"q\"\napi_key_file = \"key.txt\"\n\
        [models.b]\nprovider = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"q\"\napi_key_env = \"B_KEY\"\n\
        [tools.web_search]\nprovider = \"brave\"\napi_key_file = \"key.txt\"\n\
        [mcp_servers.files]\nurl = \"http://127.0.0.1:9/mcp\"\napi_key_file = \"key.txt\"\n";
    let home = Home::with(&[("bcc-script.toml", toml), ("key.txt", "geheim-0123456789")]);
    let key = home.project().join("key.txt");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let report = home.doctor(&[]);
    report.has(
        "configuration",
        &["problem: other users of this machine can read the key of model `a` in key.txt", "chmod 600"],
    );
    report.has("configuration", &["can read the key of the search provider `brave` in key.txt"]);
    report.has("configuration", &["can read the key of the server `files` in key.txt"]);
    report
        .has("trust", &["problem: bcc-script.toml is not trusted", "`a` at http://127.0.0.1:9", "`bcc-script trust "]);
    report.has(
        "models",
        &["model `a` (openai q) has a key, from key.txt", "problem: model `b` (openai q) has no key: B_KEY is missing"],
    );
    report.has("models", &["note: it was not checked whether the models answer", "doctor --ask", "models check"]);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(home.run(&["trust"], &[]).status.code(), Some(0));
    let report = home.doctor(&[("B_KEY", "geheim-9876543210")]);
    assert!(report.ok(), "{}", report.0);
    report.has("trust", &["ok: bcc-script.toml is trusted"]);
    assert!(!report.0.to_string().contains("geheim"), "{}", report.0);
    // No server listens on this port: the request is made, and its error is reported.
    let output = home.run(&["doctor", "--ask"], &[("B_KEY", "geheim-9876543210")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("model `b` cannot be used: "), "{text}");
    assert!(!text.contains("geheim"), "{text}");
}

#[test]
fn whom_the_server_lets_in_is_reported() {
    let token = format!("[serve.tokens.front]\nrole = \"talk\"\nsha256 = \"{}\"\n", "0".repeat(64));
    let public = "[serve]\naddress = \"0.0.0.0:8711\"\n";
    for (toml, found) in [
        (
            "[serve]\nrequests_per_minute = 60\n".to_owned(),
            "ok: `serve` listens at 127.0.0.1:8711; everybody on this machine",
        ),
        (
            public.to_owned(),
            "problem: `serve` does not start: other machines can reach 0.0.0.0:8711, and there are no tokens",
        ),
        (public.to_owned() + &token, "ok: `serve` listens at 0.0.0.0:8711, for the owners of 1 tokens"),
    ] {
        Home::with(&[("bcc-script.toml", &toml)]).doctor(&[]).has("configuration", &[found]);
    }
}

#[test]
fn templates_that_do_not_render_and_missing_schemes_are_reported() {
    let home = Home::with(&[
        ("bcc-script.toml", "[project]\nscheme = \"nowhere\"\n"),
        ("_system/config/custom/mine/ai_ask_v1.md", "{% if %}"),
    ]);
    let report = home.doctor(&[]);
    assert!(!report.ok());
    report.has(
        "templates",
        &["ok: the default templates", "problem: the scheme `mine`: ", "problem: the scheme `nowhere`: "],
    );
}

#[test]
fn other_files_next_to_the_schemes_are_no_problem() {
    let custom = "_system/config/custom";
    let home = Home::with(&[
        (&format!("{custom}/.DS_Store"), "x"),
        (&format!("{custom}/README.md"), "for people"),
        (&format!("{custom}/.git/HEAD"), "x"),
        (&format!("{custom}/.gentle.0123456789abcdef/ai_ask_v1.md"), "{% if %}"),
        (&format!("{custom}/mine/ai_say_v1.md"), "Say it."),
    ]);
    std::fs::create_dir(home.project().join(custom).join("empty")).unwrap();
    let report = home.doctor(&[]);
    let text = report.lines_about("templates");
    assert!(!text.contains("problem: "), "{text}");
    report.has(
        "templates",
        &["note: _system/config/custom/empty: it contains no template", "ok: the scheme `mine` can be"],
    );
    assert_eq!(text.lines().count(), 3, "{text}");
    // A file that makes a scheme unreadable is a problem.
    std::fs::create_dir(home.project().join(custom).join("torn")).unwrap();
    std::fs::write(home.project().join(custom).join("torn/ai_ask_v1.md"), [0xff, 0xfe]).unwrap();
    let report = home.doctor(&[]);
    assert!(!report.ok());
    report.has("templates", &["problem: the scheme `torn`: "]);
}

#[test]
fn allowed_permissions_without_trust_are_reported() {
    let home = Home::with(&[("bcc-script.toml", "[project]\nallow = [\"exec\"]\n")]);
    let report = home.doctor(&[]);
    assert!(!report.ok());
    report.has(
        "trust",
        &[
            "problem: bcc-script.toml is not trusted, so the permissions that `[project] allow` grants to scripts",
            "`bcc-script trust ",
        ],
    );
    let listed = home.run(&["models", "list"], &[]);
    let stderr = String::from_utf8(listed.stderr).unwrap();
    assert!(stderr.contains("the permissions it grants to scripts are ignored"), "{stderr}");
    assert_eq!(home.run(&["trust"], &[]).status.code(), Some(0));
    home.doctor(&[]).has("trust", &["ok: bcc-script.toml is trusted"]);
}

#[test]
fn commands_that_are_shown_can_be_pasted() {
    let home = Home::with(&[("a 'b'/bcc-script.toml", "[project]\nallow = [\"exec\"]\n")]);
    let output = home.run(&["doctor", "--project", "a 'b'"], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let command = text.split("`bcc-script trust ").nth(1).unwrap().split('`').next().unwrap();
    assert!(command.starts_with('\'') && command.ends_with("b'\\'''"), "{command}");
}

#[test]
fn sessions_are_counted_and_a_stale_lock_does_not_block() {
    let home = Home::with(&[("scripts/s.yaml", SCRIPT)]);
    std::fs::create_dir(home.project().join(".bcc")).unwrap();
    let output = home.run(&["run", "scripts/s.yaml", "--session", "one"], &[]);
    // The process waits for an answer.
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let report = home.doctor(&[]);
    report.has("store", &["ok: ", "sessions: 1 (1 waiting_input)"]);
    let locks = home.project().join(".bcc/sessions.db.locks");
    std::fs::create_dir_all(&locks).unwrap();
    std::fs::write(locks.join("0.lock"), "pid 4294967294 (2026-01-01T00:00:00Z)").unwrap();
    std::fs::write(locks.join("1.lock"), format!("pid {} (2026-01-01T00:00:00Z)", std::process::id())).unwrap();
    let report = home.doctor(&[]);
    if Path::new("/proc/self").exists() {
        report.has("store", &["note: pid 4294967294 (2026-01-01T00:00:00Z) left a lock behind"]);
    }
    report.has("store", &[&format!("note: a session is in use by pid {}", std::process::id())]);
}

#[test]
fn an_unreadable_store_is_reported_and_not_changed() {
    let home = Home::with(&[(".bcc/sessions.db", "this is no database, and longer than nothing at all")]);
    let report = home.doctor(&[]);
    assert!(!report.ok());
    report.has("store", &["problem: ", "cannot be read", "another store with `--store` or BCC_STORE"]);
    let home = Home::with(&[("scripts/s.yaml", SCRIPT)]);
    let store = home.0.path().join("store.db");
    assert_eq!(home.run(&["run", "scripts/s.yaml", "--store", store.to_str().unwrap()], &[]).status.code(), Some(3));
    // The version of a later release.
    rusqlite::Connection::open(&store).unwrap().execute_batch("PRAGMA user_version = 9999").unwrap();
    let report = home.doctor(&[("BCC_STORE", store.to_str().unwrap())]);
    assert!(!report.ok());
    report.has("store", &["has layout 9999", "install the release that wrote it"]);
    std::fs::remove_file(&store).unwrap();
    std::fs::create_dir(&store).unwrap();
    home.doctor(&[("BCC_STORE", store.to_str().unwrap())]).has("store", &["problem: "]);
}

#[test]
fn schemas_of_another_release_are_reported_with_how_to_update_them() {
    let home = Home::with(&[("schemas/script.schema.json", "{}")]);
    let report = home.doctor(&[]);
    report.has(
        "editors",
        &["note: schemas/script.schema.json does not match this release", "schema script > schemas/script.schema.json"],
    );
    let schema = home.run(&["schema", "script"], &[]).stdout;
    std::fs::write(home.project().join("schemas/script.schema.json"), schema).unwrap();
    let report = home.doctor(&[]);
    assert_eq!(report.lines_about("editors"), "ok: the schemas for `script` match this release | -");
}

#[test]
fn a_missing_project_is_reported() {
    let home = Home::with(&[]);
    let output = home.run(&["doctor", "--project", "nowhere"], &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("problem  project") && text.contains("help: fix `--project`"), "{text}");
}
