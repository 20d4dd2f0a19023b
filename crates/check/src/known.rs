//! Which names have a value at a point of the script, as far as its text tells.

use std::sync::Arc;

use bcc_lang::value::scopes::{Declaration, DeclarationMap, Scope};

/// The names of one open scope.
#[derive(Debug)]
struct Open {
    scope: Scope,
    declared: DeclarationMap,
    /// Extracted or set without being declared anywhere: they hold null until then.
    learned: DeclarationMap,
}

impl Open {
    fn holds(&self, name: &str) -> bool {
        self.declared.contains_key(name) || self.learned.contains_key(name)
    }
}

/// The open scopes, widest first.
#[derive(Debug, Default)]
pub struct Known {
    open: Vec<Open>,
}

impl Known {
    pub fn enter(&mut self, scope: Scope, declared: DeclarationMap) {
        self.open.push(Open { scope, declared, learned: DeclarationMap::new() });
    }

    /// Leaves the narrowest scope; gives its declarations, those that were learned included.
    pub fn leave(&mut self) -> Arc<DeclarationMap> {
        let Some(open) = self.open.pop() else { return Arc::default() };
        let mut all = open.declared;
        for (name, declaration) in open.learned {
            all.entry(name).or_insert(declaration);
        }
        Arc::new(all)
    }

    /// From here on, `name` may have a value: in `scope` when given, else where it is declared, else in the session. Gives
    /// that scope.
    pub fn learn(&mut self, name: &str, scope: Option<Scope>) -> Scope {
        if let (None, Some(holds)) = (scope, self.open.iter().rev().find(|open| open.holds(name))) {
            return holds.scope;
        }
        let scope = scope.unwrap_or(Scope::Session);
        // What another scope says about the name holds in this one too: above all that it is sensitive.
        let like = self.declaration(name).cloned();
        if let Some(open) = self.open.iter_mut().rev().find(|open| open.scope == scope) {
            if open.declared.contains_key(name) {
                return scope;
            }
            let null = serde_json::Value::Null;
            let learned = match like {
                Some(like) => Declaration { value: null, implied: true, ..like },
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
        self.open.iter().any(|open| open.holds(name))
    }

    /// The nearest declaration of `name`, learned ones included.
    pub fn declaration(&self, name: &str) -> Option<&Declaration> {
        self.open.iter().rev().find_map(|open| open.declared.get(name).or_else(|| open.learned.get(name)))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.open.iter().flat_map(|open| open.declared.keys().chain(open.learned.keys())).map(String::as_str)
    }
}
