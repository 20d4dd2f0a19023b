//! Tests of the expression parser.

use crate::expr::parse::*;

#[test]
fn invalid_expressions_are_rejected_with_a_range() {
    let long = "x".repeat(MAX_EXPRESSION_BYTES + 1);
    let deep = ["x"; MAX_DEPTH + 2].join(" or ");
    let table = [
        ("", "the expression is empty", ""),
        (" \n", "the expression is empty", " \n"),
        (long.as_str(), "at most 4096 bytes", long.as_str()),
        (deep.as_str(), "nested more than", ""),
        ("年龄 = 18", "`=` is an assignment", "="),
        ("年龄 ＞ 18", "full-width", "＞"),
        ("a && b", "`&&` is not an operator", "&&"),
        ("a == 'x' && b", "`&&` is not an operator", "&&"),
        ("a b", "unexpected input", ""),
        ("a is definde", "there is no test `definde`", "definde"),
        ("a | lenght", "there is no filter `lenght`", "lenght"),
        ("a.upper()", "`.upper()` is a method call", "a.upper()"),
        ("lenght(a)", "there is no function `lenght`", "lenght"),
        ("length(a)", "there is no function `length`", "length"),
        ("debug()", "there is no function `debug`", "debug"),
        ("namespace(a=1)", "there is no function `namespace`", "namespace"),
        ("f(1)(2)", "only functions can be called", "f(1)(2)"),
        ("range(*a)", "cannot be used to unpack", "a"),
        ("a[::-1]", "step of a slice", "a[::-1]"),
        ("a[::b]", "step of a slice", "a[::b]"),
        ("99999999999999999999999999", "too large", "99999999999999999999999999"),
        ("a is regex('(')", "not a valid regular expression", "'('"),
        ("a is regex", "needs exactly one pattern", "regex"),
    ];
    for (source, message, at) in table {
        let error = Expr::parse(source).unwrap_err();
        assert!(error.message.to_string().contains(message), "{source}: {error}");
        if !at.is_empty() {
            assert_eq!(&source[error.range.unwrap()], at, "{source}: {}", error.message);
        }
    }
}

#[test]
fn errors_suggest_a_correction() {
    let table = [
        ("a is definde", "did you mean `defined`?"),
        ("a | lenght", "did you mean `length`?"),
        ("length(a)", "`length` is a filter: write `x | length`"),
        ("len(a)", "`length` is a filter: write `x | length`"),
        ("a.length()", "write `a | length`"),
        ("a.includes('x')", "write `'x' in a`"),
        ("a.upper()", "write `a | upper`"),
        ("a is matching('x')", "write `is regex('…')`"),
        ("rang(3)", "did you mean `range`?"),
    ];
    for (source, help) in table {
        assert_eq!(
            Expr::parse(source).unwrap_err().help.as_ref().map(ToString::to_string).as_deref(),
            Some(help),
            "{source}"
        );
    }
}

#[test]
fn names_are_found_with_their_ranges() {
    let table: [(&str, &[&str]); 7] = [
        ("年龄 >= 18 and not 用户名 == x", &["年龄", "用户名", "x"]),
        ("a.b[c] in d", &["a", "c", "d"]),
        ("x if y else z", &["x", "y", "z"]),
        ("a is defined and b.c | default(d) and e is not undefined", &["a?", "b?", "d", "e?"]),
        ("range(n) | select('gt', m)", &["n", "m"]),
        ("{'k': v}[k:l]", &["v", "k", "l"]),
        ("metadata.crisis_signal or last_user_message is regex('x')", &["metadata", "last_user_message"]),
    ];
    for (source, expected) in table {
        let expr = Expr::parse(source).unwrap();
        let found: Vec<String> = expr
            .names()
            .iter()
            .map(|used| {
                assert_eq!(&source[used.range.clone()], used.name, "{source}");
                format!("{}{}", used.name, if used.optional { "?" } else { "" })
            })
            .collect();
        assert_eq!(found, expected, "{source}");
    }
}
