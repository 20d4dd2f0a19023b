//! Exit codes (docs/sessions.md, "Exit codes").

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    /// Invalid usage, or an invalid script.
    Usage,
    /// The session waits or stopped; it can be resumed.
    Waiting,
    /// The requested session has already ended.
    Ended,
    /// Interrupted; it can be resumed.
    Interrupted,
}

impl Exit {
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Waiting => 3,
            Self::Ended => 4,
            Self::Interrupted => 130,
        }
    }
}

/// Part of the help of the program.
pub const PROGRAM_CODES: &str = "\
Exit codes:
  0    success; for a session: it is completed
  1    the session failed, errors or failed tests were found, or another error occurred
  2    wrong usage, or a script with errors was to be run
  3    the session is waiting for an answer or has stopped, and can be resumed
  4    the requested session is already over
  130  interrupted; a session can be resumed";

/// Part of the help of `run` and `sessions resume`.
pub const SESSION_CODES: &str = "\
Exit codes:
  0    the session is completed
  1    the session failed, or another error occurred
  2    wrong usage, or a script with errors
  3    the session is waiting for an answer or has stopped, and can be resumed
  4    the requested session is already over
  130  interrupted; the session can be resumed";

/// Part of the help of `validate`.
pub const FINDINGS_CODES: &str = "\
Exit codes:
  0    no errors; with `--deny warnings`, no warnings either
  1    errors, or warnings with `--deny warnings`; or a file could not be written
  2    wrong usage, or nothing to check
  130  `--watch` was interrupted";

/// Part of the help of `test`.
pub const TEST_CODES: &str = "\
Exit codes:
  0    all tests passed
  1    a test failed, a file cannot be read, or the coverage is too low
  2    wrong usage, nothing to test, or a project that was changed since it was trusted";

/// Part of the help of `store`.
pub const STORE_CODES: &str = "\
Exit codes:
  0    no damage was found, or everything was saved
  1    the store is damaged, a session could not be saved completely, or another error occurred
  2    wrong usage, or there is no store";

/// Part of the help of `templates diff`.
pub const DIFF_CODES: &str = "\
Exit codes:
  0    no differences
  1    differences
  2    the templates cannot be compared";
