//! A client of `--json` sessions that kills the program. Like a real client, it resends its last answer by its id after a crash, and checks
//! every line that it receives.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::{Home, Next, Running, TIMEOUT};

pub const SESSION: &str = "talk";

#[derive(Clone, Debug)]
pub enum Plan {
    Undisturbed,
    After(Duration),
    /// This time after this number of lines was read.
    AfterLines(usize, Duration),
    /// This time after a new (not resent) answer was sent.
    AfterAnswer(Duration),
    /// As soon as an answer is reported as committed.
    AfterOwnMessage,
    /// This time after the start, while the process prints all events from the beginning and the client reads nothing.
    Unread(Duration),
    /// The process may end in any way, for example because its disk is full.
    EndsItself,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Killed,
    /// The session was completed, so there was nothing to kill.
    Completed,
    /// It ended with this code before the session was completed; `None` after a signal. Then what it wrote to standard error.
    Ended(Option<i32>, String),
}

/// How often a process was killed at each relevant moment.
#[derive(Debug, Default)]
pub struct Moments {
    pub before_the_first_event: usize,
    /// Between the commit of an answer and that of the turn that judges it, or in an opening turn.
    pub while_a_turn_ran: usize,
    /// Committed events were not completely written to the output.
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
    /// A program with its arguments that starts the program, such as strace; empty if it is started directly.
    pub launcher: Vec<OsString>,
    /// Every event that was read, by its `seq`.
    events: BTreeMap<u64, String>,
    last_sent: Option<String>,
    /// Whether the next process is started by `run --session` instead of `sessions resume --after`.
    pub by_run: bool,
    pub resends: bool,
    /// Whether it sends no new answer, so that the conversation does not continue before the kill.
    pub holds_answers: bool,
    /// Whether the client crashes with the process: unread output is lost.
    pub loses_unread_output: bool,
    pub kills: usize,
    pub moments: Moments,
}

/// The state of one process, as the client knows it.
struct ProcessState {
    /// The next `seq`; `None` while the first one is unknown.
    expected: Option<u64>,
    lines: usize,
    /// Whether the previous line was `session_resumed`, after which `waiting` may be repeated.
    resumed: bool,
    sent: Option<String>,
    kill_at: Option<Instant>,
    completed: bool,
    may_fail: bool,
}

impl<'h> Client<'h> {
    pub fn new(home: &'h Home, script: PathBuf, arguments: Vec<String>, answer: fn(&str) -> String) -> Self {
        Self {
            home,
            script,
            arguments,
            answer,
            launcher: Vec::new(),
            events: BTreeMap::new(),
            last_sent: None,
            by_run: false,
            resends: false,
            holds_answers: false,
            loses_unread_output: false,
            kills: 0,
            moments: Moments::default(),
        }
    }

    /// The number of answers that are known to be taken.
    pub fn answered(&self) -> usize {
        let number = |id: &String| id.strip_prefix('a').and_then(|number| number.parse::<usize>().ok());
        self.last_sent.as_ref().and_then(number).unwrap_or(1) - 1
    }

    /// The time from the start of a process to its first event, measured on another store.
    pub fn startup_time(&self) -> Duration {
        let home = Home::new();
        let mut times = Vec::new();
        for number in 0..3 {
            let started = Instant::now();
            let mut arguments = self.run_arguments(&format!("try{number}"));
            arguments.extend(["--store".to_owned(), home.store().display().to_string()]);
            let running = home.start(arguments);
            running.event().expect("a first event");
            times.push(started.elapsed());
        }
        times.into_iter().min().unwrap()
    }

    fn run_arguments(&self, session: &str) -> Vec<String> {
        let script = self.script.display().to_string();
        let fixed = ["run".to_owned(), script, "--json".to_owned(), "--session".to_owned(), session.to_owned()];
        fixed.into_iter().chain(self.arguments.iter().cloned()).collect()
    }

    /// The last `seq` before the first gap.
    fn last_complete_seq(&self) -> u64 {
        (1..).take_while(|seq| self.events.contains_key(seq)).last().unwrap_or(0)
    }

    fn command(&self, arguments: &[String]) -> Command {
        let command = self.home.command(arguments);
        let Some((first, rest)) = self.launcher.split_first() else { return command };
        let mut launched = Command::new(first);
        launched.args(rest).arg(command.get_program()).args(arguments);
        launched.env_clear().envs(self.home.variables()).current_dir(self.home.path());
        launched
    }

    /// Starts a process, talks to it, and kills it as planned.
    pub fn run_process(&mut self, plan: &Plan) -> End {
        let after = if matches!(plan, Plan::Unread(_)) { 0 } else { self.last_complete_seq() };
        let by_run = self.by_run || self.events.is_empty();
        let arguments = if by_run {
            self.run_arguments(SESSION)
        } else {
            ["sessions", "resume", SESSION, "--json", "--after", &after.to_string()].map(str::to_owned).to_vec()
        };
        let mut running = Running::start(self.command(&arguments));
        let mut process = ProcessState {
            expected: (!by_run).then_some(after + 1),
            lines: 0,
            resumed: false,
            sent: None,
            kill_at: None,
            completed: false,
            may_fail: matches!(plan, Plan::EndsItself),
        };
        if let Plan::After(delay) = plan {
            process.kill_at = Some(Instant::now() + *delay);
        }
        // The client cannot know whether it arrived before the crash.
        if let Some(last) = self.last_sent.clone() {
            self.send(&mut running, &mut process, &last);
        }
        if let Plan::Unread(delay) = plan {
            std::thread::sleep(*delay);
            process.kill_at = Some(Instant::now());
        }
        loop {
            if matches!(plan, Plan::Unread(_)) {
                break;
            }
            let deadline = process.kill_at.unwrap_or_else(|| Instant::now() + TIMEOUT);
            match running.line_until(deadline) {
                Next::Line(line) => self.handle_line(&mut running, &mut process, &line, plan),
                Next::End => {
                    let finished = running.finish();
                    // The previous process was killed after its last commit: there is nothing to resume, only missed events.
                    let session_ended = finished.code == Some(4) && finished.err.contains("its status is `completed`");
                    let completed = finished.code == Some(0) && process.completed;
                    if matches!(plan, Plan::EndsItself) && !session_ended && !completed {
                        return End::Ended(finished.code, finished.err);
                    }
                    assert!(session_ended || completed, "the process ended with {:?}: {}", finished.code, finished.err);
                    return if self.is_completed() { End::Completed } else { End::Killed };
                }
                Next::TimedOut if process.kill_at.is_some() => break,
                Next::TimedOut => panic!("the program says nothing; last: {:?}", self.events.last_key_value()),
            }
        }
        let remaining = running.kill();
        self.kills += 1;
        self.count_moment(&process, &remaining);
        if !self.loses_unread_output {
            for line in remaining {
                process.kill_at = None;
                self.record(&mut process, &line);
            }
        }
        End::Killed
    }

    fn is_completed(&self) -> bool {
        self.events.get(&self.last_complete_seq()).is_some_and(|line| line.contains("\"type\":\"session_completed\""))
    }

    /// Checks one line, and answers it when it asks for an answer.
    fn handle_line(&mut self, running: &mut Running, process: &mut ProcessState, line: &str, plan: &Plan) {
        let event = self.record(process, line);
        process.lines += 1;
        if event["type"] == "waiting" {
            let id = event["answer_id"].as_str().unwrap().to_owned();
            // A repeated question, or one from a process that already has the answer: the answer is already sent.
            let is_new = process.sent.as_ref() != Some(&id) && self.is_new_question(&id);
            if is_new && self.holds_answers {
                // No more events will come: the kill happens now, whatever was planned.
                process.kill_at = process.kill_at.or(Some(Instant::now()));
            } else if is_new {
                self.last_sent = Some(id.clone());
                self.send(running, process, &id);
                if let Plan::AfterAnswer(delay) = plan {
                    process.kill_at = process.kill_at.or(Some(Instant::now() + *delay));
                }
            }
        }
        match plan {
            Plan::AfterLines(lines, delay) if process.lines >= *lines => {
                process.kill_at = process.kill_at.or(Some(Instant::now() + *delay));
            }
            Plan::AfterOwnMessage if event["type"] == "message" && event["role"] == "user" => {
                process.kill_at = Some(Instant::now());
            }
            _ => {}
        }
    }

    /// A question that was missed and is repeated may be answered already.
    fn is_new_question(&self, id: &str) -> bool {
        let number = |id: &str| id.strip_prefix('a').unwrap().parse::<u64>().unwrap();
        self.last_sent.as_ref().is_none_or(|last| number(last) < number(id))
    }

    fn send(&self, running: &mut Running, process: &mut ProcessState, id: &str) {
        let line = json!({ "user": (self.answer)(id), "answer_id": id }).to_string();
        running.send(&line);
        if self.resends {
            running.send(&line);
        }
        process.sent = Some(id.to_owned());
    }

    /// Checks that the line is the expected next one, and stores it.
    fn record(&mut self, process: &mut ProcessState, line: &str) -> Value {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON object: {line}"));
        assert!(event.is_object(), "{line}");
        let Some(seq) = event["seq"].as_u64() else {
            // Only an error of the store itself is not an event of the session (docs/sessions.md).
            let expected = if process.may_fail && event["type"] == "error" { "error" } else { "message_delta" };
            assert_eq!(event["type"], expected, "an event without `seq`: {line}");
            return event;
        };
        let resumed = std::mem::replace(&mut process.resumed, event["type"] == "session_resumed");
        let expected = *process.expected.get_or_insert_with(|| {
            // Started by `run`: the first event of the process is its own.
            if seq == 1 { 1 } else { event["last_seq"].as_u64().unwrap_or_else(|| panic!("begins with {line}")) + 1 }
        });
        if seq == expected {
            process.expected = Some(seq + 1);
        } else {
            assert!(resumed && event["type"] == "waiting" && seq < expected, "expected {expected}, got {line}");
            let newer = self.events.range(seq + 1..).any(|(_, line)| line.contains("\"type\":\"waiting\""));
            assert!(!newer, "an old question is told again: {line}");
        }
        if let Some(previous) = self.events.insert(seq, line.to_owned()) {
            assert_eq!(previous, line, "event {seq} is told in two ways");
        }
        process.completed |= event["type"] == "session_completed";
        if event["type"] == "warning" && event["code"] == "answer-taken" {
            self.moments.answers_taken_before += 1;
        }
        if resumed && event["type"] == "message_discarded" {
            self.moments.while_a_turn_ran += 1;
        }
        event
    }

    fn count_moment(&mut self, process: &ProcessState, remaining: &[String]) {
        let printed = process.lines > 0 || !remaining.is_empty();
        if !printed {
            self.moments.before_the_first_event += 1;
            return;
        }
        let last = remaining.last().or_else(|| self.events.last_key_value().map(|(_, line)| line));
        let last: Value = serde_json::from_str(last.unwrap()).unwrap();
        let last_seq = self.events.last_key_value().map_or(0, |(seq, _)| *seq);
        match last["type"].as_str().unwrap() {
            // The process was repeating old events and was not finished.
            kind if kind != "waiting" && last["seq"].as_u64().is_some_and(|seq| seq < last_seq) => {
                self.moments.while_output_was_written += 1;
            }
            "waiting" | "warning" | "session_resumed" => self.moments.while_it_waited += 1,
            // The last event of a turn is never one of these: more events of its commit had to be written.
            "model_call" | "variable_set" | "outcome" | "routed" => self.moments.while_output_was_written += 1,
            _ => {}
        }
    }

    /// Asserts that the journal has no gaps and no duplicates, and is the same as the printed events.
    pub fn check_journal(&self, journal: &[Value]) {
        for (index, event) in journal.iter().enumerate() {
            assert_eq!(event["seq"], index + 1);
        }
        assert_eq!(self.events.len(), journal.len(), "events were told that are not kept, or not told that are");
        for (event, line) in journal.iter().zip(self.events.values()) {
            assert_eq!(event.to_string(), *line);
        }
    }
}
