//! Yes or no in a person's words, Chinese and English; a negation anywhere wins.

/// What a phrase says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Yes,
    No,
    /// Nothing: a word that only looks like one of the others.
    Neither,
}

/// Chinese phrases. At each place the longest one counts, so that 没问题 is no 没.
const PHRASES: [(&str, Says); 44] = [
    ("不是", Says::No),
    ("没有", Says::No),
    ("不", Says::No),
    ("没", Says::No),
    ("否", Says::No),
    ("无", Says::No),
    ("未", Says::No),
    ("别", Says::No),
    ("没问题", Says::Yes),
    ("没错", Says::Yes),
    ("不错", Says::Yes),
    ("是", Says::Yes),
    ("对", Says::Yes),
    ("有", Says::Yes),
    ("好", Says::Yes),
    ("行", Says::Yes),
    ("嗯", Says::Yes),
    ("恩", Says::Yes),
    ("会", Says::Yes),
    ("要", Says::Yes),
    ("能", Says::Yes),
    ("可以", Says::Yes),
    ("愿意", Says::Yes),
    ("同意", Says::Yes),
    ("当然", Says::Yes),
    ("确实", Says::Yes),
    ("不过", Says::Neither),
    ("不仅", Says::Neither),
    ("不但", Says::Neither),
    ("不久", Says::Neither),
    ("不管", Says::Neither),
    ("差不多", Says::Neither),
    ("对不起", Says::Neither),
    ("不好意思", Says::Neither),
    ("无论", Says::Neither),
    ("无所谓", Says::Neither),
    ("未来", Says::Neither),
    ("别人", Says::Neither),
    ("特别", Says::Neither),
    ("性别", Says::Neither),
    ("但是", Says::Neither),
    ("可是", Says::Neither),
    ("还是", Says::Neither),
    ("只是", Says::Neither),
];

const YES: [&str; 9] = ["yes", "y", "yeah", "yep", "true", "ok", "okay", "sure", "right"];
const NO: [&str; 8] = ["no", "n", "not", "nope", "never", "none", "false", "cannot"];

/// Whether `text` says yes or no; `None` when it says neither.
pub fn truth(text: &str) -> Option<bool> {
    let mut yes = false;
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '\'' | '’'))) {
        let is = |listed: &&str| word.eq_ignore_ascii_case(listed);
        if NO.iter().any(is) || ends_in_negation(word) {
            return Some(false);
        }
        yes |= YES.iter().any(is);
    }
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let mut taken = character.len_utf8();
        if !character.is_ascii() {
            let here = PHRASES.iter().filter(|(phrase, _)| rest.starts_with(phrase));
            if let Some((phrase, says)) = here.max_by_key(|(phrase, _)| phrase.len()) {
                match says {
                    Says::No => return Some(false),
                    Says::Yes => yes = true,
                    Says::Neither => {}
                }
                taken = phrase.len();
            }
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    yes.then_some(true)
}

/// `don't`, `isn’t` and their like.
fn ends_in_negation(word: &str) -> bool {
    ["n't", "n’t"].iter().any(|ending| {
        let start = word.len().checked_sub(ending.len());
        start.and_then(|start| word.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_and_no_are_told_apart() {
        let table = [
            ("是", Some(true)),
            ("是的，我有", Some(true)),
            ("对", Some(true)),
            ("有过一次", Some(true)),
            ("好啊", Some(true)),
            ("嗯", Some(true)),
            ("不是", Some(false)),
            ("没有", Some(false)),
            ("没有啊，是别人", Some(false)),
            ("不", Some(false)),
            ("不好", Some(false)),
            ("否", Some(false)),
            ("无", Some(false)),
            ("未曾", Some(false)),
            ("没问题", Some(true)),
            ("没错，是这样", Some(true)),
            ("是的，不过很少", Some(true)),
            ("对不起", None),
            ("对不起，没有", Some(false)),
            ("yes", Some(true)),
            ("Yes, I do.", Some(true)),
            ("Y", Some(true)),
            ("TRUE", Some(true)),
            ("no", Some(false)),
            ("N", Some(false)),
            ("yes and no", Some(false)),
            ("I don't", Some(false)),
            ("It isn’t", Some(false)),
            ("false", Some(false)),
            ("I know", None),
            ("nothing", None),
            ("ISN'T", Some(false)),
            ("35", None),
            ("🙂", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(truth(text), expected, "{text:?}");
        }
    }
}
