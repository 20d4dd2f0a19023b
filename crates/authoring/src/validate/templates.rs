//! Reads and checks the files of `_system/`. All template checks go through this module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bcc_check::templates::examine::{self, TemplateProject};
use bcc_check::templates::template_set::SystemFile;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::files::within::{read_within, resolve_within};
use bcc_engine::files::{MAX_TEMPLATE_BYTES, reply_schema_files};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::actions::KINDS;

/// The folder of the templates.
const SYSTEM: &str = "_system";

/// The maximum depth of folders in it, and the maximum number of files.
const MAX_DEPTH: usize = 8;
const MAX_FILES: usize = 5_000;

/// Checks the templates and the reply schemas of a project. `variables` are the names that its scripts set, if all
/// scripts were read, `models` the models of its configuration, if it could be read. `replacement` returns a replacement text for a template, by its displayed name.
pub fn examine(
    directory: &Path,
    names: &PathNames,
    variables: Option<&BTreeSet<String>>,
    models: Option<&[String]>,
    replacement: &dyn Fn(&str) -> Option<String>,
) -> Vec<Diagnostic> {
    let mut files = Vec::new();
    system_files(directory, (&directory.join(SYSTEM), SYSTEM), names, 0, &mut files);
    for file in &mut files {
        if let Some(text) = replacement(file.source.name()).filter(|_| file.readable) {
            file.source = Arc::new(SourceFile::new(file.source.name(), text));
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let schemas = reply_schema_files(directory).into_iter().filter_map(|(path, name, text)| {
        Some((name, Arc::new(SourceFile::new(names.display_name(&path), text.ok()?))))
    });
    let schemas: BTreeMap<String, Arc<SourceFile>> = schemas.collect();
    examine::examine(&TemplateProject { files: &files, kinds: KINDS, schemas: &schemas, variables, models })
}

/// Collects all files below `folder`, which is `path` in the project. Unreadable files are reported elsewhere.
fn system_files(
    directory: &Path,
    (folder, path): (&Path, &str),
    names: &PathNames,
    depth: usize,
    files: &mut Vec<SystemFile>,
) {
    let Ok(entries) = resolve_within(directory, folder).and_then(std::fs::read_dir) else { return };
    for entry in entries.filter_map(Result::ok) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let real = folder.join(&name);
        let path = format!("{path}/{name}");
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if depth < MAX_DEPTH {
                system_files(directory, (&real, &path), names, depth + 1, files);
            }
        } else if files.len() < MAX_FILES && real.is_file() {
            let read = read_within(directory, &real, MAX_TEMPLATE_BYTES).ok();
            let text = read.filter(|bytes| bytes.len() as u64 <= MAX_TEMPLATE_BYTES);
            let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
            let readable = text.is_some();
            let source = Arc::new(SourceFile::new(names.display_name(&real), text.unwrap_or_default()));
            files.push(SystemFile { path, source, readable });
        }
    }
}
