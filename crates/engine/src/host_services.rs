//! The host services of a session: the permissions of a trusted project, the kernel and the behavior servers. Permissions come
//! from the configuration and the trust of the project now, never from a store.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::behavior_servers::ConfiguredServers;
use crate::commands::ProjectCommands;
use crate::config::kinds::kinds;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::jupyter_servers::ConfiguredJupyter;
use crate::pin::Pinned;
use crate::program_environment::{command_variables, kernel_variables, session_kernel_variables};
use crate::project::Project;
use crate::project_files::ScriptFiles;
use crate::trust::covered::covers_files;
use crate::trust::state::TrustState;
use bcc_runtime::effects::behaviors::ServerError;
use bcc_runtime::effects::permissions::{PermissionError, Permissions};
use bcc_runtime::notebook::kernel::contract::{Kernel, KernelError};
use bcc_runtime::notebook::kernel::location::KernelLocation;
use bcc_runtime::program::custom::{COMMAND, CustomKind};
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::program::Program;

/// The permission that the report of a script needs.
pub const WRITE_FILE: &str = "write_file";

/// The permissions of the scripts of a project. An untrusted project grants none.
pub fn permissions(project: &Project, environment: &Environment) -> Permissions {
    let named: BTreeSet<String> = project.config.project.allow.iter().cloned().collect();
    let (allowed, withheld) = if project.trusted { (named, BTreeSet::new()) } else { (BTreeSet::new(), named) };
    let variables = command_variables(project, environment);
    Permissions { directory: project.directory.clone(), allowed, withheld, withheld_because: None, variables }
}

/// The host services of one new session of these documents. They are started on first use.
pub fn host_services(project: &Project, environment: &Environment, pinned: &Pinned) -> HostServices {
    let mut permissions = permissions(project, environment);
    if let Some(document) = untrusted_document(project, pinned) {
        let because = PermissionError {
            message: msg!("{document} is not one of the files that you trusted with the project"),
            help: Message::word(
                "move it into the project directory and run `bcc-script trust`, or add `--trust` for this run",
            ),
        };
        permissions.withhold(because, |_| true);
    }
    services(project, environment, permissions)
}

/// The host services of a project, for checks before any session.
pub fn project_host_services(project: &Project, environment: &Environment) -> HostServices {
    services(project, environment, permissions(project, environment))
}

/// The name of a document of the project that the trust of the project does not cover: one that is outside the project, or that
/// was changed after the project was read.
pub(crate) fn untrusted_document(project: &Project, pinned: &Pinned) -> Option<String> {
    let TrustState::Trusted { hashes } = project.trust.as_ref() else { return None };
    if !covers_files(&project.config) {
        return None;
    }
    pinned.own_documents().into_iter().find(|(_, hash)| !hashes.contains(hash)).map(|(name, _)| name)
}

/// What is known about the start of a stored session.
pub(crate) struct SessionOrigin<'a> {
    pub id: &'a str,
    /// What was allowed when this user started it in this project; `None` if it may come from somebody else.
    pub allowed: Option<&'a [String]>,
}

/// The host services of a stored session: at most what its project allows now.
pub(crate) fn stored_host_services(
    project: &Project,
    environment: &Environment,
    pinned: &Pinned,
    origin: &SessionOrigin<'_>,
) -> HostServices {
    let mut permissions = permissions(project, environment);
    let id = origin.id;
    let was_allowed = |what: &str| origin.allowed.is_some_and(|allowed| allowed.iter().any(|allowed| allowed == what));
    if !project.trust_all {
        let message = match origin.allowed {
            None => msg!(
                "the session `{id}` may come from somebody else: it was not started by you with this release, in this project and with your trust"
            ),
            Some(_) => msg!("the session `{id}` was started without this permission"),
        };
        let help = Message::word(
            "if you know where its store comes from and want it to run code and commands of the session, add `--trust`",
        );
        permissions.withhold(PermissionError { message, help }, |what| !was_allowed(what));
    }
    if !was_allowed(COMMAND) && !same_commands(pinned, project) {
        let because = PermissionError {
            message: msg!(
                "the commands of the action types with which the session `{id}` was started are not those of bcc-script.toml"
            ),
            help: Message::word("restore these action types in bcc-script.toml, or start a new session"),
        };
        permissions.withhold(because, |what| what == COMMAND);
    }
    services(project, environment, permissions)
}

/// Whether the action types of a session that run commands are also those of the project.
fn same_commands(pinned: &Pinned, project: &Project) -> bool {
    let current = kinds(&project.config);
    let with_command = |kind: &&CustomKind| kind.has_command();
    pinned.kinds.values().filter(with_command).all(|kind| current.get(&kind.name) == Some(kind))
}

/// A kernel for code that comes from no session: allowed where the project allows `exec`. It starts when code first runs.
pub(crate) fn project_kernel(project: &Project, environment: &Environment) -> Arc<dyn Kernel> {
    let variables = kernel_variables(&project.config, environment);
    kernel_with(project, environment, &permissions(project, environment), variables)
}

fn kernel_with(
    project: &Project,
    environment: &Environment,
    permissions: &Permissions,
    variables: BTreeMap<String, String>,
) -> Arc<dyn Kernel> {
    let denied = permissions.check("exec").err().map(|denied| KernelError {
        code: "exec-not-allowed",
        message: denied.message,
        help: Some(denied.help),
    });
    let withheld = environment.only(|name, _| !variables.contains_key(name)).into_keys().collect();
    let location = KernelLocation {
        directory: project.directory.clone(),
        variables,
        withheld,
        permission_error: denied,
        limits: project.config.kernel.limits(),
        exec: project.config.kernel.exec_policy(),
        servers: Some(Arc::new(ConfiguredJupyter::new(project, environment))),
    };
    kernel(location)
}

fn services(project: &Project, environment: &Environment, permissions: Permissions) -> HostServices {
    let variables = session_kernel_variables(&project.config, environment);
    let kernel = kernel_with(project, environment, &permissions, variables);
    let servers = Arc::new(ConfiguredServers::new(project, environment));
    HostServices {
        permissions: Arc::new(permissions),
        kernel,
        commands: Arc::new(ProjectCommands),
        files: Arc::new(ScriptFiles::new(&project.config)),
        servers,
        ..HostServices::default()
    }
}

#[cfg(feature = "jupyter")]
fn kernel(location: KernelLocation) -> Arc<dyn Kernel> {
    Arc::new(bcc_runtime::notebook::kernel::jupyter::JupyterKernel::new(location))
}

#[cfg(not(feature = "jupyter"))]
fn kernel(location: KernelLocation) -> Arc<dyn Kernel> {
    Arc::new(bcc_runtime::notebook::kernel::without_jupyter::no_kernel(location))
}

/// Rejects a program that needs what is not granted or not there, before its session exists.
///
/// # Errors
/// `Usage`, which names the action and what to do.
pub async fn check_before(program: &Program, host: &HostServices) -> Result<(), EngineError> {
    check_permissions(program, host)?;
    check_kernel(program, host).await?;
    check_servers(program, host).await
}

/// Rejects a program that needs a permission that is not granted, before any part of it runs.
///
/// # Errors
/// `Usage`, which names the action that needs the permission and how to grant it.
pub fn check_permissions(program: &Program, host: &HostServices) -> Result<(), EngineError> {
    for (permission, needing) in &program.needs {
        let line = needing.file.line(needing.span.start);
        let denied = match host.permissions.check(permission) {
            Err(denied) => Some((denied.message, Some(denied.help))),
            // This build may not support what the project allows.
            Ok(()) if permission == "exec" => {
                host.kernel.check_permission().err().map(|error| (error.message, error.help))
            }
            Ok(()) => None,
        };
        if let Some((reason, help)) = denied {
            let (file, action) = (needing.file.name(), &needing.action);
            let error = EngineError::usage(msg!("{file}:{line}: the action `{action}` needs `{permission}`: {reason}"));
            return Err(match help {
                Some(help) => error.with_help(help),
                None => error,
            });
        }
    }
    if let Some(report) = &program.report
        && let Err(denied) = host.permissions.check(WRITE_FILE)
    {
        let (file, line, reason) = (program.file.name(), program.file.line(report.out.span.start), denied.message);
        let error = EngineError::usage(msg!("{file}:{line}: `report` needs `{WRITE_FILE}`: {reason}"));
        return Err(error.with_help(denied.help));
    }
    Ok(())
}

/// Rejects a program with code that no kernel could run, before its session exists. One that has a route for `error` may do without.
///
/// # Errors
/// `Usage`, which says how to install or reach the kernel.
async fn check_kernel(program: &Program, host: &HostServices) -> Result<(), EngineError> {
    let Some(needing) = program.needs.get("exec").filter(|_| !program.routes_errors()) else { return Ok(()) };
    let Err(error) = host.kernel.check_available(&program.kernel).await else { return Ok(()) };
    let (file, line, action) = (needing.file.name(), needing.file.line(needing.span.start), &needing.action);
    let reason = error.message;
    let refused = EngineError::usage(msg!("{file}:{line}: the action `{action}` runs code: {reason}"));
    Err(match error.help {
        Some(help) => refused.with_help(help),
        None => refused,
    })
}

/// Asks a behavior server whether it answers. Nothing of a session is sent.
///
/// # Errors
/// The project does not name it, its token is missing, it cannot be reached, does not answer, or refuses the token.
pub async fn ask_server(name: &str, host: &HostServices) -> Result<(), ServerError> {
    host.servers.server(name)?.check().await
}

/// Rejects a program that asks a behavior server that does not answer, before its session exists. One that has a route for `error` may
/// do without.
///
/// # Errors
/// `Usage`, which says what to do.
async fn check_servers(program: &Program, host: &HostServices) -> Result<(), EngineError> {
    if program.routes_errors() {
        return Ok(());
    }
    for (name, asking) in &program.servers {
        let Err(error) = ask_server(name, host).await else { continue };
        let (file, line, action) = (asking.file.name(), asking.file.line(asking.span.start), &asking.action);
        let reason = error.message;
        let refused = EngineError::usage(msg!("{file}:{line}: the action `{action}` asks a behavior server: {reason}"));
        return Err(match error.help {
            Some(help) => refused.with_help(help),
            None => refused,
        });
    }
    Ok(())
}
