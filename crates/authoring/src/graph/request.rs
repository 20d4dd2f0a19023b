//! What was asked for: which script, how far it is unfolded, and in which form it is written.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::graph::build::gather;
use crate::graph::dot::dot;
use crate::graph::fold::{Depth, fold};
use crate::graph::mermaid::{MOST_ARROWS, MOST_CHARACTERS, mermaid};
use crate::graph::script_graph::{GraphNodeKind, ScriptGraph};
use bcc_engine::engine::RunRequest;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::project::Project;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;

/// The most actions of which every one is drawn when nobody says how far to unfold.
const FEW: usize = 30;

/// The most actions that are drawn as actions then.
const SOME: usize = 90;

/// The most topics that are drawn as topics then.
const MANY: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFormat {
    Mermaid,
    Dot,
}

#[derive(Clone, Debug)]
pub struct GraphRequest {
    pub file: PathBuf,
    pub project: Option<PathBuf>,
    pub format: GraphFormat,
    /// How far to unfold; none leaves it to the size of the script.
    pub depth: Option<Depth>,
    /// `--only`: the ids of phases and topics.
    pub only: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct DrawnGraph {
    pub text: String,
    pub depth: Depth,
    pub notices: Vec<String>,
    /// What the check of the script found; no errors among it.
    pub diagnostics: Vec<Diagnostic>,
}

/// Errors: `Invalid` with all findings when the script is not sound; `Usage` when it cannot be read, or has no phase or topic that is
/// asked for.
pub fn graph(request: &GraphRequest, environment: &Environment) -> Result<DrawnGraph, EngineError> {
    let project = Project::of(&request.file, request.project.as_deref(), false, environment)?;
    let loaded = LoadedProgram::of(&project, &RunRequest { file: request.file.clone(), ..RunRequest::default() })?;
    let diagnostics = loaded.diagnostics().to_vec();
    let (_, program) = loaded.into_parts();
    let whole = gather(&program);
    let only = chosen(&whole, &request.only)?;
    let mut notices = Vec::new();
    let depth = request.depth.unwrap_or_else(|| {
        let depth = if only.is_empty() { usual(&whole) } else { Depth::All };
        notices.extend(told(&whole, depth));
        depth
    });
    let drawing = fold(&whole, depth, &only);
    let text = match request.format {
        GraphFormat::Mermaid => mermaid(&drawing),
        GraphFormat::Dot => dot(&drawing),
    };
    let large = drawing.arrows.len() > MOST_ARROWS || text.chars().count() > MOST_CHARACTERS;
    if request.format == GraphFormat::Mermaid && large {
        notices.push(format!(
            "most Mermaid viewers reject more than {MOST_ARROWS} arrows or {MOST_CHARACTERS} characters: fold the graph with `--depth`, or draw it with `--format dot`"
        ));
    }
    Ok(DrawnGraph { text, depth, notices, diagnostics })
}

/// How far a script of this size can be unfolded and still be read.
fn usual(whole: &ScriptGraph) -> Depth {
    match (whole.actions(), whole.topics()) {
        (..=FEW, _) => Depth::All,
        (..=SOME, _) => Depth::Actions,
        (_, ..=MANY) => Depth::Topics,
        _ => Depth::Phases,
    }
}

/// What is folded, when something is, and how to see it.
fn told(whole: &ScriptGraph, depth: Depth) -> Option<String> {
    let (actions, topics) = (whole.actions(), whole.topics());
    match depth {
        Depth::All => None,
        Depth::Actions => Some(format!(
            "{actions} actions: sequences of plain ones are drawn as one box (`--depth 3`); `--depth 4` draws every action"
        )),
        Depth::Topics => Some(format!(
            "{actions} actions are folded into {topics} topics (`--depth 2`); `--only TOPIC` or `--only PHASE` unfolds one, `--depth 3` unfolds all"
        )),
        Depth::Phases => Some(format!(
            "{actions} actions in {topics} topics are folded into phases (`--depth 1`); `--only PHASE` unfolds one, `--depth 2` unfolds all"
        )),
    }
}

fn chosen(whole: &ScriptGraph, ids: &[String]) -> Result<BTreeSet<usize>, EngineError> {
    let places = || {
        let all = whole.parts.iter().enumerate();
        all.filter(|(_, part)| matches!(part.kind, GraphNodeKind::Phase | GraphNodeKind::Topic))
    };
    let mut chosen = BTreeSet::new();
    for id in ids {
        let before = chosen.len();
        chosen.extend(places().filter(|(_, part)| part.id == *id).map(|(number, _)| number));
        if chosen.len() == before && !places().any(|(_, part)| part.id == *id) {
            let known: Vec<&str> = places().map(|(_, part)| part.id.as_str()).collect();
            let help = match near_miss(id, known.iter().copied()) {
                Some(near) => msg!("did you mean `{near}`?"),
                None => msg!(
                    "its phases and topics are {}",
                    Message::list(Joint::Item, known.into_iter().map(Message::text))
                ),
            };
            return Err(EngineError::usage(msg!("the script has no phase or topic `{id}`")).with_help(help));
        }
    }
    Ok(chosen)
}
