//! Errors of the API: problem details (RFC 9457).

use std::path::{Path, PathBuf};

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bcc_engine::error::EngineError;
use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::language::Language;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::{Diagnostic, Edit, Fix};
use bcc_runtime::run::error::RunError;
use bcc_store::error::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::project_paths::in_project;

/// The type of a problem for programs, as `type` in the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// The request cannot be read, or a value in it is not permitted.
    InvalidRequest,
    /// There is no token, or it is not valid.
    Unauthorized,
    /// The role of the token does not permit this, or the request comes from another site.
    Forbidden,
    NotFound,
    MethodNotAllowed,
    /// The script has errors, which `diagnostics` lists.
    InvalidScript,
    /// The session is not in a state for this.
    Conflict,
    /// Another turn of the session runs, and the request did not want to wait.
    Busy,
    /// Another message ended the turn.
    Interrupted,
    /// Another process runs the session.
    Held,
    /// What the request was to replace is not what it said (`If-Match`).
    Changed,
    /// The same idempotency key was used with another body.
    KeyReused,
    TooLarge,
    TooManyRequests,
    /// The server ends, or its store cannot be used at the moment: try again.
    Unavailable,
    Timeout,
    Failed,
}

impl ProblemKind {
    /// Its name in `type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid-request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not-found",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::InvalidScript => "invalid-script",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::Interrupted => "interrupted",
            Self::Held => "held",
            Self::Changed => "changed",
            Self::KeyReused => "idempotency-key-reused",
            Self::TooLarge => "too-large",
            Self::TooManyRequests => "too-many-requests",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::Failed => "failed",
        }
    }

    /// Its HTTP status.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::InvalidRequest => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::InvalidScript => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Conflict | Self::Busy | Self::Interrupted | Self::Held | Self::KeyReused => StatusCode::CONFLICT,
            Self::Changed => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Why a request was not carried out. Nothing changed, unless the problem says otherwise.
#[derive(Clone, Debug)]
pub struct Problem {
    kind: ProblemKind,
    detail: Message,
    help: Option<Message>,
    diagnostics: Vec<Diagnostic>,
    /// The directory to which files are relative.
    project: Option<PathBuf>,
    /// After how many seconds to try again.
    retry_after: Option<u64>,
    /// Whether nothing was done, because another process has changed the session since it was read.
    is_outdated: bool,
    /// The language of the texts.
    language: Language,
}

/// The body of a response with a problem (`application/problem+json`).
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemDetails {
    /// `/problems/` and the kind of the problem: for example `/problems/not-found`. Programs decide by this.
    pub r#type: String,
    /// The HTTP status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, for people.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The errors of the script, one sentence each, with their places.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<ProblemDiagnostic>,
}

/// An error in a script.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemDiagnostic {
    /// The rule, which `bcc-script explain` explains.
    pub rule: String,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The file, relative to the project.
    pub file: String,
    /// Counts from 1.
    pub line: usize,
    /// Counts from 1, in characters.
    pub column: usize,
    /// Where it ends.
    pub end_line: usize,
    pub end_column: usize,
    /// What would fix it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<ProblemFix>,
}

/// A change of a script that fixes an error.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemFix {
    /// What it does, as an imperative.
    pub title: String,
    pub edits: Vec<ProblemEdit>,
}

/// A replacement of a part of a script.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemEdit {
    /// Where the part begins, in bytes of UTF-8.
    pub byte_start: usize,
    pub byte_end: usize,
    /// The new text.
    pub text: String,
}

impl ProblemFix {
    fn of(fix: &Fix, language: Language) -> Self {
        let edit =
            |edit: &Edit| ProblemEdit { byte_start: edit.span.start, byte_end: edit.span.end, text: edit.text.clone() };
        Self { title: fix.title.render(language), edits: fix.edits.iter().map(edit).collect() }
    }
}

impl ProblemDiagnostic {
    pub(crate) fn of(found: &Diagnostic, project: Option<&Path>, language: Language) -> Self {
        let path = Path::new(found.file.name());
        let file = project.and_then(|project| path.strip_prefix(project).ok()).unwrap_or(path);
        let text = |message: &Message| rendered(message, project, language);
        let (line, column) = found.file.line_column(found.span.start);
        let (end_line, end_column) = found.file.line_column(found.span.end);
        Self {
            rule: found.rule.to_owned(),
            severity: found.severity.name(),
            message: text(&found.message),
            help: found.help.as_ref().map(text),
            file: file.to_string_lossy().into_owned(),
            line,
            column,
            end_line,
            end_column,
            fixes: found.fixes.iter().map(|fix| ProblemFix::of(fix, language)).collect(),
        }
    }
}

/// The text of a message, with paths in the project as they are in the project.
pub(crate) fn rendered(message: &Message, project: Option<&Path>, language: Language) -> String {
    let text = message.render(language);
    match project {
        Some(project) => in_project(&text, project),
        None => text,
    }
}

impl Problem {
    pub fn new(kind: ProblemKind, detail: impl Into<Message>) -> Self {
        let detail = detail.into();
        let (help, diagnostics, project, retry_after, is_outdated) = Default::default();
        Self { kind, detail, help, diagnostics, project, retry_after, is_outdated, language: Language::default() }
    }

    pub fn invalid(detail: impl Into<Message>) -> Self {
        Self::new(ProblemKind::InvalidRequest, detail)
    }

    pub fn not_found(detail: impl Into<Message>) -> Self {
        Self::new(ProblemKind::NotFound, detail)
    }

    #[must_use]
    pub fn with_help(self, help: impl Into<Message>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The same problem, with paths as they are in this project.
    #[must_use]
    pub fn in_project(self, directory: &Path) -> Self {
        Self { project: Some(directory.to_owned()), ..self }
    }

    /// The same problem, after which a client is to wait.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The same problem of a command of which nothing was done: the session must be read again.
    pub(crate) fn outdated(self) -> Self {
        Self { is_outdated: true, ..self }
    }

    /// Whether the session must be read again, and the command sent again.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// The same problem in this language.
    #[must_use]
    pub fn in_language(self, language: Language) -> Self {
        Self { language, ..self }
    }

    pub const fn kind(&self) -> ProblemKind {
        self.kind
    }

    /// The text for people.
    pub fn detail(&self) -> String {
        rendered(&self.detail, self.project.as_deref(), self.language)
    }

    /// What to do about it.
    pub(crate) fn help(&self) -> Option<String> {
        self.help.as_ref().map(|help| rendered(help, self.project.as_deref(), self.language))
    }

    /// The headers of a response with it: when to try again, and what is missing.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let retry = self.retry_after.map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds)));
        let token = (self.kind == ProblemKind::Unauthorized)
            .then(|| (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
        retry.into_iter().chain(token)
    }

    fn details(&self) -> ProblemDetails {
        let status = self.kind.status();
        ProblemDetails {
            r#type: format!("/problems/{}", self.kind.name()),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: self.detail(),
            help: self.help(),
            diagnostics: self
                .diagnostics
                .iter()
                .map(|found| ProblemDiagnostic::of(found, self.project.as_deref(), self.language))
                .collect(),
        }
    }
}

impl Problem {
    /// The problem details as JSON.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(&self.details()).unwrap_or_else(|_| "{}".to_owned())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.to_json();
        let mut response = (self.kind.status(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.extend(self.headers());
        // The gate writes it again in the language of the client.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for Problem {
    // The texts of these errors name the store, which is a path of the machine.
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Held { id, .. } => Self::held(&id),
            StoreError::Exists { id, .. } => {
                Self::new(ProblemKind::Conflict, msg!("there is already a session `{id}`"))
            }
            StoreError::NotFound { id, .. } => Self::no_session(&id),
            StoreError::Conflict { id, .. } => {
                Self::new(ProblemKind::Unavailable, msg!("another process has changed session `{id}`; try again"))
                    .retry_after(1)
            }
            StoreError::LeaseLost { id, .. } => {
                Self::new(ProblemKind::Unavailable, msg!("another process has taken over session `{id}`; try again"))
                    .retry_after(1)
            }
            StoreError::Unreachable { .. } | StoreError::Busy { .. } | StoreError::Full { .. } => {
                Self::store_unavailable(&error.to_message())
            }
            StoreError::Newer { .. } => Self::overtaken(&error.to_message()),
            other => Self::failure(&other.to_message()),
        }
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        let detail = error.to_message();
        match error {
            RunError::Store(error) => error.into(),
            RunError::NotFound(id) => Self::no_session(&id),
            RunError::Final { .. } => Self::new(ProblemKind::Conflict, detail),
            RunError::Variable(_) | RunError::BudgetTooSmall { .. } => Self::new(ProblemKind::InvalidRequest, detail),
            RunError::CommitInterrupted(_) => Self::new(ProblemKind::Unavailable, detail).retry_after(1),
            RunError::Unreadable { .. } | RunError::Recording(_) | RunError::Halted(_) => Self::failure(&detail),
        }
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let help = error.help().cloned();
        let problem = match error {
            EngineError::Usage { message, .. } => Self::new(ProblemKind::InvalidRequest, message),
            EngineError::Invalid(diagnostics) => {
                Self { diagnostics, ..Self::new(ProblemKind::InvalidScript, "the script has errors") }
            }
            EngineError::Ended { message, .. } => Self::new(ProblemKind::Conflict, message),
            EngineError::Failed { message, .. } => Self::failure(&message),
            EngineError::Held { session, .. } => Self::held(&session),
            EngineError::StoreUnavailable { message } => Self::store_unavailable(&message),
            EngineError::StoreNewer { message } => return Self::overtaken(&message),
            EngineError::StoreGone { message } => Self::new(ProblemKind::Unavailable, message).retry_after(1),
        };
        Self { help, ..problem }
    }
}

impl Problem {
    fn held(id: &str) -> Self {
        Self::new(ProblemKind::Held, msg!("another process runs session `{id}`")).retry_after(1)
    }

    pub(crate) fn busy() -> Self {
        Self::new(ProblemKind::Busy, msg!("a turn of the session runs")).retry_after(1)
    }

    /// A message was taken back because another one has interrupted its turn.
    pub(crate) fn interrupted() -> Self {
        let why = msg!("another message has interrupted the turn, and this one was taken back");
        Self::new(ProblemKind::Interrupted, why)
    }

    /// A session has left the memory of this server before a turn has ended, or a command was carried out.
    pub(crate) fn ended_here(id: &str) -> Self {
        Self::new(ProblemKind::Unavailable, msg!("session `{id}` has just ended here; try again")).retry_after(1)
    }

    /// A session is to go on that has stopped again.
    pub(crate) fn stopped(id: &str) -> Self {
        let why = msg!("session `{id}` has stopped: its model cannot be reached, or its budget is used up");
        Self::new(ProblemKind::Unavailable, why).retry_after(5)
    }

    /// With how to get a log, which says why: by default there is none.
    pub(crate) fn with_log_help(self) -> Self {
        self.with_help("if there is no log, start the server with `BCC_LOG=warn`")
    }

    /// Somebody else has answered the question meanwhile.
    pub(crate) fn moved_on() -> Self {
        Self::new(ProblemKind::Conflict, msg!("the session has gone on meanwhile; try again")).retry_after(1)
    }

    pub(crate) fn no_session(id: &str) -> Self {
        Self::not_found(msg!("there is no session `{id}`"))
    }

    /// A newer release has changed the layout of the store while this server had it open. Only a restart helps.
    pub(crate) fn overtaken(why: &Message) -> Self {
        tracing::error!(error = %why, "the server must be restarted");
        Self::new(ProblemKind::Unavailable, msg!("a newer release of bcc-script has changed the store of this server"))
            .with_help("restart the server with that release")
    }

    /// The store cannot be used at the moment. Why may name its place, so it goes to the log and not to the client.
    fn store_unavailable(why: &Message) -> Self {
        tracing::warn!(error = %why, "the store cannot be used");
        Self::new(ProblemKind::Unavailable, msg!("the session cannot be stored at the moment; try again"))
            .retry_after(2)
    }

    /// A failure of the server. What it says may name paths of the machine, so it goes to the log and not to the client.
    pub(crate) fn failure(why: &Message) -> Self {
        tracing::error!(error = %why, "a request failed");
        Self::new(ProblemKind::Failed, msg!("the server failed; its log says why"))
    }
}
