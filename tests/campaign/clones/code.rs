//! Configurations and stores of somebody else that want to run commands or send keys: nothing happens without trust.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::attack::{Case, ensure};
use crate::clones::project::{Project, write};
use crate::program::{command, run};

/// A listener that counts its connections.
pub struct Counter {
    pub address: String,
    connections: Arc<AtomicUsize>,
}

impl Counter {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { address, connections }
    }

    pub fn count(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A script whose only action is of this kind.
fn script(kind: &str, config: &serde_json::Value) -> String {
    let action = json!({ "action_type": kind, "action_id": "ask", "config": config });
    json!({ "session": { "session_id": "talk", "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": [action] }] }] } })
        .to_string()
}

/// A configuration that would run a command, start a kernel, or send a key to a server, if anybody trusted it.
pub fn configuration(case: &mut Case) -> Result<String, String> {
    let mut clone = Project::new(case);
    let counter = Counter::start();
    let ran = clone.outside.join("ran");
    let touch = format!("[\"/bin/sh\", \"-c\", \"env > '{0}'; echo ran >> '{0}'\"]", ran.display());
    let address = &counter.address;
    let default = format!(
        "[models.default]\nprovider = \"openai\"\nbase_url = \"http://{address}/v1\"\nmodel = \"m\"\napi_key_env = \"SECRET_TOKEN\"\n"
    );
    let offline = "[models.default]\nprovider = \"offline\"\n";
    let allow = "[project]\nallow = [\"command\", \"exec\"]\n";
    let (what, toml, script) = match case.rng.u8(..7) {
        0 => ("a command", format!("{allow}{offline}[kinds.evil]\ncommand = {touch}\n"), script("evil", &json!({}))),
        1 => {
            let kind = format!("[kinds.evil]\nskill = \"calm\"\nbefore = {{ command = {touch} }}\n");
            ("a hook", format!("{allow}{offline}{kind}"), script("evil", &json!({})))
        }
        2 => {
            let code = format!("open({:?}, 'w').write('ran')", ran.display().to_string());
            ("code", format!("{allow}{offline}"), script("exec", &json!({ "code": code })))
        }
        3 => ("a server for models", default, script("ai_ask", &json!({ "content": "x" }))),
        4 => {
            let headers = "headers = { Authorization = { env = \"SECRET_TOKEN\" } }\n";
            let proxy = format!("proxy = \"http://{address}\"\n");
            let more = if case.rng.bool() { headers } else { &proxy };
            ("headers and proxies", format!("{default}{more}"), script("ai_ask", &json!({ "content": "x" })))
        }
        5 => {
            let key = "api_key_file = \"../outside/secret.txt\"";
            let toml = default.replace("api_key_env = \"SECRET_TOKEN\"", key);
            ("a key in a file", toml, script("ai_ask", &json!({ "content": "x" })))
        }
        _ => {
            let server = format!("[behavior_servers.s]\nurl = \"http://{address}\"\ntoken_env = \"SECRET_TOKEN\"\n");
            let config = json!({ "server": "s", "target": "x" });
            ("a behavior server", format!("{offline}{server}"), script("behavior_loop", &config))
        }
    };
    clone.put("bcc-script.toml", toml);
    clone.put("scripts/talk.yaml", script);
    clone.is_ready();
    let commands: [&[&str]; 9] = [
        &["run", "scripts/talk.yaml"],
        &["run", "scripts/talk.yaml", "--json"],
        &["run", "scripts/talk.yaml", "--model", "default"],
        &["validate"],
        &["test"],
        &["models", "list"],
        &["models", "check"],
        &["doctor"],
        &["doctor", "--ask"],
    ];
    for _ in 0..3 {
        let words = *case.one_of(&commands);
        let mut command = clone.command(words);
        command.env_remove("BCC_MODEL").env_remove("OPENAI_API_KEY");
        let ended = run(command, "well\n\n");
        ended.orderly()?;
        clone.check(&ended).map_err(|problem| format!("{what}: {problem}"))?;
        let asked = counter.count();
        ensure(asked == 0, || format!("{what}: `{}` connected {asked} times to a server", words.join(" ")))?;
    }
    Ok(format!("{what}: nothing happened"))
}

/// A store that comes with the clone: its sessions name a project that the person trusts, and bring a command of their own.
pub fn foreign_store(case: &mut Case) -> Result<String, String> {
    let mut clone = Project::new(case);
    let ran = clone.outside.join("ran");
    let trusted = case.directory.join("trusted");
    let kind = |command: &str| format!("[project]\nallow = [\"command\"]\n[kinds.note]\ncommand = {command}\n");
    write(&trusted.join("bcc-script.toml"), kind("[\"/bin/true\"]"));
    write(&trusted.join("scripts/talk.yaml"), "session: {}\n");
    let trust = run(command(&trusted, &clone.person, &["trust"]), "");
    ensure(trust.code == Some(0), || format!("trust: {}", trust.err))?;

    // The stranger makes the session on another machine: it waits before its command.
    let stranger = case.directory.join("stranger");
    let evil = format!("[\"/bin/sh\", \"-c\", \"cat > /dev/null; echo ran >> '{}'; echo '{{}}'\"]", ran.display());
    let ask = json!({ "action_type": "ai_ask", "action_id": "ask", "config": { "content": "x", "delivery": "verbatim", "max_rounds": 1 } });
    let note = json!({ "action_type": "note", "action_id": "note", "config": {} });
    let script = json!({ "session": { "session_id": "talk", "phases": [{ "phase_id": "p", "topics": [
        { "topic_id": "t", "actions": [ask, note] },
    ] }] } });
    write(&stranger.join("bcc-script.toml"), kind(&evil));
    write(&stranger.join("scripts/talk.yaml"), script.to_string());
    let home = case.directory.join("home-of-the-stranger");
    let words = ["run", "scripts/talk.yaml", "--session", "s", "--trust", "--model", "offline"];
    let started = run(command(&stranger, &home, &words), "");
    ensure(started.code == Some(3), || format!("the session of the stranger: {:?} {}", started.code, started.err))?;

    let as_clone = case.rng.bool();
    let store = clone.project.join(".bcc/sessions.db");
    fs::create_dir_all(store.parent().unwrap()).unwrap();
    fs::copy(stranger.join(".bcc/sessions.db"), &store).unwrap();
    let log = stranger.join(".bcc/sessions.db-wal");
    if log.exists() {
        fs::copy(log, clone.project.join(".bcc/sessions.db-wal")).unwrap();
    }
    let named = if as_clone { &clone.project } else { &trusted };
    rename_project(&store, &stranger.canonicalize().unwrap().display().to_string(), &named.display().to_string());
    clone.put("bcc-script.toml", kind(&evil));
    clone.is_ready();
    let commands: [&[&str]; 4] = [
        &["sessions", "resume", "s"],
        &["sessions", "resume", "s", "--json"],
        &["sessions", "resume"],
        &["run", "scripts/talk.yaml", "--session", "s"],
    ];
    let words = *case.one_of(&commands);
    let ended = clone.run(words).map_err(|problem| format!("as_clone {as_clone}: {problem}"))?;
    Ok(format!(
        "{} the person trusts: {}",
        if as_clone { "not a project that" } else { "a project that" },
        ended.outcome()
    ))
}

/// Replaces one path by another in every text of the store.
fn rename_project(store: &std::path::Path, from: &str, to: &str) {
    let connection = rusqlite::Connection::open(store).unwrap();
    let names = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get("name")).unwrap().map(Result::unwrap).collect()
    };
    for table in names("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
        for column in names(&format!("PRAGMA table_info(\"{table}\")")) {
            let sql = format!(
                "UPDATE OR IGNORE \"{table}\" SET \"{column}\" = replace(\"{column}\", ?1, ?2) WHERE typeof(\"{column}\") = 'text'"
            );
            connection.execute(&sql, [from, to]).unwrap();
        }
    }
}
