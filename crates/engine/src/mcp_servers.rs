//! The servers of tools of a project, as its configuration names them, with their keys. They count only in a trusted project.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use secrecy::SecretString;

use crate::config::mcp_table::McpTable;
use crate::config::places::table_header;
use crate::config::values::TextOrEnv;
use crate::environment::Environment;
use crate::files::read_configured;
use crate::program_environment::server_variables;
use crate::project::{CONFIG_FILE, Project};
use crate::shell::quoted;
use bcc_lang::source::near::near_miss;

/// The limit on the size of a key file, in bytes.
const MAX_KEY_BYTES: u64 = 64 * 1024;

/// The limit from the start of a server until it has listed its tools, if none is configured.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// What is needed to use a server of tools. Has no `Debug`, because it contains keys.
#[derive(Clone)]
pub struct McpSettings {
    pub connection: McpConnection,
    /// The limit for one call, in addition to that of the caller.
    pub timeout: Option<Duration>,
    pub start_timeout: Duration,
}

#[derive(Clone)]
pub enum McpConnection {
    /// A program that is started, and spoken to through its standard input and output.
    Program {
        command: Vec<String>,
        /// Paths of programs start here.
        directory: PathBuf,
        working_directory: PathBuf,
        variables: BTreeMap<String, String>,
        /// The values that come from the environment of this program: where its keys are.
        secrets: Vec<SecretString>,
    },
    /// Streamable HTTP.
    Address { url: String, key: Option<SecretString> },
}

/// The settings of the server `name`.
///
/// # Errors
/// There is no such server, the project is not trusted, or a key is missing. The message says what to do, and contains no key.
pub fn mcp_settings(project: &Project, environment: &Environment, name: &str) -> Result<McpSettings, Message> {
    let place = table_header("mcp_servers", name);
    let Some(table) = project.config.mcp_servers.get(name) else {
        let known: Vec<&str> = project.config.mcp_servers.keys().map(String::as_str).collect();
        return Err(match near_miss(name, known) {
            Some(near) => msg!("there is no server of tools `{name}`; did you mean `{near}`?"),
            None => msg!("there is no server of tools `{name}`; add {place} to {CONFIG_FILE}"),
        });
    };
    if !project.trusted {
        let directory = quoted(&project.directory);
        return Err(msg!(
            "{place} in {CONFIG_FILE} would start or call a server, but the project is not trusted; read the file, then run `bcc-script trust {directory}` once, or use `--trust` for this run"
        ));
    }
    let start_timeout = table.start_timeout.unwrap_or(START_TIMEOUT);
    let connection = match (&table.command, &table.url) {
        (Some(command), _) => {
            let cwd = table.cwd.as_ref().map(|cwd| project.directory.join(cwd));
            let (variables, secrets) = variables(environment, &place, table)?;
            McpConnection::Program {
                command: command.clone(),
                directory: project.directory.clone(),
                working_directory: cwd.unwrap_or_else(|| project.directory.clone()),
                variables,
                secrets,
            }
        }
        (None, Some(url)) => {
            McpConnection::Address { url: url.trim().to_owned(), key: key(project, environment, &place, table)? }
        }
        (None, None) => return Err(msg!("{place}: neither `command` nor `url` is specified")),
    };
    Ok(McpSettings { connection, timeout: table.timeout, start_timeout })
}

/// The variables that a program receives, and those of their values that are secret.
fn variables(
    environment: &Environment,
    place: &str,
    table: &McpTable,
) -> Result<(BTreeMap<String, String>, Vec<SecretString>), Message> {
    let (mut variables, mut secrets) = (server_variables(environment), Vec::new());
    for (variable, value) in &table.env {
        let value = match value {
            TextOrEnv::Text(text) => text.clone(),
            TextOrEnv::Env(source) => {
                let value = environment.get(source);
                let value = value.ok_or_else(|| msg!("{place}: the environment variable {source} is not set"))?;
                secrets.push(SecretString::from(value.to_owned()));
                value.to_owned()
            }
        };
        variables.insert(variable.clone(), value);
    }
    Ok((variables, secrets))
}

/// The bearer token of a server. No message contains it.
fn key(
    project: &Project,
    environment: &Environment,
    place: &str,
    table: &McpTable,
) -> Result<Option<SecretString>, Message> {
    if let Some(variable) = &table.api_key_env {
        let key = environment.get(variable);
        let key = key.ok_or_else(|| msg!("{place}: the environment variable {variable} is not set"))?;
        let no_key = || msg!("{place}: the environment variable {variable} contains no key");
        return valid_key(key).map(Some).ok_or_else(no_key);
    }
    let Some(file) = &table.api_key_file else { return Ok(None) };
    let bytes = read_configured(&project.directory, file.as_ref(), MAX_KEY_BYTES)
        .map_err(|error| msg!("{place}: the key file {file} cannot be read: {error}"))?;
    let is_complete = bytes.len() as u64 <= MAX_KEY_BYTES;
    let key = String::from_utf8(bytes).ok().filter(|_| is_complete);
    let key = key.and_then(|key| valid_key(&key));
    key.map(Some).ok_or_else(|| msg!("{place}: the key file {file} contains no key"))
}

/// A key that can be sent in a header.
fn valid_key(text: &str) -> Option<SecretString> {
    let key = text.trim();
    let is_valid = !key.is_empty() && key.chars().all(|c| c.is_ascii_graphic());
    is_valid.then(|| SecretString::from(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::config::config::parse;

    const FILES: &str = "[mcp_servers.files]\ncommand = [\"./server\", \"x\"]\ncwd = \"data\"\n\
                         env = { MODE = \"fast\", TOKEN = { env = \"FILES_TOKEN\" } }\n";

    fn settings(text: &str, trusted: bool, name: &str, token: Option<&str>) -> Result<McpSettings, String> {
        let config = parse("bcc-script.toml", text).unwrap();
        let project = Project { config, trusted, has_config: true, ..Project::unconfigured("/project".into()) };
        let given = token.map(|token| ("FILES_TOKEN", token.to_owned()));
        let rest = [("PATH", "/bin".to_owned()), ("OPENAI_API_KEY", "key".to_owned())];
        let environment = Environment::of(given.into_iter().chain(rest));
        mcp_settings(&project, &environment, name).map_err(|error| error.to_string())
    }

    #[test]
    fn a_program_gets_the_usual_variables_and_those_that_are_named() {
        let found = settings(FILES, true, "files", Some("t")).ok().unwrap();
        let McpConnection::Program { command, working_directory, variables, secrets, .. } = found.connection else {
            panic!()
        };
        assert_eq!((command.len(), working_directory), (2, PathBuf::from("/project/data")));
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(variables, [("MODE", "fast"), ("PATH", "/bin"), ("TOKEN", "t")]);
        assert_eq!(secrets.iter().map(|secret| secret.expose_secret()).collect::<Vec<_>>(), ["t"]);
        assert_eq!((found.timeout, found.start_timeout), (None, START_TIMEOUT));
    }

    #[test]
    fn what_is_missing_is_reported() {
        let error = |text: &str, trusted, name, token| settings(text, trusted, name, token).err().unwrap();
        assert!(error(FILES, true, "file", Some("t")).contains("did you mean `files`?"));
        assert!(error(FILES, true, "web", Some("t")).contains("add [mcp_servers.web] to bcc-script.toml"));
        assert!(error(FILES, true, "files", None).contains("FILES_TOKEN is not set"));
        assert!(error(FILES, false, "files", Some("t")).contains("bcc-script trust /project"));
        let web = "[mcp_servers.web]\nurl = \"https://h/mcp\"\n";
        assert!(error(&format!("{web}api_key_env = \"WEB_KEY\"\n"), true, "web", None).contains("WEB_KEY is not set"));
        assert!(error(&format!("{web}api_key_file = \"nowhere\"\n"), true, "web", None).contains("cannot be read"));
        assert!(settings(web, true, "web", None).is_ok());
    }
}
