//! Names with control characters, bidi overrides, line breaks and dashes: reports show them, and obey none of them.

use std::fs;

use serde_json::json;

use crate::attack::{Case, ensure};
use crate::clones::project::Project;
use crate::program::Ended;

const NAMES: [&str; 10] = [
    "\u{1b}]0;title\u{7}\u{1b}[2J\u{1b}[31m",
    "\u{9b}2J\u{9d}0;title\u{9c}",
    "\u{202e}txt.exe\u{202c}",
    "\u{2066}abc\u{2069}\u{200f}",
    "one\nerror: two",
    "one\rtwo",
    "-x",
    "--help",
    "../../outside/secret",
    "a\u{8}\u{8}\u{7f}\u{0b}b",
];

/// What a report may not contain: it would be obeyed by a terminal, or change the order of what is read.
fn obeyed(text: &str) -> Option<char> {
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    text.chars().find(|c| control(*c) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
}

fn harmless(ended: &Ended) -> Result<(), String> {
    for (stream, text) in [("standard output", &ended.out), ("standard error", &ended.err)] {
        if let Some(c) = obeyed(text) {
            let line = text.lines().find(|line| line.contains(c)).unwrap_or_default();
            return Err(format!("{}: {c:?} on {stream}: {line:?}", ended.arguments));
        }
    }
    Ok(())
}

pub fn names(case: &mut Case) -> Result<String, String> {
    let mut clone = Project::new(case);
    let name = *case.one_of(&NAMES);
    let place = case.rng.u8(..7);
    let action = json!({ "action_type": "ai_ask", "action_id": if place == 0 { name } else { "ask" },
        "config": { "content": if place == 1 { name } else { "x" }, "max_rounds": 1,
                    "output": [{ "get": if place == 2 { name } else { "n" } }] } });
    let script = json!({ "session": { "session_id": if place == 3 { name } else { "talk" },
        "phases": [{ "phase_id": "p", "phase_name": name, "topics": [
            { "topic_id": "t", "topic_name": name, (if place == 4 { name } else { "strategy" }): {}, "actions": [action] },
        ] }] } });
    clone.put("scripts/talk.yaml", script.to_string());
    if place == 5 {
        let file = name.replace('/', "_");
        clone.put(&format!("scripts/{file}.yaml"), "session: { session_id: [] }");
        clone.put(&format!("tests/{file}.yaml"), format!("test: {}\nscript: {}\n", json!(name), json!(name)));
        clone.put(&format!("_system/config/custom/{file}/ai_ask_v1.md"), "{{ nothing_of_this_name }}");
    }
    if place == 6 {
        clone.put("bcc-script.toml", format!("[models.{0}]\nprovider = {0}\n[kinds.{0}]\n", json!(name)));
    }
    fs::create_dir_all(clone.project.join(".bcc")).unwrap();
    clone.is_ready();
    let context = |problem| format!("{name:?} at place {place}: {problem}");
    let session = if case.rng.bool() { format!("--session={name}") } else { "--session=s".to_owned() };
    // What the session itself says is not a report.
    let run = clone.run(&["run", "scripts/talk.yaml", &session]).map_err(context)?;
    ensure(!(session.starts_with("--session=-") && run.code == Some(0)), || context("a session of this name".into()))?;
    let commands: [&[&str]; 11] = [
        &["validate"],
        &["test"],
        &["sessions", "list"],
        &["sessions", "show", "s"],
        &["sessions", "show", name],
        &["sessions", "delete", name],
        &["graph", "scripts/talk.yaml"],
        &["templates", "list"],
        &["models", "list"],
        &["doctor"],
        &["migrate"],
    ];
    for _ in 0..3 {
        let words = *case.one_of(&commands);
        harmless(&clone.run(words).map_err(context)?).map_err(context)?;
    }
    Ok("shown".to_owned())
}
