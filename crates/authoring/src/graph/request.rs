//! The `graph` request: which script, how far it is unfolded, and the output format.

use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::graph::build::build_graph;
use crate::graph::dot::dot;
use crate::graph::fold::{Depth, fold};
use crate::graph::mermaid::{MAX_ARROWS, MAX_CHARACTERS, mermaid};
use crate::graph::script_graph::{GraphNodeKind, ScriptGraph};
use crate::graph::visited::{VisitedAction, mark_visited};
use bcc_engine::engine::RunRequest;
use bcc_engine::environment::Environment;
use bcc_engine::error::EngineError;
use bcc_engine::loaded::LoadedProgram;
use bcc_engine::pin::sha256;
use bcc_engine::project::Project;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;

/// Without `--depth`, scripts with at most this number of actions are drawn completely.
const MAX_UNFOLDED_ACTIONS: usize = 30;

/// Without `--depth`, scripts with at most this number of actions are drawn as actions.
const MAX_DRAWN_ACTIONS: usize = 90;

/// Without `--depth`, scripts with at most this number of topics are drawn as topics.
const MAX_DRAWN_TOPICS: usize = 80;

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
    /// How far to unfold; `None` selects it by the size of the script.
    pub depth: Option<Depth>,
    /// `--only`: the ids of phases and topics.
    pub only: Vec<String>,
    /// `--session`: the steps of a session, which are colored by what became of them.
    pub session: Option<SessionSteps>,
}

/// What a session did, and the script that it ran.
#[derive(Clone, Debug)]
pub struct SessionSteps {
    pub script: String,
    pub script_sha256: String,
    pub steps: Vec<VisitedAction>,
}

#[derive(Clone, Debug)]
pub struct DrawnGraph {
    pub text: String,
    pub depth: Depth,
    pub notices: Vec<Message>,
    /// The findings of the check; they contain no errors.
    pub diagnostics: Vec<Diagnostic>,
}

/// Errors: `Invalid` with all findings if the script has errors; `Usage` if it cannot be read, or does not contain a
/// requested phase or topic.
pub fn graph(request: &GraphRequest, environment: &Environment) -> Result<DrawnGraph, EngineError> {
    let project = Project::of(&request.file, request.project.as_deref(), false, environment)?;
    let loaded = LoadedProgram::of(&project, &RunRequest { file: request.file.clone(), ..RunRequest::default() })?;
    let diagnostics = loaded.diagnostics().to_vec();
    let (pinned, program) = loaded.into_parts();
    let mut graph = build_graph(&program);
    let only = selected(&graph, &request.only)?;
    let mut notices = Vec::new();
    if let Some(session) = &request.session {
        if session.script != program.id {
            let message = msg!("the session belongs to the script `{}`, not to `{}`", session.script, program.id);
            return Err(EngineError::usage(message));
        }
        if session.script_sha256 != sha256(pinned.script.text().as_bytes()) {
            notices.push(msg!("the script was edited after the session started: actions are colored by their ids"));
        }
        mark_visited(&mut graph, &session.steps);
    }
    let depth = request.depth.unwrap_or_else(|| {
        let depth = if only.is_empty() { default_depth(&graph) } else { Depth::All };
        notices.extend(folding_notice(&graph, depth));
        depth
    });
    let drawing = fold(&graph, depth, &only);
    let text = match request.format {
        GraphFormat::Mermaid => mermaid(&drawing),
        GraphFormat::Dot => dot(&drawing),
    };
    let large = drawing.arrows.len() > MAX_ARROWS || text.chars().count() > MAX_CHARACTERS;
    if request.format == GraphFormat::Mermaid && large {
        notices.push(msg!(
            "most Mermaid viewers reject more than {MAX_ARROWS} arrows or {MAX_CHARACTERS} characters: fold the graph with `--depth`, or draw it with `--format dot`"
        ));
    }
    Ok(DrawnGraph { text, depth, notices, diagnostics })
}

/// The depth at which a script of this size is still readable.
fn default_depth(graph: &ScriptGraph) -> Depth {
    match (graph.actions(), graph.topics()) {
        (..=MAX_UNFOLDED_ACTIONS, _) => Depth::All,
        (..=MAX_DRAWN_ACTIONS, _) => Depth::Actions,
        (_, ..=MAX_DRAWN_TOPICS) => Depth::Topics,
        _ => Depth::Phases,
    }
}

/// A notice of what is folded, and how to unfold it.
fn folding_notice(graph: &ScriptGraph, depth: Depth) -> Option<Message> {
    let (actions, topics) = (graph.actions(), graph.topics());
    match depth {
        Depth::All => None,
        Depth::Actions => Some(msg!(
            "{actions} actions: sequences of plain ones are drawn as one box (`--depth 3`); `--depth 4` draws every action"
        )),
        Depth::Topics => Some(msg!(
            "{actions} actions are folded into the topics (`--depth 2`); `--only TOPIC` or `--only PHASE` unfolds one, `--depth 3` unfolds all"
        )),
        Depth::Phases => Some(msg!(
            "{actions} actions in {topics} topics are folded into phases (`--depth 1`); `--only PHASE` unfolds one, `--depth 2` unfolds all"
        )),
    }
}

fn selected(graph: &ScriptGraph, ids: &[String]) -> Result<BTreeSet<usize>, EngineError> {
    let places = || {
        let all = graph.parts.iter().enumerate();
        all.filter(|(_, part)| matches!(part.kind, GraphNodeKind::Phase | GraphNodeKind::Topic))
    };
    let mut selected = BTreeSet::new();
    for id in ids {
        let before = selected.len();
        selected.extend(places().filter(|(_, part)| part.id == *id).map(|(number, _)| number));
        if selected.len() == before && !places().any(|(_, part)| part.id == *id) {
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
    Ok(selected)
}
