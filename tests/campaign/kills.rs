//! Kills: of a conversation, of its process group while a command runs, of the migration of an old store; and races for one session.

use std::fs;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::ROOT;
use crate::attack::{Attack, Case, ensure};
use crate::client::{End, Plan, SESSION};
use crate::process::{Home, Next, Running, TIMEOUT};
use crate::session_output::journal;
use crate::talks::Talk;

pub const ATTACKS: &[Attack] = &[
    Attack { name: "kills/talk", run: talk },
    Attack { name: "kills/talk", run: talk },
    Attack { name: "kills/command", run: command },
    Attack { name: "kills/migration", run: migration },
    Attack { name: "kills/race", run: race },
    Attack { name: "kills/creation", run: creation },
];

/// A conversation that is killed a few times at random moments comes to the same end as one that is not.
fn talk(case: &mut Case) -> Result<String, String> {
    let talk = Talk::choose(case);
    let home = case.home();
    let mut client = talk.client(&home);
    let rng = &mut case.rng;
    for _ in 0..rng.usize(1..5) {
        let micros = |rng: &mut fastrand::Rng, most: u64| Duration::from_micros(rng.u64(..most));
        let plan = match rng.u8(..6) {
            0 => Plan::After(micros(rng, 150_000)),
            1 => Plan::Unread(micros(rng, 200_000)),
            2 => Plan::AfterOwnMessage,
            3 => Plan::AfterAnswer(micros(rng, 10_000)),
            _ => Plan::AfterLines(1 + rng.usize(..30), micros(rng, 1_500)),
        };
        client.by_run = rng.u8(..4) == 0;
        client.resends = rng.u8(..4) == 0;
        client.loses_unread_output = rng.bool();
        if client.run_process(&plan) == End::Completed {
            break;
        }
    }
    client.by_run = false;
    let kills = client.kills;
    talk.complete(&mut client, &home)?;
    Ok(format!("the same end after {} kills", if kills > 2 { "3 or more".to_owned() } else { kills.to_string() }))
}

/// How a conversation with a process ended.
#[derive(PartialEq)]
enum Ended {
    Killed,
    Itself(Option<i32>, String),
}

/// Answers every question until the process ends or is killed at this time.
fn converse(mut running: Running, kill_at: Option<Instant>, group: bool, answer: impl Fn(&Value) -> String) -> Ended {
    loop {
        match running.line_until(kill_at.unwrap_or_else(|| Instant::now() + TIMEOUT)) {
            Next::Line(line) => {
                let event: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                if event["type"] == "waiting" {
                    running.send(&json!({ "user": answer(&event), "answer_id": event["answer_id"] }).to_string());
                }
            }
            Next::End => {
                let finished = running.finish();
                return Ended::Itself(finished.code, finished.err);
            }
            Next::TimedOut if kill_at.is_some() => {
                if group {
                    let group = Pid::from_raw(running.id().cast_signed()).unwrap();
                    let _ = kill_process_group(group, Signal::KILL);
                }
                running.kill();
                return Ended::Killed;
            }
            Next::TimedOut => panic!("the program says nothing"),
        }
    }
}

/// The journal has no gaps, and no message or variable of one action run is there twice.
fn check_numbers(events: &[Value]) -> Result<(), String> {
    for (index, event) in events.iter().enumerate() {
        ensure(event["seq"] == index + 1, || format!("event {} has the number {}", index + 1, event["seq"]))?;
    }
    Ok(())
}

/// The commands of a conversation: each writes its name into a file when it starts.
const COMMANDS: usize = 4;

fn command_script(mode: &str) -> Value {
    let mut actions = Vec::new();
    for number in 1..=COMMANDS {
        let ask = json!({ "content": format!("问 {number}"), "delivery": "verbatim", "max_rounds": 1 });
        actions.push(json!({ "action_type": "ai_ask", "action_id": format!("ask{number}"), "config": ask }));
        let config = json!({ "name": format!("run{number}"), "output": ["n"] });
        let mut run = json!({ "action_type": "note", "action_id": format!("run{number}"), "config": config });
        run["on_interrupted"] = mode.into();
        actions.push(run);
    }
    json!({ "session": { "session_id": "commands", "declare": [{ "var": "n", "value": 0 }],
        "phases": [{ "phase_id": "p", "topics": [{ "topic_id": "t", "actions": actions }] }] } })
}

/// A conversation whose commands are interrupted by kills: without a decision, no command runs twice; with one, each was announced.
fn command(case: &mut Case) -> Result<String, String> {
    let mode = *case.one_of(&["ask", "retry", "skip"]);
    let home = case.home();
    home.file("talk.yaml", &command_script(mode).to_string());
    let pause = case.rng.usize(..4);
    home.file(
        "bcc-script.toml",
        &format!(
            "[project]\nallow = [\"command\"]\n[kinds.note]\n\
             command = [\"/bin/sh\", \"-c\", \"cat >> ran.log; echo >> ran.log; sleep 0.{pause}; echo '{{\\\"n\\\": 1}}'\"]\n"
        ),
    );
    let again = case.rng.bool();
    let answer = |event: &Value| {
        let decision = event["for"] == "interrupted_effect";
        (if !decision {
            "好"
        } else if again {
            "again"
        } else {
            "skip"
        })
        .to_owned()
    };
    let start = |first: bool| {
        let arguments: &[&str] = if first {
            &["run", "talk.yaml", "--json", "--trust", "--session", SESSION]
        } else {
            &["sessions", "resume", SESSION, "--json", "--trust"]
        };
        let mut command = home.command(arguments);
        command.process_group(0);
        Running::start(command)
    };
    // A kill while the store was made leaves a file that is no store yet.
    let stored = |home: &Home| {
        let listed = home.finish(["sessions", "list"], "");
        listed.code == Some(0) && !listed.out.is_empty()
    };
    let (mut kills, mut ended) = (0, Ended::Killed);
    while ended == Ended::Killed {
        let first = !stored(&home);
        let micros = case.rng.u64(..900_000);
        let kill_at = (kills < 6).then(|| Instant::now() + Duration::from_micros(micros));
        ended = converse(start(first), kill_at, case.rng.bool(), answer);
        kills += usize::from(ended == Ended::Killed);
    }
    match ended {
        Ended::Itself(Some(0 | 4), _) => {}
        Ended::Itself(code, err) => return Err(format!("ended with {code:?}: {err}")),
        Ended::Killed => unreachable!(),
    }
    let events = journal(&home, SESSION);
    check_numbers(&events)?;
    let answers = events.iter().filter(|event| event["type"] == "message" && event["role"] == "user").count();
    ensure(answers == COMMANDS, || format!("{answers} answers, expected {COMMANDS}"))?;
    // A command of a killed process may still write: the log is read last.
    let log = fs::read_to_string(home.path().join("ran.log")).unwrap_or_default();
    for number in 1..=COMMANDS {
        let action = format!("run{number}");
        let ran = log.matches(&format!("\"{action}\"")).count();
        let of_action = |kind: &str| {
            let is = |event: &&Value| event["type"] == kind && event["location"]["action_id"] == action.as_str();
            events.iter().filter(is).count()
        };
        let (started, finished) = (of_action("effect_started"), of_action("effect_finished"));
        ensure(ran <= started, || format!("{action} ran {ran} times and was announced {started} times"))?;
        ensure(mode != "skip" || ran <= 1, || format!("{action} ran {ran} times though nobody asked for it"))?;
        ensure(mode != "ask" || again || ran <= 1, || format!("{action} ran {ran} times though nobody wanted it"))?;
        ensure(started >= 1 && finished >= 1, || format!("{action}: {started} started, {finished} finished"))?;
    }
    Ok(format!("on_interrupted: {mode}, {} kills", if kills > 2 { "3 or more".to_owned() } else { kills.to_string() }))
}

/// The store is created by processes that are killed: it can always be listed, and the next process continues.
fn creation(case: &mut Case) -> Result<String, String> {
    let talk = Talk::choose(case);
    let home = case.home();
    let mut client = talk.client(&home);
    client.by_run = true;
    let mut unfinished = 0;
    for _ in 0..case.rng.usize(2..7) {
        if client.run_process(&Plan::After(Duration::from_micros(case.rng.u64(..60_000)))) == End::Completed {
            break;
        }
        let listed = home.finish(["sessions", "list"], "");
        ensure(listed.code == Some(0), || format!("`sessions list`: {:?} {}", listed.code, listed.err))?;
        unfinished += usize::from(listed.err.contains("no sessions yet"));
    }
    client.by_run = false;
    talk.complete(&mut client, &home)?;
    Ok(format!("the same end, unfinished store: {}", unfinished > 0))
}

/// The sessions in the store, as `sessions list` prints them.
fn list(home: &Home) -> String {
    let listed = home.finish(["sessions", "list"], "");
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    listed.out
}

fn release_file(name: &str) -> String {
    fs::read_to_string(format!("{ROOT}/tests/fixtures/release_0_1/{name}")).unwrap()
}

/// The project and the store of release 0.1.
pub fn old_project(home: &Home) {
    for name in ["bcc-script.toml", "scripts/all_kinds.yaml", "scripts/effect.yaml", "scripts/loop.yaml"] {
        home.put(name, release_file(name));
    }
    let project = home.path().canonicalize().unwrap().display().to_string();
    let sql = release_file("sessions.sql").replace("{project}", &project);
    rusqlite::Connection::open(home.store()).unwrap().execute_batch(&sql).unwrap();
}

pub fn old_answers() -> Vec<String> {
    release_file("answers.txt").lines().map(str::to_owned).collect()
}

/// Role and text of every message.
fn messages(export: &Value) -> Vec<(String, String)> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    export["transcript"].as_array().unwrap().iter().map(|line| (text(line, "role"), text(line, "text"))).collect()
}

/// The store of release 0.1 is migrated by processes that are killed, and its sessions come to the end that they had in that release.
fn migration(case: &mut Case) -> Result<String, String> {
    let home = case.home();
    old_project(&home);
    let answered = *case.one_of(&[0, 3, 4, 6]);
    let id = format!("after_{answered}");
    let answers = old_answers();
    let answer = |event: &Value| {
        let number: usize = event["answer_id"].as_str().and_then(|id| id.strip_prefix('a')).unwrap().parse().unwrap();
        answers[number - 1].clone()
    };
    let migrated = || {
        let store = rusqlite::Connection::open(home.store()).unwrap();
        store.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let old = migrated();
    let mut before_migration = 0;
    for _ in 0..case.rng.usize(1..5) {
        let kill_at = Instant::now() + Duration::from_micros(case.rng.u64(..250_000));
        let arguments = ["sessions", "resume", &id, "--json"];
        converse(home.start(arguments), Some(kill_at), false, answer);
        before_migration += usize::from(migrated() == old);
    }
    match converse(home.start(["sessions", "resume", &id, "--json"]), None, false, answer) {
        Ended::Itself(Some(0 | 4), _) => {}
        Ended::Itself(code, err) => return Err(format!("{id} ended with {code:?}: {err}")),
        Ended::Killed => unreachable!(),
    }
    check_numbers(&journal(&home, &id))?;
    let expected = messages(&serde_json::from_str(&release_file("whole.export.json")).unwrap());
    let found = messages(&home.export(&id));
    ensure(found == expected, || format!("{id}: {found:?}, expected {expected:?}"))?;
    let listed = list(&home);
    ensure(listed.lines().count() == 7, || format!("sessions were lost: {listed}"))?;
    Ok(format!("the same end, {before_migration} kills before the migration was committed"))
}

/// Processes race for one session: one of them has the conversation, the others are told so, and nothing is there twice.
fn race(case: &mut Case) -> Result<String, String> {
    let talk = Talk::choose(case);
    let home = case.home();
    let script = talk.script(&home);
    let mut run = ["run".to_owned(), script.display().to_string()].to_vec();
    run.extend(["--json", "--session", SESSION].map(str::to_owned));
    run.extend(talk.arguments.iter().cloned());
    let resume = ["sessions", "resume", SESSION, "--json"].map(str::to_owned).to_vec();
    let resuming = case.rng.bool();
    if resuming {
        // A session that waits.
        home.start(&run).event_of("waiting");
    }
    let racers = case.rng.usize(2..4);
    let answer = |event: &Value| talk.answer(event["answer_id"].as_str().unwrap());
    let arguments: Vec<&Vec<String>> =
        (0..racers).map(|_| if resuming && case.rng.bool() { &resume } else { &run }).collect();
    let ends: Vec<Ended> = std::thread::scope(|scope| {
        let running = arguments.iter().map(|arguments| {
            let (home, answer) = (&home, &answer);
            scope.spawn(move || converse(home.start(*arguments), None, false, answer))
        });
        running.collect::<Vec<_>>().into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let (mut completed, mut rejected) = (0, 0);
    for end in ends {
        match end {
            Ended::Itself(Some(0), _) => completed += 1,
            // It came when the session was already completed.
            Ended::Itself(Some(4), _) => {}
            Ended::Itself(Some(1), err) if err.contains("is in use by") => rejected += 1,
            Ended::Itself(code, err) => return Err(format!("a racer ended with {code:?}: {err}")),
            Ended::Killed => unreachable!(),
        }
    }
    ensure(completed == 1, || format!("{completed} of {racers} processes completed the session"))?;
    check_numbers(&journal(&home, SESSION))?;
    talk.compare(&home)?;
    Ok(format!("{racers} racers, {rejected} told who has it"))
}
