//! Decodes the escapes of strings of near-JSON.

use crate::reply::repair::parser::{Parser, Stop};
use crate::reply::repair::record::RepairKind;
use crate::reply::repair::text::Quoted;

impl Parser<'_> {
    /// Decodes an escape. Unknown escapes are unchanged, except for escaped quotes.
    pub(super) fn take_escape(&mut self, quoted: &mut Quoted) -> Result<(), Stop> {
        let at = self.at;
        self.bump();
        let Some(c) = self.peek() else { return Err(quoted.cut(self.wide)) };
        let known = match c {
            '"' | '\\' | '/' => Some(c),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' => return self.take_code_point(quoted, at),
            _ => None,
        };
        if c == quoted.close {
            quoted.escaped_quotes += 1;
            // It closes a typographic quote: `„a\"`.
            quoted.unclosed = quoted.unclosed.saturating_sub(1);
        }
        match known {
            Some(meant) => quoted.text.push(meant),
            None => {
                self.add_repair(RepairKind::OtherEscape, at)?;
                if !matches!(c, '\'' | '`' | '“' | '”' | '‘' | '’' | '「' | '」' | '『' | '』' | '＂') {
                    quoted.text.push('\\');
                }
                if c < ' ' {
                    return Ok(());
                }
                quoted.text.push(c);
            }
        }
        self.bump();
        Ok(())
    }

    /// Decodes `\uXXXX` and the second half of a surrogate pair, starting at the `u`.
    fn take_code_point(&mut self, quoted: &mut Quoted, at: usize) -> Result<(), Stop> {
        let rest = self.rest();
        let Some(hex_unit) = hex_unit(rest) else {
            let digits = rest.chars().skip(1).take_while(char::is_ascii_hexdigit).take(4).count();
            if 1 + digits == rest.len() {
                return Err(quoted.cut(self.wide));
            }
            self.add_repair(RepairKind::OtherEscape, at)?;
            quoted.text.push_str("\\u");
            self.bump();
            return Ok(());
        };
        let low = || escaped_hex_unit(rest.get(5..)?).filter(|low| (0xDC00..0xE000).contains(low));
        if (0xD800..0xDC00).contains(&hex_unit)
            && rest.len() < 11
            && may_start_escape(rest.get(5..).unwrap_or_default())
        {
            return Err(quoted.cut(self.wide));
        }
        match (char::from_u32(hex_unit), low()) {
            (Some(c), _) => {
                quoted.text.push(c);
                self.at += 5;
            }
            (None, Some(low)) if hex_unit < 0xDC00 => {
                let c = char::from_u32(0x10000 + ((hex_unit - 0xD800) << 10) + (low - 0xDC00));
                quoted.text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
                self.at += 11;
            }
            (None, _) => {
                self.add_repair(RepairKind::LoneSurrogate, at)?;
                quoted.text.push(char::REPLACEMENT_CHARACTER);
                self.at += 5;
            }
        }
        Ok(())
    }
}

fn hex_unit(text: &str) -> Option<u32> {
    let digits = text.get(1..5)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

fn escaped_hex_unit(text: &str) -> Option<u32> {
    hex_unit(text.strip_prefix('\\').filter(|rest| rest.starts_with('u'))?)
}

/// Whether `text`, which extends to the end, may be the start of `\uXXXX`; true if it is empty.
fn may_start_escape(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.strip_prefix('\\') {
        Some(rest) => rest.is_empty() || rest.strip_prefix('u').is_some_and(digits),
        None => text.is_empty(),
    }
}
