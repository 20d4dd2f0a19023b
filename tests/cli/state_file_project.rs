//! A project with a workflow state file, as the tests of state files use it.

use std::fs;

use serde_json::Value;

use crate::process::{Finished, Home};

pub const RUN: [&str; 3] = ["run", "w.json", "--trust"];
pub const WATCH: [&str; 5] = ["run", "w.json", "--trust", "--json", "--wait"];

/// A project that allows commands, with this state file.
pub fn project(file: &Value) -> Home {
    let home = Home::new();
    home.put("bcc-script.toml", "[project]\nallow = [\"command\"]\n");
    home.put("w.json", serde_json::to_string_pretty(file).unwrap());
    home
}

pub fn text(home: &Home) -> String {
    fs::read_to_string(home.path().join("w.json")).unwrap()
}

pub fn file(home: &Home) -> Value {
    serde_json::from_str(&text(home)).unwrap()
}

/// Changes the file as an editor does. Returns its new text.
pub fn edit(home: &Home, change: impl FnOnce(&mut Value)) -> String {
    let mut file = file(home);
    change(&mut file);
    let text = serde_json::to_string_pretty(&file).unwrap();
    home.put("w.json", &text);
    text
}

/// The lines that the steps have written.
pub fn log(home: &Home) -> Vec<String> {
    fs::read_to_string(home.path().join("log")).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The statuses of the sessions, newest first.
pub fn sessions(home: &Home) -> Vec<String> {
    let listed = home.finish(["sessions", "list"], "");
    listed.out.lines().filter_map(|line| line.split('\t').nth(1)).map(str::to_owned).collect()
}

pub fn code(finished: &Finished, expected: i32) {
    assert_eq!(finished.code, Some(expected), "{finished:?}");
}
