//! A cheap estimate of how many tokens a text has, for servers that report no usage.
//!
//! An estimate only: it feeds budgets and figures, and nothing else may depend on it. Real tokenizers differ from it
//! by a third and more, in both directions.

use crate::model::message::ChatMessage;

/// Characters of alphabetic text that make about one token.
const CHARACTERS_PER_TOKEN: u64 = 4;

const TOKENS_PER_MESSAGE: u64 = 4;

/// About how many tokens `text` has: one for each CJK character, one for four characters of anything else.
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

/// Ideographs, kana, hangul, and the punctuation and full-width forms that go with them.
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
    fn cjk_counts_by_the_character_and_the_rest_by_fours() {
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
    fn every_message_of_a_prompt_costs_a_little_more_than_its_text() {
        let message = |content: &str| ChatMessage { role: Role::User, content: content.into() };
        assert_eq!(estimate_prompt(&[]), 0);
        assert_eq!(estimate_prompt(&[message("您好"), message("")]), 10);
    }
}
