//! Compares a state file with the session that carries it, when no process runs the session: what the session wrote follows from the text it
//! began with and its journal.

use std::sync::Arc;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::workflow::compare::{FileDecision, WaitingSteps, compare};
use bcc_lang::workflow::progress::{apply_event, note_waiting};
use bcc_lang::workflow::state_text::StateText;
use bcc_runtime::program::stored_event::public_line;
use bcc_store::contract::Store;
use serde_json::Value;

use crate::error::EngineError;
use crate::state_file::disk::ReadStateFile;

/// The number of journal rows that are read at a time.
const PAGE: usize = 500;

/// The events of which every commit that changes the file has at least one.
const TURNS: [&str; 4] = ["session_started", "outcome", "request_answered", "effect_started"];

/// How many of these events the file may be behind after a kill: the file of one commit is written while the next commit is made. One
/// more, because other events of the same commit can precede them.
const MAX_BEHIND: usize = 3;

/// How a state file and its session go together.
pub(crate) enum Agreement {
    /// The session goes on. The text is the one to start from, and the file must be written if `is_behind`.
    Agrees { text: Box<StateText>, is_behind: bool, waiting: WaitingSteps, decisions: Vec<FileDecision> },
    /// The file was edited, so that another session must go on from it.
    Edited(Message),
}

/// What a session wrote into its file.
struct Replayed {
    text: StateText,
    /// Whether the file has the text of an earlier commit, because the last ones were not written.
    is_behind: bool,
    waiting: WaitingSteps,
}

pub(crate) async fn agreement(
    store: &dyn Store,
    id: &str,
    pinned: &Arc<SourceFile>,
    found: ReadStateFile,
) -> Result<Agreement, EngineError> {
    let Replayed { text, is_behind, waiting } = replay(store, id, pinned, found.source.text()).await?;
    if text.is(found.source.text()) {
        return Ok(Agreement::Agrees { text: Box::new(text), is_behind: false, waiting, decisions: vec![] });
    }
    if is_behind {
        return Ok(Agreement::Agrees { text: Box::new(text), is_behind, waiting, decisions: vec![] });
    }
    let written = parse(&Arc::new(SourceFile::new("", text.text()))).root.map(|root| root.to_json());
    Ok(match compare(&written.unwrap_or_default(), &found.value, &waiting) {
        Ok(change) if change.is_replanned => {
            Agreement::Edited(Message::word("steps that have not run, or variables, were changed"))
        }
        Ok(change) => {
            Agreement::Agrees { text: Box::new(found.text), is_behind: false, waiting, decisions: change.decisions }
        }
        Err(why) => Agreement::Edited(why),
    })
}

/// Applies the journal of the session to the text that it began with.
async fn replay(store: &dyn Store, id: &str, pinned: &Arc<SourceFile>, found: &str) -> Result<Replayed, EngineError> {
    let unreadable = |error: Message| EngineError::failed(error);
    let mut text = StateText::new(pinned).map_err(|error| unreadable(error.to_message()))?;
    let last_turns = last_turns(store, id).await?;
    let (mut is_behind, mut waiting, mut after) = (false, WaitingSteps::new(), 0);
    loop {
        let rows = store.journal(id, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        for row in rows {
            is_behind |= row.seq >= last_turns && text.is(found);
            let event: Value = serde_json::from_str(&public_line(&row.body))
                .map_err(|error| EngineError::failed(error.to_message()))?;
            apply_event(&mut text, &event).map_err(|error| unreadable(error.to_message()))?;
            note_waiting(&text, &mut waiting, &event);
        }
    }
    Ok(Replayed { text, is_behind, waiting })
}

/// The number of the first event that may be missing in the file.
async fn last_turns(store: &dyn Store, id: &str) -> Result<u64, EngineError> {
    let mut last = 0;
    for kind in TURNS {
        last = last.max(store.last_by_kind(id, kind).await?.map_or(0, |row| row.seq));
    }
    // The events before it, more of them each time.
    let mut count = PAGE;
    loop {
        let after = last.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
        let rows = store.journal(id, after, count).await?;
        let turns = rows.iter().rev().filter(|row| row.seq <= last && TURNS.contains(&row.kind.as_str()));
        match turns.map(|row| row.seq).nth(MAX_BEHIND - 1) {
            Some(seq) => return Ok(seq),
            None if after == 0 => return Ok(0),
            None => count = count.saturating_mul(2),
        }
    }
}
