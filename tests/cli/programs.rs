//! Tests of `run` for other programs: through pipes and with `--json`.

use crate::process;
mod budgets;
mod detours;
mod exit_codes;
mod find_sessions;
mod json_lines;
mod kept_sessions;
mod memory;
mod output_errors;
mod piped;
mod stops;
mod variables;
mod words_are_data;

use serde_json::{Value, json};

use process::{Finished, Home};

/// Answers that complete `two_phases.yaml`.
const ANSWERS: &str = "小林\n35\n芝麻开门\n从前\n";

/// Runs `two_phases.yaml` as session `t` with these arguments and this input.
fn talk(home: &Home, arguments: &[&str], input: impl AsRef<[u8]>) -> Finished {
    run(home, "two_phases.yaml", arguments, input)
}

fn run(home: &Home, script: &str, arguments: &[&str], input: impl AsRef<[u8]>) -> Finished {
    let script = home.script(script).display().to_string();
    let fixed = ["run", &script, "--session", "t"];
    home.finish(fixed.iter().chain(arguments), input)
}

fn sessions(home: &Home, arguments: &[&str]) -> Finished {
    home.finish(["sessions"].iter().chain(arguments), "")
}

/// The messages of the user in the session `t`.
fn user_messages(home: &Home) -> Vec<String> {
    let transcript = home.export("t")["transcript"].clone();
    let messages = transcript.as_array().unwrap().iter().filter(|message| message["role"] == "user");
    messages.map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

fn answer(text: &str, id: &str) -> String {
    json!({ "user": text, "answer_id": id }).to_string()
}
