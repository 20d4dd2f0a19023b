//! `--replay FILE`: replaces all models of a session with a recording.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::EngineError;
use crate::export::events_of;
use crate::project::absolute;
use crate::recording::read;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::Provider;
use bcc_llm::model::request::Purpose;
use bcc_llm::providers::replay::recording::{Recording, ReplayMatching};
use bcc_runtime::program::models::ModelProviders;
use bcc_store::contract::Store;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayRequest {
    pub file: PathBuf,
    pub by: ReplayMatching,
}

impl ReplayRequest {
    /// Makes the path absolute, so that the file is found from any directory.
    pub fn new(file: &Path, by: ReplayMatching) -> Self {
        Self { file: absolute(file), by }
    }

    pub fn open(&self) -> Result<ReplayedModels, EngineError> {
        let shown = self.file.display().to_string();
        Ok(ReplayedModels(Arc::new(Recording::parse(&shown, &read(&self.file)?, self.by)?)))
    }
}

/// The models of a session that replays a recording, which replaces all of them.
#[derive(Clone)]
pub struct ReplayedModels(Arc<Recording>);

impl ReplayedModels {
    /// The name in events.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Skips the calls that the session made before.
    pub async fn resume(&self, store: &dyn Store, id: &str) -> Result<(), EngineError> {
        for call in events_of(store, id, "model_call").await? {
            let text = |pointer: &str| call.pointer(pointer).and_then(serde_json::Value::as_str);
            let answered = call.get("parse_retry_count").is_some_and(|count| !count.is_null());
            if let (true, Some(purpose)) = (answered, text("/purpose").and_then(Purpose::parse)) {
                self.0.mark_replayed(purpose, text("/location/action_id").unwrap_or_default());
            }
        }
        Ok(())
    }
}

impl ModelProviders for ReplayedModels {
    fn provider(&self, _name: Option<&str>) -> Result<Arc<dyn Provider>, ModelError> {
        let recording: Arc<dyn Provider> = Arc::clone(&self.0) as Arc<dyn Provider>;
        Ok(recording)
    }

    fn monitor(&self, action_id: &str) -> Option<Arc<dyn Provider>> {
        let recording: Arc<dyn Provider> = Arc::clone(&self.0) as Arc<dyn Provider>;
        recording.answers(Purpose::Monitor, action_id).then_some(recording)
    }
}
