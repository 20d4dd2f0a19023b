//! Masks the sensitive values in the result of a test, because reports are stored and shared.

use crate::test_runner::result::TestResult;
use bcc_lang::message::message::Message;
use bcc_lang::value::mask::Masker;

/// Masks sensitive values (docs/language.md "Variables") in everything that a report shows of the results: transcript,
/// found values, notes. The author's expected values stay unchanged.
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
    ran.reason.iter_mut().for_each(hide);
}
