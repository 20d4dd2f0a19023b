//! The kernels of clients: one for each notebook, made when code first runs in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bcc_engine::engine::Engine;
use bcc_lang::message::msg;
use bcc_runtime::effects::output::NoOutputObserver;
use bcc_runtime::notebook::kernel::contract::{Execution, Kernel, KernelError, KernelSettings};
use bcc_runtime::notebook::kernel::traced::execute_traced;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::Instrument;

use crate::problem::{Problem, ProblemKind};
use crate::settings::BehaviorSettings;

/// The maximum number of notebooks. A new one takes the place of the one that rested longest.
const MAX_NOTEBOOKS: usize = 64;

/// The maximum number of cells of a notebook that run or wait.
const MAX_QUEUED_CELLS: usize = 32;

/// A notebook: the caller to whom it belongs, and the id that the client made up or got.
pub(crate) type NotebookKey = ([u8; 32], String);

/// How a cell ended. None while it runs; a channel that is closed without a result belongs to a cell that was cancelled before it began.
type CellResult = Option<EndedCell>;

/// A cell to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CellCode {
    /// The id of the cell; without one, the same code is another cell.
    pub(crate) cell: Option<String>,
    pub(crate) code: String,
}

/// How a cell ended.
#[derive(Clone, Debug)]
pub(crate) enum EndedCell {
    Ran(Execution),
    /// With what it had shown, and how long it took, also if it only waited.
    Cancelled(Vec<Value>, Duration),
    /// There is no kernel.
    NoKernel(KernelError),
}

/// What a notebook does.
#[derive(Clone, Debug)]
pub(crate) struct NotebookStatus {
    /// The cell that runs, and since when.
    pub(crate) running: Option<(Option<String>, Duration)>,
    /// How the last cell ended, and how long it took.
    pub(crate) last: Option<(EndedCell, Duration)>,
}

/// A cell that runs or waits for the ones before it.
struct RunningCell {
    /// Tells the cells of a notebook apart.
    number: u64,
    what: CellCode,
    started: Instant,
    result: watch::Receiver<CellResult>,
    task: AbortHandle,
    /// Whether it was interrupted, and ends in a moment.
    is_cancelled: bool,
}

struct Notebook {
    kernel: Arc<dyn Kernel>,
    cells: Vec<RunningCell>,
    /// How many cells were started.
    count: u64,
    last: Option<(EndedCell, Duration)>,
    used: Instant,
}

/// The kernels of a server.
pub(crate) struct NotebookKernels {
    engine: Engine,
    settings: KernelSettings,
    notebooks: Mutex<HashMap<NotebookKey, Notebook>>,
}

impl NotebookKernels {
    pub(crate) fn new(engine: Engine, settings: &BehaviorSettings) -> Arc<Self> {
        let settings = settings.kernel.clone();
        Arc::new(Self { engine, settings, notebooks: Mutex::default() })
    }

    fn notebooks(&self) -> MutexGuard<'_, HashMap<NotebookKey, Notebook>> {
        self.notebooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses code in a project that does not allow it.
    ///
    /// # Errors
    /// `Forbidden`, which says how to allow it.
    pub(crate) fn check_permission(&self) -> Result<(), Problem> {
        self.engine.kernel().check_permission().map_err(|denied| {
            let problem = Problem::new(ProblemKind::Forbidden, denied.message);
            match denied.help {
                Some(help) => problem.with_help(help),
                None => problem,
            }
        })
    }

    /// Runs a cell, and waits for its end. If the same cell runs with the same code, waits for that end instead.
    ///
    /// A client that leaves does not end its cell.
    ///
    /// # Errors
    /// `TooManyRequests` if too many cells or notebooks run.
    pub(crate) async fn run(self: &Arc<Self>, key: &NotebookKey, what: CellCode) -> Result<EndedCell, Problem> {
        let since = Instant::now();
        let mut result = self.start(key, what)?;
        let ended = result.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        Ok(ended.unwrap_or_else(|| EndedCell::Cancelled(vec![], since.elapsed())))
    }

    fn start(self: &Arc<Self>, key: &NotebookKey, what: CellCode) -> Result<watch::Receiver<CellResult>, Problem> {
        let busy = |why| Err(Problem::new(ProblemKind::TooManyRequests, why).retry_after(1));
        let mut notebooks = self.notebooks();
        if !notebooks.contains_key(key) {
            if notebooks.len() >= MAX_NOTEBOOKS && !remove_resting(&mut notebooks) {
                return busy(msg!("code runs in {MAX_NOTEBOOKS} notebooks; wait until one of them rests"));
            }
            let kernel = self.engine.kernel();
            let new = Notebook { kernel, cells: Vec::new(), count: 0, last: None, used: Instant::now() };
            notebooks.insert(key.clone(), new);
        }
        let Some(notebook) = notebooks.get_mut(key) else {
            return busy(msg!("the notebook has just ended; try again"));
        };
        notebook.used = Instant::now();
        let is_same = |running: &&RunningCell| what.cell.is_some() && running.what == what && !running.is_cancelled;
        if let Some(running) = notebook.cells.iter().find(is_same) {
            return Ok(running.result.clone());
        }
        if notebook.cells.len() >= MAX_QUEUED_CELLS {
            return busy(msg!("{MAX_QUEUED_CELLS} cells of the notebook wait; wait until some of them have run"));
        }
        let (ends, result) = watch::channel(None);
        let started = Instant::now();
        notebook.count += 1;
        let number = notebook.count;
        let (kernels, own, code) = (Arc::downgrade(self), key.clone(), what.code.clone());
        let (kernel, settings) = (Arc::clone(&notebook.kernel), self.settings.clone());
        let before = notebook.cells.last().map(|cell| cell.result.clone());
        let run = async move {
            // One after the other, as they came. A cell that was cancelled before it began has no result.
            if let Some(mut before) = before {
                let _ = before.wait_for(Option::is_some).await;
            }
            // If this task is aborted, the code is interrupted.
            let ended =
                execute_traced(kernel.as_ref(), &code, settings.timeout, &settings, None, &NoOutputObserver).await;
            let ended = ended.map_or_else(EndedCell::NoKernel, EndedCell::Ran);
            let ended = match kernels.upgrade() {
                Some(kernels) => kernels.finish(&own, number, ended),
                None => ended,
            };
            ends.send_replace(Some(ended));
        };
        let task = tokio::spawn(run.in_current_span());
        let task = task.abort_handle();
        notebook.cells.push(RunningCell { number, what, started, result: result.clone(), task, is_cancelled: false });
        Ok(result)
    }

    /// Notes the end of a cell. Returns how it ended for whoever waits for it.
    fn finish(&self, key: &NotebookKey, number: u64, ended: EndedCell) -> EndedCell {
        let mut notebooks = self.notebooks();
        let Some(notebook) = notebooks.get_mut(key) else { return ended };
        let Some(at) = notebook.cells.iter().position(|cell| cell.number == number) else { return ended };
        let cell = notebook.cells.remove(at);
        let took = cell.started.elapsed();
        let ended = match ended {
            EndedCell::Ran(execution) if cell.is_cancelled => EndedCell::Cancelled(execution.outputs, took),
            EndedCell::NoKernel(_) if cell.is_cancelled => EndedCell::Cancelled(vec![], took),
            ended => ended,
        };
        notebook.last = Some((ended.clone(), took));
        notebook.used = Instant::now();
        ended
    }

    /// Interrupts the cells of a notebook. Returns how many there were. The one that runs ends in a moment, with what it has shown.
    pub(crate) fn cancel(&self, key: &NotebookKey) -> usize {
        let mut notebooks = self.notebooks();
        let Some(notebook) = notebooks.get_mut(key) else { return 0 };
        let mut cells = std::mem::take(&mut notebook.cells);
        let count = cells.iter().filter(|cell| !cell.is_cancelled).count();
        if let Some(first) = cells.first() {
            let took = first.started.elapsed();
            notebook.last = Some((EndedCell::Cancelled(vec![], took), took));
        }
        if cells.first().is_some_and(|first| first.is_cancelled || notebook.kernel.interrupt()) {
            let mut first = cells.remove(0);
            first.is_cancelled = true;
            notebook.cells.push(first);
        }
        cells.iter().for_each(|cell| cell.task.abort());
        count
    }

    /// Stops the kernel of a notebook, and cancels its cells. The next cell starts a new one.
    pub(crate) async fn restart(&self, key: &NotebookKey) {
        let kernel = self.notebooks().get_mut(key).map(|notebook| {
            notebook.cells.drain(..).for_each(|cell| cell.task.abort());
            notebook.last = None;
            Arc::clone(&notebook.kernel)
        });
        if let Some(kernel) = kernel {
            kernel.stop().await;
        }
    }

    /// What a notebook does. One in which no code has run rests.
    pub(crate) fn status(&self, key: &NotebookKey) -> NotebookStatus {
        let notebooks = self.notebooks();
        let notebook = notebooks.get(key);
        let running = notebook.and_then(|notebook| notebook.cells.iter().find(|cell| !cell.is_cancelled));
        NotebookStatus {
            running: running.map(|cell| (cell.what.cell.clone(), cell.started.elapsed())),
            last: notebook.and_then(|notebook| notebook.last.clone()),
        }
    }

    /// Stops all kernels.
    pub(crate) async fn stop(&self) {
        let all = std::mem::take(&mut *self.notebooks());
        for notebook in all.into_values() {
            notebook.cells.iter().for_each(|cell| cell.task.abort());
            notebook.kernel.stop().await;
        }
    }
}

/// Removes the notebook that rested longest. Its kernel ends. False if code runs in all of them.
fn remove_resting(notebooks: &mut HashMap<NotebookKey, Notebook>) -> bool {
    let resting = notebooks.iter().filter(|(_, notebook)| notebook.cells.is_empty());
    let oldest = resting.min_by_key(|(_, notebook)| notebook.used).map(|(key, _)| key.clone());
    let Some(removed) = oldest.and_then(|key| notebooks.remove(&key)) else { return false };
    tokio::spawn(async move { removed.kernel.stop().await });
    true
}
