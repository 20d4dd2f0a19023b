//! What a session may touch outside of the conversation: what its project allows, as far as the person trusts it, its kernel, and
//! the servers that it may ask.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::effects::permits::Permits;
use crate::engine::behavior_servers::ConfiguredServers;
use crate::engine::config::secrets::is_secret;
use crate::engine::environment::Environment;
use crate::engine::error::EngineError;
use crate::engine::project::Project;
use crate::notebook::kernel::contract::{Kernel, KernelError};
use crate::notebook::kernel::place::Place;
use crate::program::outside::Outside;
use crate::program::program::Program;

/// What `allow` of bcc-script.toml may name.
pub const ALLOWABLE: [&str; 2] = ["exec", "command"];

/// What the scripts of a project may do, as far as the person trusts it.
pub fn permits(project: &Project) -> Permits {
    let named: BTreeSet<String> = project.config.project.allow.iter().cloned().collect();
    let (allowed, untrusted) = if project.trusted { (named, BTreeSet::new()) } else { (BTreeSet::new(), named) };
    Permits { directory: project.directory.clone(), allowed, untrusted }
}

/// The outside world of one session of a project. Nothing of it starts before it is asked for.
pub fn outside(project: &Project, environment: &Environment) -> Outside {
    let permits = permits(project);
    let refused = permits.may("exec").err().map(|refused| KernelError {
        code: "exec-not-allowed",
        message: refused.message,
        help: Some(refused.help),
    });
    let place = Place {
        directory: project.directory.clone(),
        variables: environment.without(|name| is_hidden(name, project)),
        refused,
    };
    let servers = Arc::new(ConfiguredServers::new(project, environment));
    Outside { permits: Arc::new(permits), kernel: kernel(place), servers, ..Outside::default() }
}

#[cfg(feature = "jupyter")]
fn kernel(place: Place) -> Arc<dyn Kernel> {
    Arc::new(crate::notebook::kernel::jupyter::JupyterKernel::new(place))
}

#[cfg(not(feature = "jupyter"))]
fn kernel(place: Place) -> Arc<dyn Kernel> {
    Arc::new(crate::notebook::kernel::absent::AbsentKernel::new(place))
}

/// Refuses a program that needs what is not allowed, before anything of it starts.
///
/// # Errors
/// `Usage`, which names the action that needs it and tells how to allow it.
pub fn permitted(program: &Program, outside: &Outside) -> Result<(), EngineError> {
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
            let error = EngineError::usage(format!("{file}:{line}: the action `{action}` needs `{what}`: {why}"));
            return Err(match help {
                Some(help) => error.with_help(help),
                None => error,
            });
        }
    }
    Ok(())
}

/// Whether a variable of the environment is kept from what scripts run: whatever models are asked with, and whatever is called
/// like a secret.
pub fn is_hidden(name: &str, project: &Project) -> bool {
    let named = project.config.models.values().any(|table| table.api_key_env.as_deref() == Some(name));
    named || is_secret(name)
}
