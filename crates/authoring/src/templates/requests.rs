//! The template versions and schemes that the documents of a project use.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bcc_engine::discovery::names::PathNames;
use bcc_engine::discovery::walk::{FileRole, walk};
use bcc_lang::script::legacy_fields::current_spelling;
use bcc_lang::script::read::scheme;
use bcc_lang::source::compose::parse;
use bcc_lang::source::text::{MAX_FILE_BYTES, SourceFile};
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::language::PromptLanguage;

/// The maximum number of nodes per document: aliases can expand to more than fits in memory.
const MAX_NODES: usize = 500_000;

/// In which language a document asks a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentLanguage {
    /// Its `template_scheme`.
    pub scheme: Option<String>,
    /// The language of its texts; `None` if it has none.
    pub texts: Option<PromptLanguage>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TemplateRequests {
    pub versions: BTreeSet<(String, u32)>,
    /// The values of `template_scheme`.
    pub schemes: BTreeSet<String>,
    /// The scripts and skills, in the order of their paths.
    pub languages: Vec<DocumentLanguage>,
    pub documents: usize,
    /// Whether all documents could be read, so that the sets are complete.
    pub complete: bool,
}

impl TemplateRequests {
    /// Reads all documents in the project directory, with the same walk as `validate`. [`complete`](Self::complete) is
    /// false if some of them could not be read.
    pub(crate) fn of_project(project: &Path) -> Self {
        let walked = walk(&[project.to_path_buf()], &PathNames::relative_to(project.to_path_buf()));
        let mut requests = Self { complete: walked.diagnostics.is_empty(), ..Self::default() };
        for found in walked.found.iter().filter(|found| found.role == FileRole::Document) {
            let read = found.read(MAX_FILE_BYTES as u64).ok();
            match read.and_then(|bytes| SourceFile::from_bytes(found.shown.as_str(), bytes).ok()) {
                Some(file) => requests.document(&Arc::new(file)),
                None => requests.complete = false,
            }
        }
        requests
    }

    /// Whether an action of this type uses this version; `None` if not all documents could be read, or if there are none.
    pub(crate) fn asks(&self, kind: &str, version: u32) -> Option<bool> {
        let known = self.versions.contains(&(kind.to_owned(), version));
        (known || self.complete && self.documents > 0).then_some(known)
    }

    fn document(&mut self, file: &Arc<SourceFile>) {
        let parsed = parse(file);
        let Some(root) = parsed.root else {
            self.complete = false;
            return;
        };
        let scheme = scheme(&root).map(|scheme| scheme.value);
        self.schemes.extend(scheme.clone());
        let before = self.versions.len();
        let (mut pending, mut visited, mut actions) = (vec![root.as_ref()], 0, 0);
        while let Some(node) = pending.pop() {
            visited += 1;
            if visited > MAX_NODES {
                self.complete = false;
                break;
            }
            pending.extend(node.as_sequence().into_iter().flatten().map(AsRef::as_ref));
            pending.extend(node.as_mapping().into_iter().flatten().map(|entry| entry.value.as_ref()));
            actions += usize::from(self.action(node).is_some());
        }
        self.documents += usize::from(actions > 0 || self.versions.len() > before);
        if actions > 0 {
            self.languages.push(DocumentLanguage { scheme, texts: PromptLanguage::of_script(&root) });
        }
    }

    fn action(&mut self, node: &YamlNode) -> Option<()> {
        let field = |node: &YamlNode, name: &str| {
            let named = |key: &str| key == name || current_spelling(key).as_deref() == Some(name);
            let entry = node.as_mapping()?.iter().find(|entry| named(&entry.key.value))?;
            Some(Arc::clone(&entry.value))
        };
        let kind = field(node, "action_type")?.as_scalar()?.text.clone();
        let version = field(node, "config").and_then(|config| field(&config, "version"));
        // Without a valid version, version 1 is used, as in `ai_ask`.
        let version = version.and_then(|node| node.to_json().as_u64()).and_then(|version| version.try_into().ok());
        self.versions.insert((kind, version.unwrap_or(1)));
        Some(())
    }
}
