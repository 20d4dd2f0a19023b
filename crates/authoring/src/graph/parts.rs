//! What there is to draw of a script, whole and in its order: its parts, and what leads from one to another.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Start,
    Phase,
    Topic,
    Action,
    Choice,
    Skill,
    /// The routes that a topic, a phase or the session has for all of its actions.
    Table,
    Trigger,
    /// A name of another box, where an arrow to it would be long.
    Reference,
    End,
    Fail,
}

#[derive(Clone, Debug)]
pub struct Part {
    pub kind: Kind,
    /// The part that it stands in, by number.
    pub holder: Option<usize>,
    /// Its id, as written; empty for what has none.
    pub id: String,
    pub name: Option<String>,
    pub action_type: &'static str,
    /// What else is told of it, a line each.
    pub notes: Vec<String>,
}

impl Part {
    pub fn new(kind: Kind, holder: Option<usize>, id: &str) -> Self {
        Self { kind, holder, id: id.to_owned(), name: None, action_type: "", notes: vec![] }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lead {
    Order,
    Case,
    Route,
    /// By a call or an insertion, from which it comes back.
    Call,
}

#[derive(Clone, Debug)]
pub struct Link {
    pub from: usize,
    /// Where it leads: for a phase, a topic or a skill, to its first action.
    pub to: usize,
    pub lead: Lead,
    /// When, and what is done on the way; empty for the order of the script.
    pub why: String,
    /// The same in a word, for where many are drawn as one.
    pub brief: String,
}

#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// Its parts: what stands in another comes after it, and all in the order of the script.
    pub parts: Vec<Part>,
    pub links: Vec<Link>,
}

impl Whole {
    pub fn actions(&self) -> usize {
        self.count(|part| part.is_action())
    }

    pub fn topics(&self) -> usize {
        self.count(|part| part.kind == Kind::Topic)
    }

    fn count(&self, counts: impl Fn(&Part) -> bool) -> usize {
        self.parts.iter().filter(|part| counts(part)).count()
    }

    pub fn inside(&self, holder: Option<usize>) -> impl Iterator<Item = usize> {
        let all = self.parts.iter().enumerate();
        all.filter(move |(_, part)| part.holder == holder).map(|(number, _)| number)
    }

    /// The first action of a phase, a topic or a skill; anything else is its own.
    pub fn entry(&self, part: usize) -> usize {
        let holds = |kind| matches!(kind, Kind::Phase | Kind::Topic | Kind::Skill);
        let mut at = part;
        while self.parts.get(at).is_some_and(|part| holds(part.kind)) {
            let inside = self.inside(Some(at)).find(|inner| self.parts.get(*inner).is_some_and(Part::is_walked));
            let Some(inside) = inside else { break };
            at = inside;
        }
        at
    }
}

impl Part {
    pub fn is_action(&self) -> bool {
        matches!(self.kind, Kind::Action | Kind::Choice)
    }

    fn is_walked(&self) -> bool {
        self.is_action() || self.kind == Kind::Topic
    }
}
