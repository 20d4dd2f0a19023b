//! The variables of a script, over all of its versions: what they mean, where they are asked, and which values they have.

use std::collections::BTreeMap;

use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::scopes::{Declaration, DeclarationMap, Scope};
use bcc_runtime::program::limits::ForEach;
use bcc_runtime::program::output::OutputVariable;
use bcc_runtime::program::program::{Phase, Program, ProgramStep, Topic};
use indexmap::{IndexMap, IndexSet};
use serde_json::Value;

use crate::data_set::observed::ObservedTypes;
use crate::script_names::ScriptNames;

/// The number of fields of the elements of a list that get a column of their own.
const MAX_FIELDS: usize = 100;

/// The number of names of actions that set a variable.
const MAX_SOURCES: usize = 50;

/// Where a variable lives. Variables of the user and of the session are read by the same names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum VariablePlace {
    Session,
    Phase(String),
    Topic(String, String),
}

#[derive(Clone, Debug)]
pub(crate) struct CatalogVariable {
    pub(crate) scope: Scope,
    pub(crate) place: VariablePlace,
    pub(crate) name: String,
    pub(crate) define: Option<String>,
    pub(crate) declared: IndexSet<DeclaredType>,
    pub(crate) choices: Vec<Value>,
    pub(crate) sensitive: bool,
    /// The actions that ask for it, as `phase/topic/action`.
    pub(crate) asked_in: IndexSet<String>,
    /// The actions that set it in these interviews.
    pub(crate) set_by: IndexSet<String>,
    /// The versions that have it.
    pub(crate) versions: IndexSet<usize>,
    pub(crate) observed: ObservedTypes,
    pub(crate) elements: ObservedElements,
    /// How many interviews have it; of a topic that is repeated, how many visits.
    pub(crate) cases: u64,
    /// In how many of these it is not empty.
    pub(crate) filled: u64,
}

/// What was seen in the elements of lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObservedElements {
    /// The elements that are no objects, if there are any.
    pub(crate) plain: Option<ObservedTypes>,
    pub(crate) fields: IndexMap<String, ObservedTypes>,
    /// Whether there are more fields than [`MAX_FIELDS`].
    pub(crate) has_more: bool,
}

/// A version of the script.
pub(crate) struct ScriptVersion {
    pub(crate) interviews: u64,
    pub(crate) names: ScriptNames,
    /// The numbers of its variables.
    pub(crate) variables: Vec<usize>,
    /// The values that the variables of phases and topics begin with.
    pub(crate) initial: BTreeMap<usize, ExactValue>,
    /// The ids of skills, which have variables of their own.
    pub(crate) skills: IndexSet<String>,
}

#[derive(Default)]
pub(crate) struct VariableCatalog {
    variables: IndexMap<(VariablePlace, String), CatalogVariable>,
    /// By the hash of the script.
    pub(crate) versions: IndexMap<String, ScriptVersion>,
    /// The phases and ids of topics that run for each element of a list.
    pub(crate) repeated: IndexSet<(String, String)>,
    /// The phases, topics and actions in which something was said.
    pub(crate) places: IndexSet<(String, String, String)>,
    pub(crate) statuses: BTreeMap<String, u64>,
    pub(crate) name: Option<String>,
}

impl CatalogVariable {
    pub(crate) fn is_date(&self) -> bool {
        self.declared.contains(&DeclaredType::Date)
    }

    /// Adds a value that is not left out.
    pub(crate) fn observe(&mut self, value: &Value) {
        self.observed.observe(value, self.declared.contains(&DeclaredType::Date));
        for element in value.as_array().into_iter().flatten() {
            self.elements.observe(element);
        }
    }

    pub(crate) fn set_by(&mut self, source: &str) {
        if self.set_by.len() < MAX_SOURCES {
            self.set_by.insert(source.to_owned());
        }
    }

    /// What is known of it from another version or from an output.
    fn learn(&mut self, define: Option<&str>, declared: Option<DeclaredType>, choices: &[Value]) {
        if self.define.is_none() {
            self.define = define.map(str::to_owned);
        }
        if let Some(declared) = declared {
            self.declared.insert(declared);
            self.observed.declare(declared);
        }
        for choice in choices {
            if !self.choices.contains(choice) {
                self.choices.push(choice.clone());
            }
        }
    }
}

impl ObservedElements {
    fn observe(&mut self, element: &Value) {
        match element {
            Value::Object(fields) => {
                for (name, value) in fields {
                    if let Some(observed) = self.fields.get_mut(name) {
                        observed.observe(value, false);
                    } else if self.fields.len() < MAX_FIELDS {
                        self.fields.entry(name.clone()).or_default().observe(value, false);
                    } else {
                        self.has_more = true;
                    }
                }
            }
            other => self.plain.get_or_insert_default().observe(other, false),
        }
    }
}

impl VariableCatalog {
    pub(crate) fn variables(&self) -> impl Iterator<Item = &CatalogVariable> {
        self.variables.values()
    }

    pub(crate) fn variable(&self, number: usize) -> Option<&CatalogVariable> {
        self.variables.get_index(number).map(|(_, variable)| variable)
    }

    pub(crate) fn variable_mut(&mut self, number: usize) -> Option<&mut CatalogVariable> {
        self.variables.get_index_mut(number).map(|(_, variable)| variable)
    }

    pub(crate) fn find(&self, place: &VariablePlace, name: &str) -> Option<usize> {
        self.variables.get_index_of(&(place.clone(), name.to_owned()))
    }

    /// Whether a variable belongs to a topic that is repeated; the number of the topic.
    pub(crate) fn repeated_topic(&self, variable: &CatalogVariable) -> Option<usize> {
        match &variable.place {
            VariablePlace::Topic(phase, topic) => self.repeated.get_index_of(&(phase.clone(), topic.clone())),
            _ => None,
        }
    }

    /// Adds a version of the script; without a program, if this release cannot read it.
    pub(crate) fn add_version(&mut self, sha256: &str, program: Option<&Program>) {
        let (number, _) = self.versions.insert_full(
            sha256.to_owned(),
            ScriptVersion {
                interviews: 0,
                names: program.map(ScriptNames::of).unwrap_or_default(),
                variables: vec![],
                initial: BTreeMap::new(),
                skills: program.iter().flat_map(|program| program.skills.keys().cloned()).collect(),
            },
        );
        let Some(program) = program else { return };
        self.name = program.name.clone().filter(|name| !name.trim().is_empty()).or_else(|| self.name.take());
        self.declare(number, &VariablePlace::Session, Scope::Global, &program.globals);
        self.declare(number, &VariablePlace::Session, Scope::Session, &program.declarations);
        for phase in &program.phases {
            self.declare(number, &VariablePlace::Phase(phase.id.clone()), Scope::Phase, &phase.declarations);
            for topic in &phase.topics {
                if topic.for_each.is_some() {
                    self.repeated.insert((phase.id.clone(), topic.id.clone()));
                }
                let place = VariablePlace::Topic(phase.id.clone(), topic.id.clone());
                self.declare(number, &place, Scope::Topic, &topic.declarations);
                let element = topic.for_each.as_ref().filter(|each| has_sensitive_list(each, program, phase, topic));
                let element = element.and_then(|each| self.find(&place, &each.element));
                if let Some(variable) = element.and_then(|number| self.variable_mut(number)) {
                    variable.sensitive = true;
                }
                for step in topic.steps.iter().chain(topic.finally.iter()) {
                    self.outputs(phase, topic, step);
                }
            }
        }
    }

    fn declare(&mut self, version: usize, place: &VariablePlace, scope: Scope, declarations: &DeclarationMap) {
        for declaration in declarations.values() {
            let Declaration { name, value, declared, choices, define, sensitive, implied: _ } = declaration;
            let number = self.add(place, scope, name);
            if let Some(variable) = self.variable_mut(number) {
                variable.learn(define.as_deref(), *declared, choices);
                variable.sensitive |= sensitive;
                variable.versions.insert(version);
            }
            if let Some((_, version)) = self.versions.get_index_mut(version) {
                version.variables.push(number);
                if !value.is_null() && !matches!(place, VariablePlace::Session) {
                    version.initial.insert(number, value.clone());
                }
            }
        }
    }

    /// A variable that no declaration has, such as one of the command line.
    pub(crate) fn add(&mut self, place: &VariablePlace, scope: Scope, name: &str) -> usize {
        let entry = self.variables.entry((place.clone(), name.to_owned()));
        let number = entry.index();
        entry.or_insert_with(|| CatalogVariable {
            scope,
            place: place.clone(),
            name: name.to_owned(),
            define: None,
            declared: IndexSet::new(),
            choices: vec![],
            sensitive: false,
            asked_in: IndexSet::new(),
            set_by: IndexSet::new(),
            versions: IndexSet::new(),
            observed: ObservedTypes::default(),
            elements: ObservedElements::default(),
            cases: 0,
            filled: 0,
        });
        number
    }

    /// The variables that an action asks for, and those inside it.
    fn outputs(&mut self, phase: &Phase, topic: &Topic, step: &ProgramStep) {
        let asked_in = format!("{}/{}/{}", phase.id, topic.id, step.id);
        for output in step.action.outputs().iter().chain(step.action.form()) {
            let place = place_of(output, phase, topic);
            let number = self.find(&place, &output.get);
            if let Some(variable) = number.and_then(|number| self.variable_mut(number)) {
                // What is appended is an element, or a list of elements.
                let declared = output.declared.filter(|_| !output.append);
                variable.learn(output.define.as_deref(), declared, &output.choices);
                variable.asked_in.insert(asked_in.clone());
            }
        }
        for steps in step.lists() {
            steps.iter().for_each(|inner| self.outputs(phase, topic, inner));
        }
    }
}

/// Whether the elements of a list are sensitive because the list is.
fn has_sensitive_list(each: &ForEach, program: &Program, phase: &Phase, topic: &Topic) -> bool {
    let all = [&program.globals, &program.declarations, &phase.declarations, &topic.declarations];
    let is_sensitive = |name: &str| all.iter().any(|declared| declared.get(name).is_some_and(|found| found.sensitive));
    each.list.names().iter().any(|used| is_sensitive(&used.name))
}

/// Where an output writes to: the nearest place that has the name, unless the author gives a scope.
fn place_of(output: &OutputVariable, phase: &Phase, topic: &Topic) -> VariablePlace {
    let is_in = |scope: Scope, declarations: &DeclarationMap| {
        output.scope.map_or_else(|| declarations.contains_key(&output.get), |given| given == scope)
    };
    if is_in(Scope::Topic, &topic.declarations) {
        return VariablePlace::Topic(phase.id.clone(), topic.id.clone());
    }
    if is_in(Scope::Phase, &phase.declarations) {
        return VariablePlace::Phase(phase.id.clone());
    }
    VariablePlace::Session
}
