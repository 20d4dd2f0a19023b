//! Finds secrets in a `bcc-script.toml` (keys, passwords and tokens in places where they do not belong), to redact them.

use std::ops::Range;

use crate::config::places::ConfigSource;
use bcc_lang::source::secrets::secrets;

/// The words of names that announce a secret. Only whole words count: `x-portkey-custom-host` is not a key.
const WORDS: [&str; 20] = [
    "key",
    "keys",
    "apikey",
    "accesskey",
    "secretkey",
    "token",
    "tokens",
    "apitoken",
    "authtoken",
    "secret",
    "secrets",
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "authorization",
    "cookie",
    "cookies",
    "credential",
    "credentials",
];

/// Names of headers that always carry a secret, in lower case and with `-`.
const SECRET_HEADERS: [&str; 26] = [
    "access-token",
    "api-key",
    "api-secret",
    "apikey",
    "auth-token",
    "authorization",
    "client-secret",
    "cookie",
    "helicone-auth",
    "key",
    "ocp-apim-subscription-key",
    "password",
    "private-token",
    "proxy-authorization",
    "secret",
    "set-cookie",
    "subscription-key",
    "token",
    "x-access-token",
    "x-amz-security-token",
    "x-auth-token",
    "x-authorization",
    "x-functions-key",
    "x-secret",
    "x-token",
    "x-vault-token",
];

/// The ends of the names that services give to the header of their own key: `x-goog-api-key`.
const SECRET_HEADER_ENDS: [&str; 3] = ["-api-key", "-apikey", "-authorization"];

/// Suffixes of keys that contain no secret: names of variables and files, durations and numbers.
const HARMLESS_SUFFIXES: [&str; 4] = ["_env", "_file", "_timeout", "_per_minute"];

/// Whether a header of this name is known to carry a secret, so that its value must not be in the file.
pub(crate) fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    SECRET_HEADERS.contains(&name.as_str()) || SECRET_HEADER_ENDS.iter().any(|end| name.ends_with(end))
}

/// Whether a key or a header of this name may contain a secret, so that messages do not show its value.
pub(crate) fn names_secret(name: &str) -> bool {
    let named = words(name).iter().any(|word| WORDS.contains(&word.as_str())) || name.contains("密码");
    let name = name.to_ascii_lowercase();
    named && !HARMLESS_SUFFIXES.iter().any(|end| name.ends_with(end)) && !name.starts_with("max")
}

/// The words of a name in lower case: `apiKey`, `X-Api-Key` and `api_key` have `api` and `key`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        let starts_word = c.is_ascii_uppercase() && after_lower;
        if starts_word || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        after_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    words
}

/// The byte ranges of secrets in `text`; they may overlap.
pub(crate) fn secret_ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        ranges.extend(line_secret(line).map(|range| start + range.start..start + range.end));
        start += line.len();
    }
    if ConfigSource::of(text).is_none() {
        // In invalid TOML, the end of a string is unknown, and so is the end of the user name in a URL.
        ranges.extend(user_ranges(text));
    }
    // Multi-line strings and passwords in URLs are found only if the file is valid TOML.
    for (path, value, span) in ConfigSource::of(text).iter().flat_map(ConfigSource::texts) {
        // Also below such a key, as in `key = { value = "…" }`; but the name of an environment variable is not a secret.
        let named = path.iter().any(|name| names_secret(name)) && path.last() != Some(&"env");
        let misplaced = path.last().is_some_and(|name| names_variable(name)) && !is_variable(value);
        let misplaced = misplaced || matches!(path.last(), Some(&"api_key_file" | &"token_file")) && is_key(value);
        if (named || misplaced) && span.len() > 2 {
            ranges.push(span.start + 1..span.end - 1);
        }
        if let Some(user) = user_info(value) {
            let written = text.get(span.clone()).and_then(|written| written.find(user));
            ranges.extend(written.map(|at| span.start + at..span.start + at + user.len()));
        }
    }
    ranges
}

fn names_variable(key: &str) -> bool {
    matches!(key, "env" | "api_key_env" | "token_env")
}

/// Whether a text can be the name of an environment variable, and does not look like a key that was written instead of a name:
/// upper-case letters, lower-case letters and digits together.
pub(crate) fn is_variable(text: &str) -> bool {
    const MAX_LENGTH: usize = 64;
    let has = |of: fn(&char) -> bool| text.chars().any(|c| of(&c));
    let name = has(|_| true) && text.chars().all(|c| c.is_alphanumeric() || c == '_') && text.len() <= MAX_LENGTH;
    let random = has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase) && has(char::is_ascii_digit);
    name && !random && !text.starts_with(|c: char| c.is_ascii_digit()) && !is_key(text)
}

/// Whether a text looks like a key of a known service.
pub fn is_key(text: &str) -> bool {
    !secrets(text).is_empty()
}

/// The part of a URL before the `@`, which contains a user name or a password.
pub(crate) fn user_info(address: &str) -> Option<&str> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(user).filter(|user| !user.is_empty() && address.contains("://"))
}

/// The text between `://` and the last `@` of each line.
fn user_ranges(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let start_in_line = line.find("://").map(|at| at + 3);
        if let (Some(start_in_line), Some(end_in_line)) = (start_in_line, line.rfind('@'))
            && start_in_line < end_in_line
        {
            found.push(start + start_in_line..start + end_in_line);
        }
        start += line.len();
    }
    found
}

/// The value of a line whose key contains a secret, even if the file is not valid TOML.
fn line_secret(line: &str) -> Option<Range<usize>> {
    let of_secret = |equals: usize| {
        let key = line.get(..equals).unwrap_or_default().trim_end().trim_end_matches(['"', '\'']);
        let word = key.rsplit(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-')).next();
        let value = line.get(equals + 1..).unwrap_or_default().trim_start();
        word.is_some_and(names_secret) && !is_env_table(value)
    };
    let equals = line.match_indices('=').map(|(at, _)| at).find(|at| of_secret(*at))?;
    let value = line.get(equals + 1..)?;
    let start = equals + 1 + value.find(|c: char| !c.is_whitespace() && !matches!(c, '"' | '\''))?;
    let end = line.trim_end().trim_end_matches(['"', '\'']).len();
    (start < end).then_some(start..end)
}

/// Whether a value is `{ env = … }`, which refers to an environment variable.
fn is_env_table(value: &str) -> bool {
    let inside = value.strip_prefix('{').map(str::trim_start).and_then(|inside| inside.strip_prefix("env"));
    inside.is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// The text with a `*` for every character of a secret.
pub fn masked(text: &str) -> String {
    let ranges = secret_ranges(text);
    let star = |(at, c): (usize, char)| {
        if c != '\n' && ranges.iter().any(|range| range.contains(&at)) {
            "*".repeat(c.len_utf8())
        } else {
            c.to_string()
        }
    };
    if ranges.is_empty() { text.to_owned() } else { text.char_indices().map(star).collect() }
}

/// `message` without the secrets of `text`.
pub fn redact(message: &str, text: &str) -> String {
    // Shorter parts, such as a bracket, are not secrets, and would match everywhere.
    const MIN_LENGTH: usize = 3;
    let parts =
        secret_ranges(text).into_iter().filter_map(|range| text.get(range)).filter(|part| part.len() >= MIN_LENGTH);
    parts.fold(message.to_owned(), |shown, part| shown.replace(part, &"*".repeat(part.chars().count())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_everywhere() {
        for text in [
            "[models.a]\napi_key = \"geheim\"\n",
            "[models.a]\nheaders = { Authorization = \"Bearer geheim\", X = \"y\" }\n",
            "[models.a.headers]\n\"X-Api-Key\" = 'geheim'\n",
            "[models.a.headers]\nCookie = \"\"\"\ngeheim\ngeheim\"\"\"\n",
            "[models.a]\nproxy = \"http://ann:geheim@proxy.example:8080\"\n",
            "[models.a.extra.token]\nvalue = \"geheim\"\n",
            "[models.a\npassword = geheim",
            "[models.a]\napi_key_env = \"sk-geheim\"\n",
            "[models.a]\napi_key_env = \"9geheim\"\n",
            "[models.a]\nheaders = { X = { env = \"Bearer geheim\" } }\n",
            "[models.a]\napi_key_env = \"Q7wgeheim\"\n",
            "[models.a]\nextra = { list = [{ secret = \"geheim\" }] }\n",
            "[models.a]\nbase_url = \"http://ann:geheim@host/v1\n",
            "[models.a]\nbase_url = http://ann:ge/geheim@host\n[models",
            "[models.a]\nextra = { serviceKey = \"geheim\", access_token = \"geheim\", user_password = \"geheim\" }\n",
        ] {
            let shown = masked(text);
            assert!(!shown.contains("geheim"), "{shown}");
            assert_eq!(shown.len(), text.len(), "places stay where they were");
            assert_eq!(shown.lines().count(), text.lines().count());
        }
    }

    #[test]
    fn other_values_stay_readable() {
        for text in [
            "[models.a]\nheaders = { x-portkey-custom-host = \"https://gateway.example\", X-Monkey = \"counsel\" }\n",
            "[models.a]\nextra = { tokenizer = \"o200k_base\", keyboard = \"qwerty\" }\n",
            "[models.a]\napi_key_env = \"EXAMPLE\"\nmax_tokens = 5\nfirst_token_timeout = \"20s\"\ntokens_per_minute = 5\n",
            "[models.a]\nheaders = { Authorization = { env = \"EXAMPLE\" }, X-Team = \"counsel\" }\n",
            "[models.a]\nbase_url = \"https://example.com/@v1\"\napi_key_env = \"OpenAi_Key\"\nmodel = \"user@host\"\n",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn a_header_is_a_secret_by_its_exact_name() {
        for name in
            ["Authorization", "X-API-Key", "x_api_key", "api-key", "X-Goog-Api-Key", "Cookie", "x-portkey-api-key"]
        {
            assert!(is_secret_header(name), "{name}");
        }
        for name in ["x-portkey-custom-host", "x-portkey-config", "x-idempotency-key", "x-token-budget", "x-cookies"] {
            assert!(!is_secret_header(name), "{name}");
        }
    }

    #[test]
    fn a_message_is_redacted() {
        let text = "token = \"geheim\"";
        assert_eq!(redact("1 | token = \"geheim\"", text), "1 | token = \"******\"");
    }
}
