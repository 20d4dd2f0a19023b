//! Evaluates expressions by the rules of docs/language.md "Expressions": null makes the result of an operator null, `not`, `and` and
//! `or` follow three-valued logic, and incompatible operands are an error, never a result.
//!
//! The expressions of texts and templates are evaluated by the same code in another dialect.

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use std::ops::Range;

use minijinja::Error;
use minijinja::value::{Kwargs, Value, ValueKind};

use crate::expr::bindings::Bindings;
use crate::expr::failure::{EvaluationError, ExpressionDialect, is_limit};
use crate::expr::inside::{lookup, slice};
use crate::expr::operators::{Operator, OperatorError, apply, compare, negate, shape};
use crate::expr::parse::ExprError;
use crate::expr::reach::{is_default_filter, is_defined_test};
use crate::expr::tree::{Argument, ExprKind, ExprNode, balanced};
use crate::template::environment::comparing_test;
use crate::template::error::{own_message, render_error};
use crate::template::exact_number::plain;
use crate::template::missing::is_unknown;
use crate::value::compare::ValueShape;

/// The filters that take null as a value. Any other filter of null is null.
pub const NULL_FILTERS: [&str; 5] = ["default", "d", "bool", "tojson", "pprint"];

/// One evaluation of an expression.
pub(crate) struct Evaluation<'a> {
    source: &'a str,
    dialect: ExpressionDialect,
    bindings: &'a mut dyn Bindings,
    /// The part that made the last value null, if an operation did.
    pub(crate) cause: Option<Range<usize>>,
    /// The parts that made the test of an `if` null.
    pub(crate) null_tests: Vec<Range<usize>>,
    /// The number of nodes that were evaluated.
    pub(crate) steps: u64,
    /// The values of the calls that only minijinja can make.
    pub(crate) native_calls: &'a [Value],
}

impl<'a> Evaluation<'a> {
    pub(crate) fn new(source: &'a str, dialect: ExpressionDialect, bindings: &'a mut dyn Bindings) -> Self {
        Self { source, dialect, bindings, cause: None, null_tests: Vec::new(), steps: 0, native_calls: &[] }
    }

    /// Evaluates a node. Afterwards, `cause` is set if an operation made the value null.
    pub(crate) fn value(&mut self, node: &ExprNode) -> Result<Value, EvaluationError> {
        self.steps += 1;
        self.cause = None;
        match &node.kind {
            ExprKind::Name(name) => self.name(name, node),
            ExprKind::Constant(value) => Ok(value.clone()),
            ExprKind::Not(of) => {
                let (value, cause) = self.operand(of)?;
                match self.truth_of(&value, of, "`not`")? {
                    Some(truth) => Ok(Value::from(!truth)),
                    None => Ok(self.null(cause, &value)),
                }
            }
            ExprKind::Negate(of) => {
                let (value, cause) = self.operand(of)?;
                if cause.is_some() {
                    return Ok(self.null(cause, &value));
                }
                negate(&value).map_err(|error| self.operator_error(&error, &node.range, true).into())
            }
            ExprKind::And(left, right) => self.joined(left, right, false),
            ExprKind::Or(left, right) => self.joined(left, right, true),
            ExprKind::Operation(operator, left, right) => {
                let left = self.operand(left)?;
                let right = self.operand(right)?;
                self.operation(*operator, left, right, &node.range)
            }
            ExprKind::Chain(first, rest) => self.chain(first, rest),
            ExprKind::Choice { test, yes, no } => {
                let (value, cause) = self.operand(test)?;
                let truth = self.truth_of(&value, test, "`if`")?;
                if truth.is_none() {
                    self.null_tests.extend(cause);
                }
                match (truth == Some(true), no) {
                    (true, _) => self.value(yes),
                    (false, Some(no)) => self.value(no),
                    (false, None) => Ok(Value::from(())),
                }
            }
            ExprKind::Filter(name, on, arguments) => self.filter(name, on, arguments, node),
            ExprKind::Test(name, on, arguments) => self.test(name, on, arguments, node),
            ExprKind::Attribute(of, name) => {
                let (value, cause) = self.operand(of)?;
                match cause {
                    Some(_) => Ok(self.part_of_null(cause, &value, &Value::from(name.as_str()))),
                    None => self.attribute(&value, name, of, node),
                }
            }
            ExprKind::Item(of, key) => {
                let (value, cause) = self.operand(of)?;
                let (key, key_cause) = self.operand(key)?;
                match cause.or(key_cause) {
                    Some(cause) => Ok(self.part_of_null(Some(cause), &value, &key)),
                    None => self.item(&value, &key, of, node),
                }
            }
            ExprKind::Slice { of, start, stop, step } => {
                let (value, cause) = self.operand(of)?;
                if cause.is_some() {
                    return Ok(self.null(cause, &value));
                }
                let start = self.index(start.as_deref())?;
                let stop = self.index(stop.as_deref())?;
                let part = slice(&value, start, stop, *step)
                    .ok_or_else(|| ExprError::at(&node.range, msg!("{} cannot be sliced", shape(&value))))?;
                self.counted(part, &node.range)
            }
            ExprKind::Call(name, arguments) => self.call(name, arguments, node),
            ExprKind::NativeCall(number) => Ok(self.native_calls.get(*number).cloned().unwrap_or_default()),
            ExprKind::List(items) => {
                let items = items.iter().map(|item| self.value(item)).collect::<Result<Vec<_>, _>>()?;
                self.cause = None;
                self.counted(Value::from(items), &node.range)
            }
            ExprKind::Map(pairs) => {
                let mut map = Vec::with_capacity(pairs.len());
                for (key, value) in pairs {
                    let name = self.value(key)?;
                    if name.as_str().is_none() {
                        return Err(ExprError::at(&key.range, "the keys of an object must be strings").into());
                    }
                    map.push((name, self.value(value)?));
                }
                self.cause = None;
                self.counted(Value::from_pairs(map), &node.range)
            }
        }
    }

    /// Evaluates a node as a condition; `None` is null.
    pub(crate) fn condition(
        &mut self,
        node: &ExprNode,
        subject: &'static str,
    ) -> Result<Option<bool>, EvaluationError> {
        let value = self.value(node)?;
        self.truth_of(&value, node, subject)
    }

    /// Evaluates an operand. If it is null, also returns the part that made it null.
    fn operand(&mut self, node: &ExprNode) -> Result<(Value, Option<Range<usize>>), EvaluationError> {
        let value = self.value(node)?;
        let cause = self.cause.take();
        let cause = (shape(&value) == ValueShape::Null).then(|| cause.unwrap_or_else(|| node.range.clone()));
        Ok((value, cause))
    }

    /// Null, as the result of an operation on the null `value`. The mark of an unknown name stays.
    fn null(&mut self, cause: Option<Range<usize>>, value: &Value) -> Value {
        self.cause = cause;
        if is_unknown(value) { value.clone() } else { Value::from(()) }
    }

    fn part_of_null(&mut self, cause: Option<Range<usize>>, value: &Value, key: &Value) -> Value {
        match value.get_item(key) {
            Ok(part) if is_unknown(&part) => self.null(cause, &part),
            _ => self.null(cause, value),
        }
    }

    fn operation(
        &mut self,
        operator: Operator,
        (left, left_cause): (Value, Option<Range<usize>>),
        (right, right_cause): (Value, Option<Range<usize>>),
        range: &Range<usize>,
    ) -> Result<Value, EvaluationError> {
        let result = apply(operator, &left, &right).map_err(|error| {
            let failed = self.operator_error(&error, range, false);
            match error {
                OperatorError::TooLong(_) => EvaluationError::Limit(Box::new(failed)),
                _ => failed.into(),
            }
        })?;
        if shape(&result) == ValueShape::Null {
            let null = if left_cause.is_some() { &left } else { &right };
            return Ok(self.null(left_cause.or(right_cause), null));
        }
        self.counted(result, range)
    }

    /// `and`, or `or` if `deciding` is true: one operand with that truth decides the result. In texts and templates the result is the
    /// deciding operand itself, so that `{{ name or '…' }}` gives a value.
    fn joined(&mut self, left: &ExprNode, right: &ExprNode, deciding: bool) -> Result<Value, EvaluationError> {
        let subject = if deciding { "`or`" } else { "`and`" };
        let as_result = |value: Value, truth: Option<bool>, dialect: ExpressionDialect| match dialect {
            ExpressionDialect::Expression => Value::from(truth),
            ExpressionDialect::Text | ExpressionDialect::Template => value,
        };
        let (left_value, left_cause) = self.joined_operand(left)?;
        let left_truth = self.truth_of(&left_value, left, subject)?;
        if left_truth == Some(deciding) {
            return Ok(as_result(left_value, left_truth, self.dialect));
        }
        let (right_value, right_cause) = self.joined_operand(right)?;
        let right_truth = self.truth_of(&right_value, right, subject)?;
        let is_null = left_truth.is_none() && right_truth != Some(deciding);
        // `{{ count or 0 }}` gives 0: only a boolean is a truth value that null leaves open.
        let replaces =
            self.dialect != ExpressionDialect::Expression && deciding && right_value.kind() != ValueKind::Bool;
        if is_null && !(replaces && right_truth.is_some()) {
            return Ok(self.null(left_cause, &left_value));
        }
        self.cause = right_cause;
        Ok(as_result(right_value, right_truth, self.dialect))
    }

    /// As [`operand`](Self::operand); but a name alone that is null in `and` and `or` of a text is no cause: it is tested.
    fn joined_operand(&mut self, node: &ExprNode) -> Result<(Value, Option<Range<usize>>), EvaluationError> {
        if self.dialect == ExpressionDialect::Expression {
            return self.operand(node);
        }
        let value = self.value(node)?;
        Ok((value, self.cause.take()))
    }

    fn chain(&mut self, first: &ExprNode, rest: &[(Operator, ExprNode)]) -> Result<Value, EvaluationError> {
        let (mut left_node, mut left) = (first, self.operand(first)?);
        let mut null = None;
        for (operator, right_node) in rest {
            let right = self.operand(right_node)?;
            let range = left_node.range.start..right_node.range.end;
            match compare(*operator, &left.0, &right.0).map_err(|error| self.operator_error(&error, &range, false))? {
                Some(true) => {}
                Some(false) => return Ok(Value::from(false)),
                None => {
                    let value = if left.1.is_some() { &left.0 } else { &right.0 };
                    null = null.or_else(|| Some((left.1.clone().or_else(|| right.1.clone()), value.clone())));
                }
            }
            (left_node, left) = (right_node, right);
        }
        Ok(match null {
            Some((cause, value)) => self.null(cause, &value),
            None => Value::from(true),
        })
    }

    fn filter(
        &mut self,
        name: &str,
        on: &ExprNode,
        arguments: &[Argument],
        node: &ExprNode,
    ) -> Result<Value, EvaluationError> {
        let (value, cause) = if is_default_filter(name) { (self.lenient(on)?, None) } else { self.operand(on)? };
        if cause.is_some() && !NULL_FILTERS.contains(&name) {
            return Ok(self.null(cause, &value));
        }
        let mut all = vec![value];
        let null = self.arguments(arguments, &mut all)?;
        let result = self.bindings.apply_filter(name, &all);
        let subject = || msg!("the filter `{name}`");
        self.result(result, null, &node.range, subject)
    }

    fn test(
        &mut self,
        name: &str,
        on: &ExprNode,
        arguments: &[Argument],
        node: &ExprNode,
    ) -> Result<Value, EvaluationError> {
        let (value, cause) = if is_defined_test(name) { (self.lenient(on)?, None) } else { self.operand(on)? };
        if let (Some(operator), [Argument::Plain(right)]) = (comparing_test(name), arguments) {
            let right = self.operand(right)?;
            return self.operation(operator, (value, cause), right, &node.range);
        }
        let mut all = vec![value];
        let null = self.arguments(arguments, &mut all)?;
        let result = self.bindings.perform_test(name, &all).map(Value::from);
        self.result(result, cause.or(null), &node.range, || msg!("the test `{name}`"))
    }

    fn call(&mut self, name: &str, arguments: &[Argument], node: &ExprNode) -> Result<Value, EvaluationError> {
        let mut all = Vec::new();
        let null = self.arguments(arguments, &mut all)?;
        match self.bindings.call(name, &all) {
            None => Err(self.unknown_name(name, &node.range)),
            // An error inside a macro has its own position.
            Some(Err(error)) if self.bindings.is_macro(name) => Err(EvaluationError::Template(error)),
            Some(result) => self.result(result, null, &node.range, || Message::text(format!("`{name}()`"))),
        }
    }

    /// The result of a filter, test or function. If it failed and one of its values is null, the result is null.
    fn result(
        &mut self,
        result: Result<Value, Error>,
        null: Option<Range<usize>>,
        range: &Range<usize>,
        subject: impl FnOnce() -> Message,
    ) -> Result<Value, EvaluationError> {
        match result {
            Ok(value) => Ok(value),
            Err(error) if is_limit(&error) => Err(match own_message(&error) {
                Some(message) => {
                    let message = msg!("{subject}: {message}", subject = subject());
                    EvaluationError::Limit(Box::new(ExprError::at(range, message)))
                }
                None => EvaluationError::Template(error),
            }),
            Err(_) if null.is_some() => Ok(self.null(null, &Value::from(()))),
            Err(error) => {
                let message = msg!("{subject}: {message}", subject = subject(), message = render_error(&error).message);
                Err(ExprError::at(range, message).into())
            }
        }
    }

    /// Evaluates an expression that may be missing: an unknown name and its attributes and items are undefined instead of an error.
    fn lenient(&mut self, node: &ExprNode) -> Result<Value, EvaluationError> {
        let (of, key) = match &node.kind {
            ExprKind::Name(name) => return Ok(self.look_up(name, &node.range)?.unwrap_or(Value::UNDEFINED)),
            ExprKind::Attribute(of, name) => (self.lenient(of)?, Value::from(name.as_str())),
            ExprKind::Item(of, key) => (self.lenient(of)?, self.value(key)?),
            _ => {
                let value = self.value(node)?;
                self.cause = None;
                return Ok(value);
            }
        };
        if is_unknown(&of) {
            return Ok(of.get_item(&key).unwrap_or(Value::UNDEFINED));
        }
        let found = lookup(&of, &key).or_else(|| self.dynamic_item(&of, &key));
        Ok(found.unwrap_or(Value::UNDEFINED))
    }

    fn truth_of(&self, value: &Value, node: &ExprNode, subject: &'static str) -> Result<Option<bool>, EvaluationError> {
        match shape(value) {
            ValueShape::Boolean => Ok(Some(value.is_true())),
            ValueShape::Null => Ok(None),
            _ if self.dialect != ExpressionDialect::Expression => Ok(Some(value.is_true())),
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
                Err(ExprError::at(&node.range, message).with_help(help).into())
            }
        }
    }

    fn look_up(&mut self, name: &str, range: &Range<usize>) -> Result<Option<Value>, EvaluationError> {
        let found = self.bindings.look_up(name).transpose();
        found.map_err(|message| EvaluationError::Limit(Box::new(ExprError::at(range, message))))
    }

    fn name(&mut self, name: &str, node: &ExprNode) -> Result<Value, EvaluationError> {
        match self.look_up(name, &node.range)? {
            Some(value) => Ok(value),
            None if self.dialect == ExpressionDialect::Text => Ok(Value::from(())),
            None => Err(self.unknown_name(name, &node.range)),
        }
    }

    fn unknown_name(&self, name: &str, range: &Range<usize>) -> EvaluationError {
        EvaluationError::unknown_name(name, range, &self.bindings.known())
    }

    fn attribute(
        &mut self,
        value: &Value,
        name: &str,
        of: &ExprNode,
        node: &ExprNode,
    ) -> Result<Value, EvaluationError> {
        let key = Value::from(name);
        if shape(value) == ValueShape::Object || self.dialect != ExpressionDialect::Expression {
            return self.found(lookup(value, &key).or_else(|| self.dynamic_item(value, &key)), node);
        }
        let message = msg!("`{}` is {} and has no `{name}`", self.text(&of.range), shape(value));
        let error = ExprError::at(&node.range, message);
        Err(match name {
            "length" | "size" | "len" => error.with_help("write `x | length`"),
            _ => error,
        }
        .into())
    }

    fn item(&mut self, value: &Value, key: &Value, of: &ExprNode, node: &ExprNode) -> Result<Value, EvaluationError> {
        let (of_shape, key_shape) = (shape(value), shape(key));
        let fits = matches!(
            (of_shape, key_shape),
            (ValueShape::Object, ValueShape::String) | (ValueShape::List | ValueShape::String, ValueShape::Number)
        );
        if fits || self.dialect != ExpressionDialect::Expression {
            return self.found(lookup(value, key).or_else(|| self.dynamic_item(value, key)), node);
        }
        let message = msg!("`{}` is {of_shape} and cannot be indexed with {key_shape}", self.text(&of.range));
        Err(ExprError::at(&node.range, message).into())
    }

    /// An attribute or item of a value that only minijinja creates: a loop, a namespace, an imported template.
    fn dynamic_item(&self, value: &Value, key: &Value) -> Option<Value> {
        let is_dynamic = self.dialect != ExpressionDialect::Expression && value.as_object().is_some();
        is_dynamic.then(|| value.get_item(key).ok()).flatten().filter(|item| !item.is_undefined())
    }

    /// An item that may be missing: null, except in a template, where a missing attribute is an error like an unknown name.
    fn found(&mut self, item: Option<Value>, node: &ExprNode) -> Result<Value, EvaluationError> {
        match item {
            Some(item) => Ok(item),
            None if self.dialect == ExpressionDialect::Template => {
                Err(EvaluationError::unknown_part(self.text(&node.range), &node.range))
            }
            None => Ok(Value::from(())),
        }
    }

    fn index(&mut self, part: Option<&ExprNode>) -> Result<Option<i64>, EvaluationError> {
        let Some(part) = part else { return Ok(None) };
        let value = plain(&self.value(part)?);
        self.cause = None;
        if value.is_none() {
            return Ok(None);
        }
        let index = if value.is_integer() { value.as_i64() } else { None };
        index.map(Some).ok_or_else(|| ExprError::at(&part.range, "the bounds of a slice must be whole numbers").into())
    }

    /// Appends the values of `arguments` to `all`. Returns the part that makes the first null argument null.
    fn arguments(
        &mut self,
        arguments: &[Argument],
        all: &mut Vec<Value>,
    ) -> Result<Option<Range<usize>>, EvaluationError> {
        let mut named = Vec::new();
        let mut null = None;
        for argument in arguments {
            let (Argument::Plain(node) | Argument::Named(_, node)) = argument;
            let (value, cause) = self.operand(node)?;
            null = null.or(cause);
            match argument {
                Argument::Plain(_) => all.push(value),
                Argument::Named(name, _) => named.push((name.clone(), value)),
            }
        }
        if !named.is_empty() {
            all.push(Value::from(named.into_iter().collect::<Kwargs>()));
        }
        Ok(null)
    }

    /// Counts a new text, list or object; the items of a list are not new.
    fn counted(&mut self, value: Value, range: &Range<usize>) -> Result<Value, EvaluationError> {
        let is_text = value.as_str().is_some();
        if is_text || matches!(shape(&value), ValueShape::List | ValueShape::Object) {
            let counted = self.bindings.memory().count(&value, is_text);
            counted.map_err(|message| EvaluationError::Limit(Box::new(ExprError::at(range, message))))?;
        }
        Ok(value)
    }

    fn operator_error(&self, error: &OperatorError, range: &Range<usize>, is_unary: bool) -> ExprError {
        let message = match error {
            OperatorError::Mismatch(mismatch) if is_unary => msg!("`-` cannot be applied to {}", mismatch.right),
            other => other.to_message(),
        };
        ExprError::at(range, msg!("{message}, in `{}`", self.text(&balanced(self.source, range))))
    }

    pub(crate) fn text(&self, range: &Range<usize>) -> &str {
        self.source.get(range.clone()).unwrap_or(self.source)
    }
}

#[cfg(test)]
mod tests;
