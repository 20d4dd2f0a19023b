//! Evaluates the operations of texts and templates while they are rendered. A null or failing operation is rendered as nothing, with a
//! warning (docs/language.md "Expressions").

use crate::message::message::Message;
use crate::message::msg;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::value::{Rest, Value};
use minijinja::{Environment, Error, ErrorKind, State};

use crate::expr::bindings::StateBindings;
use crate::expr::eval::Evaluation;
use crate::expr::failure::{EvaluationError, ExpressionDialect};
use crate::expr::operators::shape;
use crate::expr::tree::ExprNode;
use crate::expr::truth::null_warning;
use crate::template::error::error_at;
use crate::template::features::FUEL;
use crate::template::memory::{limit_error, memory, size};
use crate::template::rewrite::{COUNT, EVALUATE, Replacement, ValueUse, find_expressions, original_range, replace};
use crate::value::compare::ValueShape;

/// The maximum number of warnings of one rendering.
const MAX_WARNINGS: usize = 16;

/// The operations of all templates of an environment.
#[derive(Debug)]
pub(crate) struct Operations {
    dialect: ExpressionDialect,
    compiled: Mutex<Compiled>,
}

#[derive(Debug, Default)]
struct Compiled {
    operations: Vec<Arc<Operation>>,
    /// By the template's name in the environment.
    replacements: HashMap<String, Vec<Replacement>>,
}

#[derive(Debug)]
struct Operation {
    /// The template's name in the environment.
    template: String,
    /// The start of the expression in the template.
    start: usize,
    source: String,
    root: ExprNode,
    used_for: ValueUse,
    /// The number of its calls that only minijinja can make.
    native_calls: usize,
}

/// A warning about an operation, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperationWarning {
    /// The template's name in the environment.
    pub template: String,
    /// The byte range in the template.
    pub range: Range<usize>,
    pub message: Message,
}

/// What the operations of one rendering left in its state.
#[derive(Debug, Default)]
struct RenderedOperations {
    warnings: Vec<OperationWarning>,
    steps: u64,
}

impl Operations {
    /// Operations in `environment`, which must get its templates from [`rewrite`](Self::rewrite).
    pub(crate) fn install(environment: &mut Environment<'static>, dialect: ExpressionDialect) -> Arc<Self> {
        let operations = Arc::new(Self { dialect, compiled: Mutex::default() });
        let own = Arc::clone(&operations);
        // The first arguments only name what a macro must pass on to the operation; the last ones are the values of its native calls.
        environment.add_filter(EVALUATE, move |state: &mut State<'_, '_>, number: usize, values: Rest<Value>| {
            own.evaluate(state, number, &values)
        });
        environment.add_filter(COUNT, |state: &mut State<'_, '_>, length: usize| {
            memory(state).take(length).map(|()| "").map_err(limit_error)
        });
        operations
    }

    /// The template for minijinja.
    pub(crate) fn rewrite(&self, template: &str, source: &str) -> String {
        let found = find_expressions(source);
        let mut compiled = self.compiled();
        let (output, replacements) = replace(source, &found, compiled.operations.len());
        for expression in found {
            compiled.operations.push(Arc::new(Operation {
                template: template.to_owned(),
                start: expression.range.start,
                source: source.get(expression.range.clone()).unwrap_or_default().to_owned(),
                root: expression.root,
                used_for: expression.used_for,
                native_calls: expression.native_calls.len(),
            }));
        }
        compiled.replacements.insert(template.to_owned(), replacements);
        output
    }

    /// The range in the template's source for a range in the text that [`rewrite`](Self::rewrite) returned.
    pub(crate) fn original(&self, template: &str, range: &Range<usize>) -> Range<usize> {
        match self.compiled().replacements.get(template) {
            Some(replacements) => original_range(replacements, range),
            None => range.clone(),
        }
    }

    /// The warnings of a rendering.
    pub(crate) fn warnings<'s>(state: &'s State<'_, '_>) -> &'s [OperationWarning] {
        state.get_extension::<RenderedOperations>().map_or(&[], |rendered| &rendered.warnings)
    }

    fn compiled(&self) -> MutexGuard<'_, Compiled> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn evaluate(&self, state: &mut State<'_, '_>, number: usize, values: &[Value]) -> Result<Value, Error> {
        let operation = self.compiled().operations.get(number).map(Arc::clone);
        let operation =
            operation.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "there is no such operation"))?;
        let mut bindings = StateBindings { state: &mut *state };
        let mut evaluation = Evaluation::new(&operation.source, self.dialect, &mut bindings);
        evaluation.native_calls = values.get(values.len().saturating_sub(operation.native_calls)..).unwrap_or_default();
        let result = evaluation.value(&operation.root);
        let (steps, cause) = (evaluation.steps, evaluation.cause.take());
        let mut nulls = std::mem::take(&mut evaluation.null_tests);
        let rendered = state.get_or_insert_extension_with(RenderedOperations::default);
        rendered.steps = rendered.steps.saturating_add(steps);
        if rendered.steps > FUEL {
            return Err(Error::from(ErrorKind::OutOfFuel));
        }
        let value = match result {
            Ok(value) => {
                nulls.extend(cause);
                if operation.used_for == ValueUse::Stored && size(&value).is_ok_and(|size| size.has_namespace) {
                    // It could contain itself, and would have no end when it is written.
                    let message = msg!("a `namespace` cannot be stored in a `namespace`");
                    let (detail, range) = (message.to_string(), operation.range(None));
                    return Err(error_at(ErrorKind::InvalidOperation, detail, Some(message), range));
                }
                operation.check_use(value, rendered)
            }
            Err(EvaluationError::Operation(error)) => {
                let range = error.range.unwrap_or(0..operation.source.len());
                rendered.warn(&operation, &range, msg!("`{}` has no result: {}", operation.source, error.message));
                Value::from(())
            }
            Err(EvaluationError::Unknown(error, name)) => {
                let (detail, range) = (format!("`{name}` is undefined"), operation.range(error.range));
                return Err(error_at(ErrorKind::UndefinedError, detail, None, range));
            }
            Err(EvaluationError::Limit(error)) => {
                let (detail, range) = (error.message.to_string(), operation.range(error.range));
                return Err(error_at(ErrorKind::InvalidOperation, detail, Some(error.message), range));
            }
            Err(EvaluationError::Template(error)) => return Err(error),
        };
        for range in nulls {
            let part = operation.source.get(range.clone()).unwrap_or_default();
            rendered.warn(&operation, &range, null_warning(&operation.source, part));
        }
        Ok(value)
    }
}

impl Operation {
    /// A range of the template for one of the expression.
    fn range(&self, own: Option<Range<usize>>) -> Range<usize> {
        let own = own.unwrap_or(0..self.source.len());
        self.start + own.start..self.start + own.end
    }

    /// The value if its place in the template can use it, else null.
    fn check_use(&self, value: Value, rendered: &mut RenderedOperations) -> Value {
        let is_single = matches!(shape(&value), ValueShape::Boolean | ValueShape::Number);
        if self.used_for != ValueUse::Items || !is_single {
            return value;
        }
        let message = msg!("`{}` has no items: it is {}", self.source, shape(&value));
        rendered.warn(self, &(0..self.source.len()), message);
        Value::from(())
    }
}

impl RenderedOperations {
    fn warn(&mut self, operation: &Operation, range: &Range<usize>, message: Message) {
        let range = operation.range(Some(range.clone()));
        let warning = OperationWarning { template: operation.template.clone(), range, message };
        if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

#[cfg(test)]
mod tests;
