//! Sessions with the server of a model that turns hostile in the middle: they stop resumably or continue, and nothing of the key leaves.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::attack::{Case, ensure};
use crate::clones::code::Counter;
use crate::process::Home;
use crate::program::{Ended, command, run_within};
use crate::servers::http::{ANSWERS as HOSTILE_ANSWERS, Answer, Bait, Server};
use crate::servers::replies::{COUNTS, HOSTILE, good_stream};
use crate::session_output::journal;

/// The key of the person.
pub const KEY: &str = "sk-canary-key-4f2a";

/// The longest that a command may take, with all its attempts and their pauses on a loaded machine.
const TIME: Duration = Duration::from_secs(60);

const SCRIPT: &str = r#"
session:
  session_id: talk
  declare: [{ var: name, type: string }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: ask, config: { content: "Who?", max_rounds: 1, output: [{ get: name }], monitor: "off" } }
            - { action_type: ai_ask, action_id: more, config: { content: "And {{ name }}?", max_rounds: 1, monitor: "off" } }
            - { action_type: ai_say, action_id: bye, config: { content: "Bye.", monitor: "off" } }
"#;

/// Runs a command of a trusted project with the key in its environment.
pub fn run_trusted(home: &Home, words: &[&str], input: &str) -> Result<Ended, String> {
    let mut command = command(home.path(), home.path(), words);
    command.env("TALK_KEY", KEY).env("BCC_TRUST", "1");
    let ended = run_within(command, input, TIME);
    ended.orderly()?;
    ensure(!ended.all().contains(KEY), || format!("{}: the key is shown: {}", ended.arguments, ended.all()))?;
    Ok(ended)
}

/// The key is in no file of the project.
pub fn keeps_no_key(home: &Home) -> Result<(), String> {
    for entry in fs::read_dir(home.path().join(".bcc")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(bytes) = fs::read(&path) else { continue };
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        ensure(!found, || format!("the key is in {}", path.display()))?;
    }
    Ok(())
}

/// More answers than a session can take: how many it takes depends on what the server said.
const ANSWERS: [&str; 12] = ["一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二"];

/// Runs a session, resumes it until it ends, and checks that no answer was lost, repeated or skipped. Returns how the attack ended.
pub fn survive(home: &Home, server: &Server) -> Result<String, String> {
    let lines = |given: usize| ANSWERS.iter().skip(given).map(|answer| format!("{answer}\n")).collect::<String>();
    let attacked = run_trusted(home, &["run", "talk.yaml", "--session", "s", "--json"], &lines(0))?;
    ensure(matches!(attacked.code, Some(0 | 3)), || {
        format!("{}: {:?} {}", attacked.arguments, attacked.code, attacked.err)
    })?;
    server.recover();
    let mut code = attacked.code;
    let mut attempts = 0;
    while code == Some(3) && attempts < 6 {
        attempts += 1;
        let given = answers_of(&journal(home, "s")).len();
        let resumed = run_trusted(home, &["sessions", "resume", "s", "--json"], &lines(given))?;
        ensure(matches!(resumed.code, Some(0 | 3 | 4)), || {
            format!("{}: {:?} {}", resumed.arguments, resumed.code, resumed.err)
        })?;
        code = resumed.code;
    }
    let events = journal(home, "s");
    ensure(matches!(code, Some(0 | 4)), || {
        format!("the session does not come to its end: {code:?}\n{}", last(&events))
    })?;
    for (index, event) in events.iter().enumerate() {
        ensure(event["seq"] == index + 1, || format!("event {} has the number {}", index + 1, event["seq"]))?;
    }
    let taken = answers_of(&events);
    ensure(!taken.is_empty() && ANSWERS.starts_with(&taken), || format!("answers: {taken:?}"))?;
    keeps_no_key(home)?;
    Ok(if attacked.code == Some(3) { "stopped, then the end" } else { "went on" }.to_owned())
}

fn answers_of(events: &[Value]) -> Vec<&str> {
    let messages = events.iter().filter(|event| event["type"] == "message" && event["role"] == "user");
    messages.map(|message| message["text"].as_str().unwrap()).collect()
}

fn last(events: &[Value]) -> String {
    events.iter().rev().take(4).map(|event| format!("{event}\n")).collect()
}

fn attack(case: &mut Case, answer: Answer) -> Result<String, String> {
    let elsewhere = Counter::start();
    let bait = Bait { key: KEY, elsewhere: elsewhere.address.clone(), rng: case.rng.fork() };
    let server = Server::start(case.rng.usize(..4), (answer, case.rng.usize(1..9)), good_stream, bait);
    let home = case.home();
    home.file("talk.yaml", SCRIPT);
    let more =
        *case.one_of(&["", "reask = 1\n", "repair = true\n", "structured = \"off\"\n", "structured = \"tool\"\n"]);
    home.file(
        "bcc-script.toml",
        &format!(
            "[models.default]\nprovider = \"openai\"\nbase_url = \"http://{}/v1\"\nmodel = \"m\"\napi_key_env = \"TALK_KEY\"\n\
             timeout = \"3s\"\nfirst_token_timeout = \"1s\"\nidle_timeout = \"1s\"\nmax_attempts = 2\n{more}",
            server.address
        ),
    );
    let outcome = survive(&home, &server)?;
    ensure(elsewhere.count() == 0, || "it followed a redirect".into())?;
    Ok(outcome)
}

pub fn http(case: &mut Case) -> Result<String, String> {
    let (name, answer) = *case.one_of(&HOSTILE_ANSWERS);
    let outcome = attack(case, answer).map_err(|problem| format!("{name}: {problem}"))?;
    Ok(format!("{name}: {outcome}"))
}

pub fn replies(case: &mut Case) -> Result<String, String> {
    attack(case, HOSTILE)
}

pub fn counts(case: &mut Case) -> Result<String, String> {
    attack(case, COUNTS)
}
