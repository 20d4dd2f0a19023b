//! The behavior servers of a project. Their clients are created from the configuration on first use.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::SecretString;

use crate::config::config::Config;
use crate::config::places::table_header;
use crate::config::server_table::ServerTable;
use crate::environment::Environment;
use crate::files::read_configured;
use crate::project::{CONFIG_FILE, Project};
use crate::shell::quoted;
use bcc_lang::source::near::near_miss;
use bcc_runtime::effects::behavior_server::client::HttpServer;
use bcc_runtime::effects::behaviors::{BehaviorServer, ServerError};
use bcc_runtime::program::host_services::BehaviorServers;

/// The limit on the size of a token file, in bytes.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

pub(crate) struct ConfiguredServers {
    project: Project,
    environment: Environment,
    clients: Mutex<BTreeMap<String, Arc<dyn BehaviorServer>>>,
}

fn server_error(code: &'static str, message: Message, help: Message) -> ServerError {
    ServerError { code, message, help: Some(help) }
}

/// The error of a server that a configuration does not name.
pub fn unknown_server(config: &Config, name: &str) -> ServerError {
    let help = match near_miss(name, config.behavior_servers.keys().map(String::as_str)) {
        Some(near) => msg!("did you mean `{near}`?"),
        None => msg!("add {} with its `url` to {CONFIG_FILE}", table_header("behavior_servers", name)),
    };
    server_error("server-unknown", msg!("there is no behavior server `{name}`"), help)
}

impl ConfiguredServers {
    /// The servers in the configuration of `project`. Tokens are read from `environment` and from files.
    pub(crate) fn new(project: &Project, environment: &Environment) -> Self {
        Self { project: project.clone(), environment: environment.clone(), clients: Mutex::default() }
    }

    fn untrusted(&self, name: &str) -> ServerError {
        let (place, directory) = (table_header("behavior_servers", name), self.project.directory.display());
        server_error(
            "server-unknown",
            msg!("{place} in {CONFIG_FILE} would send the session to a server, but {directory} is not trusted"),
            msg!(
                "read the file; if it does what you want, run `bcc-script trust {}` once, or use `--trust` for this run",
                quoted(&self.project.directory)
            ),
        )
    }

    /// The token of a server. No message contains it.
    fn token(&self, name: &str, table: &ServerTable) -> Result<Option<SecretString>, ServerError> {
        let place = table_header("behavior_servers", name);
        let missing = |message: Message| {
            server_error(
                "server-unknown",
                message,
                Message::word("set it to the token, or remove it if the server needs none"),
            )
        };
        if let Some(variable) = &table.token_env {
            return match self.environment.get(variable) {
                Some(token) => Ok(Some(SecretString::from(token.trim().to_owned()))),
                None => Err(missing(msg!("{place}: the environment variable {variable} is not set"))),
            };
        }
        let Some(file) = &table.token_file else { return Ok(None) };
        let bytes = read_configured(&self.project.directory, file.as_ref(), MAX_TOKEN_BYTES)
            .map_err(|error| missing(msg!("{place}: the token file {file} cannot be read: {error}")))?;
        let is_complete = bytes.len() as u64 <= MAX_TOKEN_BYTES;
        let token = String::from_utf8(bytes).ok().filter(|_| is_complete);
        let token = token.ok_or_else(|| missing(msg!("{place}: the token file {file} contains no token")))?;
        Ok(Some(SecretString::from(token.trim().to_owned())))
    }
}

impl BehaviorServers for ConfiguredServers {
    fn server(&self, name: &str) -> Result<Arc<dyn BehaviorServer>, ServerError> {
        let config = &self.project.config;
        let table = config.behavior_servers.get(name).ok_or_else(|| unknown_server(config, name))?;
        if !self.project.trusted {
            return Err(self.untrusted(name));
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = clients.get(name) {
            return Ok(Arc::clone(server));
        }
        let mut settings = table.settings(name);
        settings.token = self.token(name, table)?;
        let server: Arc<dyn BehaviorServer> = Arc::new(HttpServer::new(settings)?);
        clients.insert(name.to_owned(), Arc::clone(&server));
        Ok(server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config::parse;

    fn servers(lines: &str, trusted: bool, token: Option<&str>) -> ConfiguredServers {
        let text = format!("[behavior_servers.gauges]\nurl = \"http://127.0.0.1:9\"\n{lines}");
        let config = parse("bcc-script.toml", &text).unwrap();
        let directory = std::env::temp_dir().join("no such project");
        let project = Project { config, trusted, has_config: true, ..Project::unconfigured(directory) };
        ConfiguredServers::new(&project, &Environment::of(token.map(|token| ("GAUGES", token.to_owned()))))
    }

    #[test]
    fn a_server_is_created_once_and_only_in_a_trusted_project() {
        let trusted = servers("form = \"older\"\n", true, None);
        let one = trusted.server("gauges").unwrap();
        assert!(one.is_legacy_form() && Arc::ptr_eq(&one, &trusted.server("gauges").unwrap()));
        let error = servers("", false, None).server("gauges").err().unwrap();
        assert!(
            error.message.to_string().contains("is not trusted")
                && error.help.unwrap().to_string().contains("bcc-script trust")
        );
        let error = trusted.server("gauge").err().unwrap();
        assert_eq!(
            (error.code, error.help.as_ref().map(ToString::to_string).as_deref()),
            ("server-unknown", Some("did you mean `gauges`?"))
        );
    }

    #[test]
    fn a_missing_token_is_reported_before_anything_is_sent() {
        let message_for =
            |lines: &str, token| servers(lines, true, token).server("gauges").err().map(|error| error.message);
        assert!(message_for("token_env = \"GAUGES\"\n", None).unwrap().to_string().contains("GAUGES is not set"));
        assert_eq!(message_for("token_env = \"GAUGES\"\n", Some("secret\n")), None);
        assert!(
            message_for("token_file = \"nowhere\"\n", None)
                .unwrap()
                .to_string()
                .contains("the token file nowhere cannot be read")
        );
        let error = message_for("token_env = \"GAUGES\"\n", Some("sec\u{7}ret")).unwrap();
        assert!(
            error.to_string().contains("cannot be sent in a header") && !error.to_string().contains("sec"),
            "{error}"
        );
    }
}
