//! What a text or template uses: its free names with their places, the files it pulls in, its blocks, and what is
//! refused before it could ever run.

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
use crate::template::limits::{YamlSyntaxError, bytes};
use crate::template::unknown::{Unknown, unknown, unknown_function};

/// One place where a name is used that the text does not set itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameUse {
    pub name: String,
    /// Where it stands, in bytes of the source.
    pub range: Range<usize>,
    /// Whether the text works without it here: it is only asked for (`is defined`) or has a stand-in (`| default`).
    pub optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    Extends,
    Include,
    /// `{% include … ignore missing %}`
    IncludeIfThere,
    Import,
}

#[derive(Clone, Debug)]
pub struct Target {
    pub pull: Pull,
    /// Its name, where it is written as a literal.
    pub name: Option<String>,
    /// Where the statement stands.
    pub range: Range<usize>,
    /// Where the name stands, with its quotes; the whole statement where the name is computed.
    pub named: Range<usize>,
    /// Where it stands in the tree of blocks.
    pub place: UsePlace,
    /// Whether it is pulled in whenever its place is written: no `if`, no loop and no macro is around.
    pub always: bool,
}

/// Where something stands: the blocks around it, outermost first, and whether what it writes counts where a child
/// template writes outside of its blocks (there it does not, while what it sets does).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsePlace {
    /// Indexes into [`Uses::blocks`].
    pub blocks: Vec<usize>,
    /// Whether it is only written where it stands, not set or put into a macro.
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
    /// The free names, in the order in which they stand in the source.
    pub names: Vec<NameUse>,
    /// Where each of [`names`](Self::names) stands among the blocks.
    pub places: Vec<UsePlace>,
    pub targets: Vec<Target>,
    pub blocks: Vec<TemplateBlock>,
    pub refused: Vec<YamlSyntaxError>,
}

pub fn find(tree: &Stmt<'_>, environment: &Environment<'_>) -> Uses {
    let mut walk = Walk {
        environment,
        uses: Uses::default(),
        scopes: vec![HashSet::new()],
        blocks: Vec::new(),
        setting: 0,
        depending: 0,
        chains: environment.undefined_behavior() == UndefinedBehavior::Chainable,
    };
    walk.statement(tree);
    walk.uses
}

struct Walk<'a, 's> {
    environment: &'a Environment<'a>,
    uses: Uses,
    scopes: Vec<HashSet<&'s str>>,
    blocks: Vec<usize>,
    /// How many `set`s and macros are around.
    setting: usize,
    /// How many `if`s, loops and macros are around.
    depending: usize,
    /// Whether an attribute of an unknown name is as harmless as the unknown name.
    chains: bool,
}

impl<'s> Walk<'_, 's> {
    fn place(&self) -> UsePlace {
        UsePlace { blocks: self.blocks.clone(), written: self.setting == 0 }
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

    fn scoped(&mut self, names: &[&'s str], inside: impl FnOnce(&mut Self)) {
        self.scopes.push(names.iter().copied().collect());
        inside(self);
        self.scopes.pop();
    }

    fn setting(&mut self, inside: impl FnOnce(&mut Self)) {
        self.setting += 1;
        inside(self);
        self.setting -= 1;
    }

    fn body(&mut self, body: &[Stmt<'s>]) {
        body.iter().for_each(|statement| self.statement(statement));
    }

    fn depending(&mut self, body: &[Stmt<'s>]) {
        self.depending += 1;
        self.body(body);
        self.depending -= 1;
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
                    walk.maybe(each.filter_expr.as_ref());
                    walk.depending(&each.body);
                });
                self.scoped(&[], |walk| walk.depending(&each.else_body));
            }
            Stmt::IfCond(branch) => {
                // What a branch sets is seen after it, as at run time.
                self.expression(&branch.expr);
                self.depending(&branch.true_body);
                self.depending(&branch.false_body);
            }
            Stmt::WithBlock(with) => self.scoped(&[], |walk| {
                for (target, value) in &with.assignments {
                    walk.setting(|walk| walk.expression(value));
                    walk.target(target);
                }
                walk.body(&with.body);
            }),
            Stmt::Set(set) => {
                self.setting(|walk| walk.expression(&set.expr));
                self.target(&set.target);
            }
            Stmt::SetBlock(set) => {
                self.setting(|walk| {
                    walk.body(&set.body);
                    walk.maybe(set.filter.as_ref());
                });
                self.target(&set.target);
            }
            Stmt::AutoEscape(escape) => self.refuse(
                "`autoescape` has no effect in prompts",
                whole(escape),
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
                    range: whole(block),
                });
                self.scoped(&["super"], |walk| walk.body(&block.body));
                self.blocks.pop();
            }
            Stmt::Import(import) => {
                self.pull(Pull::Import, &import.expr, whole(import));
                self.target(&import.name);
            }
            Stmt::FromImport(import) => {
                self.pull(Pull::Import, &import.expr, whole(import));
                for (name, alias) in &import.names {
                    self.target(alias.as_ref().unwrap_or(name));
                }
            }
            Stmt::Extends(extends) => self.pull(Pull::Extends, &extends.name, whole(extends)),
            Stmt::Include(include) => {
                let pull = if include.ignore_missing { Pull::IncludeIfThere } else { Pull::Include };
                self.pull(pull, &include.name, whole(include));
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
        self.setting(|walk| {
            walk.scoped(&["caller"], |walk| {
                declared.args.iter().for_each(|argument| walk.target(argument));
                declared.defaults.iter().for_each(|value| walk.expression(value));
                walk.depending(&declared.body);
            });
        });
    }

    fn pull(&mut self, pull: Pull, name: &Expr<'s>, range: Range<usize>) {
        let literal = match name {
            Expr::Const(constant) => constant.value.as_str().map(|name| (name.to_owned(), bytes(constant.span()))),
            _ => None,
        };
        if literal.is_none() {
            self.expression(name);
        }
        let (literal, named) = literal.map_or_else(|| (None, range.clone()), |(name, named)| (Some(name), named));
        let mut place = self.place();
        if matches!(pull, Pull::Import | Pull::Extends) {
            place.written = false;
        }
        self.uses.targets.push(Target { pull, name: literal, range, named, place, always: self.depending == 0 });
    }

    fn maybe(&mut self, expression: Option<&Expr<'s>>) {
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
        self.used(expression, false);
    }

    /// `optional`: whether the expression may be undefined without harm.
    fn used(&mut self, expression: &Expr<'s>, optional: bool) {
        match expression {
            Expr::Var(var) => self.name(var.id, var.span(), optional),
            Expr::Const(_) => {}
            Expr::Slice(slice) => {
                self.expression(&slice.expr);
                for part in [&slice.start, &slice.stop, &slice.step].into_iter().flatten() {
                    self.expression(part);
                }
                // minijinja panics on a backward slice of an empty text, so only forward ones are let through.
                if slice.step.as_ref().is_some_and(|step| !is_positive(step)) {
                    let help = msg!("to reverse a list or text, write `| reverse`");
                    self.refuse("the step of a slice must be a number of at least 1", bytes(slice.span()), Some(help));
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
                self.maybe(choice.false_expr.as_ref());
            }
            Expr::Filter(filter) => {
                let stands_in = matches!(filter.name, "default" | "d");
                if let Some(value) = &filter.expr {
                    self.used(value, stands_in);
                }
                self.arguments(&filter.args);
                self.known(FeatureKind::Filter, filter.name, filter.span());
            }
            Expr::Test(test) => {
                self.used(&test.expr, matches!(test.name, "defined" | "undefined"));
                self.arguments(&test.args);
                self.known(FeatureKind::Test, test.name, test.span());
            }
            Expr::GetAttr(attribute) => self.used(&attribute.expr, optional && self.chains),
            Expr::GetItem(item) => {
                self.used(&item.expr, optional && self.chains);
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
                    Expr::GetAttr(attribute) if !self.is_made_here(&attribute.expr) => {
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

    /// Whether something that the source itself sets (a `loop`, a namespace, what is imported) is at the root of it: only
    /// such things have functions of their own.
    fn is_made_here(&self, expression: &Expr<'_>) -> bool {
        match expression {
            Expr::Var(var) => self.is_assigned(var.id),
            Expr::GetAttr(attribute) => self.is_made_here(&attribute.expr),
            Expr::GetItem(item) => self.is_made_here(&item.expr),
            Expr::Const(_) => false,
            _ => true,
        }
    }

    fn method(&mut self, name: &str, range: Range<usize>) {
        let message = msg!("`.{name}()` is a method call, but values have no methods");
        let help = Some(method(name, "x", "()", true).0);
        self.uses.refused.push(YamlSyntaxError {
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

    fn known(&mut self, what: FeatureKind, name: &str, span: Span) {
        if !has(self.environment, what, name) {
            self.unknown(what, unknown(what, name, FUNCTIONS), &bytes(span), name);
        }
    }

    fn unknown(&mut self, what: FeatureKind, said: Unknown, own: &Range<usize>, name: &str) {
        let range = own.start..own.start + name.len();
        let (message, help, instead) = (said.message, Some(said.help), said.instead.map(str::to_owned));
        self.uses.refused.push(YamlSyntaxError { message, range, help, instead, unknown: Some(what) });
    }

    fn refuse(&mut self, message: impl Into<Message>, range: Range<usize>, help: Option<Message>) {
        self.uses.refused.push(YamlSyntaxError { message: message.into(), range, help, instead: None, unknown: None });
    }
}

fn whole<T>(node: &Spanned<T>) -> Range<usize> {
    bytes(node.span())
}

fn is_positive(step: &Expr<'_>) -> bool {
    matches!(step, Expr::Const(constant) if constant.value.as_i64().is_some_and(|step| step > 0))
}

#[cfg(test)]
mod tests;
