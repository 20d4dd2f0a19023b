//! The type analysis of operations in author texts, and of values as a whole.

use std::collections::BTreeMap;

use bcc_lang::message::msg;

use crate::collected::DeclaredAs;
use crate::typing::analysis::Analysis;
use crate::typing::finding::{TypeFinding, TypeMistake};
use crate::typing::suggestion;
use crate::typing::type_set::TypeSet;
use bcc_lang::expr::parse::Expr;
use bcc_lang::expr::tree::ExprNode;
use bcc_lang::value::compare::ValueShape;

/// Finds the type errors in an operation of an author text. `is_list`: whether a loop iterates over it. Everything has a truth in a text,
/// and an attribute or item that does not exist is empty, so conditions and parts are not checked.
pub(crate) fn analyse_in_text(
    source: &str,
    root: &ExprNode,
    is_list: bool,
    declared: &BTreeMap<String, DeclaredAs>,
) -> Vec<TypeFinding> {
    let mut analysis = Analysis::of(source, declared);
    analysis.in_text = true;
    let types = analysis.infer(root);
    if is_list && types.is_none_of(&[ValueShape::List, ValueShape::Object, ValueShape::String]) {
        let message = msg!("a loop needs a list, but {}", suggestion::is(&analysis, root, &types));
        analysis.mismatch(&root.range, message, "iterate over a variable that is declared with `type: list`");
    }
    let mut found = analysis.found;
    found.retain(|found| !matches!(found.mistake, TypeMistake::Constant(_) | TypeMistake::NotBoolean));
    found.sort_by_key(|found| found.range.start);
    found
}

/// The type of the value of an expression; `None` if it has type errors.
pub(crate) fn type_of(expression: &Expr, declared: &BTreeMap<String, DeclaredAs>) -> Option<TypeSet> {
    let mut analysis = Analysis::of(expression.source(), declared);
    let types = analysis.infer(expression.root());
    analysis.found.is_empty().then_some(types)
}
