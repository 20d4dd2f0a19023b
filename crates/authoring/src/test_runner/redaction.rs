//! What came of a test without the sensitive values of its session: reports are kept, sent around and read by others.

use crate::test_runner::result::TestResult;
use bcc_lang::message::message::Message;
use bcc_lang::value::mask::Masker;

/// Masks sensitive values (docs/language.md "Variables") in all that reports show of what came: the talk, what was found, notes. What
/// the author wrote as expected is the author's own and stays.
pub fn mask(ran: &mut TestResult, masker: &Masker) {
    if masker.is_empty() {
        return;
    }
    let text = |text: &mut String| *text = masker.text(text);
    let hide = |message: &mut Message| message.change_texts(&mut &text);
    for failure in &mut ran.failures {
        hide(&mut failure.message);
        hide(&mut failure.found);
        failure.help.iter_mut().for_each(hide);
    }
    ran.transcript.iter_mut().for_each(|line| text(&mut line.text));
    ran.notes.iter_mut().for_each(hide);
    ran.why.iter_mut().for_each(hide);
}
