//! Where answers come from.

use async_trait::async_trait;
use bcc_lang::message::message::Message;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputLine {
    Answer {
        text: String,
        /// The wait that it answers, when the sender says so.
        answer_id: Option<String>,
    },
    /// A command of the terminal, without its slash.
    Command(String),
    /// There is no more: Ctrl-D, `/quit`, or the end of a pipe.
    End,
    Interrupted,
    /// Something that cannot be an answer; it is told, and the next is asked for.
    Unusable(Message),
}

#[async_trait(?Send)]
pub trait InputSource {
    /// The next input. May be dropped and called again without losing any.
    async fn next(&mut self) -> InputLine;
}
