//! The input of a session: answers, commands and signals.

use async_trait::async_trait;
use bcc_lang::message::message::Message;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputLine {
    Answer {
        text: String,
        /// The wait that it answers, if the sender specifies it.
        answer_id: Option<String>,
    },
    /// A terminal command, without its slash.
    Command(String),
    /// The end of input: Ctrl-D, `/quit`, or the end of a pipe.
    End,
    Interrupted,
    /// An invalid input, with its error message; the next input is read.
    Unusable(Message),
}

#[async_trait(?Send)]
pub trait InputSource {
    /// The next input. Cancel safe: a dropped call loses no input.
    async fn next(&mut self) -> InputLine;
}
