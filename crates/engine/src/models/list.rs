//! What can be told of the models of a project without asking them anything.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use reqwest::Url;
use serde::Serialize;
use serde_json::{Value, json};

use crate::config::model_table::{ModelTable, ProviderKind};
use crate::environment::Environment;
use crate::models::chain::chain;
use crate::models::choose::names_a_model;
use crate::models::environment::{EnvironmentKey, key_alone};
use crate::project::{CONFIG_FILE, Project};
use bcc_llm::model::provider::ReplyPolicy;
use bcc_llm::providers::configured::Price;
use bcc_llm::providers::http::config::Structured;
use bcc_llm::providers::rate_limiter::RateLimits;

/// Whether a model has its key. The key itself is never looked at.
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
    /// Where the server listens: without what an address may hide behind its path.
    pub server: Option<String>,
    /// The server's name of the model, or the file of replies.
    pub model: Option<String>,
    pub key: KeyState,
    /// Where the key should be.
    pub key_from: Option<String>,
    /// Whatever else of the environment is missing: variables that headers or the proxy name.
    pub missing: Vec<String>,
    /// The models that are asked when it gives no reply, in order.
    pub fallback: Vec<String>,
    pub limits: RateLimits,
    pub price: Option<Price>,
    pub manners: ReplyPolicy,
    /// How its server is told what a reply must look like.
    pub structured: Structured,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelListing {
    /// The models, by name; `default` also where only the environment makes it.
    pub models: Vec<ListedModel>,
    /// Which model a script without a `model:` asks.
    pub default: String,
    pub why: Message,
    /// Whether what needs trust counts.
    pub trusted: bool,
    /// Whether there is anything that needs trust.
    pub needs_trust: bool,
    /// What to know besides.
    pub notices: Vec<Message>,
}

/// Reads no key: only whether it is there.
pub fn list(project: &Project, environment: &Environment) -> ModelListing {
    let alone = key_alone(&project.config, environment);
    let mut models: Vec<ListedModel> = alone.iter().map(of_key).collect();
    let listed = |(name, table): (&String, &ModelTable)| of_table(project, environment, name, table);
    models.extend(project.config.models.iter().map(listed));
    let (default, why) = default(project, environment, alone.as_ref());
    ModelListing {
        default,
        why,
        trusted: project.trusted,
        needs_trust: !project.config.project.allow.is_empty()
            || project.config.models.values().any(|table| table.provider.sends()),
        notices: alone.iter().filter_map(EnvironmentKey::notice).collect(),
        models,
    }
}

fn of_key(alone: &EnvironmentKey<'_>) -> ListedModel {
    ListedModel {
        name: "default".to_owned(),
        provider: alone.kind,
        server: Some(address(alone.base_url)),
        model: alone.model.map(str::to_owned),
        key: KeyState::Set,
        key_from: Some(alone.variable.to_owned()),
        missing: if alone.model.is_none() { vec!["BCC_MODEL".to_owned()] } else { Vec::new() },
        fallback: Vec::new(),
        limits: RateLimits::default(),
        price: None,
        manners: ReplyPolicy::default(),
        structured: Structured::Auto,
    }
}

fn of_table(project: &Project, environment: &Environment, name: &str, table: &ModelTable) -> ListedModel {
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
        manners: table.manners(),
        structured: table.structured.unwrap_or_default(),
    }
}

/// Which model a script without a `model:` asks when nothing on the command line says otherwise, and why.
fn default(project: &Project, environment: &Environment, alone: Option<&EnvironmentKey<'_>>) -> (String, Message) {
    let asked = environment.get("BCC_MODEL").filter(|name| names_a_model(project, name) || alone.is_none());
    if let Some(asked) = asked {
        return (asked.to_owned(), msg!("set by BCC_MODEL, for all models of a session"));
    }
    if project.config.models.contains_key("default") {
        return ("default".to_owned(), msg!("[models.default] in {CONFIG_FILE}"));
    }
    match alone {
        Some(alone) => {
            let why = msg!("{} is set, and no {CONFIG_FILE} defines `default`", alone.variable);
            ("default".to_owned(), why)
        }
        None => ("offline".to_owned(), msg!("no model is configured (no AI)")),
    }
}

/// An address as far as it may be shown: no user, no query, where keys may stand.
pub fn address(text: &str) -> String {
    let Ok(mut url) = Url::parse(text.trim()) else { return "(no address)".to_owned() };
    url.set_query(None);
    url.set_fragment(None);
    // An address that takes neither has neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string().trim_end_matches('/').to_owned()
}

impl ModelListing {
    /// The same for programs.
    pub fn json(&self) -> Value {
        let models: Vec<Value> = self.models.iter().map(ListedModel::json).collect();
        json!({
            "version": 1,
            "trusted": self.trusted,
            "default": { "name": self.default, "why": self.why },
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
            "repair": self.manners.repair,
            "reask": self.manners.reask,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        for (text, shown) in [
            ("https://llm.example/v1/", "https://llm.example/v1"),
            ("https://ann:geheim@llm.example:8443/v1?key=geheim#geheim", "https://llm.example:8443/v1"),
            ("geheim", "(no address)"),
        ] {
            assert_eq!(address(text), shown);
        }
    }
}
