//! Writes the progress of a session into its state file after each commit, and finds out what somebody else changes in the file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::workflow::compare::{FileDecision, WaitingSteps, compare};
use bcc_lang::workflow::progress::{EventPlace, apply_event, note_waiting};
use bcc_lang::workflow::state_text::{StateText, StateTextError};
use bcc_lang::workflow::status::StateStatus;
use bcc_runtime::program::cell_rerun::CellRerunPiece;
use bcc_runtime::program::event::{Committed, Delta, Event, Observer};
use bcc_runtime::program::location::EventLocation;
use bcc_runtime::program::output_piece::OutputPiece;
use bcc_runtime::program::question::QuestionPiece;
use bcc_runtime::program::tool_progress::ToolProgressPiece;
use serde_json::Value;

use crate::state_file::disk::{FileStamp, read, write};

/// How often a file is looked at while the session waits.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How often a file that cannot be read is read again: an editor may be writing it.
const READ_ATTEMPTS: u32 = 10;
const READ_PAUSE: Duration = Duration::from_millis(50);

/// The observer of a session that carries a state file.
///
/// The file is written by a thread of its own while the next step is computed and committed to the store, because both mostly wait
/// for the disk. Before anything that others can see, such as an effect or a question, the file is complete.
pub struct StateFileKeeper {
    shared: Arc<SharedKeeper>,
    /// The write that is under way.
    writing: Mutex<Option<JoinHandle<()>>>,
    /// Whether the file had an earlier text than the session wrote last, so that it is written again.
    pub(crate) was_behind: bool,
}

struct SharedKeeper {
    path: PathBuf,
    inner: Arc<dyn Observer>,
    state: Mutex<KeeperState>,
}

struct KeeperState {
    /// What is in the file, as far as this process knows.
    text: StateText,
    /// The file when it was last read or written here; none if it must be written.
    stamp: Option<FileStamp>,
    /// The events of the commit that is being made.
    held: Vec<HeldEvent>,
    waiting: WaitingSteps,
    /// The decisions that were found in the file and not taken yet.
    decisions: VecDeque<FileDecision>,
    /// Whether the steps that are still to run were changed, so that a new session must go on.
    is_replanned: bool,
    /// Whether this session only finishes what was decided, and leaves the steps that it comes to then to a new one.
    keeps_pending: bool,
    /// Why this process must not go on.
    failure: Option<Message>,
}

/// An event of the commit that is being made.
struct HeldEvent {
    seq: u64,
    at: String,
    place: EventLocation,
    event: Event,
    line: String,
}

/// What is found in a file while the session waits.
#[derive(Clone, Debug)]
pub enum FileEvent {
    Decision(FileDecision),
    /// The session must not go on in this process.
    Halted(Message),
}

impl StateFileKeeper {
    /// A keeper of the file at `path`, which contains `text` if there is a `stamp` of it.
    pub(crate) fn new(path: PathBuf, text: StateText, stamp: Option<FileStamp>, inner: Arc<dyn Observer>) -> Self {
        let was_behind = stamp.is_none();
        let state = KeeperState {
            text,
            stamp,
            held: vec![],
            waiting: WaitingSteps::new(),
            decisions: VecDeque::new(),
            is_replanned: false,
            keeps_pending: false,
            failure: None,
        };
        let shared = Arc::new(SharedKeeper { path, inner, state: Mutex::new(state) });
        Self { shared, writing: Mutex::default(), was_behind }
    }

    /// The same keeper with the decisions that were made in the file while no process ran the session.
    pub(crate) fn with_decisions(self, waiting: WaitingSteps, decisions: Vec<FileDecision>) -> Self {
        {
            let mut state = self.shared.state();
            state.waiting = waiting;
            state.decisions = decisions.into();
        }
        self
    }

    /// Whether the steps that the session comes to from now on stay `pending`, because another session runs them.
    pub(crate) fn set_keeps_pending(&self, keeps_pending: bool) {
        self.state().keeps_pending = keeps_pending;
    }

    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// The state when no write is under way.
    fn state(&self) -> MutexGuard<'_, KeeperState> {
        self.finish_writing();
        self.shared.state()
    }

    /// Waits for the write that is under way.
    fn finish_writing(&self) {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner).take();
        if writing.is_some_and(|writing| writing.join().is_err()) {
            let mut state = self.shared.state();
            state.fail_to_write(&self.shared.path, &msg!("the thread that wrote it has panicked"));
        }
    }

    /// Where the report of a workflow of the type `software_deployment` is written at its end: beside the state file. None for a
    /// workflow of another type.
    pub fn report_path(&self) -> Option<PathBuf> {
        let state = self.state();
        let kind = state.text.get_top("type")?;
        (kind == "software_deployment").then(|| self.path().with_file_name("deployment_report.md"))
    }

    /// Whether the session must be replaced by a new one, because the steps that are still to run were changed.
    pub fn is_replanned(&self) -> bool {
        self.state().is_replanned
    }

    /// Whether somebody has decided by editing the file, or changed it so that the session cannot go on.
    pub fn look(&self) -> Option<FileEvent> {
        let mut state = self.state();
        if state.decisions.is_empty() && state.failure.is_none() {
            state.look(&self.shared.path);
        }
        let decision = state.decisions.pop_front().map(FileEvent::Decision);
        decision.or_else(|| state.failure.clone().map(FileEvent::Halted))
    }

    /// Waits for what [`StateFileKeeper::look`] finds.
    pub async fn changed(&self) -> FileEvent {
        loop {
            if let Some(event) = self.look() {
                return event;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The error for a decision in the file that is not permitted.
    pub(crate) fn rejected_decision(&self, why: &Message) -> Message {
        msg!(
            "the decision in {path} was not accepted: {why}; the file is left as it is",
            path = self.path().display(),
            why = why.clone()
        )
    }
}

/// The keeper as the observer of its session.
pub(crate) fn observed(keeper: StateFileKeeper) -> (Arc<dyn Observer>, Option<Arc<StateFileKeeper>>) {
    let keeper = Arc::new(keeper);
    (Arc::clone(&keeper) as Arc<dyn Observer>, Some(keeper))
}

impl SharedKeeper {
    fn state(&self) -> MutexGuard<'_, KeeperState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the file if it must be written, and passes the events on.
    fn write_and_pass_on(&self, events: &[HeldEvent], is_changed: bool) -> Result<(), Message> {
        if is_changed {
            self.state().write(&self.path);
        }
        // Whoever learns of an event finds it in the file.
        for HeldEvent { seq, at, place, event, line } in events {
            self.inner.committed(&Committed { seq: *seq, at, place, event, line });
        }
        self.inner.commit_ended()?;
        self.state().failure.clone().map_or(Ok(()), Err)
    }
}

impl Drop for StateFileKeeper {
    fn drop(&mut self) {
        self.finish_writing();
    }
}

impl Observer for StateFileKeeper {
    fn committed(&self, committed: &Committed<'_>) {
        let Committed { seq, at, place, event, line } = *committed;
        let (at, line) = (at.to_owned(), line.to_owned());
        let held = HeldEvent { seq, at, place: place.clone(), event: event.clone(), line };
        self.shared.state().held.push(held);
    }

    fn delta(&self, delta: &Delta<'_>) {
        self.finish_writing();
        self.shared.inner.delta(delta);
    }

    fn output(&self, output: &OutputPiece<'_>) {
        self.finish_writing();
        self.shared.inner.output(output);
    }

    fn cell_rerun(&self, piece: &CellRerunPiece<'_>) {
        self.finish_writing();
        self.shared.inner.cell_rerun(piece);
    }

    fn tool_progress(&self, progress: &ToolProgressPiece<'_>) {
        self.finish_writing();
        self.shared.inner.tool_progress(progress);
    }

    fn question(&self, question: &QuestionPiece<'_>) {
        self.shared.inner.question(question);
    }

    fn can_halt(&self) -> bool {
        true
    }

    fn commit_ended(&self) -> Result<(), Message> {
        let (events, is_changed, failure) = {
            let mut state = self.state();
            let events = std::mem::take(&mut state.held);
            let is_changed = state.apply(&self.shared.path, &events);
            (events, is_changed, state.failure.clone())
        };
        if failure.is_some() || !is_changed || !events.iter().all(|held| is_internal(&held.event)) {
            return self.shared.write_and_pass_on(&events, is_changed);
        }
        let shared = Arc::clone(&self.shared);
        let events = Arc::new(events);
        let passed = Arc::clone(&events);
        let write = move || {
            if let Err(why) = shared.write_and_pass_on(&passed, true) {
                shared.state().failure.get_or_insert(why);
            }
        };
        match Builder::new().name("state-file".to_owned()).spawn(write) {
            Ok(writing) => *self.writing.lock().unwrap_or_else(PoisonError::into_inner) = Some(writing),
            // The limit of threads is reached.
            Err(_) => return self.shared.write_and_pass_on(&events, true),
        }
        Ok(())
    }
}

/// Whether nobody outside the session can see what follows an event at once, so that the file may be written while the next step is
/// computed. Before an effect or a question, and at the end, the file must be complete.
const fn is_internal(event: &Event) -> bool {
    matches!(
        event,
        Event::PhaseEntered { .. }
            | Event::TopicEntered { .. }
            | Event::ActionStarted { .. }
            | Event::Skipped { .. }
            | Event::VariableSet { .. }
            | Event::Outcome { .. }
            | Event::RouteTaken { .. }
    )
}

impl KeeperState {
    /// Applies the events of a commit to the text. Returns whether the file must be written.
    fn apply(&mut self, path: &Path, events: &[HeldEvent]) -> bool {
        if self.failure.is_some() {
            return false;
        }
        self.look(path);
        if self.failure.is_some() && !self.is_replanned {
            return false;
        }
        let mut is_changed = self.stamp.is_none();
        for held in events {
            let applied =
                serde_json::from_str(&held.line).map_err(|error| error.to_message()).and_then(|event: Value| {
                    note_waiting(&self.text, &mut self.waiting, &event);
                    let applied = apply_event(&mut self.text, &event)
                        .and_then(|changed| Ok(changed | (self.keeps_pending && self.keep_pending(&event)?)));
                    applied.map_err(|error| error.to_message())
                });
            match applied {
                Ok(changed) => is_changed |= changed,
                Err(why) => {
                    self.fail_to_write(path, &why);
                    return false;
                }
            }
        }
        if self.is_replanned {
            is_changed |= self.text.set_running_to_pending();
        }
        is_changed
    }

    /// Sets the step that is entered with this event to pending again: nothing of it has begun.
    fn keep_pending(&mut self, event: &Value) -> Result<bool, StateTextError> {
        let is_entered = event.get("type").is_some_and(|kind| kind == "action_started");
        match EventPlace::of(&self.text, event) {
            Some(EventPlace { action, is_inner: false, .. }) if is_entered => {
                self.text.set(action, "status", &StateStatus::Pending.name().into())
            }
            _ => Ok(false),
        }
    }

    fn write(&mut self, path: &Path) {
        match write(path, &self.text, self.stamp) {
            Ok(stamp) => self.stamp = Some(stamp),
            Err(error) => self.fail_to_write(path, &error.to_message()),
        }
    }

    fn fail_to_write(&mut self, path: &Path, why: &Message) {
        let path = path.display();
        self.failure =
            Some(msg!("the progress of the workflow cannot be written into {path}: {why}", why = why.clone()));
    }

    /// Finds out whether somebody else changed the file. A change that does not contradict what has run is adopted.
    fn look(&mut self, path: &Path) {
        let Some(stamp) = self.stamp else { return };
        let Err(why) = self.adopt(path, stamp) else { return };
        self.failure = Some(msg!(
            "{path} was changed while the workflow was running, and contradicts it: {why}; the file is left as it is",
            path = path.display(),
            why = why
        ));
    }

    fn adopt(&mut self, path: &Path, stamp: FileStamp) -> Result<(), Message> {
        let mut attempts = 0;
        let (now, found) = loop {
            let now = FileStamp::of(path).map_err(|error| error.to_message())?;
            if now == stamp {
                return Ok(());
            }
            attempts += 1;
            match read(path) {
                Ok(found) => break (now, found),
                Err(why) if attempts >= READ_ATTEMPTS => return Err(why),
                Err(_) => std::thread::sleep(READ_PAUSE),
            }
        };
        let written = self.text.text();
        if written != found.source.text() {
            let written = parse(&Arc::new(SourceFile::new("", written))).root.map(|root| root.to_json());
            let change = compare(&written.unwrap_or_default(), &found.value, &self.waiting)?;
            self.text = found.text;
            self.decisions.extend(change.decisions);
            if change.is_replanned {
                self.is_replanned = true;
                let path = path.display();
                self.failure = Some(msg!("the steps in {path} that have not run were changed"));
            }
        }
        self.stamp = Some(now);
        Ok(())
    }
}
