//! The minijinja environment of texts, templates and expressions: filters, tests, functions, limits, and the formatting of
//! values (docs/language.md, docs/templates.md).
//!
//! The limits of a rendering: `FUEL` for its steps, [`MAX_OUTPUT`](crate::template::features::MAX_OUTPUT) for its output,
//! `MAX_WRITTEN` for all written text (including the text that `{% set %}…{% endset %}`, a macro or `{% filter %}` captures), and
//! [`MAX_VALUE_BYTES`](crate::template::names::MAX_VALUE_BYTES) for each value, and
//! `MAX_TOTAL_BYTES` of `memory.rs` for all values that operators, filters, functions and captured
//! literals make together: steps alone do not limit memory.

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use crate::template::error::error_with_message;
use crate::template::exact_number::{WithDigits, plain};
use std::borrow::Cow;
use std::fmt;
use std::io;

use minijinja::functions::{dict, namespace};
use minijinja::value::{Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, tests as builtin};
use minijinja_contrib::globals::{cycler, joiner};

use crate::expr::operators::{Operator, compare};
use crate::template::features::{FUEL, FeatureKind, MAX_NESTING, MAX_RANGE, MAX_WRITTEN};
use crate::template::filters::add_filters;
use crate::template::memory::{count, limit_error};
use crate::template::missing::{is_unknown, marked, with_marks};
use crate::template::pattern::Patterns;
use crate::template::rewrite::{COUNT, EVALUATE};

/// The tests that compare values, and their operators.
const COMPARING_TESTS: &[(&str, Operator)] = &[
    ("eq", Operator::Equal),
    ("equalto", Operator::Equal),
    ("==", Operator::Equal),
    ("ne", Operator::Unequal),
    ("!=", Operator::Unequal),
    ("lt", Operator::Less),
    ("lessthan", Operator::Less),
    ("<", Operator::Less),
    ("le", Operator::LessOrEqual),
    ("<=", Operator::LessOrEqual),
    ("gt", Operator::Greater),
    ("greaterthan", Operator::Greater),
    (">", Operator::Greater),
    ("ge", Operator::GreaterOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("in", Operator::In),
];

/// The operator of a test that compares values (`x is ge(5)`).
pub(crate) fn comparing_test(name: &str) -> Option<Operator> {
    COMPARING_TESTS.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator)
}

/// Creates an environment without templates. `undefined` applies to unknown names.
pub fn environment(undefined: UndefinedBehavior) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(undefined);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(write_value);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(MAX_NESTING);
    // Adds the undefined name and its position to errors, at no cost without an error. The other debug data (source, locals)
    // is dropped with the error of minijinja, which never leaves this crate.
    environment.set_debug(true);
    add_filters(&mut environment);
    add_functions(&mut environment);
    add_tests(&mut environment);
    environment
}

/// Adds the functions. A new object is counted; a number, a text of `cycler` or a separator of `joiner` exists already.
fn add_functions(environment: &mut Environment<'static>) {
    environment.add_function("range", range);
    environment.add_function("cycler", cycler);
    environment.add_function("joiner", joiner);
    for (name, function) in [("dict", Value::from_function(dict)), ("namespace", Value::from_function(namespace))] {
        environment.add_function(name, move |state: &mut State<'_, '_>, arguments: Rest<ValueOrKwargs>| {
            let made = function.call(state, &arguments.into_values())?;
            count(state, &made, false)?;
            Ok::<_, Error>(made)
        });
    }
}

/// Adds the tests. Their results are booleans, and they allocate at most what their operands have.
fn add_tests(environment: &mut Environment<'static>) {
    environment.add_test("none", builtin::is_none);
    environment.add_test("safe", builtin::is_safe);
    environment.add_test("escaped", builtin::is_safe);
    environment.add_test("boolean", builtin::is_boolean);
    environment.add_test("odd", |value: &Value| builtin::is_odd(plain(value)));
    environment.add_test("even", |value: &Value| builtin::is_even(plain(value)));
    environment.add_test("number", |value: &Value| builtin::is_number(&plain(value)));
    environment.add_test("integer", |value: &Value| builtin::is_integer(&plain(value)));
    environment.add_test("int", |value: &Value| builtin::is_integer(&plain(value)));
    environment.add_test("float", |value: &Value| builtin::is_float(&plain(value)));
    environment.add_test("string", builtin::is_string);
    environment.add_test("sequence", builtin::is_sequence);
    environment.add_test("iterable", builtin::is_iterable);
    environment.add_test("mapping", builtin::is_mapping);
    environment.add_test("startingwith", builtin::is_startingwith);
    environment.add_test("endingwith", builtin::is_endingwith);
    environment.add_test("lower", builtin::is_lower);
    environment.add_test("upper", builtin::is_upper);
    environment.add_test("sameas", builtin::is_sameas);
    environment.add_test("true", builtin::is_true);
    environment.add_test("false", builtin::is_false);
    environment.add_test("filter", builtin::is_filter);
    environment.add_test("test", builtin::is_test);
    environment.add_test("divisibleby", divisible);
    // Like those of minijinja, but a marked unknown name also counts as undefined.
    environment.add_test("defined", |value: &Value| !value.is_undefined() && !is_unknown(value));
    environment.add_test("undefined", |value: &Value| value.is_undefined() || is_unknown(value));
    let patterns = Patterns::default();
    environment.add_test("regex", move |value: &Value, pattern: &str| patterns.is_match(value, pattern));
    for (name, operator) in COMPARING_TESTS {
        environment.add_test(*name, move |left: &Value, right: &Value| {
            // Inside a filter (`select('lt', 7)`): what is not known is not selected.
            compare(*operator, left, right)
                .map(|holds| holds == Some(true))
                .map_err(|error| error_with_message(ErrorKind::InvalidOperation, error.to_message()))
        });
    }
}

/// Like `range` of minijinja, with a smaller limit.
fn range(lower: &Value, upper: Option<Value>, step: Option<Value>) -> Result<Value, Error> {
    let integer = |value: &Value| isize::try_from(plain(value));
    let lower = integer(lower)?;
    let upper = upper.as_ref().map(integer).transpose()?;
    let step = step.as_ref().map(integer).transpose()?;
    let reject = |message: Message| Err(error_with_message(ErrorKind::InvalidOperation, message));
    let (start, end) = upper.map_or((0, lower), |upper| (lower, upper));
    let step = step.unwrap_or(1);
    if step == 0 {
        return reject(msg!("`range` needs a step other than 0"));
    }
    let mut numbers = Vec::new();
    let mut next = start;
    while (step > 0 && next < end) || (step < 0 && next > end) {
        if numbers.len() >= MAX_RANGE {
            return Err(limit_error(msg!("`range` returns at most {MAX_RANGE} numbers")));
        }
        numbers.push(Value::from(next));
        let Some(following) = next.checked_add(step) else { break };
        next = following;
    }
    Ok(Value::from(numbers))
}

/// Like `divisibleby` of minijinja, which panics if the divisor is 0 or the quotient overflows.
fn divisible(value: &Value, divisor: &Value) -> bool {
    let integer = |value: &Value| i128::try_from(plain(value)).ok();
    let number = |value: &Value| f64::try_from(plain(value)).ok();
    match (integer(value), integer(divisor)) {
        // Every integer is divisible by -1, including the minimum, whose quotient overflows.
        (Some(value), Some(divisor)) => divisor != 0 && value.checked_rem(divisor).unwrap_or(0) == 0,
        _ => matches!((number(value), number(divisor)), (Some(value), Some(divisor)) if value % divisor == 0.0),
    }
}

/// The number of bytes that a rendering has written.
#[derive(Default)]
struct WrittenBytes(usize);

/// Like [`write_value`], but also marks unknown names inside lists and mappings.
pub(crate) fn write_with_marks(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match with_marks(value).filter(|_| !is_unknown(value)) {
        Some(marked) => write_value(out, state, &marked),
        None => write_value(out, state, value),
    }
}

/// Writes a value for a prompt: null as nothing, booleans and collections as JSON, texts unchanged.
fn write_value(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let mut available = MAX_WRITTEN.saturating_sub(state.get_or_insert_extension_with(WrittenBytes::default).0);
    let before = available;
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => {}
        ValueKind::Bool => out.write_str(if value.is_true() { "true" } else { "false" })?,
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            available = available.checked_sub(text.len()).ok_or_else(write_limit_error)?;
            out.write_str(text)?;
        }
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            if let Some(mark) = marked(value) {
                out.write_str(&mark)?;
                return Ok(());
            }
            let mut bounded = Bounded::new(available);
            if serde_json::to_writer(&mut bounded, &WithDigits(value.clone())).is_err() {
                if bounded.overflowed() {
                    return Err(write_limit_error());
                }
                return Err(Error::new(ErrorKind::BadSerialization, "this cannot be converted to text"));
            }
            let text = bounded.text();
            available = available.saturating_sub(text.len());
            out.write_str(&text)?;
        }
        _ => out.write_fmt(format_args!("{value}"))?,
    }
    if let Some(written) = state.get_extension_mut::<WrittenBytes>() {
        written.0 = written.0.saturating_add(before - available);
    }
    Ok(())
}

fn write_limit_error() -> Error {
    error_with_message(ErrorKind::WriteFailure, msg!("more than {MAX_WRITTEN} bytes were written in one rendering"))
}

/// The initial capacity of the output buffer, in bytes: enough for most prompts, to avoid reallocation.
const INITIAL_CAPACITY: usize = 8 * 1024;

/// A buffer with a maximum size.
#[derive(Debug)]
pub(crate) struct Bounded {
    buffer: Vec<u8>,
    bound: usize,
    overflowed: bool,
}

impl Bounded {
    pub(crate) fn new(bound: usize) -> Self {
        Self { buffer: Vec::with_capacity(bound.min(INITIAL_CAPACITY)), bound, overflowed: false }
    }

    pub(crate) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// The written text. minijinja and `serde_json` write only UTF-8; invalid bytes would be replaced.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        // With the standard library this check takes half of the rendering time of a Chinese text.
        match simdutf8::basic::from_utf8(&self.buffer) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&self.buffer),
        }
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.bound.saturating_sub(self.buffer.len()) {
            self.overflowed = true;
            return Err(io::Error::other(LimitExceeded));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct LimitExceeded;

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text is too long")
    }
}

impl std::error::Error for LimitExceeded {}

/// Whether the environment has a filter, test or function of that name.
pub fn has(environment: &Environment<'_>, kind: FeatureKind, name: &str) -> bool {
    let test = match kind {
        FeatureKind::Filter => "filter",
        FeatureKind::Test => "test",
        FeatureKind::Function => return environment.globals().any(|(known, _)| known == name),
    };
    if name == EVALUATE || name == COUNT {
        return false;
    }
    environment.empty_state().perform_test(test, &[Value::from(name)]).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::features::{FILTERS, FUNCTIONS, TESTS};
    use minijinja::context;

    fn render(source: &str) -> Result<String, Error> {
        let environment = environment(UndefinedBehavior::Strict);
        environment
            .render_str(source, context! { none => (), yes => true, list => ["一", "b"], half => 1.5, five => 5 })
    }

    #[test]
    fn values_are_formatted_for_prompts() {
        let table = [
            ("[{{ none }}]", "[]"),
            ("{{ yes }} {{ not yes }}", "true false"),
            ("{{ list }}", r#"["一","b"]"#),
            ("{{ {'a': none, 'b': [true]} }}", r#"{"a":null,"b":[true]}"#),
            ("{{ half }} {{ five }}", "1.5 5"),
            ("{{ list | map('upper') }}", r#"["一","B"]"#),
            ("{{ '<b>&' }}", "<b>&"),
            ("{{ none | default('x') }}{{ missing | d('y') }}{{ five | default('z') }}", "xy5"),
            ("{{ '' | default('x', true) }}", "x"),
            ("{{ range(3) }}{{ range(3, 0, -2) }}", "[0,1,2][3,1]"),
            ("{{ five is divisibleby 0 }} {{ five is divisibleby 5 }} {{ five is divisibleby 2 }}", "false true false"),
            (
                "{{ half is divisibleby 0.5 }} {{ half is divisibleby 0 }} {{ 'x' is divisibleby 1 }}",
                "true false false",
            ),
            ("{{ -170141183460469231731687303715884105728 is divisibleby -1 }}", "true"),
        ];
        for (source, expected) in table {
            assert_eq!(render(source).unwrap(), expected, "{source}");
        }
    }

    #[test]
    fn comparing_tests_follow_our_rules() {
        for source in ["{{ '35' is ge(18) }}", "{{ [1] is gt 3 }}", "{{ ['5'] | select('lt', 7) }}"] {
            let error = render(source).unwrap_err().to_string();
            assert!(error.contains("cannot be applied to"), "{source}: {error}");
        }
        assert_eq!(render("{{ [none, 2] | select('lt', 7) }}").unwrap(), "[2]");
        assert_eq!(render("{{ 5 is eq(5.0) }} {{ '5' is eq(5) }} {{ 1 is in([1.0]) }}").unwrap(), "true false true");
    }

    #[test]
    fn every_listed_filter_test_and_function_exists() {
        let environment = environment(UndefinedBehavior::Strict);
        for name in FILTERS.split('|') {
            assert!(has(&environment, FeatureKind::Filter, name), "{name}");
        }
        for name in TESTS.split('|') {
            assert!(has(&environment, FeatureKind::Test, name), "{name}");
        }
        let mut functions: Vec<&str> = environment.globals().map(|(name, _)| name).collect();
        let mut listed = FUNCTIONS.to_vec();
        functions.sort_unstable();
        listed.sort_unstable();
        assert_eq!(functions, listed);
        assert!(!has(&environment, FeatureKind::Filter, "unknown"));
    }

    #[test]
    fn captured_text_is_limited() {
        let big = "x".repeat(1024 * 1024);
        let environment = environment(UndefinedBehavior::Strict);
        let source = "{% set all %}{% for i in range(100) %}{{ big }}{% endfor %}{% endset %}{{ all | length }}";
        let error = environment.render_str(source, context! { big }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WriteFailure);
    }

    #[test]
    fn ranges_are_limited() {
        assert!(render("{{ range(1000000000) | length }}").is_err());
        assert!(render("{{ range(0, -1000000000, -1) | length }}").is_err());
        assert!(render("{{ range(1, 2, 0) }}").is_err());
    }
}
