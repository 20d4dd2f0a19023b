//! The four scopes of variables and the narrowest-first lookup (docs/language.md "Variables").

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::value::declared::DeclaredType;
use crate::value::exact::ExactValue;

/// The scope of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Persists across the sessions of one user.
    Global,
    Session,
    /// Lasts for one visit of a phase.
    Phase,
    /// Lasts for one visit of a topic.
    Topic,
}

impl Scope {
    /// Every scope, widest first.
    pub const ALL: [Self; 4] = [Self::Global, Self::Session, Self::Phase, Self::Topic];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// The name that an author writes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Session => "session",
            Self::Phase => "phase",
            Self::Topic => "topic",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A variable as declared: an item of `declare`.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    pub name: String,
    /// The initial value; null if the author gave none.
    pub value: ExactValue,
    /// Its type, if the author gave one.
    pub declared: Option<DeclaredType>,
    /// The allowed values, if the author listed them.
    pub choices: Vec<Value>,
    /// Its description for prompts.
    pub define: Option<String>,
    /// Whether its value must be masked in all output.
    pub sensitive: bool,
    /// Whether it is not in the source: an action extracts or sets the name. Until then, the value of a wider scope is visible.
    pub implied: bool,
}

pub type DeclarationMap = IndexMap<String, Declaration>;

/// A value and its origin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stored {
    pub value: ExactValue,
    /// The action that set it, or `declare`, or `command_line`.
    pub source: String,
    /// The round of that action.
    pub round: Option<u32>,
    /// The time, as RFC 3339 in UTC.
    pub at: String,
}

/// One visit of one scope: its declarations and its values.
#[derive(Clone, Debug)]
pub struct ScopeLayer {
    pub scope: Scope,
    /// The instance path of the visit, such as `phase_1` or `topic_a#2`; empty for global and session.
    pub path: String,
    declarations: Arc<DeclarationMap>,
    values: IndexMap<String, Arc<Stored>>,
    /// The names that have a sensitive value here although no declaration says so, as those of elements of a sensitive list.
    marked: BTreeSet<String>,
}

/// The layer to which a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenAt {
    pub scope: Scope,
    /// The instance path of that scope's visit.
    pub path: String,
    /// Whether the name is sensitive in any visible layer.
    pub sensitive: bool,
}

/// The layers that are visible at one position of a script, widest first. Cloning is cheap: a write to a clone copies only the
/// layer that it changes. A turn works on a clone, so a failed turn changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Scopes {
    layers: Vec<Arc<ScopeLayer>>,
    /// Whether these are the scopes of a skill: all writes go to the narrowest layer, whatever scope they name.
    isolated: bool,
    /// In a branch, in which all writes go to the narrowest layer as well: how many layers are not those of branches.
    outside: Option<usize>,
}

impl ScopeLayer {
    /// Creates a layer with these declarations and without values.
    pub fn new(scope: Scope, path: impl Into<String>, declarations: Arc<DeclarationMap>) -> Self {
        Self { scope, path: path.into(), declarations, values: IndexMap::new(), marked: BTreeSet::new() }
    }

    pub fn put(&mut self, name: impl Into<String>, stored: Stored) {
        self.values.insert(name.into(), Arc::new(stored));
    }

    /// Makes the value of `name` sensitive, whatever its declaration says.
    pub fn mark_sensitive(&mut self, name: impl Into<String>) {
        self.marked.insert(name.into());
    }

    /// Whether `name` is declared as sensitive in this layer, or has a sensitive value here.
    pub fn is_sensitive(&self, name: &str) -> bool {
        self.marked.contains(name) || self.declaration(name).is_some_and(|declaration| declaration.sensitive)
    }

    /// The values in the order in which they were first set.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Stored)> {
        self.values.iter().map(|(name, stored)| (name.as_str(), stored.as_ref()))
    }

    pub fn get(&self, name: &str) -> Option<&Stored> {
        self.values.get(name).map(Arc::as_ref)
    }

    /// Whether the author declared `name` in this layer.
    fn declares(&self, name: &str) -> bool {
        self.declarations.get(name).is_some_and(|declaration| !declaration.implied)
    }

    pub fn declarations(&self) -> &DeclarationMap {
        &self.declarations
    }

    pub fn declaration(&self, name: &str) -> Option<&Declaration> {
        self.declarations.get(name)
    }
}

impl Scopes {
    /// The scopes of a skill: only this layer is visible, and all writes go to it.
    pub fn isolated(layer: ScopeLayer) -> Self {
        Self { layers: vec![Arc::new(layer)], isolated: true, outside: None }
    }

    /// The scopes of a branch: it sees what is visible here, and its own writes go to a layer with this path. That layer has every visible
    /// declaration, so that values keep their types.
    /// It also sees `seen`, the layers of other branches.
    pub fn branch(&self, seen: Self, path: impl Into<String>) -> Self {
        let outside = self.outside.or(Some(self.layers.len()));
        let mut branch = Self { layers: self.layers.clone(), isolated: false, outside };
        branch.layers.extend(seen.layers);
        let mut declarations = DeclarationMap::new();
        for (name, declaration) in branch.layers.iter().rev().flat_map(|layer| &*layer.declarations) {
            let implied = || Declaration { implied: true, value: ExactValue::default(), ..declaration.clone() };
            declarations.entry(name.clone()).or_insert_with(implied);
        }
        branch.push(ScopeLayer::new(Scope::Topic, path, Arc::new(declarations)));
        branch
    }

    /// The layer that is written to in a branch or a skill.
    pub fn narrowest(&self) -> Option<&Arc<ScopeLayer>> {
        self.layers.last()
    }

    /// Adds a layer that other scopes have, too.
    pub fn push_shared(&mut self, layer: Arc<ScopeLayer>) {
        self.layers.push(layer);
    }

    /// Puts a value into the narrowest layer.
    pub fn restore(&mut self, name: String, stored: Stored, sensitive: bool) {
        if let Some(layer) = self.layers.last_mut().map(Arc::make_mut) {
            if sensitive {
                layer.mark_sensitive(name.clone());
            }
            layer.put(name, stored);
        }
    }

    /// Makes the value that `name` has in the narrowest layer sensitive.
    pub fn mark_sensitive(&mut self, name: &str) {
        if let Some(layer) = self.layers.last_mut() {
            Arc::make_mut(layer).mark_sensitive(name);
        }
    }

    /// Whether `name` is sensitive. A name that is sensitive in one scope is sensitive in every scope.
    pub fn is_sensitive(&self, name: &str) -> bool {
        self.layers.iter().any(|layer| layer.is_sensitive(name))
    }

    /// Puts values into the global layer, where they differ from those that it has. Returns whether any does.
    pub fn refresh_globals(&mut self, stored: &ScopeLayer) -> bool {
        let mut is_new = false;
        for layer in self.layers.iter_mut().filter(|layer| layer.scope == Scope::Global) {
            for (name, value) in
                stored.values().filter(|(name, value)| layer.get(name) != Some(value)).collect::<Vec<_>>()
            {
                let layer = Arc::make_mut(layer);
                layer.put(name, value.clone());
                if stored.marked.contains(name) {
                    layer.mark_sensitive(name);
                }
                is_new = true;
            }
        }
        is_new
    }

    /// Only the global and session layers.
    pub fn session_scopes(&self) -> Self {
        let is_session = |layer: &&Arc<ScopeLayer>| matches!(layer.scope, Scope::Global | Scope::Session);
        Self {
            layers: self.layers.iter().filter(is_session).map(Arc::clone).collect(),
            isolated: self.isolated,
            outside: None,
        }
    }

    /// Whether these are the scopes of a skill.
    pub fn is_isolated(&self) -> bool {
        self.isolated
    }

    /// Whether these are the scopes of a branch, whose writes stay its own until all branches have ended.
    pub fn is_branch(&self) -> bool {
        self.outside.is_some()
    }

    pub fn push(&mut self, layer: ScopeLayer) {
        self.layers.push(Arc::new(layer));
    }

    pub fn pop(&mut self) -> Option<Arc<ScopeLayer>> {
        self.layers.pop()
    }

    pub fn layers(&self) -> impl Iterator<Item = &ScopeLayer> {
        self.layers.iter().map(Arc::as_ref)
    }

    /// Looks up `name` in topic, phase, session, global. A name that a scope declares and that was never set there has no value, even if
    /// a wider scope has one.
    pub fn get(&self, name: &str) -> Option<&Stored> {
        self.layers.iter().rev().find(|layer| layer.get(name).is_some() || layer.declares(name))?.get(name)
    }

    /// The layer to which `name` is written: that of `scope` if given, else the nearest that declares or contains it, else that of the
    /// session. `None` if there is no open layer of that scope.
    pub fn target(&self, name: &str, scope: Option<Scope>) -> Option<&ScopeLayer> {
        self.layers.get(self.target_position(name, scope)?).map(Arc::as_ref)
    }

    fn target_position(&self, name: &str, scope: Option<Scope>) -> Option<usize> {
        if self.isolated || self.is_branch() {
            return self.layers.len().checked_sub(1);
        }
        position_in(&self.layers, name, scope)
    }

    /// The value that a write to `name` replaces. In a branch that has not set `name`, it is the one that is replaced when all branches have
    /// ended: of a branch that this one depends on, or outside of branches.
    pub fn replaced(&self, name: &str, scope: Option<Scope>) -> Option<&Stored> {
        let Some((outside, branches)) = self.outside.and_then(|outside| self.layers.split_at_checked(outside)) else {
            return self.target(name, scope)?.get(name);
        };
        let of_branches = branches.iter().rev().find_map(|layer| layer.get(name));
        of_branches.or_else(|| {
            let position = position_in(outside, name, scope).or_else(|| position_in(outside, name, None))?;
            outside.get(position)?.get(name)
        })
    }

    pub fn declaration(&self, name: &str) -> Option<&Declaration> {
        self.layers.iter().rev().find_map(|layer| layer.declaration(name))
    }

    /// Every name that has a value, narrowest layer first, each once. Within a layer the names are sorted, because prompts list them and a
    /// resumed session does not know the order of the writes.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for layer in self.layers.iter().rev() {
            let mut own: Vec<&str> = layer.values.keys().map(String::as_str).collect();
            own.sort_unstable();
            own.retain(|name| !names.contains(name));
            names.extend(own);
        }
        names
    }

    /// Writes `name` to the layer that [`target`](Self::target) selects, and returns that layer.
    ///
    /// `None` if there is no open layer of that scope (a `scope: topic` outside a topic).
    pub fn write(&mut self, name: &str, stored: Stored, scope: Option<Scope>) -> Option<WrittenAt> {
        let position = self.target_position(name, scope)?;
        if let Some(layer) = self.layers.get_mut(position).filter(|layer| layer.scope == Scope::Global) {
            // The mark is that of a value of another script of the same user.
            Arc::make_mut(layer).marked.remove(name);
        }
        let sensitive = self.is_sensitive(name);
        let layer = Arc::make_mut(self.layers.get_mut(position)?);
        layer.put(name, stored);
        if sensitive {
            layer.mark_sensitive(name);
        }
        Some(WrittenAt { scope: layer.scope, path: layer.path.clone(), sensitive })
    }
}

/// The layer of `layers` to which `name` is written.
fn position_in(layers: &[Arc<ScopeLayer>], name: &str, scope: Option<Scope>) -> Option<usize> {
    match scope {
        Some(scope) => layers.iter().rposition(|layer| layer.scope == scope),
        None => layers
            .iter()
            .rposition(|layer| layer.get(name).is_some() || layer.declares(name))
            .or_else(|| layers.iter().rposition(|layer| layer.scope == Scope::Session)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn stored(value: Value) -> Stored {
        Stored { value: value.into(), source: "test".into(), round: None, at: "2026-11-21T00:00:00Z".into() }
    }

    fn layer(scope: Scope, path: &str, declared: &[&str]) -> ScopeLayer {
        let declarations = declared
            .iter()
            .map(|name| {
                let declaration = Declaration {
                    name: (*name).into(),
                    value: ExactValue::default(),
                    declared: None,
                    choices: vec![],
                    define: None,
                    sensitive: *name == "secret",
                    implied: *name == "implied",
                };
                ((*name).to_owned(), declaration)
            })
            .collect();
        ScopeLayer::new(scope, path, Arc::new(declarations))
    }

    fn scopes() -> Scopes {
        let mut scopes = Scopes::default();
        scopes.push(layer(Scope::Global, "", &["mood"]));
        scopes.push(layer(Scope::Session, "", &["name", "secret"]));
        scopes.push(layer(Scope::Phase, "p", &["name"]));
        scopes.push(layer(Scope::Topic, "t#2", &["step"]));
        scopes
    }

    #[test]
    fn the_order_of_names_does_not_depend_on_the_order_of_writes() {
        let written = |order: [&str; 3]| {
            let mut scopes = scopes();
            for name in order {
                scopes.write(name, stored(json!(1)), Some(Scope::Session)).unwrap();
            }
            scopes.write("step", stored(json!(2)), None).unwrap();
            scopes.names().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(written(["b", "name", "a"]), ["step", "a", "b", "name"]);
        assert_eq!(written(["a", "b", "name"]), written(["name", "b", "a"]));
    }

    #[test]
    fn a_write_goes_to_the_narrowest_scope_that_declares_the_name() {
        let mut scopes = scopes();
        let written = |scopes: &mut Scopes, name: &str| scopes.write(name, stored(json!(1)), None).unwrap().scope;
        assert_eq!(written(&mut scopes, "name"), Scope::Phase);
        assert_eq!(written(&mut scopes, "step"), Scope::Topic);
        assert_eq!(written(&mut scopes, "mood"), Scope::Global);
        assert_eq!(written(&mut scopes, "declared_nowhere"), Scope::Session);
    }

    #[test]
    fn an_explicit_scope_wins_over_declarations() {
        let mut scopes = scopes();
        let written = scopes.write("name", stored(json!("x")), Some(Scope::Topic)).unwrap();
        assert_eq!((written.scope, written.path.as_str()), (Scope::Topic, "t#2"));
        scopes.pop();
        assert!(scopes.write("name", stored(json!("x")), Some(Scope::Topic)).is_none());
    }

    #[test]
    fn a_declaration_without_a_value_hides_a_wider_value() {
        let mut scopes = scopes();
        scopes.write("step", stored(json!("wide")), Some(Scope::Session));
        assert!(scopes.get("step").is_none(), "the topic declares `step` and holds null");
        scopes.pop();
        assert_eq!(scopes.get("step").unwrap().value, json!("wide"));
    }

    #[test]
    fn a_name_that_is_sensitive_anywhere_is_sensitive_in_every_scope() {
        let mut scopes = scopes();
        assert!(scopes.write("secret", stored(json!("s")), Some(Scope::Topic)).unwrap().sensitive);
        assert!(!scopes.write("step", stored(json!("s")), Some(Scope::Session)).unwrap().sensitive);
        // Without a declaration.
        scopes.mark_sensitive("element");
        assert!(scopes.write("element", stored(json!(35)), Some(Scope::Session)).unwrap().sensitive);
        assert!(scopes.branch(Scopes::default(), "t#2/all/=a").is_sensitive("element"));
    }

    #[test]
    fn reading_looks_in_topic_phase_session_global() {
        let mut scopes = scopes();
        for scope in Scope::ALL {
            scopes.write("x", stored(json!(scope.name())), Some(scope));
            assert_eq!(scopes.get("x").unwrap().value, json!(scope.name()));
        }
    }

    #[test]
    fn leaving_a_scope_removes_its_values() {
        let mut scopes = scopes();
        scopes.write("step", stored(json!(1)), None);
        scopes.pop();
        assert!(scopes.get("step").is_none());
    }

    #[test]
    fn a_branch_sees_everything_and_writes_to_its_own_layer() {
        let mut outside = scopes();
        outside.write("name", stored(json!("before")), None);
        let mut branch = outside.branch(Scopes::default(), "t#2/all/=a");
        assert_eq!(branch.get("name").unwrap().value, json!("before"));
        let written = branch.write("secret", stored(json!("s")), Some(Scope::Session)).unwrap();
        assert_eq!((written.path.as_str(), written.sensitive), ("t#2/all/=a", true));
        branch.write("name", stored(json!("after")), None);
        assert_eq!(branch.get("name").unwrap().value, json!("after"));
        assert_eq!(outside.get("name").unwrap().value, json!("before"));
        assert_eq!(branch.narrowest().unwrap().values().count(), 2);
    }

    #[test]
    fn a_branch_replaces_its_own_value_that_of_a_branch_before_it_or_the_one_outside() {
        let mut outside = scopes();
        outside.write("name", stored(json!("session")), Some(Scope::Session));
        outside.write("step", stored(json!("topic")), None);
        let replaced =
            |scopes: &Scopes, name: &str, scope| scopes.replaced(name, scope).map(|found| found.value.clone());
        assert_eq!(replaced(&outside, "step", None), Some(json!("topic").into()));
        assert_eq!(replaced(&outside, "step", Some(Scope::Session)), None);
        let mut first = outside.branch(Scopes::default(), "t#2/all/=a");
        assert_eq!(replaced(&first, "step", None), Some(json!("topic").into()));
        assert_eq!(replaced(&first, "step", Some(Scope::Session)), None);
        assert_eq!(replaced(&first, "name", Some(Scope::Session)), Some(json!("session").into()));
        first.write("name", stored(json!("first")), Some(Scope::Session));
        assert_eq!(replaced(&first, "name", Some(Scope::Session)), Some(json!("first").into()));
        let mut seen = Scopes::default();
        seen.push_shared(Arc::clone(first.narrowest().unwrap()));
        let second = outside.branch(seen, "t#2/all/=b").branch(Scopes::default(), "t#2/all/=b/inner/=c");
        assert_eq!(replaced(&second, "name", None), Some(json!("first").into()));
        assert_eq!(replaced(&second, "step", None), Some(json!("topic").into()));
    }

    #[test]
    fn a_write_to_a_clone_does_not_change_the_original() {
        let base = scopes();
        let mut turn = base.clone();
        turn.write("name", stored(json!("小林")), None);
        assert!(base.get("name").is_none());
        assert!(turn.get("name").is_some());
    }
}
