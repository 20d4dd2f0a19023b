//! Names and values in a row, as messages and help texts show them.

use serde_json::Value;

use bcc_lang::script::fields::shortened;

/// The most that a message lists.
const MOST: usize = 8;

/// Some of the names, for a help text: `a`, `b` and `c`.
pub fn and<'n>(names: impl Iterator<Item = &'n str>) -> String {
    listed(names, |rest, last| format!("`{rest}` and `{last}`"))
}

/// Some of the names, for a help text: `a`, `b` or `c`.
pub fn or<'n>(names: impl Iterator<Item = &'n str>) -> String {
    listed(names, |rest, last| format!("`{rest}` or `{last}`"))
}

/// Some of the values, for a message: `a`, `1`.
pub fn values(values: &[Value]) -> String {
    let shown = values.iter().take(MOST).map(|value| match value.as_str() {
        Some(text) => format!("`{}`", shortened(text)),
        None => format!("`{}`", shortened(&value.to_string())),
    });
    let more = if values.len() > MOST { ", …" } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

fn listed<'n>(names: impl Iterator<Item = &'n str>, join: impl Fn(&str, &str) -> String) -> String {
    let mut names: Vec<&str> = names.take(MOST + 1).collect();
    if names.len() > MOST {
        names.truncate(MOST);
        return format!("`{}`, …", names.join("`, `"));
    }
    match names.split_last() {
        Some((only, [])) => format!("`{only}`"),
        Some((last, rest)) => join(&rest.join("`, `"), last),
        None => "something that is there".to_owned(),
    }
}
