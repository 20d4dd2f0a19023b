//! What a session has said, compared with what a client has.

use bcc_lang::message::language::Language;
use bcc_runtime::program::event::Speaker;
use bcc_store::contract::Store;
use bcc_store::rows::MessageRow;

use crate::chat::request::SaidText;
use crate::chat::response::{BETWEEN, waiting_texts};
use crate::problem::Problem;

/// The number of messages that are read at a time.
const PAGE: usize = 256;

/// The number of messages among which those since the last answer are looked for.
const TAIL: usize = 64;

/// A message of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TranscriptMessage {
    number: u64,
    /// The id that its events carry.
    id: String,
    said: SaidText,
}

impl From<MessageRow> for TranscriptMessage {
    fn from(row: MessageRow) -> Self {
        let said = SaidText::new(row.role == Speaker::User.name(), &row.text);
        Self { number: row.number, id: row.message_id, said }
    }
}

/// Where a history ends in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HistoryPoint {
    /// The number of answers that the session had accepted there.
    pub(crate) answers: u64,
    /// The number of the last message there.
    pub(crate) shown: u64,
    /// Whether the history has messages of the person that were not accepted.
    pub(crate) is_loose: bool,
}

/// The messages of a session, in order.
pub(crate) async fn transcript(store: &dyn Store, id: &str) -> Result<Vec<TranscriptMessage>, Problem> {
    let mut said = Vec::new();
    let mut after = 0;
    loop {
        let rows = store.messages(id, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(said) };
        after = last.number;
        said.extend(rows.into_iter().map(TranscriptMessage::from));
    }
}

/// The ids of what a session has said after this message, up to the next answer.
pub(crate) async fn messages_after(store: &dyn Store, id: &str, shown: u64) -> Result<Vec<String>, Problem> {
    let rows = store.messages(id, shown, PAGE).await?;
    let messages = rows.into_iter().map(TranscriptMessage::from);
    Ok(messages.take_while(|message| !message.said.is_person).map(|message| message.id).collect())
}

/// The number of the last message of a reply. `last` is its id; without one, the reply was only that the session waits.
pub(crate) async fn last_shown(store: &dyn Store, id: &str, last: Option<&str>) -> Result<u64, Problem> {
    let tail = store.messages_tail(id, TAIL).await?;
    let mut newest_first = tail.iter().rev();
    let found = match last {
        Some(last) => newest_first.find(|row| row.message_id == last),
        None => newest_first.find(|row| row.role == Speaker::User.name()),
    };
    match found {
        Some(row) => Ok(row.number),
        None if last.is_none() && tail.len() < TAIL => Ok(0),
        // A reply of long ago.
        None => Ok(u64::MAX),
    }
}

/// The number of the last message that a client has got whose history ends with `last`, if it may have left out what was before.
pub(crate) async fn shown_in_tail(store: &dyn Store, id: &str, last: Option<&SaidText>) -> Result<u64, Problem> {
    let tail: Vec<TranscriptMessage> =
        store.messages_tail(id, TAIL).await?.into_iter().map(TranscriptMessage::from).collect();
    let end = tail.last().map_or(0, |message| message.number);
    let Some(last) = last.filter(|last| !last.is_person) else { return Ok(end) };
    let answer = tail.iter().rposition(|message| message.said.is_person);
    let since = tail.get(answer.map_or(0, |answer| answer + 1)..).unwrap_or_default();
    let ends = (0..since.len()).filter_map(|start| {
        let count = joined_as(since.get(start..)?, last)?;
        Some(since.get(start + count - 1)?.number)
    });
    let before = since.first().map_or(end, |first| first.number - 1);
    Ok(ends.max().unwrap_or(if is_waiting_text(&last.text) { before } else { end }))
}

/// Whether the client was told only that the session waits, or nothing at all.
fn is_waiting_text(text: &str) -> bool {
    text.is_empty()
        || [Language::English, Language::Chinese]
            .iter()
            .any(|one| waiting_texts(*one).iter().any(|waits| waits == text))
}

/// How many messages of one side, from the first one on, are this text together.
fn joined_as(messages: &[TranscriptMessage], said: &SaidText) -> Option<usize> {
    let mut joined = String::new();
    for (index, message) in messages.iter().enumerate() {
        if message.said.is_person != said.is_person {
            return None;
        }
        if index > 0 {
            joined.push_str(BETWEEN);
        }
        joined.push_str(&message.said.text);
        if joined == said.text {
            return Some(index + 1);
        }
        if !said.text.starts_with(&joined) {
            return None;
        }
    }
    None
}

/// Where a session had said exactly this; none if it did not.
pub(crate) fn point_at(transcript: &[TranscriptMessage], history: &[SaidText]) -> Option<HistoryPoint> {
    let listens = transcript.first().is_some_and(|first| first.said.is_person);
    // The first message of a conversation is no answer, if the session speaks first.
    let history = match history.split_first() {
        Some((first, rest)) if first.is_person && !listens => rest,
        _ => history,
    };
    if history.is_empty() || transcript.is_empty() {
        return None;
    }
    let (mut at, mut answers, mut is_loose) = (0, 0, false);
    for said in history {
        let rest = transcript.get(at..).unwrap_or_default();
        if let Some(count) = joined_as(rest, said) {
            at += count;
            answers += if said.is_person { count as u64 } else { 0 };
        } else if said.is_person && rest.first().is_some_and(|next| !next.said.is_person) {
            // It was answered with what the session had said meanwhile.
            is_loose = true;
        } else if said.is_person || !is_waiting_text(&said.text) {
            return None;
        }
    }
    let shown = at.checked_sub(1).and_then(|last| transcript.get(last)).map_or(0, |last| last.number);
    Some(HistoryPoint { answers, shown, is_loose })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str]) -> Vec<SaidText> {
        texts.iter().map(|text| SaidText::new(text.starts_with('<'), text.trim_start_matches('<'))).collect()
    }

    fn messages(texts: &[&str]) -> Vec<TranscriptMessage> {
        let numbered = said(texts).into_iter().zip(1..);
        numbered.map(|(said, number)| TranscriptMessage { number, id: format!("m{number}"), said }).collect()
    }

    /// The number of answers and of the last message, and whether messages were left out.
    fn found(transcript: &[TranscriptMessage], history: &[&str]) -> Option<(u64, u64, bool)> {
        point_at(transcript, &said(history)).map(|point| (point.answers, point.shown, point.is_loose))
    }

    #[test]
    fn a_history_is_found_in_a_transcript() {
        let opening = messages(&["Hello.", "Who?", "<Ann", "Hi Ann. How?", "<well", "Bye."]);
        assert_eq!(found(&opening, &["<hello", "Hello.\n\nWho?"]), Some((0, 2, false)));
        assert_eq!(found(&opening, &["<hello", "Hello.\n\nWho?", "<Ann", "Hi Ann. How?"]), Some((1, 4, false)));
        assert_eq!(found(&opening, &["<hello", "Hello.\n\nWho?", "<Bob", "Hi Bob. How?"]), None);
        assert_eq!(found(&opening, &["<hello"]), None);
        let listening = messages(&["<question", "answer"]);
        assert_eq!(found(&listening, &["<question", "answer"]), Some((1, 2, false)));
        assert_eq!(found(&listening, &["<question", "answer", "<more", "yes"]), None);
    }

    #[test]
    fn what_was_said_while_nobody_listened_is_left_out() {
        let transcript = messages(&["What?", "<a loan", "Your address?", "<Main street 1", "Bye."]);
        let waits = waiting_texts(Language::Chinese).into_iter().next().unwrap();
        let before = ["<hello", "What?", "<a loan", &waits];
        assert_eq!(found(&transcript, &before), Some((1, 2, false)));
        let after = [&before[..], &["<any news?", "Your address?"]].concat();
        assert_eq!(found(&transcript, &after), Some((1, 3, true)));
        assert_eq!(found(&transcript, &[&after[..], &["<Main street 1", "Bye."]].concat()), Some((2, 5, true)));
        assert_eq!(found(&transcript, &[&before[..], &["<any news?", "Bye."]].concat()), None);
    }
}
