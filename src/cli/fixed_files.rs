//! The result of fixing a file as a line of text, for `migrate` and `validate --fix`.

use bcc_authoring::fix::fix::FixedFile;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::diagnostic::Diagnostic;

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

/// What is said of a finding whose safe fix was left out.
pub fn rejected_line(finding: &Diagnostic) -> Message {
    let (name, line) = (finding.file.name(), finding.file.line(finding.span.start));
    msg!(
        "{name}:{line}: the fix of `{}` was left out, because the file would have more errors after it: make it by hand, together with what it needs",
        finding.rule
    )
}
