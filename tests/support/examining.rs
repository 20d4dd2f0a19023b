//! Checks templates as `validate` does, without files on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bcc_check::templates::examine::{self, TemplateProject};
use bcc_check::templates::template_set::SystemFile;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::actions::KINDS;

/// The files below `_system/`.
pub(crate) fn system(files: &[(String, String)]) -> Vec<SystemFile> {
    let files = files.iter().filter(|(path, _)| path.starts_with("_system/"));
    files
        .map(|(path, text)| SystemFile {
            path: path.clone(),
            source: Arc::new(SourceFile::new(path.as_str(), text.as_str())),
            readable: true,
        })
        .collect()
}

/// The findings in the templates and the reply schemas among the files of a project.
pub(crate) fn template_findings(files: &[(String, String)], variables: Option<&BTreeSet<String>>) -> Vec<Diagnostic> {
    examine(&system(files), files, variables)
}

pub(crate) fn examine(
    system: &[SystemFile],
    files: &[(String, String)],
    variables: Option<&BTreeSet<String>>,
) -> Vec<Diagnostic> {
    let schema = |(path, text): &(String, String)| {
        let name = path.strip_prefix("schemas/replies/")?.strip_suffix(".json")?;
        Some((name.to_owned(), Arc::new(SourceFile::new(path.as_str(), text.as_str()))))
    };
    let schemas: BTreeMap<String, Arc<SourceFile>> = files.iter().filter_map(schema).collect();
    let models: Option<Vec<String>> = files
        .iter()
        .find(|(path, _)| path == "models")
        .map(|(_, text)| text.split_whitespace().map(str::to_owned).collect());
    let models = models.as_deref();
    examine::examine(&TemplateProject { files: system, kinds: KINDS, schemas: &schemas, variables, models })
}
