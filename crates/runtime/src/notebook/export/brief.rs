//! The metadata of a notebook file.

use bcc_lang::message::language::Language;
use serde_json::{Map, Value};

/// The metadata of a notebook, without its cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotebookMetadata {
    /// The id of its session. A file with the same id may be overwritten while the session runs.
    pub session: String,
    pub script: String,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Whether one of its cells already shows the title as a heading.
    pub shows_title: bool,
    pub kernel: String,
    /// What the kernel said about its language (`language_info`); empty if no code has run.
    pub kernel_language: Map<String, Value>,
    /// The language of the generated texts.
    pub language: Language,
    /// Where a Markdown file finds pictures that are files of their own; without it, they are in the file itself.
    pub pictures: Option<String>,
    /// Whether HTML outputs on a page may run their scripts, each in a frame of its own.
    pub runs_scripts: bool,
}

/// The kernel information for other programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    pub name: String,
    /// The display name.
    pub display_name: String,
    pub language: String,
}

impl NotebookMetadata {
    /// The title, else the name of the script.
    pub fn heading(&self) -> &str {
        self.title.as_deref().filter(|title| !title.trim().is_empty()).unwrap_or(&self.script)
    }

    /// The kernel information. Only common kernels have more than a name: no kernel needs to be installed when a file is written.
    pub fn spec(&self) -> KernelInfo {
        let name = if self.kernel.is_empty() { "python3" } else { self.kernel.as_str() };
        let (display_name, language) = match name {
            "python3" => ("Python 3 (ipykernel)", "python"),
            "ir" => ("R", "R"),
            "bash" => ("Bash", "bash"),
            "deno" => ("Deno", "typescript"),
            _ if name.starts_with("julia") => (name, "julia"),
            _ if name.starts_with("python") => (name, "python"),
            _ => (name, name),
        };
        let language = self.kernel_language.get("name").and_then(Value::as_str).unwrap_or(language);
        KernelInfo { name: name.to_owned(), display_name: display_name.to_owned(), language: language.to_owned() }
    }
}
