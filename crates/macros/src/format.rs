//! Parses the placeholders of a format literal.

/// One `{…}` of a literal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Placeholder {
    /// A name, the number of a positional argument, or nothing.
    pub(crate) name: String,
    /// The format spec after the colon, as in `{x:?}`; empty if there is none.
    pub(crate) spec: String,
}

/// Returns the placeholders of a literal, in order.
/// Errors: A message if a brace is not closed or not opened.
pub(crate) fn placeholders(literal: &str) -> Result<Vec<Placeholder>, String> {
    let mut found = Vec::new();
    let mut chars = literal.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.peek() == Some(&'{') => drop(chars.next()),
            '}' if chars.peek() == Some(&'}') => drop(chars.next()),
            '}' => return Err("a `}` without a `{`; write `}}` for the character".to_owned()),
            '{' => {
                let mut content = String::new();
                loop {
                    match chars.next() {
                        Some('}') => break,
                        Some(c) => content.push(c),
                        None => return Err("a `{` without a `}`; write `{{` for the character".to_owned()),
                    }
                }
                let (name, spec) = content.split_once(':').unwrap_or((&content, ""));
                found.push(Placeholder { name: name.to_owned(), spec: spec.to_owned() });
            }
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_numbers_and_specs_are_read() {
        let placeholder = |name: &str, spec: &str| Placeholder { name: name.to_owned(), spec: spec.to_owned() };
        let found = placeholders("{a} {{no}} {} {0:>3} {b:?}").unwrap();
        assert_eq!(found, [placeholder("a", ""), placeholder("", ""), placeholder("0", ">3"), placeholder("b", "?")]);
        assert!(placeholders("{a").is_err());
        assert!(placeholders("a}").is_err());
    }
}
