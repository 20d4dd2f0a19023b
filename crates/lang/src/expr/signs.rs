//! Signs and words that authors write in expressions, and what is meant by each here.

/// Full-width punctuation, and what is meant by it. An input method types it without being asked.
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

/// Words that other languages, or the author's own, have for operators.
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

/// Words that stand between two values in other languages, and what is written here.
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

/// Operators that do not exist here, longer ones before those that begin them.
pub(crate) const OPERATORS: &[(&str, &str)] =
    &[("===", "=="), ("!==", "!="), ("&&", "and"), ("||", "or"), ("<>", "!="), ("=>", ">="), ("=<", "<=")];
