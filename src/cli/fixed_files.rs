//! What became of files that were mended, in lines for people: of `migrate` and of `validate --fix`.

use bcc_authoring::fix::fix::FixedFile;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

/// What became of a file that was to be written, in a line.
pub fn told(file: &FixedFile) -> Message {
    let (name, count) = (file.after.name(), file.made.len());
    match &file.kept {
        Some(kept) => msg!("{name}: not fixed: {kept}; {}", Message::word(kept.help())),
        None if count == 1 => msg!("{name}: 1 finding fixed"),
        None => msg!("{name}: {count} findings fixed"),
    }
}

/// That fixes of a file were not tried, in a line.
pub fn untried(name: &str) -> Message {
    msg!("{name}: not all fixes were tried, because too many of them conflict; make some by hand first")
}
