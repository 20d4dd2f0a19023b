//! Parses Rust source for the tests of the layers: without comments and literals, with test code marked and paths resolved.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// A path in a file, from its root: `crate::run::session::Session`, `std::fs::read`, `crate::run::*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedPath {
    pub(crate) path: String,
    pub(crate) line: usize,
    /// Inside an item that is compiled for tests only.
    pub(crate) in_test: bool,
    /// The path is in a `pub use`.
    pub(crate) re_export: bool,
}

pub(crate) struct RustSource {
    code: String,
    tests: Vec<Range<usize>>,
    /// Modules that this file declares for tests only.
    pub(crate) test_modules: Vec<String>,
}

impl RustSource {
    pub(crate) fn new(text: &str) -> Self {
        let code = without_comments_and_literals(text);
        let (tests, test_modules) = test_items(&code);
        Self { code, tests, test_modules }
    }

    /// Every path of the file: those of its `use` declarations, and those inside its code, prefixed with the imported paths.
    pub(crate) fn paths(&self) -> Vec<NamedPath> {
        let mut found = Vec::new();
        let mut imported: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut uses: Vec<Range<usize>> = Vec::new();
        for start in word_positions(&self.code, "use") {
            let Some(end) = self.code[start..].find(';').map(|length| start + length) else { continue };
            uses.push(start..end);
            let item = self.code[..start].rfind([';', '{', '}', ']']).map_or(0, |end| end + 1);
            let re_export = self.code[item..start].trim_start().starts_with("pub");
            for (path, alias) in tree(&self.code[start + 3..end]) {
                if !path.ends_with("::*") {
                    imported.entry(alias).or_default().insert(path.clone());
                }
                found.push(self.named(path, start, re_export));
            }
        }
        for range in inline_paths(&self.code) {
            if uses.iter().any(|item| item.contains(&range.start)) {
                continue;
            }
            let written: String = self.code[range.clone()].split_whitespace().collect();
            let (first, rest) = written.split_once("::").unwrap_or((&written, ""));
            match imported.get(first) {
                Some(prefixes) if !rest.is_empty() => {
                    for prefix in prefixes {
                        found.push(self.named(format!("{prefix}::{rest}"), range.start, false));
                    }
                }
                _ => found.push(self.named(written, range.start, false)),
            }
        }
        found
    }

    /// The line numbers of `.name(` outside of test code.
    pub(crate) fn calls_of(&self, name: &str) -> Vec<usize> {
        let call = format!(".{name}(");
        let places = self.code.match_indices(&call).map(|(at, _)| at);
        places.filter(|at| !self.in_test(*at)).map(|at| self.line(at)).collect()
    }

    /// Whether the code contains `text`, outside of comments and literals.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.code.contains(text)
    }

    fn named(&self, path: String, at: usize, re_export: bool) -> NamedPath {
        NamedPath { path, line: self.line(at), in_test: self.in_test(at), re_export }
    }

    fn in_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    fn line(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }
}

/// `text` with comments and the contents of literals replaced by blanks; line ends and lengths stay.
pub(crate) fn without_comments_and_literals(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code: Vec<u8> = bytes.to_vec();
    let blank = |code: &mut Vec<u8>, range: Range<usize>| {
        for byte in &mut code[range] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = if rest.starts_with(b"//") {
            at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at + block_comment(rest)
        } else if let Some(hashes) = raw_string(bytes, at) {
            let open = at + 1 + hashes + 1;
            let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
            let length = bytes[open..].windows(close.len()).position(|window| window == close);
            length.map_or(bytes.len(), |length| open + length + close.len())
        } else if rest[0] == b'"' {
            at + quoted(rest, b'"')
        } else if rest[0] == b'\'' && is_character(text, at) {
            at + quoted(rest, b'\'')
        } else {
            at += 1;
            continue;
        };
        blank(&mut code, at..end);
        at = end;
    }
    String::from_utf8_lossy(&code).into_owned()
}

/// The length of the block comment at the start of `rest`; comments nest.
pub(crate) fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The number of `#` of a raw string that starts at `at`.
pub(crate) fn raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_') && bytes[at - 1] != b'b';
    if bytes[at] != b'r' || in_word {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    (bytes.get(at + 1 + hashes) == Some(&b'"')).then_some(hashes)
}

/// The length of the literal at the start of `rest`, up to the `quote` without a backslash before it.
pub(crate) fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Whether the `'` at `at` starts a character and not a lifetime.
pub(crate) fn is_character(text: &str, at: usize) -> bool {
    let mut characters = text[at + 1..].chars();
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// The ranges of items under `#[cfg(test)]`, and the names of those that are modules in separate files.
pub(crate) fn test_items(code: &str) -> (Vec<Range<usize>>, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let (mut ranges, mut modules) = (Vec::new(), Vec::new());
    for (start, _) in code.match_indices(MARK) {
        let item = start + MARK.len();
        let end = item_end(&code[item..]).map_or(code.len(), |length| item + length);
        if code[..end].ends_with(';')
            && let Some(name) = code[item..end - 1].trim().rsplit_once("mod ").map(|(_, name)| name.trim())
        {
            modules.push(name.to_owned());
        }
        ranges.push(start..end);
    }
    (ranges, modules)
}

/// The end of an item: its `;`, or the end of its braces.
fn item_end(item: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in item.bytes().enumerate() {
        match byte {
            b';' if depth == 0 => return Some(at + 1),
            b'{' => depth += 1,
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The positions of `word` as a whole word.
fn word_positions<'c>(code: &'c str, word: &'c str) -> impl Iterator<Item = usize> + 'c {
    let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'' | '#');
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        !code[..*at].ends_with(in_name) && code[at + word.len()..].chars().next().is_some_and(char::is_whitespace)
    })
}

/// The paths of a `use` tree, each with the name that it imports.
fn tree(text: &str) -> Vec<(String, String)> {
    let text = text.trim().trim_start_matches("::");
    let Some(open) = text.find('{') else {
        let (path, alias) = text.split_once(" as ").unwrap_or((text, ""));
        let path: String = path.split_whitespace().collect();
        let path = path.strip_suffix("::self").map_or(path.clone(), str::to_owned);
        let last_segment = path.rsplit("::").next().unwrap_or(&path).to_owned();
        return vec![(path.clone(), if alias.is_empty() { last_segment } else { alias.trim().to_owned() })];
    };
    let prefix: String = text[..open].split_whitespace().collect();
    // The first group of a tree is also its last part.
    let inner = &text[open + 1..text.rfind('}').unwrap_or(text.len())];
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, byte) in inner.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts.flat_map(|part| tree(&format!("{prefix}{part}"))).collect()
}

/// The ranges of `a::b::c` in the code.
fn inline_paths(code: &str) -> Vec<Range<usize>> {
    let name = |c: char| c.is_alphanumeric() || c == '_';
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, _) in code.match_indices("::") {
        if ranges.last().is_some_and(|last| at < last.end) {
            continue;
        }
        let start = code[..at]
            .rfind(|c: char| !name(c))
            .map_or(0, |end| end + code[end..].chars().next().map_or(1, char::len_utf8));
        if start == at {
            continue;
        }
        let mut end = at;
        while code[end..].starts_with("::") {
            let length = code[end + 2..].find(|c: char| !name(c)).unwrap_or(code.len() - end - 2);
            if length == 0 {
                break;
            }
            end += 2 + length;
        }
        if end > at {
            ranges.push(start..end);
        }
    }
    ranges
}

/// The `.rs` files of the program, by their paths in the repository: those of `src/` and of every crate.
pub(crate) fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = files_below(root, "src");
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        found.extend(files_below(root, &format!("crates/{name}/src")));
    }
    found
}

/// The `.rs` files below a folder, by their paths in the repository.
pub(crate) fn files_below(root: &Path, folder: &str) -> BTreeMap<String, String> {
    let (mut open, mut found) = (vec![folder.to_owned()], BTreeMap::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                open.push(path);
            } else if path.ends_with(".rs") {
                found.insert(path, fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    found
}

/// The files that their parents declare for tests only: `tests.rs` next to `mod.rs`, or below the folder of the parent.
pub(crate) fn only_tests(files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for (name, text) in files {
        let inside = ["/mod.rs", "/lib.rs", "/main.rs", ".rs"].iter().find_map(|end| name.strip_suffix(end)).unwrap();
        let (_, declared) = test_items(&without_comments_and_literals(text));
        modules.extend(declared.iter().map(|module| format!("{inside}/{module}")));
    }
    let is_test_only = |name: &&String| {
        modules.iter().any(|module| **name == format!("{module}.rs") || name.starts_with(&format!("{module}/")))
    };
    files.keys().filter(is_test_only).cloned().collect()
}
