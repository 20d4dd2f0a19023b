//! What the outside world gives to a running session.

use std::sync::Arc;

use crate::program::clock::Clock;
use crate::program::event::Observer;
use crate::program::outside::Outside;
use crate::program::recheck::Recheck;
use crate::program::recorder::Recorder;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::Provider;

/// The models that a session may ask.
pub trait Models: Send + Sync {
    /// The model of this name; without a name, the session's.
    ///
    /// # Errors
    /// When the configuration has no such model, or it cannot be used.
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError>;

    /// The model that the monitor of this action asks: the one named `monitor`, else the session's. `None` when it has no
    /// answers for it, as the offline model has none: then none starts.
    fn monitor(&self, action_id: &str) -> Option<Arc<dyn Provider>>;
}

/// The models, the clock, the reader of events and the script of one session.
#[derive(Clone)]
pub struct Services {
    /// The models.
    pub models: Arc<dyn Models>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Who reads the events.
    pub observer: Arc<dyn Observer>,
    /// The script that the session is pinned to, to be checked again with other actions.
    pub recheck: Arc<dyn Recheck>,
    /// Who writes down what is said to models; nobody, mostly.
    pub recorder: Option<Arc<dyn Recorder>>,
    /// What it may touch beyond models.
    pub outside: Outside,
}
