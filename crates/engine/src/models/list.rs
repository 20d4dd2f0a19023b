//! `models list`: the models of a project, without sending anything to them.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use reqwest::Url;
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::model_table::{ModelTable, ProviderKind};
use crate::environment::Environment;
use crate::models::chain::chain;
use crate::models::choose::names_a_model;
use crate::models::environment::{EnvironmentKey, environment_key};
use crate::project::{CONFIG_FILE, Project};
use bcc_llm::model::provider::ReplyPolicy;
use bcc_llm::providers::configured::Price;
use bcc_llm::providers::http::config::Structured;
use bcc_llm::providers::rate_limiter::RateLimits;

/// Whether a model has its key. The key itself is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyState {
    None,
    Set,
    Missing,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ListedModel {
    pub name: String,
    pub provider: ProviderKind,
    /// The URL of the server, without user, query and fragment.
    pub server: Option<String>,
    /// The server's name of the model, or the replies file.
    pub model: Option<String>,
    pub key: KeyState,
    /// The variable or file of the key.
    pub key_from: Option<String>,
    /// Other environment variables that are not set: those of headers and of the proxy.
    pub missing: Vec<String>,
    /// The models that are called if it fails, in order.
    pub fallback: Vec<String>,
    pub limits: RateLimits,
    pub price: Option<Price>,
    pub reply_policy: ReplyPolicy,
    /// The form of structured output.
    pub structured: Structured,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelListing {
    /// The models, by name, including a `default` that the environment defines.
    pub models: Vec<ListedModel>,
    /// The model of a script without `model:`.
    pub default: String,
    pub reason: Message,
    /// Whether the settings that need trust apply.
    pub trusted: bool,
    /// Whether the configuration has settings that need trust.
    pub needs_trust: bool,
    pub notices: Vec<Message>,
}

/// Lists the models. Checks whether keys exist, without reading them.
pub fn list(project: &Project, environment: &Environment) -> ModelListing {
    let key = environment_key(&project.config, environment);
    let mut models: Vec<ListedModel> = key.iter().map(model_of_key).collect();
    let listed = |(name, table): (&String, &ModelTable)| model_of_table(project, environment, name, table);
    models.extend(project.config.models.iter().map(listed));
    let (default, reason) = default(project, environment, key.as_ref());
    ModelListing {
        default,
        reason,
        trusted: project.trusted,
        needs_trust: !project.config.project.allow.is_empty()
            || project.config.models.values().any(|table| table.provider.sends()),
        notices: key.iter().filter_map(EnvironmentKey::notice).collect(),
        models,
    }
}

fn model_of_key(key: &EnvironmentKey<'_>) -> ListedModel {
    ListedModel {
        name: "default".to_owned(),
        provider: key.kind,
        server: Some(address(key.base_url)),
        model: key.model.map(str::to_owned),
        key: KeyState::Set,
        key_from: Some(key.variable.to_owned()),
        missing: if key.model.is_none() { vec!["BCC_MODEL".to_owned()] } else { Vec::new() },
        fallback: Vec::new(),
        limits: RateLimits::default(),
        price: None,
        reply_policy: key.kind.reply_policy(),
        structured: Structured::Auto,
    }
}

fn model_of_table(project: &Project, environment: &Environment, name: &str, table: &ModelTable) -> ListedModel {
    use crate::config::values::TextOrEnv;
    let is_set = |set: bool| if set { KeyState::Set } else { KeyState::Missing };
    let (key, key_from) = match (&table.api_key_env, &table.api_key_file) {
        (Some(variable), _) => (is_set(environment.get(variable).is_some()), Some(variable.clone())),
        (None, Some(file)) => (is_set(project.directory.join(file).is_file()), Some(file.clone())),
        (None, None) => (KeyState::None, None),
    };
    let variables = table.headers.values().chain(&table.proxy).filter_map(|given| match given {
        TextOrEnv::Env(variable) => Some(variable),
        TextOrEnv::Text(_) => None,
    });
    let missing = variables.filter(|variable| environment.get(variable).is_none()).cloned().collect();
    ListedModel {
        name: name.to_owned(),
        provider: table.provider,
        server: table.server().filter(|_| table.provider.sends()).map(address),
        model: if table.provider == ProviderKind::Replay { table.file.clone() } else { table.model.clone() },
        key,
        key_from,
        missing,
        fallback: chain(&project.config, name).into_iter().skip(1).map(str::to_owned).collect(),
        limits: table.limits(),
        price: table.price(),
        reply_policy: table.reply_policy(),
        structured: table.structured.unwrap_or_default(),
    }
}

/// The model of a script without `model:`, if the command line does not set one, and the reason.
fn default(project: &Project, environment: &Environment, key: Option<&EnvironmentKey<'_>>) -> (String, Message) {
    let requested = environment.get("BCC_MODEL").filter(|name| names_a_model(project, name) || key.is_none());
    if let Some(requested) = requested {
        return (requested.to_owned(), msg!("set by BCC_MODEL, for all models of a session"));
    }
    if project.config.models.contains_key("default") {
        return ("default".to_owned(), msg!("[models.default] in {CONFIG_FILE}"));
    }
    match key {
        Some(key) => {
            let reason = msg!("{} is set, and no {CONFIG_FILE} defines `default`", key.variable);
            ("default".to_owned(), reason)
        }
        None => ("offline".to_owned(), msg!("no model is configured (no AI)")),
    }
}

/// A URL without user, query and fragment, which may contain keys.
pub fn address(text: &str) -> String {
    let Ok(mut url) = Url::parse(text.trim()) else { return "(no address)".to_owned() };
    url.set_query(None);
    url.set_fragment(None);
    // These fail only for a URL that cannot have a user.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string().trim_end_matches('/').to_owned()
}

impl ModelListing {
    /// The list as JSON.
    pub fn json(&self) -> Value {
        let models: Vec<Value> = self.models.iter().map(ListedModel::json).collect();
        json!({
            "version": 1,
            "trusted": self.trusted,
            "default": { "name": self.default, "why": self.reason },
            "models": models,
        })
    }
}

impl ListedModel {
    fn json(&self) -> Value {
        let price = self.price.as_ref().map(|price| {
            json!({ "input": price.input, "output": price.output, "cached": price.cached, "currency": price.currency, "per": price.per })
        });
        json!({
            "name": self.name,
            "provider": self.provider.name(),
            "server": self.server,
            "model": self.model,
            "key": self.key,
            "key_from": self.key_from,
            "missing": self.missing,
            "fallback": self.fallback,
            "concurrency": self.limits.concurrency,
            "requests_per_minute": self.limits.requests_per_minute,
            "tokens_per_minute": self.limits.tokens_per_minute,
            "price": price,
            "structured": self.structured.name(),
            "repair": self.reply_policy.repair,
            "reask": self.reply_policy.reask,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_possible_secrets() {
        for (text, shown) in [
            ("https://llm.example/v1/", "https://llm.example/v1"),
            ("https://ann:geheim@llm.example:8443/v1?key=geheim#geheim", "https://llm.example:8443/v1"),
            ("geheim", "(no address)"),
        ] {
            assert_eq!(address(text), shown);
        }
    }
}
