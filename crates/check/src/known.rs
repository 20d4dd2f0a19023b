//! The names that are known at a point of the script.

use std::sync::Arc;

use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::scopes::{Declaration, DeclarationMap, Scope};

/// The names of one open scope.
#[derive(Debug)]
struct OpenScope {
    scope: Scope,
    declared: DeclarationMap,
    /// Names extracted or set without a declaration; they are null until then.
    learned: DeclarationMap,
}

impl OpenScope {
    fn contains(&self, name: &str) -> bool {
        self.declared.contains_key(name) || self.learned.contains_key(name)
    }
}

/// The open scopes, outermost first.
#[derive(Debug, Default)]
pub struct Known {
    open: Vec<OpenScope>,
}

impl Known {
    pub fn enter(&mut self, scope: Scope, declared: DeclarationMap) {
        self.open.push(OpenScope { scope, declared, learned: DeclarationMap::new() });
    }

    /// Leaves the innermost scope; returns its declarations, including the learned ones.
    pub fn leave(&mut self) -> Arc<DeclarationMap> {
        let Some(open) = self.open.pop() else { return Arc::default() };
        let mut all = open.declared;
        for (name, declaration) in open.learned {
            all.entry(name).or_insert(declaration);
        }
        Arc::new(all)
    }

    /// Records that `name` may have a value from now on: in `scope` if given, else where it is declared, else in the
    /// session. Returns that scope.
    pub fn learn(&mut self, name: &str, scope: Option<Scope>) -> Scope {
        if let (None, Some(declaring)) = (scope, self.open.iter().rev().find(|open| open.contains(name))) {
            return declaring.scope;
        }
        let scope = scope.unwrap_or(Scope::Session);
        // The declaration in another scope also applies to this one; above all, `sensitive` does.
        let existing = self.declaration(name).cloned();
        if let Some(open) = self.open.iter_mut().rev().find(|open| open.scope == scope) {
            if open.declared.contains_key(name) {
                return scope;
            }
            let null = ExactValue::default();
            let learned = match existing {
                Some(existing) => Declaration { value: null, implied: true, ..existing },
                None => Declaration {
                    name: name.to_owned(),
                    value: null,
                    declared: None,
                    choices: vec![],
                    define: None,
                    sensitive: false,
                    implied: true,
                },
            };
            open.learned.entry(name.to_owned()).or_insert(learned);
        }
        scope
    }

    pub fn knows(&self, name: &str) -> bool {
        self.open.iter().any(|open| open.contains(name))
    }

    /// The nearest declaration of `name`, including learned ones.
    pub fn declaration(&self, name: &str) -> Option<&Declaration> {
        self.open.iter().rev().find_map(|open| open.declared.get(name).or_else(|| open.learned.get(name)))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.open.iter().flat_map(|open| open.declared.keys().chain(open.learned.keys())).map(String::as_str)
    }
}
