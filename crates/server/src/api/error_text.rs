//! Takes what a client sent out of the errors about it: they may be logged and shown elsewhere, and have no limit otherwise.

/// The kinds of values in errors of serde, of which the longest of those with the same start comes first.
const KINDS: [&str; 17] = [
    "boolean",
    "byte array",
    "character",
    "enum",
    "floating point",
    "integer",
    "map",
    "newtype struct",
    "newtype variant",
    "null",
    "Option value",
    "sequence",
    "string",
    "struct variant",
    "tuple variant",
    "unit value",
    "unit variant",
];

/// The longest path to a value, and the longest name of a field, that an error repeats.
const MAX_PATH_CHARS: usize = 100;
const MAX_NAME_CHARS: usize = 40;

/// The longest error of an unknown form.
const MAX_CHARS: usize = 200;

/// What stands for what is left out.
const LEFT_OUT: &str = "…";

/// An error of serde with its path and with what was expected, but without values, and without names that are no short identifiers.
pub(crate) fn without_values(text: &str) -> String {
    let forms = ["invalid type: ", "invalid value: ", "unknown field `", "unknown variant `"];
    let found = forms.into_iter().filter_map(|form| Some((text.find(form)?, form))).min();
    let Some((at, form)) = found else {
        let fixed = ["missing field `", "duplicate field `"].into_iter().filter_map(|form| text.rfind(form)).max();
        let at = fixed.unwrap_or_else(|| text.rfind(": ").map_or(0, |at| at + 2));
        return shown_path(text, at) + &shortened(text.get(at..).unwrap_or_default());
    };
    let (path, rest) = (shown_path(text, at), text.get(at + form.len()..).unwrap_or_default());
    let what = match form.strip_suffix('`') {
        // The expected names are those of the program, and come last.
        Some(form) => {
            let end = ["`, expected ", "`, there are no "].into_iter().filter_map(|end| rest.rfind(end)).max();
            let (name, end) = rest.split_at_checked(end.unwrap_or(0)).unwrap_or_default();
            let name = if is_name(name, MAX_NAME_CHARS) { name } else { LEFT_OUT };
            format!("{form}`{name}{end}")
        }
        None => {
            let (value, expected) = rest.rsplit_once(", expected ").unwrap_or_default();
            let kind = KINDS.into_iter().find(|kind| value.starts_with(kind)).unwrap_or(LEFT_OUT);
            format!("{form}{kind}, expected {expected}")
        }
    };
    path + &shortened(&what)
}

/// The path before the position of an error.
fn shown_path(text: &str, at: usize) -> String {
    match text.get(..at).and_then(|path| path.strip_suffix(": ")) {
        None => String::new(),
        Some(path) if is_name(path, MAX_PATH_CHARS) => format!("{path}: "),
        Some(_) => format!("{LEFT_OUT}: "),
    }
}

fn is_name(name: &str, max_chars: usize) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "_-.[]?".contains(c);
    name.chars().all(is_part) && name.chars().count() <= max_chars
}

fn shortened(text: &str) -> String {
    // The names of all fields of a form may be longer.
    match text.char_indices().nth(MAX_CHARS * 4) {
        Some((end, _)) => format!("{}{LEFT_OUT}", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_the_path_and_what_was_expected_without_values() {
        let long = "x".repeat(900_000);
        for (text, expected) in [
            (
                "variables: invalid type: string \"my dog, expected a cat\", expected a map at line 1 column 20"
                    .to_owned(),
                "variables: invalid type: string, expected a map at line 1 column 20",
            ),
            ("a[0].b: invalid value: integer `7`, expected u8".into(), "a[0].b: invalid value: integer, expected u8"),
            ("invalid type: null, expected a string".into(), "invalid type: null, expected a string"),
            (
                "model: unknown field `model`, expected one of `a`, `b`".into(),
                "model: unknown field `model`, expected one of `a`, `b`",
            ),
            (
                format!("{long}: unknown field `{long}`, expected `a` or `b`"),
                "…: unknown field `…`, expected `a` or `b`",
            ),
            (
                "unknown field `my dog`, expected `x`, there are no fields".into(),
                "unknown field `…`, there are no fields",
            ),
            (
                "format: unknown variant `a`, expected my`, expected `b`".into(),
                "format: unknown variant `…`, expected `b`",
            ),
            ("missing field `messages` at line 1 column 16".into(), "missing field `messages` at line 1 column 16"),
            ("limit: invalid digit found in string".into(), "limit: invalid digit found in string"),
            ("my dog: is here: invalid digit found in string".into(), "…: invalid digit found in string"),
            ("EOF while parsing an object at line 1 column 1".into(), "EOF while parsing an object at line 1 column 1"),
        ] {
            assert_eq!(without_values(&text), expected);
        }
        assert!(without_values(&long).chars().count() < 1_000);
    }
}
