//! Escape analysis: which of topic, phase and session a called or inserted skill or action may leave. Its own routes, and
//! those of its callees, apply where it runs, in whatever topic that is (docs/routes.md).

use crate::calls::Calls;
use crate::collected::CalleeBody;
use crate::library::SkillExits;
use crate::semantic_model::SemanticModel;
use crate::skill_topics::skill_topic_of;
use bcc_lang::source::span::Spanned;

/// The exits of everything that may be called.
pub(crate) struct EscapeAnalysis<'f, 'a> {
    calls: Calls<'f, 'a>,
    /// The exits by node of the call graph.
    exits: Vec<SkillExits>,
}

impl<'f, 'a> EscapeAnalysis<'f, 'a> {
    pub(crate) fn of(model: &'f SemanticModel<'a>) -> Self {
        let mut calls = Calls::of(model);
        // Skills that only tables or triggers insert are not called by any action.
        calls.follow_ids(model.inserts().into_iter().map(|(id, _)| id));
        let actions = model.collected.actions.iter().enumerate().map(|(number, action)| {
            let routes = action.on_exit.iter().flat_map(|table| &table.routes);
            let exits = routes
                .filter_map(|route| route.then.as_ref())
                .fold(SkillExits::default(), |all, target| all.or(SkillExits::of(&target.value)));
            // `skip_topic` in a topic of a skill leaves only that topic.
            SkillExits { topic: exits.topic && skill_topic_of(&model.collected, number).is_none(), ..exits }
        });
        let mut exits: Vec<SkillExits> = actions.collect();
        exits.resize(calls.edges.len(), SkillExits::default());
        for (node, skill) in calls.project_skills() {
            exits.get_mut(node).into_iter().for_each(|exits| *exits = skill.leaves);
        }
        let mut callers = vec![Vec::new(); calls.edges.len()];
        for (from, edges) in calls.edges.iter().enumerate() {
            edges.iter().for_each(|edge| callers.get_mut(edge.to).into_iter().for_each(|callers| callers.push(from)));
        }
        // A node is visited again only if its exits grow: three times at most.
        let mut pending: Vec<usize> = (0..exits.len()).collect();
        while let Some(node) = pending.pop() {
            let Some(callee_exits) = exits.get(node).copied() else { continue };
            for caller in callers.get(node).into_iter().flatten() {
                let Some(caller_exits) =
                    exits.get_mut(*caller).filter(|caller_exits| caller_exits.or(callee_exits) != **caller_exits)
                else {
                    continue;
                };
                *caller_exits = caller_exits.or(callee_exits);
                pending.push(*caller);
            }
        }
        Self { calls, exits }
    }

    pub(crate) fn action(&self, number: usize) -> SkillExits {
        self.exits.get(number).copied().unwrap_or_default()
    }

    /// The exits of an `insert` in the part `from`. An unknown target may leave everything.
    pub(crate) fn inserted(&self, id: &Spanned<String>, from: CalleeBody) -> SkillExits {
        let known = self.calls.known(id, from).and_then(|node| self.exits.get(node).copied());
        known.unwrap_or(SkillExits { topic: true, phase: true, session: true })
    }
}
