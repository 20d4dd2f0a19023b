//! From an expression and what its names are declared as to what can never come right in it. Pure, and linear in the size of
//! the expression but for chains of `and` and `or`, whose length the parser bounds.
//!
//! It says only what holds for every value that the declarations allow. A value that may be null is no finding: whether it is
//! null shows at run time. After a finding, the part in which it stands may be anything, so that nothing is said twice.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::collected::{DeclaredAs, ExpressionRole};
use crate::typing::contradiction::{JoinedComparisons, clash};
use crate::typing::finding::{TypeFinding, TypeMistake};
use crate::typing::suggestion;
use crate::typing::type_set::TypeSet;
use bcc_lang::expr::operators::{Operator, apply};
use bcc_lang::expr::parse::Expr;
use bcc_lang::expr::tree::{Argument, ExprKind, ExprNode};
use bcc_lang::template::unknown::SourceRepair;
use bcc_lang::value::compare::{Family, ValueShape};

/// Finds what can never come right in an expression.
pub fn analyse(expression: &Expr, role: ExpressionRole, declared: &BTreeMap<String, DeclaredAs>) -> Vec<TypeFinding> {
    let mut analysis = Analysis { source: expression.source(), declared, found: vec![], constants: vec![] };
    let root = expression.root();
    match role {
        ExpressionRole::Condition => {
            analysis.decides(root, "a condition");
        }
        // Whether what `for_each` goes through is a list is a rule of its own.
        ExpressionRole::Value | ExpressionRole::List => {
            analysis.sort(root);
        }
    }
    analysis.outermost_constants();
    analysis.found.sort_by_key(|found| found.range.start);
    analysis.found
}

/// The engine's names whose values are always text.
const TEXTS: [&str; 7] = ["time", "who", "user", "last_user_message", "topic_goal", "phase_goal", "global_goal"];

/// The engine's names that are numbers, or null where there is no round.
const NUMBERS: [&str; 2] = ["current_round", "max_rounds"];

pub struct Analysis<'a> {
    pub source: &'a str,
    pub declared: &'a BTreeMap<String, DeclaredAs>,
    found: Vec<TypeFinding>,
    /// Conditions in it that always or never hold.
    constants: Vec<TypeFinding>,
}

impl Analysis<'_> {
    /// The range with the brackets that open in front of it and close inside of it: a part begins where its first name does,
    /// so `(age) is defined` begins behind the bracket.
    pub fn balanced(&self, range: &Range<usize>) -> Range<usize> {
        let (mut open, mut missing, mut quote) = (0usize, 0usize, None);
        for c in self.source.get(range.clone()).unwrap_or_default().chars() {
            match (quote, c) {
                (Some(mark), _) => quote = Some(mark).filter(|mark| *mark != c),
                (None, '\'' | '"') => quote = Some(c),
                (None, '(') => open += 1,
                (None, ')') if open > 0 => open -= 1,
                (None, ')') => missing += 1,
                _ => {}
            }
        }
        let mut start = range.start;
        for _ in 0..missing {
            let before = self.source.get(..start).unwrap_or_default().trim_end();
            start = if before.ends_with('(') { before.len() - 1 } else { start };
        }
        start..range.end
    }

    pub fn text(&self, node: &ExprNode) -> &str {
        self.source.get(node.range.clone()).unwrap_or_default()
    }

    fn sort(&mut self, node: &ExprNode) -> TypeSet {
        match &node.kind {
            ExprKind::Name(name) => self.name(name),
            ExprKind::Constant(value) => TypeSet::exactly(value),
            ExprKind::Not(of) => TypeSet::truth_of(self.decides(of, "`not`").map(|truth| !truth)),
            ExprKind::Negate(of) => {
                let sort = self.sort(of);
                if sort.is_none_of(&[ValueShape::Number]) {
                    let help = "only a number can be negated; use `not` to invert true and false";
                    return self.mismatch(
                        &node.range,
                        msg!("`-` needs a number, but {}", suggestion::is(self, of, &sort)),
                        help,
                    );
                }
                TypeSet::of(&[ValueShape::Number])
            }
            ExprKind::And(left, right) => self.joined(node, JoinedComparisons::And, left, right),
            ExprKind::Or(left, right) => self.joined(node, JoinedComparisons::Or, left, right),
            ExprKind::Operation(operator, left, right) => {
                let (left_sort, right_sort) = (self.sort(left), self.sort(right));
                self.operation(*operator, (left, &left_sort), (right, &right_sort))
            }
            ExprKind::Chain(first, rest) => {
                let mut left = (first.as_ref(), self.sort(first));
                let mut all = Some(true);
                for (operator, right) in rest {
                    let right_sort = self.sort(right);
                    let step = self.operation(*operator, (left.0, &left.1), (right, &right_sort)).truth();
                    all = match (all, step) {
                        (Some(false), _) | (_, Some(false)) => Some(false),
                        (Some(true), Some(true)) => Some(true),
                        _ => None,
                    };
                    left = (right, right_sort);
                }
                TypeSet::truth_of(all)
            }
            ExprKind::Choice { test, yes, no } => {
                self.decides(test, "`if`");
                let yes = self.sort(yes);
                let no = no.as_ref().map_or_else(|| TypeSet::of(&[ValueShape::Null]), |no| self.sort(no));
                yes.or(&no)
            }
            ExprKind::Filter(name, on, arguments) => self.filter(name, on, arguments, &node.range),
            ExprKind::Test(name, on, arguments) => self.test(name, on, arguments, &node.range),
            ExprKind::Attribute(of, name) => {
                let sort = self.sort(of);
                if sort.is_none_of(&[ValueShape::Object]) {
                    let message = msg!("{} and has no field `{name}`", suggestion::is(self, of, &sort));
                    let (help, repair) = suggestion::attribute(self, of, name, &sort, &node.range);
                    return self.report(TypeMistake::Mismatch, &node.range, message, help, repair);
                }
                TypeSet::unknown()
            }
            ExprKind::Item(of, key) => {
                let (sort, key_sort) = (self.sort(of), self.sort(key));
                let inside = |of: ValueShape, key: ValueShape| {
                    matches!(
                        (of, key),
                        (ValueShape::Object, ValueShape::String)
                            | (ValueShape::List | ValueShape::String, ValueShape::Number)
                    )
                };
                let anything = sort.may_be(ValueShape::Other) || key_sort.may_be(ValueShape::Other);
                let fits = sort.shapes().any(|of| key_sort.shapes().any(|key| inside(of, key)));
                if !anything && !fits && !sort.is_null() && !key_sort.is_null() {
                    let message = msg!(
                        "{}, and {}: this lookup is not possible",
                        suggestion::is(self, of, &sort),
                        suggestion::is(self, key, &key_sort)
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
                let sort = self.sort(of);
                [start, stop].into_iter().flatten().for_each(|part| drop(self.sort(part)));
                if sort.is_none_of(&[ValueShape::String, ValueShape::List]) {
                    let message = msg!("{}: only text and lists can be sliced", suggestion::is(self, of, &sort));
                    return self.mismatch(&node.range, message, "remove the `[…]`");
                }
                sort.without_null()
            }
            ExprKind::Call(name, arguments) => {
                self.arguments(arguments);
                TypeSet::of(&[if name == "range" { ValueShape::List } else { ValueShape::Object }])
            }
            ExprKind::List(items) => {
                items.iter().for_each(|item| drop(self.sort(item)));
                TypeSet::of(&[ValueShape::List])
            }
            ExprKind::Map(pairs) => {
                pairs.iter().flat_map(|(key, value)| [key, value]).for_each(|part| drop(self.sort(part)));
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
        let sort = |argument: &Argument| {
            let (Argument::Plain(node) | Argument::Named(_, node)) = argument;
            self.sort(node)
        };
        arguments.iter().map(sort).collect()
    }

    fn joined(&mut self, node: &ExprNode, how: JoinedComparisons, left: &ExprNode, right: &ExprNode) -> TypeSet {
        let who = how.word();
        let (left_sort, right_sort) = (self.sort(left), self.sort(right));
        let neither = left_sort.is_none_of(&[ValueShape::Boolean]) && right_sort.is_none_of(&[ValueShape::Boolean]);
        if how == JoinedComparisons::Or && neither {
            let (one, two) = (suggestion::is(self, left, &left_sort), suggestion::is(self, right, &right_sort));
            let message = msg!("`or` needs true or false on both sides: {one}, and {two}");
            let (help, repair) = suggestion::stand_in(self, left, right, &node.range);
            return self.report(TypeMistake::NotBoolean, &node.range, message, help, repair);
        }
        let left_truth = self.decided(left, &left_sort, who, None);
        let right_truth = self.decided(right, &right_sort, who, Some(left));
        // `and` is settled by one that never holds, `or` by one that always does.
        let settled = how == JoinedComparisons::Or;
        let truth = match (left_truth, right_truth) {
            (Some(truth), _) | (_, Some(truth)) if truth == settled => Some(settled),
            (Some(_), Some(_)) => Some(!settled),
            _ => clash(node, how).then_some(settled),
        };
        TypeSet::truth_of(truth)
    }

    fn filter(&mut self, name: &str, on: &ExprNode, arguments: &[Argument], range: &Range<usize>) -> TypeSet {
        let sort = self.sort(on);
        let given = self.arguments(arguments);
        match name {
            "default" | "d" => match given.as_slice() {
                [other] => sort.without_null().or(other),
                [] => sort.without_null().or(&TypeSet::of(&[ValueShape::String])),
                _ => TypeSet::unknown(),
            },
            "length" | "count" => {
                if sort.is_none_of(&[ValueShape::String, ValueShape::List, ValueShape::Object]) {
                    let message = msg!("{} and has no length", suggestion::is(self, on, &sort));
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

    fn test(&mut self, name: &str, on: &ExprNode, arguments: &[Argument], range: &Range<usize>) -> TypeSet {
        let sort = self.sort(on);
        let operator = match name {
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
            let right_sort = self.sort(right);
            return self.operation(operator, (on, &sort), (right, &right_sort));
        }
        self.arguments(arguments);
        match (name, &on.kind) {
            ("regex", _) if sort.is_none_of(&[ValueShape::String]) => {
                let message = msg!("`regex` searches text, but {}", suggestion::is(self, on, &sort));
                self.mismatch(range, message, "compare it with `==`, or change the `type` of its declaration")
            }
            // What is declared exists, even before it has a value.
            ("defined", ExprKind::Name(name)) if self.declared.contains_key(name) => TypeSet::truth_of(Some(true)),
            ("undefined", ExprKind::Name(name)) if self.declared.contains_key(name) => TypeSet::truth_of(Some(false)),
            _ => TypeSet::truth_of(None),
        }
    }

    fn operation(&mut self, operator: Operator, left: (&ExprNode, &TypeSet), right: (&ExprNode, &TypeSet)) -> TypeSet {
        let ((left_node, left_sort), (right_node, right_sort)) = (left, right);
        let range = left_node.range.start..right_node.range.end.max(left_node.range.end);
        let family = operator.family();
        if left_sort.never_fits(family, right_sort) {
            let symbol = operator.symbol();
            let (one, two) = (suggestion::is(self, left_node, left_sort), suggestion::is(self, right_node, right_sort));
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
                TypeSet::truth_of(Some(equal))
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
                TypeSet::truth_of(None)
            }
            Family::Order => TypeSet::truth_of(None),
            Family::Arithmetic => TypeSet::of(&[ValueShape::Number]),
            Family::Concatenation => TypeSet::of(&[ValueShape::String]),
            Family::Add => {
                let both = |shape: &ValueShape| left_sort.may_be(*shape) && right_sort.may_be(*shape);
                let shapes: Vec<ValueShape> =
                    [ValueShape::Number, ValueShape::String, ValueShape::List].into_iter().filter(both).collect();
                TypeSet::of(&shapes)
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
        let outside = left.1.only() == right.1.only();
        let message = match () {
            () if outside => suggestion::outside(self, left, right),
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

    /// Looks at a part that decides something; gives its truth where that is certain.
    fn decides(&mut self, node: &ExprNode, who: &'static str) -> Option<bool> {
        let sort = self.sort(node);
        self.decided(node, &sort, who, None)
    }

    /// The same for a part whose sort is known; `after` is what `and` or `or` joins to its left.
    fn decided(
        &mut self,
        node: &ExprNode,
        sort: &TypeSet,
        who: &'static str,
        after: Option<&ExprNode>,
    ) -> Option<bool> {
        if sort.is_none_of(&[ValueShape::Boolean]) {
            let message =
                msg!("{who} needs true or false, but {}", suggestion::is(self, node, sort), who = Message::word(who));
            let (help, repair) = suggestion::not_boolean(self, node, sort, who, after);
            self.report(TypeMistake::NotBoolean, &node.range, message, help, repair);
            return None;
        }
        let truth = sort.truth()?;
        let why = suggestion::why_constant(self, node);
        let (help, repair) = suggestion::constant(self, node, truth, who);
        let message = match (who == "a condition", truth) {
            (true, true) => msg!("this condition always holds{why}"),
            (true, false) => msg!("this condition never holds{why}"),
            (false, true) => msg!("this part of the condition always holds{why}"),
            (false, false) => msg!("this part of the condition never holds{why}"),
        };
        let found =
            TypeFinding { fault: TypeMistake::Constant(truth), range: node.range.clone(), message, help, repair };
        self.constants.push(found);
        Some(truth)
    }

    /// Of conditions in one another that are all constant, the outermost is told.
    fn outermost_constants(&mut self) {
        let mut constants = std::mem::take(&mut self.constants);
        // At one place the one that was found last stands around the others, as `not` around `defined`.
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

    fn mismatch(&mut self, range: &Range<usize>, message: Message, help: &'static str) -> TypeSet {
        self.report(TypeMistake::Mismatch, range, message, Message::word(help), None)
    }

    fn report(
        &mut self,
        fault: TypeMistake,
        range: &Range<usize>,
        message: Message,
        help: Message,
        repair: Option<SourceRepair>,
    ) -> TypeSet {
        self.found.push(TypeFinding { fault, range: range.clone(), message, help, repair });
        TypeSet::unknown()
    }
}
