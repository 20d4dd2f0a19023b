//! A program that talks to a session through `--json`, and kills it. It is as careful as a real one: after a crash it
//! resends its last answer by its id, and checks every line that it gets.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{Home, Next, PATIENCE, Running};

pub const SESSION: &str = "talk";

#[derive(Clone, Debug)]
pub enum Plan {
    Undisturbed,
    After(Duration),
    /// This long after this many of its lines were read.
    AfterLines(usize, Duration),
    /// This long after an answer was sent that was not a resent one.
    AfterAnswer(Duration),
    /// As soon as it tells that an answer is committed.
    AfterOwnMessage,
    /// This long after its start, while it tells everything from the beginning to somebody who does not read.
    Unread(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Killed,
    /// It was over, so that there was nothing to kill.
    Completed,
}

/// How often a process was killed at the moments that matter.
#[derive(Debug, Default)]
pub struct Moments {
    pub before_the_first_event: usize,
    /// Between the commit of an answer and that of the turn which judges it, or in an opening turn.
    pub while_a_turn_ran: usize,
    /// What was committed was not wholly written out.
    pub while_output_was_written: usize,
    pub while_it_waited: usize,
    pub answers_taken_before: usize,
}

impl Moments {
    pub fn all_were_met(&self) {
        let Self {
            before_the_first_event,
            while_a_turn_ran,
            while_output_was_written,
            while_it_waited,
            answers_taken_before,
        } = self;
        let all =
            [before_the_first_event, while_a_turn_ran, while_output_was_written, while_it_waited, answers_taken_before];
        assert!(all.into_iter().all(|count| *count > 0), "{self:?}");
    }
}

pub struct Client<'h> {
    home: &'h Home,
    script: PathBuf,
    arguments: Vec<String>,
    answer: fn(&str) -> String,
    /// Every event that was read, by its `seq`.
    events: BTreeMap<u64, String>,
    last_sent: Option<String>,
    /// Whether the next process is started by `run --session` instead of `sessions resume --after`.
    pub by_run: bool,
    pub sends_twice: bool,
    /// Whether it answers no new question, so that the conversation stands still until the kill.
    pub holds_back: bool,
    /// Whether the client dies with the process: what was on its way is lost.
    pub loses_what_it_had_not_read: bool,
    pub kills: usize,
    pub moments: Moments,
}

/// What the client knows of one process.
struct Life {
    /// The `seq` that must come next; none while nothing is known about where it begins.
    expected: Option<u64>,
    lines: usize,
    /// Whether the line before was that of a resume, after which `waiting` may be told again.
    resumed: bool,
    sent: Option<String>,
    kill_at: Option<Instant>,
    completed: bool,
}

impl<'h> Client<'h> {
    pub fn new(home: &'h Home, script: PathBuf, arguments: Vec<String>, answer: fn(&str) -> String) -> Self {
        Self {
            home,
            script,
            arguments,
            answer,
            events: BTreeMap::new(),
            last_sent: None,
            by_run: false,
            sends_twice: false,
            holds_back: false,
            loses_what_it_had_not_read: false,
            kills: 0,
            moments: Moments::default(),
        }
    }

    /// How many answers are known to be taken.
    pub fn answered(&self) -> usize {
        let number = |id: &String| id.strip_prefix('a').and_then(|number| number.parse::<usize>().ok());
        self.last_sent.as_ref().and_then(number).unwrap_or(1) - 1
    }

    /// How long a process takes from its start to its first event, measured on another store.
    pub fn time_to_start(&self) -> Duration {
        let home = Home::new();
        let mut times = Vec::new();
        for number in 0..3 {
            let began = Instant::now();
            let mut arguments = self.run_arguments(&format!("try{number}"));
            arguments.extend(["--store".to_owned(), home.store().display().to_string()]);
            let running = home.start(arguments);
            running.event().expect("a first event");
            times.push(began.elapsed());
        }
        times.into_iter().min().unwrap()
    }

    fn run_arguments(&self, session: &str) -> Vec<String> {
        let script = self.script.display().to_string();
        let fixed = ["run".to_owned(), script, "--json".to_owned(), "--session".to_owned(), session.to_owned()];
        fixed.into_iter().chain(self.arguments.iter().cloned()).collect()
    }

    /// The last event up to which nothing is missing.
    fn known(&self) -> u64 {
        (1..).take_while(|seq| self.events.contains_key(seq)).last().unwrap_or(0)
    }

    /// Starts a process, talks to it, and kills it as planned.
    pub fn live(&mut self, plan: &Plan) -> End {
        let after = if matches!(plan, Plan::Unread(_)) { 0 } else { self.known() };
        let by_run = self.by_run || self.events.is_empty();
        let arguments = if by_run {
            self.run_arguments(SESSION)
        } else {
            ["sessions", "resume", SESSION, "--json", "--after", &after.to_string()].map(str::to_owned).to_vec()
        };
        let mut running = self.home.start(arguments);
        let mut life = Life {
            expected: (!by_run).then_some(after + 1),
            lines: 0,
            resumed: false,
            sent: None,
            kill_at: None,
            completed: false,
        };
        if let Plan::After(delay) = plan {
            life.kill_at = Some(Instant::now() + *delay);
        }
        // Whether it arrived before the crash, the client cannot know.
        if let Some(last) = self.last_sent.clone() {
            self.send(&mut running, &mut life, &last);
        }
        if let Plan::Unread(delay) = plan {
            std::thread::sleep(*delay);
            life.kill_at = Some(Instant::now());
        }
        loop {
            if matches!(plan, Plan::Unread(_)) {
                break;
            }
            let moment = life.kill_at.unwrap_or_else(|| Instant::now() + PATIENCE);
            match running.line_until(moment) {
                Next::Line(line) => self.take(&mut running, &mut life, &line, plan),
                Next::End => {
                    let finished = running.finish();
                    // A process was killed after its last commit: there is nothing to resume, only what was missed.
                    let over = finished.code == Some(2) && finished.err.contains("is completed");
                    let completed = finished.code == Some(0) && life.completed;
                    assert!(over || completed, "the process ended with {:?}: {}", finished.code, finished.err);
                    return if self.is_over() { End::Completed } else { End::Killed };
                }
                Next::Nothing if life.kill_at.is_some() => break,
                Next::Nothing => panic!("the program says nothing; last: {:?}", self.events.last_key_value()),
            }
        }
        let rest = running.kill();
        self.kills += 1;
        self.note_moment(&life, &rest);
        if !self.loses_what_it_had_not_read {
            for line in rest {
                life.kill_at = None;
                self.record(&mut life, &line);
            }
        }
        End::Killed
    }

    fn is_over(&self) -> bool {
        self.events.get(&self.known()).is_some_and(|line| line.contains("\"type\":\"session_completed\""))
    }

    /// One line: it is checked, and answered when it asks for an answer.
    fn take(&mut self, running: &mut Running, life: &mut Life, line: &str, plan: &Plan) {
        let event = self.record(life, line);
        life.lines += 1;
        if event["type"] == "waiting" {
            let id = event["answer_id"].as_str().unwrap().to_owned();
            // Told again, or told by a process that already knows the answer: it is on its way.
            let is_new = life.sent.as_ref() != Some(&id) && self.is_newest_question(&id);
            if is_new && self.holds_back {
                // Nothing more will come: whatever was planned to be waited for, the kill comes now.
                life.kill_at = life.kill_at.or(Some(Instant::now()));
            } else if is_new {
                self.last_sent = Some(id.clone());
                self.send(running, life, &id);
                if let Plan::AfterAnswer(delay) = plan {
                    life.kill_at = life.kill_at.or(Some(Instant::now() + *delay));
                }
            }
        }
        match plan {
            Plan::AfterLines(lines, delay) if life.lines >= *lines => {
                life.kill_at = life.kill_at.or(Some(Instant::now() + *delay));
            }
            Plan::AfterOwnMessage if event["type"] == "message" && event["role"] == "user" => {
                life.kill_at = Some(Instant::now());
            }
            _ => {}
        }
    }

    /// A question that was missed and is told again may be answered long since.
    fn is_newest_question(&self, id: &str) -> bool {
        let number = |id: &str| id.strip_prefix('a').unwrap().parse::<u64>().unwrap();
        self.last_sent.as_ref().is_none_or(|last| number(last) < number(id))
    }

    fn send(&self, running: &mut Running, life: &mut Life, id: &str) {
        let line = json!({ "user": (self.answer)(id), "answer_id": id }).to_string();
        running.send(&line);
        if self.sends_twice {
            running.send(&line);
        }
        life.sent = Some(id.to_owned());
    }

    /// Checks that the line is the one that must come now, and keeps it.
    fn record(&mut self, life: &mut Life, line: &str) -> Value {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON object: {line}"));
        assert!(event.is_object(), "{line}");
        let Some(seq) = event["seq"].as_u64() else {
            assert_eq!(event["type"], "message_delta", "an event without `seq`: {line}");
            return event;
        };
        let resumed = std::mem::replace(&mut life.resumed, event["type"] == "session_resumed");
        let expected = *life.expected.get_or_insert_with(|| {
            // Started by `run`: the process begins with its own first event.
            if seq == 1 { 1 } else { event["last_seq"].as_u64().unwrap_or_else(|| panic!("begins with {line}")) + 1 }
        });
        if seq == expected {
            life.expected = Some(seq + 1);
        } else {
            assert!(resumed && event["type"] == "waiting" && seq < expected, "expected {expected}, got {line}");
            let newer = self.events.range(seq + 1..).any(|(_, line)| line.contains("\"type\":\"waiting\""));
            assert!(!newer, "an old question is told again: {line}");
        }
        if let Some(known) = self.events.insert(seq, line.to_owned()) {
            assert_eq!(known, line, "event {seq} is told in two ways");
        }
        life.completed |= event["type"] == "session_completed";
        if event["type"] == "warning" && event["code"] == "answer-taken" {
            self.moments.answers_taken_before += 1;
        }
        if resumed && event["type"] == "message_discarded" {
            self.moments.while_a_turn_ran += 1;
        }
        event
    }

    fn note_moment(&mut self, life: &Life, rest: &[String]) {
        let told = life.lines > 0 || !rest.is_empty();
        if !told {
            self.moments.before_the_first_event += 1;
            return;
        }
        let last = rest.last().or_else(|| self.events.last_key_value().map(|(_, line)| line));
        let last: Value = serde_json::from_str(last.unwrap()).unwrap();
        let known = self.events.last_key_value().map_or(0, |(seq, _)| *seq);
        match last["type"].as_str().unwrap() {
            // It told of something that is long known, and had not come to the end of it.
            kind if kind != "waiting" && last["seq"].as_u64().is_some_and(|seq| seq < known) => {
                self.moments.while_output_was_written += 1;
            }
            "waiting" | "warning" | "session_resumed" => self.moments.while_it_waited += 1,
            // The last of a turn's events is never one of these: more of its commit was to be written.
            "model_call" | "variable_set" | "outcome" | "routed" => self.moments.while_output_was_written += 1,
            _ => {}
        }
    }

    /// The journal has no gaps and no duplicates, and is what was told, line for line.
    pub fn told_everything(&self, journal: &[Value]) {
        for (index, event) in journal.iter().enumerate() {
            assert_eq!(event["seq"], index + 1);
        }
        assert_eq!(self.events.len(), journal.len(), "events were told that are not kept, or not told that are");
        for (event, line) in journal.iter().zip(self.events.values()) {
            assert_eq!(event.to_string(), *line);
        }
    }
}
