//! What a session may touch outside of the conversation: what its project allows, as far as the person trusts it, its kernel, and
//! the servers that it may ask.

use bcc_lang::message::msg;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::behavior_servers::ConfiguredServers;
use crate::config::secrets::user_of;
use crate::config::values::TextOrEnv;
use crate::environment::Environment;
use crate::error::EngineError;
use crate::project::Project;
use bcc_runtime::effects::permissions::Permissions;
use bcc_runtime::notebook::kernel::contract::{Kernel, KernelError};
use bcc_runtime::notebook::kernel::location::KernelLocation;
use bcc_runtime::program::host_services::HostServices;
use bcc_runtime::program::program::Program;

/// What the scripts of a project may do, as far as the person trusts it.
pub fn permits(project: &Project, environment: &Environment) -> Permissions {
    let named: BTreeSet<String> = project.config.project.allow.iter().cloned().collect();
    let (allowed, untrusted) = if project.trusted { (named, BTreeSet::new()) } else { (BTreeSet::new(), named) };
    let hidden = environment.names().filter(|name| is_hidden(name, project, environment)).map(str::to_owned).collect();
    Permissions { directory: project.directory.clone(), allowed, untrusted, hidden }
}

/// The outside world of one session of a project. Nothing of it starts before it is asked for.
pub fn outside(project: &Project, environment: &Environment) -> HostServices {
    let permits = permits(project, environment);
    let refused = permits.may("exec").err().map(|refused| KernelError {
        code: "exec-not-allowed",
        message: refused.message,
        help: Some(refused.help),
    });
    let place = KernelLocation {
        directory: project.directory.clone(),
        variables: environment.without(|name| is_hidden(name, project, environment)),
        refused,
    };
    let servers = Arc::new(ConfiguredServers::new(project, environment));
    HostServices { permits: Arc::new(permits), kernel: kernel(place), servers, ..HostServices::default() }
}

/// The same without commands: for a session whose kinds nobody has trusted. It began when they were not allowed, and those of the
/// project that are allowed now are others.
pub fn without_commands(outside: HostServices) -> HostServices {
    let mut permits = (*outside.permits).clone();
    permits.allowed.remove("command");
    HostServices { permits: Arc::new(permits), ..outside }
}

#[cfg(feature = "jupyter")]
fn kernel(place: KernelLocation) -> Arc<dyn Kernel> {
    Arc::new(bcc_runtime::notebook::kernel::jupyter::JupyterKernel::new(place))
}

#[cfg(not(feature = "jupyter"))]
fn kernel(place: KernelLocation) -> Arc<dyn Kernel> {
    Arc::new(bcc_runtime::notebook::kernel::without_jupyter::no_kernel(place))
}

/// Refuses a program that needs what is not allowed, before anything of it starts.
///
/// # Errors
/// `Usage`, which names the action that needs it and tells how to allow it.
pub fn permitted(program: &Program, outside: &HostServices) -> Result<(), EngineError> {
    for (what, needing) in &program.needs {
        let line = needing.file.line(needing.span.start);
        let refused = match outside.permits.may(what) {
            Err(refused) => Some((refused.message, Some(refused.help))),
            // What the project allows, this build may still be unable to do.
            Ok(()) if *what == "exec" => outside.kernel.permitted().err().map(|error| (error.message, error.help)),
            Ok(()) => None,
        };
        if let Some((why, help)) = refused {
            let (file, action) = (needing.file.name(), &needing.action);
            let error =
                EngineError::usage(msg!("{file}:{line}: the action `{action}` needs `{what}`: {why}", why = why));
            return Err(match help {
                Some(help) => error.with_help(help),
                None => error,
            });
        }
    }
    Ok(())
}

/// Whether a variable of the environment is kept from what scripts run: whatever models and behavior servers are asked with, and whatever is called
/// like a secret.
pub fn is_hidden(name: &str, project: &Project, environment: &Environment) -> bool {
    let given = |given: &TextOrEnv| matches!(given, TextOrEnv::Env(variable) if variable == name);
    let named = project.config.models.values().any(|table| {
        table.api_key_env.as_deref() == Some(name) || table.headers.values().chain(&table.proxy).any(given)
    });
    let tokens = project.config.behavior_servers.values();
    let token = tokens.filter_map(|table| table.token_env.as_deref()).any(|variable| variable == name);
    let has_user = environment.get(name).is_some_and(|value| user_of(value).is_some());
    named || token || has_user || is_called_like_a_secret(name)
}

/// Whether a variable of the environment is called like one that holds a secret. Other than in a configuration, one that names a
/// file is hidden, too.
fn is_called_like_a_secret(name: &str) -> bool {
    const PARTS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "COOKIE", "WEBHOOK", "AUTH"];
    const ENDS: [&str; 4] = ["_PAT", "_PWD", "_DSN", "_PASS"];
    let name = name.to_uppercase();
    PARTS.iter().any(|part| name.contains(part)) || ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use crate::host_services::is_called_like_a_secret;

    #[test]
    fn variables_that_are_called_like_secrets_are_known_and_those_that_programs_need_are_not_among_them() {
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
            assert!(is_called_like_a_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "PWD", "OLDPWD", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG", "TMPDIR"]
        {
            assert!(!is_called_like_a_secret(name), "{name}");
        }
    }
}
