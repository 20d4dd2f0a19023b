//! Finds what a text or template uses: its free names with their ranges, the templates it refers to, its blocks, and unsupported
//! syntax.

use crate::message::message::Message;
use crate::message::msg;
use std::collections::HashSet;
use std::ops::Range;

use minijinja::machinery::Span;
use minijinja::machinery::ast::{CallArg, Expr, Macro, Spanned, Stmt};
use minijinja::{Environment, UndefinedBehavior};

use crate::expr::methods::method;
use crate::template::environment::has;
use crate::template::features::{FUNCTIONS, FeatureKind};
use crate::template::limits::{RejectedSyntax, bytes};
use crate::template::unknown::{Unknown, unknown, unknown_function};

/// A use of a name that the text does not set itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameUse {
    pub name: String,
    /// The byte range in the source.
    pub range: Range<usize>,
    /// Whether the text works without it here: it is only tested (`is defined`) or has a default (`| default`).
    pub optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    Extends,
    Include,
    /// `{% include … ignore missing %}`
    IncludeIfPresent,
    Import,
}

#[derive(Clone, Debug)]
pub struct Target {
    pub kind: TargetKind,
    /// Its name, if it is a literal.
    pub name: Option<String>,
    /// The range of the statement.
    pub range: Range<usize>,
    /// The range of the name, with its quotes; the complete statement if the name is computed.
    pub name_range: Range<usize>,
    /// Its position in the tree of blocks.
    pub place: UsePlace,
    /// Whether it is loaded whenever its position is rendered: it is not inside an `if`, a loop or a macro.
    pub always: bool,
}

/// A position in the tree of blocks: the enclosing blocks, outermost first, and whether the code there only writes output. Outside
/// the blocks of a child template, output is dropped but assignments take effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsePlace {
    /// Indexes into [`Uses::blocks`].
    pub blocks: Vec<usize>,
    /// Whether it is only written as output, and not part of an assignment or a macro.
    pub written: bool,
}

#[derive(Clone, Debug)]
pub struct TemplateBlock {
    pub name: String,
    pub calls_super: bool,
    pub range: Range<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// The free names, in source order.
    pub names: Vec<NameUse>,
    /// The position of each of [`names`](Self::names) in the tree of blocks.
    pub places: Vec<UsePlace>,
    pub targets: Vec<Target>,
    pub blocks: Vec<TemplateBlock>,
    pub rejected: Vec<RejectedSyntax>,
}

pub fn find(tree: &Stmt<'_>, environment: &Environment<'_>) -> Uses {
    let mut walk = Walk {
        environment,
        uses: Uses::default(),
        scopes: vec![HashSet::new()],
        blocks: Vec::new(),
        assignment_depth: 0,
        conditional_depth: 0,
        chainable: environment.undefined_behavior() == UndefinedBehavior::Chainable,
    };
    walk.statement(tree);
    walk.uses
}

struct Walk<'a, 's> {
    environment: &'a Environment<'a>,
    uses: Uses,
    scopes: Vec<HashSet<&'s str>>,
    blocks: Vec<usize>,
    /// The number of enclosing `set`s and macros.
    assignment_depth: usize,
    /// The number of enclosing `if`s, loops and macros.
    conditional_depth: usize,
    /// Whether attributes of undefined names are allowed.
    chainable: bool,
}

impl<'s> Walk<'_, 's> {
    fn place(&self) -> UsePlace {
        UsePlace { blocks: self.blocks.clone(), written: self.assignment_depth == 0 }
    }

    fn assign(&mut self, name: &'s str) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name);
        }
    }

    fn target(&mut self, target: &Expr<'s>) {
        match target {
            Expr::Var(var) => self.assign(var.id),
            Expr::List(list) => list.items.iter().for_each(|item| self.target(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.target(item)),
            // `{% set ns.x = … %}` needs `ns`.
            other => self.expression(other),
        }
    }

    fn scoped(&mut self, names: &[&'s str], visit: impl FnOnce(&mut Self)) {
        self.scopes.push(names.iter().copied().collect());
        visit(self);
        self.scopes.pop();
    }

    fn in_assignment(&mut self, visit: impl FnOnce(&mut Self)) {
        self.assignment_depth += 1;
        visit(self);
        self.assignment_depth -= 1;
    }

    fn body(&mut self, body: &[Stmt<'s>]) {
        body.iter().for_each(|statement| self.statement(statement));
    }

    fn conditional_body(&mut self, body: &[Stmt<'s>]) {
        self.conditional_depth += 1;
        self.body(body);
        self.conditional_depth -= 1;
    }

    fn statement(&mut self, statement: &Stmt<'s>) {
        match statement {
            Stmt::Template(template) => self.body(&template.children),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr),
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
            Stmt::ForLoop(each) => {
                self.expression(&each.iter);
                self.scoped(&["loop"], |walk| {
                    walk.target(&each.target);
                    walk.optional_expression(each.filter_expr.as_ref());
                    walk.conditional_body(&each.body);
                });
                self.scoped(&[], |walk| walk.conditional_body(&each.else_body));
            }
            Stmt::IfCond(branch) => {
                // Names that a branch sets are visible after it, as at run time.
                self.expression(&branch.expr);
                self.conditional_body(&branch.true_body);
                self.conditional_body(&branch.false_body);
            }
            Stmt::WithBlock(with) => self.scoped(&[], |walk| {
                for (target, value) in &with.assignments {
                    walk.in_assignment(|walk| walk.expression(value));
                    walk.target(target);
                }
                walk.body(&with.body);
            }),
            Stmt::Set(set) => {
                self.in_assignment(|walk| walk.expression(&set.expr));
                self.target(&set.target);
            }
            Stmt::SetBlock(set) => {
                self.in_assignment(|walk| {
                    walk.body(&set.body);
                    walk.optional_expression(set.filter.as_ref());
                });
                self.target(&set.target);
            }
            Stmt::AutoEscape(escape) => self.reject(
                "`autoescape` has no effect in prompts",
                node_range(escape),
                Some(msg!("remove it: nothing is escaped here")),
            ),
            Stmt::FilterBlock(filter) => {
                self.expression(&filter.filter);
                self.body(&filter.body);
            }
            Stmt::Block(block) => {
                self.blocks.push(self.uses.blocks.len());
                self.uses.blocks.push(TemplateBlock {
                    name: block.name.to_owned(),
                    calls_super: false,
                    range: node_range(block),
                });
                self.scoped(&["super"], |walk| walk.body(&block.body));
                self.blocks.pop();
            }
            Stmt::Import(import) => {
                self.add_target(TargetKind::Import, &import.expr, node_range(import));
                self.target(&import.name);
            }
            Stmt::FromImport(import) => {
                self.add_target(TargetKind::Import, &import.expr, node_range(import));
                for (name, alias) in &import.names {
                    self.target(alias.as_ref().unwrap_or(name));
                }
            }
            Stmt::Extends(extends) => self.add_target(TargetKind::Extends, &extends.name, node_range(extends)),
            Stmt::Include(include) => {
                let kind = if include.ignore_missing { TargetKind::IncludeIfPresent } else { TargetKind::Include };
                self.add_target(kind, &include.name, node_range(include));
            }
            Stmt::Macro(declared) => {
                self.assign(declared.name);
                self.macro_body(declared);
            }
            Stmt::CallBlock(call) => {
                self.expression(&call.call.expr);
                self.arguments(&call.call.args);
                self.macro_body(&call.macro_decl);
            }
            Stmt::Do(call) => {
                self.expression(&call.call.expr);
                self.arguments(&call.call.args);
            }
        }
    }

    fn macro_body(&mut self, declared: &Macro<'s>) {
        self.in_assignment(|walk| {
            walk.scoped(&["caller"], |walk| {
                declared.args.iter().for_each(|argument| walk.target(argument));
                declared.defaults.iter().for_each(|value| walk.expression(value));
                walk.conditional_body(&declared.body);
            });
        });
    }

    fn add_target(&mut self, kind: TargetKind, name: &Expr<'s>, range: Range<usize>) {
        let literal = match name {
            Expr::Const(constant) => constant.value.as_str().map(|name| (name.to_owned(), bytes(constant.span()))),
            _ => None,
        };
        if literal.is_none() {
            self.expression(name);
        }
        let (literal, named) = literal.map_or_else(|| (None, range.clone()), |(name, named)| (Some(name), named));
        let mut place = self.place();
        if matches!(kind, TargetKind::Import | TargetKind::Extends) {
            place.written = false;
        }
        let always = self.conditional_depth == 0;
        self.uses.targets.push(Target { kind, name: literal, range, name_range: named, place, always });
    }

    fn optional_expression(&mut self, expression: Option<&Expr<'s>>) {
        if let Some(expression) = expression {
            self.expression(expression);
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'s>]) {
        for argument in arguments {
            match argument {
                CallArg::Pos(value)
                | CallArg::Kwarg(_, value)
                | CallArg::PosSplat(value)
                | CallArg::KwargSplat(value) => self.expression(value),
            }
        }
    }

    fn expression(&mut self, expression: &Expr<'s>) {
        self.visit_expression(expression, false);
    }

    /// `optional`: whether the expression may be undefined.
    fn visit_expression(&mut self, expression: &Expr<'s>, optional: bool) {
        match expression {
            Expr::Var(var) => self.name(var.id, var.span(), optional),
            Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.expression(&slice.expr);
                for part in [&slice.start, &slice.stop, &slice.step].into_iter().flatten() {
                    self.expression(part);
                }
                // minijinja panics on a backward slice of an empty text, so only forward slices are allowed.
                if slice.step.as_ref().is_some_and(|step| !is_positive(step)) {
                    let help = msg!("to reverse a list or text, write `| reverse`");
                    self.reject("the step of a slice must be a number of at least 1", bytes(slice.span()), Some(help));
                }
            }
            Expr::UnaryOp(unary) => self.expression(&unary.expr),
            Expr::BinOp(binary) => {
                self.expression(&binary.left);
                self.expression(&binary.right);
            }
            Expr::Compare(compare) => {
                self.expression(&compare.expr);
                compare.ops.iter().for_each(|step| self.expression(&step.expr));
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.true_expr);
                self.expression(&choice.test_expr);
                self.optional_expression(choice.false_expr.as_ref());
            }
            Expr::Filter(filter) => {
                let is_default_filter = matches!(filter.name, "default" | "d");
                if let Some(value) = &filter.expr {
                    self.visit_expression(value, is_default_filter);
                }
                self.arguments(&filter.args);
                self.known(FeatureKind::Filter, filter.name, filter.span());
            }
            Expr::Test(test) => {
                self.visit_expression(&test.expr, matches!(test.name, "defined" | "undefined"));
                self.arguments(&test.args);
                self.known(FeatureKind::Test, test.name, test.span());
            }
            Expr::GetAttr(attribute) => self.visit_expression(&attribute.expr, optional && self.chainable),
            Expr::GetItem(item) => {
                self.visit_expression(&item.expr, optional && self.chainable);
                self.expression(&item.subscript_expr);
            }
            Expr::Call(call) => {
                match &call.expr {
                    Expr::Var(var) if self.is_assigned(var.id) => {
                        if let ("super", Some(block)) = (var.id, self.blocks.last())
                            && let Some(block) = self.uses.blocks.get_mut(*block)
                        {
                            block.calls_super = true;
                        }
                    }
                    Expr::Var(var) => self.function(var.id, var.span()),
                    Expr::GetAttr(attribute) if !self.is_local(&attribute.expr) => {
                        self.expression(&attribute.expr);
                        self.method(attribute.name, bytes(attribute.span()));
                    }
                    other => self.expression(other),
                }
                self.arguments(&call.args);
            }
            Expr::List(list) => list.items.iter().for_each(|item| self.expression(item)),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.expression(item)),
            Expr::Map(map) => {
                map.keys.iter().for_each(|key| self.expression(key));
                map.values.iter().for_each(|value| self.expression(value));
            }
        }
    }

    /// Whether the root of the expression is set by the source itself (a `loop`, a namespace, an import): only such values have
    /// methods.
    fn is_local(&self, expression: &Expr<'_>) -> bool {
        match expression {
            Expr::Var(var) => self.is_assigned(var.id),
            Expr::GetAttr(attribute) => self.is_local(&attribute.expr),
            Expr::GetItem(item) => self.is_local(&item.expr),
            Expr::Const(_) => false,
            _ => true,
        }
    }

    fn method(&mut self, name: &str, range: Range<usize>) {
        let message = msg!("`.{name}()` is a method call, but values have no methods");
        let help = Some(method(name, "x", "()", true).0);
        self.uses.rejected.push(RejectedSyntax {
            message,
            range,
            help,
            instead: None,
            unknown: Some(FeatureKind::Function),
        });
    }

    fn is_assigned(&self, name: &str) -> bool {
        name == "self" || self.scopes.iter().any(|scope| scope.contains(name))
    }

    fn name(&mut self, name: &str, span: Span, optional: bool) {
        if !self.is_assigned(name) {
            let place = self.place();
            self.uses.places.push(place);
            self.uses.names.push(NameUse { name: name.to_owned(), range: bytes(span), optional });
        }
    }

    fn function(&mut self, name: &str, span: Span) {
        if !FUNCTIONS.contains(&name) {
            self.unknown(FeatureKind::Function, unknown_function(name, FUNCTIONS), &bytes(span), name);
        }
    }

    fn known(&mut self, kind: FeatureKind, name: &str, span: Span) {
        if !has(self.environment, kind, name) {
            self.unknown(kind, unknown(kind, name, FUNCTIONS), &bytes(span), name);
        }
    }

    fn unknown(&mut self, kind: FeatureKind, unknown: Unknown, own: &Range<usize>, name: &str) {
        let range = own.start..own.start + name.len();
        let (message, help, instead) = (unknown.message, Some(unknown.help), unknown.instead.map(str::to_owned));
        self.uses.rejected.push(RejectedSyntax { message, range, help, instead, unknown: Some(kind) });
    }

    fn reject(&mut self, message: impl Into<Message>, range: Range<usize>, help: Option<Message>) {
        self.uses.rejected.push(RejectedSyntax { message: message.into(), range, help, instead: None, unknown: None });
    }
}

fn node_range<T>(node: &Spanned<T>) -> Range<usize> {
    bytes(node.span())
}

fn is_positive(step: &Expr<'_>) -> bool {
    matches!(step, Expr::Const(constant) if constant.value.as_i64().is_some_and(|step| step > 0))
}

#[cfg(test)]
mod tests;
