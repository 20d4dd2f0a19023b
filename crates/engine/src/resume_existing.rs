//! `run --session ID` of a session that exists: it goes on as it was started.

use std::sync::Arc;

use bcc_lang::message::msg;
use bcc_runtime::program::event::Observer;
use bcc_runtime::program::program::Program;
use bcc_store::rows::SessionRow;

use crate::engine::{Engine, OpenedSession, ResumeRequest, RunRequest};
use crate::error::EngineError;
use crate::pin::{Pinned, sha256};
use crate::state_file::open::StateFileAccess;

impl Engine {
    pub(crate) async fn resume_existing(
        &self,
        row: SessionRow,
        program: &Program,
        pinned: &Pinned,
        request: &RunRequest,
        observer: Arc<dyn Observer>,
    ) -> Result<OpenedSession, EngineError> {
        if row.script != program.id {
            let message = msg!("session `{}` belongs to the script `{}`, not to `{}`", row.id, row.script, program.id);
            return Err(EngineError::usage(message).with_help("choose another `--session`, or omit it"));
        }
        if let Some(user) = request.user.as_ref().filter(|user| **user != row.user) {
            let message = msg!("session `{}` belongs to the user `{}`, not to `{user}`", row.id, row.user);
            return Err(EngineError::usage(message).with_help("choose another `--session`, or omit `--user`"));
        }
        let RunRequest { model, record, replay, any_project, .. } = request.clone();
        let state_file = StateFileAccess::Named;
        let request_to_resume = ResumeRequest { model, record, replay, any_project, state_file };
        let mut opened = self.resume_as(&row.id, &request_to_resume, observer).await?;
        let given = [
            ("--var", !request.variables.is_empty()),
            ("--vars", request.variables_file.is_some()),
            ("--scheme", request.scheme.is_some()),
            ("--seed", request.seed.is_some()),
            ("--clock", request.clock.is_some()),
            ("--from", !request.cells.is_empty()),
        ];
        for (option, _) in given.iter().filter(|(_, is_given)| *is_given) {
            opened.notices.push(msg!("{option} has no effect: the session continues as it was started"));
        }
        if row.script_sha256 != sha256(pinned.script.text().as_bytes()) {
            opened.notices.push(msg!(
                "the script was edited after this session started; the session continues with the original version"
            ));
        }
        Ok(opened)
    }
}
