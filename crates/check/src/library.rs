//! The skills of a project: the data that callers need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::document_paths::DocumentPathError;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::read::{ScriptDocument, document};
use bcc_lang::script::route_parser::{OnExit, RouteTarget};
use bcc_lang::script::script::RawAction;
use bcc_lang::script::skill::WrittenSkill;
use bcc_lang::source::compose::parse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::{Span, Spanned};
use bcc_lang::source::text::SourceFile;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::value::declared::DeclaredType;

#[derive(Clone, Debug, Default)]
pub struct SkillLibrary {
    /// The skills by id; several if files share an id, in the order in which they were added.
    skills: BTreeMap<String, Vec<Arc<SkillOutline>>>,
    /// The targets of the paths in a script's `skills`, by path as written.
    paths: BTreeMap<String, SkillPathTarget>,
    /// Files that seem to contain skills but cannot be read.
    pub broken: Vec<BrokenFile>,
    /// Whether all skills of the project were found and read: only then a skill that is missing here does not exist.
    pub complete: bool,
}

/// A file that may contain a skill but cannot be read.
#[derive(Clone, Debug)]
pub struct BrokenFile {
    /// The path by which a script names it, if any.
    pub path: Option<String>,
    pub diagnostics: Vec<Diagnostic>,
}

/// The target of a skill path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillPathTarget {
    /// The skill with this id, which is in the library.
    Skill(String),
    /// A file with another kind of document, such as a script.
    Other,
    /// A broken file, whose problems are reported in the file itself.
    Unreadable,
    /// A path that cannot be used.
    Unusable(DocumentPathError),
}

/// The properties of a skill that a caller needs.
#[derive(Clone, Debug)]
pub struct SkillOutline {
    pub id: String,
    pub file: Arc<SourceFile>,
    /// The place of its id.
    pub span: Span,
    pub inputs: Vec<SkillInput>,
    /// Its outputs, each with its place.
    pub outputs: Vec<Spanned<String>>,
    /// The calls and insertions in its actions, as far as they can be recognized.
    pub calls: Vec<SkillCall>,
    /// The tools that its actions call.
    pub tools: Vec<String>,
    /// The kinds of its actions, also of nested ones.
    pub kinds: BTreeSet<String>,
    pub leaves: SkillExits,
}

/// A call or insertion of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCall {
    /// Its id, as written.
    pub id: Spanned<String>,
    /// For an insertion, the exit reason that triggers it.
    pub reason: Option<String>,
    /// Whether it is unconditional: in no case and under no condition.
    pub sure: bool,
}

/// Which parts of the caller the routes of a skill's actions may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkillExits {
    /// A route contains `skip_topic`.
    pub topic: bool,
    /// A route contains `skip_phase`.
    pub phase: bool,
    /// A route contains `end`.
    pub session: bool,
}

impl SkillExits {
    pub fn of(target: &RouteTarget) -> Self {
        Self {
            topic: *target == RouteTarget::SkipTopic,
            phase: *target == RouteTarget::SkipPhase,
            session: *target == RouteTarget::End,
        }
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
    /// Whether a caller must pass it, because it has no value of its own.
    pub needed: bool,
    pub declared: Option<DeclaredType>,
    pub span: Span,
}

impl SkillLibrary {
    /// A complete library of the skills of these files: those to which a session is pinned.
    pub fn of_files(files: &[Arc<SourceFile>]) -> Self {
        let mut library = Self { complete: true, ..Self::default() };
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
        // A skill without an id is reported elsewhere, and cannot be called.
        if !outline.id.is_empty() {
            self.skills.entry(outline.id.clone()).or_default().push(outline);
        }
    }

    /// Adds the skill of a file before those of other files, for a script that names it by its path.
    pub fn prefer(&mut self, file: &Arc<SourceFile>, skill: &WrittenSkill) {
        let outline = Arc::new(SkillOutline::of(file, skill));
        let all = self.skills.entry(outline.id.clone()).or_default();
        all.retain(|other| !other.is_at(file, skill.id.span));
        all.insert(0, outline);
    }

    /// Sets the target of a path in a script's `skills`.
    pub fn set_path_target(&mut self, path: impl Into<String>, target: SkillPathTarget) {
        self.paths.insert(path.into(), target);
    }

    /// The skill with this id; the first one if there are several.
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

    /// Texts that differ for two libraries with which a script can have different programs. None if something in it could not be
    /// read, so that its files do not say what it is.
    pub fn identity(&self) -> Option<Vec<&str>> {
        if !self.complete || !self.broken.is_empty() {
            return None;
        }
        let mut texts = vec![];
        for (path, target) in &self.paths {
            let SkillPathTarget::Skill(id) = target else { return None };
            texts.extend([path.as_str(), id.as_str()]);
        }
        for outline in self.skills.values().flatten() {
            texts.extend([outline.file.name(), outline.file.text()]);
        }
        Some(texts)
    }

    /// The target of a path in the script's `skills`, if it was set.
    pub(crate) fn path_target(&self, path: &str) -> Option<&SkillPathTarget> {
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
        let mut collected = CallCollector::default();
        skill.actions.iter().for_each(|action| collected.action(action));
        for topic in &skill.topics {
            topic.actions.iter().chain(&topic.finally).for_each(|action| collected.action(action));
            collected.routes(topic.on_exit.as_ref(), false);
        }
        // `skip_topic` leaves only the topic of the skill.
        collected.leaves.topic &= skill.topics.is_empty();
        Self {
            id: skill.id.value.clone(),
            file: Arc::clone(file),
            span: skill.id.span,
            inputs: skill.inputs.iter().map(input).collect(),
            outputs: skill.outputs.clone(),
            calls: collected.calls,
            tools: collected.tools,
            kinds: collected.kinds,
            leaves: collected.leaves,
        }
    }

    /// Whether its id is at this place.
    pub(crate) fn is_at(&self, file: &SourceFile, span: Span) -> bool {
        self.span == span && self.file.name() == file.name()
    }
}

#[derive(Default)]
struct CallCollector {
    calls: Vec<SkillCall>,
    tools: Vec<String>,
    kinds: BTreeSet<String>,
    leaves: SkillExits,
}

impl CallCollector {
    fn action(&mut self, action: &RawAction) {
        self.kinds.insert(action.kind.value.clone());
        if let Some(config) = &action.config {
            self.config(&action.kind.value, config, action.condition.is_none());
        }
        action.compensate.iter().for_each(|undo| self.action(undo));
        self.routes(action.on_exit.as_ref(), action.condition.is_none());
    }

    fn routes(&mut self, table: Option<&OnExit>, sure: bool) {
        for route in table.iter().flat_map(|table| &table.routes) {
            if let Some(target) = &route.then {
                self.leaves = self.leaves.or(SkillExits::of(&target.value));
            }
            if let Some(id) = route.insert.clone() {
                self.calls.push(SkillCall { id, reason: Some(route.reason.value.clone()), sure });
            }
        }
    }

    /// Collects the skill or the tool that the config of an action of this kind names, and the calls of the nested actions.
    fn config(&mut self, kind: &str, config: &YamlNode, sure: bool) {
        for entry in config.as_mapping().unwrap_or_default() {
            let Some(scalar) = entry.value.as_scalar() else { continue };
            if entry.key.value == "skill" {
                let id = Spanned::new(scalar.text.clone(), entry.value.span);
                self.calls.push(SkillCall { id, reason: None, sure });
            } else if kind == "tool" && entry.key.value == "name" {
                self.tools.push(scalar.text.clone());
            }
        }
        self.nested(config);
    }

    /// Collects from nested nodes that look like actions.
    fn nested(&mut self, node: &YamlNode) {
        let entries = node.as_mapping().unwrap_or_default();
        let kind = entries.iter().find(|entry| entry.key.value == "action_type");
        let kind = kind.map(|entry| entry.value.as_scalar().map_or("", |scalar| scalar.text.as_str()));
        self.kinds.extend(kind.map(str::to_owned));
        for entry in entries {
            match (entry.key.value.as_str(), kind) {
                ("config", Some(kind)) => self.config(kind, &entry.value, false),
                ("on_exit", Some(_)) => self.table(&entry.value),
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

    /// Collects the exit of a route that is a single word.
    fn word(&mut self, node: &YamlNode) {
        if let Some(target) = node.as_scalar().and_then(|scalar| RouteTarget::from_word(scalar.text.trim())) {
            self.leaves = self.leaves.or(SkillExits::of(&target));
        }
    }
}
