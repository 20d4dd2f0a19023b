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
