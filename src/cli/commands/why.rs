//! `/why`: what was decided since an answer of the person, read from the journal.

use bcc_lang::message::msg;
use serde_json::Value;

use crate::cli::commands::trace::trace;
use crate::cli::language::said;
use bcc_engine::error::EngineError;
use bcc_runtime::run::session::Session;
use bcc_store::contract::Store;

/// How many events are read at a time: one may hold a prompt and a reply of megabytes.
const PAGE: usize = 64;

/// How many events back an answer is looked for first; four times as many each time that there are too few.
const LOOK_BACK: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhyRequest {
    /// Since how many answers; `None` for the whole session.
    pub answers: Option<usize>,
    pub raw: bool,
}

impl WhyRequest {
    /// What stands behind `/why`; `None` when it is nothing that can be asked for.
    pub fn read(words: &str) -> Option<Self> {
        let mut asked = Self { answers: Some(1), raw: false };
        for word in words.split_whitespace() {
            match word {
                "raw" => asked.raw = true,
                "all" => asked.answers = None,
                number => asked.answers = Some(number.parse().ok().filter(|number| *number > 0)?),
            }
        }
        Some(asked)
    }
}

pub async fn why(session: &Session, archive: &dyn Store, asked: WhyRequest) -> Result<String, EngineError> {
    let mut after = match asked.answers {
        None => 0,
        Some(answers) => begin(session, archive, answers).await?.saturating_sub(1),
    };
    let mut events = Vec::new();
    loop {
        let rows = archive.journal(&session.id, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        for row in &rows {
            let mut event = parse(&row.body)?;
            session.mask(&mut event);
            events.push(event);
        }
    }
    let lines = trace(&events, asked.raw);
    Ok(if lines.is_empty() { said("there is nothing to show yet").into_owned() } else { lines.join("\n") })
}

/// The seq of the answer that is the last but `answers - 1`; 1 when there are fewer.
async fn begin(session: &Session, archive: &dyn Store, answers: usize) -> Result<u64, EngineError> {
    let mut back = LOOK_BACK;
    loop {
        let since = session.last_seq().saturating_sub(back);
        let found = answers_since(&session.id, archive, since).await?;
        if let Some(seq) = found.len().checked_sub(answers).and_then(|at| found.get(at)) {
            return Ok(*seq);
        }
        if since == 0 {
            return Ok(1);
        }
        back = back.saturating_mul(4);
    }
}

/// The seqs of the person's answers after `after`.
async fn answers_since(id: &str, archive: &dyn Store, mut after: u64) -> Result<Vec<u64>, EngineError> {
    let mut found = Vec::new();
    loop {
        let rows = archive.journal_of(id, "message", after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(found) };
        after = last.seq;
        for row in &rows {
            if parse(&row.body)?.get("role").and_then(Value::as_str) == Some("user") {
                found.push(row.seq);
            }
        }
    }
}

pub fn parse(line: &str) -> Result<Value, EngineError> {
    serde_json::from_str(line).map_err(|error| EngineError::failed(msg!("a stored event cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_why_is_read_in_any_order() {
        let asked = |answers, raw| Some(WhyRequest { answers, raw });
        let table = [
            ("", asked(Some(1), false)),
            ("raw", asked(Some(1), true)),
            ("all", asked(None, false)),
            ("3", asked(Some(3), false)),
            ("raw 3", asked(Some(3), true)),
            ("all  raw", asked(None, true)),
            ("0", None),
            ("-1", None),
            ("not", None),
        ];
        for (words, expected) in table {
            assert_eq!(WhyRequest::read(words), expected, "{words}");
        }
    }
}
