//! How two texts differ, character by character, so that a reader sees the one word that is another.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

/// Texts of more characters than these are compared line by line.
const MOST_CHARACTERS: usize = 4_000;

/// The characters that are shown at each end of what is long.
const AROUND: usize = 40;

/// Comparing takes no longer than this; what is left then counts as different.
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
    let small = expected.chars().count().max(found.chars().count()) <= MOST_CHARACTERS;
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

/// The pieces without the middle of what is long and the same, so that a reader need not look for what is not.
pub fn condensed(pieces: Vec<DiffPiece>) -> Vec<DiffPiece> {
    let short = |text: String| {
        let count = text.chars().count();
        if count <= 3 * AROUND {
            return text;
        }
        let head: String = text.chars().take(AROUND).collect();
        let tail: String = text.chars().skip(count - AROUND).collect();
        format!("{head}…{tail}")
    };
    let of = |piece: DiffPiece| match piece {
        DiffPiece::Same(text) => DiffPiece::Same(short(text)),
        DiffPiece::Expected(text) => DiffPiece::Expected(short(text)),
        DiffPiece::Found(text) => DiffPiece::Found(short(text)),
    };
    pieces.into_iter().map(of).collect()
}

/// The pieces as one text: `[-…-]` for what was expected and did not come, `{+…+}` for what came instead.
pub fn in_line(pieces: &[DiffPiece]) -> String {
    let mark = |piece: &DiffPiece| match piece {
        DiffPiece::Same(text) => text.clone(),
        DiffPiece::Expected(text) => format!("[-{text}-]"),
        DiffPiece::Found(text) => format!("{{+{text}+}}"),
    };
    pieces.iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_the_characters_that_are_others() {
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
    fn texts_of_a_megabyte_are_compared_too() {
        let (one, other) = ("一二三\n".repeat(100_000), "三二一\n".repeat(100_000));
        assert!(!difference(&one, &other).is_empty());
    }
}
