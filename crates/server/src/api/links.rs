//! `/v1/links`: makes, lists, shows and revokes links, by which people begin conversations in their browsers (docs/talk-page.md).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bcc_engine::clock::{now, stamp};
use bcc_engine::engine::RunRequest;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::variables::convert_value;
use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValues;
use bcc_lang::value::instant::instant;
use bcc_store::link_rows::{LinkRow, LinkTalkRow};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::{AccessRole, ApiCaller};
use crate::api::body::{JsonBody, UrlPath};
use crate::api::sessions::named_user;
use crate::problem::{Problem, ProblemDetails};
use crate::state::ServerState;
use crate::talk::terms::{ConsentText, LinkKind, LinkTerms, NewLink, script_language, title};

/// The maximum length of a text to which a person agrees, in bytes.
const MAX_CONSENT_BYTES: usize = 64 * 1024;

/// The maximum length of the name of a language, in bytes.
const MAX_LANGUAGE_BYTES: usize = 35;

/// A link to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewLinkBody {
    /// The script: its `session_id`, or its path in the project.
    script: String,
    /// `open`: a new conversation for each visitor; `one_time`: one conversation.
    kind: LinkKind,
    /// After this time, no conversation begins: a time (RFC 3339), or a date in UTC.
    expires_at: Option<String>,
    /// Values for variables that the script declares.
    #[serde(default)]
    #[schema(value_type = Object)]
    variables: ExactValues,
    /// The user whose global variables the sessions use. Without it, each session has a user of its own.
    #[schema(max_length = 200)]
    user: Option<String>,
    /// What a person must agree to before a conversation begins.
    consent: Option<ConsentText>,
}

/// A link. Its token is in no response but the one that made it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LinkEntry {
    pub(crate) id: String,
    /// The path of the script in the project.
    pub(crate) script: String,
    pub(crate) kind: LinkKind,
    pub(crate) created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revoked_at: Option<String>,
    /// The name of the token of who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) consent: Option<ConsentText>,
    /// How many conversations have begun.
    pub(crate) talks: u64,
}

impl LinkEntry {
    fn of(row: LinkRow) -> Result<Self, Problem> {
        let LinkTerms { script, kind, user, consent, created_by, .. } = LinkTerms::of(&row)?;
        let LinkRow { id, created_at, expires_at, revoked_at, talks, .. } = row;
        Ok(Self { id, script, kind, created_at, expires_at, revoked_at, created_by, user, consent, talks })
    }
}

/// A link that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeLink {
    #[serde(flatten)]
    link: LinkEntry,
    /// The path of the page: `/t/` and the token. Whoever has it can begin. It is stored nowhere, so keep it.
    path: String,
}

/// All links, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LinkList {
    links: Vec<LinkEntry>,
    /// The ids of links whose rows cannot be read. They can be revoked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
}

/// A conversation that began by a link.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LinkTalk {
    /// The id of the session, which is gone after the consent was withdrawn.
    session: String,
    began_at: String,
    /// What the person agreed to: the hash of the text, its language, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object)]
    consent: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    withdrawn_at: Option<String>,
}

impl From<LinkTalkRow> for LinkTalk {
    fn from(row: LinkTalkRow) -> Self {
        let consent = row.consent.and_then(|consent| serde_json::from_str(&consent).ok());
        Self { session: row.session, began_at: row.began_at, consent, withdrawn_at: row.withdrawn_at }
    }
}

/// A link with its conversations.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShownLink {
    #[serde(flatten)]
    link: LinkEntry,
    /// The conversations, the oldest first.
    conversations: Vec<LinkTalk>,
}

/// Makes a link by which people begin conversations in their browsers.
#[utoipa::path(
    post,
    path = "/v1/links",
    tag = "links",
    request_body = NewLinkBody,
    responses(
        (status = 201, description = "The link is made", body = MadeLink),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn create_link(
    State(state): State<ServerState>,
    caller: ApiCaller,
    JsonBody(body): JsonBody<NewLinkBody>,
) -> Result<(StatusCode, Json<MadeLink>), Problem> {
    caller.require(AccessRole::Author)?;
    let NewLinkBody { script, kind, expires_at, variables, user, consent } = body;
    let (user, expires_at) = (named_user(user)?, expires_at.as_deref().map(later).transpose()?);
    if let Some(consent) = &consent {
        check_consent(consent)?;
    }
    let script = state.catalog.find(&script).await?;
    let engine = state.sessions.engine().clone();
    let named_from = Some(engine.project().directory.clone());
    let request = RunRequest { file: script.file.clone(), named_from, ..RunRequest::default() };
    // What would keep every visitor from beginning is reported to who makes the link.
    let checked = tokio::task::spawn_blocking(move || {
        let loaded = LoadedProgram::of(engine.project(), &request)?;
        loaded.check_permissions(engine.project(), engine.environment())?;
        for (name, value) in &variables {
            convert_value(&loaded.program, name, value.clone())?;
        }
        Ok::<_, EngineError>((loaded.program, variables))
    });
    let checked = checked.await.map_err(|error| Problem::failure(&msg!("the check failed: {error}")))?;
    let (program, variables) = checked?;
    let terms = LinkTerms {
        script: script.path,
        kind,
        variables,
        user,
        consent,
        language: script_language(&program).name().to_owned(),
        title: title(&program),
        created_by: caller.name,
    };
    let made = NewLink::make(state.sessions.store().as_ref(), &terms, expires_at).await?;
    Ok((StatusCode::CREATED, Json(MadeLink { link: LinkEntry::of(made.row)?, path: made.path })))
}

/// A time that is still to come.
fn later(written: &str) -> Result<String, Problem> {
    let time = instant(written, &TimeZone::UTC);
    let time = time.ok_or_else(|| Problem::invalid(msg!("`expires_at` is not a time: `{written}`")))?;
    match time > stamp(now()) {
        true => Ok(time),
        false => Err(Problem::invalid(msg!("`expires_at` is over: {time}"))),
    }
}

fn check_consent(consent: &ConsentText) -> Result<(), Problem> {
    let ConsentText { text, language } = consent;
    if text.trim().is_empty() || text.len() > MAX_CONSENT_BYTES {
        return Err(Problem::invalid(msg!("the text of `consent` must have 1 to {MAX_CONSENT_BYTES} bytes")));
    }
    let is_tag = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if language.is_empty() || language.len() > MAX_LANGUAGE_BYTES || !language.chars().all(is_tag) {
        return Err(Problem::invalid("the language of `consent` must be the name of a language, such as `en` or `zh`"));
    }
    Ok(())
}

/// Lists all links, the newest first.
#[utoipa::path(
    get,
    path = "/v1/links",
    tag = "links",
    responses(
        (status = 200, description = "The links", body = LinkList),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn list_links(State(state): State<ServerState>, caller: ApiCaller) -> Result<Json<LinkList>, Problem> {
    caller.require(AccessRole::Author)?;
    let (mut links, mut unreadable) = (Vec::new(), Vec::new());
    for row in state.sessions.store().links().await? {
        let id = row.id.clone();
        match LinkEntry::of(row) {
            Ok(link) => links.push(link),
            // It must not hide the others.
            Err(_) => unreadable.push(id),
        }
    }
    Ok(Json(LinkList { links, unreadable }))
}

/// Shows a link with the conversations that began by it.
#[utoipa::path(
    get,
    path = "/v1/links/{id}",
    tag = "links",
    params(("id" = String, Path, description = "The link")),
    responses(
        (status = 200, description = "The link", body = ShownLink),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn get_link(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<Json<ShownLink>, Problem> {
    caller.require(AccessRole::Author)?;
    let store = state.sessions.store();
    let link = store.links().await?.into_iter().find(|link| link.id == id).ok_or_else(|| no_link(&id))?;
    let conversations = store.talks(&id).await?.into_iter().map(LinkTalk::from).collect();
    Ok(Json(ShownLink { link: LinkEntry::of(link)?, conversations }))
}

/// Revokes a link: no conversation begins by it any more, and those that began accept no answers. Their sessions stay.
#[utoipa::path(
    delete,
    path = "/v1/links/{id}",
    tag = "links",
    params(("id" = String, Path, description = "The link")),
    responses(
        (status = 204, description = "It is revoked"),
        (status = "default", description = "A problem", body = ProblemDetails, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn revoke_link(
    State(state): State<ServerState>,
    UrlPath(id): UrlPath<String>,
    caller: ApiCaller,
) -> Result<StatusCode, Problem> {
    caller.require(AccessRole::Author)?;
    match state.sessions.store().revoke_link(&id, &stamp(now())).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_link(&id)),
    }
}

fn no_link(id: &str) -> Problem {
    Problem::not_found(msg!("there is no link `{id}`"))
}
