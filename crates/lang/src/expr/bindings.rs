//! What an evaluation takes from its surroundings: the values of names, filters, tests and functions.

use crate::message::ToMessage;
use crate::message::message::Message;
use std::sync::LazyLock;

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, State, UndefinedBehavior};

use crate::template::environment::environment;
use crate::template::features::FUNCTIONS;
use crate::template::memory::{Memory, memory};
use crate::template::names::TemplateNames;

/// The filters, tests and functions of all expressions in the process.
pub(crate) static ENVIRONMENT: LazyLock<Environment<'static>> =
    LazyLock::new(|| environment(UndefinedBehavior::Strict));

pub(crate) trait Bindings {
    /// The value of a name; `None` if the name is unknown, an error if the value exceeds a limit.
    fn look_up(&mut self, name: &str) -> Option<Result<Value, Message>>;

    /// The names for suggestions.
    fn known(&self) -> Vec<String>;

    fn apply_filter(&mut self, name: &str, values: &[Value]) -> Result<Value, Error>;

    fn perform_test(&mut self, name: &str, values: &[Value]) -> Result<bool, Error>;

    /// Calls a function or a macro; `None` if there is none of that name.
    fn call(&mut self, name: &str, arguments: &[Value]) -> Option<Result<Value, Error>>;

    /// What the values of this rendering or evaluation have taken.
    fn memory(&mut self) -> &mut Memory;

    /// Whether [`call`](Self::call) calls a macro of the template.
    fn is_macro(&self, name: &str) -> bool;
}

/// The names of a script.
pub(crate) struct ExpressionBindings<'n> {
    names: &'n TemplateNames,
    /// Created at the first filter or test, because most conditions have none.
    state: Option<State<'static, 'static>>,
}

impl<'n> ExpressionBindings<'n> {
    pub(crate) fn new(names: &'n TemplateNames) -> Self {
        Self { names, state: None }
    }

    fn state(&mut self) -> &mut State<'static, 'static> {
        self.state.get_or_insert_with(|| ENVIRONMENT.empty_state())
    }
}

impl Bindings for ExpressionBindings<'_> {
    fn look_up(&mut self, name: &str) -> Option<Result<Value, Message>> {
        self.names.look_up(name).map(|found| found.map_err(|oversize| oversize.to_message()))
    }

    fn known(&self) -> Vec<String> {
        self.names.known()
    }

    fn apply_filter(&mut self, name: &str, values: &[Value]) -> Result<Value, Error> {
        self.state().apply_filter(name, values)
    }

    fn perform_test(&mut self, name: &str, values: &[Value]) -> Result<bool, Error> {
        self.state().perform_test(name, values)
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Option<Result<Value, Error>> {
        let function = ENVIRONMENT.globals().find(|(known, _)| *known == name).map(|(_, function)| function)?;
        Some(function.call(self.state(), arguments))
    }

    fn memory(&mut self) -> &mut Memory {
        memory(self.state())
    }

    fn is_macro(&self, _name: &str) -> bool {
        false
    }
}

/// The names of a template that is being rendered, with those that it sets itself.
pub(crate) struct StateBindings<'s, 't, 'e> {
    pub(crate) state: &'s mut State<'t, 'e>,
}

impl Bindings for StateBindings<'_, '_, '_> {
    fn look_up(&mut self, name: &str) -> Option<Result<Value, Message>> {
        let value = self.state.lookup(name).filter(|value| !value.is_undefined())?;
        if value.kind() == ValueKind::Invalid {
            // An invalid value holds the error of its name; only its text is accessible.
            let shown = value.to_string();
            let text = shown.trim_start_matches("<invalid value: ").trim_end_matches('>');
            return Some(Err(Message::text(text.trim_start_matches("invalid operation: "))));
        }
        Some(Ok(value))
    }

    /// The names of a template are added by the caller, who knows them.
    fn known(&self) -> Vec<String> {
        Vec::new()
    }

    fn apply_filter(&mut self, name: &str, values: &[Value]) -> Result<Value, Error> {
        self.state.apply_filter(name, values)
    }

    fn perform_test(&mut self, name: &str, values: &[Value]) -> Result<bool, Error> {
        self.state.perform_test(name, values)
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Option<Result<Value, Error>> {
        let function = self.state.lookup(name).filter(|value| !value.is_undefined())?;
        Some(function.call(self.state, arguments))
    }

    fn memory(&mut self) -> &mut Memory {
        memory(self.state)
    }

    fn is_macro(&self, name: &str) -> bool {
        !FUNCTIONS.contains(&name)
    }
}
