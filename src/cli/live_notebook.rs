//! `--notebook FILE`: the file is written anew as the session goes on, when cells were committed: at once when the session waits
//! or ends, and now and then while it runs.

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
use bcc_engine::notebook_file::ownership::{form_of, may_become};
use bcc_engine::notebook_file::write::{NotebookFileRequest, write_file};
use bcc_runtime::program::event::{Committed, Delta, Event, Observer};
use bcc_store::contract::Store;

/// How much time lies between two writings while the session runs, at least.
const BETWEEN: Duration = Duration::from_secs(2);

/// How many times as long as one writing took the session then runs without another: of a long notebook, writing takes at
/// most this part of the time.
const SHARE: u32 = 20;

/// The file, if one is asked for.
pub struct LiveNotebook {
    live: Option<Live>,
}

struct Live {
    path: std::path::PathBuf,
    asked: NotebookFileRequest,
    changes: Arc<Changes>,
    /// How many changes the file has; none before it was written.
    written: Option<u64>,
    next: Instant,
    failed: bool,
}

/// How often the notebook was changed.
#[derive(Debug, Default)]
struct Changes {
    count: AtomicU64,
    changed: Notify,
}

/// An observer that counts changes of the notebook, in front of another.
struct Counting {
    inner: Arc<dyn Observer>,
    changes: Arc<Changes>,
}

impl Observer for Counting {
    fn committed(&self, committed: &Committed<'_>) {
        if matches!(committed.event, Event::Cell(_) | Event::NotebookAction { .. }) {
            self.changes.count.fetch_add(1, Ordering::Relaxed);
            self.changes.changed.notify_one();
        }
        self.inner.committed(committed);
    }

    fn delta(&self, delta: &Delta<'_>) {
        self.inner.delta(delta);
    }
}

impl LiveNotebook {
    /// What `--notebook` asks for, of the session `id`, or of a new one. The file must be free for it.
    ///
    /// # Errors
    /// When its ending says no form, or something else is there.
    pub fn asked(path: Option<&Path>, id: Option<&str>) -> Result<Self, EngineError> {
        let Some(path) = path else { return Ok(Self { live: None }) };
        let form = form_of(path)?;
        may_become(path, form, id)?;
        let asked = NotebookFileRequest { session: id.unwrap_or_default().to_owned(), form, language: chosen() };
        let live = Live {
            path: path.to_path_buf(),
            asked,
            changes: Arc::default(),
            written: None,
            next: Instant::now(),
            failed: false,
        };
        Ok(Self { live: Some(live) })
    }

    /// `inner`, behind an observer that sees when the notebook changes.
    pub fn observer(&self, inner: Arc<dyn Observer>) -> Arc<dyn Observer> {
        match &self.live {
            Some(live) => Arc::new(Counting { inner, changes: Arc::clone(&live.changes) }),
            None => inner,
        }
    }

    /// The session is there, under this id.
    pub fn begin(&mut self, id: &str) {
        if let Some(live) = &mut self.live {
            id.clone_into(&mut live.asked.session);
        }
    }

    /// Ends when the file should be written while the session runs; never without a file. May be dropped and called again.
    pub async fn due(&self) {
        let Some(live) = &self.live else { return std::future::pending().await };
        while live.changes.count.load(Ordering::Relaxed) <= live.written.unwrap_or(0) {
            live.changes.changed.notified().await;
        }
        sleep_until(live.next).await;
    }

    /// The session rests: the file is written now, unless nothing changed since it was.
    pub async fn catch_up(&mut self, archive: &dyn Store, front: FrontEnd) {
        let behind =
            |live: &Live| live.written.is_none_or(|written| written < live.changes.count.load(Ordering::Relaxed));
        if self.live.as_ref().is_some_and(behind) {
            self.write(archive, front).await;
        }
    }

    /// Writes the file. One that cannot be written is told once, and stops nothing.
    pub async fn write(&mut self, archive: &dyn Store, front: FrontEnd) {
        let Some(live) = &mut self.live else { return };
        live.written = Some(live.changes.count.load(Ordering::Relaxed));
        let begun = Instant::now();
        let result = write_file(archive, &live.asked, &live.path).await;
        live.next = Instant::now() + BETWEEN.max(begun.elapsed() * SHARE);
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
