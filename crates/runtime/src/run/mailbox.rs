//! Runs the analyses of monitors in the background; the session never waits for one (docs/monitors.md).
//!
//! One analysis runs at a time per action; of those that wait for it, only the newest is kept. The same metrics are not analyzed
//! twice in a row. Dropping the mailbox aborts all analyses.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::{Instrument, error};

use crate::program::analysis::{AnalysisResult, WatchedTurn};
use crate::program::monitor::{Monitor, MonitorContext};

/// An analysis without a result: what a resumed session needs to restart it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingAnalysis {
    /// The key of the frame of the topic (or skill) whose next turn may use the advice.
    #[serde(rename = "home")]
    pub visit_key: String,
    /// The sequence number of the analyzed outcome.
    pub seq: u64,
    /// The number of messages until the answer of the analyzed turn; unknown if an earlier release stored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// The last event when an answer was taken back and the analysis, which may have had a result by then, was restarted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_at: Option<u64>,
    #[serde(flatten)]
    pub watched: WatchedTurn,
}

/// An analysis to run.
pub struct Job {
    pub request: PendingAnalysis,
    pub monitor: &'static dyn Monitor,
    pub context: MonitorContext,
}

/// A finished analysis.
#[derive(Clone, Debug)]
pub struct FinishedAnalysis {
    pub request: PendingAnalysis,
    /// The result; the empty analysis after any failure.
    pub result: AnalysisResult,
    /// The advice for the next prompt in its topic or skill; `None` if there is none.
    pub feedback: Option<String>,
    /// Whether it requests a new plan of the remaining topic.
    pub orchestrate: bool,
}

/// One action of one visit of a topic: the key of its frame, and the id of the action.
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
    /// The last analyzed metrics of each action, so that the same ones are not analyzed again.
    last: BTreeMap<Key, Map<String, Value>>,
    arrivals: VecDeque<FinishedAnalysis>,
    /// Whether the mailbox was dropped, so that results are ignored.
    closed: bool,
}

struct Running {
    request: PendingAnalysis,
    task: Option<AbortHandle>,
}

impl Mailbox {
    /// Starts an analysis, or queues it behind the one that runs for the same action. Does nothing if these metrics are being
    /// analyzed or were analyzed last. Must be called inside a tokio runtime; otherwise the result is empty.
    pub fn start(&self, job: Job) {
        let key = key(&job.request);
        let metrics = &job.request.watched.metrics;
        let mut state = self.shared.state();
        if let Some(running) = state.running.get(&key) {
            if running.request.watched.metrics == *metrics {
                // The running analysis has the same metrics, so the queued one is outdated.
                state.waiting.remove(&key);
            } else {
                state.waiting.insert(key, job);
            }
        } else if state.last.get(&key) != Some(metrics) {
            state.running.insert(key, Running { request: job.request.clone(), task: None });
            drop(state);
            spawn(&self.shared, job);
        }
    }

    /// Takes the results since the last call, in the order in which they were received.
    pub fn take(&self) -> Vec<FinishedAnalysis> {
        self.shared.state().arrivals.drain(..).collect()
    }

    /// Waits until there is a result, without a timeout. Dropping the future loses nothing.
    pub async fn wait_for_result(&self) {
        loop {
            // A result that is added after this check leaves a permit, which ends the wait at once.
            if !self.shared.state().arrivals.is_empty() {
                return;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// The analyses whose results were not taken yet, in the order of the turns: running, queued, or finished. A resumed session starts
    /// them again.
    pub fn pending(&self) -> Vec<PendingAnalysis> {
        let state = self.shared.state();
        let running = state.running.values().map(|running| &running.request);
        let waiting = state.waiting.values().map(|job| &job.request);
        let arrived = state.arrivals.iter().map(|arrival| &arrival.request);
        let mut pending: Vec<PendingAnalysis> = running.chain(waiting).chain(arrived).cloned().collect();
        pending.sort_by_key(|request| request.seq);
        pending
    }

    /// Forgets the last metrics of a topic or skill that has ended, so that memory does not grow with the session. Running analyses
    /// continue, and their results go into the history.
    pub fn forget(&self, visit_key: &str) {
        self.shared.state().last.retain(|(owner, _), _| owner != visit_key);
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

/// A running task. Dropping it reports its end, however it ends, so that a monitor that panics blocks nothing.
struct RunningTask {
    shared: Arc<Shared>,
    request: PendingAnalysis,
    result: Option<FinishedAnalysis>,
}

impl RunningTask {
    fn done(mut self, arrival: FinishedAnalysis) {
        self.result = Some(arrival);
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        let key = key(&self.request);
        let mut state = self.shared.state();
        if state.closed {
            return;
        }
        state.running.remove(&key);
        let arrival = self.result.take().unwrap_or_else(|| {
            error!(
                action_id = self.request.watched.action_id,
                "a monitor ended without a result, and its advice is empty"
            );
            empty_result(self.request.clone())
        });
        // A failed analysis may be retried with the same metrics.
        if arrival.result.succeeded() {
            state.last.insert(key.clone(), self.request.watched.metrics.clone());
        }
        state.arrivals.push_back(arrival);
        let last = state.last.get(&key);
        let next = state.waiting.get(&key).is_some_and(|job| last != Some(&job.request.watched.metrics));
        let next = state.waiting.remove(&key).filter(|_| next);
        if let Some(job) = &next {
            state.running.insert(key, Running { request: job.request.clone(), task: None });
        }
        drop(state);
        self.shared.arrived.notify_one();
        if let Some(job) = next {
            spawn(&self.shared, job);
        }
    }
}

/// Starts a task that is already in `running`. The state must not be locked: a runtime that is shutting down drops the task at
/// once, which then locks the state.
fn spawn(shared: &Arc<Shared>, job: Job) {
    let Job { request, monitor, context } = job;
    let (key, seq) = (key(&request), request.seq);
    let running_task = RunningTask { shared: Arc::clone(shared), request: request.clone(), result: None };
    let Ok(runtime) = Handle::try_current() else { return };
    let span = tracing::info_span!(
        "monitor",
        gen_ai.conversation.id = context.session,
        bcc_script.action_type = request.watched.action_type,
        bcc_script.round = i64::from(request.watched.round),
    );
    let analysis = async move {
        let analysed = monitor.analyze_with_llm(&request.watched, &context).await;
        let texts = analysed
            .feedback_texts
            .clone()
            .unwrap_or_else(|| monitor.feedback_texts(context.program.templates.language()));
        let feedback = monitor.build_feedback_prompt(&analysed.analysis, &texts);
        let orchestrate = monitor.should_trigger_orchestration(&analysed.analysis);
        running_task.done(FinishedAnalysis { request, result: analysed, feedback, orchestrate });
    };
    let task = runtime.spawn(analysis.instrument(span));
    let mut state = shared.state();
    if state.closed {
        task.abort();
    } else if let Some(running) = state.running.get_mut(&key).filter(|running| running.request.seq == seq) {
        running.task = Some(task.abort_handle());
    }
}

fn empty_result(request: PendingAnalysis) -> FinishedAnalysis {
    FinishedAnalysis { request, result: AnalysisResult::default(), feedback: None, orchestrate: false }
}

fn key(request: &PendingAnalysis) -> Key {
    (request.visit_key.clone(), request.watched.action_id.clone())
}
