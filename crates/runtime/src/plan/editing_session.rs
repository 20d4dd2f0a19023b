//! The session that edits plans: the keys of its edits, and whether it knows sensitive values.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use crate::plan::task::PlanHead;

/// The maximum number of editors of a plan that are remembered. A plan with one more has too many to tell its sensitive values.
pub const MAX_EDITORS: usize = 100;

/// A session with sensitive values that edited a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEditor {
    pub session: String,
    /// Tells it from other sessions with its id. Sessions of earlier releases have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
}

impl PlanEditor {
    /// The session that was started with these settings. Those of earlier releases, and of programs that have settings of their own, have no
    /// nonce.
    pub fn of(session: &str, settings: &str) -> Self {
        let StartSettings { nonce } = serde_json::from_str(settings).unwrap_or_default();
        Self { session: session.to_owned(), nonce }
    }
}

/// What the settings with which a session was started say of it.
#[derive(Default, Deserialize)]
struct StartSettings {
    #[serde(default)]
    nonce: Option<String>,
}

/// The session that uses the plans of its user; clones share whether it knows sensitive values.
#[derive(Clone, Debug, Default)]
pub(crate) struct EditingSession {
    editor: PlanEditor,
    /// What the keys of its edits begin with, and those of no other session, also if it has the id of one that was deleted.
    prefix: Arc<str>,
    knows_sensitive: Arc<AtomicBool>,
}

impl EditingSession {
    pub(crate) fn new(editor: PlanEditor) -> Self {
        let PlanEditor { session, nonce } = &editor;
        let prefix = match nonce {
            Some(nonce) => format!("{session}.{nonce}@").into(),
            None => format!("{session}@").into(),
        };
        Self { editor, prefix, knows_sensitive: Arc::default() }
    }

    /// The key of an edit that was decided at this event of the session. An edit that is made again after a crash is recognized by it.
    pub(crate) fn key(&self, seq: u64, edit: &str) -> String {
        format!("{}{seq}/{edit}", self.prefix)
    }

    pub(crate) fn note_sensitive(&self) {
        self.knows_sensitive.store(true, Ordering::Relaxed);
    }

    /// Remembers the session in a plan that it edits, if what it writes may contain sensitive values.
    pub(crate) fn sign(&self, head: &mut PlanHead) {
        let is_full = head.editors.len() > MAX_EDITORS;
        if self.knows_sensitive.load(Ordering::Relaxed) && !is_full && !head.editors.contains(&self.editor) {
            head.editors.push(self.editor.clone());
        }
    }
}
