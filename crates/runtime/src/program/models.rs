//! The models of a session.

use std::sync::Arc;

use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::Provider;

pub trait ModelProviders: Send + Sync {
    /// The model of this name; without a name, the session's.
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError>;

    /// The model that the monitor of this action asks: the one named `monitor`, else the session's. `None` when it has no
    /// answers for it, as the offline model has none: then none starts.
    fn monitor(&self, action_id: &str) -> Option<Arc<dyn Provider>>;
}
