//! Analyses of monitors that had no result when a session was stored: they are started again, with what their turns had before them
//! (docs/monitors.md).

use std::sync::Arc;

use bcc_lang::message::message::Message;
use bcc_lang::value::scopes::{Scope, Scopes};
use bcc_store::rows::VariableRow;

use crate::program::action::WatchedConfig;
use crate::program::program::{Phase, Program, ProgramSteps, Topic};
use crate::run::frames::{component, id_of, is_inserted, lineage, public_path, skill_path};
use crate::run::resume::layer_of_rows;
use crate::run::session::Session;

impl Session {
    /// Restarts the analyses that had no result when the session was stored. `variables` are the stored ones.
    pub(crate) fn restart_analyses(&mut self, variables: &[VariableRow]) {
        if self.larger_budget().is_some() {
            // They stay stored for a resume with a budget.
            self.deferred = (std::mem::take(&mut self.head.monitors), self.head.planning.take());
            return;
        }
        let program = Arc::clone(&self.program);
        let leaf = self.frames.leaf();
        let Some(position) = self.position(&program, &leaf) else { return };
        for request in std::mem::take(&mut self.head.monitors) {
            // All actions of a kind have the same monitor, and the observed action is usually the current one.
            let kind = request.watched.action_type.clone();
            let topics = program.phases.iter().flat_map(|phase| &phase.topics).map(|topic| &topic.steps);
            let skills = program.skills.values().map(|skill| &skill.steps);
            let own = position.step.action.watched().filter(|_| position.step.kind == kind);
            let config = own.or_else(|| topics.chain(skills).find_map(|steps| find_watched(steps, &kind)));
            let Some(config) = config else { continue };
            // The session may have left the topic of the turn since.
            let (part, scopes) = if position.visit_key == request.visit_key {
                ((position.phase, position.topic), self.scopes.clone())
            } else {
                let part = part_of_visit(&program, &request.visit_key);
                let part = part.unwrap_or((position.phase, position.topic));
                let scopes = self.scopes_of_visit(&program, part, &request.visit_key, variables);
                (part, scopes.unwrap_or_else(|_| self.scopes.clone()))
            };
            let newer = request.messages.map_or(0, |messages| self.head.messages.saturating_sub(messages));
            let recent = self.recent.before_newest(newer, &request.watched.answer);
            let names = self.names_of_monitor(&program, part, &recent, scopes);
            if let Some(job) = self.job(&program, config, request, names) {
                self.mailbox.start(job);
            }
        }
    }

    /// The variables of a visit of a topic or skill, which may be over, with their values at its end.
    ///
    /// # Errors
    /// A stored value cannot be read.
    fn scopes_of_visit(
        &self,
        program: &Program,
        (phase, topic): (&Phase, &Topic),
        visit_key: &str,
        variables: &[VariableRow],
    ) -> Result<Scopes, Message> {
        let skill = |key: &&str| is_inserted(component(key)) && program.skills.contains_key(id_of(component(key)));
        if let Some(key) = lineage(visit_key).filter(skill).last()
            && let Some(skill) = program.skills.get(id_of(component(key)))
        {
            let layer = layer_of_rows(variables, Scope::Topic, &skill_path(key), &skill.inputs)?;
            return Ok(Scopes::isolated(layer));
        }
        let mut scopes = self.script_scopes().session_scopes();
        let mut keys = lineage(visit_key);
        if let Some(key) = keys.next() {
            scopes.push(layer_of_rows(variables, Scope::Phase, key, &phase.declarations)?);
        }
        if let Some(key) = keys.next() {
            scopes.push(layer_of_rows(variables, Scope::Topic, &public_path(key), &topic.declarations)?);
        }
        Ok(scopes)
    }
}

/// The phase and the topic of a visit, by the key of its frame.
fn part_of_visit<'p>(program: &'p Program, visit_key: &str) -> Option<(&'p Phase, &'p Topic)> {
    let mut keys = lineage(visit_key);
    let (phase, topic) = (id_of(component(keys.next()?)), id_of(component(keys.next()?)));
    let phase = program.phases.iter().find(|found| found.id == phase)?;
    Some((phase, phase.topics.iter().find(|found| found.id == topic)?))
}

/// The first action of this kind with a monitor, including nested actions.
fn find_watched<'p>(steps: &'p ProgramSteps, kind: &str) -> Option<&'p WatchedConfig> {
    steps.iter().find_map(|step| {
        let own = step.action.watched().filter(|_| step.kind == kind);
        own.or_else(|| step.action.blocks().into_iter().find_map(|steps| find_watched(steps, kind)))
    })
}
