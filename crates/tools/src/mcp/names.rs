//! The names of the tools of servers: `mcp.<server>.<tool>`.

use std::collections::BTreeSet;

/// What all names begin with.
const PREFIX: &str = "mcp.";

/// The maximum length of the name that a server gives to a tool, in characters.
#[cfg(feature = "mcp")]
const MAX_TOOL_NAME: usize = 128;

/// The server and its tool. Names of servers contain no `.`, those of tools may.
pub(crate) fn split(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PREFIX)?.split_once('.')
}

#[cfg(feature = "mcp")]
pub(crate) fn full_name(server: &str, tool: &str) -> String {
    format!("{PREFIX}{server}.{tool}")
}

/// Whether a server may call a tool like this.
#[cfg(feature = "mcp")]
pub(crate) fn is_tool_name(name: &str) -> bool {
    (1..=MAX_TOOL_NAME).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// The servers whose tools the patterns may mean: of `configured`, and those that a pattern names although they are not configured.
pub(crate) fn concerned_servers<'a>(
    patterns: &'a [String],
    configured: impl Iterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let is_concerned = |name: &&str| patterns.iter().any(|pattern| concerns(pattern, name));
    let named = patterns.iter().filter_map(|pattern| Some(split(pattern)?.0)).filter(|name| !name.contains('*'));
    configured.filter(is_concerned).chain(named).collect()
}

/// Whether a name that begins with that of the server can match the pattern.
fn concerns(pattern: &str, server: &str) -> bool {
    let of_server = format!("{PREFIX}{server}.");
    match pattern.strip_suffix('*') {
        Some(prefix) => prefix.starts_with(&of_server) || of_server.starts_with(prefix),
        None => pattern.starts_with(&of_server),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_concerns_the_servers_whose_tools_it_may_match() {
        let concerned = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            let found = concerned_servers(&patterns, ["files", "web"].into_iter());
            found.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().join(" ")
        };
        for (patterns, expected) in [
            (&["web_search"][..], ""),
            (&["*"], "files web"),
            (&["mcp.*"], "files web"),
            (&["mcp.f*"], "files"),
            (&["mcp.files.*"], "files"),
            (&["mcp.files.read"], "files"),
            (&["mcp.files.re*", "web_search"], "files"),
            (&["mcp.file.*"], "file"),
            (&["mcp.files"], ""),
        ] {
            assert_eq!(concerned(patterns), expected, "{patterns:?}");
        }
    }

    #[test]
    fn a_name_has_a_server_and_a_tool() {
        assert_eq!(split("mcp.files.read.all"), Some(("files", "read.all")));
        assert_eq!((split("mcp.files"), split("web_search")), (None, None));
    }

    #[cfg(feature = "mcp")]
    #[test]
    fn a_tool_with_other_characters_has_no_name() {
        assert!(is_tool_name("read_file-2.x"));
        for name in ["", "a b", "读", "a\u{202e}b", "a/b", &"a".repeat(129)] {
            assert!(!is_tool_name(name), "{name:?}");
        }
    }
}
