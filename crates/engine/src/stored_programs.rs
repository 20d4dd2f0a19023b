//! The programs of stored sessions: each is read from the store and checked once, however many sessions are pinned to it.

use std::sync::Arc;

use bcc_runtime::program::program::Program;
use bcc_store::contract::Store;

use crate::error::EngineError;
use crate::pin::Pinned;
use crate::recently_used::RecentlyUsed;
use bcc_lang::source::compose::parse;

/// What a session is pinned to, and the program made from it.
#[derive(Clone)]
pub(crate) struct StoredProgram {
    pub(crate) pinned: Arc<Pinned>,
    pub(crate) program: Arc<Program>,
}

/// The programs that were needed last. A manifest has the hashes of everything that its program is made from.
#[derive(Clone, Default)]
pub(crate) struct StoredPrograms {
    by_manifest: Arc<RecentlyUsed<StoredProgram>>,
}

impl StoredPrograms {
    /// The program of a manifest.
    ///
    /// # Errors
    /// Those of [`Pinned::load`]; `Invalid` if this version finds errors in the script.
    pub(crate) async fn get(&self, store: &dyn Store, manifest: &str) -> Result<StoredProgram, EngineError> {
        if let Some(found) = self.by_manifest.get(manifest) {
            return Ok(found);
        }
        // Others are not kept waiting; at worst, a program is made twice.
        let pinned = Pinned::load(store, manifest).await?;
        let (program, diagnostics) = pinned.check(parse(&pinned.script))?;
        let program = Arc::new(program.ok_or(EngineError::Invalid(diagnostics))?);
        let stored = StoredProgram { pinned: Arc::new(pinned), program };
        Ok(self.by_manifest.put(manifest.to_owned(), stored))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bcc_store::memory::MemoryStore;

    use super::StoredPrograms;
    use crate::engine::{Engine, RunRequest};
    use crate::environment::Environment;
    use crate::project::Project;
    use crate::recently_used::MAX_RECENT;
    use bcc_runtime::program::event::{Committed, Delta, Observer};

    #[derive(Debug)]
    struct Silent;

    impl Observer for Silent {
        fn committed(&self, _: &Committed<'_>) {}

        fn delta(&self, _: &Delta<'_>) {}
    }

    #[tokio::test]
    async fn a_program_is_made_once_for_all_its_sessions_and_the_oldest_one_goes() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".bcc")).unwrap();
        let environment = Environment::default();
        let project = Project::of(folder.path(), None, false, &environment).unwrap();
        let engine = Engine::new(project, environment, Arc::new(MemoryStore::default()));
        let mut manifests = vec![];
        for number in 0..=MAX_RECENT {
            let file = folder.path().join("talk.yaml");
            let script = format!(
                "session:\n  session_id: talk\n  phases:\n    - phase_id: p\n      topics:\n        - topic_id: t\n          \
                 actions:\n            - {{ action_type: ai_ask, action_id: a, config: {{ content: 'Number {number}?' }} }}\n"
            );
            std::fs::write(&file, script).unwrap();
            let request = RunRequest { file, session: Some(format!("s{number}")), ..RunRequest::default() };
            engine.run(&request, Arc::new(Silent)).await.unwrap();
            let row = engine.store().session(&format!("s{number}")).await.unwrap().unwrap();
            manifests.push(row.manifest);
        }
        let programs = StoredPrograms::default();
        let first = programs.get(engine.store().as_ref(), &manifests[0]).await.unwrap();
        for manifest in &manifests[1..MAX_RECENT] {
            programs.get(engine.store().as_ref(), manifest).await.unwrap();
        }
        let again = programs.get(engine.store().as_ref(), &manifests[0]).await.unwrap();
        assert!(Arc::ptr_eq(&first.program, &again.program));
        // One more than are kept: the second one was needed longest ago.
        programs.get(engine.store().as_ref(), &manifests[MAX_RECENT]).await.unwrap();
        assert!(programs.by_manifest.get(&manifests[1]).is_none());
        assert!(programs.by_manifest.get(&manifests[0]).is_some() && programs.by_manifest.get(&manifests[2]).is_some());
    }
}
