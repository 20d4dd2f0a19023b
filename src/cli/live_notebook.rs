//! `--notebook FILE`: rewrites the file when cells were committed: immediately when the session waits or ends, and at intervals while
//! it runs.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::cli::front_end::FrontEnd;
use crate::cli::language::chosen;
use bcc_engine::error::EngineError;
use bcc_engine::notebook_file::ownership::{check_target, form_of};
use bcc_engine::notebook_file::write::{NotebookFileRequest, write_file};
use bcc_runtime::program::event::{Committed, Delta, Event, Observer};
use bcc_runtime::program::output_piece::OutputPiece;
use bcc_runtime::program::tool_progress::ToolProgressPiece;
use bcc_store::contract::Store;

/// The minimum time between two writes while the session runs.
const MIN_INTERVAL: Duration = Duration::from_secs(2);

/// The minimum time to the next write, as a multiple of the duration of the last one. It limits the share of time that is spent on
/// writing a large notebook.
const INTERVAL_FACTOR: u32 = 20;

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
}

/// An observer that counts changes of the notebook, and forwards events to another one.
struct ChangeCounter {
    inner: Arc<dyn Observer>,
    changes: Arc<Changes>,
}

impl Observer for ChangeCounter {
    fn committed(&self, committed: &Committed<'_>) {
        if matches!(committed.event, Event::Cell(_) | Event::NotebookAction { .. } | Event::TakenBack { .. }) {
            self.changes.count.fetch_add(1, Ordering::Relaxed);
            self.changes.changed.notify_one();
        }
        self.inner.committed(committed);
    }

    fn delta(&self, delta: &Delta<'_>) {
        self.inner.delta(delta);
    }

    fn output(&self, output: &OutputPiece<'_>) {
        self.inner.output(output);
    }

    fn tool_progress(&self, progress: &ToolProgressPiece<'_>) {
        self.inner.tool_progress(progress);
    }

    fn commit_ended(&self) -> Result<(), Message> {
        self.inner.commit_ended()
    }
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
        let request = NotebookFileRequest { session: id.unwrap_or_default().to_owned(), form, language: chosen() };
        let live = Live {
            path: path.to_path_buf(),
            request,
            changes: Arc::default(),
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
