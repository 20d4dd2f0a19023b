//! What the parts of a session were called, and what a route that names one of them leads to. Names need not be unique; where a
//! route could mean two parts, nobody but its author knows which.

use std::collections::BTreeMap;

use crate::source::span::Span;

/// So many places are shown of those that a route may mean.
const MOST_SHOWN: usize = 8;

/// What a part is, as far as routes care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A phase or a topic: `goto` leads to it.
    Place,
    /// An action: `insert` puts it in between.
    Action,
}

/// A phase, a topic or an action.
#[derive(Clone, Debug)]
struct Known {
    sort: PartKind,
    id: String,
    span: Span,
}

/// The parts by whatever they were called.
#[derive(Debug, Default)]
pub struct PartNames {
    parts: Vec<Known>,
    /// Names and written ids, each with its parts.
    called: BTreeMap<String, Vec<usize>>,
    /// The ids that the parts have now.
    ids: BTreeMap<String, Vec<usize>>,
}

/// What a route leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteMeaning {
    /// What it says already, or something that is not in this script.
    AsWritten,
    Id(String),
    /// Any of these parts.
    Several(Vec<Span>),
    /// No part was called so, but the id of this one is the same word by chance.
    Chance(Span),
    /// This action, or a skill of that name.
    OrSkill(Span),
}

impl PartNames {
    /// Notes a part that has the id `id` now and stands at `span`, with all that its author called it.
    pub fn note<'n>(&mut self, sort: PartKind, id: &str, span: Span, called: impl IntoIterator<Item = &'n str>) {
        let part = self.parts.len();
        self.parts.push(Known { sort, id: id.to_owned(), span });
        for name in called {
            let parts = self.called.entry(name.trim().to_owned()).or_default();
            if parts.last() != Some(&part) {
                parts.push(part);
            }
        }
        self.ids.entry(id.to_owned()).or_default().push(part);
    }

    /// What `goto: name` leads to. Today that is a phase or a topic, and never an action; what it was in a form in which all
    /// of them had but names is not known, so that any two parts of that name are too many.
    pub fn goto(&self, name: &str) -> RouteMeaning {
        let called = self.called(name, None);
        match called.as_slice() {
            [] => self.chance(name, PartKind::Place),
            [one] if one.id == name => RouteMeaning::AsWritten,
            [one] => RouteMeaning::Id(one.id.clone()),
            several => RouteMeaning::Several(several.iter().take(MOST_SHOWN).map(|part| part.span).collect()),
        }
    }

    /// What `insert: name` puts in between: an action, or else a skill, which may stand in another file.
    pub fn insert(&self, name: &str, may_be_skill: bool) -> RouteMeaning {
        let called = self.called(name, Some(PartKind::Action));
        match called.as_slice() {
            [] => self.chance(name, PartKind::Action),
            [one] if one.id == name => RouteMeaning::AsWritten,
            [one] if may_be_skill => RouteMeaning::OrSkill(one.span),
            [one] => RouteMeaning::Id(one.id.clone()),
            several => RouteMeaning::Several(several.iter().take(MOST_SHOWN).map(|part| part.span).collect()),
        }
    }

    fn called(&self, name: &str, sort: Option<PartKind>) -> Vec<&Known> {
        let parts = self.called.get(name.trim()).into_iter().flatten().filter_map(|part| self.parts.get(*part));
        parts.filter(|part| sort.is_none_or(|sort| part.sort == sort)).collect()
    }

    fn chance(&self, name: &str, sort: PartKind) -> RouteMeaning {
        let parts = self.ids.get(name).into_iter().flatten().filter_map(|part| self.parts.get(*part));
        let mut parts = parts.filter(|part| part.sort == sort);
        parts.next().map_or(RouteMeaning::AsWritten, |part| RouteMeaning::Chance(part.span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(byte: usize) -> Span {
        Span::point(byte)
    }

    #[test]
    fn a_name_leads_to_its_only_part_under_whatever_it_was_called() {
        let mut names = PartNames::default();
        names.note(PartKind::Place, "家庭_背景", at(1), ["家庭 背景"]);
        names.note(PartKind::Place, "end", at(2), ["收尾", "最后 的", "end"]);
        names.note(PartKind::Action, "问_称呼", at(3), ["问 称呼"]);
        let table = [
            ("家庭 背景", RouteMeaning::Id("家庭_背景".to_owned())),
            (" 收尾 ", RouteMeaning::Id("end".to_owned())),
            ("最后 的", RouteMeaning::Id("end".to_owned())),
            ("end", RouteMeaning::AsWritten),
            ("nowhere", RouteMeaning::AsWritten),
            ("家庭_背景", RouteMeaning::Chance(at(1))),
        ];
        for (name, meant) in table {
            assert_eq!(names.goto(name), meant, "{name}");
        }
        assert_eq!(names.insert("问 称呼", false), RouteMeaning::Id("问_称呼".to_owned()));
        assert_eq!(names.insert("问_称呼", true), RouteMeaning::Chance(at(3)));
        assert_eq!(
            names.insert("end", true),
            RouteMeaning::AsWritten,
            "only an action can be inserted, so this is a skill"
        );
    }

    #[test]
    fn a_name_of_several_parts_leads_nowhere() {
        let mut names = PartNames::default();
        names.note(PartKind::Place, "收尾", at(1), ["收尾"]);
        names.note(PartKind::Place, "收尾_2", at(2), ["收尾"]);
        names.note(PartKind::Place, "x", at(3), ["呼吸", "x"]);
        names.note(PartKind::Action, "呼吸", at(4), ["呼吸"]);
        names.note(PartKind::Action, "x_2", at(5), ["x"]);
        assert_eq!(names.goto("收尾"), RouteMeaning::Several(vec![at(1), at(2)]));
        assert_eq!(names.goto("呼吸"), RouteMeaning::Several(vec![at(3), at(4)]));
        assert_eq!(names.goto("收尾_2"), RouteMeaning::Chance(at(2)));
        assert_eq!(names.insert("x", true), RouteMeaning::OrSkill(at(5)));
    }
}
