//! What no message may show of a `bcc-script.toml`: keys, passwords and tokens that stand where none belongs.

use std::ops::Range;

use crate::config::places::ConfigSource;
use bcc_lang::source::secrets::secrets;

/// Parts of names under which secrets are kept.
const PARTS: [&str; 8] = ["key", "token", "secret", "passw", "authorization", "cookie", "credential", "密码"];

/// Ends of names that hold the word and no secret: names of variables and files, times and numbers.
const HARMLESS_ENDS: [&str; 4] = ["_env", "_file", "_timeout", "_per_minute"];

/// Whether a key or a header of this name holds a secret, wherever it stands.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let named = PARTS.iter().any(|part| name.contains(part));
    named && !HARMLESS_ENDS.iter().any(|end| name.ends_with(end)) && !name.starts_with("max")
}

/// The parts of `text` that no message may show, as bytes; they may overlap.
pub fn hidden(text: &str) -> Vec<Range<usize>> {
    let mut hidden = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        hidden.extend(of_line(line).map(|range| start + range.start..start + range.end));
        start += line.len();
    }
    if ConfigSource::of(text).is_none() {
        // Where a text ends is not known then, nor what of an address is its user.
        hidden.extend(users(text));
    }
    // Texts over several lines, and passwords in addresses, are found where the file is TOML at all.
    for (path, value, span) in ConfigSource::of(text).iter().flat_map(ConfigSource::texts) {
        // Also below such a name, as in `key = { value = "…" }`; but the name of an environment variable is none.
        let named = path.iter().any(|name| is_secret(name)) && path.last() != Some(&"env");
        let misplaced = path.last().is_some_and(|name| names_variable(name)) && !is_variable(value);
        let misplaced = misplaced || matches!(path.last(), Some(&"api_key_file" | &"token_file")) && is_key(value);
        if (named || misplaced) && span.len() > 2 {
            hidden.push(span.start + 1..span.end - 1);
        }
        if let Some(user) = user_of(value) {
            let written = text.get(span.clone()).and_then(|written| written.find(user));
            hidden.extend(written.map(|at| span.start + at..span.start + at + user.len()));
        }
    }
    hidden
}

fn names_variable(key: &str) -> bool {
    matches!(key, "env" | "api_key_env" | "token_env")
}

/// Whether a text may be the name of an environment variable, and does not look like the key that somebody wrote in its
/// place: capitals, small letters and digits in one name.
pub fn is_variable(text: &str) -> bool {
    const LONGEST: usize = 64;
    let has = |of: fn(&char) -> bool| text.chars().any(|c| of(&c));
    let name = has(|_| true) && text.chars().all(|c| c.is_alphanumeric() || c == '_') && text.len() <= LONGEST;
    let random = has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase) && has(char::is_ascii_digit);
    name && !random && !text.starts_with(|c: char| c.is_ascii_digit()) && !is_key(text)
}

/// Whether a text is a key of a service that is known.
pub fn is_key(text: &str) -> bool {
    !secrets(text).is_empty()
}

/// What stands before the `@` of an address, when it is one with a user or a password.
pub fn user_of(address: &str) -> Option<&str> {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    Some(user).filter(|user| !user.is_empty() && address.contains("://"))
}

/// What stands between `://` and the last `@` of a line.
fn users(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let begins = line.find("://").map(|at| at + 3);
        if let (Some(begins), Some(ends)) = (begins, line.rfind('@'))
            && begins < ends
        {
            found.push(start + begins..start + ends);
        }
        start += line.len();
    }
    found
}

/// The value of a line whose key holds a secret, however broken the file is.
fn of_line(line: &str) -> Option<Range<usize>> {
    let of_secret = |equals: usize| {
        let key = line.get(..equals).unwrap_or_default().trim_end().trim_end_matches(['"', '\'']);
        let word = key.rsplit(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-')).next();
        let value = line.get(equals + 1..).unwrap_or_default().trim_start();
        word.is_some_and(is_secret) && !is_env_table(value)
    };
    let equals = line.match_indices('=').map(|(at, _)| at).find(|at| of_secret(*at))?;
    let value = line.get(equals + 1..)?;
    let begins = equals + 1 + value.find(|c: char| !c.is_whitespace() && !matches!(c, '"' | '\''))?;
    let ends = line.trim_end().trim_end_matches(['"', '\'']).len();
    (begins < ends).then_some(begins..ends)
}

/// Whether a value says where in the environment the secret is, as it should.
fn is_env_table(value: &str) -> bool {
    let inside = value.strip_prefix('{').map(str::trim_start).and_then(|inside| inside.strip_prefix("env"));
    inside.is_some_and(|rest| rest.trim_start().starts_with('='))
}

/// The same text with a star for every character that no message may show.
pub fn masked(text: &str) -> String {
    let hidden = hidden(text);
    let star = |(at, c): (usize, char)| {
        if c != '\n' && hidden.iter().any(|range| range.contains(&at)) {
            "*".repeat(c.len_utf8())
        } else {
            c.to_string()
        }
    };
    if hidden.is_empty() { text.to_owned() } else { text.char_indices().map(star).collect() }
}

/// `message` without the hidden parts of `text`.
pub fn without(message: &str, text: &str) -> String {
    // What is as short as a bracket is no secret, and stands everywhere.
    const SHORTEST: usize = 3;
    let parts = hidden(text).into_iter().filter_map(|range| text.get(range)).filter(|part| part.len() >= SHORTEST);
    parts.fold(message.to_owned(), |shown, part| shown.replace(part, &"*".repeat(part.chars().count())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
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
        ] {
            let shown = masked(text);
            assert!(!shown.contains("geheim"), "{shown}");
            assert_eq!(shown.len(), text.len(), "places stay where they were");
            assert_eq!(shown.lines().count(), text.lines().count());
        }
    }

    #[test]
    fn what_is_no_secret_stays_readable() {
        for text in [
            "[models.a]\napi_key_env = \"EXAMPLE\"\nmax_tokens = 5\nfirst_token_timeout = \"20s\"\ntokens_per_minute = 5\n",
            "[models.a]\nheaders = { Authorization = { env = \"EXAMPLE\" }, X-Team = \"counsel\" }\n",
            "[models.a]\nbase_url = \"https://example.com/@v1\"\napi_key_env = \"OpenAi_Key\"\nmodel = \"user@host\"\n",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn a_message_is_rid_of_what_the_file_hides() {
        let text = "token = \"geheim\"";
        assert_eq!(without("1 | token = \"geheim\"", text), "1 | token = \"******\"");
    }
}
