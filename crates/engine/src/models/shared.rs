//! State of models that all sessions of an engine share: rate limiters, and connections with what was learned about a server.

use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::ExposeSecret;

use crate::config::model_table::ProviderKind;
use crate::pin::sha256;
use bcc_llm::model::error::ModelError;
use bcc_llm::model::provider::Provider;
use bcc_llm::providers::anthropic::MESSAGES;
use bcc_llm::providers::http::caller::Caller;
use bcc_llm::providers::http::config::ServerConfig;
use bcc_llm::providers::openai::CHAT_COMPLETIONS;
use bcc_llm::providers::rate_limiter::{RateLimiter, RateLimits};

/// The directory of a project, and the name of a model in it.
type Key = (PathBuf, String);

/// Shared rate limiters and connections. If the settings of a model change (such as its key or limits), a new one is created.
#[derive(Default)]
pub struct SharedModels {
    limiters: Arc<Mutex<BTreeMap<Key, Arc<RateLimiter>>>>,
    servers: Mutex<BTreeMap<Key, Connected>>,
}

struct Connected {
    /// A hash of all settings, including keys.
    settings: String,
    provider: Arc<dyn Provider>,
}

impl SharedModels {
    /// The same rate limiters with separate connections, for another runtime: a connection belongs to the runtime that created it.
    pub fn with_own_connections(&self) -> Self {
        Self { limiters: Arc::clone(&self.limiters), servers: Mutex::default() }
    }

    /// The rate limiter of a model; `None` if it has no limits.
    pub fn limiter(&self, project: &Path, name: &str, limits: RateLimits) -> Option<Arc<RateLimiter>> {
        if limits.are_none() {
            return None;
        }
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        let limiter = limiters
            .entry((project.to_path_buf(), name.to_owned()))
            .and_modify(|limiter| {
                if limiter.limits() != limits {
                    *limiter = Arc::new(RateLimiter::new(limits));
                }
            })
            .or_insert_with(|| Arc::new(RateLimiter::new(limits)));
        Some(Arc::clone(limiter))
    }

    pub fn server(
        &self,
        project: &Path,
        name: &str,
        kind: ProviderKind,
        config: ServerConfig,
    ) -> Result<Arc<dyn Provider>, ModelError> {
        let settings = fingerprint(kind, &config);
        let key = (project.to_path_buf(), name.to_owned());
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connected) = servers.get(&key).filter(|connected| connected.settings == settings) {
            return Ok(Arc::clone(&connected.provider));
        }
        let provider = connect(kind, config)?;
        servers.insert(key, Connected { settings, provider: Arc::clone(&provider) });
        Ok(provider)
    }
}

/// Creates the client of a server. Sends nothing yet.
pub fn connect(kind: ProviderKind, config: ServerConfig) -> Result<Arc<dyn Provider>, ModelError> {
    match kind {
        ProviderKind::OpenAi => Ok(Arc::new(Caller::new(&CHAT_COMPLETIONS, config)?)),
        ProviderKind::Anthropic => Ok(Arc::new(Caller::new(&MESSAGES, config)?)),
        ProviderKind::Offline | ProviderKind::Replay => {
            Err(ModelError::Config { message: msg!("`{}` has no server", kind.name()) })
        }
    }
}

/// A hash of all settings, including secrets, which their debug format omits.
fn fingerprint(kind: ProviderKind, config: &ServerConfig) -> String {
    let mut text = format!("{kind:?} {config:?}");
    let secrets = config.api_key.iter().chain(config.headers.iter().map(|(_, value)| value));
    let secrets = secrets.map(|secret| secret.expose_secret().to_owned());
    let hidden = [config.base_url.clone(), format!("{:?}", config.proxy), format!("{:?}", config.extra)];
    for part in secrets.chain(hidden) {
        let _ = write!(text, " {}:{part}", part.len());
    }
    sha256(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_a_server_until_its_settings_change() {
        let shared = SharedModels::default();
        let project = Path::new("p");
        let server = |name: &str, change: fn(&mut ServerConfig)| {
            let mut config = ServerConfig::new("http://localhost:1", "m");
            change(&mut config);
            shared.server(project, name, ProviderKind::OpenAi, config).unwrap()
        };
        let first = server("a", |_| {});
        assert!(Arc::ptr_eq(&first, &server("a", |_| {})));
        assert!(!Arc::ptr_eq(&first, &server("b", |_| {})));
        let with_key = server("a", |config| config.api_key = Some("one".into()));
        assert!(!Arc::ptr_eq(&first, &with_key));
        assert!(!Arc::ptr_eq(&with_key, &server("a", |config| config.api_key = Some("two".into()))));
        let changes: [fn(&mut ServerConfig); 5] = [
            |config| config.base_url = "http://localhost:2".into(),
            |config| config.proxy = Some("none".into()),
            |config| config.headers.push(("x-team".into(), "a".into())),
            |config| config.extra = [("top_p".to_owned(), 0.5.into())].into_iter().collect(),
            |config| config.max_tokens = Some(5),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let first = server("c", |_| {});
            assert!(!Arc::ptr_eq(&first, &server("c", change)), "{number}");
        }
    }

    #[test]
    fn sessions_share_a_rate_limiter_until_its_limits_change() {
        let shared = SharedModels::default();
        let limits = |concurrency| RateLimits { concurrency, ..RateLimits::default() };
        let limiter = |project: &str, limits| shared.limiter(Path::new(project), "a", limits);
        let first = limiter("p", limits(Some(2))).unwrap();
        assert!(Arc::ptr_eq(&first, &limiter("p", limits(Some(2))).unwrap()));
        assert!(!Arc::ptr_eq(&first, &limiter("q", limits(Some(2))).unwrap()), "another project, another model");
        assert!(!Arc::ptr_eq(&first, &limiter("p", limits(Some(3))).unwrap()));
        assert!(limiter("p", limits(None)).is_none());
    }
}
