//! Finds the files that actions of the type `command` name in a script: they may run, whatever they are called.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use bcc_runtime::program::custom::COMMAND;

/// The separators between the words of a shell command.
const SHELL_SEPARATORS: [char; 12] = ['\'', '"', ';', '|', '&', '(', ')', '<', '>', '`', '$', '='];

/// The paths that the commands in a YAML file may mean, as the program or as an argument, whether or not there are such files.
/// Words with variables are left out: what they mean is not known.
pub(crate) fn named_by_script(directory: &Path, text: &[u8]) -> Vec<PathBuf> {
    // Most files are not worth parsing.
    let Some(text) = std::str::from_utf8(text).ok().filter(|text| text.contains(COMMAND)) else { return vec![] };
    let Some(root) = parse(&Arc::new(SourceFile::new("", text))).root else { return vec![] };
    let mut paths = Vec::new();
    // Aliases repeat nodes, possibly very often.
    let mut visited = HashSet::new();
    let mut pending = vec![&root];
    while let Some(node) = pending.pop() {
        if !visited.insert(Arc::as_ptr(node)) {
            continue;
        }
        match &node.kind {
            NodeKind::Sequence(items) => pending.extend(items),
            NodeKind::Mapping(entries) => {
                pending.extend(entries.iter().map(|entry| &entry.value));
                if node.get("action_type").and_then(|kind| kind.as_scalar()).is_some_and(|kind| kind.text == COMMAND)
                    && let Some(config) = node.get("config")
                {
                    add_paths(directory, config, &mut paths);
                }
                // A step of a state file.
                if node.get("id").is_some() && node.get(COMMAND).is_some() {
                    add_paths(directory, node, &mut paths);
                }
            }
            NodeKind::Scalar(_) => {}
        }
    }
    paths
}

/// What a word of a command may name: itself, and its parts, because it may be a command of a shell. What a shell only writes does not
/// run.
pub(crate) fn named_in(word: &str) -> impl Iterator<Item = &str> {
    let mut is_written = false;
    let mut rest = word;
    let parts = std::iter::from_fn(move || {
        let separator = rest.find(|c: char| c.is_whitespace() || SHELL_SEPARATORS.contains(&c));
        let (part, after) = match separator {
            Some(at) => (rest.get(..at)?, rest.get(at..)?),
            None if rest.is_empty() => return None,
            None => (rest, ""),
        };
        let found = (part, is_written && !part.is_empty());
        let mut after = after.chars();
        match after.next() {
            Some('>') => is_written = true,
            // Between `>` and the file.
            Some(c) if c.is_whitespace() && part.is_empty() => {}
            _ => is_written = false,
        }
        rest = after.as_str();
        Some(found)
    });
    let read = parts.filter(|(_, is_written)| !is_written).map(|(part, _)| part);
    std::iter::once(word).chain(read.filter(move |part| *part != word))
}

fn add_paths(directory: &Path, config: &YamlNode, paths: &mut Vec<PathBuf>) {
    let folder = config.get("cwd").and_then(|cwd| cwd.as_scalar()).map(|cwd| directory.join(&cwd.text));
    let add = |word: &str| {
        if !word.is_empty() {
            paths.push(directory.join(word));
            paths.extend(folder.as_ref().map(|folder| folder.join(word)));
        }
    };
    match config.get("command").map(|command| &command.kind) {
        Some(NodeKind::Sequence(words)) => {
            words.iter().filter_map(|word| word.as_scalar()).flat_map(|word| named_in(&word.text)).for_each(add);
        }
        Some(NodeKind::Scalar(script)) => named_in(&script.text).for_each(add),
        Some(NodeKind::Mapping(_)) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn what_a_shell_only_writes_is_not_named() {
        let named = |word| named_in(word).filter(|part| !part.is_empty()).skip(1).collect::<Vec<_>>();
        assert_eq!(named("set -e; . .ci/deploy"), ["set", "-e", ".", ".ci/deploy"]);
        assert_eq!(named("echo a >> log; sh b>c 2> d <e"), ["echo", "a", "sh", "b", "2", "e"]);
        assert_eq!(named("cat > tool; sh tool"), ["cat", "sh", "tool"]);
        assert_eq!(named("plain"), [""; 0]);
    }
}
