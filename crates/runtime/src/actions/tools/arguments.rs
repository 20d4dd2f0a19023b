//! The arguments of a `tool` action: values of any depth, whose texts are author texts.

use std::sync::Arc;

use crate::program::assigned::Assigned;
use crate::program::assignments::{evaluate, read_value};
use crate::program::flow::ActionError;
use crate::program::kind::KindChecker;
use crate::program::turn::Turn;
use bcc_lang::source::yaml::{NodeKind, YamlEntry, YamlNode};
use bcc_lang::value::exact::{ExactValue, ExactValues};

/// The maximum depth of arguments; what is deeper is taken literally.
const MAX_DEPTH: usize = 32;

pub(crate) enum ToolArgument {
    Value(Assigned),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl ToolArgument {
    /// Reads an argument. All problems are reported.
    pub(crate) fn read(node: &Arc<YamlNode>, checker: &mut dyn KindChecker) -> Option<Self> {
        Self::read_at(node, checker, 0)
    }

    fn read_at(node: &Arc<YamlNode>, checker: &mut dyn KindChecker, depth: usize) -> Option<Self> {
        match &node.kind {
            NodeKind::Mapping(entries) if depth < MAX_DEPTH => {
                let fields: Vec<Option<(String, Self)>> = entries
                    .iter()
                    .map(|YamlEntry { key, value }| {
                        Some((key.value.clone(), Self::read_at(value, checker, depth + 1)?))
                    })
                    .collect();
                fields.into_iter().collect::<Option<_>>().map(Self::Object)
            }
            NodeKind::Sequence(items) if depth < MAX_DEPTH => {
                let items: Vec<Option<Self>> =
                    items.iter().map(|item| Self::read_at(item, checker, depth + 1)).collect();
                items.into_iter().collect::<Option<_>>().map(Self::List)
            }
            _ => read_value(node, checker).map(Self::Value),
        }
    }

    /// The value in this turn; `None` if it is an expression that is null.
    fn value(&self, turn: &Turn<'_>) -> Result<Option<ExactValue>, ActionError> {
        Ok(match self {
            Self::Value(written) => {
                let value = evaluate(turn, std::iter::once(("", written)))?.into_iter().next();
                let value = value.map(|(_, value)| value);
                value.filter(|value| !(value.is_null() && matches!(written, Assigned::Expression(_))))
            }
            Self::List(items) => {
                // A null keeps the places of the items that follow.
                let values = items.iter().map(|item| Ok(item.value(turn)?.unwrap_or_default()));
                Some(values.collect::<Result<_, ActionError>>()?)
            }
            Self::Object(fields) => Some(values_of(fields, turn)?.into_iter().collect()),
        })
    }
}

/// The values of arguments in this turn, without those whose expression is null: they have no value.
pub(crate) fn values_of(arguments: &[(String, ToolArgument)], turn: &Turn<'_>) -> Result<ExactValues, ActionError> {
    let mut values = ExactValues::new();
    for (name, argument) in arguments {
        if let Some(value) = argument.value(turn)? {
            values.insert(name.clone(), value);
        }
    }
    Ok(values)
}
