//! The names of a document, each with the places that define and use it.

use std::collections::BTreeMap;

use crate::collected::{ActionPosition, AssignmentKind, CalleeBody, Collected, Definition, Use};
use bcc_lang::value::scopes::Scope;

#[derive(Debug, Default)]
pub struct NameTable {
    by_name: BTreeMap<String, NameOccurrences>,
}

/// The places of one name, as numbers in [`Collected::definitions`] and [`Collected::uses`], in the order of the walk.
#[derive(Debug, Default)]
pub struct NameOccurrences {
    pub definitions: Vec<usize>,
    /// The definitions that declare it, as an item of `declare` or an input.
    pub declared: Vec<usize>,
    pub uses: Vec<usize>,
}

impl NameTable {
    pub fn of(collected: &Collected) -> Self {
        let mut by_name: BTreeMap<String, NameOccurrences> = BTreeMap::new();
        for (number, definition) in collected.definitions.iter().enumerate() {
            let places = by_name.entry(definition.name.clone()).or_default();
            places.definitions.push(number);
            if !definition.writes() {
                places.declared.push(number);
            }
        }
        for (number, used) in collected.uses.iter().enumerate() {
            by_name.entry(used.name.clone()).or_default().uses.push(number);
        }
        Self { by_name }
    }

    /// All names, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NameOccurrences)> {
        self.by_name.iter().map(|(name, places)| (name.as_str(), places))
    }

    pub fn places(&self, name: &str) -> Option<&NameOccurrences> {
        self.by_name.get(name)
    }
}

impl NameOccurrences {
    pub fn defined<'s>(&'s self, collected: &'s Collected) -> impl Iterator<Item = &'s Definition> {
        self.definitions.iter().filter_map(|number| collected.definitions.get(*number))
    }

    /// The first declaration of each scope of each part.
    pub fn declarations<'s>(&'s self, collected: &'s Collected) -> DeclarationTable<'s> {
        let mut found = DeclarationTable::default();
        for definition in self.declared.iter().filter_map(|number| collected.definitions.get(*number)) {
            found.first.entry((definition.holder(), definition.to)).or_insert(definition);
        }
        found
    }

    pub fn used<'s>(&'s self, collected: &'s Collected) -> impl Iterator<Item = &'s Use> {
        self.uses.iter().filter_map(|number| collected.uses.get(*number))
    }
}

/// A cache for lookups of the declarations of many names: those of each name are collected once.
#[derive(Debug)]
pub(crate) struct NearestDeclarations<'s> {
    names: &'s NameTable,
    collected: &'s Collected,
    of_name: BTreeMap<&'s str, DeclarationTable<'s>>,
}

impl<'s> NearestDeclarations<'s> {
    pub(crate) fn of(names: &'s NameTable, collected: &'s Collected) -> Self {
        Self { names, collected, of_name: BTreeMap::new() }
    }

    /// The declaration that applies to a name in a part of the document.
    pub(crate) fn nearest(&mut self, name: &str, body: CalleeBody) -> Option<&'s Definition> {
        let (name, places) = self.names.by_name.get_key_value(name)?;
        let declarations = self.of_name.entry(name).or_insert_with(|| places.declarations(self.collected));
        declarations.visible_from(body).next()
    }
}

#[derive(Debug, Default)]
pub struct DeclarationTable<'s> {
    first: BTreeMap<(CalleeBody, Scope), &'s Definition>,
}

impl<'s> DeclarationTable<'s> {
    /// The declarations that are visible in a part of the document, nearest first.
    pub(crate) fn visible_from(&self, body: CalleeBody) -> impl Iterator<Item = &'s Definition> {
        let places = match body {
            CalleeBody::Skill(_) => [Some((body, Scope::Topic)), None, None, None],
            _ => [
                matches!(body, CalleeBody::Topic(..)).then_some((body, Scope::Topic)),
                body.phase().map(|phase| (CalleeBody::Phase(phase), Scope::Phase)),
                Some((CalleeBody::Session, Scope::Session)),
                Some((CalleeBody::Session, Scope::Global)),
            ],
        };
        places.into_iter().flatten().filter_map(|place| self.first.get(&place).copied())
    }
}

impl CalleeBody {
    /// Whether both belong to the session, or to the same skill.
    pub(crate) fn shares_names_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Skill(one), Self::Skill(two)) => one == two,
            (Self::Skill(_), _) | (_, Self::Skill(_)) => false,
            _ => true,
        }
    }

    /// The number of the phase that contains it, if any.
    pub fn phase(self) -> Option<usize> {
        match self {
            Self::Phase(phase) | Self::Topic(phase, _) => Some(phase),
            Self::Session | Self::Skill(_) => None,
        }
    }
}

impl Definition {
    /// The part of the document in which the name lives.
    pub fn holder(&self) -> CalleeBody {
        match (self.to, self.at.body) {
            (_, skill @ CalleeBody::Skill(_)) => skill,
            (Scope::Topic, body) => body,
            (Scope::Phase, body) => body.phase().map_or(CalleeBody::Session, CalleeBody::Phase),
            (Scope::Session | Scope::Global, _) => CalleeBody::Session,
        }
    }

    /// Whether the defined name is visible in this part of the document.
    pub(crate) fn visible_from(&self, body: CalleeBody) -> bool {
        match self.holder() {
            CalleeBody::Session => CalleeBody::Session.shares_names_with(body),
            CalleeBody::Phase(phase) => body.phase() == Some(phase),
            holder => holder == body,
        }
    }

    /// Whether it writes a value, rather than declares the name.
    pub fn writes(&self) -> bool {
        matches!(self.how, AssignmentKind::Written | AssignmentKind::Element)
    }

    /// The earliest tick at which it may happen: a table of routes of a part applies to each of its actions.
    pub(crate) fn earliest(&self, collected: &Collected) -> usize {
        if self.at.action.is_none() && self.how == AssignmentKind::Written {
            start_tick(collected, self.at)
        } else {
            self.order
        }
    }
}

impl Use {
    /// The latest tick at which it may happen: a goal is read again in every turn of its part.
    pub fn latest(&self, collected: &Collected) -> usize {
        let is_repeated = self.at.action.is_none() && self.by == crate::collected::UseKind::Text;
        if is_repeated { end_tick(collected, self.at) } else { self.order }
    }
}

/// The tick at which the walk entered a part or an action.
pub(crate) fn start_tick(collected: &Collected, at: ActionPosition) -> usize {
    match at.action.and_then(|number| collected.actions.get(number)) {
        Some(action) => action.order.start,
        None => collected.parts.get(&at.body).map_or(0, |part| part.start),
    }
}

/// The tick at which the walk left a part or an action.
pub(crate) fn end_tick(collected: &Collected, at: ActionPosition) -> usize {
    match at.action.and_then(|number| collected.actions.get(number)) {
        Some(action) => action.order.end.min(collected.clock),
        None => collected.parts.get(&at.body).map_or(collected.clock, |part| part.end.min(collected.clock)),
    }
}
