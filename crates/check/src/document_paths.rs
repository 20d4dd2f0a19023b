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
        let begins = msg!("the path begins at the folder of this {from}, as in `{example}`");
        match self {
            Self::Empty => (msg!("the path of the {what} is empty"), begins),
            Self::Absolute => (msg!("`{shown}` begins at the root of this machine"), begins),
            Self::Outside => (
                msg!("`{shown}` lies outside of the project"),
                msg!("copy the {what} into the project: its documents may use the files of the project only"),
            ),
            Self::Absent => (msg!("there is no file `{shown}`"), begins),
            Self::Folder => (
                msg!("`{shown}` is a folder"),
                msg!("write the path of the {what} itself, with the name of the file, as in `{example}`"),
            ),
            Self::Unreadable(why) => {
                (msg!("`{shown}` cannot be read: {why}"), msg!("check that it is a file, and that you may read it"))
            }
        }
    }
}
