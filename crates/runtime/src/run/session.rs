//! A session while a process drives it.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value};

use crate::notebook::state::NotebookState;
use crate::program::event::{Event, Speaker, Summary};
use crate::program::location::EventLocation;
use crate::program::program::Program;
use crate::program::services::Services;
use crate::program::transcript::RecentTranscript;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::Frames;
use crate::run::head::{Head, SessionStatus};
use crate::run::mailbox::{Job, Mailbox, Unanswered};
use crate::run::notebook::StoredCells;
use crate::run::planner::{Planner, RequestedPlan};
use bcc_lang::template::names::MAX_VALUE_BYTES;
use bcc_lang::value::mask::Masker;
use bcc_lang::value::scopes::Scopes;
use bcc_store::contract::{SessionLock, Store};
use bcc_store::rows::VariableRow;

/// The scope, in the store only, of values that must be masked for as long as the session is kept.
pub(crate) const HIDDEN: &str = "hidden";

/// A session that is alive: its program, its state as last committed, and what it needs to go on.
pub struct Session {
    /// Its id.
    pub id: String,
    /// The program as this visit of a topic has it: a plan may have changed the topic.
    pub(crate) program: Arc<Program>,
    /// The program as the script has it.
    pub base: Arc<Program>,
    /// Where monitors put what they have to say.
    pub(crate) mailbox: Mailbox,
    /// Counters that changed since the last commit.
    pub(crate) counted: Vec<(String, u64)>,
    /// What a monitor looks at once the turn that is under way is committed.
    pub(crate) next_job: Option<Job>,
    /// What monitors and planners were asked, where there is no budget to ask again.
    pub(crate) shelved: (Vec<Unanswered>, Option<RequestedPlan>),
    /// The notebook without its cells, as committed.
    pub(crate) notebook: NotebookState,
    /// Where its cells are.
    pub(crate) shelf: StoredCells,
    /// The outside effects that were announced by this process, and that no turn has begun.
    pub(crate) due: Mutex<BTreeSet<String>>,
    /// Where a plan comes in.
    pub(crate) planner: Planner,
    pub(crate) services: Services,
    pub(crate) archive: Arc<dyn Store>,
    pub(crate) status: SessionStatus,
    pub(crate) head: Head,
    pub(crate) answers: u64,
    pub(crate) revision: u64,
    pub(crate) last_seq: u64,
    pub(crate) frames: Frames,
    pub(crate) scopes: Scopes,
    /// The scopes that wait outside of the skills that run, outermost first.
    pub(crate) outer: Vec<Scopes>,
    pub(crate) counters: BTreeMap<String, u64>,
    pub(crate) recent: RecentTranscript,
    /// The answer that the next turn takes.
    pub(crate) pending: Option<String>,
    /// Whether the triggers have looked at the newest answer.
    pub(crate) looked: bool,
    /// The `metadata` of the turn that is being committed, for the triggers.
    pub(crate) metadata: Map<String, Value>,
    /// Takes sensitive values out of whatever is shown.
    pub masker: Masker,
    /// What the clock said when the active time was last added up.
    pub(crate) mark: u64,
    /// Whether this state may not be what is stored.
    pub(crate) ahead: bool,
    /// The script and the model as events name them.
    pub(crate) script: String,
    pub(crate) model: String,
    /// Held as long as the session is driven.
    pub(crate) _lock: Box<dyn SessionLock>,
}

/// Why [`Session::advance`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPause {
    /// It waits for an answer.
    Waiting,
    /// It came to its end.
    Completed,
    /// It cannot go on.
    Failed,
    /// The model could not be reached, or the budget is used up; it can be resumed.
    Stopped,
}

/// What became of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenAnswer {
    /// It is committed.
    Yes,
    /// Its `answer_id` was taken before; a warning was committed, and nothing else changed.
    Before,
    /// Its `answer_id` belongs to a question that was not asked yet; a warning was committed, and nothing else changed.
    Unknown,
    /// The session waits for nothing; nothing changed.
    NotAwaited,
    /// It is longer than a variable may be ([`MAX_VALUE_BYTES`]); nothing changed.
    TooLong,
}

impl Session {
    /// Where it is in its life.
    pub fn status(&self) -> SessionStatus {
        self.status
    }

    /// Its program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What it came to so far.
    pub fn so_far(&self) -> Summary {
        self.head.summary(self.answers, None)
    }

    /// How many answers were taken.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// The number of its newest event.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The variables that are visible where it stands.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// The same, and then those that wait outside of the skills that run, from the inside out.
    pub fn all_scopes(&self) -> impl Iterator<Item = &Scopes> {
        std::iter::once(&self.scopes).chain(self.outer.iter().rev())
    }

    /// Where it stands.
    pub fn place(&self) -> EventLocation {
        self.place_of(&self.frames.leaf())
    }

    /// Takes an answer of the person: it is committed before anything is called, so that it is never lost.
    ///
    /// # Errors
    /// When the store cannot take it; then it was not taken.
    pub async fn answer(&mut self, text: &str, answer_id: Option<&str>) -> Result<TakenAnswer, RunError> {
        self.must_be_whole()?;
        if text.len() > MAX_VALUE_BYTES {
            return Ok(TakenAnswer::TooLong);
        }
        if let Some(given) = answer_id
            && self.head.waiting.as_deref() != Some(given)
        {
            if self.is_taken(given).await? {
                self.ignored("answer-taken", "an answer was ignored: its answer_id has already been used").await?;
                return Ok(TakenAnswer::Before);
            }
            // Ids of ours that were not given out yet; any other id is the client's own and as good as none.
            if own_number(given).is_some() || is_of_effect(given) {
                self.ignored(
                    "answer-unknown",
                    "an answer was ignored: no question has been asked yet under its answer_id",
                )
                .await?;
                return Ok(TakenAnswer::Unknown);
            }
        }
        let Some(awaited) = self.head.waiting.clone().filter(|_| self.status == SessionStatus::WaitingInput) else {
            return Ok(TakenAnswer::NotAwaited);
        };
        let mut draft = CommitDraft::default();
        draft.answer_ids.push(awaited);
        if let Some(given) = answer_id.filter(|given| Some(*given) != self.head.waiting.as_deref()) {
            draft.answer_ids.push(given.to_owned());
        }
        self.head.waiting = None;
        self.head.hops = 0;
        self.head.way.clear();
        self.status = SessionStatus::Running;
        if std::mem::take(&mut self.head.asks_effect) {
            // A word about an effect is no part of the conversation: no prompt, no trigger and no monitor sees it.
            self.take_word(text);
            self.commit(draft).await?;
            return Ok(TakenAnswer::Yes);
        }
        let message_id = format!("u{}", self.last_seq + 1);
        let event = Event::Message { message_id, role: Speaker::User, text: text.to_owned() };
        draft.event(&self.place(), event);
        self.answers += 1;
        self.head.pending = true;
        self.looked = false;
        self.pending = Some(text.to_owned());
        self.commit(draft).await?;
        Ok(TakenAnswer::Yes)
    }

    /// Tells that an answer changed nothing, so that whoever sent it need not wonder (docs/sessions.md).
    async fn ignored(&mut self, code: &'static str, message: &'static str) -> Result<(), RunError> {
        let help = self.head.waiting.as_ref().map(|awaited| msg!("the expected answer is `{awaited}`"));
        let mut draft = CommitDraft::default();
        draft.event(&self.place(), Event::Warning { code, message: Message::word(message), help });
        self.commit(draft).await
    }

    async fn is_taken(&self, answer_id: &str) -> Result<bool, RunError> {
        if own_number(answer_id).is_some_and(|number| number <= self.answers) {
            return Ok(true);
        }
        Ok(self.archive.answer_taken(&self.id, answer_id).await?)
    }

    /// From here on, `value` is masked wherever it would be shown, also after a resume and when its variable holds another
    /// value: prompts still see the talk in which it was said.
    pub(crate) fn hide(&mut self, value: &Value, draft: &mut CommitDraft) -> Result<(), serde_json::Error> {
        if !self.masker.add(value) {
            return Ok(());
        }
        self.head.hidden += 1;
        draft.variables.push(VariableRow {
            scope: HIDDEN.to_owned(),
            path: self.head.hidden.to_string(),
            value: serde_json::to_string(value)?,
            sensitive: true,
            ..VariableRow::default()
        });
        Ok(())
    }
}

/// The number of an `answer_id` that this interpreter gave out.
fn own_number(answer_id: &str) -> Option<u64> {
    let digits = answer_id.strip_prefix('a')?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// Whether this is an `answer_id` of ours for a word about an outside effect: `w` and the number of an event.
fn is_of_effect(answer_id: &str) -> bool {
    answer_id
        .strip_prefix('w')
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The `answer_id` of the answer that follows `answers` earlier ones.
pub(crate) fn next_answer_id(answers: u64) -> String {
    format!("a{}", answers + 1)
}
