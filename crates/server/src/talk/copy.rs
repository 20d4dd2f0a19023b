//! `GET /t/TOKEN/SECRET/copy`: the conversation as Markdown, for the person to keep.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bcc_lang::message::message::Message;
use bcc_lang::source::render::markdown::{escape_line, escape_lines};

use crate::state::ServerState;
use crate::talk::error::TalkErrorKind;
use crate::talk::visit::TalkVisit;

/// The number of messages that are read at a time.
const PAGE: usize = 500;

/// Only what was said, in order.
pub(crate) async fn copy(
    State(state): State<ServerState>,
    Path((token, secret)): Path<(String, String)>,
) -> Result<Response, TalkErrorKind> {
    let visit = TalkVisit::of(&state, &token, &secret).await?;
    let (store, language) = (state.sessions.store(), visit.terms.language());
    let (own, other) = (Message::word("You").render(language), Message::word("Assistant").render(language));
    let day = visit.talk.began_at.split('T').next().unwrap_or_default();
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
