//! The input of rules about templates: the files of a project, the consumers of templates, and the templates of a scheme.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use bcc_lang::schema::embedded;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::mentions::visit;
use bcc_lang::template::templates::Templates;
use bcc_runtime::program::prompt::PromptNames;

/// A file below `_system/` of a project.
#[derive(Clone, Debug)]
pub struct SystemFile {
    /// Its path in the project, with `/`: `_system/config/default/ai_ask_v1.md`.
    pub path: String,
    /// Its text, with its display name. Findings refer to this file.
    pub source: Arc<SourceFile>,
    /// Whether it could be read as text. An unreadable file and the templates that include it are not checked.
    pub readable: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct TemplateUse<'a> {
    /// Its text, with its display name.
    pub source: &'a Arc<SourceFile>,
    pub readable: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct TemplateConsumer {
    /// Its name, with which the names of its templates start.
    pub kind: &'static str,
    pub prompt: PromptNames,
}

/// The templates of one scheme, with queries for rules.
pub struct TemplateSet<'a> {
    pub templates: &'a Templates,
    /// The project's file for each template; `None` for built-in templates.
    pub sources: &'a [Option<TemplateUse<'a>>],
}

impl TemplateSet<'_> {
    /// The project's file of a template, if it could be read.
    pub fn own(&self, number: usize) -> Option<&Arc<SourceFile>> {
        self.sources.get(number)?.as_ref().filter(|file| file.readable).map(|file| file.source)
    }

    /// Whether a template cannot be read or contains a mistake, so that its content is uncertain.
    pub(crate) fn is_broken(&self, number: usize) -> bool {
        self.sources.get(number).is_some_and(|file| file.as_ref().is_some_and(|file| !file.readable))
            || !self.templates.mistakes(number).is_empty()
    }

    /// All templates that become part of the prompts of `root`, and whether all of them are known and valid.
    pub fn parts(&self, root: usize) -> (HashSet<usize>, bool) {
        let mut parts = HashSet::new();
        visit(self.templates, root, &mut HashSet::new(), &mut |member| {
            parts.insert(member.template);
        });
        let dynamic = |number: &usize| {
            let loaded = self.templates.files().get(*number);
            loaded.is_some_and(|loaded| loaded.uses().targets.iter().any(|target| target.name.is_none()))
        };
        let sure = !parts.iter().any(|number| self.is_broken(*number) || dynamic(number));
        (parts, sure)
    }
}

/// The built-in reply schema of a kind.
pub(crate) fn own_reply(kind: &str) -> Option<Value> {
    embedded::reply(kind).and_then(|text| serde_json::from_str(text).ok())
}
