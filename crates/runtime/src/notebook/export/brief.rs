//! What a notebook says of itself, wherever it is written.

use bcc_lang::message::language::Language;

/// A notebook without its cells, as a file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brief {
    /// The id of its session. A file that says the same one may be written anew while that goes on.
    pub session: String,
    pub script: String,
    /// Its title, where it has one.
    pub title: Option<String>,
    /// Whether one of its cells holds the title as a heading already.
    pub shows_title: bool,
    pub kernel: String,
    /// The language of the few words that are neither the model's nor the author's.
    pub language: Language,
}

/// A kernel as other programs want to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    pub name: String,
    /// The name for people.
    pub display_name: String,
    pub language: String,
}

impl Brief {
    /// The title, else the name of the script.
    pub fn heading(&self) -> &str {
        self.title.as_deref().filter(|title| !title.trim().is_empty()).unwrap_or(&self.script)
    }

    /// The kernel. Only the usual ones are known by more than their names: no kernel need be there when a file is written.
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
        KernelInfo { name: name.to_owned(), display_name: display_name.to_owned(), language: language.to_owned() }
    }
}
