//! Every filter with operands that ask for much: the result is bounded, or an error.

use super::*;
use crate::template::environment::environment;
use crate::template::features::FILTERS;
use minijinja::UndefinedBehavior;

/// The maximum number of bytes that a call may allocate, in relation to the longest operand or result.
const FACTOR: usize = 16;

fn named(name: &str, value: Value) -> Value {
    Value::from([(name, value)].into_iter().collect::<Kwargs>())
}

#[test]
fn the_table_and_the_list_for_suggestions_have_the_same_names() {
    let table: Vec<&str> = all().iter().map(|filter| filter.name).collect();
    assert_eq!(table.join("|"), FILTERS.replace(' ', ""));
}

#[test]
fn every_filter_of_every_large_operand_is_bounded() {
    let environment = environment(UndefinedBehavior::Strict);
    let long = "a b\n".repeat(2 * 1024);
    let format = "%20000000000d %*d %s".to_owned();
    let huge = Value::from(20_000_000_000_u64);
    let mut nested = Value::from("x");
    for _ in 0..10 {
        nested = Value::from(vec![nested.clone(), nested]);
    }
    let values = [
        Value::from(long.as_str()),
        Value::from(format),
        Value::from(vec![Value::from(long.as_str()); 3]),
        Value::from(vec![0; 2_000]),
        Value::from_pairs([("a", Value::from(long.as_str()))]),
        nested.clone(),
    ];
    let arguments: Vec<Vec<Value>> = vec![
        vec![],
        vec![huge.clone()],
        vec![huge.clone(), Value::from("x")],
        vec![named("width", huge.clone())],
        vec![named("indent", huge)],
        vec![Value::from("a"), Value::from(long.as_str())],
        vec![Value::from(""), Value::from(long.as_str())],
        vec![Value::from(long.as_str())],
        vec![Value::from(vec![0; 2_000]), Value::from(vec![0; 2_000])],
        vec![named("start", Value::from(vec![0; 2_000]))],
        vec![nested.clone(), nested],
    ];
    for Filter { name, .. } in all() {
        for value in &values {
            for arguments in &arguments {
                let mut operands = vec![value.clone()];
                operands.extend(arguments.iter().cloned());
                let mut state = environment.empty_state();
                let Ok(result) = state.apply_filter(name, &operands) else { continue };
                let text = result.as_str().map_or(0, str::len);
                assert!(text <= MAX_VALUE_BYTES, "{name}: {text}");
                // What is returned unchanged is not measured again.
                if !operands.contains(&result) && result.kind() != ValueKind::Map {
                    let size = size(&result).unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert!(size.nodes <= MAX_NODES && size.text <= FACTOR * MAX_VALUE_BYTES, "{name}: {size:?}");
                }
            }
        }
    }
}

#[test]
fn what_asks_for_too_much_is_an_error_and_what_fits_is_not() {
    let environment = environment(UndefinedBehavior::Strict);
    let table = [
        ("'a\nb' | indent(20000000000)", false),
        ("'a\nb' | indent(width=20000000000)", false),
        ("'a\nb' | indent(8) | length == 11", true),
        ("'%20000000000d' | format(1)", false),
        ("'%.20000000000f' | format(1.5)", false),
        ("'%*d' | format(20000000000, 1)", false),
        ("'%5d %s' | format(1, 'x') == '    1 x'", true),
        ("'%(a)s %(a)s' | format(a='x') == 'x x'", true),
        ("big | replace('a', big)", false),
        ("big | replace('', 'xy')", false),
        ("big | replace('a', 'b') | length > 0", true),
        ("[1, 2] | batch(20000000000, 0)", false),
        ("[1, 2] | slice(20000000000)", false),
        ("[1, 2, 3] | batch(2, 0) | list == [[1, 2], [3, 0]]", true),
        ("[1, 2, 3] | slice(2) | list == [[1, 2], [3]]", true),
        ("big | list | join(big)", false),
        ("[1, 2] | join('-') == '1-2'", true),
        ("[[1]] | tojson(indent=20000000000)", false),
        ("[[1]] | tojson(indent=2) | length > 0", true),
        ("big | split('')", false),
        ("'a-b' | split('-') == ['a', 'b']", true),
        ("big | upper | length == big | length", true),
        ("[[1], [2]] | sum(start=[]) == [1, 2]", true),
        ("[{'a': [1]}, {'a': [2]}] | sum('a', []) == [1, 2]", true),
        ("[1, 2] | sum == 3 and ([{'a': 2}] | sum(attribute='a', start=1)) == 3", true),
        ("['a'] | sum(start='')", false),
        ("[1] | chain([2], [3]) == [1, 2, 3]", true),
        ("([1] | zip([2]) | list | length) == 1", true),
    ];
    let big = "a\n".repeat(600_000);
    for (source, fits) in table {
        let expression = environment.compile_expression(source).unwrap();
        let result = expression.eval(minijinja::context! { big => big.as_str() });
        assert_eq!(result.as_ref().is_ok_and(Value::is_true), fits, "{source}: {:?}", result.map(|_| ()));
    }
}
