//! The minijinja environment that texts, templates and expressions share: filters, tests, functions, limits, and how a
//! value is written (docs/language.md, docs/templates.md).
//!
//! What bounds a rendering: [`FUEL`] bounds its steps, [`MAX_OUTPUT`](crate::template::features::MAX_OUTPUT) what it gives, [`MAX_WRITTEN`] what it writes at
//! all (what `{% set %}…{% endset %}`, a macro or `{% filter %}` captures included), and
//! [`MAX_VALUE_BYTES`](crate::template::names::MAX_VALUE_BYTES) each value that goes in.
//!
//! **Fuel does not bound memory.** A step may be large: `~`, `+` and `*` on texts inside a template are instructions
//! of minijinja that cannot be hooked, and doubling a text in a loop (`{% set s = s ~ s %}`) or capturing a long literal
//! text many times can still take all memory. No simple rule refuses those shapes and nothing else, so none is tried:
//! templates and scripts are files of the project and as trusted as its commands. What a *person* or a *model* says
//! cannot do it: it is never parsed.

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use crate::template::error::of_message;
use std::borrow::Cow;
use std::fmt;
use std::io;

use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior};

use crate::expr::operators::{Operator, compare};
use crate::template::features::{FUEL, FeatureKind, MAX_NESTING, MAX_RANGE, MAX_WRITTEN};
use crate::template::missing::{is_unknown, marked, with_marks};
use crate::template::pattern::Patterns;

/// The tests that are comparisons, and the operator whose rules they follow.
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

/// An environment without templates, with `undefined` for names that nobody knows.
pub fn environment(undefined: UndefinedBehavior) -> Environment<'static> {
    let mut environment = Environment::new();
    minijinja_contrib::add_to_environment(&mut environment);
    environment.set_undefined_behavior(undefined);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(write_value);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(MAX_NESTING);
    // Errors then say which name was undefined and where. It costs nothing while there is no error. What else it
    // collects (source, locals) is dropped with minijinja's error, which never leaves this room.
    environment.set_debug(true);
    environment.remove_global("debug");
    environment.add_function("range", range);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_test("divisibleby", divisible);
    // As minijinja has them; a name that is only marked is none either.
    environment.add_test("defined", |value: &Value| !value.is_undefined() && !is_unknown(value));
    environment.add_test("undefined", |value: &Value| value.is_undefined() || is_unknown(value));
    let patterns = Patterns::default();
    environment.add_test("regex", move |value: &Value, pattern: &str| patterns.found(value, pattern));
    for (name, operator) in COMPARING_TESTS {
        environment.add_test(*name, move |left: &Value, right: &Value| {
            compare(*operator, left, right).map_err(|error| of_message(ErrorKind::InvalidOperation, error.to_message()))
        });
    }
    environment
}

/// `range` as minijinja has it, with a smaller bound.
fn range(lower: isize, upper: Option<isize>, step: Option<isize>) -> Result<Value, Error> {
    let refuse = |message: Message| Err(of_message(ErrorKind::InvalidOperation, message));
    let (start, end) = upper.map_or((0, lower), |upper| (lower, upper));
    let step = step.unwrap_or(1);
    if step == 0 {
        return refuse(msg!("`range` needs a step other than 0"));
    }
    let mut numbers = Vec::new();
    let mut next = start;
    while (step > 0 && next < end) || (step < 0 && next > end) {
        if numbers.len() >= MAX_RANGE {
            return refuse(msg!("`range` returns at most {MAX_RANGE} numbers"));
        }
        numbers.push(Value::from(next));
        let Some(following) = next.checked_add(step) else { break };
        next = following;
    }
    Ok(Value::from(numbers))
}

/// `divisibleby` as minijinja has it, which panics where the divisor is 0 or the quotient overflows.
fn divisible(value: &Value, by: &Value) -> bool {
    let whole = |value: &Value| i128::try_from(value.clone()).ok();
    let number = |value: &Value| f64::try_from(value.clone()).ok();
    match (whole(value), whole(by)) {
        // Everything is divisible by -1, also the least number, whose quotient there is not.
        (Some(value), Some(by)) => by != 0 && value.checked_rem(by).unwrap_or(0) == 0,
        _ => matches!((number(value), number(by)), (Some(value), Some(by)) if value % by == 0.0),
    }
}

/// `default`, which here also stands in for null: a variable that is declared and was never set is null, and the
/// author who writes `{{ 用户名 | default('朋友') }}` means that one too.
fn default(value: &Value, arguments: Rest<Value>) -> Result<Value, Error> {
    if arguments.len() > 2 {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let falsy_too = arguments.get(1).is_some_and(Value::is_true);
    if value.is_undefined() || value.is_none() || is_unknown(value) || (falsy_too && !value.is_true()) {
        return Ok(arguments.first().cloned().unwrap_or_else(|| Value::from("")));
    }
    Ok(value.clone())
}

/// How many bytes a rendering has written so far.
#[derive(Default)]
struct Written(usize);

/// The same as [`write_value`], with the names that nobody knows marked inside of lists and mappings too.
pub(crate) fn write_marked(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match with_marks(value).filter(|_| !is_unknown(value)) {
        Some(marked) => write_value(out, state, &marked),
        None => write_value(out, state, value),
    }
}

/// Writes a value as prompts want it: null as nothing, booleans and collections as JSON, texts as they are.
fn write_value(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let mut room = MAX_WRITTEN.saturating_sub(state.get_or_insert_extension_with(Written::default).0);
    let before = room;
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => {}
        ValueKind::Bool => out.write_str(if value.is_true() { "true" } else { "false" })?,
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            room = room.checked_sub(text.len()).ok_or_else(too_much)?;
            out.write_str(text)?;
        }
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            if let Some(mark) = marked(value) {
                out.write_str(&mark)?;
                return Ok(());
            }
            let mut bounded = Bounded::new(room);
            if serde_json::to_writer(&mut bounded, value).is_err() {
                if bounded.overflowed() {
                    return Err(too_much());
                }
                return Err(Error::new(ErrorKind::BadSerialization, "this cannot be converted to text"));
            }
            let text = bounded.text();
            room = room.saturating_sub(text.len());
            out.write_str(&text)?;
        }
        _ => out.write_fmt(format_args!("{value}"))?,
    }
    if let Some(written) = state.get_extension_mut::<Written>() {
        written.0 = written.0.saturating_add(before - room);
    }
    Ok(())
}

fn too_much() -> Error {
    of_message(ErrorKind::WriteFailure, msg!("more than {MAX_WRITTEN} bytes were written in one rendering"))
}

/// The room that a rendering begins with, in bytes: enough for most prompts, so that they are not moved as they grow.
const FIRST_ROOM: usize = 8 * 1024;

/// A buffer that refuses to grow over its bound.
#[derive(Debug)]
pub struct Bounded {
    buffer: Vec<u8>,
    bound: usize,
    overflowed: bool,
}

impl Bounded {
    pub fn new(bound: usize) -> Self {
        Self { buffer: Vec::with_capacity(bound.min(FIRST_ROOM)), bound, overflowed: false }
    }

    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// What was written. minijinja and `serde_json` write UTF-8 only; anything else would be replaced.
    pub fn text(&self) -> Cow<'_, str> {
        // The standard library takes half of the time of a rendering for this where the text is Chinese.
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
            return Err(io::Error::other(Full));
        }
        self.buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text is too long")
    }
}

impl std::error::Error for Full {}

/// Whether the environment has a filter or test of that name.
pub fn has(environment: &Environment<'_>, what: FeatureKind, name: &str) -> bool {
    let test = match what {
        FeatureKind::Filter => "filter",
        FeatureKind::Test => "test",
        FeatureKind::Function => return environment.globals().any(|(known, _)| known == name),
    };
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
    fn values_are_written_as_prompts_want_them() {
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
        for source in
            ["{{ '35' is ge(18) }}", "{{ [1] is gt 3 }}", "{{ none is lt 3 }}", "{{ ['5'] | select('lt', 7) }}"]
        {
            let error = render(source).unwrap_err().to_string();
            assert!(error.contains("cannot be applied to"), "{source}: {error}");
        }
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
    fn what_is_captured_is_bounded_too() {
        let big = "x".repeat(1024 * 1024);
        let environment = environment(UndefinedBehavior::Strict);
        let source = "{% set all %}{% for i in range(100) %}{{ big }}{% endfor %}{% endset %}{{ all | length }}";
        let error = environment.render_str(source, context! { big }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WriteFailure);
    }

    #[test]
    fn ranges_are_bounded() {
        assert!(render("{{ range(1000000000) | length }}").is_err());
        assert!(render("{{ range(0, -1000000000, -1) | length }}").is_err());
        assert!(render("{{ range(1, 2, 0) }}").is_err());
    }
}
