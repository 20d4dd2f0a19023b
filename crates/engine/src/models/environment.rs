//! `default` by the environment alone: a key, where no file says what `default` is (docs/configuration.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use secrecy::SecretString;

use crate::config::config::Config;
use crate::config::model_table::ProviderKind;
use crate::environment::Environment;
use crate::error::EngineError;
use bcc_llm::providers::http::config::ServerConfig;

/// The kinds that a key can stand for, the first of those that are set wins: `OPENAI_API_KEY` was there first, and a second
/// key in the environment must not send the conversations of a setup that works somewhere else.
const KEYS: [(ProviderKind, &str, &str); 2] = [
    (ProviderKind::OpenAi, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    (ProviderKind::Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
];

/// A key of the environment that makes `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvironmentKey<'a> {
    /// The provider that it belongs to.
    pub kind: ProviderKind,
    pub variable: &'static str,
    pub base_url: &'a str,
    /// What `BCC_MODEL` names, without the provider that it may begin with.
    pub model: Option<&'a str>,
    /// The variable of another key that is set and does not count.
    pub beside: Option<&'static str>,
}

/// The key that makes `default`; `None` when a file does, or no key is set.
pub fn key_alone<'a>(config: &Config, environment: &'a Environment) -> Option<EnvironmentKey<'a>> {
    if config.models.contains_key("default") {
        return None;
    }
    let set = || KEYS.iter().filter(|(_, variable, _)| environment.get(variable).is_some());
    let asked = environment.get("BCC_MODEL");
    let of = |kind: ProviderKind| asked?.strip_prefix(kind.name())?.strip_prefix(':').filter(|rest| !rest.is_empty());
    let (kind, variable, url) = set().find(|(kind, ..)| of(*kind).is_some()).or_else(|| set().next())?;
    Some(EnvironmentKey {
        kind: *kind,
        variable,
        base_url: environment.get(url).or(kind.usual_server())?,
        model: of(*kind).or(asked),
        // Whoever names the provider has chosen.
        beside: set().map(|(_, other, _)| *other).find(|other| other != variable).filter(|_| of(*kind).is_none()),
    })
}

impl EnvironmentKey<'_> {
    /// The settings of the model that it makes.
    pub fn server(&self, environment: &Environment) -> Result<ServerConfig, EngineError> {
        let Some(model) = self.model else {
            return Err(EngineError::usage(msg!("{} is set, but no model is specified", self.variable))
                .with_help("set BCC_MODEL to the model's name on the server, or use `--model offline`"));
        };
        let mut config = ServerConfig::new(self.base_url, model);
        config.api_key = environment.get(self.variable).map(|key| SecretString::from(key.to_owned()));
        Ok(config)
    }

    /// What to know when another key is set too.
    pub fn notice(&self) -> Option<Message> {
        let (other, name) = (self.beside?, self.kind.name());
        let other_name = KEYS.iter().find(|(_, variable, _)| *variable == other).map(|(kind, ..)| kind.name())?;
        Some(msg!(
            "{} and {other} are both set: {name} is used; to use the other one, set BCC_MODEL={other_name}:NAME",
            self.variable
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&'static str, &str)]) -> Option<(ProviderKind, String, Option<String>, bool)> {
        let environment = Environment::of(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let alone = key_alone(&Config::default(), &environment)?;
        Some((alone.kind, alone.base_url.to_owned(), alone.model.map(str::to_owned), alone.notice().is_some()))
    }

    #[test]
    fn a_key_alone_makes_the_default_and_of_two_the_one_that_bcc_model_names_or_else_openai() {
        use ProviderKind::{Anthropic, OpenAi};
        let (a, o) = (("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k"));
        let model = |name| ("BCC_MODEL", name);
        let openai = "https://api.openai.com/v1";
        let anthropic = "https://api.anthropic.com";
        let table = [
            (vec![], None),
            (vec![model("m")], None),
            (vec![("OPENAI_API_KEY", "")], None),
            (vec![o, model("m")], Some((OpenAi, openai, Some("m"), false))),
            (vec![o], Some((OpenAi, openai, None, false))),
            (vec![a, model("claude")], Some((Anthropic, anthropic, Some("claude"), false))),
            (vec![a, ("ANTHROPIC_BASE_URL", "http://h")], Some((Anthropic, "http://h", None, false))),
            (vec![a, ("OPENAI_BASE_URL", "http://h"), model("m")], Some((Anthropic, anthropic, Some("m"), false))),
            (vec![a, o, model("m")], Some((OpenAi, openai, Some("m"), true))),
            (vec![a, o, model("anthropic:m")], Some((Anthropic, anthropic, Some("m"), false))),
            (vec![a, o, model("openai:m:8b")], Some((OpenAi, openai, Some("m:8b"), false))),
            (vec![o, model("anthropic:m")], Some((OpenAi, openai, Some("anthropic:m"), false))),
        ];
        for (variables, expected) in table {
            let expected =
                expected.map(|(kind, url, model, noticed)| (kind, url.to_owned(), model.map(str::to_owned), noticed));
            assert_eq!(of(&variables), expected, "{variables:?}");
        }
    }
}
