//! `GET /v1/data-set`: many sessions as a data set for a study (docs/data-sets.md).

use std::io::{self, Read};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bcc_engine::data_set::export::export_data_set_file;
use bcc_engine::data_set::request::{DataSetFormat, DataSetReport, DataSetRequest};
use bcc_engine::files::export_folder::SeekableFile;
use bcc_lang::message::msg;
use futures_util::Stream;
use futures_util::stream::try_unfold;
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use utoipa::{IntoParams, ToSchema};

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{UrlQuery, language_of};
use crate::api::sessions::session_filter;
use crate::problem::{Problem, ProblemDetails, ProblemKind};
use crate::state::ServerState;

/// The number of bytes that are read and sent at once.
const PIECE: usize = 128 * 1024;

/// The form of the tables of a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DataSetFormatName {
    #[default]
    Csv,
    /// JSON Lines.
    Jsonl,
    Parquet,
    /// A project for tools of qualitative analysis.
    Qdpx,
}

impl From<DataSetFormatName> for DataSetFormat {
    fn from(name: DataSetFormatName) -> Self {
        match name {
            DataSetFormatName::Csv => Self::Csv,
            DataSetFormatName::Jsonl => Self::JsonLines,
            DataSetFormatName::Parquet => Self::Parquet,
            DataSetFormatName::Qdpx => Self::Qdpx,
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DataSetQuery {
    /// `csv`, `jsonl`, `parquet` or `qdpx`.
    #[serde(default)]
    #[param(inline)]
    format: DataSetFormatName,
    /// Only sessions of the script with this `session_id`.
    script: Option<String>,
    /// Only sessions with this status.
    status: Option<String>,
    /// Only sessions of this user.
    user: Option<String>,
    /// Only sessions that have changed since: a time (RFC 3339), or a date in UTC.
    since: Option<String>,
    /// Whether sensitive values and the ids of users are included. Only with the role `admin`.
    #[serde(default)]
    include_sensitive: bool,
}

/// Exports many sessions as a data set for a study: tables, a codebook and transcripts, as one ZIP archive.
#[utoipa::path(
    get,
    path = "/v1/data-set",
    tag = "data",
    params(DataSetQuery),
    responses(
        (
            status = 200,
            description = "The data set",
            content((Vec<u8> = "application/zip")),
            headers(
                ("X-Sessions" = u64, description = "The number of its sessions"),
                ("X-Sessions-Left-Out" = u64, description = "The number of sessions that could not be read"),
            )
        ),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_data_set(
    State(state): State<ServerState>,
    caller: ApiCaller,
    headers: HeaderMap,
    UrlQuery(query): UrlQuery<DataSetQuery>,
) -> Result<Response, Problem> {
    caller.require(AccessRole::Author)?;
    let DataSetQuery { format, script, status, user, since, include_sensitive } = query;
    if include_sensitive {
        caller.require(AccessRole::Admin)?;
    }
    let filter = session_filter(script, status, user, since)?;
    if state.sessions.store().sessions_page(&filter, None, 1).await?.is_empty() {
        return Err(Problem::invalid(msg!("no session is selected"))
            .with_help("`GET /v1/sessions` with the same filters lists the sessions"));
    }
    let language = language_of(&headers);
    let request = DataSetRequest { filter, format: format.into(), include_sensitive, language };
    let (report, file) = written(&state, request).await?;
    let length = file.length().map_err(|error| Problem::failure(&msg!("the data set cannot be read: {error}")))?;
    let own = [("content-length", length), ("x-sessions", report.sessions), ("x-sessions-left-out", report.failed)];
    let mut response = Body::from_stream(pieces(file)).into_response();
    let headers = response.headers_mut();
    headers.extend(own.map(|(name, number)| (header::HeaderName::from_static(name), HeaderValue::from(number))));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    let name = HeaderValue::from_static("attachment; filename=\"data-set.zip\"");
    headers.insert(header::CONTENT_DISPOSITION, name);
    Ok(response)
}

/// Writes a data set, away from the tasks of sessions. It is given up when the client leaves or the server ends.
async fn written(state: &ServerState, request: DataSetRequest) -> Result<(DataSetReport, SeekableFile), Problem> {
    // One after the other: each reads very many sessions.
    let turn = Arc::clone(&state.data_sets).lock_owned().await;
    let store = Arc::clone(state.sessions.store());
    let environment = state.sessions.engine().environment().clone();
    let mut ending = state.sessions.ending();
    let (client, client_left) = oneshot::channel::<()>();
    let work = spawn_blocking(move || {
        let _turn = turn;
        let directory = std::env::temp_dir();
        Handle::current().block_on(async {
            tokio::select! {
                written = export_data_set_file(store.as_ref(), &environment, &request, &directory) => Some(written),
                _ = client_left => None,
                _ = ending.wait_for(|ends| *ends) => None,
            }
        })
    });
    let done = work.await.map_err(|error| Problem::failure(&msg!("the work has ended unexpectedly: {error}")))?;
    drop(client);
    let ends = || Problem::new(ProblemKind::Unavailable, msg!("the server ends; try again"));
    Ok(done.ok_or_else(ends)??)
}

/// The bytes of a file.
fn pieces(file: SeekableFile) -> impl Stream<Item = io::Result<Vec<u8>>> {
    try_unfold(file, |mut file| async move {
        let read = spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let count = file.read(&mut piece)?;
            piece.truncate(count);
            io::Result::Ok((piece, file))
        });
        let (piece, file) = read.await.map_err(io::Error::other)??;
        Ok((!piece.is_empty()).then_some((piece, file)))
    })
}
