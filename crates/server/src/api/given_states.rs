//! Sessions that begin from a state of the behavior protocol that a client sends.

use std::sync::Arc;

use bcc_engine::engine::RunRequest;
use bcc_engine::error::EngineError;
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::msg;
use bcc_lang::script::read::is_protocol_state;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::value::exact::ExactValues;
use serde_json::value::RawValue;

use crate::access::{AccessRole, ApiCaller};
use crate::api::authoring::blocking;
use crate::api::reply::{TurnReply, reply_of};
use crate::api::sessions::named_user;
use crate::api::uploads::refuse_unseen;
use crate::problem::Problem;
use crate::state::ServerState;

/// The name of a state that a client sends, in messages and as the beginning of the ids of its sessions.
const STATE_NAME: &str = "state";

/// What is said about a session that begins from a state.
pub(crate) struct GivenStateBody {
    pub(crate) document: Box<RawValue>,
    pub(crate) behavior_server: Option<String>,
    pub(crate) variables: ExactValues,
    pub(crate) user: Option<String>,
    pub(crate) session_id: Option<String>,
}

/// Starts a session from a state of the behavior protocol, as `bcc-script run STATE.json` does, and runs it until it rests.
pub(crate) async fn start_from_state(
    state: &ServerState,
    caller: &ApiCaller,
    given: GivenStateBody,
) -> Result<TurnReply, Problem> {
    caller.require(AccessRole::Author)?;
    let project = state.sessions.engine().project();
    refuse_unseen(project)?;
    let GivenStateBody { document, behavior_server, variables, user, session_id } = given;
    let text = Arc::new(SourceFile::new(STATE_NAME, document.get()));
    let parsed = Arc::clone(&text);
    // A script has to be stored first.
    let is_state = blocking(move || {
        let parsed = parse(&parsed);
        match parsed.root {
            Some(root) => Ok(is_protocol_state(&root)),
            // It is too large or too deep.
            None => Err(EngineError::Invalid(parsed.diagnostics)),
        }
    });
    if !is_state.await? {
        let why = msg!("`state` is not a state of the behavior protocol");
        return Err(Problem::invalid(why)
            .with_help("a state has `observation`, or `location` with `context` or `state`, at its root"));
    }
    let id = session_id.unwrap_or_else(|| secret_id(STATE_NAME));
    let request = RunRequest {
        file: project.directory.join(STATE_NAME),
        text: Some(text),
        // Without a user, two persons must not share the variables of a common one.
        user: Some(named_user(user)?.unwrap_or_else(|| id.clone())),
        values: variables,
        model: state.settings.model.clone(),
        behavior_server,
        ..RunRequest::default()
    };
    let turn = state.sessions.start(request, &id).await?;
    reply_of(state.sessions.store().as_ref(), &id, turn).await
}
