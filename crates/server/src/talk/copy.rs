//! `GET /t/TOKEN/SECRET/copy`: the conversation as Markdown, for the person to keep.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bcc_lang::message::message::Message;
use bcc_lang::source::render::markdown::{escape_line, escape_lines};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::state::ServerState;
use crate::talk::error::TalkErrorKind;
use crate::talk::visit::TalkVisit;

/// The number of messages that are read at a time.
const PAGE: usize = 500;

/// What a copy is for.
#[derive(Debug, Deserialize)]
pub(crate) struct CopyQuery {
    /// The time zone of the person, as in `Asia/Shanghai`: a conversation of the morning must not be dated the day before.
    zone: Option<String>,
}

/// Only what was said, in order. The day is that of UTC if the zone is not known.
pub(crate) async fn copy(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
    query: Result<Query<CopyQuery>, QueryRejection>,
) -> Result<Response, TalkErrorKind> {
    let visit = TalkVisit::of(&state, &token, &secret).await?;
    let (store, language) = (state.sessions.store(), visit.terms.language());
    let (own, other) = (Message::word("You").render(language), Message::word("Assistant").render(language));
    let zone = query.ok().and_then(|Query(query)| query.zone);
    let zone = zone.and_then(|name| TimeZone::get(&name).ok()).unwrap_or(TimeZone::UTC);
    let day = day_in(&visit.talk.began_at, &zone);
    let mut text = format!("# {}\n\n{day}\n", escape_line(&visit.terms.title));
    let mut after = 0;
    loop {
        let messages = store.messages(&visit.talk.session, after, PAGE).await?;
        let Some(last) = messages.last() else { break };
        after = last.number;
        for message in messages {
            let who = if message.role == "user" { &own } else { &other };
            text.push_str(&format!("\n**{who}**\n\n{}\n", escape_lines(&message.text, "")));
        }
    }
    let headers = [
        (header::CONTENT_TYPE, "text/markdown; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"conversation-{day}.md\"")),
    ];
    Ok((headers, text).into_response())
}

/// The day of a stored time.
fn day_in(time: &str, zone: &TimeZone) -> String {
    match time.parse::<Timestamp>() {
        Ok(instant) => instant.to_zoned(zone.clone()).date().to_string(),
        Err(_) => time.split('T').next().unwrap_or_default().to_owned(),
    }
}
