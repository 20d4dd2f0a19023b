//! Errors of paths by which one document names another, with messages for the author.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

/// What is wrong with the path of a test's script, or of a script's skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentPathError {
    Empty,
    Absolute,
    /// It leads outside the project.
    Outside,
    Absent,
    Folder,
    /// The file cannot be read, for this reason.
    Unreadable(Message),
}

impl DocumentPathError {
    /// The error message for the path shown as `shown`, and the help text. `what` is the kind of its target, `from` the
    /// document whose folder it is relative to, `example` a valid path.
    pub(crate) fn message_and_help(
        &self,
        shown: &str,
        what: &'static str,
        from: &'static str,
        example: &'static str,
    ) -> (Message, Message) {
        let (what, from) = (Message::word(what), Message::word(from));
        let relative = msg!("the path is relative to the folder of this {from}, as in `{example}`");
        match self {
            Self::Empty => (msg!("the path of the {what} is empty"), relative),
            Self::Absolute => (msg!("`{shown}` is an absolute path"), relative),
            Self::Outside => (
                msg!("`{shown}` is outside the project"),
                msg!("copy the {what} into the project: documents of a project can only use files of that project"),
            ),
            Self::Absent => (msg!("there is no file `{shown}`"), relative),
            Self::Folder => (
                msg!("`{shown}` is a folder"),
                msg!("write the path of the {what} itself, including the file name, as in `{example}`"),
            ),
            Self::Unreadable(why) => (
                msg!("`{shown}` cannot be read: {why}"),
                msg!("check that it is a file, and that you have permission to read it"),
            ),
        }
    }
}
