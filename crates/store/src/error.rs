//! The errors of stores. No variant carries texts, values or prompts of a session: only ids, numbers, the path of the
//! store, and what to do.

use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Message;

/// Why a call to a store failed. `store` is the path of the store, or `memory`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum StoreError {
    #[error("there is no session {id:?} in the store {store}; `sessions list` shows the existing ones")]
    NotFound { store: String, id: String },
    #[error("the store {store} already has a session {id:?}; resume that one, or choose another id")]
    Exists { store: String, id: String },
    #[error(
        "the session {id:?} in the store {store} is at revision {found}, not {expected}: another process has changed it; resume it from what is stored"
    )]
    Conflict { store: String, id: String, expected: u64, found: u64 },
    /// The rows to append do not continue the numbering of the session. A bug in the program, not a mistake of the user.
    #[error(
        "a commit to the session {id:?} in the store {store} contains {what} {found}, but {expected} is expected next; please report it"
    )]
    Gap {
        store: String,
        id: String,
        /// What is numbered: `event`, `message` or `cell`.
        what: &'static str,
        expected: u64,
        found: u64,
    },
    /// An answer of this commit was already accepted; nothing of the commit was written.
    #[error(
        "the session {id:?} in the store {store} has already received this answer; continue without sending it again"
    )]
    AnswerTaken { store: String, id: String },
    /// A cell of this commit has another id than the stored cell with its number, or the id of another cell; nothing of
    /// the commit was written. A bug in the program, not a mistake of the user.
    #[error(
        "a commit to the session {id:?} in the store {store} contains cell {number} under an id that is not its own; please report it"
    )]
    CellIdMismatch { store: String, id: String, number: u64 },
    #[error(
        "cell {number} of the session {id:?} cannot be read: another version of bcc-script wrote it, or the store was changed \
         by hand; use the version that wrote it"
    )]
    CellUnreadable { id: String, number: u64 },
    #[error("there is no plan {plan} in the store {store}; `plans list` shows the existing ones")]
    NoPlan { store: String, plan: u64 },
    #[error("the store {store} already has a plan {plan}; delete that one first, or give the new one another id")]
    PlanExists { store: String, plan: u64 },
    #[error("task {task} already belongs to plan {plan} in the store {store}; the ids of tasks are unique in a store")]
    PlanTaskExists { store: String, task: u64, plan: u64 },
    /// Another process, or another session of this one, has edited the plan since it was read.
    #[error("plan {plan} in the store {store} is at revision {found}, not {expected}: somebody else has changed it")]
    PlanChanged { store: String, plan: u64, expected: u64, found: u64 },
    #[error(
        "the session `{id}` in the store {store} is in use by {holder}; wait until it ends, or end it, and try again"
    )]
    Held {
        store: String,
        id: String,
        /// The description that the holder gave.
        holder: String,
    },
    /// The lock of the session was lost, and another process may have it; nothing of the commit was written.
    #[error(
        "another process has taken over the session {id:?} in the store {store}, because the database could not be reached for a while; resume it from what is stored"
    )]
    LeaseLost { store: String, id: String },
    /// The database cannot be reached, or does not answer.
    #[error("the store {store} cannot be reached: {reason}; check its address and the database, and try again")]
    Unreachable { store: String, reason: Message },
    /// There is no store at this path, and the caller did not ask to create one.
    #[error("there is no session store at {store}; run a script first, or name another store with `--store`")]
    Missing { store: String },
    /// The file is damaged or is not an SQLite file. It was left unchanged.
    #[error(
        "the store {store} cannot be read ({reason}); it was left unchanged: save what can be read with `store recover`, restore it from a backup, or move it away to start a new one"
    )]
    Corrupt { store: String, reason: Message },
    /// The last process did not close the store, and it is damaged. It was left unchanged, and copied.
    #[error(
        "the store {store} is damaged ({reason}); it was left unchanged and copied to {copy}: save what can be read with `store recover`, or restore it from a backup"
    )]
    Damaged { store: String, reason: Message, copy: String },
    /// The files of the open store are no longer where they were.
    #[error(
        "the store {store} was removed, moved or replaced while it was in use; nothing has been saved since then: put it back, and resume the session"
    )]
    Gone { store: String },
    /// The file is a database of another program. It was left unchanged.
    #[error("{store} is a database of another program; it was left unchanged: name another store with `--store`")]
    ForeignDatabase { store: String },
    /// A newer version of this program has written the store. It was left unchanged.
    #[error(
        "the store {store} has layout {found}, but this version of bcc-script supports only layouts up to {known}; it was left unchanged: use a newer bcc-script, and restart what still runs with this version"
    )]
    Newer { store: String, found: u32, known: u32 },
    /// An older version has written the store, and it is open for reading only.
    #[error(
        "the store {store} has the old layout {found} (the current one is {known}); open it once where it can be written, then read it"
    )]
    Outdated { store: String, found: u32, known: u32 },
    #[error(
        "the store {store} is read-only; make the file and its directory writable, or name another store with `--store`"
    )]
    ReadOnly { store: String },
    /// There is no space left for the data; nothing was written.
    #[error(
        "there is no space left for the store {store}; free some on its disk and resume: what was already stored is safe"
    )]
    Full { store: String },
    #[error("the store {store} cannot be opened; check the owner and the permissions of the file and its directory")]
    Denied { store: String },
    #[error("{store} is not a file; name the file of the store, such as {store}/sessions.db")]
    NotAFile { store: String },
    /// The store is to be checked or recovered while another process has it open.
    #[error("the store {store} is in use by another process; end all sessions in it, and try again")]
    InUse { store: String },
    /// Another process kept the store locked for longer than the timeout.
    #[error(
        "the store {store} has been locked by another process for too long; check what else has it open, and try again"
    )]
    Busy { store: String },
    /// A planted link or another file is in the place of a lock. It was left unchanged.
    #[error("{lock} is a link, or something else than a lock; it was left unchanged: remove it, and try again")]
    NotALock { lock: String },
    /// A planted link, pipe or directory is in the place of a file that SQLite opens next to the store.
    #[error(
        "{file} is not a regular file, although it belongs to the store {store}; nothing was changed: remove it, and try again"
    )]
    NotAStoreFile { store: String, file: String },
    /// A number that the store cannot hold. A bug in the program, not a mistake of the user.
    #[error("the store {store} cannot hold a number that large; please report it")]
    TooLarge { store: String },
    /// Any other error of the operating system or the database.
    #[error("the store {store} cannot be used: {reason}; check its disk and its directory, and try again")]
    Io { store: String, reason: Message },
}
