//! Every name of a document with the places that define it and those that use it.

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
    /// Those of them that declare it, as an item of `declare` or an input.
    pub declared: Vec<usize>,
    pub uses: Vec<usize>,
}

impl NameTable {
    pub fn of(seen: &Collected) -> Self {
        let mut by_name: BTreeMap<String, NameOccurrences> = BTreeMap::new();
        for (number, definition) in seen.definitions.iter().enumerate() {
            let places = by_name.entry(definition.name.clone()).or_default();
            places.definitions.push(number);
            if !definition.writes() {
                places.declared.push(number);
            }
        }
        for (number, used) in seen.uses.iter().enumerate() {
            by_name.entry(used.name.clone()).or_default().uses.push(number);
        }
        Self { by_name }
    }

    /// Every name, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NameOccurrences)> {
        self.by_name.iter().map(|(name, places)| (name.as_str(), places))
    }

    pub fn places(&self, name: &str) -> Option<&NameOccurrences> {
        self.by_name.get(name)
    }
}

impl NameOccurrences {
    pub fn defined<'s>(&'s self, seen: &'s Collected) -> impl Iterator<Item = &'s Definition> {
        self.definitions.iter().filter_map(|number| seen.definitions.get(*number))
    }

    /// Of each scope of each part, the first declaration.
    pub fn declarations<'s>(&'s self, seen: &'s Collected) -> DeclarationTable<'s> {
        let mut found = DeclarationTable::default();
        for definition in self.declared.iter().filter_map(|number| seen.definitions.get(*number)) {
            found.first.entry((definition.holder(), definition.to)).or_insert(definition);
        }
        found
    }

    pub fn used<'s>(&'s self, seen: &'s Collected) -> impl Iterator<Item = &'s Use> {
        self.uses.iter().filter_map(|number| seen.uses.get(*number))
    }
}

/// For those who ask for the declarations of many names, some of them often: those of each name are collected once.
#[derive(Debug)]
pub struct NearestDeclarations<'s> {
    names: &'s NameTable,
    seen: &'s Collected,
    of_name: BTreeMap<&'s str, DeclarationTable<'s>>,
}

impl<'s> NearestDeclarations<'s> {
    pub fn of(names: &'s NameTable, seen: &'s Collected) -> Self {
        Self { names, seen, of_name: BTreeMap::new() }
    }

    /// The declaration that counts for a name in a part of the document.
    pub fn nearest(&mut self, name: &str, body: CalleeBody) -> Option<&'s Definition> {
        let (name, places) = self.names.by_name.get_key_value(name)?;
        let declarations = self.of_name.entry(name).or_insert_with(|| places.declarations(self.seen));
        declarations.seen_from(body).next()
    }
}

#[derive(Debug, Default)]
pub struct DeclarationTable<'s> {
    first: BTreeMap<(CalleeBody, Scope), &'s Definition>,
}

impl<'s> DeclarationTable<'s> {
    /// Those that can be seen from a part of the document, the nearest first.
    pub fn seen_from(&self, body: CalleeBody) -> impl Iterator<Item = &'s Definition> {
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
    /// Whether both belong to the session, or to one and the same skill.
    pub fn shares_names_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Skill(one), Self::Skill(two)) => one == two,
            (Self::Skill(_), _) | (_, Self::Skill(_)) => false,
            _ => true,
        }
    }

    /// The number of the phase, in a phase.
    pub fn phase(self) -> Option<usize> {
        match self {
            Self::Phase(phase) | Self::Topic(phase, _) => Some(phase),
            Self::Session | Self::Skill(_) => None,
        }
    }
}

impl Definition {
    /// The part of the document that holds the name as long as it lasts.
    pub fn holder(&self) -> CalleeBody {
        match (self.to, self.at.body) {
            (_, skill @ CalleeBody::Skill(_)) => skill,
            (Scope::Topic, body) => body,
            (Scope::Phase, body) => body.phase().map_or(CalleeBody::Session, CalleeBody::Phase),
            (Scope::Session | Scope::Global, _) => CalleeBody::Session,
        }
    }

    /// Whether what it defines can be seen in this part of the document.
    pub fn seen_from(&self, body: CalleeBody) -> bool {
        match self.holder() {
            CalleeBody::Session => CalleeBody::Session.shares_names_with(body),
            CalleeBody::Phase(phase) => body.phase() == Some(phase),
            holder => holder == body,
        }
    }

    /// Whether it writes, rather than declares.
    pub fn writes(&self) -> bool {
        matches!(self.how, AssignmentKind::Written | AssignmentKind::Element)
    }

    /// When it may act for the first time: a table of routes beside the actions acts for each of them.
    pub fn earliest(&self, seen: &Collected) -> usize {
        if self.at.action.is_none() && self.how == AssignmentKind::Written { begin(seen, self.at) } else { self.order }
    }
}

impl Use {
    /// When it may act for the last time: a goal is read anew in every turn of its part.
    pub fn latest(&self, seen: &Collected) -> usize {
        let lasting = self.at.action.is_none() && self.by == crate::collected::UseKind::Text;
        if lasting { end(seen, self.at) } else { self.order }
    }
}

/// When the walk entered a part, or an action.
pub fn begin(seen: &Collected, at: ActionPosition) -> usize {
    match at.action.and_then(|number| seen.actions.get(number)) {
        Some(action) => action.order.start,
        None => seen.parts.get(&at.body).map_or(0, |part| part.start),
    }
}

/// When it left it.
pub fn end(seen: &Collected, at: ActionPosition) -> usize {
    match at.action.and_then(|number| seen.actions.get(number)) {
        Some(action) => action.order.end.min(seen.clock),
        None => seen.parts.get(&at.body).map_or(seen.clock, |part| part.end.min(seen.clock)),
    }
}
