//! What rules about templates look at: the files of a project, what asks for templates, and the templates of one scheme.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use bcc_lang::schema::embedded;
use bcc_lang::source::text::SourceFile;
use bcc_lang::template::mentions::visit;
use bcc_lang::template::templates::Templates;
use bcc_runtime::program::prompt::PromptOf;

/// Names of templates that the language has (docs/templates.md) and no kind of this release asks for.
pub const LATER_TEMPLATES: [&str; 3] = ["structured_actions", "plan_create", "plan_decompose"];

/// A file below `_system/` of a project.
#[derive(Clone, Debug)]
pub struct SystemFile {
    /// Its path in the project, with `/`: `_system/config/default/ai_ask_v1.md`.
    pub path: String,
    /// Its text, under the name that people are shown. Findings are about this file.
    pub source: Arc<SourceFile>,
    /// Whether it could be read as text; nothing is said about one that could not, nor about what pulls it in.
    pub readable: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct TemplateUse<'a> {
    /// Its text, under the name that people are shown.
    pub source: &'a Arc<SourceFile>,
    pub readable: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct TemplateConsumer {
    /// Its name, with which the names of its templates begin.
    pub kind: &'static str,
    pub prompt: PromptOf,
}

/// The templates of one scheme, with what the rules ask of them.
pub struct TemplateSet<'a> {
    pub templates: &'a Templates,
    /// The project's file for each of them; none for those of the binary.
    pub sources: &'a [Option<TemplateUse<'a>>],
}

impl TemplateSet<'_> {
    /// The project's file behind a template that could be read.
    pub fn own(&self, number: usize) -> Option<&Arc<SourceFile>> {
        self.sources.get(number)?.as_ref().filter(|file| file.readable).map(|file| file.source)
    }

    /// Whether a template cannot be read, or has a mistake of its own, so that nothing is sure of what it says.
    pub fn is_broken(&self, number: usize) -> bool {
        self.sources.get(number).is_some_and(|file| file.as_ref().is_some_and(|file| !file.readable))
            || !self.templates.mistakes(number).is_empty()
    }

    /// Every template that becomes part of the prompts of `root`; whether all of them are known and sound.
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

/// The reply schema of a kind as the binary has it.
pub(crate) fn own_reply(kind: &str) -> Option<Value> {
    embedded::reply(kind).and_then(|text| serde_json::from_str(text).ok())
}
