//! The callables of a document: the skills and actions that `insert` and `use_skill` may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::collected::{CalleeBody, CollectedAction};
use crate::library::{SkillLibrary, SkillOutline, SkillPathTarget};
use crate::skill_topics::is_skill_topic;
use bcc_lang::script::script::Script;
use bcc_lang::script::skill::{SkillItem, WrittenSkill};
use bcc_lang::source::span::Spanned;
use bcc_lang::source::text::SourceFile;

#[derive(Debug)]
pub(crate) struct Callables<'a> {
    own: BTreeMap<String, SkillOutline>,
    actions: BTreeMap<String, usize>,
    library: &'a SkillLibrary,
    complete: bool,
}

impl<'a> Callables<'a> {
    pub(crate) fn of(
        file: &Arc<SourceFile>,
        script: Option<&Script>,
        skills: &[&WrittenSkill],
        library: &'a SkillLibrary,
        actions: &[CollectedAction],
    ) -> Self {
        let own = skills.iter().map(|skill| SkillOutline::of(file, skill));
        let actions = actions.iter().enumerate();
        let found =
            |path: &Spanned<String>| matches!(library.path_target(&path.value), Some(SkillPathTarget::Skill(_)));
        Self {
            own: own.map(|skill| (skill.id.clone(), skill)).filter(|(id, _)| !id.is_empty()).collect(),
            actions: actions
                .filter(|(_, action)| !is_skill_topic(action))
                .map(|(number, action)| (action.id.value.clone(), number))
                .collect(),
            library,
            complete: library.complete && script.is_none_or(|script| paths(script).all(found)),
        }
    }

    /// Whether all skills are known, so that a missing skill does not exist.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// The skill with this id; the document takes precedence over the project.
    pub(crate) fn skill(&self, id: &str) -> Option<&SkillOutline> {
        self.own.get(id).or_else(|| self.library.skill(id))
    }

    pub(crate) fn action(&self, id: &str) -> Option<usize> {
        self.actions.get(id).copied()
    }

    pub(crate) fn skills(&self) -> impl Iterator<Item = &str> {
        let project_skills = self.library.ids().filter(|id| !self.own.contains_key(*id));
        self.own.keys().map(String::as_str).chain(project_skills)
    }
}

/// The paths in `skills` of a script.
pub fn paths(script: &Script) -> impl Iterator<Item = &Spanned<String>> {
    script.skills.iter().filter_map(|item| match item {
        SkillItem::Path(path) => Some(path),
        SkillItem::Inline(_) => None,
    })
}

/// Whether an action can be inserted in the part `from`: a skill can insert only its own actions, and only it can insert them.
pub(crate) fn can_insert(from: CalleeBody, action: &CollectedAction) -> bool {
    let skill = |body| matches!(body, CalleeBody::Skill(_));
    from == action.body || !skill(from) && !skill(action.body)
}
