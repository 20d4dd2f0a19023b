//! What the name of a file says about whether a script may read or write it.

use std::path::{Component, Path};

use crate::message::message::Message;
use crate::message::msg;
use crate::script::fields::Fields;
use crate::source::diagnostic::{Diagnostic, Severity};
use crate::source::span::Span;

/// The configuration of a project, in its directory.
pub const CONFIG_FILE: &str = "bcc-script.toml";

/// The extensions of programs.
const PROGRAMS: [&str; 28] = [
    "bash", "cjs", "csx", "dylib", "fish", "jar", "jl", "js", "ksh", "lua", "mjs", "mts", "php", "pl", "pm", "ps1",
    "pth", "py", "pyc", "pyw", "r", "rb", "sh", "so", "sql", "ts", "wasm", "zsh",
];

/// Files without such an extension that programs run.
// `head`: git takes a folder with such a file for a repository, whose `config` names programs.
const PROGRAM_FILES: [&str; 6] = ["makefile", "gnumakefile", "justfile", "package.json", "pyproject.toml", "head"];

/// What is wrong with a path in a script that is known before the script runs.
#[derive(Clone, Debug)]
pub struct PathProblem {
    pub slug: &'static str,
    /// A warning if the script can be used all the same: a route may follow the failure, and earlier sessions have such scripts.
    pub severity: Severity,
    pub message: Message,
    pub help: &'static str,
}

impl PathProblem {
    /// Reports it at `span`.
    pub fn report(self, fields: &Fields<'_>, span: Span) {
        let Self { slug, severity, message, help } = self;
        let diagnostic = match severity {
            Severity::Error => Diagnostic::error(slug, message, fields.file(), span),
            _ => Diagnostic::warning(slug, message, fields.file(), span),
        };
        fields.findings().report(diagnostic.with_help(help));
    }
}

/// What a script does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// It is only named, for example the folder in which a command runs.
    Named,
    Read,
    Written,
}

/// Why the file with this path, relative to the project, can never be used so by a script, whatever is in the project. `field` names it.
pub fn path_problem(path: &str, field: &'static str, path_use: PathUse) -> Option<PathProblem> {
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        return Some(PathProblem {
            slug: "path-outside",
            severity: Severity::Error,
            message: msg!("`{name}` leads out of the project", name = field),
            help: "write a path in the project, relative to the project, without `..`",
        });
    }
    let not_permitted =
        |message, help| Some(PathProblem { slug: "path-not-permitted", severity: Severity::Warning, message, help });
    // `Path` ignores a `/` or `/.` at the end.
    let names_file = !path.ends_with('/') && !path.ends_with("/.") && Path::new(path).file_name().is_some();
    let path = Path::new(path);
    match path_use {
        PathUse::Named => None,
        _ if !names_file => not_permitted(msg!("`{field}` names no file"), "write the path of a file in the project"),
        _ if is_hidden(path) => not_permitted(
            msg!("`{field}` is a hidden file or the configuration, which scripts cannot use"),
            "use a file whose path has no name that starts with `.`",
        ),
        PathUse::Written if may_run_by_name(path) => not_permitted(
            msg!("`{field}` is a file that may run, or a script, template or schema, which scripts cannot write"),
            "write a data file, such as `.txt`, `.md`, `.csv` or `.json`",
        ),
        PathUse::Read | PathUse::Written => None,
    }
}

/// Whether this path, relative to the project, is that of a hidden file, is in a hidden folder, or is the configuration.
pub fn is_hidden(path: &Path) -> bool {
    let is_hidden =
        |part: Component<'_>| matches!(part, Component::Normal(name) if name.as_encoded_bytes().starts_with(b"."));
    path.components().any(is_hidden) || path.file_name().is_some_and(|name| name == CONFIG_FILE)
}

/// Whether this is the name of a YAML file.
pub fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml"].iter().any(|yaml| extension.eq_ignore_ascii_case(yaml)))
}

/// Whether the file with this path, relative to the project, may run because of its name.
pub fn may_run_by_name(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    // Without a dot at its start.
    let path: std::path::PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    is_yaml(&path)
        || path.starts_with("_system")
        || path.starts_with("schemas/replies")
        || extension.is_some_and(|extension| PROGRAMS.contains(&extension.as_str()))
        || PROGRAM_FILES.contains(&name.as_str())
}
