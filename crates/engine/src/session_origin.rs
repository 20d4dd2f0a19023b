//! How a user recognizes a session that they started, and what a session of somebody else may not do.

use std::path::Path;

use bcc_lang::message::msg;
use bcc_runtime::program::program::Program;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::project::absolute;
use crate::session_ids::new_nonce;
use crate::settings::RunSettings;
use crate::trust::own_sessions::origin;

impl Engine {
    /// The settings of a new session, with a nonce of its own, and with the code by which this user recognizes it, if that is ever needed.
    pub(crate) fn with_origin(
        &self,
        id: &str,
        program: &Program,
        settings: &RunSettings,
        manifest: &str,
    ) -> RunSettings {
        let settings = &RunSettings { nonce: Some(new_nonce()), ..settings.clone() };
        let uses_host = !settings.allowed.is_empty() || !program.tools.is_empty();
        let is_needed = uses_host || self.replies_outside(settings).is_some();
        let origin = is_needed.then(|| origin(self.environment(), id, settings, manifest)).flatten();
        RunSettings { origin, ..settings.clone() }
    }

    /// The file outside the project from which a session takes its replies.
    fn replies_outside<'s>(&self, settings: &'s RunSettings) -> Option<&'s str> {
        let model = settings.model.as_deref().and_then(|model| model.strip_prefix("replay:"));
        let file = settings.replay.as_deref().or(model)?;
        (!absolute(Path::new(file)).starts_with(absolute(&self.project().directory))).then_some(file)
    }

    /// Refuses to read a file outside the project that only the store names, because the store may come from somebody else.
    pub(crate) fn refuse_foreign_replies(&self, id: &str, settings: &RunSettings) -> Result<(), EngineError> {
        let Some(file) = self.replies_outside(settings).filter(|_| !self.project().trust_all) else { return Ok(()) };
        let message = msg!("session `{id}` takes its replies from {file}, a file outside the project");
        Err(EngineError::usage(message).with_help(
            "specify the file with `--replay` or `--model replay:FILE`, another model with `--model`, or add `--trust`",
        ))
    }
}
