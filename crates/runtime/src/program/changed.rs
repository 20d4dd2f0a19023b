//! Changes of mind: what a turn notes when it replaces the value of a variable that a table `on_change` watches (docs/routes.md).

use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_lang::value::scopes::{Scope, Stored};

use crate::program::route_table::Route;
use crate::program::turn::{PREVIOUS, Turn};
use crate::program::work::{TurnWork, VariableWrite};

impl Turn<'_> {
    /// The route of the innermost table `on_change` that watches the variable.
    pub(crate) fn change_route(&self, name: &str) -> Option<&Route> {
        [&self.topic.changes, &self.phase.changes, &self.program.changes].into_iter().find_map(|table| table.get(name))
    }

    /// Whether a value that this turn replaced leads the session elsewhere, so that a question would not be answered now.
    pub(crate) fn changes_course(&self) -> bool {
        let changed = self.work().changed.clone();
        changed.iter().any(|name| self.change_route(name).is_some_and(Route::leads_away))
    }

    /// Lets a value be masked wherever it is shown from now on, as that of a sensitive variable.
    pub(crate) fn hide(&self, value: ExactValue) {
        self.work().hidden.push(value);
    }

    /// Notes that the value of a watched variable was replaced. `before` is the value that was visible. What a branch or a skill sets is its
    /// own, and no change of the script.
    pub(crate) fn note_change(&self, work: &mut TurnWork, name: &str, before: Option<&ExactValue>, stored: &Stored) {
        let Some(before) = before.filter(|before| !before.is_null() && **before != stored.value) else { return };
        if stored.value.is_null() || work.scopes.is_isolated() || work.scopes.is_branch() {
            return;
        }
        if !work.changed.iter().any(|changed| changed == name) {
            work.changed.push(name.to_owned());
        }
        let is_declared = |name: &str| work.scopes.layers().any(|layer| layer.declaration(name).is_some());
        let is_sensitive = work.scopes.is_sensitive(name);
        // A variable of the author takes precedence over the name of the engine; and nobody sees what is sensitive under another name.
        if is_declared(PREVIOUS) || is_sensitive {
            return;
        }
        let now = work.scopes.get(PREVIOUS).map(|stored| stored.value.clone());
        let entries = self.program.watched_names.iter().map(|watched| {
            let value = now.as_ref().and_then(|now| now.field(watched)).unwrap_or_default();
            (watched.clone(), if watched == name { before.clone() } else { value })
        });
        let values: ExactValues = entries.collect();
        let stored = Stored { value: values.into_iter().collect(), ..stored.clone() };
        let Some(written) = work.scopes.write(PREVIOUS, stored.clone(), Some(Scope::Session)) else { return };
        work.writes.push(VariableWrite { name: PREVIOUS.to_owned(), written, stored, scope: Some(Scope::Session) });
    }
}
