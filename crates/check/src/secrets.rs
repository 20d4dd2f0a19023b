//! `secret`: a file contains text that looks like an API key, a token or a password. Reports redact it: see
//! [`bcc_lang::source::render::redaction`].

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::sync::Arc;

use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::text::SourceFile;

/// The maximum number of findings per file: a list of thousands is data.
const MAX_FINDINGS: usize = 100;

/// Returns a warning for each text of the file that looks like a secret.
pub fn secrets(file: &Arc<SourceFile>) -> Vec<Diagnostic> {
    let warning = |secret: &bcc_lang::source::secrets::Secret| {
        let message = msg!("this looks like {}, which anyone with the file can read", Message::word(secret.kind));
        let help = "revoke it at the service that issued it, and remove it from the file: bcc-script reads a key from the environment variable that `api_key_env` in bcc-script.toml specifies";
        Diagnostic::warning("secret", message, file, secret.span).with_help(help)
    };
    file.secrets().iter().take(MAX_FINDINGS).map(warning).collect()
}
