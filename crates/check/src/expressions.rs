//! Compiles the expressions of a script, looks up their names, and records them for the rules.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::checker::Checker;
use crate::collected::{CollectedExpression, ExpressionRole, UseKind, UseLocation};
use crate::full_width_values;
use crate::repairs::fix;
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::fields::TextField;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::locate::locate_bytes;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{ScalarStyle, YamlNode};
use bcc_lang::template::features::FeatureKind;

impl Checker<'_> {
    /// Compiles the expression in the range `within` of a field.
    pub(crate) fn compile(&mut self, field: &TextField, within: Range<usize>, role: ExpressionRole) -> Option<Expr> {
        let source = field.text.get(within.clone()).unwrap_or_default();
        let place = |range: &Range<usize>| {
            let range = range.start + within.start..range.end + within.start;
            locate_bytes(self.file, &field.node, range)
        };
        match Expr::parse(source) {
            Ok(expression) => {
                self.record(field, within.start, role, &expression);
                Some(expression)
            }
            Err(error) => {
                // The names that it uses are unknown.
                self.collected.complete = false;
                let span = error.range.as_ref().map_or(field.node.span, place);
                let diagnostic = match error.unknown {
                    Some(what) => unknown_feature(what, error.message.clone(), self.file, span),
                    None => {
                        let message = msg!("this expression cannot be read: {}", error.message);
                        Diagnostic::error("expression-syntax", message, self.file, span)
                    }
                };
                let advice = || advice(&error.message.to_string()).map(Message::word);
                // Their fix is that of `chinese-quotes`, which is reported, too.
                if in_wide_quotes(&field.node) {
                    let help = "write the expression without these quotes, or use ASCII quotes";
                    self.findings.report(diagnostic.with_help(help));
                    return None;
                }
                let diagnostic = match error.help.clone().or_else(advice) {
                    Some(help) => diagnostic.with_help(help),
                    None => diagnostic,
                };
                let fix = error.repair.as_deref().and_then(|repair| fix(self.file, &field.node, within.start, repair));
                self.findings.report(diagnostic.with_fixes(fix));
                None
            }
        }
    }

    fn record(&mut self, field: &TextField, start: usize, role: ExpressionRole, expression: &Expr) {
        let mut declared = BTreeMap::new();
        for name in expression.names() {
            let within = name.range.start + start..name.range.end + start;
            let place = UseLocation::Within(Arc::clone(&field.node), within);
            self.used(&name.name, place, UseKind::Expression, name.optional, true);
            if let Some(known) = self.known.declaration(&name.name) {
                declared.entry(name.name.clone()).or_insert_with(|| (known.declared, known.choices.clone()));
            }
        }
        let (expression, node, at) = (expression.clone(), Arc::clone(&field.node), self.position());
        self.collected.expressions.push(CollectedExpression { expression, node, start, role, at, declared });
    }
}

/// Whether full-width quotes stand around a whole condition, where YAML expects quotes of its own.
fn in_wide_quotes(node: &YamlNode) -> bool {
    let Some(scalar) = node.as_scalar().filter(|scalar| scalar.style == ScalarStyle::Plain) else { return false };
    let inside = full_width_values::unquoted(&scalar.text);
    // A single word is rather a text to compare with.
    inside.is_some_and(|inside| inside.contains([' ', '<', '>', '=']) && Expr::parse(inside).is_ok())
}

pub(crate) fn unknown_feature(what: FeatureKind, message: Message, file: &Arc<SourceFile>, span: Span) -> Diagnostic {
    match what {
        FeatureKind::Filter => Diagnostic::error("unknown-filter", message, file, span),
        FeatureKind::Test => Diagnostic::error("unknown-test", message, file, span),
        FeatureKind::Function => Diagnostic::error("unknown-function", message, file, span),
    }
}

/// The word of the expression language for a constant of YAML or other languages, and whether this is certain. `yes` and
/// `off` may be texts without quotes.
pub(crate) fn equivalent_constant(name: &str) -> Option<(&'static str, bool)> {
    Some(match name {
        "null" | "Null" | "NULL" | "nil" | "undefined" | "NONE" => ("none", true),
        "TRUE" => ("true", true),
        "FALSE" => ("false", true),
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => ("true", false),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => ("false", false),
        _ => return None,
    })
}

/// The help for an expression that minijinja cannot read, by its error message.
fn advice(message: &str) -> Option<&'static str> {
    if message.contains("end of string") {
        return Some("close the text with the quote that opens it");
    }
    if message.contains("is empty") {
        return Some("write a condition, as in `age >= 18`, or omit the field");
    }
    if ["<", ">", "<=", ">=", "==", "!="].iter().any(|sign| message.ends_with(&format!("unexpected `{sign}`"))) {
        return Some("write a value on both sides of the comparison, as in `age > 18 and age < 60`");
    }
    message.contains("unexpected end of input").then_some("something is missing at the end")
}
