//! `sessions list`: the sessions of a store, the newest first.

use clap::Args;
use clap::builder::PossibleValuesParser;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::cli::exit::Exit;
use crate::cli::language::{filled, translated};
use crate::cli::print::print;
use crate::cli::progress_texts::second;
use crate::cli::report;
use crate::cli::sessions::{Access, existing_store, no_store};
use crate::cli::store_args::ProjectStoreArgs;
use bcc_engine::clock::{now, stamp};
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::usage::{usage_summary, used};
use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::render::visible::{visible_json, visible_line};
use bcc_lang::value::instant::instant;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::rows::{SessionFilter, SessionRow};
use bcc_store::session_pages::SessionPages;

/// Which sessions a command is about.
#[derive(Debug, Args)]
pub struct SessionFilterArgs {
    /// Only those of the script with this `session_id`
    #[arg(long, value_name = "SCRIPT")]
    pub script: Option<String>,
    /// Only those with this status
    #[arg(long, value_parser = PossibleValuesParser::new(SessionStatus::ALL.map(SessionStatus::name)))]
    pub status: Option<String>,
    /// Only those of this user
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Only those that were used since: a duration such as 12h, a date or a time
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

impl SessionFilterArgs {
    /// # Errors
    /// `Usage`: `--since` is no time.
    pub fn filter(self) -> Result<SessionFilter, EngineError> {
        let Self { script, status, user, since } = self;
        let since = since.as_deref().map(instant_since).transpose()?;
        Ok(SessionFilter { id: None, script, status, user, since })
    }

    pub fn is_given(&self) -> bool {
        let Self { script, status, user, since } = self;
        [script, status, user, since].into_iter().any(Option::is_some)
    }
}

#[derive(Debug, Args)]
pub struct SessionListArgs {
    #[command(flatten)]
    pub filter: SessionFilterArgs,
    /// At most so many
    #[arg(long, value_name = "NUMBER")]
    pub limit: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub store: ProjectStoreArgs,
}

pub async fn list_sessions(options: SessionListArgs, environment: &Environment) -> Result<Exit, EngineError> {
    let SessionListArgs { filter, limit, json, store } = options;
    let filter = filter.filter()?;
    let place = store.place(environment)?;
    let found = match place.exists() {
        true => existing_store(&place, Access::Read)?,
        false if store.is_named(environment) => return Err(no_store(&place)),
        false => None,
    };
    let is_filtered = filter != SessionFilter::default();
    let mut listed = Vec::new();
    let mut count = 0_usize;
    if let Some(store) = &found {
        let mut sessions = SessionPages::new(store.as_ref(), filter);
        while count < limit.unwrap_or(usize::MAX)
            && let Some(row) = sessions.next().await?
        {
            count += 1;
            match json {
                true => listed.push(session_json(&row)),
                false => print(&line(&row))?,
            }
        }
    }
    if json {
        print(&format!("{}", visible_json(&json!({ "version": 1, "sessions": listed }).to_string())))?;
    } else if count == 0 && is_filtered && found.is_some() {
        report::note("no such session");
    } else if found.is_none() {
        report::note("no sessions yet: `bcc-script run FILE` starts one");
    }
    Ok(Exit::Done)
}

/// The time that `--since` names, as the store has times.
fn instant_since(text: &str) -> Result<String, EngineError> {
    if let Some(time) = instant(text, &TimeZone::system()) {
        return Ok(time);
    }
    if humantime::parse_duration(text).is_err() {
        return Err(EngineError::usage(msg!("`{text}` is no duration, date or time"))
            .with_help("write, for example, 12h, 30d, 2026-11-01 or 2026-11-01T09:30"));
    }
    Ok(stamp(before_now(text)?))
}

/// The point in time that is this long ago.
///
/// # Errors
/// `Usage`: `age` is no duration, or it is too long.
pub fn before_now(age: &str) -> Result<jiff::Timestamp, EngineError> {
    let duration = humantime::parse_duration(age).map_err(|error| {
        EngineError::usage(msg!("`{age}` is not a duration: {error}", error = library(&error.to_string())))
            .with_help("write, for example, 30d or 12h")
    })?;
    let duration = jiff::SignedDuration::try_from(duration)
        .map_err(|_| EngineError::usage(msg!("`{age}` is longer than the longest supported duration")))?;
    now().checked_sub(duration).map_err(|_| EngineError::usage(msg!("`{age}` goes back too far")))
}

fn line(row: &SessionRow) -> String {
    let updated = second(&row.updated_at);
    let status = row.status.as_str();
    // Tabs separate the fields.
    let field = |text: &str| visible_line(text).replace('\t', " ");
    let user = filled("user {user}", &[("user", &field(&row.user))]);
    let answers = match row.answers {
        1 => translated("1 answer").into_owned(),
        count => filled("{answers} answers", &[("answers", &count.to_string())]),
    };
    format!("{}\t{status}\t{}\t{user}\t{answers}\t{updated}\t{}", row.id, field(&row.script), translated(&usage(row)))
}

/// The usage and the budget of a session.
fn usage(row: &SessionRow) -> Message {
    let (used, budget) = used(row);
    usage_summary(&json!({ "used": used, "budget": budget }))
}

fn session_json(row: &SessionRow) -> Value {
    let (used, budget) = used(row);
    json!({
        "id": row.id,
        "script": row.script,
        "status": row.status,
        "user": row.user,
        "started_at": row.started_at,
        "updated_at": row.updated_at,
        "answers": row.answers,
        "last_seq": row.last_seq,
        "used": used,
        "budget": budget,
    })
}
