//! The result of fixing a file as a line of text, for `migrate` and `validate --fix`.

use bcc_authoring::fix::fix::FixedFile;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

/// The result for one file.
pub fn result_line(file: &FixedFile) -> Message {
    let (name, count) = (file.after.name(), file.fixed_rules.len());
    match &file.write_error {
        Some(error) => msg!("{name}: not fixed: {error}; {}", Message::word(error.help())),
        None if count == 1 => msg!("{name}: 1 finding fixed"),
        None => msg!("{name}: {count} findings fixed"),
    }
}

/// The line for a file with fixes that were not tried.
pub fn untried_line(name: &str) -> Message {
    msg!("{name}: not all fixes were tried, because too many of them conflict; make some by hand first")
}
