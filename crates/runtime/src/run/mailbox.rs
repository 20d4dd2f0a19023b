//! Where analyses of monitors come in: they run beside the session, which never waits for one (docs/monitors.md).
//!
//! One runs at a time per action; of those that must wait for it, only the newest is kept. What was analysed already is not
//! analysed again. Dropping the mailbox ends all of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::error;

use crate::program::analysis::{AnalysisResult, WatchedTurn};
use crate::program::monitor::{Monitor, MonitorContext};

/// An analysis that has no result yet: what a resumed session needs to start it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unanswered {
    /// The key of the frame of the topic (or skill) whose next turn may use the advice.
    pub home: String,
    /// The sequence number of the outcome that is analysed.
    pub seq: u64,
    #[serde(flatten)]
    pub watched: WatchedTurn,
}

/// An analysis to be made.
pub struct Job {
    pub about: Unanswered,
    pub monitor: &'static dyn Monitor,
    pub context: MonitorContext,
}

/// An analysis that was made.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub about: Unanswered,
    /// What came of it; the empty analysis after any failure.
    pub analysed: AnalysisResult,
    /// What the next prompt of its home is told; `None` when nothing is advised.
    pub feedback: Option<String>,
    /// Whether it asks for a new plan of the rest of the topic.
    pub orchestrate: bool,
}

/// One action of one visit of a topic: its home and its id.
type Key = (String, String);

#[derive(Default)]
pub struct Mailbox {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    running: BTreeMap<Key, Running>,
    waiting: BTreeMap<Key, Job>,
    /// The metrics of an action that were analysed last, so that the same ones are not analysed again.
    last: BTreeMap<Key, Map<String, Value>>,
    arrivals: VecDeque<Arrival>,
    /// Nobody will look at arrivals any more.
    closed: bool,
}

struct Running {
    about: Unanswered,
    task: Option<AbortHandle>,
}

impl Mailbox {
    /// Starts an analysis, or lets it wait for the one that runs for the same action. Does nothing when these metrics are
    /// being analysed or were analysed last. Must be called inside a tokio runtime; outside of one it comes back empty.
    pub fn start(&self, job: Job) {
        let key = key(&job.about);
        let metrics = &job.about.watched.metrics;
        let mut state = self.shared.state();
        if let Some(running) = state.running.get(&key) {
            if running.about.watched.metrics == *metrics {
                // The person is again where the analysis under way found them: what waited is out of date.
                state.waiting.remove(&key);
            } else {
                state.waiting.insert(key, job);
            }
        } else if state.last.get(&key) != Some(metrics) {
            state.running.insert(key, Running { about: job.about.clone(), task: None });
            drop(state);
            begin(&self.shared, job);
        }
    }

    /// What has come in since the last time, in the order in which it came.
    pub fn take(&self) -> Vec<Arrival> {
        self.shared.state().arrivals.drain(..).collect()
    }

    /// Waits until something is there to be taken, however long that is. Dropping the future loses nothing.
    pub async fn arrived(&self) {
        loop {
            // Whoever comes in after this look leaves a permit, which ends the wait at once.
            if !self.shared.state().arrivals.is_empty() {
                return;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// What has not been taken yet, in the order of the turns: under way, waiting, or come in. At rest, this is what a resumed
    /// session starts again.
    pub fn pending(&self) -> Vec<Unanswered> {
        let state = self.shared.state();
        let running = state.running.values().map(|running| &running.about);
        let waiting = state.waiting.values().map(|job| &job.about);
        let arrived = state.arrivals.iter().map(|arrival| &arrival.about);
        let mut pending: Vec<Unanswered> = running.chain(waiting).chain(arrived).cloned().collect();
        pending.sort_by_key(|about| about.seq);
        pending
    }

    /// Forgets what was analysed for actions of a home that has ended, so that memory does not grow with the session. What is
    /// under way goes on: it is kept in the history, late as it is.
    pub fn forget(&self, home: &str) {
        self.shared.state().last.retain(|(of, _), _| of != home);
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.closed = true;
        state.waiting.clear();
        let tasks: Vec<AbortHandle> = state.running.values().filter_map(|running| running.task.clone()).collect();
        drop(state);
        tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task under way. Its end is told when it is dropped, in whatever way it ends, so that a monitor that panics blocks nobody.
struct Underway {
    shared: Arc<Shared>,
    about: Unanswered,
    result: Option<Arrival>,
}

impl Underway {
    fn done(mut self, arrival: Arrival) {
        self.result = Some(arrival);
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        let key = key(&self.about);
        let mut state = self.shared.state();
        if state.closed {
            return;
        }
        state.running.remove(&key);
        let arrival = self.result.take().unwrap_or_else(|| {
            error!(
                action_id = self.about.watched.action_id,
                "a monitor ended without a result, and its advice is empty"
            );
            nothing(self.about.clone())
        });
        // What failed may be tried again with the same metrics.
        if arrival.analysed.worked() {
            state.last.insert(key.clone(), self.about.watched.metrics.clone());
        }
        state.arrivals.push_back(arrival);
        let analysed = state.last.get(&key);
        let next = state.waiting.get(&key).is_some_and(|job| analysed != Some(&job.about.watched.metrics));
        let next = state.waiting.remove(&key).filter(|_| next);
        if let Some(job) = &next {
            state.running.insert(key, Running { about: job.about.clone(), task: None });
        }
        drop(state);
        self.shared.arrived.notify_one();
        if let Some(job) = next {
            begin(&self.shared, job);
        }
    }
}

/// Starts a task that `running` knows already. The state is not held meanwhile: a runtime that is being shut down drops the
/// task at once, which then looks at the state itself.
fn begin(shared: &Arc<Shared>, job: Job) {
    let Job { about, monitor, context } = job;
    let (key, seq) = (key(&about), about.seq);
    let underway = Underway { shared: Arc::clone(shared), about: about.clone(), result: None };
    let Ok(runtime) = Handle::try_current() else { return };
    let task = runtime.spawn(async move {
        let analysed = monitor.analyze_with_llm(&about.watched, &context).await;
        let words = analysed.words.clone().unwrap_or_else(|| monitor.words());
        let feedback = monitor.build_feedback_prompt(&analysed.analysis, &words);
        let orchestrate = monitor.should_trigger_orchestration(&analysed.analysis);
        underway.done(Arrival { about, analysed, feedback, orchestrate });
    });
    let mut state = shared.state();
    if state.closed {
        task.abort();
    } else if let Some(running) = state.running.get_mut(&key).filter(|running| running.about.seq == seq) {
        running.task = Some(task.abort_handle());
    }
}

fn nothing(about: Unanswered) -> Arrival {
    Arrival { about, analysed: AnalysisResult::default(), feedback: None, orchestrate: false }
}

fn key(about: &Unanswered) -> Key {
    (about.home.clone(), about.watched.action_id.clone())
}
