//! The skills of a project, as far as a caller must know them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::paths_of_documents::Refused;
use crate::script::findings::Findings;
use crate::script::read::{Document, document};
use crate::script::routes::WrittenRoute;
use crate::script::script::RawAction;
use crate::script::skill::WrittenSkill;
use crate::source::diagnostic::Diagnostic;
use crate::source::span::{Span, Spanned};
use crate::source::text::SourceFile;
use crate::source::yaml::{Node, parse};
use crate::value::declared::DeclaredType;

/// Skills by their ids.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// By id; several where files share one, in the order in which they were added.
    skills: BTreeMap<String, Vec<Arc<SkillOutline>>>,
    /// What the paths of a script's `skills` lead to, as they are written there.
    paths: BTreeMap<String, Named>,
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
    /// What is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
}

/// What the path of a skill leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The skill with this id, which is in the library.
    Skill(String),
    /// A file that holds something else, as a script.
    Other,
    /// A text that is broken, which is reported there.
    Unreadable,
    /// Nothing that could be read.
    Refused(Refused),
}

/// What a caller must know of a skill.
#[derive(Clone, Debug)]
pub struct SkillOutline {
    /// Its id.
    pub id: String,
    /// The file that holds it.
    pub file: Arc<SourceFile>,
    /// Where its id stands.
    pub span: Span,
    /// Its inputs.
    pub inputs: Vec<Input>,
    /// Its outputs, where each is listed.
    pub outputs: Vec<Spanned<String>>,
    /// The skills that it calls or inserts itself, or what looks like one.
    pub calls: Vec<SkillCall>,
}

/// A skill that another one calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCall {
    /// Its id, as written.
    pub id: Spanned<String>,
    /// For an insertion: the exit reason at which it happens.
    pub reason: Option<String>,
}

/// An input of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Whether a caller must give it: it has no value of its own.
    pub needed: bool,
    /// Its type.
    pub declared: Option<DeclaredType>,
    /// Where it is declared.
    pub span: Span,
}

impl Library {
    /// The skills of these files, which are all that there are: those that a session is pinned to.
    pub fn of_files(files: &[Arc<SourceFile>]) -> Self {
        let mut library = Self { whole: true, ..Self::default() };
        for file in files {
            if let Some(Document::Skill(skill)) =
                parse(file).root.and_then(|root| document(file, &root, &Findings::new()))
            {
                library.add(file, &skill);
            }
        }
        library
    }

    /// Adds the skill of a file.
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
    pub fn name(&mut self, path: impl Into<String>, named: Named) {
        self.paths.insert(path.into(), named);
    }

    /// The skill with this id; the first of several.
    pub fn skill(&self, id: &str) -> Option<&SkillOutline> {
        self.all(id).first().map(Arc::as_ref)
    }

    /// Every skill with this id.
    pub fn all(&self, id: &str) -> &[Arc<SkillOutline>] {
        self.skills.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The ids of all skills, sorted.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.skills.keys().map(String::as_str)
    }

    /// What a path in the script's `skills` leads to, where somebody looked.
    pub fn named(&self, path: &str) -> Option<&Named> {
        self.paths.get(path)
    }
}

impl SkillOutline {
    /// The outline of a skill.
    pub fn of(file: &Arc<SourceFile>, skill: &WrittenSkill) -> Self {
        let input = |input: &crate::script::declare::Declared| Input {
            name: input.declaration.name.clone(),
            needed: input.declaration.value.is_null(),
            declared: input.declaration.declared,
            span: input.span,
        };
        let mut calls = Vec::new();
        skill.actions.iter().for_each(|action| of_action(action, &mut calls));
        Self {
            id: skill.id.value.clone(),
            file: Arc::clone(file),
            span: skill.id.span,
            inputs: skill.inputs.iter().map(input).collect(),
            outputs: skill.outputs.clone(),
            calls,
        }
    }

    /// Whether it is the skill whose id stands at this place.
    pub fn is_at(&self, file: &SourceFile, span: Span) -> bool {
        self.span == span && self.file.name() == file.name()
    }
}

fn of_action(action: &RawAction, calls: &mut Vec<SkillCall>) {
    if let Some(config) = &action.config {
        of_config(config, calls);
    }
    let routes = action.on_exit.iter().flat_map(|table| &table.routes);
    let insert = |route: &WrittenRoute| {
        let id = route.insert.clone()?;
        Some(SkillCall { id, reason: Some(route.reason.value.clone()) })
    };
    calls.extend(routes.filter_map(insert));
}

/// The skill that a config names, and those of the actions that stand inside of it.
fn of_config(config: &Node, calls: &mut Vec<SkillCall>) {
    for entry in config.as_mapping().unwrap_or_default() {
        if let Some(scalar) = entry.value.as_scalar().filter(|_| entry.key.value == "skill") {
            calls.push(SkillCall { id: Spanned::new(scalar.text.clone(), entry.value.span), reason: None });
        }
    }
    nested(config, calls);
}

/// Goes down to whatever looks like an action.
fn nested(node: &Node, calls: &mut Vec<SkillCall>) {
    let entries = node.as_mapping().unwrap_or_default();
    let is_action = entries.iter().any(|entry| entry.key.value == "action_type");
    for entry in entries {
        match entry.key.value.as_str() {
            "config" if is_action => of_config(&entry.value, calls),
            "on_exit" if is_action => inserts(&entry.value, calls),
            _ => nested(&entry.value, calls),
        }
    }
    for item in node.as_sequence().unwrap_or_default() {
        nested(item, calls);
    }
}

fn inserts(table: &Node, calls: &mut Vec<SkillCall>) {
    for route in table.as_mapping().unwrap_or_default() {
        for entry in route.value.as_mapping().unwrap_or_default() {
            if let Some(scalar) = entry.value.as_scalar().filter(|_| entry.key.value == "insert") {
                let id = Spanned::new(scalar.text.clone(), entry.value.span);
                calls.push(SkillCall { id, reason: Some(route.key.value.clone()) });
            }
        }
    }
}
