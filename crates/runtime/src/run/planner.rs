//! Where a plan for the rest of a topic comes in: a model makes it beside the session, which never waits for it
//! (docs/orchestration.md). One is made at a time.

use bcc_lang::message::message::Message;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::program::orchestration::plan_prompt::OrchestrationContext;
use crate::program::orchestration::{Generated, generate_orchestration_plan};

/// A plan that was asked for: what a resumed session needs to ask again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestedPlan {
    /// The key of the topic's frame.
    pub home: String,
    /// The action whose turn was analysed.
    pub action_id: String,
    pub round: u32,
    pub analysis: Value,
}

/// A plan that came in, or why none did.
#[derive(Debug)]
pub struct FinishedPlan {
    pub asked: RequestedPlan,
    pub generated: Generated,
}

/// The plan of one session that is being made.
#[derive(Default)]
pub struct Planner {
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
    /// Asks for a plan, unless one is being made or lies there. Gives whether it does. Must be called inside a tokio runtime.
    pub fn start(&mut self, asked: RequestedPlan, context: OrchestrationContext) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        {
            let mut state = self.shared.state();
            if state.asked.is_some() || state.planned.is_some() {
                return false;
            }
            state.asked = Some(asked.clone());
        }
        let underway = Underway { shared: Arc::clone(&self.shared), asked: Some(asked.clone()), generated: None };
        let task = runtime.spawn(async move {
            let mut underway = underway;
            underway.generated = Some(generate_orchestration_plan(&asked.analysis, &context).await);
        });
        self.task = Some(task.abort_handle());
        true
    }

    /// Lays down why a plan that was asked for is not made, unless something lies there.
    pub fn failed(&self, asked: RequestedPlan, fault: Message) {
        let generated = Generated { fault: Some(fault), ..Generated::default() };
        self.shared.state().planned.get_or_insert(FinishedPlan { asked, generated });
        self.shared.arrived.notify_one();
    }

    /// What came in since the last time.
    pub fn take(&self) -> Option<FinishedPlan> {
        self.shared.state().planned.take()
    }

    /// Waits until something came in. Dropping the future loses nothing.
    pub async fn arrived(&self) {
        loop {
            if self.shared.state().planned.is_some() {
                return;
            }
            self.shared.arrived.notified().await;
        }
    }

    /// What was asked and not taken yet.
    pub fn pending(&self) -> Option<RequestedPlan> {
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

/// A task under way: however it ends, its end is told.
struct Underway {
    shared: Arc<Shared>,
    asked: Option<RequestedPlan>,
    generated: Option<Generated>,
}

impl Drop for Underway {
    fn drop(&mut self) {
        let Some(asked) = self.asked.take() else { return };
        let fault = || Generated { fault: Some(Message::word("it ended without a result")), ..Generated::default() };
        let generated = self.generated.take().unwrap_or_else(fault);
        let mut state = self.shared.state();
        state.asked = None;
        state.planned = Some(FinishedPlan { asked, generated });
        drop(state);
        self.shared.arrived.notify_one();
    }
}
