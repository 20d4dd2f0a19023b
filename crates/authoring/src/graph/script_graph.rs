//! What there is to draw of a script, whole and in its order: its parts, and what leads from one to another.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GraphNodeKind {
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
pub struct ScriptPart {
    pub kind: GraphNodeKind,
    /// The part that it stands in, by number.
    pub holder: Option<usize>,
    /// Its id, as written; empty for what has none.
    pub id: String,
    pub name: Option<String>,
    pub action_type: &'static str,
    /// What else is told of it, a line each.
    pub notes: Vec<String>,
}

impl ScriptPart {
    pub fn new(kind: GraphNodeKind, holder: Option<usize>, id: &str) -> Self {
        Self { kind, holder, id: id.to_owned(), name: None, action_type: "", notes: vec![] }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EdgeKind {
    Order,
    Case,
    Route,
    /// By a call or an insertion, from which it comes back.
    Call,
}

#[derive(Clone, Debug)]
pub struct Edge {
    pub from: usize,
    /// Where it leads: for a phase, a topic or a skill, to its first action.
    pub to: usize,
    pub lead: EdgeKind,
    /// When, and what is done on the way; empty for the order of the script.
    pub why: String,
    /// The same in a word, for where many are drawn as one.
    pub brief: String,
}

#[derive(Clone, Debug, Default)]
pub struct ScriptGraph {
    /// Its parts: what stands in another comes after it, and all in the order of the script.
    pub parts: Vec<ScriptPart>,
    pub links: Vec<Edge>,
}

impl ScriptGraph {
    pub fn actions(&self) -> usize {
        self.count(|part| part.is_action())
    }

    pub fn topics(&self) -> usize {
        self.count(|part| part.kind == GraphNodeKind::Topic)
    }

    fn count(&self, counts: impl Fn(&ScriptPart) -> bool) -> usize {
        self.parts.iter().filter(|part| counts(part)).count()
    }

    pub fn inside(&self, holder: Option<usize>) -> impl Iterator<Item = usize> {
        let all = self.parts.iter().enumerate();
        all.filter(move |(_, part)| part.holder == holder).map(|(number, _)| number)
    }

    /// The first action of a phase, a topic or a skill; anything else is its own.
    pub fn entry(&self, part: usize) -> usize {
        let holds = |kind| matches!(kind, GraphNodeKind::Phase | GraphNodeKind::Topic | GraphNodeKind::Skill);
        let mut at = part;
        while self.parts.get(at).is_some_and(|part| holds(part.kind)) {
            let inside = self.inside(Some(at)).find(|inner| self.parts.get(*inner).is_some_and(ScriptPart::is_walked));
            let Some(inside) = inside else { break };
            at = inside;
        }
        at
    }
}

impl ScriptPart {
    pub fn is_action(&self) -> bool {
        matches!(self.kind, GraphNodeKind::Action | GraphNodeKind::Choice)
    }

    fn is_walked(&self) -> bool {
        self.is_action() || self.kind == GraphNodeKind::Topic
    }
}
