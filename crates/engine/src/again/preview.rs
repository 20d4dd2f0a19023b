//! Which model calls a session takes that begins again: it runs in memory with the replies of the earlier one, up to the first prompt that
//! none of them answers. No model is called, and nothing is done outside.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::{LiveObserver, Provider, ReplyPolicy};
use bcc_llm::model::reply::ModelReply;
use bcc_llm::model::request::{ModelRequest, Purpose, Task};
use bcc_runtime::program::event::NoObserver;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::models::ModelProviders;
use bcc_runtime::run::head::SessionStatus;
use bcc_runtime::run::session::{Session, SessionPause};
use bcc_runtime::run::start::SessionParts;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use bcc_store::rows::NewSessionRow;
use tokio::sync::Notify;

use crate::again::restart::{AgainCopy, CallPlace};
use crate::earlier_replies::{UsedReplies, with_counted_replies};
use crate::engine::{Engine, holder, services};
use crate::error::EngineError;
use crate::host_services::host_services;
use crate::model_selection::{ModelRequested, select_models};

/// The id of the session in memory.
const PREVIEWED: &str = "preview";

/// What an answer to a question about an earlier effect is, until the person gives one.
const ASSUMED: &str = "skip";

/// The calls of a previewed session.
pub(crate) struct PreviewedCalls {
    pub(crate) recorded: u64,
    pub(crate) first_difference: Option<CallPlace>,
}

impl Engine {
    /// Runs the session in memory, with these answers of the person.
    pub(crate) async fn preview_again(
        &self,
        copy: &AgainCopy,
        answers: &[String],
    ) -> Result<PreviewedCalls, EngineError> {
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (session, documents, first) = self.again_rows(copy, PREVIEWED).await?;
        // No model reads them.
        let session = NewSessionRow { texts: None, ..session };
        memory.create(&session, &documents, &first).await?;
        let AgainCopy { settings, pinned, program, .. } = copy;
        let requested = ModelRequested { model: settings.model.as_deref(), stored: None, replay: None };
        let (project, environment) = (self.project(), self.environment());
        let selected = select_models(project, environment, &self.shared, requested, program)?;
        let first = Arc::new(FirstDifference::default());
        let models: Arc<dyn ModelProviders> =
            Arc::new(UnaskedModels { models: selected.models, first: Arc::clone(&first) });
        let used = UsedReplies::default();
        let models = match &settings.retry_of {
            Some(of) if !settings.asks_anew => {
                with_counted_replies(self.store().as_ref(), of, settings.retry_seq, models, &used).await?
            }
            _ => models,
        };
        // Permitted, so that the session takes the same course; but there is nothing that could do it.
        let permissions = host_services(project, environment, pinned).permissions;
        let host = HostServices { permissions, ..HostServices::default() };
        let clock = self.clock_of(settings, PREVIEWED, SessionStatus::parse(&copy.rows.first.status)).await?;
        let parts = SessionParts {
            id: PREVIEWED.to_owned(),
            program: Arc::clone(program),
            services: services(models, clock, Arc::new(NoObserver), pinned, host),
            lock: memory.lock(PREVIEWED, &holder()).await?,
            store: memory,
            script: program.id.clone(),
            model: selected.name,
            budget: self.budget,
        };
        let session = Session::resume(parts).await?;
        tokio::select! {
            biased;
            () = first.found.notified() => {}
            ended = answered(session, answers) => ended?,
        }
        let first_difference = first.place.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(PreviewedCalls { recorded: used.count(), first_difference })
    }
}

/// Gives a session these answers, until it ends or waits for something else.
async fn answered(mut session: Session, answers: &[String]) -> Result<(), EngineError> {
    let mut answers = answers.iter();
    loop {
        if session.advance().await? != SessionPause::Waiting {
            return Ok(());
        }
        // As a person does, who reads first.
        while session.awaits_analysis() {
            session.wait_for_result().await;
            session.commit_results().await?;
        }
        let answer = match session.awaits_answer() {
            true => answers.next().map(String::as_str),
            false => session.awaits_effect_answer().then_some(ASSUMED),
        };
        let Some(answer) = answer else { return Ok(()) };
        session.answer(answer, None).await?;
    }
}

/// The first call that no earlier reply answers.
#[derive(Default)]
struct FirstDifference {
    found: Notify,
    place: Mutex<Option<CallPlace>>,
}

/// Models that are not asked: their calls do not end.
struct UnaskedModels {
    models: Arc<dyn ModelProviders>,
    first: Arc<FirstDifference>,
}

impl UnaskedModels {
    fn unasked(&self, provider: Arc<dyn Provider>) -> Arc<dyn Provider> {
        Arc::new(UnaskedProvider { provider, first: Arc::clone(&self.first) })
    }
}

impl ModelProviders for UnaskedModels {
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        self.models.provider(name).map(|provider| self.unasked(provider))
    }

    fn monitor(&self, action_id: &str) -> Option<Arc<dyn Provider>> {
        self.models.monitor(action_id).map(|provider| self.unasked(provider))
    }
}

struct UnaskedProvider {
    provider: Arc<dyn Provider>,
    first: Arc<FirstDifference>,
}

#[async_trait]
impl Provider for UnaskedProvider {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn answers(&self, purpose: Purpose, action_id: &str) -> bool {
        self.provider.answers(purpose, action_id)
    }

    fn reply_policy(&self) -> ReplyPolicy {
        self.provider.reply_policy()
    }

    fn reply_policy_for(&self, task: &Task) -> ReplyPolicy {
        self.provider.reply_policy_for(task)
    }

    async fn complete(&self, request: &ModelRequest, _: &mut dyn LiveObserver) -> Result<ModelReply, ModelError> {
        let Task { action_id, purpose, round, .. } = &request.task;
        let place = CallPlace { action_id: action_id.clone(), purpose: purpose.name(), round: *round };
        self.first.place.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(place);
        self.first.found.notify_one();
        std::future::pending().await
    }
}
