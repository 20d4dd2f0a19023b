//! Bounds the memory of one rendering or evaluation: the size of each value, and the total of everything that its operators, filters and
//! captured texts produce. An excess is an error, never a truncated result.

use crate::message::message::Message;
use crate::message::msg;

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind, State};

use crate::template::error::error_with_message;
use crate::template::exact_number::digits;
use crate::template::missing::is_unknown;
use crate::template::names::MAX_VALUE_BYTES;

/// The maximum number of bytes that one rendering or evaluation may take for values that it makes.
pub(crate) const MAX_TOTAL_BYTES: usize = 64 * 1024 * 1024;

/// The maximum number of values inside one list or object, nested ones included.
pub(crate) const MAX_NODES: usize = 1_000_000;

/// The maximum depth of lists and objects: what recurses over values must not overflow the stack.
const MAX_DEPTH: usize = 100;

/// The approximate memory of an item of a list.
const ITEM_BYTES: usize = 32;

/// The approximate length of a number, a boolean or a pair of brackets as text.
const SCALAR_BYTES: usize = 4;

/// The maximum number of nested values that one rendering visits to measure lists and objects.
const MAX_VISITS: usize = 20_000_000;

/// What a rendering or evaluation has taken so far.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    taken: usize,
    visited: usize,
}

/// The size of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// The number of values, nested ones included.
    pub nodes: usize,
    /// The approximate length as text, in bytes.
    pub text: usize,
    pub depth: usize,
    /// Whether a `namespace` is among them.
    pub has_namespace: bool,
}

impl Memory {
    /// Counts bytes that are produced.
    /// Errors: More than [`MAX_TOTAL_BYTES`] in total.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), Message> {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken > MAX_TOTAL_BYTES {
            return Err(msg!(
                "values of more than {MAX_TOTAL_BYTES} bytes in total were made; is there a loop that makes a long text again and again?"
            ));
        }
        Ok(())
    }

    /// Counts a value that was made. `has_new_texts`: its texts are new, too, and not those of its operands.
    /// Errors: A text that is too long, a list or object that is too large or nested too deeply, or the total is exceeded.
    pub(crate) fn count(&mut self, value: &Value, has_new_texts: bool) -> Result<(), Message> {
        if let Some(text) = value.as_str() {
            if text.len() > MAX_VALUE_BYTES {
                return Err(msg!("the result is longer than {MAX_VALUE_BYTES} bytes"));
            }
            return if has_new_texts { self.take(text.len()) } else { Ok(()) };
        }
        if !is_collection(value) {
            return Ok(());
        }
        let size = size(value)?;
        self.visited = self.visited.saturating_add(size.nodes);
        if self.visited > MAX_VISITS {
            return Err(msg!("lists and objects with more than {MAX_VISITS} values in total were made"));
        }
        let items = value.len().unwrap_or(size.nodes).saturating_mul(ITEM_BYTES);
        self.take(if has_new_texts { items.saturating_add(size.text) } else { items })
    }
}

/// Counts in `state`; see [`Memory::count`].
pub(crate) fn count(state: &mut State<'_, '_>, value: &Value, has_new_texts: bool) -> Result<(), Error> {
    memory(state).count(value, has_new_texts).map_err(limit_error)
}

/// The account of a rendering or evaluation.
pub(crate) fn memory<'s>(state: &'s mut State<'_, '_>) -> &'s mut Memory {
    state.get_or_insert_extension_with(Memory::default)
}

/// An exceeded limit, which ends the rendering.
pub(crate) fn limit_error(message: Message) -> Error {
    error_with_message(ErrorKind::WriteFailure, message)
}

fn is_collection(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) && !is_unknown(value)
}

/// The size of a value.
/// Errors: It is nested too deeply or contains more than [`MAX_NODES`] values.
pub(crate) fn size(value: &Value) -> Result<Size, Message> {
    fn add(value: &Value, depth: usize, size: &mut Size) -> Result<(), Message> {
        size.nodes += 1;
        if size.nodes > MAX_NODES {
            return Err(msg!("this has more than {MAX_NODES} items, nested ones included"));
        }
        size.text = size.text.saturating_add(value.as_str().or_else(|| digits(value)).map_or(SCALAR_BYTES, str::len));
        if !is_collection(value) {
            return Ok(());
        }
        if depth == MAX_DEPTH {
            return Err(msg!("lists and objects are nested more than {MAX_DEPTH} levels deep"));
        }
        size.depth = size.depth.max(depth + 1);
        size.has_namespace |= is_namespace(value);
        let Ok(items) = value.try_iter() else { return Ok(()) };
        let is_map = value.kind() == ValueKind::Map;
        for item in items {
            if is_map {
                size.text = size.text.saturating_add(item.as_str().map_or(SCALAR_BYTES, str::len));
                add(&value.get_item(&item).unwrap_or_default(), depth + 1, size)?;
            } else {
                add(&item, depth + 1, size)?;
            }
        }
        Ok(())
    }
    let mut size = Size::default();
    add(value, 0, &mut size)?;
    Ok(size)
}

/// minijinja does not export the type.
fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// A list or object whose items exist, instead of one that calculates them again on each use.
/// Errors: It has more than [`MAX_NODES`] items, or an item has an error.
pub(crate) fn evaluated(value: Value) -> Result<Value, Error> {
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
        || is_unknown(&value)
        || value.downcast_object_ref::<Vec<Value>>().is_some()
    {
        return Ok(value);
    }
    let mut items = Vec::new();
    for item in value.try_iter()? {
        if items.len() == MAX_NODES {
            return Err(limit_error(msg!("this has more than {MAX_NODES} items, nested ones included")));
        }
        items.push(item);
    }
    Ok(Value::from(items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_value_is_measured_as_often_as_it_occurs() {
        let mut value = Value::from(vec![1, 2]);
        for _ in 0..10 {
            value = Value::from(vec![value.clone(), value]);
        }
        assert_eq!(size(&value), Ok(Size { nodes: 4095, text: 4095 * SCALAR_BYTES, depth: 11, has_namespace: false }));
        for _ in 0..20 {
            value = Value::from(vec![value.clone(), value]);
        }
        assert!(size(&value).is_err());
    }

    #[test]
    fn deep_values_are_an_error() {
        let mut value = Value::from(1);
        for _ in 0..MAX_DEPTH {
            value = Value::from(vec![value]);
        }
        assert_eq!(size(&value).map(|size| size.depth), Ok(MAX_DEPTH));
        assert!(size(&Value::from(vec![value])).is_err());
    }

    #[test]
    fn the_total_counts_new_texts_only() {
        let text = Value::from("x".repeat(MAX_VALUE_BYTES));
        let mut memory = Memory::default();
        for _ in 0..1_000 {
            memory.count(&text, false).unwrap();
        }
        let fitting = MAX_TOTAL_BYTES / MAX_VALUE_BYTES;
        for _ in 0..fitting {
            memory.count(&text, true).unwrap();
        }
        assert!(memory.count(&text, true).is_err());
        assert!(memory.count(&Value::from("x".repeat(MAX_VALUE_BYTES + 1)), false).is_err());
    }
}
