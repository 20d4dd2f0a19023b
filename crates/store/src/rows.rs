//! The rows that an archive keeps. JSON travels as text: nothing is parsed here. Times are RFC 3339 in UTC, ending in
//! `Z`, and always the caller's: an archive never reads the clock.

/// A session as it stands: what was written once, and the small part that every commit rewrites.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id: any text.
    pub id: String,
    pub user: String,
    /// Where it stands (docs/sessions.md): `running`, `waiting_input`, …
    pub status: String,
    /// The script's `session_id`.
    pub script: String,
    /// The script's name for people, when it has one.
    pub script_name: Option<String>,
    /// The content hash of the script that it is pinned to.
    pub script_sha256: String,
    pub started_at: String,
    pub updated_at: String,
    /// How many commits it has taken; the next one must expect this number.
    pub revision: u64,
    /// The `seq` of its last journal row; 0 before the first.
    pub last_seq: u64,
    /// How many answers of the person were taken.
    pub answers: u64,
    /// Where the script stands, as JSON.
    pub location: String,
    /// What it was started with, as JSON; written once.
    pub settings: String,
    /// The documents that it is pinned to, as JSON; written once.
    pub manifest: String,
    /// The rest of its state, as JSON; rewritten by every commit, so keep it small.
    pub head: String,
}

/// What is written once, when a session is created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSessionRow {
    /// Its id: any text that no other session has.
    pub id: String,
    pub user: String,
    pub script: String,
    pub script_name: Option<String>,
    pub script_sha256: String,
    pub started_at: String,
    /// What it is started with, as JSON.
    pub settings: String,
    /// The documents that it is pinned to, as JSON.
    pub manifest: String,
}

/// One frame of a session's head (docs/architecture.md).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameRow {
    /// The instance path: `topic_a#2/skill_comfort/ask_1`.
    pub key: String,
    /// The frame's state, as JSON.
    pub state: String,
}

/// A variable's present value. It is told apart by scope, path and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableRow {
    /// `global`, `session`, `phase` or `topic`.
    pub scope: String,
    /// The instance path of the scope's visit; empty for `global` and `session`.
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
    /// The event's whole JSON line.
    pub body: String,
}

/// One message of a session's transcript. Once written it never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageRow {
    /// Its number in the session: from 1, without gaps.
    pub number: u64,
    /// `ai` or `user`.
    pub role: String,
    pub text: String,
    pub at: String,
    /// The action that it was said in.
    pub action_id: String,
    /// The round of that action.
    pub round: u32,
    /// The id that its events carry.
    pub message_id: String,
}

/// One cell of a session's notebook, as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellRow {
    /// Its number in the notebook: from 1, without gaps.
    pub number: u64,
    /// Its id, unique in the session; it never changes.
    pub id: String,
    /// The cell, as JSON.
    pub body: String,
}

/// How often something has happened in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterRow {
    pub name: String,
    pub count: u64,
}

/// A document that sessions are pinned to. Its hash is its name; the archive takes the caller's word for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentRow {
    pub sha256: String,
    pub text: String,
}

/// Everything that one commit changes: all of it becomes durable, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// The revision that the session is expected to have; the commit makes it one more.
    pub revision: u64,
    pub status: String,
    pub updated_at: String,
    /// The new location, as JSON.
    pub location: String,
    /// The new head, as small JSON.
    pub head: String,
    pub answers: u64,
    pub frames_put: Vec<FrameRow>,
    /// Keys of frames that are gone; a key that also stands in `frames_put` stays.
    pub frames_removed: Vec<String>,
    pub variables_put: Vec<VariableRow>,
    /// Variables of the session's user (scope `global`) that are new or changed.
    pub user_variables_put: Vec<VariableRow>,
    pub counters_put: Vec<CounterRow>,
    /// Events to append; their `seq` goes on after the session's `last_seq` without a gap.
    pub journal: Vec<JournalRow>,
    /// Messages to append; their `number` goes on after the last one without a gap.
    pub messages: Vec<MessageRow>,
    /// Cells of the notebook that are new or changed, in order; the `number` of a new one goes on after the last one without
    /// a gap.
    pub cells_put: Vec<CellRow>,
    /// Answers that are taken by this commit; none of them may have been taken before.
    pub answer_ids: Vec<String>,
}
