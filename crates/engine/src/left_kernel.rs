//! The kernel that a session leaves on a Jupyter server when it is deleted before it has ended.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use bcc_lang::source::render::visible::visible_line;
use bcc_runtime::notebook::state::StartedKernel;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;

use crate::exported_notebook::stored_state;

/// The kernel that the session started on a Jupyter server and has not ended. A session whose data cannot be read can be deleted as
/// well, so that there are no errors.
pub async fn left_kernel(store: &dyn Store, id: &str) -> Option<StartedKernel> {
    let row = store.session(id).await.ok()??;
    if SessionStatus::parse(&row.status).is_none_or(SessionStatus::is_final) {
        return None;
    }
    let state = stored_state(&store.variables(id).await.ok()?).ok()??;
    // A copy of a session knows the kernel of the other one.
    state.started_kernel.filter(|kernel| kernel.session_id == id)
}

/// Tells a person about it: it is ended with the token of the server, which only a session that runs has.
pub fn left_kernel_note(kernel: &StartedKernel) -> Message {
    let (kernel_id, server) = (visible_line(&kernel.kernel_id), visible_line(&kernel.server));
    msg!(
        "the kernel `{kernel_id}`, which the session started, is left on the Jupyter server {server}: end it there if it still runs",
        kernel_id = kernel_id,
        server = server
    )
}
