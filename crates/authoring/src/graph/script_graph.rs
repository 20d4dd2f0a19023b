//! The complete graph of a script: its parts in order, and the edges between them.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GraphNodeKind {
    Start,
    Phase,
    Topic,
    Action,
    Choice,
    /// An action that waits for a decision.
    Approval,
    /// A branch of an action that runs all of its branches at the same time.
    Branch,
    Skill,
    /// The routes that a topic, a phase or the session defines for all of its actions.
    Table,
    Trigger,
    /// The name of another box, instead of a long arrow to it.
    Reference,
    End,
    Fail,
}

/// What a session did with an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeState {
    NotReached,
    /// It was skipped, or the session continued elsewhere before it was done.
    Left,
    Done,
    /// It is running or waiting.
    Active,
    Failed,
}

impl NodeState {
    pub const ALL: [Self; 5] = [Self::Done, Self::Failed, Self::Active, Self::Left, Self::NotReached];

    /// The name in the legend.
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotReached => "not reached",
            Self::Left => "skipped or left",
            Self::Done => "done",
            Self::Active => "running or waiting",
            Self::Failed => "failed",
        }
    }

    /// The class in Mermaid.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Self::NotReached => "not_reached",
            Self::Left => "left",
            Self::Done => "done",
            Self::Active => "active",
            Self::Failed => "failed",
        }
    }

    /// The colors of the box and of its border.
    pub(crate) const fn colors(self) -> (&'static str, &'static str) {
        match self {
            Self::NotReached => ("#ffffff", "#c2c9d3"),
            Self::Left => ("#eceff3", "#8793a3"),
            Self::Done => ("#d9f0e0", "#4f8a5f"),
            Self::Active => ("#fff1c2", "#b58a1b"),
            Self::Failed => ("#fbd9d5", "#b4534a"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ScriptPart {
    pub kind: GraphNodeKind,
    /// The number of the part that contains it.
    pub parent: Option<usize>,
    /// Its id as written; empty if it has none.
    pub id: String,
    pub name: Option<String>,
    pub action_type: &'static str,
    /// Additional information, one entry per line.
    pub notes: Vec<String>,
    /// What a session did with it, if one was given.
    pub state: Option<NodeState>,
}

impl ScriptPart {
    pub fn new(kind: GraphNodeKind, parent: Option<usize>, id: &str) -> Self {
        Self { kind, parent, id: id.to_owned(), name: None, action_type: "", notes: vec![], state: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EdgeKind {
    Order,
    Case,
    Route,
    /// A call or an insertion, which returns.
    Call,
}

#[derive(Clone, Debug)]
pub struct Edge {
    pub from: usize,
    /// The target; a phase, a topic or a skill stands for its first action.
    pub to: usize,
    pub kind: EdgeKind,
    /// The condition and the effects; empty for the order of the script.
    pub label: String,
    /// A short label, for merged edges.
    pub short_label: String,
}

#[derive(Clone, Debug, Default)]
pub struct ScriptGraph {
    /// The parts, in the order of the script; children come after their parents.
    pub parts: Vec<ScriptPart>,
    pub links: Vec<Edge>,
    /// Whether its actions have the states of a session.
    pub marked: bool,
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

    pub fn children(&self, parent: Option<usize>) -> impl Iterator<Item = usize> {
        let all = self.parts.iter().enumerate();
        all.filter(move |(_, part)| part.parent == parent).map(|(number, _)| number)
    }

    /// The first action of a phase, a topic or a skill; any other part is its own entry.
    pub fn entry(&self, part: usize) -> usize {
        let holds = |kind| {
            matches!(kind, GraphNodeKind::Phase | GraphNodeKind::Topic | GraphNodeKind::Skill | GraphNodeKind::Branch)
        };
        let mut at = part;
        while self.parts.get(at).is_some_and(|part| holds(part.kind)) {
            let inside =
                self.children(Some(at)).find(|inner| self.parts.get(*inner).is_some_and(ScriptPart::is_walked));
            let Some(inside) = inside else { break };
            at = inside;
        }
        at
    }
}

impl ScriptPart {
    pub fn is_action(&self) -> bool {
        matches!(self.kind, GraphNodeKind::Action | GraphNodeKind::Choice | GraphNodeKind::Approval)
    }

    fn is_walked(&self) -> bool {
        self.is_action() || self.kind == GraphNodeKind::Topic
    }
}
