//! Checks routes, triggers and the list of `for_each`.

use crate::checker::Checker;
use crate::collected::{AssignmentKind, CollectedRoutes, ExpressionRole};
use bcc_lang::expr::parse::Expr;
use bcc_lang::script::fields::{Fields, TextField};
use bcc_lang::script::route_parser::{OnChange, OnExit, RouteTarget, WrittenRoute, WrittenTrigger};
use bcc_lang::source::span::Spanned;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::scopes::{Declaration, DeclarationMap, Scope};
use bcc_runtime::actions::conversation::outputs::read_hear;
use bcc_runtime::program::assignments::read_values;
use bcc_runtime::program::kind::KindChecker;
use bcc_runtime::program::outcome::ExitReason;
use bcc_runtime::program::route_table::{ChangeTable, Route, RouteTable, Trigger};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The kinds whose replies have the fields that an output of `hear` must not be named like.
const HEARING_KINDS: [&str; 2] = ["ai_ask", "collect"];

impl Checker<'_> {
    /// Checks and records the table of routes at the current position, if there is one. A reason that does not exist is
    /// omitted: a rule reports it.
    pub fn routes(&mut self, on_exit: Option<&OnExit>) -> RouteTable {
        let Some(on_exit) = on_exit else { return RouteTable::default() };
        let mut routes = Vec::with_capacity(on_exit.routes.len());
        for written in &on_exit.routes {
            let route = self.route(written);
            routes.extend(ExitReason::parse(&written.reason.value).map(|reason| (reason, route)));
        }
        let at = self.position();
        self.collected.routes.push(CollectedRoutes { on_exit: on_exit.clone(), at, is_on_change: false });
        RouteTable::new(routes)
    }

    fn route(&mut self, written: &WrittenRoute) -> Route {
        let set = written.set.as_ref().and_then(|entry| {
            let fields = Fields::absent(entry.key.span, "`set`", self.file, self.findings);
            read_values(&entry.value, &fields, self)
        });
        let insert = written.insert.as_ref().map(|id| id.value.clone());
        let then = written.then.as_ref().map(|target| target.value.clone());
        Route { set: set.unwrap_or_default(), insert, then }
    }

    /// Checks and records the table `on_change` at the current position, if there is one.
    pub fn changes(&mut self, on_change: Option<&OnChange>) -> ChangeTable {
        let Some(OnChange { routes }) = on_change else { return ChangeTable::default() };
        let mut table: Vec<(String, Route)> = Vec::with_capacity(routes.len());
        for written in routes {
            self.require_known(&written.reason);
            let route = self.route(written);
            table.push((written.reason.value.clone(), route));
        }
        let (at, on_exit) = (self.position(), OnExit { routes: routes.clone() });
        self.collected.routes.push(CollectedRoutes { on_exit, at, is_on_change: true });
        ChangeTable::new(table)
    }

    /// Checks a `hear` list and opens it for the actions below the current position; [`Checker::stop_hearing`] closes it.
    pub fn hear(&mut self, items: &[Arc<YamlNode>]) {
        let mut heard = vec![];
        if let Some(first) = items.first() {
            let fields = Fields::absent(first.span, "`hear`", self.file, self.findings);
            let bases = HEARING_KINDS.map(|kind| self.reply_schema(kind, 1, &fields));
            let names = bases.iter().flatten().flat_map(|base| base.names().iter().cloned());
            let reserved: Vec<String> = names.collect::<BTreeSet<_>>().into_iter().collect();
            heard = read_hear(&fields, items, &reserved, self).unwrap_or_default();
        }
        self.heard.push(heard);
    }

    pub fn stop_hearing(&mut self) {
        self.heard.pop();
    }

    /// Checks the triggers, in whose expressions `metadata` always has a value (docs/triggers.md). A trigger that is
    /// incomplete or wrong is reported and omitted.
    pub fn triggers(&mut self, triggers: &[WrittenTrigger]) -> Vec<Trigger> {
        let metadata = Declaration {
            name: "metadata".into(),
            value: ExactValue::default(),
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
            if let Some(when) = when.filter(|_| written.insert.is_some() || written.goto().is_some()) {
                let (id, insert) = (written.id.value.clone(), written.insert.as_ref().map(|id| id.value.clone()));
                let then = written.then.as_ref().map_or(RouteTarget::Resume, |then| then.value.clone());
                compiled.push(Trigger { id, when, insert, then, once: written.once });
            }
        }
        self.known.leave();
        self.collected.triggers.extend_from_slice(triggers);
        compiled
    }

    /// Checks the expression of the list of `for_each`.
    pub fn list(&mut self, field: &TextField) -> Option<Expr> {
        self.compile(field, 0..field.text.len(), ExpressionRole::List)
    }

    pub fn element(&mut self, name: &Spanned<String>) {
        self.may_have_value(name, Some(Scope::Topic));
        if let Some(definition) = self.collected.definitions.last_mut() {
            definition.how = AssignmentKind::Element;
        }
    }
}
