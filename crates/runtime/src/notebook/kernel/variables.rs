//! Reads the variables of a Python kernel as small values that can be shown. They are evaluated after a cell ran, by an
//! expression that leaves nothing behind among the variables.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::notebook::json_size::json_size;

/// The maximum size of a value as JSON, in bytes.
const MAX_VALUE_BYTES: usize = 500;

/// The maximum size of a name, in bytes: a hundred characters.
const MAX_NAME_BYTES: usize = 400;

/// The maximum total size including names, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// The program that reads the variables. It runs in its own namespace; `user` is the namespace of the kernel.
///
/// Small JSON values are returned as they are, tables and large arrays as their shape and types, other values as a truncated `repr`.
/// Values that raise an error are omitted. The newest names come first, because these are kept if there are too many.
const PROGRAM: &str = r#"
import itertools, json, reprlib, sys, types
skipped = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type)
own = {}
try:
    own = get_ipython().user_ns_hidden
except Exception:
    pass
short = reprlib.Repr()
short.maxstring = short.maxother = short.maxlong = 480
short.maxlist = short.maxtuple = short.maxdict = short.maxset = 20
def plain(value, depth, room):
    kind = type(value)
    room[0] -= 1
    if room[0] < 0 or depth > 4:
        raise ValueError
    if value is None or kind is bool:
        return value
    if kind is int and value.bit_length() <= 53:
        return value
    if kind is float and value == value and abs(value) < 1e300:
        return value
    if kind is str and len(value) <= 400:
        return value
    if kind in (list, tuple) and len(value) <= 60:
        return [plain(item, depth + 1, room) for item in value]
    if kind is dict and len(value) <= 60 and all(type(key) is str for key in value):
        return {key: plain(item, depth + 1, room) for key, item in value.items()}
    raise ValueError
def table(value):
    shape = getattr(value, 'shape', None)
    if not isinstance(shape, tuple) or not 1 <= len(shape) <= 8 or not all(type(size) is int for size in shape):
        return None
    kind, total = type(value).__name__[:60], 1
    for size in shape:
        total *= size
    columns, dtypes = getattr(value, 'columns', None), getattr(value, 'dtypes', None)
    if len(shape) == 2 and columns is not None and dtypes is not None:
        pairs = itertools.islice(zip(columns, dtypes), 20)
        listed = ', '.join('%s %s' % (str(name)[:40], str(dtype)[:30]) for name, dtype in pairs)
        more = ', …' if shape[1] > 20 else ''
        sizes = ['%d %s%s' % (size, word, '' if size == 1 else 's') for size, word in zip(shape, ('row', 'column'))]
        return '%s, %s: %s%s' % (kind, ' × '.join(sizes), listed, more)
    dtype = getattr(value, 'dtype', None)
    if dtype is None or total <= 20:
        return None
    return '%s, %s, %s' % (kind, ' × '.join(map(str, shape)), str(dtype)[:30])
def shown(value):
    try:
        made = plain(value, 0, [100])
        if len(json.dumps(made, ensure_ascii=False).encode()) <= 500:
            return made
    except ValueError:
        pass
    if type(value) is str:
        text = value
    elif type(value) is int:
        text = '<int of %d bits>' % value.bit_length()
    elif type(value) in (list, tuple, dict, set, frozenset):
        text = short.repr(value)
    else:
        try:
            text = table(value)
        except Exception:
            text = None
        text = repr(value) if text is None else text
    return text[:480].encode('utf-8', 'replace')[:480].decode('utf-8', 'ignore')
found, left = [], 16000
for name in reversed(list(user)):
    if left <= 0 or type(name) is not str or name.startswith('_') or len(name) > 100:
        continue
    value = user[name]
    if isinstance(value, skipped) or (name in own and own[name] is value):
        continue
    try:
        made = shown(value)
        size = len(json.dumps([name, made], ensure_ascii=False).encode())
    except Exception:
        continue
    if size <= left:
        left -= size
        found.append([name, made])
seen = json.dumps(found[::-1]).encode().hex()
"#;

/// A program with a function that lists the same variables in a fraction of the time if all are short texts, numbers, truth values and
/// None. It runs no code of the kernel's user, so that it can be a part of the request that runs a cell. If there are others, or too
/// many, the result is empty.
///
/// It remembers what it listed, and returns only what has changed since the list with the number `base`; everything for 0, for any other
/// list than its last, and if the order is another one.
const QUICK_PROGRAM: &str = r#"
import json, types
skipped = {types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, type}
listed, sizes, count = {}, {}, [0]
def is_simple(value):
    kind = type(value)
    if kind is int:
        return value.bit_length() <= 53
    if kind is float:
        return value == value and abs(value) < 1e300
    return kind is str and len(value) <= 80 or value is None or kind is bool
def quick(user, own, base):
    is_next = base and base == count[0]
    count[0] += 1
    if not is_next:
        base = 0
        listed.clear()
        sizes.clear()
    changed, found = [], []
    for name, value in list(user.items()):
        if type(name) is not str or name[:1] == '_':
            continue
        if name in listed and listed[name] is value:
            found.append(name)
            continue
        if len(name) > 100 or type(value) in skipped or (name in own and own[name] is value):
            continue
        if not is_simple(value):
            count[0] += 1
            return ''
        listed[name] = value
        sizes[name] = len(json.dumps([name, value], ensure_ascii=False).encode())
        changed.append([name, value])
        found.append(name)
    removed = []
    if len(found) < len(listed):
        now = set(found)
        removed = [name for name in listed if name not in now]
        for name in removed:
            del listed[name], sizes[name]
    if base and list(listed) != found:
        return quick(user, own, 0)
    if sum(sizes.values()) > 16000:
        count[0] += 1
        return ''
    return json.dumps([base, count[0], changed, removed], ensure_ascii=False).encode().hex()
"#;

/// Where a kernel that nobody else uses keeps that function, so that it is not compiled again for each cell.
const QUICK_FUNCTION: &str = "_bcc_script_variables";

/// The expression that returns the variables, for `user_expressions`.
pub(crate) fn expression() -> String {
    evaluation_of(PROGRAM)
}

/// The expression that returns the changes of the variables if all of them are simple; see [`QUICK_PROGRAM`]. `known` is what earlier
/// ones gave. In a kernel that is shared with others, it leaves nothing behind.
pub(crate) fn quick_expression(known: Option<&KnownVariables>) -> String {
    let program = Value::from(QUICK_PROGRAM).to_string();
    let function = format!("(lambda room: (exec({program}, room), room['quick'])[1])({{}})");
    let (function, base) = match known {
        None => (function, 0),
        // It is there. If code has removed it, the next request brings it again.
        Some(known) if known.number > 0 => (format!("get_ipython().{QUICK_FUNCTION}"), known.number),
        Some(known) => {
            let function = format!(
                "(lambda kept: kept.get('{QUICK_FUNCTION}') or kept.setdefault('{QUICK_FUNCTION}', {function}))(get_ipython().__dict__)"
            );
            (function, known.number)
        }
    };
    format!("{function}(globals(), get_ipython().user_ns_hidden, {base})")
}

fn evaluation_of(program: &str) -> String {
    // A JSON string is also a Python string.
    let program = Value::from(program).to_string();
    format!(
        "(lambda room: (exec({program}, room), room['seen'])[1])({{'user': globals(), 'get_ipython': get_ipython}})"
    )
}

/// The simple variables of a kernel, as its last reply to [`quick_expression`] left them.
#[derive(Debug, Default)]
pub(crate) struct KnownVariables {
    /// The number of that reply; 0 if there is none.
    number: u64,
    values: Map<String, Value>,
}

impl KnownVariables {
    /// The variables after the changes in a reply to [`quick_expression`]. Without a valid reply, all are forgotten.
    pub(crate) fn after(&mut self, expression: &Value) -> Option<Map<String, Value>> {
        let Self { number, mut values } = std::mem::take(self);
        let QuickReply(base, next, changed, removed) = read(expression)?;
        if base == 0 {
            values.clear();
        } else if base != number {
            return None;
        }
        for name in &removed {
            values.shift_remove(name);
        }
        values.extend(changed.into_iter().filter(|(name, _)| is_listed(name)));
        // The program limits the values itself, but code that ran in the kernel may have changed anything there.
        let size: usize = values.iter().map(|(name, value)| name.len() + json_size(value)).sum();
        if size > MAX_BYTES {
            return None;
        }
        *self = Self { number: next, values: values.clone() };
        Some(values)
    }
}

/// The list that the changes belong to, or 0 if they are all variables; the number of the new list; the new values; the names of variables
/// that are no longer there.
#[derive(Deserialize)]
struct QuickReply(u64, u64, Vec<(String, Value)>, Vec<String>);

/// Whether the programs list variables with this name.
fn is_listed(name: &str) -> bool {
    !name.starts_with('_') && name.len() <= MAX_NAME_BYTES
}

/// The content of a reply to an expression: `{status, data: {text/plain}}`.
fn read<T: DeserializeOwned>(expression: &Value) -> Option<T> {
    let text = expression.get("data")?.get("text/plain")?.as_str()?;
    serde_json::from_slice(&decode_hex(text.trim_matches(['\'', '"']))?).ok()
}

/// The variables in the reply to [`expression`].
pub(crate) fn from_reply(expression: &Value) -> Option<Map<String, Value>> {
    let pairs: Vec<(String, Value)> = read(expression)?;
    let mut available = MAX_BYTES;
    let mut variables = Map::new();
    // As above.
    for (name, value) in pairs {
        let size = json_size(&value);
        if size > MAX_VALUE_BYTES.saturating_mul(2) || !is_listed(&name) {
            continue;
        }
        let Some(rest) = available.checked_sub(size + name.len()) else { break };
        available = rest;
        variables.insert(name, value);
    }
    Some(variables)
}

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let pairs = digits.chunks_exact(2).map(|pair| match pair {
        [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reply(pairs: &Value) -> Value {
        let digits: String = pairs.to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
        json!({ "status": "ok", "data": { "text/plain": format!("'{digits}'") } })
    }

    #[test]
    fn variables_are_read_from_the_reply_in_their_order() {
        let read = from_reply(&reply(&json!([["b", 1], ["变量", "好"], ["a", [1, 2]]]))).unwrap();
        assert_eq!(Value::Object(read), json!({ "b": 1, "变量": "好", "a": [1, 2] }));
    }

    #[test]
    fn limits_hold_even_if_the_kernel_sends_more() {
        let many: Vec<Value> = (0..2_000).map(|n| json!([format!("n{n}"), "x".repeat(400)])).collect();
        let pairs = json!([["big", "x".repeat(5_000)], ["_own", 1], ["n".repeat(401), 1], ["small", 2]]);
        let read = from_reply(&reply(&pairs)).unwrap();
        assert_eq!(Value::Object(read), json!({ "small": 2 }));
        let read = from_reply(&reply(&Value::from(many))).unwrap();
        assert!(Value::Object(read).to_string().len() <= MAX_BYTES + 2_000);
    }

    #[test]
    fn changes_are_applied_to_the_list_that_they_belong_to_and_everything_else_gives_none() {
        let mut known = KnownVariables::default();
        let mut after = |reply_value: Value| known.after(&reply(&reply_value)).map(Value::Object);
        let long = "n".repeat(401);
        assert_eq!(
            after(json!([0, 1, [["b", 1], [long, 0], ["a", 2], ["_own", 3]], []])),
            Some(json!({ "b": 1, "a": 2 }))
        );
        assert_eq!(after(json!([1, 2, [["a", 3], ["c", null]], ["b"]])), Some(json!({ "a": 3, "c": null })));
        // Of another list; after that, nothing is known.
        assert_eq!(after(json!([1, 3, [["d", 1]], []])), None);
        assert_eq!(after(json!([2, 3, [["d", 1]], []])), None);
        assert_eq!(after(json!([0, 7, [["d", 1]], []])), Some(json!({ "d": 1 })));
        // More than the program would send.
        let many: Vec<Value> = (0..200).map(|n| json!([format!("n{n}"), "x".repeat(100)])).collect();
        assert_eq!(after(json!([7, 8, many, []])), None);
        assert_eq!(after(json!([7, 8, [], []])), None);
    }

    #[test]
    fn invalid_replies_give_none() {
        for text in ["'xyz'", "'7'", "''", "'5b5d5d'"] {
            assert_eq!(from_reply(&json!({ "data": { "text/plain": text } })), None, "{text}");
        }
        assert_eq!(from_reply(&json!({ "status": "error", "ename": "NameError" })), None);
    }
}
