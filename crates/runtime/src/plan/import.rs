//! Stores a plan that was read from a document.

use bcc_lang::message::ToMessage;

use crate::plan::access::{PlanAccess, PlanAccessError};
use crate::plan::document::{PlanDocument, PlanDocumentError};
use crate::plan::task::PlanId;

/// Why a document was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, ToMessage)]
pub enum ImportError {
    #[error(transparent)]
    Document(PlanDocumentError),
    /// Also that the plan, or one of its tasks, has an id that is in use.
    #[error(transparent)]
    Access(PlanAccessError),
}

impl PlanAccess {
    /// Stores a plan with the ids of the document, or with new ones. Returns its id and the number of its tasks. `key` as of
    /// [`PlanAccess::edit`].
    pub async fn import(
        &self,
        mut document: PlanDocument,
        with_new_ids: bool,
        key: &str,
        at: &str,
    ) -> Result<(PlanId, usize), ImportError> {
        let store_failed = |error| ImportError::Access(PlanAccessError::from(error));
        if with_new_ids {
            // The document is checked before ids are used up.
            document.clone().tree(self.user(), at).map_err(ImportError::Document)?;
            let count = u64::try_from(document.tasks.len()).unwrap_or(u64::MAX);
            let (plan, task) = self.store().reserve_plan_ids(1, count).await.map_err(store_failed)?;
            document.renumber(plan, task);
        } else {
            document.check_kept_ids().map_err(ImportError::Document)?;
        }
        let tree = document.tree(self.user(), at).map_err(ImportError::Document)?;
        let rows = (|| Ok((tree.row()?, tree.task_rows()?)))();
        let (plan, tasks) = rows.map_err(|error| ImportError::Access(PlanAccessError::Operation(error)))?;
        self.store().create_plan(&plan, &tasks, key, "{}").await.map_err(store_failed)?;
        Ok((tree.id(), tree.len()))
    }
}
