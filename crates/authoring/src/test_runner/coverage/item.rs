//! What is counted: the parts of a script that an author wrote, each with its place in a file.

use bcc_runtime::program::routes::RouteLevel;

/// A part of a file by what it is and its id, which is unique in the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKey {
    Phase(String),
    Topic(String),
    /// The body of the `for_each` of this topic.
    ForEach(String),
    Action(String),
    /// A branch of this action, by the name that the action gives it.
    Branch(String, String),
    /// A route: in the table of this level, of this id, for this reason.
    Route(RouteLevel, String, &'static str),
    Trigger(String),
    Skill(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKind {
    Phase,
    Topic,
    ForEach,
    Action,
    /// A case or the `else` of an action that chooses.
    Branch,
    Route,
    Trigger,
    Skill,
}

impl ItemKind {
    /// Everything that is counted, in the order of reports.
    pub const ALL: [Self; 8] =
        [Self::Phase, Self::Topic, Self::ForEach, Self::Action, Self::Branch, Self::Route, Self::Trigger, Self::Skill];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Phase => "phase",
            Self::Topic => "topic",
            Self::ForEach => "for_each",
            Self::Action => "action",
            Self::Branch => "branch",
            Self::Route => "route",
            Self::Trigger => "trigger",
            Self::Skill => "skill",
        }
    }

    /// The word for several of them: a key of the JSON report.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Phase => "phases",
            Self::Topic => "topics",
            Self::ForEach => "for_each",
            Self::Action => "actions",
            Self::Branch => "branches",
            Self::Route => "routes",
            Self::Trigger => "triggers",
            Self::Skill => "skills",
        }
    }
}

impl ItemKey {
    pub const fn what(&self) -> ItemKind {
        match self {
            Self::Phase(_) => ItemKind::Phase,
            Self::Topic(_) => ItemKind::Topic,
            Self::ForEach(_) => ItemKind::ForEach,
            Self::Action(_) => ItemKind::Action,
            Self::Branch(..) => ItemKind::Branch,
            Self::Route(..) => ItemKind::Route,
            Self::Trigger(_) => ItemKind::Trigger,
            Self::Skill(_) => ItemKind::Skill,
        }
    }

    /// What authors call it: its id; of a branch its name, of a route its reason.
    pub fn id(&self) -> &str {
        match self {
            Self::Phase(id)
            | Self::Topic(id)
            | Self::ForEach(id)
            | Self::Action(id)
            | Self::Trigger(id)
            | Self::Skill(id) => id,
            Self::Branch(_, name) => name,
            Self::Route(_, _, reason) => reason,
        }
    }

    /// What it is and what it is called, in words that need no other place: `route off_topic of topic family`.
    pub fn words(&self) -> String {
        match self {
            Self::ForEach(topic) => format!("for_each of topic {topic}"),
            Self::Branch(action, name) => format!("{name} of {action}"),
            Self::Route(level, id, reason) => format!("route {reason} of {} {id}", level.name()),
            _ => format!("{} {}", self.what().name(), self.id()),
        }
    }
}

/// One part of a file, with what stands inside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageItem {
    pub key: ItemKey,
    /// More for people: the name of a phase or topic, the kind of an action, the condition of a branch, where a route leads.
    pub about: Option<String>,
    /// Its first line, from 1.
    pub line: usize,
    /// Its last line.
    pub last_line: usize,
    /// Of an action: the exit reasons with which it can end, besides `error`.
    pub exits: &'static [&'static str],
    /// What stands inside of it, in the order of the file.
    pub children: Vec<CoverageItem>,
}

impl CoverageItem {
    /// This part and all that stand inside of it, in the order of the file.
    pub fn all(&self) -> Vec<&Self> {
        let inside = self.children.iter().flat_map(Self::all);
        std::iter::once(self).chain(inside).collect()
    }
}
