//! Methods of other languages (`name.includes('x')`, `name.toUpperCase()`), which values do not have here: what says the same.

use crate::message::message::Message;
use crate::message::msg;
use crate::template::unknown::filter_called;

/// Methods that ask something with one argument, and how that is asked here: `{0}` is the value, `{1}` the argument.
const ASKING: &[(&str, &str)] = &[
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

/// What to do about `value.name(arguments)`, and what says the same, where that is certain. `arguments` has its brackets; `whole`
/// says whether the call is the whole expression, so that no brackets are needed around what replaces it.
pub fn method(name: &str, value: &str, arguments: &str, whole: bool) -> (Message, Option<String>) {
    let inner = arguments.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or_default().trim();
    let lower = name.to_lowercase();
    let text = value.starts_with(['"', '\'']);
    let one = !inner.is_empty() && !inner.contains(',');
    if let Some((_, form)) = ASKING.iter().find(|(known, _)| *known == lower).filter(|_| one) {
        let said = form.replace("{0}", value).replace("{1}", inner);
        let help = msg!("write `{said}`");
        // A test stands as close to its value as a method.
        let repair = if whole || form.contains(" is ") { said } else { format!("({said})") };
        return (help, Some(repair));
    }
    match filter_called(name) {
        Some(filter) if inner.is_empty() => {
            let said = format!("{value} | {filter}");
            (msg!("write `{said}`"), Some(said))
        }
        // `','.join(x)` is the other way round.
        Some(filter) if !text && matches!(filter, "join" | "split" | "replace" | "round") => {
            let said = format!("{value} | {filter}({inner})");
            (msg!("write `{said}`"), Some(said))
        }
        Some(filter) => (msg!("write a filter instead, as in `x | {filter}`"), None),
        None => (msg!("write a filter instead, as in `x | upper`"), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_other_languages_are_said_as_here() {
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
        for (name, value, arguments, whole, expected) in table {
            assert_eq!(method(name, value, arguments, whole).1.as_deref(), expected, "{name}");
        }
    }
}
