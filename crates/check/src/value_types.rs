//! The types of values that are written as expressions or texts, for rules about what may hold them.

use std::collections::{BTreeMap, BTreeSet};

use crate::collected::Collected;
use crate::typing::type_set::TypeSet;
use crate::typing::values::type_of;
use bcc_lang::source::span::Span;
use bcc_lang::value::compare::ValueShape;
use bcc_lang::value::declared::DeclaredType;

/// The values of actions that are no constants, by their places.
pub(crate) struct ValueTypes {
    /// The numbers in [`Collected::expressions`].
    expressions: BTreeMap<Span, usize>,
    /// Texts with something around or between their expressions.
    texts: BTreeSet<Span>,
}

impl ValueTypes {
    pub(crate) fn of(collected: &Collected) -> Self {
        let in_actions = collected.expressions.iter().enumerate().filter(|(_, entry)| entry.at.action.is_some());
        let texts = collected.texts.iter().filter(|entry| !entry.text.is_plain());
        Self {
            expressions: in_actions.map(|(number, entry)| (entry.node.span, number)).collect(),
            texts: texts.map(|entry| entry.node.span).collect(),
        }
    }

    /// Whether no value that is written at this place can be coerced to the type. False if this is not known.
    pub(crate) fn never_fits(&self, collected: &Collected, at: Span, declared: DeclaredType) -> bool {
        if self.texts.contains(&at) {
            return matches!(declared, DeclaredType::List | DeclaredType::Object);
        }
        let entry = self.expressions.get(&at).and_then(|number| collected.expressions.get(*number));
        let types = entry.and_then(|entry| type_of(&entry.expression, &entry.declared));
        types.is_some_and(|types| !types.is_null() && !may_fit(&types, declared))
    }
}

fn may_fit(types: &TypeSet, declared: DeclaredType) -> bool {
    if let Some(values) = types.values() {
        let json = values.iter().map(|value| serde_json::to_value(value).ok());
        return json.into_iter().any(|value| value.is_none_or(|value| declared.coerce(&value).is_some()));
    }
    use DeclaredType::{Boolean, Date, Integer, List, Number, Object, String};
    types.shapes().any(|shape| match shape {
        ValueShape::Other | ValueShape::Null => true,
        ValueShape::String => matches!(declared, String | Date | Number | Integer | Boolean),
        ValueShape::Number => matches!(declared, Number | Integer | String),
        ValueShape::Boolean => matches!(declared, Boolean | String),
        ValueShape::List => declared == List,
        ValueShape::Object => declared == Object,
    })
}
