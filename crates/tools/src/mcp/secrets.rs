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
    /// The key and the values in the query of the address.
    all: ServerSecrets,
    /// The values of a query may be ordinary words, so that only the key is masked in what is not an error.
    key: ServerSecrets,
}

impl McpSecrets {
    pub(crate) fn of(connection: &McpConnection) -> Self {
        let McpConnection::Address { url, key } = connection else { return Self::default() };
        let key = key.as_ref().map(|key| key.expose_secret().to_owned());
        let address = reqwest::Url::parse(url).ok();
        let query = address.iter().flat_map(query_secrets);
        Self { all: ServerSecrets::new(key.clone().into_iter().chain(query)), key: ServerSecrets::new(key) }
    }

    /// The text of an error, masked and cleaned.
    pub(crate) fn error_text(&self, text: &str) -> String {
        cleaned(&self.all.mask(text), MAX_TEXT)
    }

    /// The same for a text that may have been cut.
    pub(crate) fn cut_error_text(&self, text: &str) -> String {
        cleaned(&self.all.mask_cut(text), MAX_TEXT)
    }

    /// Masks the key in all texts of a value.
    pub(crate) fn mask_key(&self, value: &mut Value) {
        if self.key.is_empty() {
            return;
        }
        match value {
            Value::String(text) => *text = self.key.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_key(item)),
            Value::Object(fields) => {
                let masked = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    self.mask_key(&mut value);
                    (self.key.mask(&name), value)
                });
                *fields = masked.collect();
            }
            _ => {}
        }
    }

    /// Masks the key in what a person is asked. The token goes back to the server unchanged.
    pub(crate) fn mask_question(&self, request: &mut ToolInputRequest) {
        request.prompt = self.key.mask(&request.prompt);
        self.mask_key(&mut request.schema);
    }
}
