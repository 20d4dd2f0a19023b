//! The first calendar date in a person's words, as ISO 8601.

use jiff::civil::Date;

use crate::providers::offline::number::{narrow, numeral_at};

/// The first date of `text` that names its year: `2026-11-21`, `2026/1/5`, `2026.1.5`, `2026年11月21日`, `二〇二六年一月五号`.
///
/// Days that no calendar has (`2026-02-30`) are none.
pub fn first_date(text: &str) -> Option<String> {
    let mut before_digit = false;
    text.char_indices().find_map(|(position, character)| {
        let digit = narrow(character).is_ascii_digit();
        let begins = !before_digit && (digit || matches!(character, '一' | '二'));
        before_digit = digit;
        if begins { date_at(text.get(position..)?) } else { None }
    })
}

fn date_at(text: &str) -> Option<String> {
    let (year, rest) = part(text)?;
    let mut characters = rest.trim_start().chars();
    let separator = narrow(characters.next()?);
    let between = match separator {
        '年' => '月',
        '-' | '/' | '.' => separator,
        _ => return None,
    };
    let (month, rest) = part(characters.as_str())?;
    let rest = rest.trim_start();
    let second = rest.chars().next().filter(|second| narrow(*second) == between)?;
    let (day, _) = part(rest.get(second.len_utf8()..)?)?;
    if year < 1000 {
        return None;
    }
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok().map(|date| date.to_string())
}

/// A whole number of at most four digits, and what follows it.
fn part(text: &str) -> Option<(i16, &str)> {
    let text = text.trim_start();
    let mut value: i16 = 0;
    let mut length = 0;
    for character in text.chars() {
        let Some(digit) = narrow(character).to_digit(10) else { break };
        value = value.checked_mul(10)?.checked_add(i16::try_from(digit).ok()?)?;
        length += character.len_utf8();
    }
    if length == 0 {
        let (numeral, length) = numeral_at(text)?;
        return Some((numeral.small()?, text.get(length..)?));
    }
    Some((value, text.get(length..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_found_however_they_are_written() {
        let table = [
            ("2026-11-21", Some("2026-11-21")),
            ("出生于 1990/1/5。", Some("1990-01-05")),
            ("1990.1.5", Some("1990-01-05")),
            ("2026年11月21日", Some("2026-11-21")),
            ("2026 年 1 月 5 号", Some("2026-01-05")),
            ("２０２６年１月５日", Some("2026-01-05")),
            ("二〇二六年十一月二十一日", Some("2026-11-21")),
            ("一九九〇年一月五号", Some("1990-01-05")),
            ("2026-11-21T20:00:00Z", Some("2026-11-21")),
            ("35岁，2026-01-05来的", Some("2026-01-05")),
            ("2026-02-30", None),
            ("2026-13-01 或 2026-12-01", Some("2026-12-01")),
            ("2026-1/5", None),
            ("11月21日", None),
            ("026-11-21", None),
            ("12026-11-21", None),
            ("2026年", None),
            ("2026-11-", None),
            ("99999999999999999999-1-1", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(first_date(text).as_deref(), expected, "{text:?}");
        }
    }
}
