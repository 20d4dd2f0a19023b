//! Compares a state file with the session that carries it, when no process runs the session: what the session wrote follows from the text it
//! began with and its journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::workflow::compare::{FileDecision, WaitingSteps, compare, decisions};
use bcc_lang::workflow::progress::{EventPlace, apply_event, note_waiting};
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
    Edited(EditedFile),
}

/// A file from which another session must go on.
pub(crate) struct EditedFile {
    pub why: Message,
    /// What the session must write its next progress into: the file as it was edited.
    pub text: Box<StateText>,
    pub waiting: WaitingSteps,
    pub decisions: Vec<FileDecision>,
    /// Whether the session has answers, of which the file does not have what follows from them.
    pub has_answers: bool,
}

/// What a session wrote into its file.
struct Replayed {
    text: StateText,
    /// Whether the file has the text of an earlier commit, because the last ones were not written.
    is_behind: bool,
    waiting: WaitingSteps,
    asked: AskedSteps,
}

/// The approvals that wait for a decision, or were decided, and have not ended since.
#[derive(Default)]
struct AskedSteps {
    /// Those that are steps or sub tasks: the file can decide them.
    requests: WaitingSteps,
    /// Those in the skills that steps run, by their paths.
    inner: BTreeMap<String, String>,
    /// What was decided, by requests.
    answers: BTreeMap<String, String>,
}

impl AskedSteps {
    fn note(&mut self, state: &StateText, event: &Value) {
        let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (path, request) = (text("/location/path"), text("/request_id"));
        match (text("/type"), text("/kind"), text("/decision")) {
            ("request_opened", "approval", _) => {
                _ = match EventPlace::of(state, event) {
                    Some(EventPlace { action, is_inner: false, .. }) => {
                        self.requests.insert(action.to_owned(), request.to_owned())
                    }
                    _ => self.inner.insert(path.to_owned(), request.to_owned()),
                };
            }
            ("request_answered", _, "withdrawn") => {
                self.requests.retain(|_, asked| asked != request);
                self.inner.retain(|_, asked| asked != request);
            }
            ("request_answered", "approval", decision) => {
                self.answers.insert(request.to_owned(), decision.to_owned());
            }
            ("outcome", ..) => {
                _ = match EventPlace::of(state, event) {
                    Some(EventPlace { action, is_inner: false, .. }) => self.requests.remove(action),
                    _ => self.inner.remove(path),
                };
            }
            _ => {}
        }
    }

    fn has_answers(&self) -> bool {
        self.requests.values().chain(self.inner.values()).any(|request| self.answers.contains_key(request))
    }

    /// Whether the file only repeats what was decided.
    fn has(&self, decision: &FileDecision) -> bool {
        let answer = self.answers.get(&decision.request).map(String::as_str);
        answer == Some(if decision.is_approved { "approve" } else { "reject" })
    }
}

pub(crate) async fn agreement(
    store: &dyn Store,
    id: &str,
    pinned: &Arc<SourceFile>,
    found: ReadStateFile,
) -> Result<Agreement, EngineError> {
    let Replayed { text, is_behind, waiting, asked } = replay(store, id, pinned, found.source.text()).await?;
    if text.is(found.source.text()) {
        return Ok(Agreement::Agrees { text: Box::new(text), is_behind: false, waiting, decisions: vec![] });
    }
    if is_behind {
        return Ok(Agreement::Agrees { text: Box::new(text), is_behind, waiting, decisions: vec![] });
    }
    let written = parse(&Arc::new(SourceFile::new("", text.text()))).root.map(|root| root.to_json());
    let written = written.unwrap_or_default();
    // What is decided a second time differently must be refused, and not be lost.
    let mut decisions = decisions(&written, &found.value, &asked.requests);
    decisions.retain(|decision| !asked.has(decision));
    let why = match compare(&written, &found.value, &asked.requests) {
        Ok(change) if !change.is_replanned => {
            return Ok(Agreement::Agrees { text: Box::new(found.text), is_behind: false, waiting, decisions });
        }
        Ok(_) => Message::word("steps that have not run, or variables, were changed"),
        Err(why) => why,
    };
    let (text, has_answers) = (Box::new(found.text), asked.has_answers());
    Ok(Agreement::Edited(EditedFile { why, text, waiting, decisions, has_answers }))
}

/// Applies the journal of the session to the text that it began with.
async fn replay(store: &dyn Store, id: &str, pinned: &Arc<SourceFile>, found: &str) -> Result<Replayed, EngineError> {
    let unreadable = |error: Message| EngineError::failed(error);
    let mut text = StateText::new(pinned).map_err(|error| unreadable(error.to_message()))?;
    let last_turns = last_turns(store, id).await?;
    let (mut is_behind, mut waiting, mut asked, mut after) = (false, WaitingSteps::new(), AskedSteps::default(), 0);
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
            asked.note(&text, &event);
        }
    }
    Ok(Replayed { text, is_behind, waiting, asked })
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
