//! Every name of a document with the places that define it and those that use it.

use std::collections::BTreeMap;

use crate::seen::{At, Body, Definition, How, Seen, Use};
use bcc_lang::value::scopes::Scope;

#[derive(Debug, Default)]
pub struct NameTable {
    by_name: BTreeMap<String, Places>,
}

/// The places of one name, as numbers in [`Seen::definitions`] and [`Seen::uses`], in the order of the walk.
#[derive(Debug, Default)]
pub struct Places {
    pub definitions: Vec<usize>,
    /// Those of them that declare it, as an item of `declare` or an input.
    pub declared: Vec<usize>,
    pub uses: Vec<usize>,
}

impl NameTable {
    pub fn of(seen: &Seen) -> Self {
        let mut by_name: BTreeMap<String, Places> = BTreeMap::new();
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
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Places)> {
        self.by_name.iter().map(|(name, places)| (name.as_str(), places))
    }

    pub fn places(&self, name: &str) -> Option<&Places> {
        self.by_name.get(name)
    }
}

impl Places {
    pub fn defined<'s>(&'s self, seen: &'s Seen) -> impl Iterator<Item = &'s Definition> {
        self.definitions.iter().filter_map(|number| seen.definitions.get(*number))
    }

    /// Of each scope of each part, the first declaration.
    pub fn declarations<'s>(&'s self, seen: &'s Seen) -> Declarations<'s> {
        let mut found = Declarations::default();
        for definition in self.declared.iter().filter_map(|number| seen.definitions.get(*number)) {
            found.first.entry((definition.holder(), definition.to)).or_insert(definition);
        }
        found
    }

    pub fn used<'s>(&'s self, seen: &'s Seen) -> impl Iterator<Item = &'s Use> {
        self.uses.iter().filter_map(|number| seen.uses.get(*number))
    }
}

/// For those who ask for the declarations of many names, some of them often: those of each name are collected once.
#[derive(Debug)]
pub struct NearestDeclarations<'s> {
    names: &'s NameTable,
    seen: &'s Seen,
    of_name: BTreeMap<&'s str, Declarations<'s>>,
}

impl<'s> NearestDeclarations<'s> {
    pub fn of(names: &'s NameTable, seen: &'s Seen) -> Self {
        Self { names, seen, of_name: BTreeMap::new() }
    }

    /// The declaration that counts for a name in a part of the document.
    pub fn nearest(&mut self, name: &str, body: Body) -> Option<&'s Definition> {
        let (name, places) = self.names.by_name.get_key_value(name)?;
        let declarations = self.of_name.entry(name).or_insert_with(|| places.declarations(self.seen));
        declarations.seen_from(body).next()
    }
}

#[derive(Debug, Default)]
pub struct Declarations<'s> {
    first: BTreeMap<(Body, Scope), &'s Definition>,
}

impl<'s> Declarations<'s> {
    /// Those that can be seen from a part of the document, the nearest first.
    pub fn seen_from(&self, body: Body) -> impl Iterator<Item = &'s Definition> {
        let places = match body {
            Body::Skill(_) => [Some((body, Scope::Topic)), None, None, None],
            _ => [
                matches!(body, Body::Topic(..)).then_some((body, Scope::Topic)),
                body.phase().map(|phase| (Body::Phase(phase), Scope::Phase)),
                Some((Body::Session, Scope::Session)),
                Some((Body::Session, Scope::Global)),
            ],
        };
        places.into_iter().flatten().filter_map(|place| self.first.get(&place).copied())
    }
}

impl Body {
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
    pub fn holder(&self) -> Body {
        match (self.to, self.at.body) {
            (_, skill @ Body::Skill(_)) => skill,
            (Scope::Topic, body) => body,
            (Scope::Phase, body) => body.phase().map_or(Body::Session, Body::Phase),
            (Scope::Session | Scope::Global, _) => Body::Session,
        }
    }

    /// Whether what it defines can be seen in this part of the document.
    pub fn seen_from(&self, body: Body) -> bool {
        match self.holder() {
            Body::Session => Body::Session.shares_names_with(body),
            Body::Phase(phase) => body.phase() == Some(phase),
            holder => holder == body,
        }
    }

    /// Whether it writes, rather than declares.
    pub fn writes(&self) -> bool {
        matches!(self.how, How::Written | How::Element)
    }

    /// When it may act for the first time: a table of routes beside the actions acts for each of them.
    pub fn earliest(&self, seen: &Seen) -> usize {
        if self.at.action.is_none() && self.how == How::Written { begin(seen, self.at) } else { self.order }
    }
}

impl Use {
    /// When it may act for the last time: a goal is read anew in every turn of its part.
    pub fn latest(&self, seen: &Seen) -> usize {
        let lasting = self.at.action.is_none() && self.by == crate::seen::By::Text;
        if lasting { end(seen, self.at) } else { self.order }
    }
}

/// When the walk entered a part, or an action.
pub fn begin(seen: &Seen, at: At) -> usize {
    match at.action.and_then(|number| seen.actions.get(number)) {
        Some(action) => action.order.start,
        None => seen.parts.get(&at.body).map_or(0, |part| part.start),
    }
}

/// When it left it.
pub fn end(seen: &Seen, at: At) -> usize {
    match at.action.and_then(|number| seen.actions.get(number)) {
        Some(action) => action.order.end.min(seen.clock),
        None => seen.parts.get(&at.body).map_or(seen.clock, |part| part.end.min(seen.clock)),
    }
}
