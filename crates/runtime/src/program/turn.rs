//! The turn: everything that one action may read and do. Its changes are buffered in a [`TurnWork`] and committed with its result.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::notebook::state::NotebookState;
use crate::plan::access::PlanAccess;
use crate::program::cell_reader::CellReader;
use crate::program::decision::GivenDecision;
use crate::program::evaluation::{NULL_VALUE, evaluation_failure, null_condition};
use crate::program::event::{Event, Speaker};
use crate::program::flow::{ActionError, OpenEffect};
use crate::program::location::EventLocation;
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::program::{Phase, Program, Topic};
use crate::program::services::Services;
use crate::program::transcript::RecentTranscript;
use crate::program::work::{TurnWork, VariableWrite};
use bcc_lang::expr::parse::{Expr, ExprError};
use bcc_lang::expr::truth::Truth;
use bcc_lang::script::interrupted::OnInterrupted;
use bcc_lang::script::step_options::StepOptions;
use bcc_lang::template::names::{SharedValue, TemplateNames};
use bcc_lang::template::text::Text;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::{MASK, Masker};
use bcc_lang::value::quoting::lines;
use bcc_lang::value::scopes::{Scope, ScopeLayer, Scopes, Stored};

/// Names that the engine provides to every author text and expression.
pub const ENGINE_NAMES: [&str; 13] = [
    "time",
    "who",
    "user",
    "current_round",
    "max_rounds",
    "last_user_message",
    "topic_goal",
    "phase_goal",
    "global_goal",
    APPROVAL,
    BOUND_PLAN,
    RECENT_TOOL_RESULTS,
    PREVIOUS,
];

/// Those of [`ENGINE_NAMES`] that a variable may hide from the texts and expressions of a script. The others are variables that the engine
/// itself sets.
pub const HIDEABLE_NAMES: [&str; 10] = [
    "time",
    "who",
    "user",
    "current_round",
    "max_rounds",
    "last_user_message",
    "topic_goal",
    "phase_goal",
    "global_goal",
    PREVIOUS,
];

/// The name of the last decision about an approval (docs/actions/approval.md).
pub(crate) const APPROVAL: &str = "approval";

/// The name of the plan that the session works on (docs/plans.md).
pub(crate) const BOUND_PLAN: &str = "bound_plan";

/// The name of what tools gave last (docs/tools.md).
pub(crate) const RECENT_TOOL_RESULTS: &str = "recent_tool_results";

/// The name of the values that were replaced last, by variable (docs/routes.md).
pub(crate) const PREVIOUS: &str = "previous";

/// One turn of one action: its input ([`TurnResources`], whose fields are accessible through the turn), and its changes.
pub struct Turn<'a> {
    resources: TurnResources<'a>,
    work: Mutex<TurnWork>,
}

/// The data of the session that one turn of one action can read.
#[derive(Clone, Copy)]
pub struct TurnResources<'a> {
    pub program: &'a Program,
    pub phase: &'a Phase,
    pub topic: &'a Topic,
    pub place: &'a EventLocation,
    pub session_id: &'a str,
    pub kind: &'static str,
    /// The state that the action stored in its last turn; null on its first.
    pub state: &'a ExactValue,
    /// The person's answer that this turn processes.
    pub answer: Option<&'a str>,
    /// The outcome of the last step of the block that the action entered.
    pub entered: Option<&'a Outcome>,
    pub recent: &'a RecentTranscript,
    pub services: &'a Services,
    /// The plans of the user.
    pub plans: &'a PlanAccess,
    /// The reasons for which a table has a route that leads away from an unfinished action.
    pub reasons_with_route: &'a [ExitReason],
    /// Whether the action continues after something else ran since its last turn.
    pub resumed: bool,
    /// The monitor's advice, as text for a prompt. A turn that calls a model with it uses it up.
    pub advice: Option<&'a str>,
    /// The maximum number of rounds that there is time for.
    pub max_rounds: Option<u32>,
    /// The number of model calls of the action before this turn, in this visit and earlier ones.
    pub calls_before: u32,
    /// The last sequence number before this turn, from which unique ids are made.
    pub last_seq: u64,
    /// The numbers of the branches around the action, as in `b2.b1.`: turns that run at the same time make their ids with them.
    pub branch: &'a str,
    pub notebook: &'a NotebookState,
    pub cells: &'a dyn CellReader,
    /// Masks every value that a sensitive variable of the session has or had, as committed.
    pub masker: &'a Masker,
    /// The external effect of this action that was announced and is not closed.
    pub effect: Option<&'a OpenEffect>,
    /// Whether `effect` was announced for this turn. If not, it is not known how far the effect got: the process died, or the turn
    /// was dropped.
    pub effect_is_due: bool,
    /// What was decided about the request that the action waits for.
    pub decision: Option<&'a GivenDecision>,
    /// How often the action was pushed back before, in this visit of its list.
    pub push_backs: u32,
    /// Whether the action is in a `finally` or `compensate`, where nothing waits for a person (docs/failures.md).
    pub is_in_cleanup: bool,
    /// How the author wants an open effect that is not due to be handled.
    pub on_interrupted: OnInterrupted,
    pub options: &'a StepOptions,
}

impl<'a> Deref for Turn<'a> {
    type Target = TurnResources<'a>;

    fn deref(&self) -> &TurnResources<'a> {
        &self.resources
    }
}

impl<'a> Turn<'a> {
    /// Creates a turn over `scopes`; its changes are invisible to others before the commit.
    pub fn new(resources: TurnResources<'a>, scopes: Scopes) -> Self {
        Self { resources, work: Mutex::new(TurnWork { scopes, ..TurnWork::default() }) }
    }

    pub fn into_work(self) -> TurnWork {
        self.work.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The buffer. Never held across an await.
    pub(crate) fn work(&self) -> MutexGuard<'_, TurnWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state that the action stored in its last turn; `T::default()` on its first.
    /// Errors: The stored state does not have the type that this action stores: another release wrote the journal.
    pub fn state<T: DeserializeOwned + Default>(&self) -> Result<T, ActionError> {
        if self.state.is_null() {
            return Ok(T::default());
        }
        let state = match self.state.digits() {
            None => T::deserialize(&**self.state),
            Some(_) => serde_json::from_str(&self.state.to_string()),
        };
        state.map_err(|error| {
            ActionError::failed("frame-unreadable", msg!("the stored state of this action cannot be read: {error}"))
        })
    }

    /// The last round of an action whose author allows `rounds`: fewer if time is short.
    pub fn last_round(&self, rounds: u32) -> u32 {
        self.max_rounds.map_or(rounds, |most| rounds.min(most.max(1)))
    }

    /// Stores the state for the next turn of the action. Numbers keep their digits.
    pub fn store_state<T: Serialize>(&self, state: &T) -> Result<(), ActionError> {
        // Not `to_value`, which drops the digits of each `ExactValue`.
        let state = serde_json::to_string(state)
            .and_then(|json| ExactValue::parse(&json))
            .map_err(|error| ActionError::failed("frame-unwritable", msg!("the state cannot be stored: {error}")))?;
        self.work().state = Some(state);
        Ok(())
    }

    /// Sets the round that subsequent events belong to.
    pub(crate) fn in_round(&self, round: u32) {
        self.work().round = Some(round);
    }

    /// All names that an author text can use: the engine's names, then the variables.
    pub fn names(&self, max_rounds: u32) -> TemplateNames {
        let (scopes, round) = {
            let work = self.work();
            (work.scopes.clone(), work.round)
        };
        let mut names = base_names(self.program, Some(self.phase), Some(self.topic), self.recent, scopes);
        names.set_text("time", self.services.clock.prompt_time(self.last_seq, self.program.templates.language()));
        names.set("current_round", Value::from(round.unwrap_or(1)));
        names.set("max_rounds", Value::from(max_rounds));
        names.let_variables_hide(&HIDEABLE_NAMES);
        names
    }

    pub fn text(&self, text: &Text, names: &TemplateNames) -> Result<String, ActionError> {
        let rendered = self.rendered(text, names);
        self.report_warnings(names);
        rendered
    }

    /// `text` for a program or a file: unlike in texts for people, a line end at its end is a part of it.
    pub(crate) fn exact_text(&self, text: &Text, names: &TemplateNames) -> Result<String, ActionError> {
        let mut rendered = self.text(text, names)?;
        if text.source().ends_with('\n') {
            rendered.push('\n');
        }
        Ok(rendered)
    }

    fn rendered(&self, text: &Text, names: &TemplateNames) -> Result<String, ActionError> {
        self.program.texts.render(text, names).map_err(|error| {
            let action = self.place.action_id.as_deref().unwrap_or_default();
            ActionError::Failed {
                code: "text-failed",
                message: msg!("text in `{action}` cannot be rendered: {}", error.message),
                help: None,
            }
        })
    }

    /// `text` for a prompt: `said`, its rendering, or if that has several lines, one in which those of the variables are quoted.
    pub(crate) fn for_prompt(&self, text: &Text, said: &str, names: &TemplateNames) -> Result<String, ActionError> {
        if lines(said).nth(1).is_none() {
            return Ok(said.to_owned());
        }
        let quoted = self.rendered(text, &names.for_prompt());
        // The warnings are those of the first rendering.
        names.take_warnings();
        quoted
    }

    /// Reports the warnings of renderings and evaluations with these names.
    pub(crate) fn report_warnings(&self, names: &TemplateNames) {
        for message in names.take_warnings() {
            self.warn(NULL_VALUE, message, None);
        }
    }

    /// Whether an expression of the author holds. Null counts as false, with a warning.
    /// Errors: The expression compares incompatible values, uses unknown names, or gives no boolean.
    pub fn holds(&self, expression: &Expr) -> Result<bool, ActionError> {
        let truth =
            expression.truth(&self.names(1)).map_err(|error| expression_failed(self.program, expression, &error))?;
        if let Truth::Null(part) = &truth {
            self.emit(null_condition(expression.source(), part));
        }
        Ok(truth.holds())
    }

    pub fn value(&self, expression: &Expr) -> Result<ExactValue, ActionError> {
        let names = self.names(1);
        let value = expression.eval(&names).map_err(|error| expression_failed(self.program, expression, &error));
        self.report_warnings(&names);
        value
    }

    /// The value of a variable, with the changes of this turn.
    pub fn variable(&self, name: &str) -> Option<ExactValue> {
        self.work().scopes.get(name).map(|stored| stored.value.clone())
    }

    /// The value of a variable that a write would replace.
    pub(crate) fn written_variable(&self, name: &str, scope: Option<Scope>) -> Option<ExactValue> {
        Some(self.work().scopes.replaced(name, scope)?.value.clone())
    }

    /// Whether the variable is declared as sensitive, or has a sensitive value.
    pub fn is_sensitive(&self, name: &str) -> bool {
        self.work().scopes.is_sensitive(name)
    }

    /// Sets a variable: in `scope` if given, else where it is declared, else in the session.
    /// Errors: The value does not fit the declared type or `enum`, or the scope is not open.
    ///
    /// Returns the value for display: masked if the variable is sensitive.
    pub fn set(
        &self,
        name: &str,
        value: impl Into<ExactValue>,
        scope: Option<Scope>,
    ) -> Result<ExactValue, ActionError> {
        let at = self.services.clock.at(self.last_seq + 1);
        let mut work = self.work();
        let value = fitting(work.scopes.target(name, scope), name, value.into())?;
        let source = self.place.action_id.clone().unwrap_or_default();
        let stored = Stored { value, source: source.clone(), round: work.round, at };
        let is_watched = self.program.watched_names.contains(name);
        let before = work.scopes.get(name).filter(|_| is_watched).map(|stored| stored.value.clone());
        let Some(written) = work.scopes.write(name, stored.clone(), scope) else {
            return Err(ActionError::failed(
                "scope-not-open",
                msg!("`{name}` cannot be set: its scope is not open here"),
            ));
        };
        let shown = if written.sensitive { Value::from(MASK).into() } else { stored.value.clone() };
        let event =
            Event::VariableSet { name: name.to_owned(), scope: written.scope.name(), value: shown.clone(), source };
        let round = work.round;
        work.events.push((round, event));
        work.writes.push(VariableWrite { name: name.to_owned(), written, stored: stored.clone(), scope });
        self.note_change(&mut work, name, before.as_ref(), &stored);
        Ok(shown)
    }

    /// Sends a message to the person. An empty text sends nothing.
    pub(crate) fn send_message(&self, message_id: Option<String>, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let message_id = message_id.unwrap_or_else(|| self.message_id());
        self.emit(Event::Message { message_id, role: Speaker::Ai, text: text.to_owned(), answer_id: None });
    }

    /// A new message id, unique in the session even if this turn dies.
    pub fn message_id(&self) -> String {
        let mut work = self.work();
        let id = message_id(self.last_seq, work.message_ids);
        work.message_ids += 1;
        id
    }

    /// Reports the outcome of a turn that does not end its action; the outcome of one that does is reported with the flow.
    pub(crate) fn report_outcome(&self, outcome: Outcome) {
        self.emit(Event::Outcome { action_type: self.kind, outcome: Box::new(outcome) });
    }

    /// Emits a warning for the author. `message` must not contain text of a person or a model.
    pub fn warn(&self, code: &'static str, message: impl Into<Message>, help: Option<Message>) {
        self.emit(Event::Warning { code, message: message.into(), help });
    }

    pub(crate) fn emit(&self, event: Event) {
        let mut work = self.work();
        let round = work.round;
        work.events.push((round, event));
    }
}

/// The id of the `number`th message (from 0) of the turn that started after event `last_seq`.
pub fn message_id(last_seq: u64, number: u32) -> String {
    if number == 0 { format!("m{}", last_seq + 1) } else { format!("m{}.{number}", last_seq + 1) }
}

/// [`APPROVAL`] before anything was decided. What every turn needs is made only once.
static NO_APPROVAL: LazyLock<SharedValue> = LazyLock::new(|| {
    SharedValue::new(json!({ "action": null, "iteration": 0, "decision": null, "by": null, "comment": null }))
});

/// [`BOUND_PLAN`] of a session without a plan.
static NO_PLAN: LazyLock<SharedValue> =
    LazyLock::new(|| SharedValue::new(json!({ "plan_id": null, "title": null, "status": null, "tasks": 0 })));

/// [`RECENT_TOOL_RESULTS`] of a session that has called no tools.
static NO_RESULTS: LazyLock<SharedValue> = LazyLock::new(|| SharedValue::new(json!([])));

/// The names that do not depend on an action: those of conditions on phases, topics and actions.
pub fn base_names(
    program: &Program,
    phase: Option<&Phase>,
    topic: Option<&Topic>,
    recent: &RecentTranscript,
    scopes: Scopes,
) -> TemplateNames {
    let [was_decided, has_plan, has_results] =
        [APPROVAL, BOUND_PLAN, RECENT_TOOL_RESULTS].map(|name| scopes.get(name).is_some());
    let scopes_have_no_previous = scopes.get(PREVIOUS).is_none();
    let plain = TemplateNames::new(scopes);
    let goal = |text: Option<&Text>| {
        // A goal that cannot be rendered gives an empty name: it guides a prompt and decides nothing.
        text.and_then(|text| program.texts.render(text, &plain).ok()).unwrap_or_default()
    };
    // The clone shares the warnings of the goals.
    let mut names = plain.clone();
    if !was_decided {
        names.set_shared(APPROVAL, &NO_APPROVAL);
    }
    if !has_plan {
        names.set_shared(BOUND_PLAN, &NO_PLAN);
    }
    if scopes_have_no_previous {
        names.set(PREVIOUS, program.watched_names.iter().map(|name| (name.clone(), Value::Null)).collect());
    }
    if !has_results {
        names.set_shared(RECENT_TOOL_RESULTS, &NO_RESULTS);
    }
    names.set_text("who", program.who.as_str());
    names.set_text("user", program.user.as_str());
    names.set_text("last_user_message", recent.last_user_message().unwrap_or_default());
    names.set_text("global_goal", goal(program.goal.as_ref()));
    names.set_text("phase_goal", goal(phase.and_then(|phase| phase.goal.as_ref())));
    names.set_text("topic_goal", goal(topic.and_then(|topic| topic.goal.as_ref())));
    names
}

/// Converts `value` to what the variable `name` of `layer` can hold.
/// Errors: The value does not fit the declared type or the declared choices.
pub(crate) fn fitting(layer: Option<&ScopeLayer>, name: &str, value: ExactValue) -> Result<ExactValue, ActionError> {
    let declaration = layer.and_then(|layer| layer.declaration(name));
    let Some(declaration) = declaration.filter(|_| !value.is_null()) else { return Ok(value) };
    let value = match declaration.declared {
        Some(declared) => declared.coerce_exact(&value).ok_or_else(|| {
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

fn expression_failed(program: &Program, expression: &Expr, error: &ExprError) -> ActionError {
    let (code, help) = evaluation_failure(&program.mistaken_expressions, expression, error);
    let message = msg!("the expression `{}` cannot be evaluated: {}", expression.source(), error.message);
    ActionError::Failed { code, message, help }
}
