//! Tests of used names and templates, and of rejected syntax.

use super::*;
use crate::template::environment::environment;
use minijinja::machinery::parse;
use minijinja::syntax::SyntaxConfig;

fn uses(source: &str) -> Uses {
    let tree = parse(source, "test", SyntaxConfig::default()).unwrap();
    find(&tree, &environment(UndefinedBehavior::Strict))
}

fn names(source: &str) -> Vec<String> {
    let uses = uses(source);
    for name in &uses.names {
        assert_eq!(&source[name.range.clone()], name.name, "{source}");
    }
    uses.names.iter().map(|used| format!("{}{}", used.name, if used.optional { "?" } else { "" })).collect()
}

#[test]
fn free_names_are_found_with_their_ranges() {
    let table: [(&str, &[&str]); 16] = [
        ("你好，{{ 用户名 }}！{{ 年龄 + 1 }}", &["用户名", "年龄"]),
        ("{% set x = y %}{{ x }}", &["y"]),
        ("{{ x }}{% set x = 1 %}", &["x"]),
        ("{% for i in items %}{{ loop.index }}{{ i }}{{ j }}{% endfor %}{{ i }}", &["items", "j", "i"]),
        ("{% if a %}{% set b = 1 %}{% else %}{{ c }}{% endif %}{{ b }}", &["a", "c"]),
        ("{% with a = b %}{{ a }}{% endwith %}{{ a }}", &["b", "a"]),
        ("{% macro m(p, q=r) %}{{ p }}{{ s }}{{ caller() }}{% endmacro %}{{ m(1) }}", &["r", "s"]),
        ("{{ a.b.c[d] }}", &["a", "d"]),
        ("{{ a[b:c:2] }}", &["a", "b", "c"]),
        ("{{ a is defined }}{{ b is not undefined }}{{ c is none }}", &["a?", "b?", "c"]),
        ("{{ a | default(b) }}{{ a.x | d }}{{ a | upper | d }}", &["a?", "b", "a", "a"]),
        ("{{ x if y else z }}", &["x", "y", "z"]),
        ("{{ range(n) }}{{ {'k': v}.k }}", &["n", "v"]),
        ("{% set ns = namespace(a=1) %}{% set ns.a = other %}", &["other"]),
        ("{% set t | upper %}{{ u }}{% endset %}{% filter lower %}{{ v }}{% endfilter %}", &["u", "v"]),
        ("{% set a, b = c %}{{ a }}{{ b }}", &["c"]),
    ];
    for (source, expected) in table {
        assert_eq!(names(source), expected, "{source}");
    }
}

#[test]
fn unsupported_syntax_is_rejected_with_suggestions() {
    let table = [
        ("{{ x | uper }}", "there is no filter `uper`", "did you mean `upper`?"),
        ("{{ x.upper() }}", "`.upper()` is a method call, but values have no methods", "write `x | upper`"),
        ("{{ x is definde }}", "there is no test `definde`", "did you mean `defined`?"),
        (
            "{{ debug() }}",
            "there is no function `debug`",
            "valid functions are range, dict, namespace, cycler, joiner; to change a value, use a filter, as in `x | upper`",
        ),
        (
            "{{ x[::-1] }}",
            "the step of a slice must be a number of at least 1",
            "to reverse a list or text, write `| reverse`",
        ),
    ];
    for (source, message, help) in table {
        let rejected = uses(source).rejected;
        assert_eq!(
            (rejected[0].message.to_string().as_str(), rejected[0].help.as_ref().map(ToString::to_string).as_deref()),
            (message, Some(help)),
            "{source}"
        );
    }
}

#[test]
fn blocks_and_targets_are_found() {
    let uses = uses(
        "{% extends 'default:base.md' %}{% block a %}{{ x }}{{ super() }}{% include 'p.md' ignore missing %}{% endblock %}",
    );
    assert_eq!(uses.targets.len(), 2);
    assert_eq!(uses.targets[0].name.as_deref(), Some("default:base.md"));
    assert_eq!(uses.targets[1].kind, TargetKind::IncludeIfPresent);
    assert_eq!(uses.targets[1].place.blocks, [0]);
    assert!(uses.blocks[0].calls_super);
}
