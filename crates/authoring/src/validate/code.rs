//! The findings about code of a script that cannot run here: the project does not allow it, or its kernel is missing. The machine that
//! checks a script may not be the one that runs it, so these are for information.

use bcc_lang::message::msg;
use std::sync::Arc;

use bcc_engine::config::config::Config;
use bcc_engine::environment::Environment;
use bcc_engine::program_environment::kernel_variables;
use bcc_engine::project::CONFIG_FILE;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::notebook::kernel::contract::{KernelSettings, KernelSource};
use bcc_runtime::notebook::kernel::specs::find;
use bcc_runtime::program::program::ActionNeedingPermission;

/// The finding about the first action of a script that runs code, if it cannot run here.
pub(crate) fn code_finding(
    file: &Arc<SourceFile>,
    (action, kernel): &(ActionNeedingPermission, KernelSettings),
    config: &Config,
    environment: &Environment,
) -> Option<Diagnostic> {
    let (id, span) = (&action.action, action.span);
    if !config.project.allow.iter().any(|allowed| allowed == "exec") {
        let message = msg!("the action `{id}` runs code, which the project does not allow");
        let help =
            msg!("add `allow = [\"exec\"]` to `[project]` of {CONFIG_FILE}: without it, `run` refuses the script");
        return Some(Diagnostic::info("code-not-allowed", message, file, span).with_help(help));
    }
    match &kernel.source {
        KernelSource::Installed => {
            let missing = find(&kernel.name, &kernel_variables(config, environment)).err()?;
            let reason = missing.message;
            let message = msg!("the action `{id}` runs code, but on this machine {reason}");
            let found = Diagnostic::info("missing-kernel", message, file, span);
            Some(match missing.help {
                Some(help) => found.with_help(help),
                None => found,
            })
        }
        KernelSource::Server(server) if !config.kernel.jupyter.iter().any(|named| named.is_at(&server.url)) => {
            let url = &server.url;
            let message =
                msg!("the action `{id}` runs code on the Jupyter server {url}, which {CONFIG_FILE} does not name");
            let help = msg!("add `[[kernel.jupyter]]` with `url = \"{url}\"`: without it, `run` refuses the script");
            Some(Diagnostic::info("code-not-allowed", message, file, span).with_help(help))
        }
        // They need not run yet.
        KernelSource::Server(_) | KernelSource::ConnectionFile(_) => None,
    }
}
