//! The models of a session.

use std::sync::Arc;

use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::Provider;

pub trait ModelProviders: Send + Sync {
    /// The model with this name; without a name, the session's model.
    fn provider(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError>;

    /// The model for the monitor of this action: the one named `monitor`, else the session's. `None` if it cannot answer monitors, such
    /// as the offline model; then no monitor starts.
    fn monitor(&self, action_id: &str) -> Option<Arc<dyn Provider>>;
}
