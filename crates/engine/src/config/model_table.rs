//! The table `[models.<name>]` of `bcc-script.toml`.

use bcc_lang::message::message::Message;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserialize as De, Deserializer};
use serde_json::{Map, Value};

use crate::config::values::{TextOrEnv, amount, body, custom, duration, named, some_amount, switch, whole};
use bcc_llm::model::provider::ReplyPolicy;
use bcc_llm::providers::anthropic::{ANTHROPIC_BASE_URL, MESSAGES};
use bcc_llm::providers::configured::Price;
use bcc_llm::providers::http::config::Structured;
use bcc_llm::providers::openai::CHAT_COMPLETIONS;
use bcc_llm::providers::rate_limiter::RateLimits;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// A server with OpenAI's chat completions API.
    OpenAi,
    Anthropic,
    /// The built-in rule-based responder; not a model.
    Offline,
    /// Prepared replies from a file.
    Replay,
}

impl ProviderKind {
    /// All kinds, in the order in which messages list them.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Offline, Self::Replay];

    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Offline => "offline",
            Self::Replay => "replay",
        }
    }

    pub const fn sends(self) -> bool {
        matches!(self, Self::OpenAi | Self::Anthropic)
    }

    /// How replies are read if the table does not say it. A model is asked again once; prepared replies are used one by one.
    pub(crate) const fn reply_policy(self) -> ReplyPolicy {
        ReplyPolicy { repair: false, reask: if self.sends() { 1 } else { 0 } }
    }

    /// The server if `base_url` is not set.
    pub(crate) const fn default_server(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some(ANTHROPIC_BASE_URL),
            Self::Offline | Self::Replay => None,
        }
    }

    /// The forms of structured output that its servers support.
    pub fn forms(self) -> Vec<Structured> {
        match self {
            Self::OpenAi => CHAT_COMPLETIONS.forms().collect(),
            Self::Anthropic => MESSAGES.forms().collect(),
            // Nothing is sent, so every form is accepted.
            Self::Offline | Self::Replay => Structured::ALL.to_vec(),
        }
    }

    /// The fields of the request body that `extra` cannot set, each with the setting to use instead.
    pub fn reserved_fields(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::OpenAi => CHAT_COMPLETIONS.reserved_fields,
            Self::Anthropic => MESSAGES.reserved_fields,
            Self::Offline | Self::Replay => &[],
        }
    }
}

impl<'de> De<'de> for ProviderKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        named("provider", &Self::ALL, Self::name, &text)
    }
}

/// `[models.<name>]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelTable {
    pub provider: ProviderKind,
    pub base_url: Option<String>,
    /// The server's name of the model.
    pub model: Option<String>,
    pub api_key_env: Option<String>,
    /// The file that holds the key, relative to the project.
    pub api_key_file: Option<String>,
    /// The file of replies, for `replay`, relative to the project.
    pub file: Option<String>,
    #[serde(default, deserialize_with = "some_amount")]
    pub temperature: Option<f64>,
    #[serde(default, deserialize_with = "whole::<_, _, 1, 10_000_000>")]
    pub max_tokens: Option<u32>,
    /// For a complete attempt.
    #[serde(default, deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// Until the first piece of a reply.
    #[serde(default, deserialize_with = "duration")]
    pub first_token_timeout: Option<Duration>,
    /// Between two pieces of a reply.
    #[serde(default, deserialize_with = "duration")]
    pub idle_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "whole::<_, _, 1, 20>")]
    pub max_attempts: Option<u32>,
    #[serde(default)]
    pub headers: BTreeMap<String, TextOrEnv>,
    #[serde(default, deserialize_with = "body")]
    pub extra: Map<String, Value>,
    /// The proxy, or `none`.
    #[serde(default, deserialize_with = "TextOrEnv::some")]
    pub proxy: Option<TextOrEnv>,
    #[serde(default, deserialize_with = "structured")]
    pub structured: Option<Structured>,
    #[serde(default, deserialize_with = "switch")]
    pub repair: Option<bool>,
    /// How often an invalid reply is sent back to the model with its errors (docs/replies.md).
    #[serde(default, deserialize_with = "whole::<_, _, 0, 5>")]
    pub reask: Option<u32>,
    #[serde(default, deserialize_with = "whole::<_, _, 1, 10_000>")]
    pub concurrency: Option<u32>,
    #[serde(default, deserialize_with = "whole::<_, _, 1, 1_000_000>")]
    pub requests_per_minute: Option<u32>,
    #[serde(default, deserialize_with = "whole::<_, _, 1, 1_000_000_000_000>")]
    pub tokens_per_minute: Option<u64>,
    #[serde(default)]
    pub price: Option<PriceTable>,
    /// The models that are called if this one fails, in order.
    #[serde(default)]
    pub fallback: Vec<String>,
}

/// `price` of `[models.<name>]`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// For `per` tokens of a prompt.
    #[serde(deserialize_with = "amount")]
    pub input: f64,
    /// For `per` tokens of a reply.
    #[serde(deserialize_with = "amount")]
    pub output: f64,
    /// For `per` tokens of a prompt that the server had cached.
    #[serde(default, deserialize_with = "some_amount")]
    pub cached: Option<f64>,
    #[serde(default, deserialize_with = "currency")]
    pub currency: Option<String>,
    /// The number of tokens that a price applies to.
    #[serde(default, deserialize_with = "whole::<_, _, 1, 1_000_000_000>")]
    pub per: Option<u64>,
}

fn structured<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Structured>, D::Error> {
    let text = String::deserialize(deserializer)?;
    named("form", &Structured::ALL, Structured::name, &text).map(Some)
}

fn currency<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    const MAX_LENGTH: usize = 10;
    let text = String::deserialize(deserializer)?;
    let fits =
        (1..=MAX_LENGTH).contains(&text.chars().count()) && text.chars().all(|c| !c.is_whitespace() && !c.is_control());
    if fits {
        Ok(Some(text))
    } else {
        Err(custom(&Message::word("`currency` must be a single short word, such as \"USD\" or \"CNY\"")))
    }
}

impl ModelTable {
    pub const fn limits(&self) -> RateLimits {
        RateLimits {
            concurrency: self.concurrency,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
        }
    }

    pub fn reply_policy(&self) -> ReplyPolicy {
        let default = self.provider.reply_policy();
        ReplyPolicy { repair: self.repair.unwrap_or(default.repair), reask: self.reask.unwrap_or(default.reask) }
    }

    /// The price; by default in USD, for a million tokens.
    pub fn price(&self) -> Option<Price> {
        let table = self.price.as_ref()?;
        Some(Price {
            input: table.input,
            output: table.output,
            cached: table.cached,
            currency: table.currency.clone().unwrap_or_else(|| "USD".to_owned()),
            per: table.per.unwrap_or(1_000_000),
        })
    }

    pub fn server(&self) -> Option<&str> {
        self.base_url.as_deref().or(self.provider.default_server())
    }
}
