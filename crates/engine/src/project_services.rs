//! What a project offers outside of sessions, for front ends that answer without one: its models, its templates and a kernel.

use std::sync::Arc;

use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::layers::collect;
use bcc_lang::template::templates::Templates;
use bcc_runtime::notebook::kernel::contract::Kernel;
use bcc_runtime::program::clock::Clock as _;
use bcc_runtime::program::models::ModelProviders;

use crate::clock::SystemClock;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::files::TemplateFolders;
use crate::host_services::project_kernel;
use crate::models::choose::{RequestedModel, choose};

impl Engine {
    /// The models of the project: `requested` as `--model` of `run`, otherwise the one that is named `named`, otherwise its default.
    ///
    /// # Errors
    /// When the model does not exist, cannot be created, or must not be used because the project is not trusted.
    pub fn models(&self, requested: Option<&str>, named: Option<&str>) -> Result<Arc<dyn ModelProviders>, EngineError> {
        let wanted = RequestedModel { requested, stored: None, script: named };
        let chosen = choose(self.project(), self.environment(), &self.shared, wanted)?;
        Ok(Arc::new(chosen.models))
    }

    /// The templates of the project as they are now, for a text in this language if the project names no scheme.
    ///
    /// # Errors
    /// `Usage` if the project was changed since it was trusted; if a file cannot be read.
    pub fn templates(&self, language: PromptLanguage) -> Result<Templates, EngineError> {
        let project = self.project();
        project.refuse_changes()?;
        let folders = TemplateFolders::of(&project.directory);
        let own_default = || project.directory.join("_system").join("config").join("default").is_dir();
        let scheme = match &project.config.project.scheme {
            Some(scheme) => Some(scheme.as_str()),
            None if own_default() => None,
            None => Some(if language == PromptLanguage::Zh { "chinese" } else { "english" }),
        };
        let files = collect(&folders, scheme)?;
        Ok(Templates::new(&files, &uuid::Uuid::now_v7().simple().to_string())?)
    }

    /// A new kernel in the project, which starts when code first runs.
    pub fn kernel(&self) -> Arc<dyn Kernel> {
        project_kernel(self.project(), self.environment())
    }

    /// The current time as prompts show it.
    pub fn prompt_time(&self, language: PromptLanguage) -> String {
        match &self.clock {
            Some(clock) => clock.prompt_time(0, language),
            None => SystemClock::new().prompt_time(0, language),
        }
    }
}
