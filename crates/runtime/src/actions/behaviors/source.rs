//! What a source of behaviors is shown, and what its answers become.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::VecDeque;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::actions::behaviors::config::{BehaviorSource, LoopConfig};
use crate::actions::behaviors::frame::{Current, LoopFrame, LoopPoint, MOST_KEPT};
use crate::actions::behaviors::plan;
use crate::effects::behaviors::{BehaviorPiece, BehaviorServer, ResponseStream, ServerError};
use crate::notebook::protocol::feedback::Feedback;
use crate::notebook::protocol::observation::{MOST_CELLS, ObservationSource, observation, older_observation};
use crate::notebook::protocol::response::{Response, response};
use crate::notebook::state::NotebookState;
use crate::program::flow::{ActionError, Flow};
use crate::program::turn::Turn;
use bcc_lang::value::mask::Masker;

/// How often in a row a source is asked again whose answer cannot be used.
pub const MOST_AGAIN: u32 = 3;

/// The most variables of the session that are shown.
const MOST_VARIABLES: usize = 200;

/// The most bytes of one variable that is shown; one that is larger is left out.
const MOST_VARIABLE: usize = 8 * 1024;

/// The most bytes of all of them.
const MOST_VARIABLE_BYTES: usize = 64 * 1024;

/// What stands under these keys is the engine's own, and no sensitive value however it looks.
const OWN: [&str; 7] = [
    "behavior_iteration",
    "behavior_id",
    "current_stage_id",
    "current_step_id",
    "stage_id",
    "step_id",
    "behavior_feedback",
];

/// Where variables and cells stand, in the new form and in the older one, and what was wrong with an action: these may have any keys.
const ANYBODYS: [&str; 3] = ["/observation/context", "/state", "/behavior_feedback/last_action_result"];

/// Actions that are here already, given one by one as those of a stream are.
struct Listed(VecDeque<Value>);

#[async_trait]
impl ResponseStream for Listed {
    async fn next(&mut self) -> Result<Option<BehaviorPiece>, ServerError> {
        Ok(self.0.pop_front().map(BehaviorPiece::Action))
    }
}

impl LoopConfig {
    /// Begins a behavior: the source is shown how things are, and what it answers is kept.
    pub async fn ask(
        &self,
        turn: &Turn<'_>,
        mut frame: LoopFrame,
        mut state: NotebookState,
    ) -> Result<Flow, ActionError> {
        let at = turn.services.clock.at(turn.last_seq + 1);
        turn.in_round(frame.behaviors + 1);
        state.begin_behavior(&at);
        let step = plan::here(&state);
        let answered = match &self.source {
            BehaviorSource::Model(asked) => self.ask_model(turn, &frame, &state, asked).await?,
            BehaviorSource::Server(name) => {
                let server = turn.services.outside.servers.server(name)?;
                let seen = self.observe(turn, &state, frame.feedback.as_ref(), Some(server.as_ref())).await?;
                first_pieces(server.as_ref(), &seen).await?
            }
        };
        let (came, rest) = match answered {
            Ok(answered) => answered,
            Err(fault) => return self.again(turn, frame, &fault),
        };
        let mut current = Current {
            id: state.location.behavior_id.clone().unwrap_or_default(),
            iteration: state.location.behavior_iteration,
            began_in: step,
            ..Current::default()
        };
        if let Some(around) = came.around
            && let Err(fault) = current.surround(&mut state, around)
        {
            return self.again(turn, frame, &fault);
        }
        current.actions.extend(came.actions);
        current.counts.behavior_id.clone_from(&current.id);
        self.stow(turn, &mut current, rest);
        frame.rubbish = 0;
        frame.behaviors += 1;
        frame.at = LoopPoint::Carry;
        frame.current = Some(current);
        turn.set_notebook_state(state);
        turn.keep(&frame)?;
        Ok(Flow::Onward)
    }

    /// An answer that cannot be used: the source is asked again in the next turn, a few times; then the session stops.
    pub fn again(&self, turn: &Turn<'_>, mut frame: LoopFrame, fault: &Message) -> Result<Flow, ActionError> {
        frame.rubbish += 1;
        let source = self.source_in_words();
        if frame.rubbish > MOST_AGAIN {
            return Err(ActionError::Source(ServerError {
                code: "behavior-unreadable",
                message: msg!("{source} gave {} unusable answers in a row: {fault}", frame.rubbish),
                help: Some(match &self.source {
                    BehaviorSource::Model(_) => {
                        Message::word("resume the session, with another model if needed; nothing is lost")
                    }
                    BehaviorSource::Server(_) => {
                        Message::word("fix the server and resume the session; nothing is lost")
                    }
                }),
            }));
        }
        let message = msg!("{source} gave an unusable answer and is asked again: {fault}");
        turn.warn("behavior-unreadable", message, None);
        turn.keep(&frame)?;
        Ok(Flow::Onward)
    }

    /// Who sends behaviors, in a sentence.
    pub fn source_in_words(&self) -> Message {
        match &self.source {
            BehaviorSource::Model(_) => Message::word("the model"),
            BehaviorSource::Server(name) => msg!("the behavior server `{name}`"),
        }
    }

    /// Where the actions of a behavior wait: within bounds in the frame, else in memory as those of a stream do.
    fn stow(&self, turn: &Turn<'_>, current: &mut Current, rest: Option<Box<dyn ResponseStream>>) {
        let most = self.max_actions as usize;
        if current.actions.len() > most {
            current.actions.truncate(most);
            self.warn_of_many(turn);
        }
        let name = format!("{}/{}", turn.place.path, current.id);
        if let Some(rest) = rest {
            turn.services.outside.arriving.keep(&name, rest);
            current.arriving = Some(name);
            return;
        }
        let bytes: usize = current.actions.iter().map(|action| action.to_string().len()).sum();
        if bytes > MOST_KEPT {
            let actions = std::mem::take(&mut current.actions);
            turn.services.outside.arriving.keep(&name, Box::new(Listed(actions)));
            current.arriving = Some(name);
        }
    }

    pub fn warn_of_many(&self, turn: &Turn<'_>) {
        let message = msg!("a behavior had more than {} actions; the rest were not carried out", self.max_actions);
        turn.warn("too-many-actions", message, Some(Message::word("`max_actions` of the loop sets the maximum")));
    }

    /// What the source is shown.
    pub async fn observe(
        &self,
        turn: &Turn<'_>,
        state: &NotebookState,
        feedback: Option<&Feedback>,
        server: Option<&dyn BehaviorServer>,
    ) -> Result<Value, ActionError> {
        let cells = turn.last_cells(MOST_CELLS).await?;
        let seen = ObservationSource {
            notebook_id: turn.session_id,
            state,
            cells: &cells,
            variables: self.shown_variables(turn),
            feedback,
            stream: server.is_some(),
            include_progress: self.include_progress,
        };
        let older = server.is_some_and(BehaviorServer::older_form);
        let mut seen = if older { older_observation(&seen) } else { observation(&seen) };
        let hidden = masker(turn);
        for place in ANYBODYS {
            if let Some(part) = seen.pointer_mut(place) {
                hidden.value(part, &[]);
            }
        }
        hidden.value(&mut seen, &OWN);
        Ok(seen)
    }

    /// The variables that may be shown: never a sensitive one, and none that has no value.
    fn shown_variables(&self, turn: &Turn<'_>) -> Map<String, Value> {
        let names = match &self.variables {
            Some(names) => names.clone(),
            None => turn.work().scopes.names().into_iter().map(str::to_owned).collect(),
        };
        let mut shown = Map::new();
        let mut left = MOST_VARIABLE_BYTES;
        for name in names {
            if shown.len() == MOST_VARIABLES {
                break;
            }
            let Some(value) = turn.variable(&name).filter(|value| !value.is_null()) else { continue };
            let bytes = value.to_string().len();
            if turn.is_sensitive(&name) || bytes > MOST_VARIABLE.min(left) {
                continue;
            }
            left -= bytes;
            shown.insert(name, value);
        }
        shown
    }
}

/// What hides sensitive values wherever they stand in what a source is shown: those of the session, also such as were
/// overwritten since, and those of this turn.
pub fn masker(turn: &Turn<'_>) -> Masker {
    let mut masker = turn.masker.clone();
    let work = turn.work();
    let sensitive = work.scopes.layers().flat_map(|layer| {
        let hidden = |name: &str| layer.declaration(name).is_some_and(|found| found.sensitive);
        layer.values().filter(move |(name, _)| hidden(name)).map(|(_, stored)| &stored.value)
    });
    sensitive.for_each(|value| _ = masker.add(value));
    masker
}

/// What came first of an answer.
#[derive(Default)]
pub struct FirstPiece {
    pub actions: Vec<Value>,
    /// The response, when it is there.
    pub around: Option<Value>,
}

/// What came of asking: the beginning of an answer and what still arrives, or why there is none that can be used.
pub type SourceAnswer = Result<(FirstPiece, Option<Box<dyn ResponseStream>>), Message>;

/// Asks a server, and waits until something of its answer is there.
async fn first_pieces(server: &dyn BehaviorServer, observation: &Value) -> Result<SourceAnswer, ActionError> {
    let mut arriving = match server.actions(observation).await {
        Ok(arriving) => arriving,
        Err(error) => return unusable(error),
    };
    let mut came = FirstPiece::default();
    loop {
        match arriving.next().await {
            Ok(None) => return Ok(Ok((came, None))),
            Ok(Some(BehaviorPiece::Action(action))) => {
                came.actions.push(action);
                return Ok(Ok((came, Some(arriving))));
            }
            // Whole responses are followed by nothing, and stand in the frame from here on.
            Ok(Some(BehaviorPiece::Response(around))) if came.around.is_none() => came.around = Some(around),
            Ok(Some(BehaviorPiece::Response(_))) => return Ok(Ok((came, None))),
            // The rest of an answer that has begun: what is there counts.
            Err(_) if came.around.is_some() => return Ok(Ok((came, None))),
            Err(error) => return unusable(error),
        }
    }
}

/// Whether an error is one of the answer, after which the server is asked again, or one of the server, which stops the session.
pub fn unusable<T>(error: ServerError) -> Result<Result<T, Message>, ActionError> {
    match error.code {
        "server-rubbish" | "server-flood" => Ok(Err(error.message)),
        _ => Err(ActionError::Source(error)),
    }
}

impl Current {
    /// Takes over what stands around actions: the id and the purpose of the behavior now, the rest when it ends.
    /// Errors: What is wrong with it, when it cannot be read.
    pub fn surround(&mut self, state: &mut NotebookState, around: Value) -> Result<(), Message> {
        let Response { behavior_id, iteration, target, actions, notes, .. } =
            response(&around).map_err(|rubbish| rubbish.message)?;
        for note in notes {
            tracing::debug!(%note, "a response holds what is not part of the protocol");
        }
        state.name_behavior(behavior_id.as_deref(), iteration);
        self.id = state.location.behavior_id.clone().unwrap_or_default();
        self.iteration = state.location.behavior_iteration;
        // Ours go on behind a number of theirs, so that no two behaviors have one id.
        let number = self.id.strip_prefix("behavior_").and_then(|number| number.parse::<u32>().ok());
        state.location.behaviors = state.location.behaviors.max(number.map_or(0, u64::from));
        self.counts.behavior_id.clone_from(&self.id);
        self.target = target;
        self.actions.extend(actions);
        self.around = without_actions(around);
        if self.around.to_string().len() > MOST_KEPT {
            return Err(msg!("its content other than the actions is larger than {MOST_KEPT} bytes"));
        }
        Ok(())
    }
}

/// A response without its actions, which lie elsewhere.
fn without_actions(mut around: Value) -> Value {
    strip(&mut around);
    if around.is_object() { around } else { Value::Null }
}

/// Empties every list of actions, wherever the protocol reads one.
fn strip(around: &mut Value) {
    let Some(fields) = around.as_object_mut() else { return };
    for (name, value) in fields {
        match name.as_str() {
            "actions" | "steps" => *value = Value::Array(vec![]),
            "behavior" | "response" | "data" => strip(value),
            _ => {}
        }
    }
}
