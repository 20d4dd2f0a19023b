//! Numbers that a plan cannot keep, because its metadata and results are stored without the digits as they were written, and that a tool
//! cannot be given.

use bcc_lang::value::digits::Digits;

/// An integer that would become another number, such as a long id; the first one if there are several.
pub(crate) fn inexact_integer(digits: &Digits) -> Option<&str> {
    match digits {
        Digits::Number(text) => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            (digits != "0" && digits.bytes().all(|digit| digit.is_ascii_digit())).then_some(&**text)
        }
        Digits::Items(items) => items.values().find_map(inexact_integer),
        Digits::Fields(fields) => fields.values().find_map(inexact_integer),
    }
}
