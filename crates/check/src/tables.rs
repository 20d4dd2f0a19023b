//! What stands beside the actions: routes, triggers, the list of `for_each`.

use crate::checker::Checker;
use crate::collected::{AssignmentKind, Definition, ExpressionRole, RoutesFact};
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::fields::{Fields, TextField};
use bcc_lang::script::routes::{OnExit, WrittenTrigger};
use bcc_lang::source::span::Spanned;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::scopes::{Declaration, DeclarationMap, Scope};
use bcc_runtime::program::assignments::read_values;
use bcc_runtime::program::kind::KindChecker;
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::routes::{Route, RouteTable, Trigger};

impl Checker<'_> {
    /// Checks the table of routes that stands here, if there is one, and keeps it. A reason that does not exist is left out:
    /// a rule reports it.
    pub fn routes(&mut self, on_exit: Option<&OnExit>) -> RouteTable {
        let Some(on_exit) = on_exit else { return RouteTable::default() };
        let mut routes = Vec::with_capacity(on_exit.routes.len());
        for written in &on_exit.routes {
            let set = written.set.as_ref().and_then(|entry| {
                let fields = Fields::none(entry.key.span, "`set`", self.file, self.findings);
                read_values(&entry.value, &fields, self)
            });
            let insert = written.insert.as_ref().map(|id| id.value.clone());
            let then = written.then.as_ref().map(|go| go.value.clone());
            let route = Route { set: set.unwrap_or_default(), insert, then };
            routes.extend(ExitReason::parse(&written.reason.value).map(|reason| (reason, route)));
        }
        let at = self.here();
        self.seen.routes.push(RoutesFact { on_exit: on_exit.clone(), at });
        RouteTable::new(routes)
    }

    /// Checks the triggers, in whose expressions `metadata` always has a value (docs/triggers.md). One of which
    /// something is missing or wrong, which is reported, is left out.
    pub fn triggers(&mut self, triggers: &[WrittenTrigger]) -> Vec<Trigger> {
        let metadata = Declaration {
            name: "metadata".into(),
            value: serde_json::Value::Null,
            declared: Some(DeclaredType::Object),
            choices: vec![],
            define: None,
            sensitive: false,
            implied: true,
        };
        self.known.enter(Scope::Topic, DeclarationMap::from_iter([("metadata".to_owned(), metadata)]));
        let mut compiled = Vec::with_capacity(triggers.len());
        for written in triggers {
            let when = written
                .when
                .as_ref()
                .and_then(|when| self.compile(when, 0..when.text.len(), ExpressionRole::Condition));
            if let (Some(when), Some(insert)) = (when, &written.insert) {
                let (id, insert) = (written.id.value.clone(), insert.value.clone());
                compiled.push(Trigger { id, when, insert, ends: written.ends, once: written.once });
            }
        }
        self.known.leave();
        self.seen.triggers.extend_from_slice(triggers);
        compiled
    }

    /// Checks the expression that gives the list of `for_each`.
    pub fn list(&mut self, words: &TextField) -> Option<Expr> {
        self.compile(words, 0..words.text.len(), ExpressionRole::List)
    }

    pub fn element(&mut self, name: &Spanned<String>) {
        self.learn(name, Some(Scope::Topic));
        if let Some(definition) = self.seen.definitions.last_mut() {
            let kept: &mut Definition = definition;
            kept.how = AssignmentKind::Element;
        }
    }
}
