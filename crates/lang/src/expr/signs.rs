//! Characters and words that authors use by mistake in expressions, and their replacements.

/// Full-width punctuation, which input methods insert, and its replacements.
pub(crate) const FULL_WIDTH: &[(char, &str)] = &[
    ('“', "\""),
    ('”', "\""),
    ('‘', "'"),
    ('’', "'"),
    ('＂', "\""),
    ('＇', "'"),
    ('＝', "="),
    ('＞', ">"),
    ('＜', "<"),
    ('≥', ">="),
    ('≤', "<="),
    ('≠', "!="),
    ('！', "!"),
    ('（', "("),
    ('）', ")"),
    ('，', ","),
    ('。', "."),
    ('：', ":"),
    ('；', ";"),
    ('【', "["),
    ('】', "]"),
    ('｛', "{"),
    ('｝', "}"),
    ('＋', "+"),
    ('－', "-"),
    ('×', "*"),
    ('÷', "/"),
    ('％', "%"),
    ('｜', "|"),
    ('～', "~"),
    ('＆', "&"),
    ('　', " "),
    ('、', ","),
];

/// Chinese words for operators.
pub(crate) const WORDS: &[(&str, &str)] = &[
    ("且", "and"),
    ("并且", "and"),
    ("而且", "and"),
    ("和", "and"),
    ("或", "or"),
    ("或者", "or"),
    ("非", "not"),
    ("等于", "=="),
    ("不等于", "!="),
    ("大于", ">"),
    ("小于", "<"),
    ("大于等于", ">="),
    ("小于等于", "<="),
    ("不小于", ">="),
    ("不大于", "<="),
];

/// Infix words of other languages, and the help for each.
pub(crate) const INFIX: &[(&str, &str)] = &[
    ("contains", "write it the other way round, as in `'…' in x`"),
    ("includes", "write it the other way round, as in `'…' in x`"),
    ("包含", "write it the other way round, as in `'…' in x`"),
    ("matches", "write `x is regex('…')`"),
    ("match", "write `x is regex('…')`"),
    ("like", "write `'…' in x`, or `x is regex('…')`"),
    ("exists", "write `x is not none`"),
    ("between", "write both ends, as in `x >= 1 and x <= 5`"),
];

/// Unknown operators and their replacements; longer ones come before their prefixes.
pub(crate) const OPERATORS: &[(&str, &str)] =
    &[("===", "=="), ("!==", "!="), ("&&", "and"), ("||", "or"), ("<>", "!="), ("=>", ">="), ("=<", "<=")];
