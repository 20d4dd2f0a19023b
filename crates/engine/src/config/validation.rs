//! Validates a parsed `bcc-script.toml`: values that contradict each other or cannot be used.

use bcc_check::levels::RuleLevels;
use bcc_lang::message::ToMessage;
use bcc_lang::message::message::Joint;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeSet;

use bytesize::ByteSize;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use crate::config::config::{Config, size_in_bytes};
use crate::config::jupyter_table;
use crate::config::kinds;
use crate::config::mcp_table;
use crate::config::model_table::{ModelTable, ProviderKind};
use crate::config::places::{ConfigError, table_header};
use crate::config::secrets::{is_key, is_secret_header, is_variable, user_info};
use crate::config::serve_table;
use crate::config::server_table;
use crate::config::tool_tables;
use crate::config::values::TextOrEnv;
use bcc_lang::script::fields::shortened;
use bcc_lang::source::near::near_miss;
use bcc_runtime::effects::permissions::PROGRAM;

/// The model that exists without a configuration.
pub const OFFLINE: &str = "offline";

/// Headers that the provider sends itself.
const OWN_HEADERS: [&str; 5] = ["connection", "content-length", "content-type", "host", "transfer-encoding"];

/// The largest `max_text` of `[kernel]`: texts are in memory several times while a cell runs.
const MAX_TEXT: u64 = 64 << 20;

/// The largest `max_display` of `[kernel]`.
const MAX_DISPLAY: u64 = 128 << 20;

/// The permissions that `allow` can list, in addition to those for single programs.
pub(crate) const ALLOWABLE: [&str; 4] = ["exec", "command", "read_file", "write_file"];

/// All errors: of models in the order of their names, then of action types, permissions, servers, tools and levels of rules.
pub fn errors(config: &Config) -> Vec<ConfigError> {
    let mut found = Vec::new();
    for (name, table) in &config.models {
        let mut model = Model { name, table, found: &mut found };
        model.name();
        model.server();
        model.headers();
        model.body();
        model.fallback(config);
    }
    cycles(config, &mut found);
    found.extend(kinds::errors(&config.kinds));
    for (number, name) in config.project.allow.iter().enumerate() {
        let is_program = name.strip_prefix(PROGRAM).is_some_and(|pattern| !pattern.trim().is_empty());
        if !is_program && !ALLOWABLE.contains(&name.as_str()) {
            let message = msg!("`{}` in `allow` is not a known permission", shortened(name));
            let help = match near_miss(name, ALLOWABLE) {
                Some(near) => msg!("did you mean `{near}`?"),
                None => msg!(
                    "the permissions are `exec` (run code in a kernel), `command` (run programs), `command:PROGRAM` (run this program), `read_file` and `write_file`"
                ),
            };
            found.push(ConfigError::new(&["project", "allow", &number.to_string()], message, help));
        }
    }
    for (number, name) in config.kernel.env.iter().enumerate().filter(|(_, name)| !is_variable(name)) {
        let message = msg!("`{}` in `env` of `[kernel]` is not a valid environment variable name", shortened(name));
        found.push(ConfigError::new(&["kernel", "env", &number.to_string()], message, kinds::ENV_HELP));
    }
    for (key, written, most) in [
        ("max_text", &config.kernel.max_text, MAX_TEXT),
        ("max_display", &config.kernel.max_display, MAX_DISPLAY),
        ("max_session", &config.kernel.max_session, u64::MAX),
    ] {
        let Some(written) = written else { continue };
        let message = match size_in_bytes(written) {
            None => msg!("`{key}` of `[kernel]` is not a size: `{}`", shortened(written)),
            Some(bytes) if bytes > most => {
                msg!("`{key}` of `[kernel]` is larger than {}", ByteSize::b(most).display().iec())
            }
            Some(_) => continue,
        };
        let help = "write a number and a unit, as in `16 MiB`: `KiB`, `MiB` or `GiB`";
        found.push(ConfigError::new(&["kernel", key], message, help));
    }
    found.extend(jupyter_table::errors(&config.kernel.jupyter));
    found.extend(server_table::errors(&config.behavior_servers));
    found.extend(serve_table::errors(&config.serve));
    found.extend(tool_tables::errors(&config.tools));
    found.extend(mcp_table::errors(&config.mcp_servers));
    found.extend(config.rules.iter().filter_map(|(slug, level)| {
        let error = RuleLevels::parse([(slug, level)]).err()?;
        Some(ConfigError::new(&["rules", slug], error.to_message(), error.help()))
    }));
    found
}

struct Model<'a> {
    name: &'a str,
    table: &'a ModelTable,
    found: &'a mut Vec<ConfigError>,
}

impl Model<'_> {
    fn report(&mut self, at: &[&str], message: impl Into<Message>, help: impl Into<Message>) {
        let message = Message::list(Joint::Colon, [Message::text(table_header("models", self.name)), message.into()]);
        self.found.push(ConfigError::new(&[&["models", self.name], at].concat(), message, help));
    }

    /// `offline` must never send anything.
    fn name(&mut self) {
        if self.name == OFFLINE && self.table.provider != ProviderKind::Offline {
            self.report(
                &[],
                "the name `offline` is reserved for the built-in responder",
                "give the model another name",
            );
        }
    }

    fn server(&mut self) {
        let table = self.table;
        let needs = match table.provider {
            ProviderKind::OpenAi | ProviderKind::Anthropic => ("model", &table.model, "the model's name on the server"),
            ProviderKind::Replay => ("file", &table.file, "the path of the replies file"),
            ProviderKind::Offline => ("", &None, ""),
        };
        let (key, value, description) = needs;
        match value {
            None if !key.is_empty() => {
                let message = msg!("a model with provider `{}` needs `{key}`", table.provider.name());
                self.report(&[], message, msg!("add `{key} = \"…\"`: {is}", is = Message::word(description)));
            }
            Some(value) if value.trim().is_empty() => {
                self.report(&[key], msg!("`{key}` is empty"), msg!("write {is}", is = Message::word(description)));
            }
            _ => {}
        }
        if let Some(base_url) = &table.base_url {
            if let Err(reason) = check_url(base_url) {
                let message = msg!("`base_url` {why}", why = reason);
                self.report(&["base_url"], message, "use a URL such as \"http://localhost:11434/v1\"");
            } else if user_info(base_url).is_some() {
                let help =
                    "put the key in an environment variable, and write the name of that variable here as `api_key_env`";
                self.report(&["base_url"], "`base_url` contains a user name or a password", help);
            }
        }
        match &table.proxy {
            Some(TextOrEnv::Text(proxy)) if proxy != "none" => {
                if let Err(reason) = check_url(proxy) {
                    let help = "use a URL such as \"http://proxy.example:8080\", or \"none\" to use no proxy";
                    self.report(&["proxy"], msg!("`proxy` {why}", why = reason), help);
                } else if user_info(proxy).is_some() {
                    let help =
                        "put the whole address in an environment variable, and write `proxy = { env = \"NAME\" }`";
                    self.report(&["proxy"], "`proxy` contains a user name or a password", help);
                }
            }
            _ => {}
        }
        let help = "put the key in an environment variable or a file, and write the name of the variable or file here";
        if table.api_key_env.as_ref().is_some_and(|name| !is_variable(name)) {
            self.report(&["api_key_env"], "`api_key_env` is not a valid environment variable name", help);
        }
        if table.api_key_file.as_ref().is_some_and(|file| is_key(file)) {
            self.report(&["api_key_file"], "`api_key_file` is not a file name", help);
        }
        if matches!(&table.proxy, Some(TextOrEnv::Env(name)) if !is_variable(name)) {
            let help = "put the address in an environment variable, and write the name of that variable here";
            self.report(&["proxy"], "`env` of `proxy` is not a valid environment variable name", help);
        }
        if table.api_key_env.is_some() && table.api_key_file.is_some() {
            self.report(&["api_key_file"], "`api_key_env` and `api_key_file` are both set", "keep one of them");
        }
    }

    fn headers(&mut self) {
        let mut seen = BTreeSet::new();
        for (header, value) in &self.table.headers {
            let at = ["headers", header.as_str()];
            let Ok(name) = HeaderName::try_from(header.as_str()) else {
                self.report(&at, msg!("`{header}` is not a valid header name"), "use letters, digits and `-`");
                continue;
            };
            if OWN_HEADERS.contains(&name.as_str()) {
                self.report(&at, msg!("the header `{header}` is set by the program itself"), "remove it");
            } else if !seen.insert(name.as_str().to_owned()) {
                self.report(
                    &at,
                    msg!("the header `{header}` appears twice"),
                    "header names are case-insensitive; keep one",
                );
            }
            let text = match value {
                TextOrEnv::Env(variable) if !is_variable(variable) => {
                    let help =
                        "put the whole value in an environment variable, and write the name of that variable here";
                    let message = msg!("`env` of the header `{header}` is not a valid environment variable name");
                    self.report(&at, message, help);
                    continue;
                }
                TextOrEnv::Env(_) => continue,
                TextOrEnv::Text(text) => text,
            };
            if is_secret_header(header) || is_key(text) {
                let help = msg!(
                    "keys must not be stored in this file: put the whole value in an environment variable, and write `{header} = {{ env = \"EXAMPLE_KEY\" }}`"
                );
                self.report(&at, msg!("the header `{header}` contains a secret"), help);
            } else if HeaderValue::from_str(text).is_err() {
                let help = "use only visible ASCII characters, on a single line";
                self.report(&at, msg!("the value of `{header}` cannot be sent as a header"), help);
            }
        }
    }

    fn body(&mut self) {
        let provider = self.table.provider;
        for field in self.table.extra.keys() {
            if let Some((_, instead)) = provider.reserved_fields().iter().find(|(reserved, _)| reserved == field) {
                self.report(&["extra", field], msg!("`extra` cannot set `{field}`"), *instead);
            }
        }
        let forms = provider.forms();
        if let Some(form) = self.table.structured.filter(|form| !forms.contains(form)) {
            let (form, provider) = (form.name(), provider.name());
            let message = msg!("`structured` cannot be \"{form}\" for a model with provider `{provider}`");
            let names = Message::values(forms.iter().map(|form| format!("\"{}\"", form.name())));
            self.report(&["structured"], message, msg!("write {}", names));
        }
    }

    fn fallback(&mut self, config: &Config) {
        let mut seen = BTreeSet::new();
        for (number, name) in self.table.fallback.iter().enumerate() {
            let number = number.to_string();
            let at = ["fallback", number.as_str()];
            if !seen.insert(name.as_str().to_owned()) {
                self.report(&at, msg!("`fallback` names `{name}` twice"), "keep the first");
            } else if name != OFFLINE && !config.models.contains_key(name) {
                let known = config.models.keys().map(String::as_str).filter(|known| *known != self.name);
                let known: Vec<&str> = known.chain([OFFLINE]).collect();
                let help = match near_miss(name, known.iter().copied()) {
                    Some(near) => msg!("did you mean `{near}`?"),
                    None => {
                        let listed = Message::names(&known);
                        msg!("define it as {}, or use an existing model: {listed}", table_header("models", name))
                    }
                };
                self.report(&at, msg!("`fallback` names `{name}`, but there is no such model"), help);
            }
        }
    }
}

/// Checks that a text is an HTTP URL. The error does not repeat it, because it may contain a password.
pub(crate) fn check_url(text: &str) -> Result<(), Message> {
    let url = Url::parse(text.trim()).map_err(|error| msg!("is not a valid URL ({error})"))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
        return Err(msg!("must start with http:// or https://"));
    }
    Ok(())
}

/// Reports each cycle of fallbacks once, at the entry that closes it.
fn cycles(config: &Config, found: &mut Vec<ConfigError>) {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for start in config.models.keys() {
        let mut path: Vec<(&str, usize)> = vec![(start, 0)];
        while let Some((name, next)) = path.last_mut() {
            let name = *name;
            let number = *next;
            *next += 1;
            let fallback = config.models.get(name).map(|table| table.fallback.as_slice()).unwrap_or_default();
            let Some(target) = fallback.get(number).filter(|_| !done.contains(name)) else {
                done.insert(name);
                path.pop();
                continue;
            };
            let Some((target, _)) = config.models.get_key_value(target.as_str()) else { continue };
            if let Some(first) = path.iter().position(|(name, _)| name == target) {
                let names = path.iter().skip(first).map(|(name, _)| *name).chain([target.as_str()]);
                let cycle = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" → ");
                let table = table_header("models", name);
                let message = msg!("{}: the fallbacks form a cycle: {cycle}", table);
                let help = "remove one of them: a model that gave no reply is not asked again for the same call";
                found.push(ConfigError::new(&["models", name, "fallback", &number.to_string()], message, help));
            } else {
                path.push((target, 0));
            }
        }
    }
}
