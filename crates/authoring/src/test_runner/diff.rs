//! The difference of two texts, character by character.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

/// Texts with more characters are compared line by line.
const MAX_CHARACTERS: usize = 4_000;

/// The number of characters that are shown at each end of a long equal piece.
const CONTEXT_CHARACTERS: usize = 40;

/// The timeout for comparing; the remainder counts as different.
const LIMIT: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffPiece {
    Same(String),
    Expected(String),
    Found(String),
}

pub fn difference(expected: &str, found: &str) -> Vec<DiffPiece> {
    let mut config = TextDiff::configure();
    config.algorithm(Algorithm::Myers).timeout(LIMIT);
    let small = expected.chars().count().max(found.chars().count()) <= MAX_CHARACTERS;
    let diff = if small { config.diff_chars(expected, found) } else { config.diff_lines(expected, found) };
    let mut pieces: Vec<DiffPiece> = Vec::new();
    for change in diff.iter_all_changes() {
        let text = change.value();
        match (pieces.last_mut(), change.tag()) {
            (Some(DiffPiece::Same(last)), ChangeTag::Equal)
            | (Some(DiffPiece::Expected(last)), ChangeTag::Delete)
            | (Some(DiffPiece::Found(last)), ChangeTag::Insert) => last.push_str(text),
            (_, ChangeTag::Equal) => pieces.push(DiffPiece::Same(text.to_owned())),
            (_, ChangeTag::Delete) => pieces.push(DiffPiece::Expected(text.to_owned())),
            (_, ChangeTag::Insert) => pieces.push(DiffPiece::Found(text.to_owned())),
        }
    }
    pieces
}

/// Shortens long pieces to their start and end.
pub fn condensed(pieces: Vec<DiffPiece>) -> Vec<DiffPiece> {
    let short = |text: String| {
        let count = text.chars().count();
        if count <= 3 * CONTEXT_CHARACTERS {
            return text;
        }
        let head: String = text.chars().take(CONTEXT_CHARACTERS).collect();
        let tail: String = text.chars().skip(count - CONTEXT_CHARACTERS).collect();
        format!("{head}…{tail}")
    };
    let of = |piece: DiffPiece| match piece {
        DiffPiece::Same(text) => DiffPiece::Same(short(text)),
        DiffPiece::Expected(text) => DiffPiece::Expected(short(text)),
        DiffPiece::Found(text) => DiffPiece::Found(short(text)),
    };
    pieces.into_iter().map(of).collect()
}

/// The pieces as one text: `[-…-]` for expected text that is missing, `{+…+}` for text that was found instead.
pub fn in_line(pieces: &[DiffPiece]) -> String {
    let marked = |piece: &DiffPiece| match piece {
        DiffPiece::Same(text) => text.clone(),
        DiffPiece::Expected(text) => format!("[-{text}-]"),
        DiffPiece::Found(text) => format!("{{+{text}+}}"),
    };
    pieces.iter().map(marked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_the_differing_characters() {
        let table = [
            ("你好，小林。", "你好，小李。", "你好，小[-林-]{+李+}。"),
            ("怎么称呼您？", "怎么称呼您？", "怎么称呼您？"),
            ("", "好", "{+好+}"),
            ("好的", "", "[-好的-]"),
            ("héllo", "hello", "h[-é-]{+e+}llo"),
            ("一\n二\n", "一\n三\n", "一\n[-二-]{+三+}\n"),
        ];
        for (expected, found, shown) in table {
            assert_eq!(in_line(&difference(expected, found)), shown);
        }
    }

    #[test]
    fn large_texts_are_compared() {
        let (one, other) = ("一二三\n".repeat(100_000), "三二一\n".repeat(100_000));
        assert!(!difference(&one, &other).is_empty());
    }
}
