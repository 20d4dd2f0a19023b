//! Which variables of a user are sensitive for a stored session.

use bcc_store::contract::Store;
use bcc_store::rows::{SessionRow, VariableRow};

use crate::error::EngineError;
use crate::stored_programs::StoredPrograms;

/// The variables of the user of a session. A value is also sensitive if the script of the session declares its variable as sensitive and
/// another script, which does not, stored it.
///
/// # Errors
/// The store cannot be read.
pub async fn user_variables(store: &dyn Store, row: &SessionRow) -> Result<Vec<VariableRow>, EngineError> {
    let mut variables = store.user_variables(&row.user).await?;
    mark_sensitive(store, &StoredPrograms::default(), row, &mut variables).await;
    Ok(variables)
}

/// Marks those of these variables of the user as sensitive that the script of the session declares as sensitive.
pub(crate) async fn mark_sensitive(
    store: &dyn Store,
    programs: &StoredPrograms,
    row: &SessionRow,
    variables: &mut [VariableRow],
) {
    if variables.iter().all(|variable| variable.sensitive) {
        return;
    }
    // What a script that this release cannot read says about its variables is not known.
    let Ok(stored) = programs.get(store, &row.manifest).await else { return };
    for variable in variables {
        let declared = stored.program.globals.get(&variable.name);
        variable.sensitive |= declared.is_some_and(|declaration| declaration.sensitive);
    }
}
