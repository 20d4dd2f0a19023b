//! The secrets with which a server is called, which it may repeat in what it sends.

use bcc_engine::mcp_servers::McpConnection;
use bcc_llm::http::secrets::{ServerSecrets, query_secrets};
use bcc_runtime::effects::tools::ToolInputRequest;
use secrecy::ExposeSecret;
use serde_json::Value;

use crate::mcp::texts::{MAX_TEXT, cleaned};

/// What is masked in the texts of one server.
#[derive(Clone, Default)]
pub(crate) struct McpSecrets {
    /// The keys and the values in the query of the address.
    all: ServerSecrets,
    /// The values of a query may be ordinary words, so that only keys are masked in what is not an error.
    keys: ServerSecrets,
}

impl McpSecrets {
    pub(crate) fn of(connection: &McpConnection) -> Self {
        let (keys, address) = match connection {
            McpConnection::Address { url, key } => (key.as_slice(), reqwest::Url::parse(url).ok()),
            McpConnection::Program { secrets, .. } => (secrets.as_slice(), None),
        };
        let keys: Vec<String> = keys.iter().map(|key| key.expose_secret().to_owned()).collect();
        let query = address.iter().flat_map(query_secrets);
        Self { all: ServerSecrets::new(keys.iter().cloned().chain(query)), keys: ServerSecrets::new(keys) }
    }

    /// The text of an error, masked and cleaned.
    pub(crate) fn error_text(&self, text: &str) -> String {
        cleaned(&self.all.mask(text), MAX_TEXT)
    }

    /// The same for a text that may have been cut.
    pub(crate) fn cut_error_text(&self, text: &str) -> String {
        cleaned(&self.all.mask_cut(text), MAX_TEXT)
    }

    /// A text that is only logged, and that may have been cut.
    pub(crate) fn log_text(&self, text: &str) -> String {
        self.all.mask_cut(text)
    }

    /// Masks keys in all texts of a value.
    pub(crate) fn mask_keys(&self, value: &mut Value) {
        if self.keys.is_empty() {
            return;
        }
        match value {
            Value::String(text) => *text = self.keys.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_keys(item)),
            Value::Object(fields) => {
                let masked = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    self.mask_keys(&mut value);
                    (self.keys.mask(&name), value)
                });
                *fields = masked.collect();
            }
            _ => {}
        }
    }

    /// Masks keys in what a person is asked. The token goes back to the server unchanged.
    pub(crate) fn mask_question(&self, request: &mut ToolInputRequest) {
        request.prompt = self.keys.mask(&request.prompt);
        self.mask_keys(&mut request.schema);
    }
}
