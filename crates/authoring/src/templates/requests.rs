//! What the documents of a project ask for: which kinds with which `version`, and which schemes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{FileRole, walk};
use bcc_engine::files::read_bounded;
use bcc_lang::script::legacy_fields::todays_spelling;
use bcc_lang::script::read::scheme;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::{MAX_FILE_BYTES, SourceFile};
use bcc_lang::source::yaml::YamlNode;

/// How many nodes of one document are looked at: what it repeats by aliases may have more than a memory holds.
const MOST_NODES: usize = 500_000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateRequests {
    pub versions: BTreeSet<(String, u32)>,
    /// Every `template_scheme`.
    pub schemes: BTreeSet<String>,
    pub documents: usize,
    /// Whether every document could be read, so that what is not here is asked for nowhere.
    pub whole: bool,
}

impl TemplateRequests {
    /// Reads the documents of the project in this directory, wherever in it they lie: a script may be anywhere. The walk is that
    /// of `validate`; where it could not see all, [`whole`](Self::whole) says so.
    pub fn by(project: &Path) -> Self {
        let walked = walk(&[project.to_path_buf()], &PathNames::seen_from(project.to_path_buf()));
        let mut asked = Self { whole: walked.diagnostics.is_empty(), ..Self::default() };
        for found in walked.found.iter().filter(|found| found.role == FileRole::Document) {
            let read = read_bounded(&found.path, MAX_FILE_BYTES as u64).ok();
            match read.and_then(|bytes| SourceFile::from_bytes(found.shown.as_str(), bytes).ok()) {
                Some(file) => asked.document(&Arc::new(file)),
                None => asked.whole = false,
            }
        }
        asked
    }

    /// Whether some action of this kind asks for this version; nobody says where not all could be read, or there is nothing
    /// that asks.
    pub fn asks(&self, kind: &str, version: u32) -> Option<bool> {
        let known = self.versions.contains(&(kind.to_owned(), version));
        (known || self.whole && self.documents > 0).then_some(known)
    }

    fn document(&mut self, file: &Arc<SourceFile>) {
        let parsed = parse(file);
        let Some(root) = parsed.root else {
            self.whole = false;
            return;
        };
        self.schemes.extend(scheme(&root).map(|scheme| scheme.value));
        let before = self.versions.len();
        let (mut open, mut seen, mut actions) = (vec![root.as_ref()], 0, 0);
        while let Some(node) = open.pop() {
            seen += 1;
            if seen > MOST_NODES {
                self.whole = false;
                break;
            }
            open.extend(node.as_sequence().into_iter().flatten().map(AsRef::as_ref));
            open.extend(node.as_mapping().into_iter().flatten().map(|entry| entry.value.as_ref()));
            actions += usize::from(self.action(node).is_some());
        }
        self.documents += usize::from(actions > 0 || self.versions.len() > before);
    }

    fn action(&mut self, node: &YamlNode) -> Option<()> {
        let field = |node: &YamlNode, name: &str| {
            let named = |key: &str| key == name || todays_spelling(key).as_deref() == Some(name);
            let entry = node.as_mapping()?.iter().find(|entry| named(&entry.key.value))?;
            Some(Arc::clone(&entry.value))
        };
        let kind = field(node, "action_type")?.as_scalar()?.text.clone();
        let version = field(node, "config").and_then(|config| field(&config, "version"));
        // Without a sound version, version 1 is taken, as `ai_ask` does.
        let version = version.and_then(|node| node.to_json().as_u64()).and_then(|version| version.try_into().ok());
        self.versions.insert((kind, version.unwrap_or(1)));
        Some(())
    }
}
