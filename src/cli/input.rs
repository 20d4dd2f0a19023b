//! The input of a session: answers, commands and signals.

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_runtime::run::approval_decision::ApprovalDecision;

#[derive(Clone, Debug, PartialEq)]
pub enum InputLine {
    Answer {
        text: String,
        /// The wait that it answers, if the sender specifies it.
        answer_id: Option<String>,
    },
    /// A decision about an approval, from a program.
    Decision(Box<ApprovalDecision>),
    /// A terminal command, without its slash.
    Command(String),
    /// The end of input: Ctrl-D, `/quit`, or the end of a pipe.
    End,
    Interrupted,
    /// A line that means nothing; the next one is read.
    Blank,
    /// A line that is not accepted; the error is reported, and the next line is read.
    Rejected(RejectedInput),
}

/// Why a line of input was not accepted. Contains no text of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedInput {
    /// A stable slug (docs/sessions.md).
    pub code: &'static str,
    pub message: Message,
    pub help: Option<Message>,
}

#[async_trait(?Send)]
pub trait InputSource {
    /// The next input. Cancel safe: a dropped call loses no input.
    async fn next(&mut self) -> InputLine;

    /// The number of lines that were sent and not read, after the session has ended; none at a terminal.
    async fn unread(&mut self) -> UnreadLines {
        UnreadLines::default()
    }
}

/// Lines that no question asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnreadLines {
    pub count: usize,
    /// Whether there may be more: counting ends at a limit.
    pub or_more: bool,
}
