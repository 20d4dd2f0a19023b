//! Quotes paths in commands that are shown to people, so that a shell accepts them unchanged.

use std::path::Path;

/// A path as one word of a command: quoted if a shell would split or expand it, and never mistaken for an option.
pub fn quoted(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().display().to_string();
    let path = if path.starts_with('-') { format!("./{path}") } else { path };
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ',' | ':' | '@');
    if !path.is_empty() && path.chars().all(plain) {
        return path;
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_if_a_shell_would_split_or_expand_it() {
        for (path, shown) in [
            ("a/b-c", "a/b-c"),
            ("访谈", "访谈"),
            ("my talk", "'my talk'"),
            ("it's", "'it'\\''s'"),
            ("$HOME; ls", "'$HOME; ls'"),
            ("~", "'~'"),
            ("", "''"),
            ("-x", "./-x"),
            ("-x y", "'./-x y'"),
        ] {
            assert_eq!(quoted(path), shown);
        }
    }
}
