//! The host services of a session: the permissions of a trusted project, the kernel and the behavior servers.

use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::behavior_servers::ConfiguredServers;
use crate::config::secrets::user_info;
use crate::config::values::TextOrEnv;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::project::Project;
use bcc_runtime::effects::permissions::Permissions;
use bcc_runtime::notebook::kernel::contract::{Kernel, KernelError};
use bcc_runtime::notebook::kernel::location::KernelLocation;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::program::Program;

/// The permissions of the scripts of a project. An untrusted project grants none.
pub fn permissions(project: &Project, environment: &Environment) -> Permissions {
    let named: BTreeSet<String> = project.config.project.allow.iter().cloned().collect();
    let (allowed, untrusted) = if project.trusted { (named, BTreeSet::new()) } else { (BTreeSet::new(), named) };
    let hidden = environment.names().filter(|name| is_hidden(name, project, environment)).map(str::to_owned).collect();
    Permissions { directory: project.directory.clone(), allowed, untrusted, hidden }
}

/// The host services of one session of a project. They are started on first use.
pub fn host_services(project: &Project, environment: &Environment) -> HostServices {
    let permissions = permissions(project, environment);
    let denied = permissions.check("exec").err().map(|denied| KernelError {
        code: "exec-not-allowed",
        message: denied.message,
        help: Some(denied.help),
    });
    let location = KernelLocation {
        directory: project.directory.clone(),
        variables: environment.without(|name| is_hidden(name, project, environment)),
        permission_error: denied,
    };
    let servers = Arc::new(ConfiguredServers::new(project, environment));
    HostServices { permissions: Arc::new(permissions), kernel: kernel(location), servers, ..HostServices::default() }
}

/// The host services without commands, for a session whose custom kinds were never trusted: it was started without commands, and
/// the kinds that the project has now are different ones.
pub(crate) fn without_commands(host: HostServices) -> HostServices {
    let mut permissions = (*host.permissions).clone();
    permissions.allowed.remove("command");
    HostServices { permissions: Arc::new(permissions), ..host }
}

#[cfg(feature = "jupyter")]
fn kernel(location: KernelLocation) -> Arc<dyn Kernel> {
    Arc::new(bcc_runtime::notebook::kernel::jupyter::JupyterKernel::new(location))
}

#[cfg(not(feature = "jupyter"))]
fn kernel(location: KernelLocation) -> Arc<dyn Kernel> {
    Arc::new(bcc_runtime::notebook::kernel::without_jupyter::no_kernel(location))
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
            Ok(()) if *permission == "exec" => {
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
    Ok(())
}

/// Whether an environment variable is hidden from programs that scripts run: one that the configuration of models or behavior
/// servers refers to, or one whose name or value looks like a secret.
pub fn is_hidden(name: &str, project: &Project, environment: &Environment) -> bool {
    let is_it = |value: &TextOrEnv| matches!(value, TextOrEnv::Env(variable) if variable == name);
    let named = project.config.models.values().any(|table| {
        table.api_key_env.as_deref() == Some(name) || table.headers.values().chain(&table.proxy).any(is_it)
    });
    let servers = project.config.behavior_servers.values();
    let token = servers.filter_map(|table| table.token_env.as_deref()).any(|variable| variable == name);
    let has_user = environment.get(name).is_some_and(|value| user_info(value).is_some());
    named || token || has_user || has_secret_name(name)
}

/// Whether the name of an environment variable suggests a secret. Unlike in a configuration, this includes names of files.
fn has_secret_name(name: &str) -> bool {
    const PARTS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "COOKIE", "WEBHOOK", "AUTH"];
    const SUFFIXES: [&str; 4] = ["_PAT", "_PWD", "_DSN", "_PASS"];
    let name = name.to_uppercase();
    PARTS.iter().any(|part| name.contains(part)) || SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use crate::host_services::has_secret_name;

    #[test]
    fn names_of_secrets_are_recognized_and_variables_that_programs_need_are_not() {
        for name in [
            "OPENAI_API_KEY",
            "MAXMIND_LICENSE_KEY",
            "gh_token",
            "SSH_AUTH_SOCK",
            "GH_PAT",
            "DB_PWD",
            "KEY_FILE",
            "SENTRY_DSN",
        ] {
            assert!(has_secret_name(name), "{name}");
        }
        for name in ["PATH", "HOME", "PWD", "OLDPWD", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG", "TMPDIR"]
        {
            assert!(!has_secret_name(name), "{name}");
        }
    }
}
