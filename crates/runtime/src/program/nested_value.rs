//! A value whose texts are author texts at any depth of lists and mappings.

use std::sync::Arc;

use crate::program::assigned::Assigned;
use crate::program::assignments::{evaluate, read_value};
use crate::program::flow::ActionError;
use crate::program::kind::KindChecker;
use crate::program::turn::Turn;
use bcc_lang::source::yaml::{NodeKind, YamlEntry, YamlNode};
use bcc_lang::value::exact::ExactValue;

/// A value as it is written. Its texts are rendered when the action starts.
pub(crate) enum NestedValue {
    Value(Assigned),
    List(Vec<Self>),
    Mapping(Vec<(String, Self)>),
}

impl NestedValue {
    /// Reads a value. All problems are reported.
    pub(crate) fn read(node: &Arc<YamlNode>, checker: &mut dyn KindChecker) -> Option<Self> {
        Some(match &node.kind {
            NodeKind::Scalar(_) => Self::Value(read_value(node, checker)?),
            NodeKind::Sequence(items) => {
                let items: Vec<Option<Self>> = items.iter().map(|item| Self::read(item, checker)).collect();
                Self::List(items.into_iter().collect::<Option<_>>()?)
            }
            NodeKind::Mapping(entries) => {
                let mut field = |entry: &YamlEntry| Some((entry.key.value.clone(), Self::read(&entry.value, checker)?));
                let fields: Vec<Option<(String, Self)>> = entries.iter().map(&mut field).collect();
                Self::Mapping(fields.into_iter().collect::<Option<_>>()?)
            }
        })
    }

    /// The values in it, in order.
    fn leaves<'w>(&'w self, into: &mut Vec<&'w Assigned>) {
        match self {
            Self::Value(value) => into.push(value),
            Self::List(items) => items.iter().for_each(|item| item.leaves(into)),
            Self::Mapping(fields) => fields.iter().for_each(|(_, field)| field.leaves(into)),
        }
    }

    /// The value with its leaves replaced by their values, in the same order.
    fn fill(&self, values: &mut impl Iterator<Item = ExactValue>) -> ExactValue {
        match self {
            Self::Value(_) => values.next().unwrap_or_default(),
            Self::List(items) => items.iter().map(|item| item.fill(values)).collect(),
            Self::Mapping(fields) => fields.iter().map(|(name, field)| (name.clone(), field.fill(values))).collect(),
        }
    }
}

/// Evaluates the values and returns them with their names.
pub(crate) fn evaluate_nested(
    turn: &Turn<'_>,
    written: &[(String, NestedValue)],
) -> Result<Vec<(String, ExactValue)>, ActionError> {
    let mut leaves = Vec::new();
    written.iter().for_each(|(_, value)| value.leaves(&mut leaves));
    let values = evaluate(turn, leaves.into_iter().map(|leaf| ("", leaf)))?;
    let mut values = values.into_iter().map(|(_, value)| value);
    Ok(written.iter().map(|(name, value)| (name.clone(), value.fill(&mut values))).collect())
}
