//! What stands beside the actions: routes, triggers, the list of `for_each`.

use crate::check::checker::Checker;
use crate::check::facts::{Definition, How, Role, RoutesFact};
use crate::program::assignments::read_values;
use crate::program::kind::Checking;
use crate::script::fields::{Fields, Words};
use crate::script::routes::{OnExit, WrittenTrigger};
use crate::source::span::Spanned;
use crate::value::declared::DeclaredType;
use crate::value::scopes::{Declaration, Declarations, Scope};

impl Checker<'_> {
    /// Checks a table of routes where it stands, and keeps it.
    pub fn routes(&mut self, on_exit: &OnExit) {
        for route in &on_exit.routes {
            if let Some(entry) = &route.set {
                let fields = Fields::none(entry.key.span, "`set`", self.file, self.findings);
                read_values(&entry.value, &fields, self);
            }
        }
        let at = self.here();
        self.seen.routes.push(RoutesFact { on_exit: on_exit.clone(), at });
    }

    /// Checks the triggers, in whose expressions `metadata` always has a value (LANGUAGE.md section 10).
    pub fn triggers(&mut self, triggers: &[WrittenTrigger]) {
        let metadata = Declaration {
            name: "metadata".into(),
            value: serde_json::Value::Null,
            declared: Some(DeclaredType::Object),
            choices: vec![],
            define: None,
            sensitive: false,
            implied: true,
        };
        self.known.enter(Scope::Topic, Declarations::from_iter([("metadata".to_owned(), metadata)]));
        for trigger in triggers {
            if let Some(when) = &trigger.when {
                self.compile(when, 0..when.text.len(), Role::Condition);
            }
        }
        self.known.leave();
        self.seen.triggers.extend_from_slice(triggers);
    }

    /// Checks the expression that gives the list of `for_each`.
    pub fn list(&mut self, words: &Words) -> Option<()> {
        self.compile(words, 0..words.text.len(), Role::List).map(|_| ())
    }

    /// Makes the element of `for_each` known.
    pub fn element(&mut self, name: &Spanned<String>) {
        self.learn(name, Some(Scope::Topic));
        if let Some(definition) = self.seen.definitions.last_mut() {
            let kept: &mut Definition = definition;
            kept.how = How::Element;
        }
    }
}
