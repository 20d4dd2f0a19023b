//! The items that are counted: the parts of a script that an author wrote, with their positions.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_runtime::program::route_table::RouteLevel;

/// A part of a file by its kind and its id, unique in the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKey {
    Phase(String),
    Topic(String),
    /// The body of the `for_each` of this topic.
    ForEach(String),
    Action(String),
    /// A branch of this action, by the name that the action gives it.
    Branch(String, String),
    /// A route: its level, the id of its owner, and its reason; for a table `on_change`, `NAME changed`.
    Route(RouteLevel, String, String),
    Trigger(String),
    Skill(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKind {
    Phase,
    Topic,
    ForEach,
    Action,
    /// A case or the `else` of a conditional action.
    Branch,
    Route,
    Trigger,
    Skill,
}

/// The reason of a route for the changes of a variable.
pub(crate) fn change_reason(name: &str) -> String {
    format!("{name} changed")
}

impl ItemKind {
    /// All kinds, in the order of reports.
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

    /// The plural, which is a key of the JSON report.
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

    /// The id; for a branch its name, for a route its reason.
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

    /// A self-contained description: `route off_topic of topic family`.
    pub fn words(&self) -> Message {
        match self {
            Self::ForEach(topic) => msg!("for_each of topic {topic}"),
            Self::Branch(action, name) => msg!("{name} of {action}"),
            Self::Route(level, id, reason) => {
                msg!("route {reason} of {} {id}", Message::word(level.name()))
            }
            _ => msg!("{what} {id}", what = Message::word(self.what().name()), id = self.id()),
        }
    }
}

/// A part of a file, with its children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageItem {
    pub key: ItemKey,
    /// The name of a phase or topic, the type of an action, the condition of a branch, the target of a route.
    pub description: Option<String>,
    /// Its first line, from 1.
    pub line: usize,
    /// Its last line.
    pub last_line: usize,
    /// For an action: its possible exit reasons, besides `error`.
    pub exits: &'static [&'static str],
    /// The parts inside it, in the order of the file.
    pub children: Vec<CoverageItem>,
}

impl CoverageItem {
    /// This part and all of its descendants, in the order of the file.
    pub fn all(&self) -> Vec<&Self> {
        let inside = self.children.iter().flat_map(Self::all);
        std::iter::once(self).chain(inside).collect()
    }
}
