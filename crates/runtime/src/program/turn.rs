//! The turn: all that one action may see and do. What it does is buffered in a [`TurnWork`] and committed with its result.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::notebook::state::NotebookState;
use crate::program::cell_reader::CellReader;
use crate::program::event::{Event, Speaker};
use crate::program::flow::{ActionError, OpenEffect};
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::{Phase, Program, Topic};
use crate::program::services::Services;
use crate::program::transcript::RecentTranscript;
use crate::program::work::{TurnWork, VariableWrite};
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::interrupted::OnInterrupted;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;
use bcc_lang::value::mask::{MASK, Masker};
use bcc_lang::value::scopes::{Scope, ScopeLayer, Scopes, Stored};

/// Names that the engine gives to every author text and expression.
pub const ENGINE_NAMES: [&str; 9] = [
    "time",
    "who",
    "user",
    "current_round",
    "max_rounds",
    "last_user_message",
    "topic_goal",
    "phase_goal",
    "global_goal",
];

/// One turn of one action: what the session lends it ([`TurnResources`], whose fields are read as the turn's own), and what it does.
pub struct Turn<'a> {
    lent: TurnResources<'a>,
    work: Mutex<TurnWork>,
}

/// What a session lends to one turn of one action.
#[derive(Clone, Copy)]
pub struct TurnResources<'a> {
    pub program: &'a Program,
    pub phase: &'a Phase,
    pub topic: &'a Topic,
    pub place: &'a EventLocation,
    pub session_id: &'a str,
    pub kind: &'static str,
    /// What the action kept from its last turn; null on its first.
    pub state: &'a Value,
    /// The person's answer that this turn is about.
    pub answer: Option<&'a str>,
    /// The outcome of the last step of the block that the action entered.
    pub entered: Option<&'a Outcome>,
    pub recent: &'a RecentTranscript,
    pub services: &'a Services,
    /// The reasons for which a table has a route that leads away from an action that is not done.
    pub routed: &'a [ExitReason],
    /// Whether the action goes on after something else ran since its last turn.
    pub resumed: bool,
    /// What the monitor advises, as a prompt tells it. A turn that asks a model with it uses it up.
    pub advice: Option<&'a str>,
    /// The most rounds that there is time for.
    pub most_rounds: Option<u32>,
    /// How many model calls the action made before this turn, in this visit and earlier ones.
    pub calls_before: u32,
    /// The last sequence number before this turn, from which ids are made that no other turn can have.
    pub last_seq: u64,
    pub notebook: &'a NotebookState,
    pub shelf: &'a dyn CellReader,
    /// What hides every value that a sensitive variable of the session has or had, as committed.
    pub masker: &'a Masker,
    /// The outside effect of this action that was announced and is not closed.
    pub effect: Option<&'a OpenEffect>,
    /// Whether this turn is the one that `effect` was announced for. When it is not, nobody knows how far the effect came: the
    /// process died, or the turn was dropped.
    pub effect_is_due: bool,
    /// What the author wants to become of an effect that is open and not due.
    pub on_interrupted: OnInterrupted,
}

impl<'a> Deref for Turn<'a> {
    type Target = TurnResources<'a>;

    fn deref(&self) -> &TurnResources<'a> {
        &self.lent
    }
}

impl<'a> Turn<'a> {
    /// A turn over `scopes`, which it may change without anybody seeing it before the commit.
    pub fn new(lent: TurnResources<'a>, scopes: Scopes) -> Self {
        Self { lent, work: Mutex::new(TurnWork { scopes, ..TurnWork::default() }) }
    }

    pub fn into_work(self) -> TurnWork {
        self.work.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffer. Never held across an await.
    pub(crate) fn work(&self) -> MutexGuard<'_, TurnWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the action kept from its last turn; `T::default()` on its first.
    /// Errors: When what is stored is not what this action stores: the journal was written by another release.
    pub fn state<T: DeserializeOwned + Default>(&self) -> Result<T, ActionError> {
        if self.state.is_null() {
            return Ok(T::default());
        }
        T::deserialize(self.state).map_err(|error| {
            ActionError::failed("frame-unreadable", msg!("the stored state of this action cannot be read: {error}"))
        })
    }

    /// The last round of an action whose author allows `rounds`: fewer when time runs short.
    pub fn last_round(&self, rounds: u32) -> u32 {
        self.most_rounds.map_or(rounds, |most| rounds.min(most.max(1)))
    }

    pub fn keep<T: Serialize>(&self, state: &T) -> Result<(), ActionError> {
        let state = serde_json::to_value(state)
            .map_err(|error| ActionError::failed("frame-unwritable", msg!("the state cannot be stored: {error}")))?;
        self.work().state = Some(state);
        Ok(())
    }

    /// From here on, what happens belongs to this round.
    pub fn in_round(&self, round: u32) {
        self.work().round = Some(round);
    }

    /// Everything that a text of the author can name here: the engine's names, then the variables.
    pub fn names(&self, max_rounds: u32) -> TemplateNames {
        let (scopes, round) = {
            let work = self.work();
            (work.scopes.clone(), work.round)
        };
        let mut names = base_names(self.program, Some(self.phase), Some(self.topic), self.recent, scopes);
        names.give_text("time", self.services.clock.words(self.last_seq));
        names.give("current_round", Value::from(round.unwrap_or(1)));
        names.give("max_rounds", Value::from(max_rounds));
        names
    }

    pub fn text(&self, text: &Text, names: &TemplateNames) -> Result<String, ActionError> {
        self.program.texts.render(text, names).map_err(|error| {
            let action = self.place.action_id.as_deref().unwrap_or_default();
            ActionError::Failed {
                code: "text-failed",
                message: msg!("text in `{action}` cannot be rendered: {}", error.message),
                help: Some(Message::word("a variable without a value is null: check it with `{% if name %}` first")),
            }
        })
    }

    /// Whether an expression of the author holds.
    /// Errors: When it compares what cannot be compared, names what is not there, or gives no boolean.
    pub fn holds(&self, expression: &Expr) -> Result<bool, ActionError> {
        expression.truth(&self.names(1)).map_err(|error| expression_failed(expression, &error))
    }

    pub fn value(&self, expression: &Expr) -> Result<Value, ActionError> {
        expression.eval(&self.names(1)).map_err(|error| expression_failed(expression, &error))
    }

    /// The value of a variable, as this turn has left it.
    pub fn variable(&self, name: &str) -> Option<Value> {
        self.work().scopes.get(name).map(|stored| stored.value.clone())
    }

    /// The value of a variable in the layer that a write would go to.
    pub fn written_variable(&self, name: &str, scope: Option<Scope>) -> Option<Value> {
        let work = self.work();
        Some(work.scopes.target(name, scope)?.get(name)?.value.clone())
    }

    /// Whether the author called the variable sensitive.
    pub fn is_sensitive(&self, name: &str) -> bool {
        let work = self.work();
        work.scopes.layers().any(|layer| layer.declaration(name).is_some_and(|found| found.sensitive))
    }

    /// Sets a variable: in `scope` when given, else where it is declared, else in the session.
    /// Errors: When the value does not fit the declared type, is none of the declared `enum`, or the scope is not open.
    ///
    /// Gives the value as it may be shown: masked when the variable is sensitive.
    pub fn set(&self, name: &str, value: Value, scope: Option<Scope>) -> Result<Value, ActionError> {
        let at = self.services.clock.at(self.last_seq + 1);
        let mut work = self.work();
        let value = fitting(work.scopes.target(name, scope), name, value)?;
        let source = self.place.action_id.clone().unwrap_or_default();
        let stored = Stored { value, source: source.clone(), round: work.round, at };
        let Some(written) = work.scopes.write(name, stored.clone(), scope) else {
            return Err(ActionError::failed(
                "scope-not-open",
                msg!("`{name}` cannot be set: its scope is not open here"),
            ));
        };
        let shown = if written.sensitive { Value::from(MASK) } else { stored.value.clone() };
        let event =
            Event::VariableSet { name: name.to_owned(), scope: written.scope.name(), value: shown.clone(), source };
        let round = work.round;
        work.events.push((round, event));
        work.writes.push(VariableWrite { name: name.to_owned(), written, stored });
        Ok(shown)
    }

    /// Says something to the person. An empty text says nothing.
    pub fn say(&self, message_id: Option<String>, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let message_id = message_id.unwrap_or_else(|| self.message_id());
        self.emit(Event::Message { message_id, role: Speaker::Ai, text: text.to_owned() });
    }

    /// An id for a message, which no other message of the session has or will have, even when this turn dies.
    pub fn message_id(&self) -> String {
        let mut work = self.work();
        let id = message_id(self.last_seq, work.message_ids);
        work.message_ids += 1;
        id
    }

    /// Tells what came of a turn that does not end its action; the outcome of one that does is told with the flow.
    pub fn report(&self, outcome: Outcome) {
        self.emit(Event::Outcome { action_type: self.kind, outcome: Box::new(outcome) });
    }

    /// Notes something that an author should look at. `message` must hold nothing that a person or a model said.
    pub fn warn(&self, code: &'static str, message: impl Into<Message>, help: Option<Message>) {
        self.emit(Event::Warning { code, message: message.into(), help });
    }

    pub(crate) fn emit(&self, event: Event) {
        let mut work = self.work();
        let round = work.round;
        work.events.push((round, event));
    }
}

/// The id of the `number`th message (from 0) of the turn that began after event `last_seq`.
pub fn message_id(last_seq: u64, number: u32) -> String {
    if number == 0 { format!("m{}", last_seq + 1) } else { format!("m{}.{number}", last_seq + 1) }
}

/// The names that do not depend on an action: those of conditions on phases, topics and actions.
pub fn base_names(
    program: &Program,
    phase: Option<&Phase>,
    topic: Option<&Topic>,
    recent: &RecentTranscript,
    scopes: Scopes,
) -> TemplateNames {
    let plain = TemplateNames::new(scopes.clone());
    let goal = |text: Option<&Text>| {
        // A goal that cannot be rendered leaves its name empty: it guides a prompt and decides nothing.
        text.and_then(|text| program.texts.render(text, &plain).ok()).unwrap_or_default()
    };
    let mut names = TemplateNames::new(scopes);
    names.give_text("who", program.who.as_str());
    names.give_text("user", program.user.as_str());
    names.give_text("last_user_message", recent.last_user_message().unwrap_or_default());
    names.give_text("global_goal", goal(program.goal.as_ref()));
    names.give_text("phase_goal", goal(phase.and_then(|phase| phase.goal.as_ref())));
    names.give_text("topic_goal", goal(topic.and_then(|topic| topic.goal.as_ref())));
    names
}

/// `value` as the variable `name` of `layer` can hold it.
/// Errors: When it does not fit the declared type, or is none of the declared choices.
pub fn fitting(layer: Option<&ScopeLayer>, name: &str, value: Value) -> Result<Value, ActionError> {
    let declaration = layer.and_then(|layer| layer.declaration(name));
    let Some(declaration) = declaration.filter(|_| !value.is_null()) else { return Ok(value) };
    let value = match declaration.declared {
        Some(declared) => declared.coerce(&value).ok_or_else(|| {
            let message = msg!("`{name}` is declared as {} and cannot hold the given value", declared.name());
            ActionError::failed("type-misfit", message)
        })?,
        None => value,
    };
    if !declaration.choices.is_empty() && !declaration.choices.contains(&value) {
        return Err(ActionError::failed("type-misfit", msg!("the value given for `{name}` is not in its `enum`")));
    }
    Ok(value)
}

fn expression_failed(expression: &Expr, error: &bcc_lang::expr::parse::ExprError) -> ActionError {
    ActionError::Failed {
        code: "expression-failed",
        message: msg!("the expression `{}` cannot be evaluated: {}", expression.source(), error.message),
        help: error.help.clone(),
    }
}
