//! From an expression and what its names are declared as to what can never come right in it. Pure, and linear in the size of
//! the expression but for chains of `and` and `or`, whose length the parser bounds.
//!
//! It says only what holds for every value that the declarations allow. A value that may be null is no finding: whether it is
//! null shows at run time. After a finding, the part in which it stands may be anything, so that nothing is said twice.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::seen::{DeclaredAs, Role};
use crate::typing::clash::{Joined, clash};
use crate::typing::found::{Fault, Found};
use crate::typing::remedy;
use crate::typing::sort::Sort;
use bcc_lang::expr::operators::{Operator, apply};
use bcc_lang::expr::parse::Expr;
use bcc_lang::expr::tree::{Argument, Kind, Node};
use bcc_lang::template::unknown::Repair;
use bcc_lang::value::compare::{Family, Shape};

/// Finds what can never come right in an expression.
pub fn analyse(expression: &Expr, role: Role, declared: &BTreeMap<String, DeclaredAs>) -> Vec<Found> {
    let mut analysis = Analysis { source: expression.source(), declared, found: vec![], constants: vec![] };
    let root = expression.root();
    match role {
        Role::Condition => {
            analysis.decides(root, "a condition");
        }
        // Whether what `for_each` goes through is a list is a rule of its own.
        Role::Value | Role::List => {
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
    found: Vec<Found>,
    /// Conditions in it that always or never hold.
    constants: Vec<Found>,
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

    pub fn text(&self, node: &Node) -> &str {
        self.source.get(node.range.clone()).unwrap_or_default()
    }

    fn sort(&mut self, node: &Node) -> Sort {
        match &node.kind {
            Kind::Name(name) => self.name(name),
            Kind::Constant(value) => Sort::exactly(value),
            Kind::Not(of) => Sort::truth_of(self.decides(of, "`not`").map(|truth| !truth)),
            Kind::Negate(of) => {
                let sort = self.sort(of);
                if sort.is_none_of(&[Shape::Number]) {
                    let help = "only a number has a negative; `not` turns true and false around";
                    return self.mismatch(
                        &node.range,
                        format!("`-` needs a number, and {}", remedy::is(self, of, &sort)),
                        help,
                    );
                }
                Sort::of(&[Shape::Number])
            }
            Kind::And(left, right) => self.joined(node, Joined::And, left, right),
            Kind::Or(left, right) => self.joined(node, Joined::Or, left, right),
            Kind::Operation(operator, left, right) => {
                let (left_sort, right_sort) = (self.sort(left), self.sort(right));
                self.operation(*operator, (left, &left_sort), (right, &right_sort))
            }
            Kind::Chain(first, rest) => {
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
                Sort::truth_of(all)
            }
            Kind::Choice { test, yes, no } => {
                self.decides(test, "`if`");
                let yes = self.sort(yes);
                let no = no.as_ref().map_or_else(|| Sort::of(&[Shape::Null]), |no| self.sort(no));
                yes.or(&no)
            }
            Kind::Filter(name, on, arguments) => self.filter(name, on, arguments, &node.range),
            Kind::Test(name, on, arguments) => self.test(name, on, arguments, &node.range),
            Kind::Attribute(of, name) => {
                let sort = self.sort(of);
                if sort.is_none_of(&[Shape::Object]) {
                    let message = format!("{} and has no `{name}`", remedy::is(self, of, &sort));
                    let (help, repair) = remedy::attribute(self, of, name, &sort, &node.range);
                    return self.report(Fault::Mismatch, &node.range, message, help, repair);
                }
                Sort::unknown()
            }
            Kind::Item(of, key) => {
                let (sort, key_sort) = (self.sort(of), self.sort(key));
                let inside = |of: Shape, key: Shape| {
                    matches!((of, key), (Shape::Object, Shape::String) | (Shape::List | Shape::String, Shape::Number))
                };
                let anything = sort.may_be(Shape::Other) || key_sort.may_be(Shape::Other);
                let fits = sort.shapes().any(|of| key_sort.shapes().any(|key| inside(of, key)));
                if !anything && !fits && !sort.is_null() && !key_sort.is_null() {
                    let message = format!(
                        "{}, and {}: there is nothing to look up",
                        remedy::is(self, of, &sort),
                        remedy::is(self, key, &key_sort)
                    );
                    return self.mismatch(
                        &node.range,
                        message,
                        "a list or text is asked by number, as in `x[0]`; an object by name, as in `x['name']`",
                    );
                }
                Sort::unknown()
            }
            Kind::Slice { of, start, stop, step: _ } => {
                let sort = self.sort(of);
                [start, stop].into_iter().flatten().for_each(|part| drop(self.sort(part)));
                if sort.is_none_of(&[Shape::String, Shape::List]) {
                    let message = format!("{}: only texts and lists have parts", remedy::is(self, of, &sort));
                    return self.mismatch(&node.range, message, "leave the `[…]` out");
                }
                sort.without_null()
            }
            Kind::Call(name, arguments) => {
                self.arguments(arguments);
                Sort::of(&[if name == "range" { Shape::List } else { Shape::Object }])
            }
            Kind::List(items) => {
                items.iter().for_each(|item| drop(self.sort(item)));
                Sort::of(&[Shape::List])
            }
            Kind::Map(pairs) => {
                pairs.iter().flat_map(|(key, value)| [key, value]).for_each(|part| drop(self.sort(part)));
                Sort::of(&[Shape::Object])
            }
        }
    }

    fn name(&self, name: &str) -> Sort {
        match self.declared.get(name) {
            Some(declared) => Sort::declared_as(declared),
            None if TEXTS.contains(&name) => Sort::of(&[Shape::String, Shape::Null]),
            None if NUMBERS.contains(&name) => Sort::of(&[Shape::Number, Shape::Null]),
            None => Sort::unknown(),
        }
    }

    fn arguments(&mut self, arguments: &[Argument]) -> Vec<Sort> {
        let sort = |argument: &Argument| {
            let (Argument::Plain(node) | Argument::Named(_, node)) = argument;
            self.sort(node)
        };
        arguments.iter().map(sort).collect()
    }

    fn joined(&mut self, node: &Node, how: Joined, left: &Node, right: &Node) -> Sort {
        let who = how.word();
        let (left_sort, right_sort) = (self.sort(left), self.sort(right));
        let neither = left_sort.is_none_of(&[Shape::Boolean]) && right_sort.is_none_of(&[Shape::Boolean]);
        if how == Joined::Or && neither {
            let (one, two) = (remedy::is(self, left, &left_sort), remedy::is(self, right, &right_sort));
            let message = format!("`or` needs true or false on both sides: {one}, and {two}");
            let (help, repair) = remedy::stand_in(self, left, right, &node.range);
            return self.report(Fault::NotBoolean, &node.range, message, help, repair);
        }
        let left_truth = self.decided(left, &left_sort, who, None);
        let right_truth = self.decided(right, &right_sort, who, Some(left));
        // `and` is settled by one that never holds, `or` by one that always does.
        let settled = how == Joined::Or;
        let truth = match (left_truth, right_truth) {
            (Some(truth), _) | (_, Some(truth)) if truth == settled => Some(settled),
            (Some(_), Some(_)) => Some(!settled),
            _ => clash(node, how).then_some(settled),
        };
        Sort::truth_of(truth)
    }

    fn filter(&mut self, name: &str, on: &Node, arguments: &[Argument], range: &Range<usize>) -> Sort {
        let sort = self.sort(on);
        let given = self.arguments(arguments);
        match name {
            "default" | "d" => match given.as_slice() {
                [other] => sort.without_null().or(other),
                [] => sort.without_null().or(&Sort::of(&[Shape::String])),
                _ => Sort::unknown(),
            },
            "length" | "count" => {
                if sort.is_none_of(&[Shape::String, Shape::List, Shape::Object]) {
                    let message = format!("{} and has no length", remedy::is(self, on, &sort));
                    return self.mismatch(
                        range,
                        message,
                        "texts, lists and objects have a length; compare a number as it is",
                    );
                }
                Sort::of(&[Shape::Number])
            }
            "int" | "float" | "abs" | "round" | "sum" => Sort::of(&[Shape::Number]),
            "upper" | "lower" | "title" | "capitalize" | "trim" | "replace" | "join" | "string" | "tojson" => {
                Sort::of(&[Shape::String])
            }
            "list" | "sort" | "split" | "lines" | "unique" | "items" | "map" | "select" | "reject" => {
                Sort::of(&[Shape::List])
            }
            "bool" => Sort::of(&[Shape::Boolean]),
            _ => Sort::unknown(),
        }
    }

    fn test(&mut self, name: &str, on: &Node, arguments: &[Argument], range: &Range<usize>) -> Sort {
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
            ("regex", _) if sort.is_none_of(&[Shape::String]) => {
                let message = format!("`regex` looks into texts, and {}", remedy::is(self, on, &sort));
                self.mismatch(range, message, "compare it with `==`, or change the `type` of its declaration")
            }
            // What is declared exists, even before it has a value.
            ("defined", Kind::Name(name)) if self.declared.contains_key(name) => Sort::truth_of(Some(true)),
            ("undefined", Kind::Name(name)) if self.declared.contains_key(name) => Sort::truth_of(Some(false)),
            _ => Sort::truth_of(None),
        }
    }

    fn operation(&mut self, operator: Operator, left: (&Node, &Sort), right: (&Node, &Sort)) -> Sort {
        let ((left_node, left_sort), (right_node, right_sort)) = (left, right);
        let range = left_node.range.start..right_node.range.end.max(left_node.range.end);
        let family = operator.family();
        if left_sort.never_fits(family, right_sort) {
            let symbol = operator.symbol();
            let (one, two) = (remedy::is(self, left_node, left_sort), remedy::is(self, right_node, right_sort));
            let message = format!("`{symbol}` can never take these two: {one}, and {two}");
            let (help, repair) = remedy::mismatch(self, operator, left, right);
            return self.report(Fault::Mismatch, &range, message, help, repair);
        }
        if let (Kind::Constant(left), Kind::Constant(right)) = (&left_node.kind, &right_node.kind) {
            return apply(operator, left, right).map_or_else(|_| Sort::unknown(), |value| Sort::exactly(&value));
        }
        match family {
            Family::Equality | Family::Order if self.text(left_node) == self.text(right_node) => {
                let equal = [Operator::Equal, Operator::LessOrEqual, Operator::GreaterOrEqual].contains(&operator);
                Sort::truth_of(Some(equal))
            }
            Family::Equality => {
                self.equality(operator, left, right, &range);
                Sort::truth_of(None)
            }
            Family::Membership => {
                if let Kind::List(items) = &right_node.kind {
                    for item in items {
                        if let Kind::Constant(value) = &item.kind {
                            self.equality(Operator::Equal, left, (item, &Sort::exactly(value)), &item.range);
                        }
                    }
                }
                Sort::truth_of(None)
            }
            Family::Order => Sort::truth_of(None),
            Family::Arithmetic => Sort::of(&[Shape::Number]),
            Family::Concatenation => Sort::of(&[Shape::String]),
            Family::Add => {
                let both = |shape: &Shape| left_sort.may_be(*shape) && right_sort.may_be(*shape);
                let shapes: Vec<Shape> = [Shape::Number, Shape::String, Shape::List].into_iter().filter(both).collect();
                Sort::of(&shapes)
            }
        }
    }

    fn equality(&mut self, operator: Operator, left: (&Node, &Sort), right: (&Node, &Sort), range: &Range<usize>) {
        if !left.1.never_equals(right.1) {
            return;
        }
        let (one, two) = (remedy::is(self, left.0, left.1), remedy::is(self, right.0, right.1));
        let both_null = left.1.may_be(Shape::Null) && right.1.may_be(Shape::Null);
        let outside = left.1.only() == right.1.only();
        let message = match () {
            () if outside => remedy::outside(self, left, right),
            () => match (operator == Operator::Equal, both_null) {
                (true, true) => format!("these two are never equal, unless both are empty: {one}, and {two}"),
                (true, false) => format!("these two are never equal: {one}, and {two}"),
                (false, true) => format!("these two always differ, unless both are empty: {one}, and {two}"),
                (false, false) => format!("these two always differ: {one}, and {two}"),
            },
        };
        let (help, repair) = remedy::never_equal(self, left, right);
        self.report(Fault::NeverEqual, range, message, help, repair);
    }

    /// Looks at a part that decides something; gives its truth where that is certain.
    fn decides(&mut self, node: &Node, who: &str) -> Option<bool> {
        let sort = self.sort(node);
        self.decided(node, &sort, who, None)
    }

    /// The same for a part whose sort is known; `after` is what `and` or `or` joins to its left.
    fn decided(&mut self, node: &Node, sort: &Sort, who: &str, after: Option<&Node>) -> Option<bool> {
        if sort.is_none_of(&[Shape::Boolean]) {
            let message = format!("{who} needs true or false, and {}", remedy::is(self, node, sort));
            let (help, repair) = remedy::not_boolean(self, node, sort, who, after);
            self.report(Fault::NotBoolean, &node.range, message, help, repair);
            return None;
        }
        let truth = sort.truth()?;
        let why = remedy::why_constant(self, node);
        let (help, repair) = remedy::constant(self, node, truth, who);
        let message = match (who == "a condition", truth) {
            (true, true) => format!("this condition always holds{why}"),
            (true, false) => format!("this condition never holds{why}"),
            (false, true) => format!("this part of the condition always holds{why}"),
            (false, false) => format!("this part of the condition never holds{why}"),
        };
        let found = Found { fault: Fault::Constant(truth), range: node.range.clone(), message, help, repair };
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

    fn mismatch(&mut self, range: &Range<usize>, message: String, help: &str) -> Sort {
        self.report(Fault::Mismatch, range, message, help.to_owned(), None)
    }

    fn report(
        &mut self,
        fault: Fault,
        range: &Range<usize>,
        message: String,
        help: String,
        repair: Option<Repair>,
    ) -> Sort {
        self.found.push(Found { fault, range: range.clone(), message, help, repair });
        Sort::unknown()
    }
}
