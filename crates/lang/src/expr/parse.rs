//! Parses expressions with the parser of minijinja, then copies the result to our own tree and rejects unsupported syntax.

use crate::message::ToMessage;
use crate::message::message::Message;
use crate::message::msg;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, UnaryOpKind};
use minijinja::machinery::parse_expr;
use minijinja::value::Value;

use crate::expr::bindings::ENVIRONMENT;
use crate::expr::hints::{mistakes, repair};
use crate::expr::methods::method;
use crate::expr::operators::Operator;
use crate::expr::reach::free_names;
use crate::expr::tree::{Argument, ExprKind, ExprNode};
use crate::template::environment::has;
use crate::template::error::render_error;
use crate::template::features::FeatureKind;
use crate::template::limits::{MAX_OPERATORS, bytes, check_limits};
use crate::template::pattern;
use crate::template::unknown::{SourceRepair, filter_called, unknown, unknown_function};
use crate::template::uses::NameUse;

#[cfg(test)]
mod tests;

/// The maximum length of an expression, in bytes.
pub(crate) const MAX_EXPRESSION_BYTES: usize = 4 * 1024;

/// The maximum nesting depth of an expression; in `a or b or c` each operator adds a level.
pub const MAX_DEPTH: usize = 64;

/// The functions that an expression may call.
pub(crate) const CALLABLE: &[&str] = &["range", "dict"];

/// An error in an expression, at parse time or at evaluation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
#[error("{message}")]
pub struct ExprError {
    /// The error message. It contains source text, but no values.
    pub message: Message,
    /// The byte range in the source.
    pub range: Option<Range<usize>>,
    pub help: Option<Message>,
    /// Whether an unknown feature is a filter, a test or a function; `None` for other errors.
    pub unknown: Option<FeatureKind>,
    /// The edit of the source that corrects it.
    pub repair: Option<Box<SourceRepair>>,
}

impl ExprError {
    pub fn at(range: &Range<usize>, message: impl Into<Message>) -> Self {
        Self { message: message.into(), range: Some(range.clone()), help: None, unknown: None, repair: None }
    }

    #[must_use]
    pub fn with_help(mut self, help: impl Into<Message>) -> Self {
        self.help = Some(help.into());
        self
    }

    #[must_use]
    pub(crate) fn with_repair(mut self, repair: Option<SourceRepair>) -> Self {
        self.repair = repair.map(Box::new);
        self
    }

    /// Marks the error as one of an unknown filter, test or function.
    #[must_use]
    pub(crate) fn with_unknown(mut self, unknown: FeatureKind) -> Self {
        self.unknown = Some(unknown);
        self
    }
}

/// A parsed condition, guard or value expression. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Expr(Arc<ParsedExpr>);

#[derive(Debug)]
struct ParsedExpr {
    source: String,
    root: ExprNode,
    names: Vec<NameUse>,
}

impl Expr {
    /// Whether it is the same expression at the same place: this one, or a clone of it.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Parses an expression.
    /// Errors: [`ExprError`] if it is empty, longer than `MAX_EXPRESSION_BYTES`, deeper than [`MAX_DEPTH`], not an expression,
    /// or uses an unknown filter, test or function, a method, or an invalid `regex` pattern.
    pub fn parse(source: &str) -> Result<Self, ExprError> {
        let all = 0..source.len();
        if source.trim().is_empty() {
            return Err(ExprError::at(&all, "the expression is empty"));
        }
        if source.len() > MAX_EXPRESSION_BYTES {
            return Err(ExprError::at(&all, msg!("an expression can be at most {MAX_EXPRESSION_BYTES} bytes long")));
        }
        let lexical_error = check_limits(source, true).map_err(|rejected| ExprError {
            message: rejected.message,
            range: Some(rejected.range),
            help: rejected.help,
            unknown: None,
            repair: None,
        })?;
        let tree = parse_expr(source).and_then(|tree| lexical_error.map_or(Ok(tree), Err)).map_err(|error| {
            common_mistake(source).unwrap_or_else(|| {
                let error = render_error(&error).within(source);
                ExprError { message: error.message, range: error.range, help: None, unknown: None, repair: None }
            })
        })?;
        let root = Copier { source, max_depth: MAX_DEPTH, in_template: false, native_calls: RefCell::default() }
            .node(&tree, 0)?;
        let names = free_names(&root);
        Ok(Self(Arc::new(ParsedExpr { source: source.to_owned(), root, names })))
    }

    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The names that it uses, with their positions in [`source`](Self::source).
    pub fn names(&self) -> &[NameUse] {
        &self.0.names
    }

    pub fn root(&self) -> &ExprNode {
        &self.0.root
    }
}

/// The error for an expression that does not parse because of a [common mistake](mistakes).
pub(crate) fn common_mistake(source: &str) -> Option<ExprError> {
    let mistakes = mistakes(source);
    let first = mistakes.first()?;
    let parses = |repair: &SourceRepair| repair.apply(source).is_some_and(|after| is_expression(&after));
    let repair = repair(source, &mistakes).filter(parses);
    Some(ExprError::at(&first.range, first.message.clone()).with_help(first.help.clone()).with_repair(repair))
}

/// Whether a repaired source parses.
fn is_expression(source: &str) -> bool {
    source.len() <= MAX_EXPRESSION_BYTES && matches!(check_limits(source, true), Ok(None)) && parse_expr(source).is_ok()
}

/// Parses an expression of a text or template that minijinja has parsed and [`find`](crate::template::uses::find) has checked.
/// Also returns the byte ranges of the calls that only minijinja can make ([`ExprKind::NativeCall`]).
pub(crate) fn parse_in_template(source: &str) -> Option<(ExprNode, Vec<Range<usize>>)> {
    check_limits(source, true).ok()?;
    let tree = parse_expr(source).ok()?;
    let copier = Copier { source, max_depth: MAX_OPERATORS, in_template: true, native_calls: RefCell::default() };
    let root = copier.node(&tree, 0).ok()?;
    Some((root, copier.native_calls.into_inner()))
}

struct Copier<'s> {
    source: &'s str,
    max_depth: usize,
    /// Whether macros can be called.
    in_template: bool,
    native_calls: RefCell<Vec<Range<usize>>>,
}

impl Copier<'_> {
    fn boxed(&self, expr: &ast::Expr<'_>, depth: usize) -> Result<Box<ExprNode>, ExprError> {
        self.node(expr, depth + 1).map(Box::new)
    }

    fn node(&self, expr: &ast::Expr<'_>, depth: usize) -> Result<ExprNode, ExprError> {
        let own = bytes(expr.span());
        if depth > self.max_depth {
            return Err(ExprError::at(&own, msg!("the expression is nested more than {MAX_DEPTH} levels deep"))
                .with_help("split it into several steps with `set` actions"));
        }
        let (kind, range) = match expr {
            ast::Expr::Var(var) => (ExprKind::Name(var.id.to_owned()), own),
            ast::Expr::Const(constant) => (self.constant(&constant.value, &own)?, own),
            ast::Expr::UnaryOp(unary) => {
                let inner = self.boxed(&unary.expr, depth)?;
                // minijinja parses `a not in b` as a `not` around `a in b`, both without their own start positions.
                if let (UnaryOpKind::Not, ExprKind::Operation(Operator::In, left, right)) = (&unary.op, &inner.kind)
                    && self.has_not_between(left.range.end, right.range.start)
                {
                    let kind = ExprKind::Operation(Operator::NotIn, left.clone(), right.clone());
                    return Ok(ExprNode { kind, range: inner.range });
                }
                let start = match (&unary.op, &inner.kind) {
                    // `x is not defined`: the span of the negation starts at the test's name.
                    (UnaryOpKind::Not, ExprKind::Test(..)) => own.start.min(inner.range.start),
                    _ => own.start,
                };
                let range = start..inner.range.end;
                match unary.op {
                    UnaryOpKind::Not => (ExprKind::Not(inner), range),
                    UnaryOpKind::Neg => (ExprKind::Negate(inner), range),
                }
            }
            ast::Expr::BinOp(binary) => {
                let (left, right) = (self.boxed(&binary.left, depth)?, self.boxed(&binary.right, depth)?);
                let range = left.range.start..right.range.end;
                let kind = match binary_operator(binary.op) {
                    Some(operator) => ExprKind::Operation(operator, left, right),
                    None if matches!(binary.op, BinOpKind::ScAnd) => ExprKind::And(left, right),
                    None => ExprKind::Or(left, right),
                };
                (kind, range)
            }
            ast::Expr::Compare(compare) => {
                let first = self.boxed(&compare.expr, depth)?;
                let mut rest = Vec::with_capacity(compare.ops.len());
                for step in &compare.ops {
                    rest.push((comparison(step.op), self.node(&step.expr, depth + 1)?));
                }
                let end = rest.last().map_or(first.range.end, |(_, node)| node.range.end);
                let range = first.range.start..end;
                (ExprKind::Chain(first, rest), range)
            }
            ast::Expr::IfExpr(choice) => {
                let (yes, test) = (self.boxed(&choice.true_expr, depth)?, self.boxed(&choice.test_expr, depth)?);
                let no = choice.false_expr.as_ref().map(|no| self.boxed(no, depth)).transpose()?;
                let range = yes.range.start..no.as_ref().unwrap_or(&test).range.end;
                (ExprKind::Choice { test, yes, no }, range)
            }
            ast::Expr::Filter(filter) => {
                let Some(on) = &filter.expr else { return Err(ExprError::at(&own, "a filter needs a value")) };
                let on = self.boxed(on, depth)?;
                self.known(FeatureKind::Filter, filter.name, &own)?;
                let range = on.range.start..own.end;
                (ExprKind::Filter(filter.name.to_owned(), on, self.arguments(&filter.args, depth)?), range)
            }
            ast::Expr::Test(test) => {
                let on = self.boxed(&test.expr, depth)?;
                self.known(FeatureKind::Test, test.name, &own)?;
                let arguments = self.arguments(&test.args, depth)?;
                if test.name == "regex" {
                    check_pattern(&arguments, &own)?;
                }
                let range = on.range.start..own.end;
                (ExprKind::Test(test.name.to_owned(), on, arguments), range)
            }
            ast::Expr::GetAttr(attribute) => {
                let of = self.boxed(&attribute.expr, depth)?;
                let range = of.range.start..own.end;
                (ExprKind::Attribute(of, attribute.name.to_owned()), range)
            }
            ast::Expr::GetItem(item) => {
                let (of, key) = (self.boxed(&item.expr, depth)?, self.boxed(&item.subscript_expr, depth)?);
                let range = of.range.start..own.end;
                (ExprKind::Item(of, key), range)
            }
            ast::Expr::Slice(slice) => {
                let of = self.boxed(&slice.expr, depth)?;
                let range = of.range.start..own.end;
                let part = |part: &Option<ast::Expr<'_>>| part.as_ref().map(|part| self.boxed(part, depth)).transpose();
                let step = match &slice.step {
                    None => 1,
                    Some(ast::Expr::Const(step)) => step.value.as_usize().filter(|step| *step > 0).unwrap_or(0),
                    Some(_) => 0,
                };
                if step == 0 {
                    return Err(ExprError::at(&range, "the step of a slice must be a number of at least 1")
                        .with_help("to reverse a list or text, write `| reverse`"));
                }
                (ExprKind::Slice { of, start: part(&slice.start)?, stop: part(&slice.stop)?, step }, range)
            }
            ast::Expr::Call(call) if self.in_template && !self.is_plain_call(call) => {
                let range = leftmost(&call.expr)..own.end;
                let mut calls = self.native_calls.borrow_mut();
                calls.push(range.clone());
                (ExprKind::NativeCall(calls.len() - 1), range)
            }
            ast::Expr::Call(call) => (self.call(call, &own, depth)?, own),
            ast::Expr::List(list) => (ExprKind::List(self.nodes(&list.items, depth)?), own),
            ast::Expr::Tuple(tuple) => (ExprKind::List(self.nodes(&tuple.items, depth)?), own),
            ast::Expr::Map(map) => {
                let (keys, values) = (self.nodes(&map.keys, depth)?, self.nodes(&map.values, depth)?);
                (ExprKind::Map(keys.into_iter().zip(values).collect()), own)
            }
        };
        Ok(ExprNode { kind, range })
    }

    fn constant(&self, value: &Value, range: &Range<usize>) -> Result<ExprKind, ExprError> {
        let fits = if value.is_integer() {
            i64::try_from(value.clone()).is_ok() || u64::try_from(value.clone()).is_ok()
        } else {
            !value.is_number() || f64::try_from(value.clone()).is_ok_and(f64::is_finite)
        };
        if fits { Ok(ExprKind::Constant(value.clone())) } else { Err(ExprError::at(range, "this number is too large")) }
    }

    fn nodes(&self, exprs: &[ast::Expr<'_>], depth: usize) -> Result<Vec<ExprNode>, ExprError> {
        exprs.iter().map(|expr| self.node(expr, depth + 1)).collect()
    }

    fn arguments(&self, arguments: &[CallArg<'_>], depth: usize) -> Result<Vec<Argument>, ExprError> {
        let copy = |argument: &CallArg<'_>| match argument {
            CallArg::Pos(value) => self.node(value, depth + 1).map(Argument::Plain),
            CallArg::Kwarg(name, value) => {
                self.node(value, depth + 1).map(|value| Argument::Named((*name).to_owned(), value))
            }
            CallArg::PosSplat(value) | CallArg::KwargSplat(value) => Err(ExprError::at(
                &bytes(value.span()),
                "`*` and `**` cannot be used to unpack arguments in an expression",
            )),
        };
        arguments.iter().map(copy).collect()
    }

    fn can_call(&self, name: &str) -> bool {
        // minijinja compiles calls of the other two, and of the blocks of `self`, to special instructions.
        if self.in_template { !matches!(name, "loop" | "super") } else { CALLABLE.contains(&name) }
    }

    fn is_plain_call(&self, call: &ast::Call<'_>) -> bool {
        matches!(&call.expr, ast::Expr::Var(var) if self.can_call(var.id))
    }

    fn call(&self, call: &ast::Call<'_>, range: &Range<usize>, depth: usize) -> Result<ExprKind, ExprError> {
        match &call.expr {
            ast::Expr::Var(var) if self.can_call(var.id) => {
                Ok(ExprKind::Call(var.id.to_owned(), self.arguments(&call.args, depth)?))
            }
            ast::Expr::Var(var) => {
                let own = bytes(var.span());
                let unknown = unknown_function(var.id, CALLABLE);
                let repair = match unknown.instead {
                    Some(near) => Some(SourceRepair::one(msg!("use `{near}`"), own.clone(), near)),
                    None => self.filter_repair(var.id, &call.args, range, depth),
                };
                let message = msg!("there is no function `{}` here", var.id);
                Err(ExprError::at(&own, message)
                    .with_help(unknown.help)
                    .with_repair(repair)
                    .with_unknown(FeatureKind::Function))
            }
            ast::Expr::GetAttr(attribute) => {
                let of = self.node(&attribute.expr, depth + 1)?;
                let called = of.range.start..range.end;
                let name_end = bytes(attribute.span()).end;
                let text = |range: Range<usize>| self.source.get(range).unwrap_or_default();
                let (help, repair) = method(
                    attribute.name,
                    text(of.range.clone()),
                    text(name_end..range.end),
                    called == (0..self.source.len()),
                );
                let repair = repair.map(|repair| SourceRepair::one(msg!("write `{repair}`"), called.clone(), repair));
                Err(ExprError::at(
                    &called,
                    msg!("`.{}()` is a method call, but values have no methods", attribute.name),
                )
                .with_help(help)
                .with_repair(repair)
                .with_unknown(FeatureKind::Function))
            }
            other => Err(ExprError::at(&(leftmost(other)..range.end), "only functions can be called")),
        }
    }

    /// `length(x)` as `x | length`.
    fn filter_repair(
        &self,
        name: &str,
        arguments: &[CallArg<'_>],
        range: &Range<usize>,
        depth: usize,
    ) -> Option<SourceRepair> {
        let filter = filter_called(name)?;
        let [CallArg::Pos(only)] = arguments else { return None };
        let on = self.node(only, depth + 1).ok()?;
        let text = self.source.get(on.range.clone())?;
        let simple =
            matches!(on.kind, ExprKind::Name(_) | ExprKind::Attribute(..) | ExprKind::Constant(_) | ExprKind::Item(..));
        let text = if simple { format!("{text} | {filter}") } else { format!("({text}) | {filter}") };
        Some(SourceRepair::one(msg!("write `{text}`"), range.clone(), text))
    }

    fn known(&self, kind: FeatureKind, name: &str, own: &Range<usize>) -> Result<(), ExprError> {
        if has(&ENVIRONMENT, kind, name) {
            return Ok(());
        }
        let range = own.start..own.start + name.len();
        let unknown = unknown(kind, name, CALLABLE);
        let repair = unknown.instead.map(|ours| SourceRepair::one(msg!("use `{ours}`"), range.clone(), ours));
        Err(ExprError::at(&range, unknown.message).with_help(unknown.help).with_repair(repair).with_unknown(kind))
    }

    fn has_not_between(&self, from: usize, to: usize) -> bool {
        self.source.get(from..to).is_some_and(|between| between.contains("not"))
    }
}

/// The start of the leftmost part of an expression; the span of a postfix (`.a`, `[b]`, `(c)`) covers only the postfix.
fn leftmost(expr: &ast::Expr<'_>) -> usize {
    let mut expr = expr;
    loop {
        expr = match expr {
            ast::Expr::GetAttr(attribute) => &attribute.expr,
            ast::Expr::GetItem(item) => &item.expr,
            ast::Expr::Slice(slice) => &slice.expr,
            ast::Expr::Call(call) => &call.expr,
            ast::Expr::Test(test) => &test.expr,
            ast::Expr::Filter(ast) => match &ast.expr {
                Some(inner) => inner,
                None => return bytes(expr.span()).start,
            },
            other => return bytes(other.span()).start,
        };
    }
}

/// Compiles a literal pattern at parse time.
fn check_pattern(arguments: &[Argument], range: &Range<usize>) -> Result<(), ExprError> {
    match arguments {
        [Argument::Plain(ExprNode { kind: ExprKind::Constant(text), range })] => match text.as_str() {
            Some(text) => pattern::compile(text).map(drop).map_err(|message| ExprError::at(range, message)),
            None => Err(ExprError::at(range, "`regex` needs a string")),
        },
        [Argument::Plain(_)] => Ok(()),
        _ => Err(ExprError::at(range, "`regex` needs exactly one pattern").with_help("write `is regex('…')`")),
    }
}

fn binary_operator(kind: BinOpKind) -> Option<Operator> {
    Some(match kind {
        BinOpKind::Eq => Operator::Equal,
        BinOpKind::Ne => Operator::Unequal,
        BinOpKind::Lt => Operator::Less,
        BinOpKind::Lte => Operator::LessOrEqual,
        BinOpKind::Gt => Operator::Greater,
        BinOpKind::Gte => Operator::GreaterOrEqual,
        BinOpKind::In => Operator::In,
        BinOpKind::Add => Operator::Add,
        BinOpKind::Sub => Operator::Subtract,
        BinOpKind::Mul => Operator::Multiply,
        BinOpKind::Div => Operator::Divide,
        BinOpKind::FloorDiv => Operator::FloorDivide,
        BinOpKind::Rem => Operator::Remainder,
        BinOpKind::Pow => Operator::Power,
        BinOpKind::Concat => Operator::Concatenate,
        BinOpKind::ScAnd | BinOpKind::ScOr => return None,
    })
}

fn comparison(kind: CompareOpKind) -> Operator {
    match kind {
        CompareOpKind::Eq => Operator::Equal,
        CompareOpKind::Ne => Operator::Unequal,
        CompareOpKind::Lt => Operator::Less,
        CompareOpKind::Lte => Operator::LessOrEqual,
        CompareOpKind::Gt => Operator::Greater,
        CompareOpKind::Gte => Operator::GreaterOrEqual,
        CompareOpKind::In => Operator::In,
        CompareOpKind::NotIn => Operator::NotIn,
    }
}
