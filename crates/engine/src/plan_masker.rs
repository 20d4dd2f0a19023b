//! Decides how a plan is masked for people (docs/plans.md).

use bcc_runtime::plan::editing_session::{MAX_EDITORS, PlanEditor};
use bcc_runtime::plan::masking::PlanMasker;
use bcc_runtime::plan::task::PlanHead;
use bcc_store::contract::Store;

use crate::error::EngineError;
use crate::export::masker;
use crate::session_variables::mark_sensitive;
use crate::stored_programs::StoredPrograms;

/// The masker for the sensitive values of the sessions that made and edited a plan, and of its user.
///
/// # Errors
/// The store cannot be read.
pub async fn plan_masker(store: &dyn Store, head: &PlanHead, user: &str) -> Result<PlanMasker, EngineError> {
    if head.editors.len() > MAX_EDITORS {
        return Ok(PlanMasker::AllTexts);
    }
    let mut rows = store.variables(&head.session_id).await?;
    let programs = StoredPrograms::default();
    let mut user_rows = store.user_variables(user).await?;
    for editor in &head.editors {
        let found = store.session(&editor.session).await?;
        let Some(found) = found.filter(|row| PlanEditor::of(&row.id, &row.settings) == *editor) else {
            return Ok(PlanMasker::AllTexts);
        };
        mark_sensitive(store, &programs, &found, &mut user_rows).await;
        if editor.session != head.session_id {
            rows.extend(store.variables(&editor.session).await?);
        }
    }
    Ok(PlanMasker::Values(masker(&rows, &user_rows)?))
}
