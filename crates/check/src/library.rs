//! The skills of a project, as far as a caller must know them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document_paths::DocumentPathError;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::{ScriptDocument, document};
use bcc_lang::script::routes::Go;
use bcc_lang::script::script::RawAction;
use bcc_lang::script::skill::WrittenSkill;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::value::declared::DeclaredType;

/// Skills by their ids.
#[derive(Clone, Debug, Default)]
pub struct SkillLibrary {
    /// By id; several where files share one, in the order in which they were added.
    skills: BTreeMap<String, Vec<Arc<SkillOutline>>>,
    /// What the paths of a script's `skills` lead to, as they are written there.
    paths: BTreeMap<String, SkillPathTarget>,
    /// Files that seem to hold skills and cannot be read as such.
    pub broken: Vec<BrokenFile>,
    /// Whether every skill that there is was looked up and could be read: only then one that is not here does not exist.
    pub whole: bool,
}

/// A file in which a skill may be, which cannot be read as one.
#[derive(Clone, Debug)]
pub struct BrokenFile {
    /// The path by which a script names it, when one does.
    pub path: Option<String>,
    pub diagnostics: Vec<Diagnostic>,
}

/// What the path of a skill leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillPathTarget {
    /// The skill with this id, which is in the library.
    Skill(String),
    /// A file that holds something else, as a script.
    Other,
    /// A text that is broken, which is reported there.
    Unreadable,
    /// Nothing that could be read.
    Refused(DocumentPathError),
}

/// What a caller must know of a skill.
#[derive(Clone, Debug)]
pub struct SkillOutline {
    pub id: String,
    pub file: Arc<SourceFile>,
    /// Where its id stands.
    pub span: Span,
    pub inputs: Vec<SkillInput>,
    /// Its outputs, where each is listed.
    pub outputs: Vec<Spanned<String>>,
    /// The skills that it calls or inserts itself, or what looks like one.
    pub calls: Vec<SkillCall>,
    pub leaves: SkillExits,
}

/// A skill that another one calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCall {
    /// Its id, as written.
    pub id: Spanned<String>,
    /// For an insertion: the exit reason at which it happens.
    pub reason: Option<String>,
    /// Whether it stands in no case and under no condition.
    pub sure: bool,
}

/// Where the routes of a skill's actions lead out of what called it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkillExits {
    /// One says `skip_topic`.
    pub topic: bool,
    /// One says `skip_phase`.
    pub phase: bool,
    /// One says `end`.
    pub session: bool,
}

impl SkillExits {
    pub fn of(go: &Go) -> Self {
        Self { topic: *go == Go::SkipTopic, phase: *go == Go::SkipPhase, session: *go == Go::End }
    }

    pub fn or(self, other: Self) -> Self {
        Self {
            topic: self.topic || other.topic,
            phase: self.phase || other.phase,
            session: self.session || other.session,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillInput {
    pub name: String,
    /// Whether a caller must give it: it has no value of its own.
    pub needed: bool,
    pub declared: Option<DeclaredType>,
    pub span: Span,
}

impl SkillLibrary {
    /// The skills of these files, which are all that there are: those that a session is pinned to.
    pub fn of_files(files: &[Arc<SourceFile>]) -> Self {
        let mut library = Self { whole: true, ..Self::default() };
        for file in files {
            if let Some(ScriptDocument::Skill(skill)) =
                parse(file).root.and_then(|root| document(file, &root, &Findings::new()))
            {
                library.add(file, &skill);
            }
        }
        library
    }

    pub fn add(&mut self, file: &Arc<SourceFile>, skill: &WrittenSkill) {
        let outline = Arc::new(SkillOutline::of(file, skill));
        // One without an id is reported where it stands, and nobody can call it.
        if !outline.id.is_empty() {
            self.skills.entry(outline.id.clone()).or_default().push(outline);
        }
    }

    /// Adds the skill of a file before those of other files: a script that names it by its path means this one.
    pub fn prefer(&mut self, file: &Arc<SourceFile>, skill: &WrittenSkill) {
        let outline = Arc::new(SkillOutline::of(file, skill));
        let all = self.skills.entry(outline.id.clone()).or_default();
        all.retain(|other| !other.is_at(file, skill.id.span));
        all.insert(0, outline);
    }

    /// Says what a path in a script's `skills` leads to.
    pub fn name(&mut self, path: impl Into<String>, named: SkillPathTarget) {
        self.paths.insert(path.into(), named);
    }

    /// The skill with this id; the first of several.
    pub fn skill(&self, id: &str) -> Option<&SkillOutline> {
        self.all(id).first().map(Arc::as_ref)
    }

    pub fn all(&self, id: &str) -> &[Arc<SkillOutline>] {
        self.skills.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The ids of all skills, sorted.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.skills.keys().map(String::as_str)
    }

    /// What a path in the script's `skills` leads to, where somebody looked.
    pub fn named(&self, path: &str) -> Option<&SkillPathTarget> {
        self.paths.get(path)
    }
}

impl SkillOutline {
    pub fn of(file: &Arc<SourceFile>, skill: &WrittenSkill) -> Self {
        let input = |input: &bcc_lang::script::declare::Declared| SkillInput {
            name: input.declaration.name.clone(),
            needed: input.declaration.value.is_null(),
            declared: input.declaration.declared,
            span: input.span,
        };
        let mut collected = Collected::default();
        skill.actions.iter().for_each(|action| collected.action(action));
        Self {
            id: skill.id.value.clone(),
            file: Arc::clone(file),
            span: skill.id.span,
            inputs: skill.inputs.iter().map(input).collect(),
            outputs: skill.outputs.clone(),
            calls: collected.calls,
            leaves: collected.leaves,
        }
    }

    /// Whether it is the skill whose id stands at this place.
    pub fn is_at(&self, file: &SourceFile, span: Span) -> bool {
        self.span == span && self.file.name() == file.name()
    }
}

#[derive(Default)]
struct Collected {
    calls: Vec<SkillCall>,
    leaves: SkillExits,
}

impl Collected {
    fn action(&mut self, action: &RawAction) {
        if let Some(config) = &action.config {
            self.config(config, action.condition.is_none());
        }
        for route in action.on_exit.iter().flat_map(|table| &table.routes) {
            if let Some(go) = &route.then {
                self.leaves = self.leaves.or(SkillExits::of(&go.value));
            }
            if let Some(id) = route.insert.clone() {
                let sure = action.condition.is_none();
                self.calls.push(SkillCall { id, reason: Some(route.reason.value.clone()), sure });
            }
        }
    }

    /// The skill that a config names, and those of the actions that stand inside of it.
    fn config(&mut self, config: &YamlNode, sure: bool) {
        for entry in config.as_mapping().unwrap_or_default() {
            if let Some(scalar) = entry.value.as_scalar().filter(|_| entry.key.value == "skill") {
                let id = Spanned::new(scalar.text.clone(), entry.value.span);
                self.calls.push(SkillCall { id, reason: None, sure });
            }
        }
        self.nested(config);
    }

    /// Goes down to whatever looks like an action.
    fn nested(&mut self, node: &YamlNode) {
        let entries = node.as_mapping().unwrap_or_default();
        let is_action = entries.iter().any(|entry| entry.key.value == "action_type");
        for entry in entries {
            match entry.key.value.as_str() {
                "config" if is_action => self.config(&entry.value, false),
                "on_exit" if is_action => self.table(&entry.value),
                _ => self.nested(&entry.value),
            }
        }
        for item in node.as_sequence().unwrap_or_default() {
            self.nested(item);
        }
    }

    fn table(&mut self, table: &YamlNode) {
        for route in table.as_mapping().unwrap_or_default() {
            self.word(&route.value);
            for entry in route.value.as_mapping().unwrap_or_default() {
                match (entry.key.value.as_str(), entry.value.as_scalar()) {
                    ("insert", Some(scalar)) => {
                        let id = Spanned::new(scalar.text.clone(), entry.value.span);
                        let reason = Some(route.key.value.clone());
                        self.calls.push(SkillCall { id, reason, sure: false });
                    }
                    ("then", _) => self.word(&entry.value),
                    _ => {}
                }
            }
        }
    }

    /// A route of one word.
    fn word(&mut self, node: &YamlNode) {
        if let Some(go) = node.as_scalar().and_then(|scalar| Go::word(scalar.text.trim())) {
            self.leaves = self.leaves.or(SkillExits::of(&go));
        }
    }
}
