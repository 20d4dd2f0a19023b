//! The words of a text, as the index compares them: in lower case, full-width characters as half-width ones, English words without their
//! endings, and texts in Chinese, Japanese or Korean by pairs of characters.

/// A word, or a single character of a script that does not separate words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Atom {
    Word(String),
    Character(char),
}

/// The maximum length of a word, in characters; the rest of a longer one is left out.
const MAX_WORD: usize = 64;

/// Whether a character belongs to a script that does not separate words, or to Korean.
pub(crate) const fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}

/// A full-width form as the usual one.
fn half_width(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        '\u{3000}' => ' ',
        other => other,
    }
}

/// The words and characters of a text.
pub(crate) fn atoms(text: &str) -> Vec<Atom> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut length = 0;
    let finish = |word: &mut String, length: &mut usize, found: &mut Vec<Atom>| {
        if !word.is_empty() {
            found.push(Atom::Word(stem(word)));
            word.clear();
            *length = 0;
        }
    };
    for c in text.chars().map(half_width) {
        if is_cjk(c) {
            finish(&mut word, &mut length, &mut found);
            found.push(Atom::Character(c));
        } else if c.is_alphanumeric() {
            if length < MAX_WORD {
                word.extend(c.to_lowercase());
                length += 1;
            }
        } else {
            finish(&mut word, &mut length, &mut found);
        }
    }
    finish(&mut word, &mut length, &mut found);
    found
}

/// An English word without the usual endings, so that `phages` is `phage`, and `infects` and `infected` are `infect`. Not a word of the
/// language: it is only compared.
fn stem(word: &str) -> String {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let without = |ending: &str, min: usize| word.strip_suffix(ending).filter(|rest| rest.len() >= min);
    let stem = if let Some(rest) = without("ies", 2) {
        format!("{rest}y")
    } else if let Some(rest) =
        without("es", 3).filter(|rest| ["ch", "sh", "x", "ss", "zz"].iter().any(|end| rest.ends_with(end)))
    {
        rest.to_owned()
    } else if let Some(rest) = without("ing", 3).or(without("ed", 3)) {
        rest.to_owned()
    } else if let Some(rest) = without("s", 3).filter(|rest| !rest.ends_with(['s', 'u', 'i'])) {
        rest.to_owned()
    } else {
        word.to_owned()
    };
    // `replicate`, `replicated` and `replicating` are the same.
    match stem.strip_suffix('e') {
        Some(rest) if rest.len() >= 3 => rest.to_owned(),
        _ => stem,
    }
}

/// A hash that is the same in every process and release: it is stored.
#[derive(Clone, Copy)]
pub(crate) struct StableHash(u64);

impl StableHash {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// FNV-1a.
    pub(crate) fn add(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// The value. All of its bits depend on all bytes, so that values are evenly distributed.
    pub(crate) const fn mixed(self) -> u64 {
        let hash = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    }
}

fn hash(parts: &[&str]) -> u64 {
    parts.iter().fold(StableHash::new(), |hash, part| hash.add(part.as_bytes())).mixed()
}

/// The hashes by which a text is found: of its words, and of the pairs of characters and the single characters of CJK texts.
pub(crate) fn indexed_tokens(atoms: &[Atom]) -> Vec<u64> {
    tokens(atoms, true)
}

/// Words of questions that say nothing about what is searched for.
const QUESTION_WORDS: [&str; 40] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "did", "do", "does", "for", "from", "has", "have", "how",
    "in", "is", "it", "its", "of", "on", "or", "that", "the", "their", "this", "to", "was", "were", "what", "when",
    "where", "which", "who", "whose", "why", "will", "with",
];

/// The hashes that a query looks for: a single character only where it stands alone, because pairs say more, and words such as `of` only
/// if there are no others.
pub(crate) fn query_tokens(atoms: &[Atom]) -> Vec<u64> {
    let says_nothing = |atom: &Atom| match atom {
        Atom::Word(word) => QUESTION_WORDS.iter().any(|known| stem(known) == *word),
        Atom::Character(_) => false,
    };
    let left: Vec<Atom> = atoms.iter().filter(|atom| !says_nothing(atom)).cloned().collect();
    tokens(if left.is_empty() { atoms } else { &left }, false)
}

fn tokens(atoms: &[Atom], with_single: bool) -> Vec<u64> {
    let mut tokens = Vec::with_capacity(atoms.len());
    let mut buffer = [0; 4];
    let mut other = [0; 4];
    for (number, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Word(word) => tokens.push(hash(&["w", word])),
            Atom::Character(c) => {
                let character = |at: Option<usize>| match at.and_then(|at| atoms.get(at)) {
                    Some(Atom::Character(c)) => Some(*c),
                    _ => None,
                };
                let (before, after) = (character(number.checked_sub(1)), character(Some(number + 1)));
                if with_single || (before.is_none() && after.is_none()) {
                    tokens.push(hash(&["c", c.encode_utf8(&mut buffer)]));
                }
                if let Some(after) = after {
                    tokens.push(hash(&["c", c.encode_utf8(&mut buffer), after.encode_utf8(&mut other)]));
                }
            }
        }
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

/// The hash of the normalised name of an entity, from its atoms one by one: two names with the same words are the same entity.
#[derive(Clone, Copy)]
pub(crate) struct NameHash {
    hash: StableHash,
    after_word: bool,
}

impl NameHash {
    pub(crate) const fn new() -> Self {
        Self { hash: StableHash::new(), after_word: false }
    }

    pub(crate) fn add(self, atom: &Atom) -> Self {
        match atom {
            Atom::Word(word) => {
                let separated = if self.after_word { self.hash.add(b" ") } else { self.hash };
                Self { hash: separated.add(word.as_bytes()), after_word: true }
            }
            Atom::Character(c) => {
                Self { hash: self.hash.add(c.encode_utf8(&mut [0; 4]).as_bytes()), after_word: false }
            }
        }
    }

    pub(crate) const fn value(self) -> u64 {
        self.hash.mixed()
    }
}

/// The hash of the normalised form of `name`; of the name itself if it has no letters and digits.
pub(crate) fn name_hash(name: &str, atoms: &[Atom]) -> u64 {
    match atoms {
        [] => hash(&["=", name]),
        atoms => atoms.iter().fold(NameHash::new(), NameHash::add).value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(one: &str, other: &str) -> bool {
        name_hash(one, &atoms(one)) == name_hash(other, &atoms(other))
    }

    #[test]
    fn names_are_compared_without_case_punctuation_width_and_endings() {
        for (one, other) in [
            ("E. coli", "e coli"),
            ("T4 phages", "T4 Phage"),
            ("Ｔ４噬菌体", "T4 噬菌体"),
            ("大肠 杆菌", "大肠杆菌"),
            ("replicates", "replicated"),
            ("attaches to", "attach to"),
            ("infecting", "infects"),
            ("bodies", "body"),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in
            [("T4", "T7"), ("ab c", "a bc"), ("+", "-"), ("virus", "vir"), ("噬菌体", "菌体噬"), ("T4 a", "T4a")]
        {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_query_finds_texts_that_share_a_word_or_a_pair_of_characters() {
        let finds = |query: &str, text: &str| {
            let indexed = indexed_tokens(&atoms(text));
            query_tokens(&atoms(query)).iter().any(|token| indexed.contains(token))
        };
        assert!(
            finds("phages", "T4 phage")
                && finds("噬菌体如何吸附", "吸附")
                && finds("铁", "铁离子")
                && finds("カプシド", "プシ")
        );
        assert!(!finds("菌类", "噬菌体"), "a single character of a longer query is not enough");
        assert!(!finds("age", "phage"));
        assert!(
            !finds("What is the phage of it?", "is part of")
                && finds("part of", "is part of")
                && finds("of", "is part of")
        );
    }

    #[test]
    fn a_long_word_is_bounded() {
        assert_eq!(atoms(&"x".repeat(1_000_000)), [Atom::Word("x".repeat(MAX_WORD))]);
    }
}
