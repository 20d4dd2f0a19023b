//! Tests of the evaluation of expressions.

use crate::expr::parse::{Expr, ExprError};
use crate::expr::truth::Truth;
use crate::template::names::{TemplateNames, session_names};
use crate::value::exact::ExactValue;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn names() -> TemplateNames {
    session_names(json!({
        "年龄": 18, "n": null, "text": "35", "yes": true, "no": false, "list": [1, "a", null], "空": [],
        "metadata": { "crisis_signal": true, "nested": { "deep": [1, 2] } }, "last_user_message": "我不想活了",
        "用户名": "小林", "half": 0.5,
    }))
}

/// Conditions that have a value or are null.
fn condition() -> impl Strategy<Value = String> {
    let parts =
        vec!["yes", "no", "n", "n > 3", "年龄 >= n", "年龄 > 3", "'x' in n", "n | length == 2", "n is none", "n == 3"];
    let leaf = prop::sample::select(parts).prop_map(str::to_owned);
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|of| format!("not ({of})")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left}) and ({right})")),
            (inner.clone(), inner).prop_map(|(left, right)| format!("({left}) or ({right})")),
        ]
    })
}

fn eval(source: &str) -> Result<Json, ExprError> {
    Expr::parse(source)?.eval(&names()).map(ExactValue::into_value)
}

#[test]
fn valid_expressions_have_the_expected_value() {
    let table = [
        ("1 == 1.0", json!(true)),
        ("'5' == 5", json!(false)),
        ("true == 1", json!(false)),
        ("n == none", json!(true)),
        ("n != 3", json!(true)),
        ("[1, {'a': 2}] == [1.0, {'a': 2.0}]", json!(true)),
        ("{'a': 1} == {'b': 1}", json!(false)),
        ("年龄 >= 18", json!(true)),
        ("'2026-01-02' < '2026-01-10'", json!(true)),
        ("1 < 2 <= 2 < 1", json!(false)),
        ("'a' in list", json!(true)),
        ("2 not in list", json!(true)),
        ("n in list", json!(null)),
        ("1 in n", json!(null)),
        ("'a' ~ n", json!(null)),
        ("-n", json!(null)),
        ("n | upper", json!(null)),
        ("n | length > 3", json!(null)),
        ("n | round(1) | int", json!(null)),
        ("n | bool", json!(false)),
        ("'abc' | truncate(n)", json!(null)),
        ("range(n)", json!(null)),
        ("n.a.b[0]", json!(null)),
        ("metadata.missing.a", json!(null)),
        ("n[1:]", json!(null)),
        ("n is gt 3", json!(null)),
        ("n is startingwith('a')", json!(false)),
        ("1 < n < 0", json!(null)),
        ("n < 1 < 0", json!(false)),
        ("1 if n else 2", json!(2)),
        ("n + 1 | default(0)", json!(null)),
        ("(n + 1) | default(0)", json!(0)),
        ("not 2 in list", json!(true)),
        ("1.0 in list", json!(true)),
        ("'林' in 用户名", json!(true)),
        ("'nested' in metadata", json!(true)),
        ("1 + 2 * 3 - 4", json!(3)),
        ("7 / 2", json!(3.5)),
        ("-7 // 2", json!(-4)),
        ("-7 % 3", json!(2)),
        ("2 ** 10", json!(1024)),
        ("2 ** -1", json!(0.5)),
        ("'a' + 'b'", json!("ab")),
        ("[1] + [2]", json!([1, 2])),
        ("用户名 ~ 1 ~ true ~ 0.5", json!("小林1true0.5")),
        ("yes and not no", json!(true)),
        ("n or no", json!(null)),
        ("n and no", json!(false)),
        ("no and unknown", json!(false)),
        ("yes or unknown", json!(true)),
        ("'a' if yes else unknown", json!("a")),
        ("'a' if no", json!(null)),
        ("metadata.nested.deep[1]", json!(2)),
        ("metadata['nested'].deep[-1]", json!(2)),
        ("metadata.missing", json!(null)),
        ("list[9]", json!(null)),
        ("用户名[0]", json!("小")),
        ("用户名[1:]", json!("林")),
        ("'abcdef'[1:-1:2]", json!("bd")),
        ("''[:]", json!("")),
        ("[1, 2, 3][-2:]", json!([2, 3])),
        ("[1, 2, 3][5:1]", json!([])),
        ("list | length", json!(3)),
        ("'a,b' | split(',') | list", json!(["a", "b"])),
        ("[3, 1] | sort", json!([1, 3])),
        ("list | join('-')", json!("1-a-None")),
        ("unknown | default('x')", json!("x")),
        ("n | default(3) + 1", json!(4)),
        ("unknown.a.b | default(0)", json!(0)),
        ("unknown is defined", json!(false)),
        ("unknown.a is undefined", json!(true)),
        ("metadata.missing is defined", json!(false)),
        ("metadata.nested is defined", json!(true)),
        ("n is none", json!(true)),
        ("年龄 is number and text is string", json!(true)),
        ("text is not number", json!(true)),
        ("last_user_message is regex('不想活|自杀')", json!(true)),
        ("n is regex('x')", json!(false)),
        ("metadata.crisis_signal or last_user_message is regex('自杀')", json!(true)),
        ("range(3) | list", json!([0, 1, 2])),
        ("dict(a=1).a", json!(1)),
        ("(1, 2)", json!([1, 2])),
        ("{'a': [1, {}]}", json!({ "a": [1, {}] })),
        ("list | select('string') | first", json!("a")),
        ("18446744073709551615", json!(u64::MAX)),
    ];
    for (source, expected) in table {
        assert_eq!(eval(source).unwrap(), expected, "{source}");
    }
}

#[test]
fn invalid_operands_are_an_error_with_a_range() {
    let table = [
        ("yes and text >= 18", "`>=` cannot be applied to text and a number", "text >= 18"),
        ("30 > 'x'", "`>` cannot be applied to a number and text", "30 > 'x'"),
        ("[1] > 3", "`>` cannot be applied to a list and a number", "[1] > 3"),
        ("1 < 2 < 'a'", "`<` cannot be applied to a number and text", "2 < 'a'"),
        ("1 + 'a'", "`+` cannot be applied to a number and text", "1 + 'a'"),
        ("'a' * 3", "`*` cannot be applied to text and a number", "'a' * 3"),
        ("1 in 年龄", "`in` cannot be applied to a number and a number", "1 in 年龄"),
        ("5 in '5'", "`in` cannot be applied to a number and text", "5 in '5'"),
        ("n and text >= 18", "`>=` cannot be applied to text and a number", "text >= 18"),
        ("n or 'a' + 1", "`+` cannot be applied", "'a' + 1"),
        ("n and 用户命", "`用户命` is not known here", "用户命"),
        ("-text", "`-` cannot be applied to text", "-text"),
        ("1 / 0", "divides by zero", "1 / 0"),
        ("1 % 0.0", "divides by zero", "1 % 0.0"),
        ("0 ** -1", "divides by zero", "0 ** -1"),
        ("9223372036854775807 * 9223372036854775807", "too large", "9223372036854775807 * 9223372036854775807"),
        ("10 ** 400", "too large", "10 ** 400"),
        ("10.0 ** 400", "too large", "10.0 ** 400"),
        ("yes and 用户命", "`用户命` is not known here", "用户命"),
        ("年龄.a", "`年龄` is a number and has no `a`", "年龄.a"),
        ("list['a']", "cannot be indexed with text", "list['a']"),
        ("not text", "`not` needs true or false", "text"),
        ("yes and 年龄", "`and` needs true or false", "年龄"),
        ("list or yes", "`or` needs true or false", "list"),
        ("1 if text else 2", "`if` needs true or false", "text"),
        ("text is ge 18", "`>=` cannot be applied to text and a number", "text is ge 18"),
        ("用户名 | round", "the filter `round`", "用户名 | round"),
        ("range(1000000)", "at most 10000 numbers", "range(1000000)"),
        ("list[:'a']", "whole numbers", "'a'"),
        ("{1: 2}", "the keys of an object must be strings", "1"),
        ("年龄 is regex('1')", "`regex` can only search text", "年龄 is regex('1')"),
    ];
    for (source, message, at) in table {
        let error = eval(source).unwrap_err();
        assert!(error.message.to_string().contains(message), "{source}: {error}");
        assert_eq!(&source[error.range.unwrap()], at, "{source}: {}", error.message);
        assert!(!error.message.to_string().contains("小林"), "{source}: {}", error.message);
    }
}

#[test]
fn a_condition_is_a_boolean_or_null() {
    let truth = |source: &str| Expr::parse(source).unwrap().truth(&names());
    assert_eq!(truth("年龄 >= 18"), Ok(Truth::True));
    assert_eq!(truth("年龄 < 18"), Ok(Truth::False));
    let nulls = [
        ("n", "n"),
        ("metadata.missing", "metadata.missing"),
        ("n >= 7", "n"),
        ("yes and metadata.missing + 1 > 2", "metadata.missing"),
        ("not n", "n"),
        ("no or n", "n"),
        ("n == 3 or n > 3", "n"),
        ("1 < 2 < n", "n"),
    ];
    for (source, part) in nulls {
        assert_eq!(truth(source), Ok(Truth::Null(part.to_owned())), "{source}");
        assert!(!truth(source).unwrap().holds());
    }
    for source in ["年龄", "'true'", "list", "metadata", "空"] {
        let error = truth(source).unwrap_err();
        assert!(
            error.message.to_string().contains("a condition needs true or false") && error.help.is_some(),
            "{source}"
        );
    }
}

#[test]
fn errors_have_help() {
    let table = [
        ("用户命 == 'x'", "did you mean `用户名`?"),
        ("n == null", "write `none`"),
        ("list.length", "write `x | length`"),
        ("list", "check its length, as in `x | length > 0`"),
    ];
    for (source, help) in table {
        let error = Expr::parse(source).unwrap().truth(&names()).unwrap_err();
        assert_eq!(error.help.as_ref().map(ToString::to_string).as_deref(), Some(help), "{source}: {error}");
    }
}

/// `true`, `false` and null, and the operators of Kleene's three-valued logic on their indexes: the smaller one is the `and`.
const ORDERED: [(&str, Option<bool>); 3] = [("no", Some(false)), ("n", None), ("yes", Some(true))];

#[test]
fn logic_has_three_values() {
    let check = |source: &str, expected: Option<bool>| {
        assert_eq!(eval(source).unwrap(), json!(expected), "{source}");
        // A comparison with null has the same place in the tables as null itself.
        let compared = source.replace("(n)", "(n > 3)");
        assert_eq!(eval(&compared).unwrap(), json!(expected), "{compared}");
        let truth = Expr::parse(source).unwrap().truth(&names()).unwrap();
        assert_eq!(truth.holds(), expected == Some(true), "{source}");
        assert_eq!(matches!(truth, Truth::Null(_)), expected.is_none(), "{source}");
    };
    for (left, (left_name, left_value)) in ORDERED.into_iter().enumerate() {
        check(&format!("not ({left_name})"), left_value.map(|value| !value));
        for (right, (right_name, _)) in ORDERED.into_iter().enumerate() {
            check(&format!("({left_name}) and ({right_name})"), ORDERED[left.min(right)].1);
            check(&format!("({left_name}) or ({right_name})"), ORDERED[left.max(right)].1);
        }
    }
}

#[test]
fn a_null_result_of_an_operation_is_a_warning() {
    let table = [
        ("n + 1", Some("`n + 1` is null, because `n` is null")),
        ("(n | upper) ~ 'x'", Some("`(n | upper) ~ 'x'` is null, because `n` is null")),
        ("n", None),
        ("n | default(1)", None),
        ("n == none", None),
        ("n > 3 or yes", None),
        ("[n]", None),
    ];
    for (source, expected) in table {
        let names = names();
        Expr::parse(source).unwrap().eval(&names).unwrap();
        let warnings: Vec<String> = names.take_warnings().iter().map(ToString::to_string).collect();
        assert_eq!(warnings, expected.into_iter().collect::<Vec<_>>(), "{source}");
    }
}

proptest! {
    /// Negation, De Morgan's laws and commutativity hold with nulls anywhere.
    #[test]
    fn the_laws_of_logic_hold_with_null(left in condition(), right in condition()) {
        let pairs = [
            (format!("not (not ({left}))"), format!("({left}) and true")),
            (format!("not (({left}) and ({right}))"), format!("(not ({left})) or (not ({right}))")),
            (format!("not (({left}) or ({right}))"), format!("(not ({left})) and (not ({right}))")),
            (format!("({left}) and ({right})"), format!("({right}) and ({left})")),
            (format!("({left}) or ({right})"), format!("({right}) or ({left})")),
        ];
        for (one, other) in pairs {
            prop_assert_eq!(eval(&one).unwrap(), eval(&other).unwrap(), "{} / {}", one, other);
        }
    }

    #[test]
    fn parsing_and_evaluating_never_panics(source in r"(\PC|年龄|text|list|n|not |and|or|is|in| if | else |[-+*/%~<>=!|.,:'\[\](){} 0-9])*") {
        if let Ok(expr) = Expr::parse(&source) {
            let _ = expr.eval(&names());
        }
    }

    #[test]
    fn chains_of_operators_never_panic(parts in prop::collection::vec(0_usize..24, 1..20)) {
        const PARTS: [&str; 24] = ["年龄", "n", "text", "list", "metadata", "9223372036854775807", "-1", "0.1", "'一'", "[]", "+", "-",
            "*", "//", "%", "**", "<", "==", "in", "not in", "and", "~", "[::2]", "| list"];
        let source = parts.iter().map(|part| PARTS[*part]).collect::<Vec<_>>().join(" ");
        if let Ok(expr) = Expr::parse(&source) {
            let _ = expr.eval(&names());
        }
    }
}
