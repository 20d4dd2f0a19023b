//! Progress at a terminal: the steps of a workflow with their states and times. Those that run have a line with a spinner at the end
//! of the output, which disappears while a person types or a message is written.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::cli::async_runtime::start_thread;
use crate::cli::columns::max_columns;
use crate::cli::language::{filled, translated};
use crate::cli::progress_texts::{local_time, shortened, shown_time};
use bcc_lang::source::render::visible::visible_line;
use bcc_runtime::program::cell_rerun::CellRerunPiece;
use bcc_runtime::program::event::Event;
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::question::{Asked, QuestionPiece};
use bcc_runtime::program::tool_progress::ToolProgressPiece;

/// The types of actions that are shown as steps. The others speak for themselves, or take no time.
const STEP_KINDS: [&str; 7] = ["approval", "command", "parallel", "read_file", "tool", "wait", "write_file"];

/// The maximum number of steps with a line of their own while they run.
const MAX_LINES: usize = 8;

const TICK: Duration = Duration::from_millis(100);
const DRAWS_PER_SECOND: u8 = 20;

/// The maximum number of calls of tools with progress in one action.
const MAX_CALLS: usize = 16;

/// How long a question or a cell that runs again may take without a line.
const SHORT_DELAY: Duration = Duration::from_millis(500);

/// The progress of the session of this process. There is one terminal.
static PROGRESS: OnceLock<Progress> = OnceLock::new();

struct Progress {
    /// None for a terminal that cannot move its cursor.
    lines: Option<MultiProgress>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The steps that run, in the order of their starts.
    running: Vec<RunningStep>,
    bars: Vec<ProgressBar>,
    is_shown: bool,
    is_ticking: bool,
    /// The settings of the terminal while keys are not echoed.
    echoing: Option<Termios>,
    has_colors: bool,
}

#[derive(Clone, Debug)]
struct RunningStep {
    path: String,
    name: String,
    started: Instant,
    /// Short questions have no line.
    shown_after: Instant,
    /// Until when it waits, if it waits for a time.
    until: Option<String>,
    /// How far the call of its tool is, if the tool says so.
    reported: Option<String>,
}

/// How a line of a step looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStyle {
    Done,
    Failed,
    Waiting,
}

pub type StepLine = (StepStyle, String);

/// Hides what runs when it is dropped.
pub struct ProgressEnd;

impl Drop for ProgressEnd {
    fn drop(&mut self) {
        set_shown(false);
    }
}

/// From now on, steps are shown. Standard output must be a terminal; `has_colors` says whether it has colors.
pub fn start(has_colors: bool) {
    PROGRESS.get_or_init(|| {
        let lines = can_move_cursor().then(|| MultiProgress::with_draw_target(ProgressDrawTarget::hidden()));
        let state = State { has_colors, ..State::default() };
        Progress { lines, state: Arc::new(Mutex::new(state)) }
    });
}

/// Whether the terminal can write a line again.
pub fn can_move_cursor() -> bool {
    std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb")
}

/// Writes to the terminal, with the lines of running steps out of the way.
pub fn suspended<T>(write: impl FnOnce() -> T) -> T {
    match PROGRESS.get().and_then(|progress| progress.lines.as_ref()) {
        Some(lines) => lines.suspend(write),
        None => write(),
    }
}

/// Shows or hides the lines of running steps.
pub fn set_shown(is_shown: bool) {
    let Some(Progress { lines: Some(lines), state }) = PROGRESS.get() else { return };
    let mut state = lock(state);
    if state.is_shown == is_shown {
        return;
    }
    state.is_shown = is_shown;
    if is_shown {
        lines.set_draw_target(ProgressDrawTarget::stdout_with_hz(DRAWS_PER_SECOND));
        state.draw(lines);
    } else {
        let _ = lines.clear();
        lines.set_draw_target(ProgressDrawTarget::hidden());
        state.echo();
    }
}

/// Takes an event into account. Returns the line to print for it, if any.
pub fn committed(event: &Event, place: &EventLocation) -> Option<StepLine> {
    let progress = PROGRESS.get()?;
    let mut state = lock(&progress.state);
    let line = state.committed(event, place, Instant::now());
    show(progress, &mut state);
    line
}

/// Takes the progress of a call of a tool into account.
pub fn tool_progressed(piece: &ToolProgressPiece<'_>) {
    let Some(progress) = PROGRESS.get() else { return };
    let mut state = lock(&progress.state);
    state.tool_progressed(piece, Instant::now());
    show(progress, &mut state);
}

/// Takes a question to a model or a behavior server into account, which is there until it is answered.
pub fn asked(question: &QuestionPiece<'_>) {
    let Some(progress) = PROGRESS.get() else { return };
    let mut state = lock(&progress.state);
    state.asked(question, Instant::now());
    show(progress, &mut state);
}

/// Shows or removes the line of a cell that runs again.
pub fn cell_reruns(piece: &CellRerunPiece<'_>, line: Option<String>) {
    let Some(progress) = PROGRESS.get() else { return };
    let mut state = lock(&progress.state);
    state.set_line(piece.location, "=rerun", line, Instant::now());
    show(progress, &mut state);
}

/// Shows the steps that run now.
fn show(progress: &Progress, state: &mut State) {
    let Some(lines) = &progress.lines else { return };
    if state.is_shown {
        state.draw(lines);
    }
    if !state.running.is_empty() && !state.is_ticking {
        let (shared, lines) = (Arc::clone(&progress.state), lines.clone());
        // Without a further thread, the lines change only with events.
        state.is_ticking = start_thread("progress", move || tick(&shared, &lines)).is_ok();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tick(state: &Mutex<State>, lines: &MultiProgress) {
    loop {
        std::thread::sleep(TICK);
        let mut state = lock(state);
        if state.running.is_empty() {
            state.is_ticking = false;
            return;
        }
        if state.is_shown {
            state.draw(lines);
        }
    }
}

impl State {
    fn committed(&mut self, event: &Event, place: &EventLocation, now: Instant) -> Option<StepLine> {
        let name = || visible_line(place.action_id.as_deref().unwrap_or_default());
        match event {
            Event::ActionStarted { name: kind } if STEP_KINDS.contains(&kind.as_str()) => {
                self.add_step(place, name(), now);
                None
            }
            // A task of a plan that runs, in a branch of its own.
            Event::PlanChanged { name: Some(task), task_id: Some(_), status: Some("running"), .. } => {
                self.add_step(place, visible_line(task), now);
                None
            }
            // An action type of the project, or a command of a session that was resumed.
            Event::EffectStarted { kind, .. } if kind == "command" => {
                self.add_step(place, name(), now);
                None
            }
            Event::RequestOpened { kind: "time", due_at, .. } => {
                self.add_step(place, name(), now);
                if let Some(step) = self.step(place) {
                    step.until = due_at.as_deref().map(local_time);
                }
                None
            }
            Event::RequestOpened { kind: "approval", .. } => {
                // It goes on running when somebody has decided.
                Some((StepStyle::Waiting, format!("… {}  {}", name(), translated("waits for a decision"))))
            }
            Event::ToolCalled(call) => {
                let path = path_of_call(place, &call.tool);
                self.running.retain(|step| step.path != path);
                if let Some(step) = self.step(place) {
                    step.reported = None;
                }
                None
            }
            Event::Outcome { action_type, outcome, .. } if outcome.completed => {
                let step = self.end(place);
                if step.is_none() && !STEP_KINDS.contains(action_type) {
                    return None;
                }
                let time = step.as_ref().map(|step| format!("  {}", shown_time(now.duration_since(step.started))));
                let time = time.unwrap_or_default();
                let name = || step.as_ref().map_or_else(name, |step| step.name.clone());
                Some(match outcome.exit_reason {
                    Some(ExitReason::ExitCriteriaMet) | None if outcome.success => {
                        (StepStyle::Done, format!("✓ {}{time}", name()))
                    }
                    Some(ExitReason::Approved) => {
                        (StepStyle::Done, format!("✓ {}  {}{time}", name(), ExitReason::Approved.name()))
                    }
                    reason => {
                        let reason = reason.map(|reason| format!("  {}", reason.name())).unwrap_or_default();
                        (StepStyle::Failed, format!("✗ {}{reason}{time}", name()))
                    }
                })
            }
            Event::SessionCompleted { .. }
            | Event::SessionFailed { .. }
            | Event::SessionStopped { .. }
            | Event::SessionCancelled { .. }
            | Event::TakenBack { .. } => {
                self.running.clear();
                None
            }
            _ => None,
        }
    }

    fn step(&mut self, place: &EventLocation) -> Option<&mut RunningStep> {
        self.running.iter_mut().find(|step| step.path == place.path)
    }

    fn add_step(&mut self, place: &EventLocation, name: String, now: Instant) {
        if self.step(place).is_none() {
            let path = place.path.clone();
            let (started, shown_after) = (now, now);
            self.running.push(RunningStep { path, name, started, shown_after, until: None, reported: None });
        }
    }

    /// An action that calls one tool shows the progress in its own line; one that calls several, in a line for each of them.
    fn tool_progressed(&mut self, piece: &ToolProgressPiece<'_>, now: Instant) {
        let reported = Some(reported(piece.done, piece.total));
        if let Some(step) = self.step(piece.location) {
            step.reported = reported;
            return;
        }
        let path = path_of_call(piece.location, piece.tool);
        if let Some(step) = self.running.iter_mut().find(|step| step.path == path) {
            step.reported = reported;
        } else if self.running.len() < MAX_CALLS {
            let name = visible_line(piece.tool);
            let (started, shown_after) = (now, now);
            self.running.push(RunningStep { path, name, started, shown_after, until: None, reported });
        }
    }

    /// A question has a line in the step of its action, if that has one.
    fn asked(&mut self, question: &QuestionPiece<'_>, now: Instant) {
        let (line, name) = match question.asked {
            Asked::Model => ("=model", translated("the model is asked").into_owned()),
            Asked::Server(name) => ("=server", filled("the behavior server {name} is asked", &[("name", name)])),
        };
        self.set_line(question.location, line, Some(name).filter(|_| question.is_open), now);
    }

    /// Gives what may be short a line in the step of its action, or removes it.
    fn set_line(&mut self, place: &EventLocation, line: &str, name: Option<String>, now: Instant) {
        let path = path_of_call(place, line);
        self.running.retain(|step| step.path != path);
        if let Some(name) = name {
            let shown_after = now + SHORT_DELAY;
            self.running.push(RunningStep { path, name, started: now, until: None, reported: None, shown_after });
        }
    }

    /// Ends a step, and those inside it that were left.
    fn end(&mut self, place: &EventLocation) -> Option<RunningStep> {
        let inside = format!("{}/", place.path);
        self.running.retain(|step| !step.path.starts_with(&inside));
        let index = self.running.iter().position(|step| step.path == place.path)?;
        Some(self.running.remove(index))
    }

    /// The lines of the steps that run. A step inside another one is indented.
    fn lines(&self, now: Instant) -> Vec<String> {
        let line = |step: &RunningStep| {
            let is_outer = |other: &&RunningStep| {
                step.path.strip_prefix(other.path.as_str()).is_some_and(|rest| rest.starts_with('/'))
            };
            let indent = "  ".repeat(self.running.iter().filter(is_outer).count());
            let time = shown_time(now.duration_since(step.started));
            let until = match &step.until {
                Some(until) => format!("  {}", filled("waits until {time}", &[("time", until)])),
                None => String::new(),
            };
            let reported = step.reported.as_ref().map(|reported| format!("  {reported}")).unwrap_or_default();
            format!("{indent}{}{until}{reported}  {time}", step.name)
        };
        let shown = || self.running.iter().filter(|step| step.shown_after <= now);
        let mut lines: Vec<String> = shown().take(MAX_LINES).map(line).collect();
        let more = shown().count() - lines.len();
        if more > 0 {
            lines.push(filled("and {count} more", &[("count", &more.to_string())]));
        }
        lines
    }

    /// Turns the echo of keys off. It would move the cursor away from the lines, which could not be erased then. The line editor
    /// shows keys that were typed early.
    fn silence(&mut self) {
        if self.echoing.is_some() {
            return;
        }
        let Ok(echoing) = tcgetattr(std::io::stdin()) else { return };
        let mut silent = echoing.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        if tcsetattr(std::io::stdin(), OptionalActions::Now, &silent).is_ok() {
            self.echoing = Some(echoing);
        }
    }

    fn echo(&mut self) {
        if let Some(echoing) = self.echoing.take() {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &echoing);
        }
    }

    fn draw(&mut self, all: &MultiProgress) {
        let lines = self.lines(Instant::now());
        if lines.is_empty() {
            self.echo()
        } else {
            self.silence()
        }
        while self.bars.len() > lines.len() {
            if let Some(bar) = self.bars.pop() {
                bar.finish_and_clear();
                all.remove(&bar);
            }
        }
        while self.bars.len() < lines.len() {
            let bar = all.add(ProgressBar::new_spinner());
            let template = if self.has_colors { "{spinner:.cyan} {msg}" } else { "{spinner} {msg}" };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            self.bars.push(bar);
        }
        let columns = max_columns();
        for (bar, line) in self.bars.iter().zip(lines) {
            bar.set_message(shortened(&line, columns));
            bar.tick();
        }
    }
}

/// The path of the line of a call, inside of the action that makes it.
fn path_of_call(place: &EventLocation, tool: &str) -> String {
    format!("{}/{tool}", place.path)
}

/// How far a call is: a part of the whole, or if the tool does not say how much there is, its own number.
fn reported(done: f64, total: Option<f64>) -> String {
    match total {
        Some(total) => format!("{:.0}%", (done / total).clamp(0.0, 1.0) * 100.0),
        None => format!("{done}").chars().take(12).collect(),
    }
}

#[cfg(test)]
mod tests {
    use bcc_runtime::program::outcome::Outcome;
    use bcc_runtime::program::tool_called::ToolCalled;

    use super::*;

    fn place(path: &str) -> EventLocation {
        let action_id = path.rsplit('/').next().map(str::to_owned);
        EventLocation { path: path.into(), action_id, ..EventLocation::default() }
    }

    fn started(kind: &str) -> Event {
        Event::ActionStarted { name: kind.into() }
    }

    fn ended(reason: ExitReason, success: bool) -> Event {
        let outcome = Outcome { success, ..Outcome::done(reason) };
        Event::Outcome { action_type: "command", outcome: Box::new(outcome) }
    }

    #[test]
    fn steps_that_run_are_listed_with_their_times_and_those_inside_others_are_indented() {
        let (mut state, start) = (State::default(), Instant::now());
        let after = |ms| start + Duration::from_millis(ms);
        state.committed(&started("ai_ask"), &place("t/ask"), start);
        state.committed(&started("parallel"), &place("t/deploy"), start);
        for branch in ["a", "b"] {
            state.committed(&started("command"), &place(&format!("t/deploy/={branch}/copy_{branch}")), after(1_000));
        }
        assert_eq!(state.lines(after(3_250)), ["deploy  3.2s", "  copy_a  2.2s", "  copy_b  2.2s"]);
        let done =
            state.committed(&ended(ExitReason::ExitCriteriaMet, true), &place("t/deploy/=a/copy_a"), after(4_000));
        assert_eq!(done, Some((StepStyle::Done, "✓ copy_a  3.0s".into())));
        let failed = state.committed(&ended(ExitReason::Failed, false), &place("t/deploy"), after(95_000));
        assert_eq!(failed, Some((StepStyle::Failed, "✗ deploy  failed  1m 35s".into())));
        assert!(state.lines(after(95_000)).is_empty(), "what was inside it has ended");
        assert_eq!(
            state.committed(&ended(ExitReason::Failed, false), &place("t/old"), start).unwrap().1,
            "✗ old  failed"
        );
    }

    #[test]
    fn the_progress_of_a_tool_is_in_the_line_of_its_action_or_in_one_of_its_own() {
        let (mut state, now) = (State::default(), Instant::now());
        let report = |state: &mut State, path: &str, done, total| {
            let location = place(path);
            let (at, session_id, r#type, effect_id) = ("", "s", "tool_progress", None);
            let tool = "mcp.s.copy";
            state.tool_progressed(
                &ToolProgressPiece { at, session_id, r#type, tool, effect_id, done, total, location: &location },
                now,
            );
        };
        state.committed(&started("tool"), &place("t/copy"), now);
        report(&mut state, "t/copy", 1.0, Some(3.0));
        report(&mut state, "t/act", 7.0, None);
        assert_eq!(state.lines(now), ["copy  33%  0.0s", "mcp.s.copy  7  0.0s"]);
        report(&mut state, "t/act", 8.0, Some(4.0));
        assert_eq!(state.lines(now)[1], "mcp.s.copy  100%  0.0s");
        let called = ToolCalled { tool: "mcp.s.copy".into(), ..ToolCalled::default() };
        for path in ["t/copy", "t/act"] {
            state.committed(&Event::ToolCalled(Box::new(called.clone())), &place(path), now);
        }
        assert_eq!(state.lines(now), ["copy  0.0s"]);
    }

    #[test]
    fn a_question_has_a_line_after_half_a_second_until_it_is_answered() {
        let (mut state, start) = (State::default(), Instant::now());
        let after = |ms| start + Duration::from_millis(ms);
        let location = place("t/ask");
        let asked = |is_open| QuestionPiece { asked: Asked::Model, is_open, location: &location };
        state.asked(&asked(true), start);
        assert!(state.lines(after(499)).is_empty());
        assert_eq!(state.lines(after(2_300)), ["the model is asked  2.3s"]);
        state.asked(&asked(false), after(2_400));
        assert!(state.lines(after(2_400)).is_empty());
    }

    #[test]
    fn many_steps_are_counted() {
        let (mut state, now) = (State::default(), Instant::now());
        for number in 0..20 {
            state.committed(&started("command"), &place(&format!("t/all/={number}/c{number}")), now);
        }
        let lines = state.lines(now);
        assert_eq!((lines.len(), lines[MAX_LINES].as_str()), (MAX_LINES + 1, "and 12 more"));
    }
}
