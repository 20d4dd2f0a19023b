//! Why a path that a document names another by cannot be used, in words for its author.

/// What is wrong with the path of a test's script, or with that of a script's skill.
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentPathError {
    Empty,
    /// It begins at the root of one machine.
    Absolute,
    /// It leads out of the project.
    Outside,
    Absent,
    Folder,
    /// What is there cannot be read as a file, for this reason.
    Unreadable(String),
}

impl DocumentPathError {
    /// The fault of the path that is called `shown`, and what to do. `what` is what it should lead to, `from` the document
    /// whose folder it begins at, `example` a path that could be right.
    pub fn words(
        &self,
        shown: &str,
        what: &'static str,
        from: &'static str,
        example: &'static str,
    ) -> (Message, Message) {
        let (what, from) = (Message::word(what), Message::word(from));
        let begins = msg!("the path is relative to the folder of this {from}, as in `{example}`");
        match self {
            Self::Empty => (msg!("the path of the {what} is empty"), begins),
            Self::Absolute => (msg!("`{shown}` is an absolute path"), begins),
            Self::Outside => (
                msg!("`{shown}` is outside the project"),
                msg!("copy the {what} into the project: documents of a project can only use files of that project"),
            ),
            Self::Absent => (msg!("there is no file `{shown}`"), begins),
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
