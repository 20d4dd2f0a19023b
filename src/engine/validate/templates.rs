//! The files of `_system/`: which they are, and what is wrong with them. This is the one place that calls the examination of
//! templates.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::prompt::fault::TemplateError;
use crate::prompt::layers::{TemplateFile, is_scheme_name, is_template_name, shown};
use crate::prompt::templates::Templates;
use crate::source::diagnostic::Diagnostic;
use crate::source::span::Span;
use crate::source::text::SourceFile;

/// The project and the scheme of a prompt template; `None` for any other file. `path` is absolute.
pub fn template_place(path: &Path) -> Option<(PathBuf, Option<String>)> {
    let folder = path.parent().filter(|_| path.file_name().and_then(OsStr::to_str).is_some_and(is_template_name))?;
    let (config, scheme) = if folder.file_name() == Some(OsStr::new("default")) {
        (folder.parent()?, None)
    } else {
        let scheme = folder.file_name()?.to_str().filter(|scheme| is_scheme_name(scheme))?;
        let custom = folder.parent().filter(|custom| custom.file_name() == Some(OsStr::new("custom")))?;
        (custom.parent()?, Some(scheme.to_owned()))
    };
    let system = config.parent().filter(|_| config.file_name() == Some(OsStr::new("config")))?;
    let project = system.parent().filter(|_| system.file_name() == Some(OsStr::new("_system")))?;
    Some((project.to_path_buf(), scheme))
}

/// What is wrong with the templates of a project that a scheme uses. `files` are they, `templates` the same compiled;
/// `named` gives the text of one under the name that people are told.
pub fn examine(
    files: &[TemplateFile],
    templates: &Templates,
    named: &dyn Fn(&TemplateFile) -> Arc<SourceFile>,
) -> Vec<Diagnostic> {
    let told = |problem: &TemplateError| {
        let file = files.iter().find(|file| problem.file.as_deref() == Some(shown(&file.place, &file.name).as_str()));
        // What the binary holds is nothing that an author could mend.
        let file = named(file.filter(|file| !file.place.starts_with("builtin/"))?);
        let message = format!("this template cannot be read: {}", problem.message);
        let diagnostic = Diagnostic::error("text-syntax", message, &file, place(problem, &file));
        Some(match &problem.help {
            Some(help) => diagnostic.with_help(help.clone()),
            None => diagnostic.with_help("docs/templates.md tells how templates are written"),
        })
    };
    templates.problems().into_iter().filter_map(told).collect()
}

fn place(problem: &TemplateError, file: &SourceFile) -> Span {
    let Some(line) = problem.line.and_then(|line| file.line_span(line)) else { return Span::default() };
    let column = problem.column.unwrap_or(1).saturating_sub(1);
    let within = file.slice(line).char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    Span::new(line.start + within, line.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_known_by_their_folders() {
        let of = |path: &str| template_place(Path::new(path));
        assert_eq!(of("/p/_system/config/default/ai_ask_v1.md"), Some(("/p".into(), None)));
        assert_eq!(of("/p/_system/config/custom/焦虑/a.md"), Some(("/p".into(), Some("焦虑".to_owned()))));
        for other in [
            "/p/_system/README.md",
            "/p/_system/config/default/deep/a.md",
            "/p/_system/config/default/a.txt",
            "/p/_system/config/custom/a.md",
            "/p/config/default/a.md",
            "/p/_system/config/custom/a b/a.md",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
