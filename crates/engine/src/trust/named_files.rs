//! Finds the commands that actions of the type `command` name in a script, and the files that its actions write.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use bcc_lang::source::compose::parse;
use bcc_lang::source::span::Span;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::{NodeKind, YamlNode};
use bcc_runtime::program::custom::COMMAND;

use crate::trust::command_arguments::NamedCommand;

/// The separators between the words of a shell command.
const SHELL_SEPARATORS: [char; 12] = ['\'', '"', ';', '|', '&', '(', ')', '<', '>', '`', '$', '='];

/// The kind of the actions that write files.
const WRITE_FILE: &str = "write_file";

/// Environment variables whose value names code that a program loads.
const CODE_VARIABLES: [&str; 14] = [
    "BASH_ENV",
    "ENV",
    "LUA_INIT",
    "MAKEFILES",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "R_PROFILE",
    "R_PROFILE_USER",
];

/// The commands in a YAML file, with the folders at which their words may start.
pub(crate) fn commands_of_script(directory: &Path, text: &[u8]) -> Vec<NamedCommand> {
    // Most files are not worth parsing.
    let Some(text) = std::str::from_utf8(text).ok().filter(|text| text.contains(COMMAND)) else { return vec![] };
    let mut commands = Vec::new();
    visit(&Arc::new(SourceFile::new("", text)), |node| {
        if is_action(node, COMMAND)
            && let Some(config) = node.get("config")
        {
            commands.extend(command(directory, config));
        }
        // A step of a state file.
        if node.get("id").is_some() && node.get(COMMAND).is_some() {
            commands.extend(command(directory, node));
        }
    });
    commands
}

/// The constant paths that actions of a script write, with where they stand.
pub(crate) fn written_by_script(file: &Arc<SourceFile>) -> Vec<(String, Span)> {
    let mut written = Vec::new();
    if file.text().contains(WRITE_FILE) {
        visit(file, |node| {
            let path = node.get("config").filter(|_| is_action(node, WRITE_FILE)).and_then(|config| config.get("path"));
            if let Some(path) = path
                && let Some(text) = path.as_scalar().map(|scalar| &scalar.text).filter(|text| !text.contains('{'))
            {
                written.push((text.clone(), path.span));
            }
        });
    }
    written
}

/// Calls `found` for each mapping of a document.
fn visit(file: &Arc<SourceFile>, mut found: impl FnMut(&YamlNode)) {
    let Some(root) = parse(file).root else { return };
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
                found(node);
            }
            NodeKind::Scalar(_) => {}
        }
    }
}

fn is_action(node: &YamlNode, kind: &str) -> bool {
    node.get("action_type").and_then(|kind| kind.as_scalar()).is_some_and(|named| named.text == kind)
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

/// The code that these environment variables name. Some name several files, separated by `:`.
pub(crate) fn loaded_code(variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let loaded = variables.filter(|(name, _)| CODE_VARIABLES.contains(&name.as_str()));
    loaded
        .flat_map(|(_, value)| {
            let parts: Vec<String> = value.split(':').filter(|part| *part != value).map(str::to_owned).collect();
            std::iter::once(value).chain(parts)
        })
        .collect()
}

fn command(directory: &Path, config: &YamlNode) -> Option<NamedCommand> {
    let text = |node: &YamlNode| node.as_scalar().map(|scalar| scalar.text.clone());
    let folder = config.get("cwd").and_then(|cwd| cwd.as_scalar()).map(|cwd| directory.join(&cwd.text));
    let folders = [Some(directory.to_path_buf()), folder].into_iter().flatten().collect();
    let variables = config.get("env").and_then(|env| env.as_mapping()).into_iter().flatten();
    let loaded = variables.filter_map(|entry| Some((entry.key.value.clone(), text(&entry.value)?)));
    let loaded = loaded_code(loaded);
    Some(match &config.get("command")?.kind {
        NodeKind::Sequence(words) => NamedCommand {
            words: words.iter().filter_map(|word| text(word)).collect(),
            loaded,
            folders,
            is_shell: false,
        },
        NodeKind::Scalar(script) => NamedCommand { words: vec![script.text.clone()], loaded, folders, is_shell: true },
        NodeKind::Mapping(_) => return None,
    })
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
