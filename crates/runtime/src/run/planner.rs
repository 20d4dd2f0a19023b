//! Makes plans for the remaining topic with a model in the background; the session never waits for one (docs/orchestration.md).
//! Only one plan is made at a time.

use bcc_lang::message::message::Message;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::Instrument;

use crate::program::orchestration::plan_prompt::OrchestrationContext;
use crate::program::orchestration::{Generated, generate_orchestration_plan};
use crate::program::outcome::ExitReason;

/// A requested plan: what a resumed session needs to request it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestedPlan {
    /// The key of the topic's frame.
    #[serde(rename = "home")]
    pub visit_key: String,
    /// The action whose turn was analysed.
    pub action_id: String,
    pub round: u32,
    pub analysis: Value,
    /// Why the analyzed action ended, or what prevented it from continuing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<ExitReason>,
}

/// A finished plan, or why there is none.
#[derive(Debug)]
pub(crate) struct FinishedPlan {
    pub asked: RequestedPlan,
    pub generated: Generated,
}

/// The plan in progress of one session.
#[derive(Default)]
pub(crate) struct Planner {
    shared: Arc<Shared>,
    task: Option<AbortHandle>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Notify,
}

#[derive(Default)]
struct State {
    asked: Option<RequestedPlan>,
    planned: Option<FinishedPlan>,
}

impl Planner {
    /// Requests a plan, unless one is being made or was not taken yet. Returns whether it did. Must be called inside a tokio runtime.
    pub(crate) fn start(&mut self, asked: RequestedPlan, context: OrchestrationContext) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        {
            let mut state = self.shared.state();
            if state.asked.is_some() || state.planned.is_some() {
                return false;
            }
            state.asked = Some(asked.clone());
        }
        let running_task =
            RunningTask { shared: Arc::clone(&self.shared), asked: Some(asked.clone()), generated: None };
        let span = tracing::info_span!(
            "orchestrator",
            gen_ai.conversation.id = context.session,
            bcc_script.topic = context.topic_id,
        );
        let planning = async move {
            let mut running_task = running_task;
            running_task.generated = Some(generate_orchestration_plan(&asked.analysis, &context).await);
        };
        let task = runtime.spawn(planning.instrument(span));
        self.task = Some(task.abort_handle());
        true
    }

    /// Stores why a requested plan is not made, unless there is a finished plan.
    pub(crate) fn failed(&self, asked: RequestedPlan, failure: Message) {
        let generated = Generated { error: Some(failure), ..Generated::default() };
        self.shared.state().planned.get_or_insert(FinishedPlan { asked, generated });
        self.shared.arrived.notify_one();
    }

    /// Takes the finished plan since the last call.
    pub(crate) fn take(&self) -> Option<FinishedPlan> {
        self.shared.state().planned.take()
    }

    /// Waits until there is a finished plan. Dropping the future loses nothing.
    pub(crate) async fn arrived(&self) {
        loop {
            if self.shared.state().planned.is_some() {
                return;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// The request whose result was not taken yet.
    pub(crate) fn pending(&self) -> Option<RequestedPlan> {
        let state = self.shared.state();
        state.asked.clone().or_else(|| state.planned.as_ref().map(|planned| planned.asked.clone()))
    }
}

impl Drop for Planner {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running task: dropping it reports its end, however it ends.
struct RunningTask {
    shared: Arc<Shared>,
    asked: Option<RequestedPlan>,
    generated: Option<Generated>,
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        let Some(asked) = self.asked.take() else { return };
        let no_result =
            || Generated { error: Some(Message::word("it ended without a result")), ..Generated::default() };
        let generated = self.generated.take().unwrap_or_else(no_result);
        let mut state = self.shared.state();
        state.asked = None;
        state.planned = Some(FinishedPlan { asked, generated });
        drop(state);
        self.shared.arrived.notify_one();
    }
}
