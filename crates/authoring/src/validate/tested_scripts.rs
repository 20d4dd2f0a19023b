//! The scripts that tests use, each read once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::validate::read_file::sibling;
use bcc_check::document_paths::DocumentPathError;
use bcc_check::test::{ScriptOutline, TestedScript};
use bcc_engine::discovery::documents::is_document;
use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::written_path;
use bcc_lang::script::project_path::is_yaml;
use bcc_lang::script::read::root_key;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;

/// The scripts by their real paths.
#[derive(Debug, Default)]
pub(crate) struct TestedScripts {
    known: Mutex<HashMap<PathBuf, TestedScript>>,
}

impl TestedScripts {
    /// The script at `real`. `outline` extracts what tests need from a parsed script.
    pub(crate) fn get(
        &self,
        real: &Path,
        names: &PathNames,
        outline: impl FnOnce(&Arc<SourceFile>, &YamlNode) -> Option<ScriptOutline>,
    ) -> TestedScript {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tested) = known().get(real) {
            return tested.clone();
        }
        let tested = match read(real, names, outline) {
            TestedScript::Unusable(DocumentPathError::Absent) => {
                TestedScript::Absent(sibling(real).filter(|near| is_yaml(Path::new(near))))
            }
            tested => tested,
        };
        known().insert(real.to_path_buf(), tested.clone());
        tested
    }
}

fn read(
    real: &Path,
    names: &PathNames,
    outline: impl FnOnce(&Arc<SourceFile>, &YamlNode) -> Option<ScriptOutline>,
) -> TestedScript {
    let bytes = match written_path::read(real) {
        Ok(bytes) => bytes,
        Err(error) => return TestedScript::Unusable(error),
    };
    // A broken script is reported in its own check.
    let broken = if is_document(&bytes) { TestedScript::Unreadable } else { TestedScript::Other };
    let Ok(file) = SourceFile::from_bytes(names.display_name(real), bytes) else { return broken };
    let file = Arc::new(file);
    let Some(root) = parse(&file).root else { return broken };
    match root_key(&root) {
        None => broken,
        Some("session") => outline(&file, &root).map_or(broken, |outline| TestedScript::Script(Arc::new(outline))),
        Some(_) => TestedScript::Other,
    }
}
