//! Starts a new session: its first rows, and the way to its first action.

use bcc_lang::message::argument::ToMessage;
use bcc_lang::message::message::Message;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::notebook::given::GivenNotebook;
use crate::notebook::large_outputs::{MIN_KEPT_BYTES, large_parts, refer};
use crate::notebook::state::NotebookState;
use crate::plan::access::PlanAccess;
use crate::program::event::Event;
use crate::program::limits::Budget;
use crate::program::location::EventLocation;
use crate::program::program::Program;
use crate::program::services::Services;
use crate::program::shown_cell::ShownCell;
use crate::run::draft::CommitDraft;
use crate::run::error::RunError;
use crate::run::frames::Frames;
use crate::run::head::{Head, SessionStatus};
use crate::run::held_commits::HeldCommits;
use crate::run::mailbox::Mailbox;
use crate::run::notebook::{StoredCells, cell_row, write_state};
use crate::run::planner::Planner;
use crate::run::resume::user_layer;
use crate::run::session::Session;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::mask::Masker;
use bcc_lang::value::scopes::{Scope, Scopes, Stored};
use bcc_store::contract::{SessionLock, Store};
use bcc_store::rows::{DocumentRow, NewSessionRow, TextRow, VariableRow};

/// The parts of a session, whether it is started or resumed.
pub struct SessionParts {
    pub id: String,
    pub program: Arc<Program>,
    pub services: Services,
    pub store: Arc<dyn Store>,
    pub lock: Arc<dyn SessionLock>,
    /// The script, as named in events.
    pub script: String,
    /// The model, as named in events.
    pub model: String,
    /// The budget, if set outside the script.
    pub budget: Budget,
}

/// The additional parts of a new session.
pub struct NewSession {
    /// The user whose global variables it uses.
    pub user: String,
    pub script_sha256: String,
    /// The start settings, as JSON; for a later resume.
    pub settings: String,
    /// The manifest of pinned documents, as JSON.
    pub manifest: String,
    pub documents: Vec<DocumentRow>,
    /// Initial values of variables, for the scopes that declare them.
    pub given: Vec<(String, ExactValue)>,
    /// The notebook with which it begins, unless that is empty.
    pub notebook: Option<GivenNotebook>,
}

impl Session {
    /// A session without any history.
    pub(crate) fn empty(parts: SessionParts) -> Self {
        let SessionParts { id, program, services, store, lock, script, model, .. } = parts;
        let held: Arc<HeldCommits> = Arc::default();
        Self {
            counted_until_ms: services.clock.elapsed_ms(),
            notebook: NotebookState::default(),
            cells: StoredCells::new(Arc::clone(&store), Arc::clone(&held), &id),
            due: Mutex::default(),
            recent: program.recent_transcript(),
            id,
            services,
            plans: PlanAccess::new(Arc::clone(&store), ""),
            store,
            status: SessionStatus::Running,
            head: Head::default(),
            answers: 0,
            revision: 0,
            last_seq: 0,
            frames: Frames::new(),
            scopes: Scopes::default(),
            outer: vec![],
            compensations: BTreeMap::new(),
            stored_variables: None,
            branches: BTreeMap::new(),
            branch_requests: BTreeMap::new(),
            triggers_checked: false,
            metadata: serde_json::Map::new(),
            changed: Vec::new(),
            written_in_turn: Vec::new(),
            change_way: None,
            counters: BTreeMap::new(),
            request: None,
            pending: None,
            masker: Masker::default(),
            inbox: Arc::default(),
            held,
            halted: None,
            decided_only: None,
            script,
            model,
            lock,
            base: Arc::clone(&program),
            program,
            mailbox: Mailbox::default(),
            planner: Planner::default(),
            changed_counters: vec![],
            next_job: None,
            deferred: (vec![], None),
        }
    }

    /// Starts a session and commits its first rows. No message is sent yet.
    /// Errors: The id is taken, the store failed, or a given variable does not fit its declaration.
    pub async fn start(parts: SessionParts, new_session: NewSession) -> Result<Self, RunError> {
        let budget = parts.budget;
        let mut session = Self::empty(parts);
        session.plans = PlanAccess::new(Arc::clone(&session.store), &new_session.user)
            .for_session(&session.id, &new_session.settings);
        let program = Arc::clone(&session.program);
        let user_rows = session.store.user_variables(&new_session.user).await?;
        session.take_budget(budget)?;
        let mut draft = CommitDraft::default();
        let started = Event::SessionStarted { script: session.script.clone(), model: session.model.clone() };
        draft.event(&EventLocation::default(), started);
        session.open_wide_scopes(&program, &user_rows, &mut draft)?;
        session.set_given(new_session.given, &mut draft)?;
        if let Some(notebook) = new_session.notebook {
            session.add_given_notebook(notebook, &mut draft)?;
        }
        session.walk_on(&EventLocation::default(), &mut draft);
        let row = NewSessionRow {
            id: session.id.clone(),
            user: new_session.user,
            script: program.id.clone(),
            script_name: program.name.clone(),
            script_sha256: new_session.script_sha256,
            started_at: session.services.clock.at(1),
            settings: new_session.settings,
            manifest: new_session.manifest,
            texts: None,
        };
        let prepared = session.prepare(draft)?;
        session.store.create(&row, &new_session.documents, &prepared.commit).await?;
        session.created(&prepared);
        Ok(session)
    }

    /// Adds the notebook with which the session begins.
    fn add_given_notebook(&mut self, notebook: GivenNotebook, draft: &mut CommitDraft) -> Result<(), RunError> {
        let GivenNotebook { state, cells } = notebook;
        let unreadable =
            |id: &str, error: serde_json::Error| RunError::Unreadable { id: id.to_owned(), what: error.to_message() };
        self.notebook = state;
        let mut texts: BTreeMap<String, TextRow> = BTreeMap::new();
        for mut cell in cells {
            for part in large_parts(&cell.outputs, MIN_KEPT_BYTES) {
                refer(&mut cell.outputs, &part);
                texts.insert(part.row.sha256.clone(), part.row);
            }
            draft.cells.push(cell_row(&cell).map_err(|error| unreadable(&self.id, error))?);
            draft.event(&EventLocation::default(), Event::Cell(Box::new(ShownCell::of(&cell))));
        }
        self.notebook.kept_bytes = texts.values().map(|row| row.text.len() as u64).sum();
        draft.texts.extend(texts.into_values());
        let at = self.services.clock.at(self.last_seq + 1);
        write_state(&mut self.notebook, &NotebookState::default(), &at, draft)
            .map_err(|error| unreadable(&self.id, error))
    }

    /// The global scope, with values of the user's earlier sessions, and the session scope.
    fn open_wide_scopes(
        &mut self,
        program: &Program,
        rows: &[VariableRow],
        draft: &mut CommitDraft,
    ) -> Result<(), RunError> {
        let unreadable = |what: Message| RunError::Unreadable { id: self.id.clone(), what };
        let stored_layer = user_layer(program, rows).map_err(unreadable)?;
        let mut fresh = CommitDraft::default();
        let mut global = self
            .fresh_layer(Scope::Global, String::new(), &program.globals, &mut fresh)
            .map_err(|error| RunError::Variable(error.message))?;
        // Values of the user's earlier sessions stay; only new variables get their initial value.
        draft
            .user_variables
            .extend(fresh.user_variables.into_iter().filter(|row| stored_layer.get(&row.name).is_none()));
        let unwritable = |error: serde_json::Error| RunError::Variable(error.to_message());
        for (name, stored) in stored_layer.values() {
            global.put(name, stored.clone());
            if stored_layer.is_sensitive(name) {
                global.mark_sensitive(name);
            }
        }
        for row in rows.iter().filter(|row| {
            row.sensitive || program.globals.get(&row.name).is_some_and(|declaration| declaration.sensitive)
        }) {
            let value = ExactValue::parse(&row.value).map_err(unwritable)?;
            self.hide(&value, draft).map_err(unwritable)?;
        }
        self.scopes.push(global);
        let session = self
            .fresh_layer(Scope::Session, String::new(), &program.declarations, draft)
            .map_err(|error| RunError::Variable(error.message))?;
        self.scopes.push(session);
        Ok(())
    }

    fn set_given(&mut self, given: Vec<(String, ExactValue)>, draft: &mut CommitDraft) -> Result<(), RunError> {
        let at = self.services.clock.at(1);
        for (name, value) in given {
            let stored = Stored { value, source: "command_line".into(), round: None, at: at.clone() };
            let Some(written) = self.scopes.write(&name, stored.clone(), None) else { continue };
            if written.sensitive {
                self.hide(&stored.value, draft).map_err(|error| RunError::Variable(error.to_message()))?;
            }
            draft
                .variable(written.scope, &written.path, &name, &stored, written.sensitive)
                .map_err(|error| RunError::Variable(error.to_message()))?;
        }
        Ok(())
    }
}
