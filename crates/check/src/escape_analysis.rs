//! Out of where a skill or an action that is called or inserted may lead: its own routes, and those of what it calls, are
//! taken where it runs, whatever topic that is (docs/routes.md).

use crate::calls::Calls;
use crate::collected::CalleeBody;
use crate::library::SkillExits;
use crate::semantic_model::SemanticModel;
use bcc_lang::source::span::Spanned;

/// Where everything that may be called leads.
pub struct EscapeAnalysis<'f, 'a> {
    calls: Calls<'f, 'a>,
    /// By the numbers of the nodes of the calls.
    leaves: Vec<SkillExits>,
}

impl<'f, 'a> EscapeAnalysis<'f, 'a> {
    pub fn of(facts: &'f SemanticModel<'a>) -> Self {
        let mut calls = Calls::of(facts);
        // What only the tables around inserts, and triggers do, no action calls.
        calls.meet(facts.inserts().into_iter().map(|(id, _)| id));
        let actions = facts.seen.actions.iter().map(|action| {
            let routes = action.on_exit.iter().flat_map(|table| &table.routes);
            routes
                .filter_map(|route| route.then.as_ref())
                .fold(SkillExits::default(), |all, go| all.or(SkillExits::of(&go.value)))
        });
        let mut leaves: Vec<SkillExits> = actions.collect();
        leaves.resize(calls.ways.len(), SkillExits::default());
        for (node, skill) in calls.others() {
            leaves.get_mut(node).into_iter().for_each(|leaves| *leaves = skill.leaves);
        }
        let mut callers = vec![Vec::new(); calls.ways.len()];
        for (from, ways) in calls.ways.iter().enumerate() {
            ways.iter().for_each(|way| callers.get_mut(way.to).into_iter().for_each(|callers| callers.push(from)));
        }
        // Each node is looked at again only when it leads further than was known: three times at most.
        let mut open: Vec<usize> = (0..leaves.len()).collect();
        while let Some(node) = open.pop() {
            let Some(mine) = leaves.get(node).copied() else { continue };
            for caller in callers.get(node).into_iter().flatten() {
                let Some(theirs) = leaves.get_mut(*caller).filter(|theirs| theirs.or(mine) != **theirs) else {
                    continue;
                };
                *theirs = theirs.or(mine);
                open.push(*caller);
            }
        }
        Self { calls, leaves }
    }

    pub fn action(&self, number: usize) -> SkillExits {
        self.leaves.get(number).copied().unwrap_or_default()
    }

    /// Where what is inserted at such a place leads. What is not known may lead anywhere.
    pub fn inserted(&self, id: &Spanned<String>, from: CalleeBody) -> SkillExits {
        let known = self.calls.known(id, from).and_then(|node| self.leaves.get(node).copied());
        known.unwrap_or(SkillExits { topic: true, phase: true, session: true })
    }
}
