//! Replacements for method calls of other languages (`name.includes('x')`, `name.toUpperCase()`): values have no methods.

use crate::message::message::Message;
use crate::message::msg;
use crate::template::unknown::filter_called;

/// Boolean methods with one argument, and the equivalent expressions: `{0}` is the value, `{1}` the argument.
const BOOLEAN_METHODS: &[(&str, &str)] = &[
    ("includes", "{1} in {0}"),
    ("contains", "{1} in {0}"),
    ("has", "{1} in {0}"),
    ("haskey", "{1} in {0}"),
    ("has_key", "{1} in {0}"),
    ("startswith", "{0} is startingwith({1})"),
    ("endswith", "{0} is endingwith({1})"),
    ("match", "{0} is regex({1})"),
    ("matches", "{0} is regex({1})"),
    ("equals", "{0} == {1}"),
];

/// The help for `value.name(arguments)`, and the replacement if it is certain. `arguments` includes its brackets. `is_complete`: the
/// call is the entire expression, so the replacement needs no brackets.
pub fn method(name: &str, value: &str, arguments: &str, is_complete: bool) -> (Message, Option<String>) {
    let inner = arguments.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or_default().trim();
    let lower = name.to_lowercase();
    let text = value.starts_with(['"', '\'']);
    let has_one_argument = !inner.is_empty() && !inner.contains(',');
    if let Some((_, form)) = BOOLEAN_METHODS.iter().find(|(known, _)| *known == lower).filter(|_| has_one_argument) {
        let replacement = form.replace("{0}", value).replace("{1}", inner);
        let help = msg!("write `{said}`", said = replacement);
        // A test binds as tightly as a method call.
        let repair = if is_complete || form.contains(" is ") { replacement } else { format!("({replacement})") };
        return (help, Some(repair));
    }
    match filter_called(name) {
        Some(filter) if inner.is_empty() => {
            let replacement = format!("{value} | {filter}");
            (msg!("write `{said}`", said = replacement), Some(replacement))
        }
        // In `','.join(x)` the value and the argument are swapped.
        Some(filter) if !text && matches!(filter, "join" | "split" | "replace" | "round") => {
            let replacement = format!("{value} | {filter}({inner})");
            (msg!("write `{said}`", said = replacement), Some(replacement))
        }
        Some(filter) => (msg!("write a filter instead, as in `x | {filter}`"), None),
        None => (msg!("write a filter instead, as in `x | upper`"), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_calls_of_other_languages_are_replaced() {
        let table = [
            ("includes", "tags", "('x')", true, Some("'x' in tags")),
            ("includes", "tags", "('x')", false, Some("('x' in tags)")),
            ("startsWith", "name", "( 'a' )", false, Some("name is startingwith('a')")),
            ("toUpperCase", "name", "()", true, Some("name | upper")),
            ("join", "tags", "('、')", true, Some("tags | join('、')")),
            ("join", "','", "(tags)", true, None),
            ("includes", "tags", "('x', 2)", true, None),
            ("frobnicate", "tags", "()", true, None),
        ];
        for (name, value, arguments, is_complete, expected) in table {
            assert_eq!(method(name, value, arguments, is_complete).1.as_deref(), expected, "{name}");
        }
    }
}
