//! Collects a report from the store.

use bcc_lang::message::language::Language;
use bcc_lang::message::msg;
use bcc_runtime::program::event_masking::mask;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use bcc_store::rows::{MessageRow, SessionRow};
use serde_json::Value;

use crate::error::EngineError;
use crate::export::{document, events_of, masker, parse_exact, stored_session};
use crate::report::contents::{
    REPORT_VERSION, ReportedMessage, ReportedSession, ReportedStep, SessionReport, StepStatus, TranscriptExcerpt,
};
use crate::report::diagram::diagram;
use crate::report::progress::JournalProgress;
use crate::report::text::{between, shortened};
use crate::script_names::ScriptNames;
use crate::session_variables::user_variables;
use crate::settings::RunSettings;
use crate::taken_back::TakenBackEvents;
use bcc_lang::value::mask::Masker;

/// The number of rows that are read at a time: one may contain megabytes of prompt and reply.
const PAGE: usize = 64;

/// The numbers of messages at the start and at the end of a conversation that a report contains.
const FIRST_MESSAGES: usize = 10;
const LAST_MESSAGES: usize = 40;

/// The report about a stored session. The texts in its diagram are in `language`.
///
/// # Errors
/// There is no such session, or the store cannot be read.
pub async fn session_report(store: &dyn Store, id: &str, language: Language) -> Result<SessionReport, EngineError> {
    let row = stored_session(store, id).await?;
    let variables = store.variables(id).await?;
    let masker = masker(&variables, &user_variables(store, &row).await?)?;
    let mut progress = progress(store, &row, &masker).await?;
    let diagram = diagram(&progress.steps, language);
    progress.mask_paths(&masker);
    let export = document(store, id, false).await?;
    let part = |pointer: &str| export.pointer(pointer).cloned().unwrap_or_default();
    let settings: RunSettings = serde_json::from_str(&row.settings)
        .map_err(|error| EngineError::failed(msg!("the settings of session `{id}` cannot be read: {error}")))?;
    let session = ReportedSession {
        title: row.script_name.clone().filter(|name| !name.trim().is_empty()).unwrap_or_else(|| row.script.clone()),
        id: row.id.clone(),
        script: row.script.clone(),
        user: row.user.clone(),
        status: row.status.clone(),
        reason: progress.reason,
        duration_ms: between(&row.started_at, &row.updated_at),
        started_at: row.started_at.clone(),
        updated_at: row.updated_at.clone(),
        used: part("/session/used"),
        usage: part("/usage/session"),
        retry_of: settings.retry_of,
    };
    Ok(SessionReport {
        version: REPORT_VERSION,
        kind: "report",
        session,
        diagram,
        steps: progress.steps,
        decisions: progress.decisions,
        iterations: progress.iterations,
        failures: progress.failures,
        timeline: progress.timeline,
        variables: export.field("variables").unwrap_or_default(),
        transcript: transcript(store, &row, &masker).await?,
    })
}

/// The status of the newest visit of each action, by the path of its location.
///
/// # Errors
/// There is no such session, or the store cannot be read.
pub async fn step_statuses(store: &dyn Store, id: &str) -> Result<Vec<(String, String, StepStatus)>, EngineError> {
    let steps = reported_steps(store, id).await?;
    Ok(steps.into_iter().map(|step| (step.path, step.action_id, step.status)).collect())
}

/// The steps of a session, in the order in which they started. Sensitive values are masked as they were when they were stored.
///
/// # Errors
/// As [`step_statuses`].
pub(crate) async fn reported_steps(store: &dyn Store, id: &str) -> Result<Vec<ReportedStep>, EngineError> {
    let row = stored_session(store, id).await?;
    Ok(progress(store, &row, &Masker::default()).await?.steps)
}

async fn progress(store: &dyn Store, row: &SessionRow, masker: &Masker) -> Result<JournalProgress, EngineError> {
    let taken_back = TakenBackEvents::of(events_of(store, &row.id, "taken_back").await?);
    let mut progress = JournalProgress::default();
    let mut after = 0;
    loop {
        let rows = store.journal(&row.id, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        for row in rows.iter().filter(|row| !taken_back.contains(row.seq)) {
            let mut event = parse_exact(&row.body, "event")?;
            event.change(|event: &mut Value| mask(event, masker));
            progress.take(&event);
        }
    }
    progress.finish(SessionStatus::parse(&row.status));
    Ok(progress)
}

async fn transcript(store: &dyn Store, row: &SessionRow, masker: &Masker) -> Result<TranscriptExcerpt, EngineError> {
    let names = ScriptNames::of_session(store, row).await;
    let message = |message: &MessageRow| {
        let (text, left_out) = shortened(&masker.text(&message.text));
        ReportedMessage {
            speaker: names.speaker(&message.role).to_owned(),
            role: message.role.clone(),
            text,
            left_out,
            at: message.at.clone(),
            action_id: message.action_id.clone(),
        }
    };
    let first = store.messages(&row.id, 0, FIRST_MESSAGES).await?;
    let mut last = store.messages_tail(&row.id, LAST_MESSAGES).await?;
    let shown = first.last().map_or(0, |row| row.number);
    let messages = last.last().map_or(shown, |row| row.number);
    last.retain(|row| row.number > shown);
    let left_out = last.first().map_or(0, |row| row.number.saturating_sub(shown + 1));
    Ok(TranscriptExcerpt {
        messages,
        left_out,
        first: first.iter().map(message).collect(),
        last: last.iter().map(message).collect(),
    })
}
