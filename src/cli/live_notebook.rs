//! `--notebook FILE`: rewrites the file when cells were committed: immediately when the session waits or ends, and at intervals while
//! it runs.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::cli::front_end::FrontEnd;
use crate::cli::language::{chosen, filled};
use bcc_engine::error::EngineError;
use bcc_engine::notebook_file::ownership::{check_target, form_of};
use bcc_engine::notebook_file::read::earlier_output;
use bcc_engine::notebook_file::write::{NotebookFileRequest, RunningOutput, write_file};
use bcc_runtime::notebook::export::form::ExportForm;
use bcc_runtime::program::cell_rerun::CellRerunPiece;
use bcc_runtime::program::event::{Committed, Delta, Event, Observer};
use bcc_runtime::program::output_piece::OutputPiece;
use bcc_runtime::program::question::QuestionPiece;
use bcc_runtime::program::tool_progress::ToolProgressPiece;
use bcc_store::contract::Store;

/// The minimum time between two writes while the session runs.
const MIN_INTERVAL: Duration = Duration::from_secs(2);

/// The minimum time to the next write, as a multiple of the duration of the last one. It limits the share of time that is spent on
/// writing a large notebook.
const INTERVAL_FACTOR: u32 = 20;

/// The maximum size of what a cell has printed in one stream while it runs, in bytes; of more, the end is written.
const MAX_RUNNING_BYTES: usize = 1024 * 1024;

/// The maximum number of outputs of a cell while it runs; a new one follows when the stream changes.
const MAX_RUNNING_OUTPUTS: usize = 100;

/// The notebook file, if one is requested.
#[derive(Default)]
pub struct LiveNotebook {
    live: Option<Live>,
}

struct Live {
    path: std::path::PathBuf,
    request: NotebookFileRequest,
    changes: Arc<Changes>,
    /// The number of changes in the file; none before the first write.
    written: Option<u64>,
    next_write: Instant,
    failed: bool,
}

/// The number of changes of the notebook.
#[derive(Debug, Default)]
struct Changes {
    count: AtomicU64,
    changed: Notify,
    /// What the cell that runs has printed, until its event has the outputs.
    running: Mutex<Option<RunningOutput>>,
}

impl Changes {
    fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }

    fn running(&self) -> MutexGuard<'_, Option<RunningOutput>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An observer that counts changes of the notebook, and forwards events to another one.
struct ChangeCounter {
    inner: Arc<dyn Observer>,
    changes: Arc<Changes>,
}

impl Observer for ChangeCounter {
    fn committed(&self, committed: &Committed<'_>) {
        if matches!(committed.event, Event::Cell(_) | Event::NotebookAction { .. } | Event::TakenBack { .. }) {
            match committed.event {
                Event::Cell(cell) => {
                    self.changes.running().take_if(|running| running.cell_id == cell.cell_id);
                }
                // Another cell can get its id.
                Event::TakenBack { .. } => *self.changes.running() = None,
                _ => {}
            }
            self.changes.add();
        }
        self.inner.committed(committed);
    }

    fn delta(&self, delta: &Delta<'_>) {
        self.inner.delta(delta);
    }

    fn output(&self, output: &OutputPiece<'_>) {
        if let Some(cell_id) = output.cell_id {
            add_output(&mut self.changes.running(), cell_id, output);
            self.changes.add();
        }
        self.inner.output(output);
    }

    fn cell_rerun(&self, piece: &CellRerunPiece<'_>) {
        self.inner.cell_rerun(piece);
    }

    fn tool_progress(&self, progress: &ToolProgressPiece<'_>) {
        self.inner.tool_progress(progress);
    }

    fn question(&self, question: &QuestionPiece<'_>) {
        self.inner.question(question);
    }

    fn commit_ended(&self) -> Result<(), Message> {
        self.inner.commit_ended()
    }
}

/// Adds what a cell prints to what it has printed. Only the end of a very long output is there while it runs.
fn add_output(running: &mut Option<RunningOutput>, cell_id: &str, piece: &OutputPiece<'_>) {
    if running.as_ref().is_none_or(|running| running.cell_id != cell_id || running.is_earlier) {
        *running = Some(RunningOutput { cell_id: cell_id.to_owned(), outputs: vec![], is_earlier: false });
    }
    let Some(RunningOutput { outputs, .. }) = running else { return };
    let left_out = match piece.left_out {
        0 => String::new(),
        bytes => format!("{}\n", filled("… {count} bytes are not shown here", &[("count", &bytes.to_string())])),
    };
    let added = left_out + piece.text;
    let is_same = |output: &Value| output.get("name").and_then(Value::as_str) == Some(piece.stream);
    let last = outputs.last_mut().filter(|output| is_same(output)).and_then(|output| output.get_mut("text"));
    match last {
        Some(Value::String(text)) => {
            if piece.left_out > 0 && !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&added);
            if text.len() > MAX_RUNNING_BYTES {
                let cut = text.ceil_char_boundary(text.len() - MAX_RUNNING_BYTES / 2);
                // Whole lines are left out.
                let cut = text.get(cut..).and_then(|rest| rest.find('\n')).map_or(cut, |line| cut + line + 1);
                text.drain(..cut);
            }
        }
        _ => outputs.push(json!({ "output_type": "stream", "name": piece.stream, "text": added })),
    }
    let excess = outputs.len().saturating_sub(MAX_RUNNING_OUTPUTS);
    outputs.drain(..excess);
}

impl LiveNotebook {
    /// The notebook for the option `--notebook`, of the session `id` or of a new one.
    ///
    /// # Errors
    /// When the extension indicates no format, or the file exists and is not the notebook of this session.
    pub fn from_option(path: Option<&Path>, id: Option<&str>) -> Result<Self, EngineError> {
        let Some(path) = path else { return Ok(Self { live: None }) };
        let form = form_of(path)?;
        check_target(path, form, id)?;
        let request = NotebookFileRequest::new(id.unwrap_or_default(), form, chosen());
        // It is stored nowhere else, and whoever decides about the code that was cut off may want to see it.
        let running = id.filter(|_| form == ExportForm::Ipynb).and_then(|_| earlier_output(path));
        let live = Live {
            path: path.to_path_buf(),
            request,
            changes: Arc::new(Changes { running: Mutex::new(running), ..Changes::default() }),
            written: None,
            next_write: Instant::now(),
            failed: false,
        };
        Ok(Self { live: Some(live) })
    }

    /// Wraps `inner` in an observer that detects changes of the notebook.
    pub fn observer(&self, inner: Arc<dyn Observer>) -> Arc<dyn Observer> {
        match &self.live {
            Some(live) => Arc::new(ChangeCounter { inner, changes: Arc::clone(&live.changes) }),
            None => inner,
        }
    }

    /// Sets the id of the session.
    pub fn start(&mut self, id: &str) {
        if let Some(live) = &mut self.live {
            id.clone_into(&mut live.request.session);
        }
    }

    /// Completes when the file should be written while the session runs; never without a file. Cancel safe.
    pub async fn due(&self) {
        let Some(live) = &self.live else { return std::future::pending().await };
        while live.changes.count.load(Ordering::Relaxed) <= live.written.unwrap_or(0) {
            live.changes.changed.notified().await;
        }
        sleep_until(live.next_write).await;
    }

    /// Writes the file if the notebook changed since the last write, when the session waits or ends.
    pub async fn catch_up(&mut self, store: &dyn Store, front: FrontEnd) {
        let outdated =
            |live: &Live| live.written.is_none_or(|written| written < live.changes.count.load(Ordering::Relaxed));
        if self.live.as_ref().is_some_and(outdated) {
            self.write(store, front).await;
        }
    }

    /// Writes the file. An error is reported once, and the session continues.
    pub async fn write(&mut self, store: &dyn Store, front: FrontEnd) {
        let Some(live) = &mut self.live else { return };
        live.written = Some(live.changes.count.load(Ordering::Relaxed));
        let started = Instant::now();
        live.request.running.clone_from(&live.changes.running());
        let result = write_file(store, &live.request, &live.path).await;
        live.next_write = Instant::now() + MIN_INTERVAL.max(started.elapsed() * INTERVAL_FACTOR);
        match result {
            Ok(_) => live.failed = false,
            Err(error) if !live.failed => {
                live.failed = true;
                front.note(&msg!("{error}; the session continues without it"));
            }
            Err(_) => {}
        }
    }
}
