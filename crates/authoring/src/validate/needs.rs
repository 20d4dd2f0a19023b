//! The findings about what a script needs and does not have here: a permission of the project, a kernel that is installed, a server that
//! the project names. The machine that checks a script may not be the one that runs it, so these are for information.

use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use bcc_check::check::ScriptNeeds;
use bcc_engine::behavior_servers::unknown_server;
use bcc_engine::config::config::Config;
use bcc_engine::environment::Environment;
use bcc_engine::host_services::WRITE_FILE;
use bcc_engine::program_environment::kernel_variables;
use bcc_engine::project::CONFIG_FILE;
use bcc_engine::trust::covered::written_and_run;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;
use bcc_runtime::effects::permissions::{PROGRAM, PermissionError, Permissions};
use bcc_runtime::notebook::kernel::contract::{KernelSettings, KernelSource};
use bcc_runtime::notebook::kernel::specs::find;
use bcc_runtime::program::program::ActionNeedingPermission;

const EXEC: &str = "exec";

/// The findings about the needs of a document, each with the first action that has it. Nothing is contacted, and trust does not matter.
pub(crate) fn unmet_needs(
    file: &Arc<SourceFile>,
    needs: &ScriptNeeds,
    config: &Config,
    environment: &Environment,
) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let allowed: BTreeSet<String> = config.project.allow.iter().cloned().collect();
    let permissions = Permissions { allowed, ..Permissions::default() };
    // Of several programs, the first one stands for all.
    let mut missing: BTreeMap<&str, (&str, &ActionNeedingPermission, PermissionError)> = BTreeMap::new();
    for (permission, action) in &needs.permissions {
        let Err(denied) = permissions.check(permission) else { continue };
        let kind = if permission.starts_with(PROGRAM) { PROGRAM } else { permission };
        let is_first = missing.get(kind).is_none_or(|(_, known, _)| action.span.start < known.span.start);
        if is_first {
            missing.insert(kind, (permission, action, denied));
        }
    }
    for (permission, action, denied) in missing.into_values() {
        let id = &action.action;
        found.push(if permission == EXEC {
            let message = msg!("the action `{id}` runs code, which the project does not allow");
            let help =
                msg!("add `allow = [\"exec\"]` to `[project]` of {CONFIG_FILE}: without it, `run` refuses the script");
            Diagnostic::info("code-not-allowed", message, file, action.span).with_help(help)
        } else {
            let reason = denied.message;
            let message = msg!("the action `{id}` needs `{permission}`: {reason}");
            Diagnostic::info("missing-permission", message, file, action.span).with_help(denied.help)
        });
    }
    if let (Some(span), Err(denied)) = (needs.report, permissions.check(WRITE_FILE)) {
        let reason = denied.message;
        let message = msg!("`report` needs `{WRITE_FILE}`: {reason}");
        found.push(Diagnostic::info("missing-permission", message, file, span).with_help(denied.help));
    }
    let code = needs.permissions.get(EXEC).filter(|_| permissions.check(EXEC).is_ok());
    if let Some((action, kernel)) = code.zip(needs.kernel.as_ref()) {
        found.extend(kernel_finding(file, action, kernel, config, environment));
    }
    let unknown = needs.servers.iter().filter(|(name, _)| !config.behavior_servers.contains_key(name.as_str()));
    for (name, asking) in unknown.filter(|_| !needs.routes_errors) {
        let (action, error) = (&asking.action, unknown_server(config, name));
        let reason = error.message;
        let message = msg!("the action `{action}` asks a behavior server: {reason}");
        let unknown = Diagnostic::info("missing-server", message, file, asking.span);
        found.push(unknown.with_help(error.help.unwrap_or_default()));
    }
    found
}

/// The findings about files that a script writes, and that a command of it or of the project may run: the writing fails.
pub(crate) fn written_programs(file: &Arc<SourceFile>, config: &Config, directory: &Path) -> Vec<Diagnostic> {
    let found = written_and_run(directory, config, file).into_iter().map(|span| {
        let message = msg!("`path` is a file that a command may run, which scripts cannot write");
        let help = msg!("write another file; a command gets its content with `input`, or its name if it only reads data, as `cat` does");
        Diagnostic::warning("path-not-permitted", message, file, span).with_help(help)
    });
    found.collect()
}

/// The finding about a kernel that is not installed, or a Jupyter server that the project does not name. Whether other kernels run is
/// asked by [`with_missing_services`](crate::validate::services::with_missing_services).
fn kernel_finding(
    file: &Arc<SourceFile>,
    action: &ActionNeedingPermission,
    kernel: &KernelSettings,
    config: &Config,
    environment: &Environment,
) -> Option<Diagnostic> {
    let (id, span) = (&action.action, action.span);
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
        KernelSource::Server(_) | KernelSource::ConnectionFile(_) => None,
    }
}
