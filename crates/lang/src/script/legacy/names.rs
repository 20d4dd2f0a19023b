//! Maps the former names of the parts of a session to their ids, so that routes can be rewritten. Names need not be unique; a
//! route that could refer to two parts is ambiguous.

use std::collections::BTreeMap;

use crate::source::span::Span;

/// The maximum number of positions shown for an ambiguous route.
const MAX_SHOWN: usize = 8;

/// The kind of a part, as far as routes are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// A phase or a topic, which `goto` can name.
    Place,
    /// An action, which `insert` can name.
    Action,
}

/// A phase, a topic or an action.
#[derive(Clone, Debug)]
struct NamedPart {
    kind: PartKind,
    id: String,
    span: Span,
}

/// The parts, by all names that they had.
#[derive(Debug, Default)]
pub(crate) struct PartNames {
    parts: Vec<NamedPart>,
    /// Names and written ids, each with the indexes of its parts.
    by_name: BTreeMap<String, Vec<usize>>,
    /// The current ids, each with the indexes of its parts.
    by_id: BTreeMap<String, Vec<usize>>,
}

/// What a route refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteMeaning {
    /// What is written already, or something outside this script.
    AsWritten,
    Id(String),
    /// One of these parts; which one is unclear.
    Several(Vec<Span>),
    /// No part had this name, but the new id of this one happens to be equal.
    Coincidence(Span),
    /// This action, or a skill of the same name.
    OrSkill(Span),
}

impl PartNames {
    /// Adds a part at `span` that now has the id `id`, with all names that the author used for it.
    pub(crate) fn note<'n>(
        &mut self,
        kind: PartKind,
        id: &str,
        span: Span,
        former_names: impl IntoIterator<Item = &'n str>,
    ) {
        let part = self.parts.len();
        self.parts.push(NamedPart { kind, id: id.to_owned(), span });
        for name in former_names {
            let parts = self.by_name.entry(name.trim().to_owned()).or_default();
            if parts.last() != Some(&part) {
                parts.push(part);
            }
        }
        self.by_id.entry(id.to_owned()).or_default().push(part);
    }

    /// What `goto: name` refers to. Now only phases and topics can be targets, but the legacy format had only names, so a name
    /// that any two parts share is ambiguous.
    pub(crate) fn goto(&self, name: &str) -> RouteMeaning {
        let matches = self.find(name, None);
        match matches.as_slice() {
            [] => self.coincidence(name, PartKind::Place),
            [one] if one.id == name => RouteMeaning::AsWritten,
            [one] => RouteMeaning::Id(one.id.clone()),
            several => RouteMeaning::Several(several.iter().take(MAX_SHOWN).map(|part| part.span).collect()),
        }
    }

    /// What `insert: name` refers to: an action, or else a skill, which may be in another file.
    pub(crate) fn insert(&self, name: &str, may_be_skill: bool) -> RouteMeaning {
        let matches = self.find(name, Some(PartKind::Action));
        match matches.as_slice() {
            [] => self.coincidence(name, PartKind::Action),
            [one] if one.id == name => RouteMeaning::AsWritten,
            [one] if may_be_skill => RouteMeaning::OrSkill(one.span),
            [one] => RouteMeaning::Id(one.id.clone()),
            several => RouteMeaning::Several(several.iter().take(MAX_SHOWN).map(|part| part.span).collect()),
        }
    }

    fn find(&self, name: &str, kind: Option<PartKind>) -> Vec<&NamedPart> {
        let parts = self.by_name.get(name.trim()).into_iter().flatten().filter_map(|part| self.parts.get(*part));
        parts.filter(|part| kind.is_none_or(|kind| part.kind == kind)).collect()
    }

    fn coincidence(&self, name: &str, kind: PartKind) -> RouteMeaning {
        let parts = self.by_id.get(name).into_iter().flatten().filter_map(|part| self.parts.get(*part));
        let mut parts = parts.filter(|part| part.kind == kind);
        parts.next().map_or(RouteMeaning::AsWritten, |part| RouteMeaning::Coincidence(part.span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(byte: usize) -> Span {
        Span::point(byte)
    }

    #[test]
    fn a_name_resolves_to_the_only_part_that_had_it() {
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
            ("家庭_背景", RouteMeaning::Coincidence(at(1))),
        ];
        for (name, expected) in table {
            assert_eq!(names.goto(name), expected, "{name}");
        }
        assert_eq!(names.insert("问 称呼", false), RouteMeaning::Id("问_称呼".to_owned()));
        assert_eq!(names.insert("问_称呼", true), RouteMeaning::Coincidence(at(3)));
        assert_eq!(
            names.insert("end", true),
            RouteMeaning::AsWritten,
            "only an action can be inserted, so this is a skill"
        );
    }

    #[test]
    fn a_name_of_several_parts_is_ambiguous() {
        let mut names = PartNames::default();
        names.note(PartKind::Place, "收尾", at(1), ["收尾"]);
        names.note(PartKind::Place, "收尾_2", at(2), ["收尾"]);
        names.note(PartKind::Place, "x", at(3), ["呼吸", "x"]);
        names.note(PartKind::Action, "呼吸", at(4), ["呼吸"]);
        names.note(PartKind::Action, "x_2", at(5), ["x"]);
        assert_eq!(names.goto("收尾"), RouteMeaning::Several(vec![at(1), at(2)]));
        assert_eq!(names.goto("呼吸"), RouteMeaning::Several(vec![at(3), at(4)]));
        assert_eq!(names.goto("收尾_2"), RouteMeaning::Coincidence(at(2)));
        assert_eq!(names.insert("x", true), RouteMeaning::OrSkill(at(5)));
    }
}
