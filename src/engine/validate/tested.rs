//! The scripts that tests are about, each looked at once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::check::test::{ScriptOutline, Tested};
use crate::engine::files::read_bounded;
use crate::engine::project::absolute;
use crate::engine::validate::names::Names;
use crate::engine::validate::read::sibling;
use crate::engine::validate::walk::is_yaml;
use crate::script::read::root_key;
use crate::source::text::{MAX_FILE_BYTES, SourceFile};
use crate::source::yaml::{Node, parse};

/// The scripts that were looked at, by their real paths.
#[derive(Debug, Default)]
pub struct TestedScripts {
    known: Mutex<HashMap<PathBuf, Tested>>,
}

impl TestedScripts {
    /// What stands at `path`. `outline` makes what tests must know of a parsed script.
    pub fn look(
        &self,
        path: &Path,
        names: &Names,
        outline: impl FnOnce(&Arc<SourceFile>, &Node) -> Option<ScriptOutline>,
    ) -> Tested {
        let real = absolute(path);
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tested) = known().get(&real) {
            return tested.clone();
        }
        let tested = if real.exists() {
            read(&real, names, outline)
        } else {
            Tested::Absent(sibling(path).filter(|near| is_yaml(Path::new(near))))
        };
        known().insert(real, tested.clone());
        tested
    }
}

fn read(real: &Path, names: &Names, outline: impl FnOnce(&Arc<SourceFile>, &Node) -> Option<ScriptOutline>) -> Tested {
    let Ok(bytes) = read_bounded(real, MAX_FILE_BYTES as u64) else { return Tested::Unreadable };
    let Ok(file) = SourceFile::from_bytes(names.shown(real), bytes) else { return Tested::Unreadable };
    let file = Arc::new(file);
    let Some(root) = parse(&file).root else { return Tested::Unreadable };
    match root_key(&root) {
        Some("session") | None => {
            outline(&file, &root).map_or(Tested::Unreadable, |outline| Tested::Script(Arc::new(outline)))
        }
        Some(_) => Tested::Other,
    }
}
