//! Reads `on_exit` mappings and the routes in them (docs/routes.md).

use crate::message::message::Message;
use crate::message::msg;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::script::fields::{Fields, TextField, shortened};
use crate::source::diagnostic::{Diagnostic, Edit, Fix};
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, YamlEntry, YamlNode};

/// The routes that are a single word.
const WORDS: [&str; 7] = ["next", "resume", "retry", "skip_topic", "skip_phase", "end", "fail"];

#[derive(Clone, Debug)]
pub struct OnExit {
    pub routes: Vec<WrittenRoute>,
}

/// One route: its exit reason, what it sets, what it inserts, and where it continues.
#[derive(Clone, Debug)]
pub struct WrittenRoute {
    /// The exit reason, as written. Whether it exists is not checked here.
    pub reason: Spanned<String>,
    /// `set`: values that are set first.
    pub set: Option<YamlEntry>,
    /// `insert`: a skill, or the id of an action, that runs before the route continues.
    pub insert: Option<Spanned<String>>,
    /// Where the route continues.
    pub then: Option<Spanned<RouteTarget>>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteTarget {
    Next,
    /// The action continues with its next round.
    Resume,
    /// The action starts again.
    Retry,
    /// Continues after the topic.
    SkipTopic,
    /// Continues after the phase.
    SkipPhase,
    /// Continues at the topic or phase with this id, or at the action of a list around the route.
    Goto(String),
    End,
    Fail,
}

impl WrittenTrigger {
    /// The topic or phase that it jumps to.
    pub fn goto(&self) -> Option<Spanned<&str>> {
        let then = self.then.as_ref()?;
        match &then.value {
            RouteTarget::Goto(id) => Some(Spanned { value: id, span: then.span }),
            _ => None,
        }
    }
}

impl fmt::Display for RouteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Next => "next",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::SkipTopic => "skip_topic",
            Self::SkipPhase => "skip_phase",
            Self::Goto(id) => return write!(f, "goto: {id}"),
            Self::End => "end",
            Self::Fail => "fail",
        })
    }
}

impl RouteTarget {
    pub fn from_word(text: &str) -> Option<Self> {
        Some(match text {
            "next" => Self::Next,
            "resume" => Self::Resume,
            "retry" => Self::Retry,
            "skip_topic" => Self::SkipTopic,
            "skip_phase" => Self::SkipPhase,
            "end" => Self::End,
            "fail" => Self::Fail,
            _ => return None,
        })
    }
}

pub fn on_exit(fields: &Fields<'_>) -> Option<OnExit> {
    let node = fields.take("on_exit")?;
    let NodeKind::Mapping(entries) = &node.kind else {
        let message = msg!("`on_exit` must be a mapping of exit reasons to routes, but this is {}", node.describe());
        let help = "write each reason on a line of its own, as `max_rounds_reached: next`";
        fields.error("wrong-type", message, node.span, help);
        return None;
    };
    if entries.is_empty() {
        let message = msg!("`on_exit` of {} is empty", fields.subject());
        fields.error("empty-list", message, node.span, "add at least one route, or remove it");
    }
    Some(OnExit { routes: entries.iter().filter_map(|entry| route(entry, fields)).collect() })
}

/// `on_change`: routes by the names of variables. The `reason` of each is the name.
#[derive(Clone, Debug)]
pub struct OnChange {
    pub routes: Vec<WrittenRoute>,
}

pub fn on_change(fields: &Fields<'_>) -> Option<OnChange> {
    let node = fields.take("on_change")?;
    let NodeKind::Mapping(entries) = &node.kind else {
        let message = msg!("`on_change` must be a mapping of variables to routes, but this is {}", node.describe());
        let help = "write each variable on a line of its own, as `destination: { goto: look_up }`";
        fields.error("wrong-type", message, node.span, help);
        return None;
    };
    if entries.is_empty() {
        let message = msg!("`on_change` of {} is empty", fields.subject());
        fields.error("empty-list", message, node.span, "add at least one route, or remove it");
    }
    Some(OnChange { routes: entries.iter().filter_map(|entry| route_to(entry, fields)).collect() })
}

fn route(entry: &YamlEntry, fields: &Fields<'_>) -> Option<WrittenRoute> {
    let reason = &entry.key;
    if ["goto", "insert", "then", "set"].contains(&reason.value.as_str()) {
        let message = msg!("`{}` is not an exit reason: write the reason before the route", reason.value);
        let help = msg!("write the reason it applies to, as in `max_rounds_reached: {{ {}: … }}`", reason.value);
        fields.error("unknown-exit-reason", message, reason.span, help);
        return None;
    }
    route_to(entry, fields)
}

/// Reads the route of an entry, whatever its key means.
fn route_to(entry: &YamlEntry, fields: &Fields<'_>) -> Option<WrittenRoute> {
    let reason = entry.key.clone();
    let span = entry.value.span;
    match &entry.value.kind {
        NodeKind::Mapping(_) => {
            let what = msg!("the route of `{}`", shortened(&reason.value));
            let inner = fields.inner(&entry.value, what)?;
            let steps = steps(&inner);
            inner.finish();
            let Steps { set, insert, then } = steps?;
            Some(WrittenRoute { reason, set, insert, then, span })
        }
        _ => {
            let target = read_word(&entry.value, fields)?;
            Some(WrittenRoute { reason, set: None, insert: None, then: Some(target), span })
        }
    }
}

/// The fields of a route that is a mapping.
pub(crate) struct Steps {
    pub(crate) set: Option<YamlEntry>,
    pub(crate) insert: Option<Spanned<String>>,
    pub(crate) then: Option<Spanned<RouteTarget>>,
}

/// Reads `set`, `insert`, `goto` and `then` of one mapping. Contradictions are reported.
pub(crate) fn steps(fields: &Fields<'_>) -> Option<Steps> {
    let set = fields.entry("set").cloned();
    let insert = fields.name("insert");
    let goto = fields.name("goto");
    let then = fields.take("then").and_then(|node| then_target(node, fields));
    let report = |rule: &'static str, message: Message, span: Span, help: &'static str| {
        fields.error(rule, message, span, help);
    };
    if let (Some(goto), true) = (&goto, fields.take("then").is_some()) {
        let message = msg!("{} has both `goto` and `then`", fields.subject());
        report(
            "conflicting-fields",
            message,
            goto.span,
            "keep one of them: each sets where the conversation continues",
        );
        return None;
    }
    let is_empty = set.is_none() && insert.is_none() && goto.is_none() && fields.take("then").is_none();
    if is_empty {
        let message = msg!("{} does not specify what to do", fields.subject());
        let help = "add `then:`, `goto:`, `insert:` or `set:`, or write a single word, as in `next`";
        // Any other keys are reported as unknown, which is enough.
        if fields.is_empty() {
            report("missing-key", message, fields.span(), help);
        }
        return None;
    }
    let goto = goto.map(|id| Spanned { value: RouteTarget::Goto(id.value), span: id.span });
    Some(Steps { set, insert, then: goto.or(then) })
}

fn then_target(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<Spanned<RouteTarget>> {
    if !matches!(node.kind, NodeKind::Mapping(_)) {
        return read_word(node, fields);
    }
    let inner = fields.inner(node, "`then`")?;
    let id = inner.required_text("goto");
    inner.finish();
    id.map(|id| Spanned { value: RouteTarget::Goto(id.text), span: id.node.span })
}

/// Reads the `then` of a trigger.
fn trigger_target(fields: &Fields<'_>) -> Option<Spanned<RouteTarget>> {
    let node = fields.take("then")?;
    if matches!(node.kind, NodeKind::Mapping(_)) {
        return then_target(node, fields);
    }
    let word = fields.text("then")?;
    let target = RouteTarget::from_word(&word.text);
    let target = target.filter(|target| matches!(target, RouteTarget::Resume | RouteTarget::End));
    if target.is_none() {
        let help =
            "write `resume`, `end`, or the topic or phase where the session continues, as in `{ goto: billing }`";
        fields.not_a_choice("then", &word.text, &["resume", "end", "{ goto: … }"], node.span, help);
    }
    target.map(|value| Spanned { value, span: node.span })
}

fn read_word(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<Spanned<RouteTarget>> {
    let text = node.as_scalar().map(|scalar| scalar.text.trim()).unwrap_or_default();
    if let Some(target) = RouteTarget::from_word(text) {
        return Some(Spanned { value: target, span: node.span });
    }
    let listed = Message::names(WORDS);
    let message = match node.as_scalar() {
        Some(_) => msg!("`{}` is not a route", shortened(text)),
        None => msg!("a route must be a word or a mapping, but this is {}", node.describe()),
    };
    let near = near_miss(text, WORDS);
    // Common mistakes: `goto topic_b`, and `goto: topic_b` inside a text.
    let corrected = ["goto", "insert"].into_iter().find_map(|word| {
        let rest = text.strip_prefix(word)?.trim_start_matches([':', ' ']);
        let complete = !rest.is_empty() && rest.len() < text.len() - word.len();
        complete.then(|| format!("{{ {word}: {rest} }}"))
    });
    let help = match (&corrected, near) {
        (Some(text), _) => msg!("write `{text}`"),
        (None, Some(near)) => msg!("did you mean `{near}`?"),
        (None, None) if is_id(text) => {
            msg!(
                "if it is the id of a topic, a phase or an action, write `{{ goto: {text} }}`; other routes are {listed}"
            )
        }
        (None, None) => msg!("valid routes are {listed}, `{{ goto: … }}`, `{{ insert: …, then: … }}`"),
    };
    let mut diagnostic = Diagnostic::error("not-a-choice", message, fields.file(), node.span).with_help(help);
    let words: Vec<&str> = text.split([':', ' ']).filter(|word| !word.is_empty()).collect();
    let sure = corrected.is_some() && matches!(words.as_slice(), ["goto", id] if is_id(id));
    if let Some(text) = corrected.or(near.map(str::to_owned)) {
        let fix = Fix::sure(msg!("write `{text}`"), vec![Edit { span: node.span, text }]);
        diagnostic = diagnostic.with_fixes([fix.only_sure_if(sure)]);
    }
    fields.findings().report(diagnostic);
    None
}

/// Whether the text could be an id.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

/// A trigger.
#[derive(Clone, Debug)]
pub struct WrittenTrigger {
    pub id: Spanned<String>,
    pub when: Option<TextField>,
    /// `insert`: the skill or the action that runs.
    pub insert: Option<Spanned<String>>,
    /// Where the session continues: `resume`, `end` or a `goto`. Without it, the interrupted action is resumed.
    pub then: Option<Spanned<RouteTarget>>,
    pub once: bool,
}

/// Reads `triggers`. `id` reads a required id.
pub fn triggers(fields: &Fields<'_>, id: fn(&Fields<'_>, &'static str) -> Spanned<String>) -> Vec<WrittenTrigger> {
    let items = fields.list("triggers").unwrap_or_default();
    let read = |item: &Arc<YamlNode>| {
        let inner = fields.inner(item, "a trigger")?;
        let id = id(&inner, "trigger_id");
        let when = inner.required_text("when");
        let then = trigger_target(&inner);
        // What jumps to another part of the script needs no skill that speaks first.
        let insert = match &then {
            Some(Spanned { value: RouteTarget::Goto(_), .. }) => inner.text("insert"),
            _ => inner.required_text("insert"),
        };
        let insert = insert.map(|words| Spanned { value: words.text, span: words.node.span });
        let once = inner.boolean("once").unwrap_or(false);
        inner.finish_with(|key| (key == "goto").then(|| msg!("write `then: {{ goto: … }}`")));
        Some(WrittenTrigger { id, when, insert, then, once })
    };
    items.iter().filter_map(read).collect()
}
