//! What all handlers share.

use std::sync::Arc;

use governor::{Quota, RateLimiter};
use tokio::sync::Mutex;

use crate::api::catalog::ScriptCatalog;
use crate::behavior::kernels::NotebookKernels;
use crate::chat::branches::ChatBranches;
use crate::client_limit::ClientLimiter;
use crate::live::sessions::LiveSessions;
use crate::metrics::Metrics;
use crate::settings::ServeSettings;

/// A running server.
#[derive(Clone)]
pub struct ServerState {
    pub(crate) sessions: Arc<LiveSessions>,
    pub(crate) settings: Arc<ServeSettings>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) catalog: Arc<ScriptCatalog>,
    pub(crate) limiter: Arc<ClientLimiter>,
    pub(crate) branches: Arc<ChatBranches>,
    pub(crate) kernels: Arc<NotebookKernels>,
    /// Who runs the tests of the project.
    pub(crate) tests: Arc<Mutex<()>>,
    /// Who writes a data set.
    pub(crate) data_sets: Arc<Mutex<()>>,
}

impl ServerState {
    pub(crate) fn new(engine: bcc_engine::engine::Engine, settings: ServeSettings) -> Self {
        let metrics = Arc::new(Metrics::default());
        let catalog = Arc::new(ScriptCatalog::new(engine.project().directory.clone()));
        let limiter = Arc::new(RateLimiter::keyed(Quota::per_minute(settings.limits.requests_per_minute)));
        let kernels = NotebookKernels::new(engine.clone(), &settings.behavior);
        let sessions = LiveSessions::new(engine, Arc::clone(&metrics), settings.limits.idle_time);
        let (branches, tests, data_sets) = Default::default();
        let settings = Arc::new(settings);
        Self { sessions, settings, metrics, catalog, limiter, branches, kernels, tests, data_sets }
    }
}
