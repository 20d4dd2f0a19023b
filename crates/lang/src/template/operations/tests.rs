//! Tests of null and failing operations in texts and templates.

use serde_json::json;

use crate::template::layers::TemplateFile;
use crate::template::names::{TemplateNames, session_names};
use crate::template::templates::Templates;
use crate::template::text::AuthorTexts;

const MARK: &str = "00112233445566778899aabbccddeeff";

fn names() -> TemplateNames {
    session_names(json!({
        "n": null, "yes": true, "no": false, "age": 18, "name": "小林", "list": [3, null], "profile": { "city": "成都" },
    }))
}

/// The rendered text and its warnings.
fn text(source: &str) -> (String, Vec<String>) {
    let (names, mut texts) = (names(), AuthorTexts::new());
    let text = texts.add(source).unwrap();
    let rendered = texts.render(&text, &names).unwrap_or_else(|error| panic!("{source}: {error}"));
    (rendered, names.take_warnings().iter().map(ToString::to_string).collect())
}

fn template(source: &str) -> Result<(String, Vec<String>), String> {
    let names = names();
    let files = [
        TemplateFile {
            place: "default".into(),
            name: "t_v1.md".into(),
            text: format!("---\nmodel: m\n---\n{source}."),
        },
        TemplateFile { place: "default".into(), name: "part.md".into(), text: "{{ n + 1 }}{{ age + 1 }}".into() },
    ];
    let templates = Templates::new(&files, MARK).unwrap();
    let rendered =
        templates.get("t", 1).and_then(|template| template.render(&names)).map_err(|error| error.to_string())?;
    let rendered = rendered.into_iter().map(|message| message.content).collect::<String>();
    Ok((rendered.trim_end_matches('.').to_owned(), names.take_warnings().iter().map(ToString::to_string).collect()))
}

#[test]
fn a_null_or_failing_operation_is_rendered_as_nothing_with_a_warning() {
    let table = [
        ("[{{ n + 1 }}]", "[]", "`n + 1` is null, because `n` is null"),
        ("[{{ n | upper }}]", "[]", "`n | upper` is null, because `n` is null"),
        ("[{{ n.city }}]", "[]", "`n.city` is null, because `n` is null"),
        (
            "[{{ name + 1 }}]",
            "[]",
            "`name + 1` has no result: `+` cannot be applied to text and a number, in `name + 1`",
        ),
        ("[{{ age // 0 }}]", "[]", "`age // 0` has no result: `//` divides by zero, in `age // 0`"),
        ("[{{ list | round }}]", "[]", "`list | round` has no result: the filter `round`"),
        ("{% if n >= 7 %}a{% else %}b{% endif %}", "b", "`n >= 7` is null, because `n` is null"),
        ("{% if not n %}a{% else %}b{% endif %}", "b", "`not n` is null, because `n` is null"),
        ("{% if '35' > 5 %}a{% else %}b{% endif %}", "b", "`'35' > 5` has no result"),
        ("{% if no %}a{% elif n < 3 %}b{% else %}c{% endif %}", "c", "`n < 3` is null"),
        ("{{ 'a' if n > 3 else 'b' }}", "b", "is null, because `n` is null"),
        ("{% for x in age %}x{% else %}none{% endfor %}", "none", "`age` has no items: it is a number"),
        ("{% for x in n | sort %}x{% else %}none{% endfor %}", "none", "`n | sort` is null"),
        ("{% for x in list %}{{ x + 1 }},{% endfor %}", "4,,", "`x + 1` is null, because `x` is null"),
        ("{% macro m(x) %}<{{ x * 2 }}>{% endmacro %}{{ m(n + 1) }}{{ m(2) }}", "<><4>", "`n + 1` is null"),
        ("{% set x = n - 1 %}[{{ x }}]", "[]", "`n - 1` is null"),
        ("{% with x = n - 1 %}[{{ x | default('d') }}]{% endwith %}", "[d]", "`n - 1` is null"),
    ];
    for (source, expected, warning) in table {
        for (kind, (rendered, warnings)) in [("text", text(source)), ("template", template(source).unwrap())] {
            assert_eq!(rendered, expected, "{kind} {source}");
            assert!(warnings.iter().any(|found| found.contains(warning)), "{kind} {source}: {warnings:?}");
            assert!(!warnings.iter().any(|found| found.contains("小林") || found.contains("18")), "{warnings:?}");
        }
    }
}

#[test]
fn a_tested_null_is_no_warning() {
    let table = [
        ("[{{ n }}]{% if n %}a{% endif %}", "[]"),
        ("{{ n or 'x' }}{{ n | default('y') }}{{ (n + 1) | default('z') }}", "xyz"),
        ("{% if n is none %}a{% endif %}{% if n is not none and n > 3 %}b{% endif %}", "a"),
        ("{% if n and n > 3 %}b{% else %}c{% endif %}", "c"),
        ("{% if n == 3 or age > 3 %}d{% endif %}{% for x in n %}e{% endfor %}", "d"),
        ("{{ n is defined }}{{ nothing.at.all is defined }}", "truefalse"),
    ];
    for (source, expected) in table {
        assert_eq!(text(source), (expected.to_owned(), vec![]), "{source}");
        assert_eq!(template(source).unwrap(), (expected.to_owned(), vec![]), "{source}");
    }
}

#[test]
fn the_tests_of_texts_follow_three_valued_logic() {
    const ORDERED: [&str; 3] = ["no", "n", "yes"];
    let shows = |condition: &str| {
        let source = format!("{{% if {condition} %}}T{{% elif not ({condition}) %}}F{{% else %}}N{{% endif %}}");
        assert_eq!(text(&source).0, template(&source).unwrap().0, "{source}");
        text(&source).0
    };
    for (left, one) in ORDERED.into_iter().enumerate() {
        for (right, other) in ORDERED.into_iter().enumerate() {
            let letters = ["F", "N", "T"];
            assert_eq!(shows(&format!("{one} and {other}")), letters[left.min(right)], "{one} and {other}");
            assert_eq!(shows(&format!("{one} or {other}")), letters[left.max(right)], "{one} or {other}");
        }
        assert_eq!(shows(&format!("not {one}")), ["T", "N", "F"][left], "not {one}");
    }
}

#[test]
fn texts_and_lists_have_a_truth_in_texts() {
    for (source, expected) in [
        ("{% if name and list %}a{% endif %}{% if not '' %}b{% endif %}", "ab"),
        ("{{ '' or name }}{{ 0 or 'x' }}{{ name and 'y' }}{{ not name }}", "小林xyfalse"),
    ] {
        assert_eq!(text(source).0, expected, "{source}");
    }
}

#[test]
fn warnings_and_errors_of_templates_have_their_position() {
    let (rendered, warnings) = template("a\n{{ age + 1 }} {{ n + 1 }}{% include 'part.md' %}").unwrap();
    assert_eq!(rendered, "a\n19 19");
    assert_eq!(
        warnings,
        [
            "_system/config/default/t_v1.md:5:18: `n + 1` is null, because `n` is null",
            "_system/config/default/part.md:1:4: `n + 1` is null, because `n` is null",
        ]
    );
    let table = [
        ("{{ age + 1 }} {{ nam + 1 }}", "t_v1.md:4:18: `nam` is not known here"),
        ("{{ age + 1 }} {{ nam }}", "t_v1.md:4:18: `nam` is not known here"),
        ("{{ age + profile.street }}", "t_v1.md:4:10: `profile.street` has no value"),
        ("{{ age + 1 }}{% macro m() %}{{ m() ~ '' }}{% endmacro %}{{ m() }}", "nested more than"),
    ];
    for (source, expected) in table {
        let error = template(source).unwrap_err();
        assert!(error.contains(expected), "{source}: {error}");
    }
}

#[test]
fn values_and_steps_stay_limited() {
    let doubling = "{% set ns = namespace(s='0123456789', l=[1]) %}{% for i in range(40) %}\
                    {% set ns.s = ns.s ~ ns.s %}{% set ns.l = ns.l + ns.l %}{% endfor %}[{{ ns.s }}{{ ns.l }}]";
    for (source, error) in [
        (doubling.replace("{% set ns.l = ns.l + ns.l %}", ""), "the result of `~` is longer than 2097152 bytes"),
        (doubling.replace("{% set ns.s = ns.s ~ ns.s %}", ""), "the result of `+` is longer than"),
    ] {
        let mut texts = AuthorTexts::new();
        let text = texts.add(&source).unwrap();
        let found = texts.render(&text, &names()).unwrap_err();
        assert!(found.message.to_string().contains(error), "{found}");
        assert!(source.get(found.range.unwrap()).is_some_and(|place| place.starts_with("ns.") && place.len() == 11));
    }
    let long = format!("{{{{ age{} }}}}", " + age".repeat(90));
    let loops = format!("{{% for a in range(10000) %}}{long}{{% endfor %}}");
    let mut texts = AuthorTexts::new();
    let text = texts.add(&loops).unwrap();
    let error = texts.render(&text, &names()).unwrap_err();
    assert!(error.message.to_string().contains("500000 steps"), "{error}");
}

#[test]
fn long_literals_are_counted_and_rendered_as_they_are() {
    let long = "字 x".repeat(100);
    let space = " \n".repeat(300);
    let table = [
        (format!("{{% raw %}}{long}{{{{ x }}}}{{% endraw %}}"), format!("{long}{{{{ x }}}}")),
        (format!("[{{% raw -%}}{space}{long}{space}{{%- endraw %}}]"), format!("[{long}]")),
        (format!("[{{% if yes -%}}{space}{long}{space}{{%- endif %}}]"), format!("[{long}]")),
        (format!("[{{% if yes %}}{space}{long}{space}{{% endif %}}]"), format!("[{space}{long}{space}]")),
        (format!("[{{{{ age -}}}}{space}{{{{ age }}}}]"), "[1818]".to_owned()),
        (format!("[{{{{ age }}}}{space}{{{{ age }}}}]"), format!("[18{space}18]")),
        (format!("{long}{{# {long} #}}{long}"), format!("{long}{long}")),
        (format!("{{% macro m() %}}{long}{{% endmacro %}}{{{{ m() | length }}}}"), "300".to_owned()),
    ];
    for (source, expected) in table {
        assert_eq!(text(&source), (expected, Vec::new()), "{source}");
    }
    let captured =
        format!("{{% set t %}}{{% for i in range(10000) %}}{}{{% endfor %}}{{% endset %}}", long.repeat(100));
    let mut texts = AuthorTexts::new();
    let text = texts.add(&captured).unwrap();
    let error = texts.render(&text, &names()).unwrap_err();
    assert!(error.message.to_string().contains("in total were made"), "{error}");
}

#[test]
fn authors_cannot_call_the_evaluation() {
    assert!(AuthorTexts::new().add("{{ 0 | count_literal }}").is_err());
    assert!(AuthorTexts::new().add("{{ 0 | evaluate_operation }}").is_err());
    assert!(template("{{ 0 | evaluate_operation }}").is_err());
}
