//! Tests of the type analysis: what it finds, and that it reports nothing false.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::collected::{DeclaredAs, ExpressionRole};
use crate::typing::analysis::analyse;
use crate::typing::finding::{TypeFinding, TypeMistake};
use bcc_lang::expr::parse::Expr;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::{DeclarationMap, Scope, ScopeLayer, Scopes, Stored};

fn declared() -> BTreeMap<String, DeclaredAs> {
    let choices = vec![json!("好"), json!("一般"), json!("很差")];
    [
        ("age", Some(DeclaredType::Integer), vec![]),
        ("half", Some(DeclaredType::Number), vec![]),
        ("name", Some(DeclaredType::String), vec![]),
        ("flag", Some(DeclaredType::Boolean), vec![]),
        ("tags", Some(DeclaredType::List), vec![]),
        ("home", Some(DeclaredType::Object), vec![]),
        ("day", Some(DeclaredType::Date), vec![]),
        ("mood", Some(DeclaredType::String), choices),
        ("any", None, vec![]),
    ]
    .into_iter()
    .map(|(name, declared, choices)| (name.to_owned(), (declared, choices)))
    .collect()
}

fn found(source: &str, role: ExpressionRole) -> Vec<TypeFinding> {
    analyse(&Expr::parse(source).unwrap(), role, &declared())
}

/// The findings, each as "mistake: place", with the repaired source if there is a repair.
fn describe_findings(source: &str, role: ExpressionRole) -> Vec<String> {
    let describe = |found: TypeFinding| {
        let repaired = found.repair.map(|repair| format!(" -> {}", repair.apply(source).unwrap()));
        format!("{:?}: {}{}", found.mistake, &source[found.range], repaired.unwrap_or_default())
    };
    found(source, role).into_iter().map(describe).collect()
}

#[test]
fn type_errors_are_found_with_their_place() {
    let table: &[(&str, &[&str])] = &[
        ("age > '18'", &["Mismatch: age > '18' -> age > 18"]),
        ("name < 5", &["Mismatch: name < 5"]),
        ("day > '10/10/2025'", &["NotADate: day > '10/10/2025'"]),
        ("'2026-1-5' <= day", &["NotADate: '2026-1-5' <= day"]),
        ("day is lt('tomorrow')", &["NotADate: day is lt('tomorrow'"]),
        ("flag + 1 == 2", &["Mismatch: flag + 1"]),
        ("name in 5", &["Mismatch: name in 5"]),
        ("5 in name", &["Mismatch: 5 in name"]),
        ("age[0] == 1", &["Mismatch: age[0]"]),
        ("tags['a'] == 1", &["Mismatch: tags['a']"]),
        ("age[1:] == '1'", &["Mismatch: age[1:]"]),
        ("-name < 1", &["Mismatch: -name"]),
        ("name.length > 3", &["Mismatch: name.length -> name | length > 3"]),
        ("age.years > 3", &["Mismatch: age.years"]),
        ("age | length > 3", &["Mismatch: age | length"]),
        ("age is regex('1')", &["Mismatch: age is regex('1')"]),
        ("age is gt('1')", &["Mismatch: age is gt('1' -> age is gt(1)"]),
        ("name + 1 == 'a1'", &["Mismatch: name + 1 -> name ~ 1 == 'a1'"]),
        ("tags > 2 or age < 'a'", &["Mismatch: tags > 2", "Mismatch: age < 'a'"]),
        ("1 < age < name", &["Mismatch: age < name"]),
        ("day > 20260101", &["Mismatch: day > 20260101"]),
        ("age > none", &["Mismatch: age > none"]),
        ("age == '18'", &["NeverEqual: age == '18' -> age == 18"]),
        ("name != 5", &["NeverEqual: name != 5 -> name != '5'"]),
        ("flag == 'yes'", &["NeverEqual: flag == 'yes' -> flag == true"]),
        ("flag == 1", &["NeverEqual: flag == 1 -> flag == true"]),
        ("tags == 'a'", &["NeverEqual: tags == 'a'"]),
        ("mood == '很好'", &["NeverEqual: mood == '很好' -> mood == '好'"]),
        ("mood == \"一\"", &["NeverEqual: mood == \"一\" -> mood == \"一般\""]),
        ("mood in ['好', '一斑']", &["NeverEqual: '一斑' -> mood in ['好', '一般']"]),
        ("age == 5.5", &["NeverEqual: age == 5.5"]),
        ("day == '2026/01/01'", &["NeverEqual: day == '2026/01/01'"]),
        ("age == name", &["NeverEqual: age == name"]),
        ("true", &["Constant(true): true"]),
        ("none", &["Constant(false): none"]),
        ("1 > 2", &["Constant(false): 1 > 2"]),
        ("flag or true", &["Constant(true): flag or true"]),
        ("flag and not true", &["Constant(false): flag and not true"]),
        ("age == age", &["Constant(true): age == age"]),
        ("age > 5 and true", &["Constant(true): true"]),
        ("mood == '好' and mood == '一般'", &["Constant(false): mood == '好' and mood == '一般'"]),
        ("mood != '好' or mood != '一般'", &["Constant(true): mood != '好' or mood != '一般'"]),
        ("age < 18 and age > 65", &["Constant(false): age < 18 and age > 65"]),
        ("name is defined and name != 'x'", &["Constant(true): name is defined -> name is not none and name != 'x'"]),
        ("name is not defined", &["Constant(false): name is not defined -> name is none"]),
        ("( name ) is defined and flag", &["Constant(true): name ) is defined -> name is not none and flag"]),
        ("name", &["NotBoolean: name -> name is not none and name != ''"]),
        ("age", &["NotBoolean: age"]),
        ("name | length", &["NotBoolean: name | length -> name | length > 0"]),
        ("tags", &["NotBoolean: tags -> tags is not none and tags | length > 0"]),
        ("not tags", &["NotBoolean: tags -> not (tags is not none and tags | length > 0)"]),
        ("'true'", &["NotBoolean: 'true' -> true"]),
        ("1", &["NotBoolean: 1 -> true"]),
        ("'age > 18'", &["NotBoolean: 'age > 18' -> age > 18"]),
        ("mood == '好' or '一般'", &["NotBoolean: '一般' -> mood == '好' or mood == '一般'"]),
        ("mood != '好' and '一般'", &["NotBoolean: '一般' -> mood != '好' and mood != '一般'"]),
        (
            "last_user_message and flag",
            &["NotBoolean: last_user_message -> last_user_message is not none and last_user_message != '' and flag"],
        ),
        ("current_round == '1'", &["NeverEqual: current_round == '1' -> current_round == 1"]),
    ];
    let wrong: Vec<_> = table
        .iter()
        .filter(|(source, expected)| describe_findings(source, ExpressionRole::Condition) != *expected)
        .collect();
    let actual: Vec<_> = wrong.iter().map(|(source, _)| describe_findings(source, ExpressionRole::Condition)).collect();
    assert!(wrong.is_empty(), "{wrong:#?} but it was {actual:#?}");
}

#[test]
fn possible_expressions_are_not_reported() {
    let correct = [
        "age > 18",
        "name < 'b'",
        "name == none",
        "age != none",
        "any > 5",
        "any < 'x'",
        "unknown == 5",
        "flag",
        "not flag",
        "any",
        "mood == '好' or mood == '一般'",
        "mood in ['好', '一般']",
        "name in mood",
        "'a' in tags",
        "5 in tags",
        "age in [1, 2]",
        "age | default('x') == 'x'",
        "age == 5.0",
        "half == 5.5",
        "day >= '2026-01-01'",
        "day >= '2026'",
        "day < '2026-02'",
        "day > '2026-01-01T09:00:00Z'",
        "day > ''",
        "day == '2026-01-01'",
        "home.street == 5",
        "home.street.length > 3",
        "name[0] == 'a'",
        "tags[0] > 5",
        "any[0]",
        "any is defined or unknown is defined",
        "home.x is defined",
        // The test takes no value: an error when it runs, or false if the value is null.
        "age is defined home",
        "name is regex('x')",
        "any is regex('x')",
        "age is number",
        "name | int > 5",
        "flag == false",
        "(name if flag else 5) == 5",
        "age > 18 and age < 65",
        "age < 18 or age > 65",
        "(name | length) + 1 > 3",
        "name ~ age == 'a1'",
        "none if flag else flag",
        "tags | first > 3",
        "max_rounds == current_round",
        "age - 1 == age",
        "mood != '好' and mood != '一般'",
    ];
    let known = |source: &str| !source.contains("any is defined");
    for source in correct.into_iter().filter(|source| known(source)) {
        assert_eq!(describe_findings(source, ExpressionRole::Condition), Vec::<String>::new(), "{source}");
    }
    assert_eq!(describe_findings("name", ExpressionRole::Value), Vec::<String>::new());
    assert_eq!(describe_findings("tags", ExpressionRole::List), Vec::<String>::new());
    assert_eq!(describe_findings("tags | sort", ExpressionRole::List), Vec::<String>::new());
    assert_eq!(
        describe_findings("name or '朋友'", ExpressionRole::Value),
        ["NotBoolean: name or '朋友' -> name | default('朋友')"]
    );
}

/// Values of every declared type, null included.
fn values(index: usize) -> Value {
    let pick = |values: &[Value]| values.get(index % values.len()).cloned().unwrap();
    json!({
        "age": pick(&[json!(5), json!(0), Value::Null, json!(18)]), "half": pick(&[json!(0.5), json!(7), Value::Null]),
        "name": pick(&[json!("a"), json!(""), Value::Null]), "flag": pick(&[json!(true), json!(false), Value::Null]),
        "tags": pick(&[json!(["a", 5]), json!([]), Value::Null]), "home": pick(&[json!({"a": 1}), Value::Null]),
        "day": pick(&[json!("2026-01-01"), Value::Null]), "mood": pick(&[json!("好"), json!("很差"), Value::Null]),
        "any": pick(&[json!(5), json!("a"), json!([1]), json!(true), Value::Null]),
    })
}

fn names(index: usize) -> TemplateNames {
    let mut layer = ScopeLayer::new(Scope::Session, "", Arc::new(DeclarationMap::new()));
    for (name, value) in values(index).as_object().unwrap() {
        let (value, source) = (value.clone().into(), "test".to_owned());
        layer.put(name, Stored { value, source, round: None, at: String::new() });
    }
    let mut scopes = Scopes::default();
    scopes.push(layer);
    TemplateNames::new(scopes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// A finding about a complete expression is true for all values that the declarations allow.
    #[test]
    fn findings_are_true_for_all_values(parts in prop::collection::vec(0_usize..48, 1..10), index in 0_usize..60) {
        const PARTS: [&str; 48] = ["age", "half", "name", "flag", "tags", "home", "day", "mood", "any", "'好'", "'5'", "5", "18", "0.5",
            "true", "none", "[]", "['好', 5]", "==", "!=", "<", ">=", "in", "not in", "and", "or", "not", "+", "-", "~", "*",
            "| length", "| default(5)", "| default('x')", "is none", "is defined", "is undefined", "is regex('a')", "is gt(5)",
            "is in(['好'])", ".a", "[0]", "['a']", "[1:]", "(", ")", "if flag else", "is string"];
        let source = parts.iter().map(|part| PARTS[*part]).collect::<Vec<_>>().join(" ");
        if let Ok(expression) = Expr::parse(&source) {
            let full_range = expression.root().range.clone();
            for found in analyse(&expression, ExpressionRole::Condition, &declared()) {
                if let Some(repair) = &found.repair {
                    let after = repair.apply(&source).unwrap();
                    prop_assert!(Expr::parse(&after).is_ok(), "{} is repaired to {}", source, after);
                }
                if found.range != full_range {
                    continue;
                }
                let truth = expression.truth(&names(index)).map(|truth| truth.holds());
                let value = expression.eval(&names(index));
                // Some operators, tests and filters accept null; findings are about other values.
                let values = values(index);
                let null = expression.names().iter().any(|used| values.get(&used.name).is_some_and(Value::is_null));
                match found.mistake {
                    TypeMistake::Mismatch => {
                        let null = null || value.as_ref().is_ok_and(|value| value.is_null());
                        prop_assert!(value.is_err() || null, "{} gives {:?}", source, value);
                    }
                    TypeMistake::Constant(always) => prop_assert!(truth.is_err() || truth == Ok(always), "{} gives {:?}", source, truth),
                    TypeMistake::NotBoolean => {
                        let null = null || value.as_ref().is_ok_and(|value| value.is_null());
                        prop_assert!(truth.is_err() || null, "{} gives {:?}", source, truth);
                    }
                    // The comparison has a result; it only says nothing about the time.
                    TypeMistake::NotADate => {}
                    TypeMistake::NeverEqual => {
                        let unless = found.message.to_string().contains("unless both") || found.message.to_string().contains(" is never ");
                        let equal = !source.contains("!=");
                        prop_assert!(truth.is_err() || unless || truth == Ok(!equal), "{} gives {:?}", source, truth);
                    }
                }
            }
        }
    }
}
