//! The rows of a store. JSON is passed as text and not parsed here. Times are RFC 3339 in UTC, ending in `Z`, and always
//! come from the caller: a store never reads the clock.

use serde::{Deserialize, Serialize};

use crate::content_hash::hash;

/// Which sessions a list has: those that agree with every field that is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The beginning of their ids.
    pub id: Option<String>,
    /// The script's `session_id`.
    pub script: Option<String>,
    pub status: Option<String>,
    pub user: Option<String>,
    /// The earliest time of the last change.
    pub since: Option<String>,
}

/// The place of a session in the list of sessions, after which the next page begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionCursor {
    pub updated_at: String,
    pub id: String,
}

impl SessionCursor {
    /// The cursor after this session.
    pub fn after(row: &SessionRow) -> Self {
        Self { updated_at: row.updated_at.clone(), id: row.id.clone() }
    }
}

/// The current state of a session: the part that is written once, and the small part that every commit rewrites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id: any text.
    pub id: String,
    pub user: String,
    /// Its status (docs/sessions.md): `running`, `waiting_input`, …
    pub status: String,
    /// The script's `session_id`.
    pub script: String,
    /// The display name of the script, if it has one.
    pub script_name: Option<String>,
    /// The content hash of the script to which it is pinned.
    pub script_sha256: String,
    pub started_at: String,
    pub updated_at: String,
    /// The number of its commits; the next one must expect this number.
    pub revision: u64,
    /// The `seq` of its last journal row; 0 before the first.
    pub last_seq: u64,
    /// The number of accepted answers of the user.
    pub answers: u64,
    /// The current position in the script, as JSON.
    pub location: String,
    /// The settings with which it was started, as JSON; written once.
    pub settings: String,
    /// The documents to which it is pinned, as JSON; written once.
    pub manifest: String,
    /// The rest of its state, as JSON. Every commit rewrites it, so keep it small.
    pub head: String,
}

/// The part of a session that is written once, when it is created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSessionRow {
    /// Its id: any text that no other session has.
    pub id: String,
    pub user: String,
    pub script: String,
    pub script_name: Option<String>,
    pub script_sha256: String,
    pub started_at: String,
    /// The settings with which it is started, as JSON.
    pub settings: String,
    /// The documents to which it is pinned, as JSON.
    pub manifest: String,
    /// Texts of another session that it has as well.
    pub texts: Option<SharedTexts>,
}

/// Texts of a session of the same store that a new session has as well. The store gives them to it: nobody reads them, however large they
/// are. A text that is not there is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedTexts {
    /// The id of the session that has them.
    pub session: String,
    /// Their hashes.
    pub hashes: Vec<String>,
}

/// One frame of a session's head (docs/architecture.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameRow {
    /// The instance path: `topic_a#2/skill_comfort/ask_1`.
    pub key: String,
    /// The frame's state, as JSON.
    pub state: String,
}

/// The current value of a variable. Scope, path and name identify the variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableRow {
    /// `global`, `session`, `phase` or `topic`.
    pub scope: String,
    /// The instance path of the scope; empty for `global` and `session`.
    pub path: String,
    pub name: String,
    /// Its value, as JSON.
    pub value: String,
    /// The action that set it, or `declare`, or `command_line`.
    pub source: String,
    /// The round of that action.
    pub round: Option<u32>,
    pub at: String,
    /// Whether it must be masked wherever it is shown.
    pub sensitive: bool,
}

/// One event of a session's journal. Once written it never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalRow {
    /// Its number in the session: from 1, without gaps.
    pub seq: u64,
    pub at: String,
    /// The event's `type`.
    pub kind: String,
    /// The complete JSON line of the event.
    pub body: String,
}

/// One message of a session's transcript. Once written it never changes, but a commit may remove the last ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRow {
    /// Its number in the session: from 1, without gaps.
    pub number: u64,
    /// `ai` or `user`.
    pub role: String,
    pub text: String,
    pub at: String,
    /// The action that produced it.
    pub action_id: String,
    /// The round of that action.
    pub round: u32,
    /// The id that its events carry.
    pub message_id: String,
}

/// The current state of a cell of a session's notebook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRow {
    /// Its number in the notebook: from 1, without gaps.
    pub number: u64,
    /// Its id, unique in the session; it never changes.
    pub id: String,
    /// The cell, as JSON.
    pub body: String,
}

/// A counter of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterRow {
    pub name: String,
    pub count: u64,
}

/// Something that a session waits for: a *pending request*, until it is answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRow {
    /// Its id, unique in the session; an answer refers to it.
    pub id: String,
    /// What is awaited, as in the event `waiting` (docs/sessions.md): `input`, `interrupted_effect`, …
    pub kind: String,
    /// The text that is shown to whoever answers.
    pub prompt: String,
    /// The JSON Schema of the answer; none if any text is accepted.
    pub schema: Option<String>,
    /// The permitted decisions, as a JSON list; none if the answer is no decision.
    pub decisions: Option<String>,
    /// Who may answer, as a JSON list; none for the user of the session.
    pub approvers: Option<String>,
    /// When the session continues without an answer; none if it waits forever.
    pub due_at: Option<String>,
    pub opened_at: String,
    /// When it was answered; none while it is open.
    pub answered_at: Option<String>,
}

/// An open request with the id of its session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenRequest {
    pub session: String,
    pub request: RequestRow,
}

/// Scope, path and name of a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct VariableKey {
    pub scope: String,
    pub path: String,
    pub name: String,
}

/// A document that sessions are pinned to. Its hash identifies it; the store does not verify the hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentRow {
    pub sha256: String,
    pub text: String,
}

/// A long text of a session. Its hash identifies it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextRow {
    pub sha256: String,
    pub text: String,
}

impl TextRow {
    pub fn new(text: String) -> Self {
        Self { sha256: hash(&text), text }
    }
}

/// All changes of one commit, which is atomic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// The expected revision of the session; the commit increments it.
    pub revision: u64,
    pub status: String,
    pub updated_at: String,
    /// The new location, as JSON.
    pub location: String,
    /// The new head, as small JSON.
    pub head: String,
    pub answers: u64,
    pub frames_put: Vec<FrameRow>,
    /// Keys of removed frames; a key that is also in `frames_put` is kept.
    pub frames_removed: Vec<String>,
    pub variables_put: Vec<VariableRow>,
    pub variables_removed: Vec<VariableKey>,
    /// Variables of the session's user (scope `global`) that are new or changed.
    pub user_variables_put: Vec<VariableRow>,
    pub counters_put: Vec<CounterRow>,
    pub counters_removed: Vec<String>,
    /// Events to append; their `seq` continues the session's `last_seq` without a gap.
    pub journal: Vec<JournalRow>,
    /// If set, the messages after this number are removed before `messages` are appended.
    pub messages_kept: Option<u64>,
    /// Messages to append; their `number` continues the last one without a gap.
    pub messages: Vec<MessageRow>,
    /// If set, the cells after this number are removed before `cells_put` are written.
    pub cells_kept: Option<u64>,
    /// Cells of the notebook that are new or changed, in order; the `number` of a new one continues the last one without a
    /// gap.
    pub cells_put: Vec<CellRow>,
    /// Answers that this commit accepts; none of them may have been accepted before.
    pub answer_ids: Vec<String>,
    pub requests_put: Vec<RequestRow>,
    /// Ids of requests that are removed.
    pub requests_removed: Vec<String>,
    /// Ids of open requests that this commit answers, at the time of `updated_at`. An unknown id is ignored.
    pub requests_answered: Vec<String>,
    /// Texts that belong to the session and that no other row contains, such as long outputs of commands.
    pub texts: Vec<TextRow>,
}

/// What a session was at an earlier revision, and the changes that return it to that state. The journal, the accepted
/// answers and the variables of the user are not part of the state: they stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierState {
    pub revision: u64,
    pub status: String,
    pub location: String,
    pub head: String,
    pub answers: u64,
    /// The `seq` of the last journal row at that revision.
    pub last_seq: u64,
    /// The rows to put and to remove. Its revision, time and journal are empty, and the caller fills them.
    pub changes: Commit,
}
