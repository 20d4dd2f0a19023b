//! The initial variables of an action: declared values, given values, and the first element of a list.

use bcc_lang::message::msg;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::render::find_action::FoundAction;
use bcc_engine::error::EngineError;
use bcc_engine::variables::{coerce_value, parse_pair, read_variables_file};
use bcc_lang::source::near::near_miss;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::Masker;
use bcc_lang::value::scopes::{Declaration, DeclarationMap, Scope, ScopeLayer, Scopes, Stored};
use bcc_runtime::program::program::Program;
use bcc_runtime::program::transcript::RecentTranscript;
use bcc_runtime::program::turn::base_names;

/// The variables that are visible to `found`: declared values, overridden by those of `file`, then by those of `pairs`.
/// Errors: if the action does not see a name, or a value does not match its declaration.
pub fn scopes(
    program: &Program,
    found: &FoundAction<'_>,
    file: Option<&Path>,
    pairs: &[String],
) -> Result<Scopes, EngineError> {
    let mut scopes = initial_scopes(program, found);
    let mut given: Vec<(String, ExactValue, bool)> = Vec::new();
    if let Some(path) = file {
        given.extend(read_variables_file(path)?.into_iter().map(|(name, value)| (name, value, false)));
    }
    for pair in pairs {
        let (name, text) = parse_pair(pair)?;
        given.push((name.to_owned(), Value::from(text).into(), true));
    }
    // The list is evaluated when its topic starts; a given value of the element itself takes precedence.
    let element = found.topic.for_each.as_ref().filter(|_| found.skill.is_none());
    let (own, others): (Vec<_>, Vec<_>) =
        given.into_iter().partition(|(name, ..)| element.is_some_and(|each| each.element == *name));
    for (name, value, typed) in others {
        let declaration = scopes.declaration(&name).ok_or_else(|| unknown(&scopes, &name))?;
        let value = coerce_value(declaration, value, typed)?;
        write(&mut scopes, &name, value, None);
    }
    if let Some(each) = element {
        let names =
            base_names(program, Some(found.phase), Some(found.topic), &RecentTranscript::default(), scopes.clone());
        let first = match each.list.eval(&names) {
            Ok(list) => list.items().next().unwrap_or_default(),
            Err(_) => ExactValue::default(),
        };
        let own = own.into_iter().next_back();
        let value = match (own, scopes.declaration(&each.element)) {
            (Some((_, value, typed)), Some(declaration)) => coerce_value(declaration, value, typed)?,
            (Some((_, value, typed)), None) => {
                let parsed = value.as_str().filter(|_| typed).and_then(|text| ExactValue::parse(text).ok());
                parsed.unwrap_or(value)
            }
            (None, _) => first,
        };
        write(&mut scopes, &each.element, value, Some(Scope::Topic));
        if each.list.names().iter().any(|used| scopes.is_sensitive(&used.name)) {
            scopes.mark_sensitive(&each.element);
        }
    }
    Ok(scopes)
}

/// Whether the list of the action's topic is empty or not set, so that the action would not run.
pub(crate) fn is_empty_list(program: &Program, found: &FoundAction<'_>, scopes: &Scopes) -> bool {
    let Some(each) = found.topic.for_each.as_ref().filter(|_| found.skill.is_none()) else { return false };
    let names = base_names(program, Some(found.phase), Some(found.topic), &RecentTranscript::default(), scopes.clone());
    match each.list.eval(&names) {
        Ok(list) => list.as_array().map_or_else(|| list.is_null(), Vec::is_empty),
        Err(_) => false,
    }
}

/// Only the given variables.
pub(crate) fn only_given(file: Option<&Path>, pairs: &[String]) -> Result<Scopes, EngineError> {
    let mut layer = ScopeLayer::new(Scope::Session, "", Arc::new(DeclarationMap::new()));
    if let Some(path) = file {
        read_variables_file(path)?.into_iter().for_each(|(name, value)| layer.put(name, stored(value)));
    }
    for pair in pairs {
        let (name, text) = parse_pair(pair)?;
        layer.put(name, stored(Value::from(text).into()));
    }
    let mut scopes = Scopes::default();
    scopes.push(layer);
    Ok(scopes)
}

/// A masker for the values of sensitive variables.
pub fn masker(scopes: &Scopes) -> Masker {
    let values = scopes.layers().flat_map(ScopeLayer::values).filter(|(name, _)| scopes.is_sensitive(name));
    Masker::new(values.map(|(_, stored)| &stored.value).collect::<Vec<_>>())
}

fn initial_scopes(program: &Program, found: &FoundAction<'_>) -> Scopes {
    let layer = |scope, path: &str, declarations: &Arc<DeclarationMap>| {
        let mut layer = ScopeLayer::new(scope, path, Arc::clone(declarations));
        let set = declarations.values().filter(|declaration| !declaration.value.is_null());
        set.for_each(|Declaration { name, value, .. }| layer.put(name.clone(), stored(value.clone())));
        layer
    };
    if let Some(skill) = found.skill {
        return Scopes::isolated(layer(Scope::Topic, &skill.id, &skill.inputs));
    }
    let mut scopes = Scopes::default();
    scopes.push(layer(Scope::Global, "", &program.globals));
    scopes.push(layer(Scope::Session, "", &program.declarations));
    scopes.push(layer(Scope::Phase, &found.phase.id, &found.phase.declarations));
    scopes.push(layer(Scope::Topic, &found.topic.id, &found.topic.declarations));
    scopes
}

fn write(scopes: &mut Scopes, name: &str, value: ExactValue, scope: Option<Scope>) {
    // All scopes that are visible to the action are open here.
    let _ = scopes.write(name, stored(value), scope);
}

fn stored(value: ExactValue) -> Stored {
    Stored { value, source: "command_line".into(), round: None, at: String::new() }
}

fn unknown(scopes: &Scopes, name: &str) -> EngineError {
    let known: Vec<&str> = scopes.layers().flat_map(|layer| layer.declarations().keys().map(String::as_str)).collect();
    let error = EngineError::usage(msg!("the variable `{name}` is not visible to the action"));
    match near_miss(name, known.iter().copied()) {
        Some(near) => error.with_help(msg!("did you mean `{near}`?")),
        None => error.with_help("visible variables are declared around the action, or extracted or set by some action"),
    }
}
