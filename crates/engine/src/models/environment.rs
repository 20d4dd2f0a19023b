//! The model `default` from an API key in the environment, if no file defines `default` (docs/configuration.md).

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use secrecy::SecretString;

use crate::config::config::Config;
use crate::config::model_table::ProviderKind;
use crate::environment::Environment;
use crate::error::EngineError;
use bcc_llm::providers::http::config::ServerConfig;

/// The providers and their variables. The first key that is set is used: `OPENAI_API_KEY` was supported first, and adding another
/// key to the environment must not redirect the conversations of an existing setup.
const KEYS: [(ProviderKind, &str, &str); 2] = [
    (ProviderKind::OpenAi, "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    (ProviderKind::Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
];

/// An API key in the environment that defines `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvironmentKey<'a> {
    /// The provider of the key.
    pub kind: ProviderKind,
    pub variable: &'static str,
    pub base_url: &'a str,
    /// The model in `BCC_MODEL`, without the prefix for the provider.
    pub model: Option<&'a str>,
    /// The variable of another key that is set and ignored.
    pub ignored: Option<&'static str>,
}

/// The key that defines `default`; `None` if a file defines it, or no key is set.
pub fn environment_key<'a>(config: &Config, environment: &'a Environment) -> Option<EnvironmentKey<'a>> {
    if config.models.contains_key("default") {
        return None;
    }
    let set = || KEYS.iter().filter(|(_, variable, _)| environment.get(variable).is_some());
    let requested = environment.get("BCC_MODEL");
    let model_of =
        |kind: ProviderKind| requested?.strip_prefix(kind.name())?.strip_prefix(':').filter(|rest| !rest.is_empty());
    let (kind, variable, url) = set().find(|(kind, ..)| model_of(*kind).is_some()).or_else(|| set().next())?;
    Some(EnvironmentKey {
        kind: *kind,
        variable,
        base_url: environment.get(url).or(kind.default_server())?,
        model: model_of(*kind).or(requested),
        // If `BCC_MODEL` names the provider, there is nothing to report.
        ignored: set()
            .map(|(_, other, _)| *other)
            .find(|other| other != variable)
            .filter(|_| model_of(*kind).is_none()),
    })
}

impl EnvironmentKey<'_> {
    /// The settings of the model.
    pub fn server(&self, environment: &Environment) -> Result<ServerConfig, EngineError> {
        let Some(model) = self.model else {
            return Err(EngineError::usage(msg!("{} is set, but no model is specified", self.variable))
                .with_help("set BCC_MODEL to the model's name on the server, or use `--model offline`"));
        };
        let mut config = ServerConfig::new(self.base_url, model);
        config.api_key = environment.get(self.variable).map(|key| SecretString::from(key.to_owned()));
        Ok(config)
    }

    /// A notice if another key is set and ignored.
    pub fn notice(&self) -> Option<Message> {
        let (other, name) = (self.ignored?, self.kind.name());
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
        let key = environment_key(&Config::default(), &environment)?;
        Some((key.kind, key.base_url.to_owned(), key.model.map(str::to_owned), key.notice().is_some()))
    }

    #[test]
    fn a_key_defines_the_default_and_bcc_model_decides_between_two_keys() {
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
