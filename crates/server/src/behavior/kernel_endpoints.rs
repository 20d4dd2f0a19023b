//! The endpoints of the kernels of notebook clients. They run code on the machine of the server: only in a project that allows `exec`, and
//! only with a token.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use bcc_engine::session_ids::secret_id;
use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use bcc_runtime::notebook::cell::CellEnd;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{JsonBody, UrlPath, language_of};
use crate::behavior::kernels::{CellCode, EndedCell, NotebookKey};
use crate::behavior::outputs::{ClientOutput, outputs_of};
use crate::behavior::request::MAX_NOTEBOOK_ID_BYTES;
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::state::ServerState;

/// The maximum length of the id of a cell, in bytes.
const MAX_CELL_ID_BYTES: usize = 200;

/// A notebook whose kernel is meant.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(crate) struct NotebookBody {
    /// The notebook. Without it, `/initialize` makes an id.
    notebook_id: Option<String>,
}

/// A cell to run.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ExecuteBody {
    code: String,
    /// The notebook: an id of `/initialize`, or one that the client made up.
    notebook_id: String,
    /// The cell. The same cell with the same code is not run twice at a time.
    codecell_id: Option<String>,
}

/// What became of a notebook.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KernelReply {
    /// `ok`.
    status: &'static str,
    notebook_id: String,
}

/// What a cell gave.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecuteReply {
    /// `ok`, also for code that raised an error; `error` if it did not end by itself; `cancelled`.
    status: &'static str,
    /// Never empty: a cell without output has one empty text.
    outputs: Vec<ClientOutput>,
    /// Why it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The number of the execution in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_count: Option<u64>,
    /// In seconds.
    elapsed_time: f64,
}

/// What a notebook does.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecutionStatus {
    /// `running` or `idle`; `cancelled` or `error` if the last cell ended so.
    status: &'static str,
    is_running: bool,
    notebook_id: String,
    /// The cell that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    codecell_id: Option<String>,
    /// The outputs of the last cell that has ended.
    outputs: Vec<ClientOutput>,
    /// How long the cell has run, in seconds.
    elapsed_time: f64,
}

/// The notebook of a caller who may run code.
fn notebook(state: &ServerState, caller: &ApiCaller, id: &str) -> Result<NotebookKey, Problem> {
    require_kernel(state, caller)?;
    if id.is_empty() || id.len() > MAX_NOTEBOOK_ID_BYTES {
        return Err(Problem::invalid(msg!("`notebook_id` must have 1 to {MAX_NOTEBOOK_ID_BYTES} bytes")));
    }
    Ok((caller.scope, id.to_owned()))
}

fn require_kernel(state: &ServerState, caller: &ApiCaller) -> Result<(), Problem> {
    if caller.name.is_none() {
        let problem = Problem::new(ProblemKind::Forbidden, msg!("code is run only for callers with a token"));
        return Err(problem
            .with_help("`bcc-script serve --new-token admin` prints a token and what to write in bcc-script.toml"));
    }
    caller.require(AccessRole::Admin)?;
    state.kernels.check_permission()
}

/// Makes a notebook. Its kernel starts when code first runs.
#[utoipa::path(
    post,
    path = "/initialize",
    tag = "kernels",
    request_body = NotebookBody,
    responses(
        (status = 200, description = "The notebook", body = KernelReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn initialize(
    State(state): State<ServerState>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<NotebookBody>,
) -> Result<Json<KernelReply>, Problem> {
    let id = body.notebook_id.unwrap_or_else(|| secret_id("notebook"));
    let (_, notebook_id) = notebook(&state, &caller, &id)?;
    Ok(Json(KernelReply { status: "ok", notebook_id }))
}

/// Runs a cell, and waits for its end.
#[utoipa::path(
    post,
    path = "/execute",
    tag = "kernels",
    request_body = ExecuteBody,
    responses(
        (status = 200, description = "What the cell gave", body = ExecuteReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn execute(
    State(state): State<ServerState>,
    caller: ApiCaller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<ExecuteBody>,
) -> Result<Json<ExecuteReply>, Problem> {
    let key = notebook(&state, &caller, &body.notebook_id)?;
    let cell = body.codecell_id.filter(|cell| !cell.is_empty());
    if cell.as_ref().is_some_and(|cell| cell.len() > MAX_CELL_ID_BYTES) {
        return Err(Problem::invalid(msg!("`codecell_id` must have at most {MAX_CELL_ID_BYTES} bytes")));
    }
    let ended = state.kernels.run(&key, CellCode { cell, code: body.code }).await?;
    Ok(Json(reply_of(ended, language_of(&headers))?))
}

fn reply_of(ended: EndedCell, language: Language) -> Result<ExecuteReply, Problem> {
    match ended {
        EndedCell::Ran(execution) => {
            let why = match execution.ended {
                CellEnd::Ok | CellEnd::Error => None,
                CellEnd::TimedOut => Some(msg!("the cell exceeded its time limit and was interrupted")),
                CellEnd::Died => Some(msg!("the kernel died while the cell ran")),
                CellEnd::Interrupted => Some(msg!("the cell was interrupted")),
            };
            let outputs = outputs_of(&execution.outputs);
            Ok(ExecuteReply {
                status: if why.is_none() { "ok" } else { "error" },
                outputs,
                message: why.map(|why| why.render(language)),
                execution_count: execution.execution_count,
                elapsed_time: Duration::from_millis(execution.ms).as_secs_f64(),
            })
        }
        EndedCell::Cancelled(printed, took) => Ok(ExecuteReply {
            status: "cancelled",
            outputs: outputs_of(&printed),
            message: Some(msg!("the cell was interrupted").render(language)),
            execution_count: None,
            elapsed_time: took.as_secs_f64(),
        }),
        EndedCell::NoKernel(error) => {
            // The error may name paths of the machine.
            tracing::warn!(code = error.code, error = %error.message, "no kernel for a client");
            let problem =
                Problem::new(ProblemKind::Unavailable, msg!("no kernel starts; the log of the server says why"));
            Err(problem.with_log_help().retry_after(1))
        }
    }
}

/// Stops the kernel of a notebook. The next cell starts a new one, without the variables of the old one.
#[utoipa::path(
    post,
    path = "/restart_kernel",
    tag = "kernels",
    request_body = NotebookBody,
    responses(
        (status = 200, description = "The kernel is stopped", body = KernelReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn restart_kernel(
    State(state): State<ServerState>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<NotebookBody>,
) -> Result<Json<KernelReply>, Problem> {
    let key = notebook(&state, &caller, &body.notebook_id.unwrap_or_default())?;
    state.kernels.restart(&key).await;
    Ok(Json(KernelReply { status: "ok", notebook_id: key.1 }))
}

/// Interrupts the cells of a notebook that run or wait.
#[utoipa::path(
    post,
    path = "/cancel_execution/{notebook_id}",
    tag = "kernels",
    params(("notebook_id" = String, Path, description = "The notebook")),
    responses(
        (status = 200, description = "They are interrupted", body = KernelReply),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn cancel_execution(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<KernelReply>, Problem> {
    let key = notebook(&state, &caller, &id)?;
    state.kernels.cancel(&key);
    Ok(Json(KernelReply { status: "ok", notebook_id: key.1 }))
}

/// Tells what a notebook does, with the outputs of its last cell.
#[utoipa::path(
    get,
    path = "/execution_status/{notebook_id}",
    tag = "kernels",
    params(("notebook_id" = String, Path, description = "The notebook")),
    responses(
        (status = 200, description = "What it does", body = ExecutionStatus),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn execution_status(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<ExecutionStatus>, Problem> {
    let key = notebook(&state, &caller, &id)?;
    let found = state.kernels.status(&key);
    let (ended, took) = match found.last {
        Some((EndedCell::Ran(execution), took)) if matches!(execution.ended, CellEnd::Ok | CellEnd::Error) => {
            (Some(("idle", outputs_of(&execution.outputs))), took)
        }
        Some((EndedCell::Ran(execution), took)) => (Some(("error", outputs_of(&execution.outputs))), took),
        Some((EndedCell::Cancelled(printed, _), took)) => (Some(("cancelled", outputs_of(&printed))), took),
        Some((EndedCell::NoKernel(_), took)) => (Some(("error", vec![])), took),
        None => (None, Duration::ZERO),
    };
    let (status, outputs) = ended.unwrap_or(("idle", vec![]));
    let (codecell_id, status, is_running, elapsed) = match found.running {
        Some((cell, elapsed)) => (cell, "running", true, elapsed),
        None => (None, status, false, took),
    };
    let elapsed_time = elapsed.as_secs_f64();
    Ok(Json(ExecutionStatus { status, is_running, notebook_id: key.1, codecell_id, outputs, elapsed_time }))
}
