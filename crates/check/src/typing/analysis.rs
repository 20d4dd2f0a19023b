//! Finds type errors in an expression, based on the declarations of its names. The analysis is pure, and linear in the size
//! of the expression except for chains of `and` and `or`, whose length the parser limits.
//!
//! It reports only what is true for every value that the declarations allow. A value that may be null is not a finding,
//! because only the run time value decides. After a finding, the type of that part is unknown, so that nothing is reported twice.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::collected::{DeclaredAs, ExpressionRole};
use crate::typing::contradiction::{JoinedComparisons, exclude_one_another};
use crate::typing::dates::not_a_date;
use crate::typing::finding::{TypeFinding, TypeMistake};
use crate::typing::known_types::{NUMBERS, TESTS_OF_ANY_VALUE, TEXTS};
use crate::typing::suggestion;
use crate::typing::type_set::TypeSet;
use bcc_lang::expr::eval::NULL_FILTERS;
use bcc_lang::expr::operators::{Operator, apply};
use bcc_lang::expr::parse::Expr;
use bcc_lang::expr::tree::{Argument, ExprKind, ExprNode, balanced};
use bcc_lang::template::unknown::SourceRepair;
use bcc_lang::value::compare::{Family, ValueShape};

/// Finds the type errors in an expression.
pub(crate) fn analyse(
    expression: &Expr,
    role: ExpressionRole,
    declared: &BTreeMap<String, DeclaredAs>,
) -> Vec<TypeFinding> {
    let mut analysis = Analysis::of(expression.source(), declared);
    let root = expression.root();
    match role {
        ExpressionRole::Condition => {
            analysis.check_condition(root, "a condition");
        }
        // A separate rule checks that `for_each` iterates over a list.
        ExpressionRole::Value | ExpressionRole::List => {
            analysis.infer(root);
        }
    }
    analysis.report_outermost_constants();
    analysis.found.sort_by_key(|found| found.range.start);
    analysis.found
}

/// The result of an operation on operands of which any may be null.
fn nullable_with(result: TypeSet, operands: &[&TypeSet]) -> TypeSet {
    if operands.iter().any(|operand| operand.may_be(ValueShape::Null)) { result.nullable() } else { result }
}

pub struct Analysis<'a> {
    pub source: &'a str,
    pub declared: &'a BTreeMap<String, DeclaredAs>,
    pub(super) found: Vec<TypeFinding>,
    /// Conditions with a constant result.
    constants: Vec<TypeFinding>,
    /// Whether it is part of an author text.
    pub(super) in_text: bool,
}

impl<'a> Analysis<'a> {
    pub(super) fn of(source: &'a str, declared: &'a BTreeMap<String, DeclaredAs>) -> Self {
        Self { source, declared, found: vec![], constants: vec![], in_text: false }
    }
}

impl Analysis<'_> {
    /// Extends the range to the brackets that open before it and close inside it: a part starts at its first name, so the
    /// range of `(age) is defined` starts after the bracket.
    pub fn balanced(&self, range: &Range<usize>) -> Range<usize> {
        balanced(self.source, range)
    }

    pub fn text(&self, node: &ExprNode) -> &str {
        self.source.get(node.range.clone()).unwrap_or_default()
    }

    pub(super) fn infer(&mut self, node: &ExprNode) -> TypeSet {
        match &node.kind {
            ExprKind::Name(name) => self.name(name),
            ExprKind::Constant(value) => TypeSet::exactly(value),
            ExprKind::Not(of) => {
                let types = self.infer(of);
                self.check_condition_types(of, &types, "`not`", None);
                types.negated()
            }
            ExprKind::Negate(of) => {
                let types = self.infer(of);
                if types.is_none_of(&[ValueShape::Number]) {
                    let help = "only a number can be negated; use `not` to invert true and false";
                    return self.mismatch(
                        &node.range,
                        msg!("`-` needs a number, but {}", suggestion::is(self, of, &types)),
                        help,
                    );
                }
                nullable_with(TypeSet::of(&[ValueShape::Number]), &[&types])
            }
            // These give one of their sides there, or a part that may not exist.
            ExprKind::And(..)
            | ExprKind::Or(..)
            | ExprKind::Attribute(..)
            | ExprKind::Item(..)
            | ExprKind::Slice { .. }
                if self.in_text =>
            {
                node.each_part(&mut |part| drop(self.infer(part)));
                TypeSet::unknown()
            }
            ExprKind::And(left, right) => self.check_join(node, JoinedComparisons::And, left, right),
            ExprKind::Or(left, right) => self.check_join(node, JoinedComparisons::Or, left, right),
            ExprKind::Operation(operator, left, right) => {
                let (left_types, right_types) = (self.infer(left), self.infer(right));
                self.operation(*operator, (left, &left_types), (right, &right_types))
            }
            ExprKind::Chain(first, rest) => {
                let mut left = (first.as_ref(), self.infer(first));
                let (mut all, mut nullable) = (Some(true), false);
                for (operator, right) in rest {
                    let right_types = self.infer(right);
                    let step = self.operation(*operator, (left.0, &left.1), (right, &right_types));
                    nullable |= step.may_be(ValueShape::Null);
                    all = match (all, step.truth()) {
                        (Some(false), _) | (_, Some(false)) => Some(false),
                        (Some(true), Some(true)) => Some(true),
                        _ => None,
                    };
                    left = (right, right_types);
                }
                TypeSet::truth_or_null(all, nullable)
            }
            ExprKind::Choice { test, yes, no } => {
                self.check_condition(test, "`if`");
                let yes = self.infer(yes);
                let no = no.as_ref().map_or_else(|| TypeSet::of(&[ValueShape::Null]), |no| self.infer(no));
                yes.or(&no)
            }
            ExprKind::Filter(name, on, arguments) => self.filter(name, on, arguments, &node.range),
            ExprKind::Test(name, on, arguments) => self.test(name, on, arguments, &node.range),
            ExprKind::Attribute(of, name) => {
                let types = self.infer(of);
                if types.is_none_of(&[ValueShape::Object]) {
                    let message = msg!("{} and has no field `{name}`", suggestion::is(self, of, &types));
                    let (help, repair) = suggestion::attribute(self, of, name, &types, &node.range);
                    return self.report(TypeMistake::Mismatch, &node.range, message, help, repair);
                }
                TypeSet::unknown()
            }
            ExprKind::Item(of, key) => {
                let (types, key_types) = (self.infer(of), self.infer(key));
                let can_index = |of: ValueShape, key: ValueShape| {
                    matches!(
                        (of, key),
                        (ValueShape::Object, ValueShape::String)
                            | (ValueShape::List | ValueShape::String, ValueShape::Number)
                    )
                };
                let anything = types.may_be(ValueShape::Other) || key_types.may_be(ValueShape::Other);
                let fits = types.shapes().any(|of| key_types.shapes().any(|key| can_index(of, key)));
                if !anything && !fits && !types.is_null() && !key_types.is_null() {
                    let message = msg!(
                        "{}, and {}: this lookup is not possible",
                        suggestion::is(self, of, &types),
                        suggestion::is(self, key, &key_types)
                    );
                    return self.mismatch(
                        &node.range,
                        message,
                        "a list or text is indexed by number, as in `x[0]`; an object by name, as in `x['name']`",
                    );
                }
                TypeSet::unknown()
            }
            ExprKind::Slice { of, start, stop, step: _ } => {
                let types = self.infer(of);
                [start, stop].into_iter().flatten().for_each(|part| drop(self.infer(part)));
                if types.is_none_of(&[ValueShape::String, ValueShape::List]) {
                    let message = msg!("{}: only text and lists can be sliced", suggestion::is(self, of, &types));
                    return self.mismatch(&node.range, message, "remove the `[…]`");
                }
                types.or(&types)
            }
            ExprKind::Call(name, arguments) => {
                self.arguments(arguments);
                TypeSet::of(&[if name == "range" { ValueShape::List } else { ValueShape::Object }])
            }
            ExprKind::NativeCall(_) => TypeSet::unknown(),
            ExprKind::List(items) => {
                items.iter().for_each(|item| drop(self.infer(item)));
                TypeSet::of(&[ValueShape::List])
            }
            ExprKind::Map(pairs) => {
                pairs.iter().flat_map(|(key, value)| [key, value]).for_each(|part| drop(self.infer(part)));
                TypeSet::of(&[ValueShape::Object])
            }
        }
    }

    fn name(&self, name: &str) -> TypeSet {
        match self.declared.get(name) {
            Some(declared) => TypeSet::declared_as(declared),
            None if TEXTS.contains(&name) => TypeSet::of(&[ValueShape::String, ValueShape::Null]),
            None if NUMBERS.contains(&name) => TypeSet::of(&[ValueShape::Number, ValueShape::Null]),
            None => TypeSet::unknown(),
        }
    }

    fn arguments(&mut self, arguments: &[Argument]) -> Vec<TypeSet> {
        let infer = |argument: &Argument| {
            let (Argument::Plain(node) | Argument::Named(_, node)) = argument;
            self.infer(node)
        };
        arguments.iter().map(infer).collect()
    }

    fn check_join(&mut self, node: &ExprNode, how: JoinedComparisons, left: &ExprNode, right: &ExprNode) -> TypeSet {
        let who = how.word();
        let (left_types, right_types) = (self.infer(left), self.infer(right));
        let no_boolean =
            left_types.is_none_of(&[ValueShape::Boolean]) && right_types.is_none_of(&[ValueShape::Boolean]);
        if how == JoinedComparisons::Or && no_boolean {
            let (one, two) = (suggestion::is(self, left, &left_types), suggestion::is(self, right, &right_types));
            let message = msg!("`or` needs true or false on both sides: {one}, and {two}");
            let (help, repair) = suggestion::or_as_default(self, left, right, &node.range);
            return self.report(TypeMistake::NotBoolean, &node.range, message, help, repair);
        }
        let left_truth = self.check_condition_types(left, &left_types, who, None);
        let right_truth = self.check_condition_types(right, &right_types, who, Some(left));
        // One part that is never true decides `and`; one that is always true decides `or`.
        let deciding = how == JoinedComparisons::Or;
        let truth = match (left_truth, right_truth) {
            (Some(truth), _) | (_, Some(truth)) if truth == deciding => Some(deciding),
            (Some(_), Some(_)) => Some(!deciding),
            _ => exclude_one_another(node, how).then_some(deciding),
        };
        let nullable = left_types.may_be(ValueShape::Null) || right_types.may_be(ValueShape::Null);
        TypeSet::truth_or_null(truth, nullable && truth != Some(true))
    }

    fn filter(&mut self, name: &str, on: &ExprNode, arguments: &[Argument], range: &Range<usize>) -> TypeSet {
        let types = self.infer(on);
        let given = self.arguments(arguments);
        let result = self.filter_result(name, on, &types, &given, range);
        // A filter that fails because a value is null gives null.
        let result = nullable_with(result, &given.iter().collect::<Vec<_>>());
        if NULL_FILTERS.contains(&name) { result } else { nullable_with(result, &[&types]) }
    }

    fn filter_result(
        &mut self,
        name: &str,
        on: &ExprNode,
        types: &TypeSet,
        given: &[TypeSet],
        range: &Range<usize>,
    ) -> TypeSet {
        match name {
            "default" | "d" => match given {
                [other] => types.without_null().or(other),
                [] => types.without_null().or(&TypeSet::of(&[ValueShape::String])),
                _ => TypeSet::unknown(),
            },
            "length" | "count" => {
                if types.is_none_of(&[ValueShape::String, ValueShape::List, ValueShape::Object]) {
                    let message = msg!("{} and has no length", suggestion::is(self, on, types));
                    return self.mismatch(
                        range,
                        message,
                        "text, lists and objects have a length; compare a number directly",
                    );
                }
                TypeSet::of(&[ValueShape::Number])
            }
            "int" | "float" | "abs" | "round" | "sum" => TypeSet::of(&[ValueShape::Number]),
            "upper" | "lower" | "title" | "capitalize" | "trim" | "replace" | "join" | "string" | "tojson" => {
                TypeSet::of(&[ValueShape::String])
            }
            "list" | "sort" | "split" | "lines" | "unique" | "items" | "map" | "select" | "reject" => {
                TypeSet::of(&[ValueShape::List])
            }
            "bool" => TypeSet::of(&[ValueShape::Boolean]),
            _ => TypeSet::unknown(),
        }
    }

    fn test(&mut self, test: &str, on: &ExprNode, arguments: &[Argument], range: &Range<usize>) -> TypeSet {
        let types = self.infer(on);
        let operator = match test {
            "eq" | "equalto" => Some(Operator::Equal),
            "ne" => Some(Operator::Unequal),
            "lt" | "lessthan" => Some(Operator::Less),
            "le" => Some(Operator::LessOrEqual),
            "gt" | "greaterthan" => Some(Operator::Greater),
            "ge" => Some(Operator::GreaterOrEqual),
            "in" => Some(Operator::In),
            _ => None,
        };
        if let (Some(operator), [Argument::Plain(right)]) = (operator, arguments) {
            let right_types = self.infer(right);
            return self.operation(operator, (on, &types), (right, &right_types));
        }
        let given = self.arguments(arguments);
        // A test that fails because a value is null gives null.
        let uncertain = nullable_with(TypeSet::truth_of(None), &given.iter().collect::<Vec<_>>());
        match (test, &on.kind) {
            ("regex", _) if types.is_none_of(&[ValueShape::String]) => {
                let message = msg!("`regex` searches text, but {}", suggestion::is(self, on, &types));
                self.mismatch(range, message, "compare it with `==`, or change the `type` of its declaration")
            }
            // A declared name is defined even before it has a value.
            ("defined" | "undefined", ExprKind::Name(name))
                if arguments.is_empty() && self.declared.contains_key(name) =>
            {
                TypeSet::truth_of(Some(test == "defined"))
            }
            _ if TESTS_OF_ANY_VALUE.contains(&test) => uncertain,
            _ => nullable_with(uncertain, &[&types]),
        }
    }

    fn operation(&mut self, operator: Operator, left: (&ExprNode, &TypeSet), right: (&ExprNode, &TypeSet)) -> TypeSet {
        let ((left_node, left_types), (right_node, right_types)) = (left, right);
        let range = left_node.range.start..right_node.range.end.max(left_node.range.end);
        let family = operator.family();
        if left_types.never_fits(family, right_types) {
            let symbol = operator.symbol();
            let (one, two) =
                (suggestion::is(self, left_node, left_types), suggestion::is(self, right_node, right_types));
            let message = msg!("`{symbol}` cannot be used with these two: {one}, and {two}");
            let (help, repair) = suggestion::mismatch(self, operator, left, right);
            return self.report(TypeMistake::Mismatch, &range, message, help, repair);
        }
        if let (ExprKind::Constant(left), ExprKind::Constant(right)) = (&left_node.kind, &right_node.kind) {
            return apply(operator, left, right).map_or_else(|_| TypeSet::unknown(), |value| TypeSet::exactly(&value));
        }
        match family {
            Family::Equality | Family::Order if self.text(left_node) == self.text(right_node) => {
                let equal = [Operator::Equal, Operator::LessOrEqual, Operator::GreaterOrEqual].contains(&operator);
                let certain = TypeSet::truth_of(Some(equal));
                if family == Family::Order { nullable_with(certain, &[left_types, right_types]) } else { certain }
            }
            Family::Equality => {
                self.equality(operator, left, right, &range);
                TypeSet::truth_of(None)
            }
            Family::Membership => {
                if let ExprKind::List(items) = &right_node.kind {
                    for item in items {
                        if let ExprKind::Constant(value) = &item.kind {
                            self.equality(Operator::Equal, left, (item, &TypeSet::exactly(value)), &item.range);
                        }
                    }
                }
                nullable_with(TypeSet::truth_of(None), &[left_types, right_types])
            }
            Family::Order => {
                self.found.extend(not_a_date(operator, left, right, &range));
                nullable_with(TypeSet::truth_of(None), &[left_types, right_types])
            }
            Family::Arithmetic => nullable_with(TypeSet::of(&[ValueShape::Number]), &[left_types, right_types]),
            Family::Concatenation => nullable_with(TypeSet::of(&[ValueShape::String]), &[left_types, right_types]),
            Family::Add => {
                let both = |shape: &ValueShape| left_types.may_be(*shape) && right_types.may_be(*shape);
                let shapes: Vec<ValueShape> =
                    [ValueShape::Number, ValueShape::String, ValueShape::List].into_iter().filter(both).collect();
                nullable_with(TypeSet::of(&shapes), &[left_types, right_types])
            }
        }
    }

    fn equality(
        &mut self,
        operator: Operator,
        left: (&ExprNode, &TypeSet),
        right: (&ExprNode, &TypeSet),
        range: &Range<usize>,
    ) {
        if !left.1.never_equals(right.1) {
            return;
        }
        let (one, two) = (suggestion::is(self, left.0, left.1), suggestion::is(self, right.0, right.1));
        let both_null = left.1.may_be(ValueShape::Null) && right.1.may_be(ValueShape::Null);
        let out_of_range = left.1.only() == right.1.only();
        let message = match () {
            () if out_of_range => suggestion::out_of_range(self, left, right),
            () => match (operator == Operator::Equal, both_null) {
                (true, true) => msg!("these two are never equal, unless both are empty: {one}, and {two}"),
                (true, false) => msg!("these two are never equal: {one}, and {two}"),
                (false, true) => msg!("these two always differ, unless both are empty: {one}, and {two}"),
                (false, false) => msg!("these two always differ: {one}, and {two}"),
            },
        };
        let (help, repair) = suggestion::never_equal(self, left, right);
        self.report(TypeMistake::NeverEqual, range, message, help, repair);
    }

    /// Checks a part that is used as a condition; returns its truth if it is certain.
    fn check_condition(&mut self, node: &ExprNode, who: &'static str) -> Option<bool> {
        let types = self.infer(node);
        self.check_condition_types(node, &types, who, None)
    }

    /// The same for a part with known types; `after` is the operand to its left in `and` or `or`.
    fn check_condition_types(
        &mut self,
        node: &ExprNode,
        types: &TypeSet,
        who: &'static str,
        after: Option<&ExprNode>,
    ) -> Option<bool> {
        if types.is_none_of(&[ValueShape::Boolean]) {
            let message =
                msg!("{who} needs true or false, but {}", suggestion::is(self, node, types), who = Message::word(who));
            let (help, repair) = suggestion::not_boolean(self, node, types, who, after);
            self.report(TypeMistake::NotBoolean, &node.range, message, help, repair);
            return None;
        }
        let truth = types.truth()?;
        let why = suggestion::why_constant(self, node);
        let (help, repair) = suggestion::constant(self, node, truth, who);
        let message = match (who == "a condition", truth) {
            (true, true) => msg!("this condition always holds{why}"),
            (true, false) => msg!("this condition never holds{why}"),
            (false, true) => msg!("this part of the condition always holds{why}"),
            (false, false) => msg!("this part of the condition never holds{why}"),
        };
        let found =
            TypeFinding { mistake: TypeMistake::Constant(truth), range: node.range.clone(), message, help, repair };
        self.constants.push(found);
        Some(truth)
    }

    /// Of nested constant conditions, reports only the outermost.
    fn report_outermost_constants(&mut self) {
        let mut constants = std::mem::take(&mut self.constants);
        // At the same place, the one found last contains the others, as `not` contains `defined`.
        constants.reverse();
        constants.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
        let mut end = None;
        for found in constants {
            if end.is_none_or(|end| found.range.start >= end) {
                end = Some(found.range.end);
                self.found.push(found);
            }
        }
    }

    pub(super) fn mismatch(&mut self, range: &Range<usize>, message: Message, help: &'static str) -> TypeSet {
        self.report(TypeMistake::Mismatch, range, message, Message::word(help), None)
    }

    fn report(
        &mut self,
        mistake: TypeMistake,
        range: &Range<usize>,
        message: Message,
        help: Message,
        repair: Option<SourceRepair>,
    ) -> TypeSet {
        self.found.push(TypeFinding { mistake, range: range.clone(), message, help, repair });
        TypeSet::unknown()
    }
}
