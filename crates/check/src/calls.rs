//! The call graph: skills and actions that call skills or insert skills and actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::callables::can_insert;
use crate::collected::{CallBy, CalleeBody};
use crate::library::SkillOutline;
use crate::reasons::{REASONS, ReasonTable, possible_reasons};
use crate::semantic_model::SemanticModel;
use bcc_lang::source::span::Spanned;
use bcc_lang::source::text::SourceFile;

/// The place and kind of a call.
#[derive(Clone, Copy)]
pub struct CallKind<'f> {
    /// The callee's id, as written.
    pub id: &'f Spanned<String>,
    pub file: &'f Arc<SourceFile>,
    pub in_document: bool,
    /// Whether a route inserts the callee; otherwise an action calls it.
    pub inserts: bool,
}

/// An edge from a caller to a callee.
#[derive(Clone, Copy)]
pub struct CallEdge<'f> {
    pub to: usize,
    /// The exit reason of an insertion.
    pub reason: Option<&'static str>,
    /// `None` if the caller merely contains the action.
    pub by: Option<CallKind<'f>>,
    /// Whether only an exit reason decides if the call happens: no `condition` and no case.
    pub sure: bool,
}

/// The call graph. Its nodes are the actions of the document by number, then its skills, then the called project skills.
pub struct Calls<'f, 'a> {
    model: &'f SemanticModel<'a>,
    /// The outgoing edges of each node, by its number.
    pub edges: Vec<Vec<CallEdge<'f>>>,
    own: BTreeMap<&'f str, usize>,
    /// The skills of the project found so far, with their nodes.
    project_skills: BTreeMap<&'f str, (usize, &'f SkillOutline)>,
    /// The skills of the project whose calls were not followed yet.
    pending: Vec<&'f SkillOutline>,
}

impl<'f, 'a> Calls<'f, 'a> {
    pub fn of(model: &'f SemanticModel<'a>) -> Self {
        let (actions, skills) = (model.collected.actions.len(), model.skills.len());
        let own = model.skills.iter().enumerate().map(|(number, skill)| (skill.id.value.as_str(), actions + number));
        let edges = (0..actions + skills).map(|_| Vec::new()).collect();
        let mut calls = Self { model, edges, own: own.collect(), project_skills: BTreeMap::new(), pending: Vec::new() };
        for (number, action) in model.collected.actions.iter().enumerate() {
            let container = match (action.parent, action.body) {
                (Some(parent), _) => Some(parent),
                (None, CalleeBody::Skill(skill)) => Some(actions + skill),
                (None, _) => None,
            };
            if let Some(container) = container {
                // An action in a case does not always run.
                let sure = !action.conditional && action.parent.is_none();
                calls.add_edge(container, CallEdge { to: number, reason: None, by: None, sure });
            }
        }
        // A call that happens only on request may never happen, so it is not part of a cycle.
        for call in model.collected.calls.iter().filter(|call| !matches!(call.by, CallBy::Maybe(_))) {
            let by = CallKind { id: &call.skill, file: model.file, in_document: true, inserts: false };
            if let (Some(from), Some(to)) = (call.at.action, calls.skill(&call.skill.value)) {
                calls.add_edge(from, CallEdge { to, reason: None, by: Some(by), sure: true });
            }
        }
        calls.insertions();
        calls.follow();
        calls
    }

    /// Adds what each action inserts by its own routes. The tables of its topic, phase and session apply only where the
    /// action is defined, not where it is inserted (docs/routes.md), so no cycle goes through them.
    fn insertions(&mut self) {
        let model = self.model;
        for (number, action) in model.collected.actions.iter().enumerate() {
            let own = ReasonTable::of(action.on_exit.as_ref());
            for reason in possible_reasons(model, action) {
                let Some(id) = own.route(reason).and_then(|route| route.insert.as_ref()) else { continue };
                let Some(to) = self.inserted(id, action.body) else { continue };
                let by = CallKind { id, file: model.file, in_document: true, inserts: true };
                self.add_edge(number, CallEdge { to, reason: Some(reason), by: Some(by), sure: true });
            }
        }
    }

    /// Adds the calls of the project's skills, and of the skills that they call.
    fn follow(&mut self) {
        while let Some(skill) = self.pending.pop() {
            let Some((from, _)) = self.project_skills.get(skill.id.as_str()).copied() else { continue };
            for call in &skill.calls {
                let id = call.id.value.as_str();
                // Other skills do not see the skills of a script; the skill of a skill file is the project's own.
                let own = self.own.get(id).filter(|_| self.model.script.is_none()).copied();
                let to = own.or_else(|| Some(self.project_skill(self.model.library.skill(id)?)));
                let reason = call.reason.as_ref().map(|reason| REASONS.into_iter().find(|known| known == reason));
                // A route for a reason that does not exist is never taken.
                if let (Some(to), None | Some(Some(_))) = (to, reason) {
                    let by = CallKind { id: &call.id, file: &skill.file, in_document: false, inserts: false };
                    self.add_edge(from, CallEdge { to, reason: reason.flatten(), by: Some(by), sure: call.sure });
                }
            }
        }
    }

    /// Also follows these ids if they are skills.
    pub(crate) fn follow_ids(&mut self, ids: impl Iterator<Item = &'f Spanned<String>>) {
        for id in ids {
            let _ = self.skill(&id.value);
        }
        self.follow();
    }

    /// The skills of the project that were found, with their nodes.
    pub(crate) fn project_skills(&self) -> impl Iterator<Item = (usize, &'f SkillOutline)> {
        self.project_skills.values().map(|(node, skill)| (*node, *skill))
    }

    /// The node of an `insert` in the part `from`, if it was found before.
    pub fn known(&self, id: &Spanned<String>, from: CalleeBody) -> Option<usize> {
        let id = id.value.as_str();
        let skill = || self.own.get(id).copied().or_else(|| self.project_skills.get(id).map(|(node, _)| *node));
        skill().or_else(|| self.action(id, from))
    }

    fn action(&self, id: &str, from: CalleeBody) -> Option<usize> {
        let number = self.model.callables().action(id)?;
        self.model.collected.actions.get(number).is_some_and(|action| can_insert(from, action)).then_some(number)
    }

    /// The node of an `insert` in the part `from`.
    fn inserted(&mut self, id: &Spanned<String>, from: CalleeBody) -> Option<usize> {
        self.skill(&id.value).or_else(|| self.action(&id.value, from))
    }

    fn skill(&mut self, id: &str) -> Option<usize> {
        match self.own.get(id) {
            Some(own) => Some(*own),
            None => Some(self.project_skill(self.model.callables().skill(id)?)),
        }
    }

    fn project_skill(&mut self, skill: &'f SkillOutline) -> usize {
        if let Some((number, _)) = self.project_skills.get(skill.id.as_str()) {
            return *number;
        }
        let number = self.edges.len();
        self.edges.push(Vec::new());
        self.project_skills.insert(&skill.id, (number, skill));
        self.pending.push(skill);
        number
    }

    fn add_edge(&mut self, from: usize, edge: CallEdge<'f>) {
        if let Some(edges) = self.edges.get_mut(from) {
            edges.push(edge);
        }
    }
}
