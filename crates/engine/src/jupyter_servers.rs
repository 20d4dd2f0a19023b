//! The Jupyter servers of a project, with their tokens. A script only chooses among them: it cannot send a token anywhere else.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use secrecy::SecretString;

use crate::environment::Environment;
use crate::project::{CONFIG_FILE, Project};
use bcc_runtime::notebook::kernel::contract::{KernelError, ServerKernel};
use bcc_runtime::notebook::kernel::location::KernelServers;

pub(crate) struct ConfiguredJupyter {
    project: Project,
    environment: Environment,
}

impl ConfiguredJupyter {
    /// The servers in the configuration of `project`. Tokens are read from `environment`.
    pub(crate) fn new(project: &Project, environment: &Environment) -> Self {
        Self { project: project.clone(), environment: environment.clone() }
    }
}

fn not_allowed(message: Message, help: Message) -> KernelError {
    KernelError { code: "kernel-server-not-allowed", message, help: Some(help) }
}

impl KernelServers for ConfiguredJupyter {
    fn token(&self, server: &ServerKernel) -> Result<Option<SecretString>, KernelError> {
        let url = &server.url;
        let named = self.project.config.kernel.jupyter.iter().find(|named| named.is_at(url));
        let Some(named) = named.filter(|_| self.project.trusted) else {
            let help = msg!(
                "add `[[kernel.jupyter]]` with `url = \"{url}\"`, and `token_env` if the server needs a token, to {CONFIG_FILE}"
            );
            return Err(not_allowed(msg!("{CONFIG_FILE} does not name the Jupyter server {url}"), help));
        };
        let wanted = server.token_env.as_ref();
        if wanted.is_some() && wanted != named.token_env.as_ref() {
            let help =
                msg!("write the same variable in both, or leave it out in the script: that of {CONFIG_FILE} is used");
            let message = msg!("{CONFIG_FILE} names another variable for the token of the Jupyter server {url}");
            return Err(not_allowed(message, help));
        }
        let Some(variable) = &named.token_env else { return Ok(None) };
        match self.environment.get(variable).map(str::trim).filter(|token| !token.is_empty()) {
            Some(token) => Ok(Some(SecretString::from(token.to_owned()))),
            None => Err(not_allowed(
                msg!("the environment variable {variable} with the token of the Jupyter server {url} is not set"),
                Message::word("set it to the token, which `jupyter server list` shows on the machine of the server"),
            )),
        }
    }
}
