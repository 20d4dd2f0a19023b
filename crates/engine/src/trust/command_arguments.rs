//! Tells the arguments of a command that may be code from those that are data: the trust in a project covers only the files that may run,
//! and a script must not write them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use bcc_lang::script::project_path::{is_hidden, may_run_by_name};

use crate::files::within::normalize;
use crate::trust::file_pattern::{FilePattern, has_variables};
use crate::trust::named_files::named_in;

/// Programs that read files, or create and remove them without their content, and run nothing, whatever their arguments are.
const READERS: [&str; 46] = [
    "[",
    "b2sum",
    "base64",
    "basename",
    "cat",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "date",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expand",
    "fgrep",
    "file",
    "fold",
    "grep",
    "head",
    "hexdump",
    "join",
    "ls",
    "md5sum",
    "mkdir",
    "nl",
    "od",
    "paste",
    "printf",
    "readlink",
    "realpath",
    "rm",
    "rmdir",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "test",
    "touch",
    "tr",
    "wc",
];

/// Programs that write what they read to another file, and run nothing. The target of a link that `ln` makes depends on the folder of the
/// link, so that it is none of them.
const COPIERS: [&str; 5] = ["cp", "mv", "sort", "tee", "uniq"];

/// Programs whose first argument that is no option is a file that they run.
const INTERPRETERS: [&str; 22] = [
    "ash", "bash", "bun", "csh", "dash", "deno", "fish", "julia", "ksh", "lua", "node", "nodejs", "perl", "php",
    "pwsh", "python", "r", "rscript", "ruby", "sh", "tclsh", "zsh",
];

/// Programs that run the program in their arguments.
const WRAPPERS: [&str; 12] =
    ["env", "flock", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout", "uv", "xargs"];

/// The folders of the programs of the system.
const SYSTEM_FOLDERS: [&str; 2] = ["/bin/", "/usr/bin/"];

/// Limits on copies whose arguments may be data; everything beyond them may run.
const MAX_COPIES: usize = 1_000;
const MAX_COPY_WORDS: usize = 50;

/// The longest word that may name a file, in bytes.
const MAX_WORD_BYTES: usize = 4_096;

/// How many characters before a path in the same word may be short options, as in `-ofile`.
const MAX_SHORT_OPTIONS: usize = 8;

/// How many links to what does not exist are followed, as systems do.
const MAX_LINKS: usize = 40;

/// A command as a project names it.
#[derive(Clone, Debug)]
pub(crate) struct NamedCommand {
    /// The program and its arguments; with `is_shell`, a text.
    pub(crate) words: Vec<String>,
    /// The values of environment variables that name code.
    pub(crate) loaded: Vec<String>,
    /// The folders at which a path may start.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) is_shell: bool,
}

/// What the words of a command are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentUse {
    Code,
    Data,
    /// They become code if one of them is.
    Copied,
}

impl NamedCommand {
    /// What its arguments are. A program that is not known may run what it gets.
    fn arguments(&self) -> ArgumentUse {
        let Some(program) = self.words.first().filter(|_| !self.is_shell) else { return ArgumentUse::Code };
        let name = SYSTEM_FOLDERS.iter().find_map(|folder| program.strip_prefix(folder)).unwrap_or(program);
        let arguments = self.words.get(1..).unwrap_or_default();
        let mut options = arguments.iter().take_while(|word| *word != "--").map(String::as_str);
        let reads_code = match name {
            // `--compress-program` runs its argument.
            "sort" => options.any(|word| may_be_any_option(word) || word.starts_with("--co")),
            // `-f` and `-L` read programs.
            "jq" => options.any(|word| {
                let is_short = word.starts_with('-') && !word.starts_with("--");
                may_be_any_option(word)
                    || is_short && word.contains(['f', 'L'])
                    || word.starts_with("--fr")
                    || word.starts_with("--l")
            }),
            _ => false,
        };
        match name {
            _ if reads_code => ArgumentUse::Code,
            "jq" => ArgumentUse::Data,
            _ if READERS.contains(&name) => ArgumentUse::Data,
            _ if COPIERS.contains(&name) && arguments.len() <= MAX_COPY_WORDS => ArgumentUse::Copied,
            _ => ArgumentUse::Code,
        }
    }

    /// The paths that its program and the code that it loads may mean.
    fn program_paths(&self) -> Vec<PathBuf> {
        self.words.iter().take(1).chain(&self.loaded).flat_map(|word| self.paths(word)).collect()
    }

    fn argument_paths(&self) -> Vec<PathBuf> {
        self.words.iter().skip(1).flat_map(|word| self.paths(word)).collect()
    }

    /// The paths that a word may mean, whether or not there are such files.
    fn paths(&self, word: &str) -> Vec<PathBuf> {
        // Only for a shell, a part of a word is a word.
        let is_whole = has_variables(word) && self.is_copier();
        let named = named_in(word).take(if is_whole { 1 } else { usize::MAX });
        let named = named.filter(|named| !named.is_empty() && named.len() <= MAX_WORD_BYTES);
        let parts = named.flat_map(|named| std::iter::once(named).chain(after_short_options(named)));
        let paths = parts.flat_map(|part| self.folders.iter().map(move |folder| folder.join(part)));
        // A link in the middle decides which of the two it is.
        let both = |path: PathBuf| {
            let is_plain = !path.components().any(|part| part == Component::ParentDir);
            let normal = (!is_plain).then(|| normalize(&path));
            std::iter::once(path).chain(normal)
        };
        paths.flat_map(both).collect()
    }

    /// What may be the files that an interpreter runs or loads, if variables decide which they are.
    fn patterns(&self) -> Vec<FilePattern> {
        let is_wrapped = self.words.first().is_some_and(|program| WRAPPERS.contains(&program_name(program).as_str()));
        let words = self.words.iter().enumerate().take(if is_wrapped { usize::MAX } else { 1 });
        let interpreters = words.filter(|(_, word)| !self.is_shell && is_interpreter(word));
        let run = interpreters.flat_map(|(at, _)| run_by_interpreter(self.words.get(at + 1..).unwrap_or_default()));
        run.chain(&self.loaded).flat_map(|word| self.patterns_of(word)).collect()
    }

    /// The patterns of what a copy reads.
    fn source_patterns(&self) -> impl Iterator<Item = FilePattern> {
        let arguments = self.words.get(1..).unwrap_or_default();
        let sources = match self.words.first().map(|program| program_name(program)).as_deref() {
            Some("tee") => &[],
            _ if self.target_is_last() => arguments.split_last().map_or(arguments, |(_, sources)| sources),
            _ => arguments,
        };
        sources.iter().flat_map(|word| self.patterns_of(word))
    }

    /// Whether variables decide where a copy is written.
    fn writes_unknown(&self) -> bool {
        let arguments = self.words.get(1..).unwrap_or_default();
        match self.words.first().map(|program| program_name(program)).as_deref() {
            // It writes only its standard input.
            Some("tee") => false,
            _ if self.target_is_last() => arguments.last().is_some_and(|word| has_variables(word)),
            _ => arguments.iter().any(|word| has_variables(word)),
        }
    }

    /// Whether the last argument is the target: without `--target-directory`.
    fn target_is_last(&self) -> bool {
        let is_copy = self.words.first().is_some_and(|program| ["cp", "mv"].contains(&program_name(program).as_str()));
        let names_target = |word: &String| may_be_any_option(word) || word.starts_with('-') && word.contains('t');
        is_copy && !self.words.iter().skip(1).any(names_target)
    }

    /// The patterns of a word; none if the files that it may mean are known.
    fn patterns_of(&self, word: &str) -> Vec<FilePattern> {
        let own = has_variables(word).then(|| FilePattern::of(word, &self.folders));
        let folders = self.unknown_folders().filter(|_| !word.starts_with('-'));
        let below = folders.map(|folder| FilePattern::of(&format!("{folder}/{word}"), &[]));
        own.into_iter().chain(below).collect()
    }

    /// The working directory, if variables decide which it is.
    fn unknown_folders(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.folders.iter().map(|folder| folder.to_string_lossy()).filter(|folder| has_variables(folder))
    }

    fn is_copier(&self) -> bool {
        self.words.first().is_some_and(|program| COPIERS.contains(&program_name(program).as_str()))
    }
}

/// The arguments of an interpreter that may be the file that it runs: the first one that is neither an option nor may be the value of one,
/// and those before it.
fn run_by_interpreter(arguments: &[String]) -> impl Iterator<Item = &String> {
    let (mut follows_option, mut is_over) = (false, false);
    arguments.iter().filter(move |word| {
        let is_option = word.starts_with('-');
        let may_run = !is_option && !is_over;
        // `deno run FILE`
        is_over |= !is_option && !follows_option && *word != "run";
        follows_option = is_option;
        may_run
    })
}

/// Whether variables decide which option a word is.
fn may_be_any_option(word: &str) -> bool {
    has_variables(word) && (word.starts_with('-') || word.starts_with('{'))
}

/// What follows short options in the same word, which may be the value of the last one.
fn after_short_options(word: &str) -> impl Iterator<Item = &str> {
    let is_short = word.starts_with('-') && !word.starts_with("--");
    let rest = is_short.then(|| word.char_indices().skip(2).take(MAX_SHORT_OPTIONS)).into_iter().flatten();
    rest.filter_map(|(at, _)| word.get(at..))
}

fn program_name(word: &str) -> String {
    word.rsplit('/').next().unwrap_or(word).to_lowercase()
}

/// Whether a program is an interpreter, with any version.
fn is_interpreter(word: &str) -> bool {
    let name = program_name(word);
    INTERPRETERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// The files of a project that its commands may run. Grows as commands are found.
#[derive(Debug, Default)]
pub(crate) struct RunByCommands {
    /// Paths, whether or not there is a file.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// The copies of files or folders that may run: everything in these folders may, too.
    pub(crate) copied: BTreeSet<PathBuf>,
    pub(crate) patterns: Vec<FilePattern>,
    /// Copies of what is not known to run.
    copies: Vec<NamedCommand>,
}

impl RunByCommands {
    /// Adds a command, and returns the paths that may run because of it.
    pub(crate) fn add(&mut self, directory: &Path, command: NamedCommand) -> Vec<PathBuf> {
        let mut paths = command.program_paths();
        self.patterns.extend(command.patterns());
        match command.arguments() {
            ArgumentUse::Data => {}
            ArgumentUse::Copied if self.copies.len() < MAX_COPIES => self.copies.push(command),
            ArgumentUse::Copied | ArgumentUse::Code => paths.extend(command.argument_paths()),
        }
        // The directory itself is no file.
        paths.retain(|path| path != directory);
        self.paths.extend(paths.iter().cloned());
        paths
    }

    /// The paths that may run because they are copied to what may run. Call it when all commands are known.
    pub(crate) fn add_copied(&mut self, directory: &Path) -> Vec<PathBuf> {
        let mut added = Vec::new();
        loop {
            let copies = std::mem::take(&mut self.copies);
            let (run, data): (Vec<_>, Vec<_>) = copies.into_iter().partition(|copy| self.is_code(directory, copy));
            self.copies = data;
            if run.is_empty() {
                return added;
            }
            self.patterns.extend(run.iter().flat_map(NamedCommand::source_patterns));
            // A folder that contains the project does not make everything in it a copy.
            let is_above = |path: &PathBuf| directory.starts_with(normalize(path));
            for path in run.iter().flat_map(NamedCommand::argument_paths).filter(|path| !is_above(path)) {
                self.paths.insert(path.clone());
                self.copied.insert(path.clone());
                added.push(path);
            }
        }
    }

    /// Whether a copy may write what may run, in the project or out of it.
    fn is_code(&self, directory: &Path, copy: &NamedCommand) -> bool {
        // Where a name has variables, any copy may be the file.
        let is_unknown = !self.patterns.is_empty() || copy.unknown_folders().next().is_some();
        copy.writes_unknown()
            || is_unknown
            || copy.argument_paths().iter().any(|path| self.is_near_code(directory, path))
    }

    /// Whether a path may run, contains what may run, or is in such a folder.
    fn is_near_code(&self, directory: &Path, path: &Path) -> bool {
        let Ok(inside) = path.strip_prefix(directory) else { return true };
        let after = (Bound::Excluded(path), Bound::Unbounded);
        is_hidden(inside)
            || may_run_by_name(inside)
            || inside.components().any(|part| part == Component::ParentDir)
            || path.ancestors().take_while(|above| *above != directory).any(|above| self.paths.contains(above))
            || self.paths.range::<Path, _>(after).next().is_some_and(|next| next.starts_with(path))
    }

    /// The same with the real paths of files and folders, of which links are parts.
    pub(crate) fn with_real_paths(self, directory: &Path) -> Self {
        let real = |paths: BTreeSet<PathBuf>| paths.iter().map(|path| real_path(path)).collect();
        let mut copied: BTreeSet<PathBuf> = real(self.copied);
        copied.retain(|path| !directory.starts_with(path));
        Self { paths: real(self.paths), copied, ..self }
    }

    /// Whether a command may run what is at this path.
    pub(crate) fn may_run(&self, path: &Path) -> bool {
        self.paths.contains(path)
            || path.ancestors().any(|above| self.copied.contains(above))
            || self.patterns.iter().any(|pattern| pattern.may_be(path))
    }
}

/// The real path of what is, or may later be, at a path.
fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Some(existing) = path.ancestors().find(|above| above.symlink_metadata().is_ok()) else { break };
        let missing = path.strip_prefix(existing).unwrap_or(Path::new(""));
        if let Ok(real) = std::fs::canonicalize(existing) {
            return normalize(&real.join(missing));
        }
        // A link to what does not exist yet.
        let Ok(target) = std::fs::read_link(existing) else { break };
        path = existing.parent().unwrap_or(existing).join(target).join(missing);
    }
    normalize(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "/p";

    fn command(words: &[&str]) -> NamedCommand {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        NamedCommand { words, loaded: vec![], folders: vec![PathBuf::from(ROOT)], is_shell: false }
    }

    fn of(commands: &[&[&str]]) -> RunByCommands {
        let mut run = RunByCommands::default();
        for words in commands {
            run.add(Path::new(ROOT), command(words));
        }
        run.add_copied(Path::new(ROOT));
        run
    }

    #[test]
    fn the_arguments_of_programs_that_run_nothing_are_data() {
        let data: [&[&str]; 12] = [
            &["cat", "x"],
            &["/usr/bin/wc", "-l", "x"],
            &["cp", "x", "out.txt"],
            &["tee", "x"],
            &["sort", "-r", "x", "-o", "out.txt"],
            &["jq", "-r", "{a: .b}", "x"],
            &["grep", "{{ a }}", "x"],
            &["mv", "x", "folder/"],
            // A folder above the project.
            &["cp", "y", ".."],
            &["cp", "y", "/"],
            &["cp", "-t", "folder", "x"],
            &["diff", "x", "y"],
        ];
        for words in data {
            assert!(!of(&[words]).may_run(Path::new("/p/x")), "{words:?}");
        }
    }

    #[test]
    fn the_arguments_of_all_other_programs_may_run() {
        let code: [&[&str]; 26] = [
            &["sh", "x"],
            &["./x"],
            &["./cat", "x"],
            &["awk", "-fx"],
            &["awk", "-vfx"],
            &["env", "A=1", "sh", "./x"],
            &["anything", "--load=x"],
            &["anything", "sub/../x"],
            &["sort", "--compress-program", "x", "y"],
            &["sort", "{{ a }}", "x"],
            &["sort", "-{{ a }}", "x"],
            &["jq", "-nf", "x"],
            &["jq", "--from-file", "x"],
            &["git", "apply", "x"],
            &["git", "add", "x"],
            &["ln", "-s", "x", "y"],
            &["python3.12", "-I", "{{ a }}"],
            &["bash", "-o", "pipefail", "{{ a }}"],
            &["bash", "-u", "a", "{{ a }}"],
            &["deno", "run", "{{ a }}"],
            &["node", "--require", "{{ a }}", "y"],
            &["timeout", "5", "bash", "{{ a }}"],
            &["cp", "x", "{{ a }}"],
            // It may be an option that names the target.
            &["cp", "{{ a }}", "y"],
            &["cp", "x", "run.sh"],
            &["cp", "x", "/usr/local/bin/run"],
        ];
        for words in code {
            assert!(of(&[words]).may_run(Path::new("/p/x")), "{words:?}");
        }
    }

    #[test]
    fn what_is_copied_to_a_file_that_may_run_may_run() {
        let chain: [&[&str]; 4] = [&["mv", "x", "y/x"], &["cp", "-r", "y", "z"], &["cp", "a", "b"], &["sh", "z/x"]];
        let run = of(&chain);
        for path in ["/p/x", "/p/y/x", "/p/y/other", "/p/z/other"] {
            assert!(run.may_run(Path::new(path)), "{path}");
        }
        for path in ["/p/a", "/p/b", "/p/other"] {
            assert!(!run.may_run(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_copy_may_be_the_file_of_an_interpreter_that_variables_decide() {
        let into_pattern = of(&[&["cp", "staged", "jobs/a.txt"], &["sh", "jobs/{{ name }}.txt"]]);
        assert!(into_pattern.may_run(Path::new("/p/staged")));
        let from_pattern = of(&[&["cp", "data/{{ name }}", "job"], &["sh", "job"]]);
        assert!(from_pattern.may_run(Path::new("/p/data/a")));
        assert!(!from_pattern.may_run(Path::new("/p/other/a")));
        let to_data = of(&[&["cp", "in/{{ upload }}", "input.csv"]]);
        assert!(!to_data.may_run(Path::new("/p/x")));
        let with_value = of(&[&["cp", "y", "{{ data }}/y"]]);
        assert!(!with_value.may_run(Path::new("/p/data/x")));
    }

    #[test]
    fn a_working_directory_and_loaded_code_may_have_variables() {
        let mut run = RunByCommands::default();
        let folders = vec![PathBuf::from(ROOT), PathBuf::from("/p/{{ name }}")];
        run.add(Path::new(ROOT), NamedCommand { folders, ..command(&["sh", "run.txt"]) });
        run.add(Path::new(ROOT), NamedCommand { loaded: vec!["jobs/{{ name }}.txt".into()], ..command(&["cat"]) });
        for path in ["/p/a/run.txt", "/p/run.txt", "/p/jobs/a.txt"] {
            assert!(run.may_run(Path::new(path)), "{path}");
        }
        assert!(!run.may_run(Path::new("/p/a/other.txt")));
    }

    #[test]
    fn a_file_of_an_interpreter_may_have_variables_in_its_name() {
        let run = of(&[&["sh", "./jobs/{{ name }}.txt", "{{ other }}"]]);
        assert!(run.may_run(Path::new("/p/jobs/a.txt")));
        assert!(!run.may_run(Path::new("/p/jobs/a.csv")));
        assert!(!run.may_run(Path::new("/p/data/a.txt")));
    }

    #[test]
    fn links_are_followed_also_to_what_does_not_exist() {
        let root = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(root.path()).unwrap();
        std::fs::create_dir(root.join("data")).unwrap();
        std::os::unix::fs::symlink("data", root.join("folder")).unwrap();
        std::os::unix::fs::symlink("data/later", root.join("link")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        for (path, real) in [("folder/x", "data/x"), ("link", "data/later"), ("none/../x", "x"), ("loop", "loop")] {
            assert_eq!(real_path(&root.join(path)), root.join(real), "{path}");
        }
    }
}
