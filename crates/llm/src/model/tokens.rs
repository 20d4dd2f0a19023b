//! A cheap estimate of the number of tokens in a text, for servers that report no usage.
//!
//! It is used only for budgets and statistics; nothing else may depend on it. Real tokenizers differ from it by a third or
//! more, in both directions.

use crate::model::message::ChatMessage;

const CHARACTERS_PER_TOKEN: u64 = 4;

const TOKENS_PER_MESSAGE: u64 = 4;

/// The approximate number of tokens in `text`: one per CJK character, one per four other characters.
pub fn estimate(text: &str) -> u64 {
    let (mut cjk, mut other) = (0_u64, 0_u64);
    for character in text.chars() {
        if is_cjk(character) { cjk += 1 } else { other += 1 }
    }
    cjk + other.div_ceil(CHARACTERS_PER_TOKEN)
}

pub fn estimate_prompt(messages: &[ChatMessage]) -> u64 {
    messages.iter().map(|message| estimate(&message.content) + TOKENS_PER_MESSAGE).sum()
}

/// Whether it is an ideograph, kana, hangul, or related punctuation or full-width form.
fn is_cjk(character: char) -> bool {
    matches!(character,
        '\u{1100}'..='\u{11FF}'
        | '\u{2E80}'..='\u{9FFF}'
        | '\u{A960}'..='\u{A97F}'
        | '\u{AC00}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE4F}'
        | '\u{FF00}'..='\u{FFEF}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::Role;

    #[test]
    fn cjk_characters_count_as_one_token_and_others_as_a_quarter() {
        let table = [
            ("", 0),
            ("a", 1),
            ("four", 1),
            ("fives", 2),
            ("您好", 2),
            ("您好，世界！", 6),
            ("您好 all", 3),
            ("こんにちは", 5),
            ("안녕", 2),
            ("𠮷", 1),
            ("😀", 1),
        ];
        for (text, expected) in table {
            assert_eq!(estimate(text), expected, "{text:?}");
        }
    }

    #[test]
    fn each_message_of_a_prompt_adds_a_fixed_number_of_tokens() {
        let message = |content: &str| ChatMessage { role: Role::User, content: content.into() };
        assert_eq!(estimate_prompt(&[]), 0);
        assert_eq!(estimate_prompt(&[message("您好"), message("")]), 10);
    }
}
