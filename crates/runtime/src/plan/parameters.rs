//! Reads the parameters of an operation. Errors name the parameter that is missing, wrong or unknown.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::near::did_you_mean;
use serde_json::{Map, Value};

use crate::plan::error::OperationError;

/// The parameters of one operation. One that is null is as one that is absent, unless a method says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a> {
    operation: &'a str,
    values: &'a Map<String, Value>,
}

impl<'a> Parameters<'a> {
    /// The parameters `known` of an operation.
    /// Errors: [`OperationError::UnknownParameter`].
    pub fn new(operation: &'a str, values: &'a Map<String, Value>, known: &[&str]) -> Result<Self, OperationError> {
        let Some(unknown) = values.keys().find(|name| !known.contains(&name.as_str())) else {
            return Ok(Self { operation, values });
        };
        let help = did_you_mean(unknown, known.iter().copied()).unwrap_or_else(|| {
            if known.is_empty() { msg!("it has none") } else { msg!("it has {}", Message::names(known)) }
        });
        Err(OperationError::UnknownParameter { operation: operation.to_owned(), parameter: unknown.clone(), help })
    }

    pub fn missing(&self, parameter: &str) -> OperationError {
        OperationError::MissingParameter { operation: self.operation.to_owned(), parameter: parameter.to_owned() }
    }

    pub fn missing_one_of(&self, parameters: &[&str]) -> OperationError {
        OperationError::MissingOneOf { operation: self.operation.to_owned(), parameters: Message::names(parameters) }
    }

    pub fn wrong(&self, parameter: &str, expected: Message) -> OperationError {
        let (operation, parameter) = (self.operation.to_owned(), parameter.to_owned());
        OperationError::WrongParameter { operation, parameter, expected }
    }

    pub fn contradictory(&self, parameter: &str, other: &str) -> OperationError {
        let (parameter, other) = (parameter.to_owned(), other.to_owned());
        OperationError::ContradictoryParameters { operation: self.operation.to_owned(), parameter, other }
    }

    /// The value, also if it is null.
    pub fn given(&self, name: &str) -> Option<&'a Value> {
        self.values.get(name)
    }

    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.given(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>, OperationError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(name, msg!("text")))
    }

    /// A text that is not blank.
    pub fn required_text(&self, name: &str) -> Result<&'a str, OperationError> {
        let text = self.text(name)?.ok_or_else(|| self.missing(name))?;
        if text.trim().is_empty() { Err(self.wrong(name, msg!("text that is not empty"))) } else { Ok(text) }
    }

    /// A whole number from 0, which may also be written as text.
    fn whole(value: &Value) -> Option<u64> {
        match value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The id of a plan or of a task.
    pub fn id(&self, name: &str) -> Result<Option<u64>, OperationError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        Self::whole(value).map(Some).ok_or_else(|| self.wrong(name, msg!("an id, which is a number")))
    }

    /// Like [`Parameters::id`]; `Some(None)` if it is null.
    pub fn nullable_id(&self, name: &str) -> Result<Option<Option<u64>>, OperationError> {
        match self.given(name) {
            None => Ok(None),
            Some(Value::Null) => Ok(Some(None)),
            Some(_) => Ok(Some(self.id(name)?)),
        }
    }

    pub fn ids(&self, name: &str) -> Result<Option<Vec<u64>>, OperationError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let wrong = || self.wrong(name, msg!("a list of ids, which are numbers"));
        let items = value.as_array().ok_or_else(wrong)?;
        items.iter().map(|item| Self::whole(item).ok_or_else(wrong)).collect::<Result<_, _>>().map(Some)
    }

    /// A whole number between two others.
    pub fn number(&self, name: &str, min: u64, max: u64) -> Result<Option<u64>, OperationError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = Self::whole(value).filter(|number| (min..=max).contains(number));
        number.map(Some).ok_or_else(|| self.wrong(name, msg!("a whole number from {min} to {max}")))
    }

    pub fn boolean(&self, name: &str) -> Result<Option<bool>, OperationError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| self.wrong(name, msg!("true or false")))
    }

    pub fn object(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, OperationError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_object().map(Some).ok_or_else(|| self.wrong(name, msg!("an object")))
    }
}
