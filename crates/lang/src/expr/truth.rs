//! The value of an expression, and its truth as a condition.

use crate::message::message::Message;
use crate::message::msg;

use crate::expr::bindings::ExpressionBindings;
use crate::expr::eval::Evaluation;
use crate::expr::failure::{EvaluationError, ExpressionDialect};
use crate::expr::parse::{Expr, ExprError};
use crate::template::exact_number::to_exact;
use crate::template::names::TemplateNames;
use crate::value::exact::ExactValue;

/// The result of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    /// Not known; counts as false. The source text of the part that is null.
    Null(String),
}

impl Truth {
    pub fn holds(&self) -> bool {
        *self == Self::True
    }
}

impl Expr {
    /// Evaluates the expression with these names. If an operation in it makes the result null, `names` gets a warning.
    /// Errors: [`ExprError`]: an unknown name, incompatible operands, an overflow.
    pub fn eval(&self, names: &TemplateNames) -> Result<ExactValue, ExprError> {
        let root = self.root();
        let mut bindings = ExpressionBindings::new(names);
        let mut evaluation = Evaluation::new(self.source(), ExpressionDialect::Expression, &mut bindings);
        let value = evaluation.value(root).map_err(EvaluationError::into_error)?;
        if let Some(cause) = evaluation.cause.take() {
            names.warn(null_warning(self.source(), evaluation.text(&cause)));
        }
        to_exact(&value).map_err(|_| ExprError::at(&root.range, "the result is not a value that can be stored"))
    }

    /// Evaluates the expression as a condition.
    /// Errors: As [`eval`](Self::eval), and a result that is neither a boolean nor null.
    pub fn truth(&self, names: &TemplateNames) -> Result<Truth, ExprError> {
        let mut bindings = ExpressionBindings::new(names);
        let mut evaluation = Evaluation::new(self.source(), ExpressionDialect::Expression, &mut bindings);
        Ok(match evaluation.condition(self.root(), "a condition").map_err(EvaluationError::into_error)? {
            Some(true) => Truth::True,
            Some(false) => Truth::False,
            None => {
                let cause = evaluation.cause.take().unwrap_or_else(|| self.root().range.clone());
                Truth::Null(evaluation.text(&cause).to_owned())
            }
        })
    }
}

/// The warning about an operation whose result is null.
pub(crate) fn null_warning(source: &str, part: &str) -> Message {
    msg!("`{source}` is null, because `{part}` is null")
}
