//! Items and slices of values. The slices of minijinja panic at some bounds; these do not.

use minijinja::value::Value;

use crate::expr::operators::shape;
use crate::template::exact_number::plain;
use crate::value::compare::ValueShape;

/// The item of an object, list or text under a key; `None` if there is none.
pub fn lookup(value: &Value, key: &Value) -> Option<Value> {
    let key = &plain(key);
    match shape(value) {
        ValueShape::Object if key.as_str().is_some() => value.get_item(key).ok().filter(|item| !item.is_undefined()),
        ValueShape::List | ValueShape::String if key.is_integer() => {
            let index = key.as_i64()?;
            let part = slice(value, Some(index), (index != -1).then(|| index.saturating_add(1)), 1)?;
            match part.as_str() {
                Some("") => None,
                Some(_) => Some(part),
                None => part.try_iter().ok()?.next(),
            }
        }
        _ => None,
    }
}

/// A slice of a text or list; `None` for any other value. Negative indexes count from the end.
pub fn slice(value: &Value, start: Option<i64>, stop: Option<i64>, step: usize) -> Option<Value> {
    fn take_range<T>(items: Vec<T>, start: Option<i64>, stop: Option<i64>, step: usize) -> impl Iterator<Item = T> {
        let length = items.len();
        let position = |index: i64| match usize::try_from(index) {
            Ok(index) => index.min(length),
            Err(_) => length.saturating_sub(usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX)),
        };
        let (start, stop) = (start.map_or(0, position), stop.map_or(length, position));
        items.into_iter().take(stop).skip(start).step_by(step.max(1))
    }
    match shape(value) {
        ValueShape::String => {
            let characters: Vec<char> = value.as_str()?.chars().collect();
            Some(Value::from(take_range(characters, start, stop, step).collect::<String>()))
        }
        ValueShape::List => {
            let items: Vec<Value> = value.try_iter().ok()?.collect();
            Some(Value::from(take_range(items, start, stop, step).collect::<Vec<_>>()))
        }
        _ => None,
    }
}
