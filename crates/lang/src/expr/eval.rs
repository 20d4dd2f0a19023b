//! Evaluates expressions by the rules of docs/language.md "Texts": incompatible operands are an error, never a result.

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;
use std::sync::LazyLock;

use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, State, UndefinedBehavior};
use serde_json::Value as Json;

use crate::expr::inside::{lookup, slice};
use crate::expr::operators::{Operator, OperatorError, apply, compare, negate, shape};
use crate::expr::parse::{Expr, ExprError};
use crate::expr::reach::{is_default_filter, is_defined_test};
use crate::expr::tree::{Argument, ExprKind, ExprNode};
use crate::source::near::did_you_mean;
use crate::template::environment::environment;
use crate::template::error::render_error;
use crate::template::names::{MAX_VALUE_BYTES, TemplateNames};
use crate::value::compare::ValueShape;

/// The filters, tests and functions of all expressions in the process.
pub(crate) static ENVIRONMENT: LazyLock<Environment<'static>> =
    LazyLock::new(|| environment(UndefinedBehavior::Strict));

impl Expr {
    /// Evaluates the expression with these names.
    /// Errors: [`ExprError`]: an unknown name, incompatible operands, null where a value is needed, an overflow.
    pub fn eval(&self, names: &TemplateNames) -> Result<Json, ExprError> {
        let root = self.root();
        let value = Evaluation { source: self.source(), names, state: None }.value(root)?;
        serde_json::to_value(&value)
            .map_err(|_| ExprError::at(&root.range, "the result is not a value that can be stored"))
    }

    /// Evaluates the expression as a condition; null is false.
    /// Errors: As [`eval`](Self::eval), and a result that is neither a boolean nor null.
    pub fn truth(&self, names: &TemplateNames) -> Result<bool, ExprError> {
        Evaluation { source: self.source(), names, state: None }.truth(self.root(), "a condition")
    }
}

struct Evaluation<'a> {
    source: &'a str,
    names: &'a TemplateNames,
    /// Created at the first filter or test, because most conditions have none.
    state: Option<State<'static, 'static>>,
}

impl Evaluation<'_> {
    fn value(&mut self, node: &ExprNode) -> Result<Value, ExprError> {
        match &node.kind {
            ExprKind::Name(name) => self.name(name, &node.range)?.ok_or_else(|| self.unknown_name(name, &node.range)),
            ExprKind::Constant(value) => Ok(value.clone()),
            ExprKind::Not(of) => self.truth(of, "`not`").map(|truth| Value::from(!truth)),
            ExprKind::Negate(of) => {
                let value = self.value(of)?;
                negate(&value).map_err(|error| self.operator_error(error, node, &[(of, &value)]))
            }
            ExprKind::And(left, right) => {
                let both = self.truth(left, "`and`")? && self.truth(right, "`and`")?;
                Ok(Value::from(both))
            }
            ExprKind::Or(left, right) => {
                let either = self.truth(left, "`or`")? || self.truth(right, "`or`")?;
                Ok(Value::from(either))
            }
            ExprKind::Operation(operator, left, right) => {
                let (left_value, right_value) = (self.value(left)?, self.value(right)?);
                apply(*operator, &left_value, &right_value)
                    .map_err(|error| self.operator_error(error, node, &[(left, &left_value), (right, &right_value)]))
            }
            ExprKind::Chain(first, rest) => self.chain(first, rest),
            ExprKind::Choice { test, yes, no } => match (self.truth(test, "`if`")?, no) {
                (true, _) => self.value(yes),
                (false, Some(no)) => self.value(no),
                (false, None) => Ok(Value::from(())),
            },
            ExprKind::Filter(name, on, arguments) => {
                let value = if is_default_filter(name) { self.lenient(on)? } else { self.value(on)? };
                let mut all = vec![value];
                self.arguments(arguments, &mut all)?;
                let result = self.state().apply_filter(name, &all);
                let result = result.map_err(|error| failed(&node.range, msg!("the filter `{name}`"), &error))?;
                self.check_length(result, &node.range)
            }
            ExprKind::Test(name, on, arguments) => {
                let value = if is_defined_test(name) { self.lenient(on)? } else { self.value(on)? };
                let mut all = vec![value];
                self.arguments(arguments, &mut all)?;
                let result = self.state().perform_test(name, &all);
                result.map(Value::from).map_err(|error| failed(&node.range, msg!("the test `{name}`"), &error))
            }
            ExprKind::Attribute(of, name) => {
                let value = self.value(of)?;
                self.attribute(&value, name, of, &node.range)
            }
            ExprKind::Item(of, key) => {
                let (value, key) = (self.value(of)?, self.value(key)?);
                self.item(&value, &key, of, &node.range)
            }
            ExprKind::Slice { of, start, stop, step } => {
                let value = self.value(of)?;
                let start = self.index(start.as_deref())?;
                let stop = self.index(stop.as_deref())?;
                slice(&value, start, stop, *step)
                    .ok_or_else(|| ExprError::at(&node.range, msg!("{} cannot be sliced", shape(&value))))
            }
            ExprKind::Call(name, arguments) => {
                let mut all = Vec::new();
                self.arguments(arguments, &mut all)?;
                let function = ENVIRONMENT.globals().find(|(known, _)| known == name).map(|(_, function)| function);
                let function = function.ok_or_else(|| self.unknown_name(name, &node.range))?;
                function
                    .call(self.state(), &all)
                    .map_err(|error| failed(&node.range, Message::text(format!("`{name}()`")), &error))
            }
            ExprKind::List(items) => {
                items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>().map(Value::from)
            }
            ExprKind::Map(pairs) => {
                let mut map = Vec::with_capacity(pairs.len());
                for (key, value) in pairs {
                    let name = self.value(key)?;
                    if name.as_str().is_none() {
                        return Err(ExprError::at(&key.range, "the keys of an object must be strings"));
                    }
                    map.push((name, self.value(value)?));
                }
                Ok(Value::from_pairs(map))
            }
        }
    }

    fn chain(&mut self, first: &ExprNode, rest: &[(Operator, ExprNode)]) -> Result<Value, ExprError> {
        let (mut left, mut left_value) = (first, self.value(first)?);
        for (operator, right) in rest {
            let right_value = self.value(right)?;
            let step = ExprNode { kind: ExprKind::List(Vec::new()), range: left.range.start..right.range.end };
            let holds = compare(*operator, &left_value, &right_value)
                .map_err(|error| self.operator_error(error, &step, &[(left, &left_value), (right, &right_value)]))?;
            if !holds {
                return Ok(Value::from(false));
            }
            (left, left_value) = (right, right_value);
        }
        Ok(Value::from(true))
    }

    /// Evaluates an expression that may be missing: an unknown name and its attributes and items are undefined instead of an error.
    fn lenient(&mut self, node: &ExprNode) -> Result<Value, ExprError> {
        let (of, key) = match &node.kind {
            ExprKind::Name(name) => return Ok(self.name(name, &node.range)?.unwrap_or(Value::UNDEFINED)),
            ExprKind::Attribute(of, name) => (self.lenient(of)?, Value::from(name.as_str())),
            ExprKind::Item(of, key) => (self.lenient(of)?, self.value(key)?),
            _ => return self.value(node),
        };
        Ok(lookup(&of, &key).unwrap_or(Value::UNDEFINED))
    }

    fn truth(&mut self, node: &ExprNode, subject: &'static str) -> Result<bool, ExprError> {
        let value = self.value(node)?;
        match shape(&value) {
            ValueShape::Boolean => Ok(value.is_true()),
            ValueShape::Null => Ok(false),
            other => {
                let message = msg!(
                    "{who} needs true or false, but `{}` is {other}",
                    self.text(&node.range),
                    who = Message::word(subject)
                );
                let help = match other {
                    ValueShape::Number => "compare it, as in `x > 0`",
                    ValueShape::String => "compare it, as in `x == '…'` or `x != ''`",
                    ValueShape::List | ValueShape::Object => "check its length, as in `x | length > 0`",
                    _ => "compare it with something",
                };
                Err(ExprError::at(&node.range, message).with_help(help))
            }
        }
    }

    fn name(&self, name: &str, range: &Range<usize>) -> Result<Option<Value>, ExprError> {
        let found = self.names.look_up(name).transpose();
        found.map_err(|oversize| ExprError::at(range, oversize.to_message()))
    }

    fn unknown_name(&self, name: &str, range: &Range<usize>) -> ExprError {
        let known = self.names.known();
        let mut error = ExprError::at(range, msg!("`{name}` is not known here"));
        error.help = match name {
            "null" | "Null" | "NULL" | "nil" | "undefined" => Some(msg!("write `none`")),
            "TRUE" => Some(msg!("write `true`")),
            "FALSE" => Some(msg!("write `false`")),
            _ => did_you_mean(name, known.iter().map(String::as_str)),
        };
        error
    }

    fn attribute(&self, value: &Value, name: &str, of: &ExprNode, range: &Range<usize>) -> Result<Value, ExprError> {
        match shape(value) {
            ValueShape::Object => Ok(lookup(value, &Value::from(name)).unwrap_or_else(|| Value::from(()))),
            ValueShape::Null => Err(self.null_error(of, range)),
            other => {
                let message = msg!("`{}` is {other} and has no `{name}`", self.text(&of.range));
                let error = ExprError::at(range, message);
                Err(if matches!(name, "length" | "size" | "len") {
                    error.with_help("write `x | length`")
                } else {
                    error
                })
            }
        }
    }

    fn item(&self, value: &Value, key: &Value, of: &ExprNode, range: &Range<usize>) -> Result<Value, ExprError> {
        match (shape(value), shape(key)) {
            (ValueShape::Null, _) => Err(self.null_error(of, range)),
            (ValueShape::Object, ValueShape::String) | (ValueShape::List | ValueShape::String, ValueShape::Number) => {
                Ok(lookup(value, key).unwrap_or_else(|| Value::from(())))
            }
            (other, key) => Err(ExprError::at(
                range,
                msg!("`{}` is {other} and cannot be indexed with {key}", self.text(&of.range)),
            )),
        }
    }

    fn null_error(&self, of: &ExprNode, range: &Range<usize>) -> ExprError {
        let text = self.text(&of.range);
        ExprError::at(range, msg!("`{text}` is null and contains nothing"))
            .with_help(msg!("check first, as in `{text} is not none and …`"))
    }

    fn index(&mut self, part: Option<&ExprNode>) -> Result<Option<i64>, ExprError> {
        let Some(part) = part else { return Ok(None) };
        let value = self.value(part)?;
        if value.is_none() {
            return Ok(None);
        }
        let index = if value.is_integer() { value.as_i64() } else { None };
        index.map(Some).ok_or_else(|| ExprError::at(&part.range, "the bounds of a slice must be whole numbers"))
    }

    fn arguments(&mut self, arguments: &[Argument], all: &mut Vec<Value>) -> Result<(), ExprError> {
        let mut named = Vec::new();
        for argument in arguments {
            match argument {
                Argument::Plain(node) => all.push(self.value(node)?),
                Argument::Named(name, node) => named.push((name.clone(), self.value(node)?)),
            }
        }
        if !named.is_empty() {
            all.push(Value::from(named.into_iter().collect::<Kwargs>()));
        }
        Ok(())
    }

    fn check_length(&self, value: Value, range: &Range<usize>) -> Result<Value, ExprError> {
        if value.as_str().is_some_and(|text| text.len() > MAX_VALUE_BYTES) {
            return Err(ExprError::at(range, msg!("the result is longer than {MAX_VALUE_BYTES} bytes")));
        }
        Ok(value)
    }

    fn state(&mut self) -> &mut State<'static, 'static> {
        self.state.get_or_insert_with(|| ENVIRONMENT.empty_state())
    }

    fn operator_error(&self, error: OperatorError, node: &ExprNode, operands: &[(&ExprNode, &Value)]) -> ExprError {
        let message = match &error {
            OperatorError::Mismatch(mismatch) if operands.len() == 1 => {
                msg!("`-` cannot be applied to {}", mismatch.right)
            }
            other => other.to_message(),
        };
        let error = ExprError::at(&node.range, msg!("{message}, in `{}`", self.text(&node.range)));
        let null = operands.iter().find(|(_, value)| value.is_none());
        match null {
            Some((operand, _)) if !matches!(operand.kind, ExprKind::Constant(_)) => {
                let text = self.text(&operand.range);
                error.with_help(msg!(
                    "`{text}` is null: check first (`{text} is not none and …`) or write `{text} | default(…)`"
                ))
            }
            _ => error,
        }
    }

    fn text(&self, range: &Range<usize>) -> &str {
        self.source.get(range.clone()).unwrap_or(self.source)
    }
}

fn failed(range: &Range<usize>, subject: Message, error: &minijinja::Error) -> ExprError {
    ExprError::at(range, msg!("{subject}: {message}", message = render_error(error).message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::names::session_names;
    use proptest::prelude::*;
    use serde_json::json;

    fn names() -> TemplateNames {
        session_names(json!({
            "年龄": 18, "n": null, "text": "35", "yes": true, "no": false, "list": [1, "a", null], "空": [],
            "metadata": { "crisis_signal": true, "nested": { "deep": [1, 2] } }, "last_user_message": "我不想活了",
            "用户名": "小林", "half": 0.5,
        }))
    }

    fn eval(source: &str) -> Result<Json, ExprError> {
        Expr::parse(source)?.eval(&names())
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
            ("n or no", json!(false)),
            ("n and unknown", json!(false)),
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
            ("yes or no and 1 < n", "", ""),
            ("no or n < 1", "`<` cannot be applied to null and a number", "n < 1"),
            ("1 < 2 < 'a'", "`<` cannot be applied to a number and text", "2 < 'a'"),
            ("1 + 'a'", "`+` cannot be applied to a number and text", "1 + 'a'"),
            ("'a' * 3", "`*` cannot be applied to text and a number", "'a' * 3"),
            ("1 in 年龄", "`in` cannot be applied to a number and a number", "1 in 年龄"),
            ("n not in list", "`not in` cannot be applied to null and a list", "n not in list"),
            ("5 in '5'", "`in` cannot be applied to a number and text", "5 in '5'"),
            ("'a' ~ n", "`~` cannot be applied to text and null", "'a' ~ n"),
            ("-text", "`-` cannot be applied to text", "-text"),
            ("1 / 0", "divides by zero", "1 / 0"),
            ("1 % 0.0", "divides by zero", "1 % 0.0"),
            ("0 ** -1", "divides by zero", "0 ** -1"),
            ("9223372036854775807 * 9223372036854775807", "too large", "9223372036854775807 * 9223372036854775807"),
            ("10 ** 400", "too large", "10 ** 400"),
            ("10.0 ** 400", "too large", "10.0 ** 400"),
            ("yes and 用户命", "`用户命` is not known here", "用户命"),
            ("n.a", "`n` is null and contains nothing", "n.a"),
            ("metadata.missing.a", "`metadata.missing` is null", "metadata.missing.a"),
            ("n[0]", "`n` is null", "n[0]"),
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
            if at.is_empty() {
                assert_eq!(eval(source).unwrap(), json!(true), "{source}");
                continue;
            }
            let error = eval(source).unwrap_err();
            assert!(error.message.to_string().contains(message), "{source}: {error}");
            assert_eq!(&source[error.range.unwrap()], at, "{source}: {}", error.message);
            assert!(!error.message.to_string().contains("小林"), "{source}: {}", error.message);
        }
    }

    #[test]
    fn a_condition_is_a_boolean_or_null() {
        let truth = |source: &str| Expr::parse(source).unwrap().truth(&names());
        assert_eq!(truth("年龄 >= 18"), Ok(true));
        assert_eq!(truth("n"), Ok(false));
        assert_eq!(truth("metadata.missing"), Ok(false));
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
            ("n < 3", "`n` is null: check first (`n is not none and …`) or write `n | default(…)`"),
            ("n.a", "check first, as in `n is not none and …`"),
            ("list.length", "write `x | length`"),
            ("list", "check its length, as in `x | length > 0`"),
        ];
        for (source, help) in table {
            let error = Expr::parse(source).unwrap().truth(&names()).unwrap_err();
            assert_eq!(error.help.as_ref().map(ToString::to_string).as_deref(), Some(help), "{source}: {error}");
        }
    }

    proptest! {
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
}
