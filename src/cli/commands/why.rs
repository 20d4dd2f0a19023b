//! `/why`: the decisions since an answer of the person, from the journal.

use bcc_lang::message::msg;
use bcc_lang::value::exact::ExactValue;
use serde_json::Value;

use crate::cli::commands::trace::trace;
use crate::cli::language::translated;
use bcc_engine::error::EngineError;
use bcc_engine::export::events_of;
use bcc_engine::taken_back::TakenBackEvents;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;

/// The number of events that are read at a time: one may contain megabytes of prompt and reply.
const PAGE: usize = 64;

/// The number of events that are first searched for answers. It is multiplied by four each time that there are too few answers.
const LOOK_BACK: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhyRequest {
    /// The number of answers to go back; `None` for the complete session.
    pub answers: Option<usize>,
    pub raw: bool,
}

impl WhyRequest {
    /// Parses the arguments of `/why`; `None` if they are invalid.
    pub fn read(arguments: &str) -> Option<Self> {
        let mut request = Self { answers: Some(1), raw: false };
        for word in arguments.split_whitespace() {
            match word {
                "raw" => request.raw = true,
                "all" => request.answers = None,
                number => request.answers = Some(number.parse().ok().filter(|number| *number > 0)?),
            }
        }
        Some(request)
    }
}

pub async fn why(session: &Session, store: &dyn Store, request: WhyRequest) -> Result<String, EngineError> {
    let mut after = match request.answers {
        None => 0,
        Some(answers) => first_seq(session, store, answers).await?.saturating_sub(1),
    };
    let mut events = Vec::new();
    loop {
        let rows = store.journal(&session.id, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        for row in &rows {
            let mut event = parse(&row.body)?;
            event.change(|event| session.mask(event));
            events.push(event);
        }
    }
    let taken_back = taken_back(&session.id, store).await?;
    let lines = trace(&taken_back.others(events), request.raw);
    Ok(if lines.is_empty() { translated("there is nothing to show yet").into_owned() } else { lines.join("\n") })
}

/// The seq of the answer `answers` from the end; 1 if there are fewer.
async fn first_seq(session: &Session, store: &dyn Store, answers: usize) -> Result<u64, EngineError> {
    let mut back = LOOK_BACK;
    loop {
        let since = session.last_seq().saturating_sub(back);
        let found = answers_since(&session.id, store, since).await?;
        if let Some(seq) = found.len().checked_sub(answers).and_then(|at| found.get(at)) {
            return Ok(*seq);
        }
        if since == 0 {
            return Ok(1);
        }
        back = back.saturating_mul(4);
    }
}

/// The seqs of the answers of the person after `after`.
async fn answers_since(id: &str, store: &dyn Store, mut after: u64) -> Result<Vec<u64>, EngineError> {
    let taken_back = taken_back(id, store).await?;
    let mut found = Vec::new();
    loop {
        let rows = store.journal_by_kind(id, "message", after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(found) };
        after = last.seq;
        for row in &rows {
            if parse(&row.body)?.get("role").and_then(Value::as_str) == Some("user") && !taken_back.contains(row.seq) {
                found.push(row.seq);
            }
        }
    }
}

/// What no longer counts, because it was taken back.
async fn taken_back(id: &str, store: &dyn Store) -> Result<TakenBackEvents, EngineError> {
    Ok(TakenBackEvents::of(events_of(store, id, "taken_back").await?))
}

pub fn parse(line: &str) -> Result<ExactValue, EngineError> {
    ExactValue::parse(line).map_err(|error| EngineError::failed(msg!("a stored event cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_why_are_read_in_any_order() {
        let request = |answers, raw| Some(WhyRequest { answers, raw });
        let table = [
            ("", request(Some(1), false)),
            ("raw", request(Some(1), true)),
            ("all", request(None, false)),
            ("3", request(Some(3), false)),
            ("raw 3", request(Some(3), true)),
            ("all  raw", request(None, true)),
            ("0", None),
            ("-1", None),
            ("not", None),
        ];
        for (words, expected) in table {
            assert_eq!(WhyRequest::read(words), expected, "{words}");
        }
    }
}
