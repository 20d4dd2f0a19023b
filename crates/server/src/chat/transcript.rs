//! What a session has said, compared with what a client has.

use bcc_lang::message::language::Language;
use bcc_runtime::program::event::Speaker;
use bcc_store::contract::Store;
use bcc_store::rows::MessageRow;

use crate::chat::request::SaidText;
use crate::chat::response::{BETWEEN, notices};
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

/// Where the history of a client ends in a session, if the client may have left out what was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailPoint {
    /// The number of the last message that the client has got.
    pub(crate) shown: u64,
    /// Whether the history ends with the last reply of the session, or with a part of it.
    pub(crate) ends_in_reply: bool,
}

/// Where a history ends whose last text is `last`.
pub(crate) async fn shown_in_tail(store: &dyn Store, id: &str, last: Option<&SaidText>) -> Result<TailPoint, Problem> {
    let tail: Vec<TranscriptMessage> =
        store.messages_tail(id, TAIL).await?.into_iter().map(TranscriptMessage::from).collect();
    Ok(point_in_tail(&tail, last))
}

fn point_in_tail(tail: &[TranscriptMessage], last: Option<&SaidText>) -> TailPoint {
    let end = tail.last().map_or(0, |message| message.number);
    let elsewhere = TailPoint { shown: end, ends_in_reply: false };
    let Some(last) = last.filter(|last| !last.is_person) else { return elsewhere };
    let answer = tail.iter().rposition(|message| message.said.is_person);
    let since = tail.get(answer.map_or(0, |answer| answer + 1)..).unwrap_or_default();
    let ends = (0..since.len()).filter_map(|start| {
        let count = joined_as(since.get(start..)?, last)?;
        Some(since.get(start + count - 1)?.number)
    });
    if let Some(shown) = ends.max() {
        return TailPoint { shown, ends_in_reply: true };
    }
    let before = since.first().map_or(end, |first| first.number - 1);
    if is_notice(&last.text) {
        return TailPoint { shown: before, ends_in_reply: !last.text.is_empty() };
    }
    let Some(complete) = complete_in(since, &last.text) else { return elsewhere };
    let shown = complete.checked_sub(1).and_then(|last| since.get(last)).map_or(before, |last| last.number);
    TailPoint { shown, ends_in_reply: true }
}

/// Whether the client was told only that the session waits or is over, or nothing at all.
fn is_notice(text: &str) -> bool {
    text.is_empty() || all_notices().any(|notice| notice == text)
}

fn all_notices() -> impl Iterator<Item = String> {
    [Language::English, Language::Chinese].into_iter().flat_map(notices)
}

/// How many of these messages are complete in a text that breaks off in the middle of them; none if it is another text.
fn complete_in(messages: &[TranscriptMessage], text: &str) -> Option<usize> {
    let mut joined = String::new();
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            joined.push_str(BETWEEN);
        }
        joined.push_str(&message.said.text);
        if joined.len() > text.len() {
            return joined.starts_with(text).then_some(index);
        }
        if !text.starts_with(&joined) {
            return None;
        }
    }
    None
}

/// How many messages of one side, from the first one on, are this text together, perhaps with a notice at its end.
fn joined_as(messages: &[TranscriptMessage], said: &SaidText) -> Option<usize> {
    exactly_joined_as(messages, said).or_else(|| {
        let text = all_notices().find_map(|notice| said.text.strip_suffix(&notice)?.strip_suffix(BETWEEN))?;
        exactly_joined_as(messages, &SaidText::new(said.is_person, text)).filter(|_| !said.is_person)
    })
}

fn exactly_joined_as(messages: &[TranscriptMessage], said: &SaidText) -> Option<usize> {
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

/// How many of these messages a text of the person begins with that has more messages: all that come before the session says something.
fn unanswered_prefix(messages: &[TranscriptMessage], said: &SaidText) -> Option<usize> {
    let count = messages.iter().take_while(|message| message.said.is_person).count();
    let heard: Vec<&str> = messages.iter().take(count).map(|message| message.said.text.as_str()).collect();
    (count > 0 && follows(&heard.join(BETWEEN), &said.text)).then_some(count)
}

/// Whether a text is several messages, of which the first ones are `first`.
fn follows(first: &str, text: &str) -> bool {
    text.strip_prefix(first).is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with(BETWEEN))
}

/// The last message of the person, if the session has said nothing since.
pub(crate) struct UnansweredMessage {
    pub(crate) number: u64,
    text: String,
}

impl UnansweredMessage {
    /// Whether the person says the same again, or something more.
    pub(crate) fn is_followed_by(&self, message: &str) -> bool {
        let said = SaidText::new(true, message);
        said.text == self.text || follows(&self.text, &said.text)
    }
}

/// The last message of a session, if it is that of the person.
pub(crate) async fn unanswered(store: &dyn Store, id: &str) -> Result<Option<UnansweredMessage>, Problem> {
    let last = store.messages_tail(id, 1).await?.into_iter().next().map(TranscriptMessage::from);
    Ok(last
        .filter(|last| last.said.is_person)
        .map(|last| UnansweredMessage { number: last.number, text: last.said.text }))
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
        } else if said.is_person
            && let Some(count) = unanswered_prefix(rest, said)
        {
            // The last of them was not answered, as no model replied: what was said after it has no effect.
            at += count;
            answers += count as u64;
            is_loose = true;
        } else if said.is_person && rest.first().is_none_or(|next| !next.said.is_person) {
            // It was answered with what the session had said meanwhile, or with a notice.
            is_loose = true;
        } else if said.is_person || !is_notice(&said.text) {
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
        let waits = notices(Language::Chinese).into_iter().next().unwrap();
        let before = ["<hello", "What?", "<a loan", &waits];
        assert_eq!(found(&transcript, &before), Some((1, 2, false)));
        let after = [&before[..], &["<any news?", "Your address?"]].concat();
        assert_eq!(found(&transcript, &after), Some((1, 3, true)));
        assert_eq!(found(&transcript, &[&after[..], &["<Main street 1", "Bye."]].concat()), Some((2, 5, true)));
        assert_eq!(found(&transcript, &[&before[..], &["<any news?", "Bye."]].concat()), None);
        // With a notice after what the session has said, and while it still waits.
        let (transcript, asked) = (transcript.get(..2).unwrap(), format!("What?\n\n{waits}"));
        assert_eq!(found(transcript, &["<hello", &asked]), Some((0, 1, false)));
        assert_eq!(found(transcript, &[&before[..], &["<any news?", &waits]].concat()), Some((1, 2, true)));
        assert_eq!(found(transcript, &[&before[..], &["<any news?", "Bye."]].concat()), None);
    }

    #[test]
    fn what_was_said_after_a_message_that_was_not_answered_has_no_effect() {
        let transcript = messages(&["What?", "<a loan", "Your address?", "<Main street 1"]);
        let before = ["<hello", "What?", "<a loan\n\nplease", "Your address?"];
        assert_eq!(found(&transcript, &before), Some((1, 3, true)));
        assert_eq!(found(&transcript, &[&before[..], &["<Main street 1"]].concat()), Some((2, 4, true)));
        assert_eq!(found(&transcript, &["<hello", "What?", "<a loan please", "Your address?"]), None);
    }

    /// The number of the last message that a client has whose history ends so, and whether it ends in the last reply.
    fn in_tail(last: &str) -> (u64, bool) {
        let tail = messages(&["Before.", "<Ann", "Hi Ann.", "How are you?"]);
        let last = said(&[last]);
        let TailPoint { shown, ends_in_reply } = point_in_tail(&tail, last.first());
        (shown, ends_in_reply)
    }

    #[test]
    fn the_end_of_a_history_is_found_among_what_was_said_last() {
        let waits = notices(Language::English).into_iter().next().unwrap();
        for (last, expected) in [
            ("Hi Ann.\n\nHow are you?", (4, true)),
            ("How are you?", (4, true)),
            (format!("Hi Ann.\n\nHow are you?\n\n{waits}").as_str(), (4, true)),
            ("Hi Ann.", (3, true)),
            ("Hi Ann.\n\nHow a", (3, true)),
            ("Hi", (2, true)),
            (waits.as_str(), (2, true)),
            ("", (2, false)),
            ("Before.", (4, false)),
            ("<Ann", (4, false)),
        ] {
            assert_eq!(in_tail(last), expected, "{last}");
        }
    }
}
