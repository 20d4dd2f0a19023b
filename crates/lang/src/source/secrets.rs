//! Finds text that looks like API keys, tokens and passwords, anywhere in a file including comments: no report may show it.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use crate::source::span::Span;

/// Every match of the patterns below contains one of these texts. Most files contain none of them, and compiling the patterns
/// takes longer than checking a script, so they are compiled only for the other files.
static HINTS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    const HINTS: [&str; 28] = [
        "sk-",
        "akia",
        "asia",
        "ghp_",
        "gho_",
        "ghu_",
        "ghs_",
        "ghr_",
        "github_pat_",
        "glpat-",
        "xox",
        "aiza",
        "hf_",
        "bearer ",
        "eyj",
        "private key",
        "api_key",
        "apikey",
        "access_key",
        "accesskey",
        "-key",
        "secret",
        "token",
        "passw",
        "pwd",
        "密码",
        "密钥",
        "口令",
    ];
    AhoCorasick::builder().ascii_case_insensitive(true).build(HINTS).ok()
});

/// The form of the keys of known services. Repetitions have no upper bound: the pattern would be expanded that many times.
static KNOWN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"sk-[A-Za-z0-9_-]{20,}",
        r"|(?:AKIA|ASIA)[0-9A-Z]{16}",
        r"|gh[pousr]_[A-Za-z0-9]{30,}",
        r"|github_pat_[A-Za-z0-9_]{30,}",
        r"|glpat-[A-Za-z0-9_-]{20,}",
        r"|xox[abposr]-[A-Za-z0-9-]{10,}",
        r"|AIza[0-9A-Za-z_-]{30,}",
        r"|hf_[A-Za-z0-9]{30,}",
        r"|Bearer [A-Za-z0-9._~+/-]{20,}=*",
        r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----",
    ))
    .ok()
});

/// A name that announces a secret, and the secret: on the same line, or as the `value` of a declaration.
static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?:(?i-u:api_key|apikey|api-key|access_key|accesskey|secret_key|secret-key|access-key|secret|token|password|passwd|pwd)|密码|密钥|口令)"#,
        r#"["']?(?:[ \t]*[:=][ \t]*|[ \t]*,[ \t]*(?:type:[ \t]*string[ \t]*,[ \t]*)?value:[ \t]*|[ \t]*\r?\n[ \t]+(?:type:[ \t]*string[ \t]*\r?\n[ \t]+)?value:[ \t]*)"#,
        r#"(?:"([^"\s]{8,})"|'([^'\s]{8,})'|([^\s"'#,}\]{\[]{8,}))"#,
    ))
    .ok()
});

/// Placeholders that people write instead of a secret.
const PLACEHOLDERS: [&str; 14] = [
    "xxx",
    "your",
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "dummy",
    "sample",
    "redacted",
    "***",
    "...",
    "1234567",
    "abcdef",
    "insert",
];

/// The minimum number of different characters in a random key.
const MIN_DISTINCT: usize = 8;

/// Text that looks like a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    pub span: Span,
    /// The part that must not be shown: all but the prefix that shows the kind.
    pub hidden: Span,
    /// What it is, for a message: "an API key (`sk-…`)".
    pub kind: &'static str,
}

/// All text that looks like a secret, in order. Linear in the size of the text.
pub fn secrets(text: &str) -> Vec<Secret> {
    let mut in_addresses = passwords_in_addresses(text);
    if HINTS.as_ref().is_some_and(|hints| !hints.is_match(text)) {
        return in_addresses;
    }
    let span = |range: Range<usize>| Span::new(range.start, range.end);
    let mut found: Vec<Secret> = Vec::new();
    for known in KNOWN.iter().flat_map(|pattern| pattern.find_iter(text)) {
        let previous = text.get(..known.start()).and_then(|before| before.chars().next_back());
        // `risk-…` and `task-…` are words.
        if previous.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
            || !looks_random(known.as_str())
        {
            continue;
        }
        let (kind, shown) = kind_of(known.as_str());
        let end = if kind == PRIVATE_KEY { end_of_key(text, known.end()) } else { known.end() };
        let hidden = if kind == PRIVATE_KEY { known.end()..end } else { known.start() + shown..end };
        // Nothing else is searched for inside a private key.
        if found.last().is_none_or(|last| last.hidden.end <= hidden.start) {
            found.push(Secret { span: span(known.range()), hidden: span(hidden), kind });
        }
    }
    let mut named = Vec::new();
    for captures in NAMED.iter().flat_map(|pattern| pattern.captures_iter(text)) {
        let Some(value) = captures.iter().skip(1).flatten().next() else { continue };
        let index = found.partition_point(|secret| secret.hidden.end <= value.start());
        let already_found = found.get(index).is_some_and(|secret| secret.span.start < value.end());
        if !already_found && is_literal(value.as_str()) {
            let place = span(value.range());
            named.push(Secret { span: place, hidden: place, kind: PASSWORD });
        }
    }
    found.append(&mut named);
    found.append(&mut in_addresses);
    found.sort_by_key(|secret| secret.span);
    found.dedup_by(|later, kept| later.span.start < kept.span.end);
    found
}

const PRIVATE_KEY: &str = "a private key";

const PASSWORD: &str = "a password or key";

/// The passwords of addresses, as in `postgres://name:password@host/`. Searched for without a pattern, because many files have addresses.
fn passwords_in_addresses(text: &str) -> Vec<Secret> {
    /// Longer texts before an `@` are no user and password.
    const MAX_BYTES: usize = 400;
    let mut found = Vec::new();
    for start in memchr::memmem::find_iter(text.as_bytes(), "://").map(|at| at + "://".len()) {
        let end = text.floor_char_boundary(start.saturating_add(MAX_BYTES).min(text.len()));
        let rest = text.get(start..end).unwrap_or_default();
        let ends =
            |c: char| c.is_whitespace() || "/?#\"'<>`,;()".contains(c) || "，；。、（）！？：【】“”《》…".contains(c);
        let authority = rest.split(ends).next().unwrap_or_default();
        let Some((user, _)) = authority.rsplit_once('@') else { continue };
        let Some((name, password)) = user.split_once(':') else { continue };
        if is_password(name, password) {
            let from = start + name.len() + 1;
            let place = Span::new(from, from + password.len());
            found.push(Secret { span: place, hidden: place, kind: PASSWORD });
        }
    }
    found
}

/// Whether the password of a user in an address is one, and not a reference, a placeholder or the same word as the name.
fn is_password(name: &str, password: &str) -> bool {
    const WORDS: [&str; 7] = ["password", "passwd", "pass", "pwd", "secret", "guest", "密码"];
    let lower = password.to_lowercase();
    let reference =
        password.starts_with(['$', '<', '{', '*', '[', '%']) && !password.starts_with("%2") || password.contains("{{");
    !password.is_empty()
        && password != name
        && !reference
        && !WORDS.contains(&lower.as_str())
        && !is_placeholder(password)
}

/// The kind of a key, and how many bytes of it may be shown.
fn kind_of(key: &str) -> (&'static str, usize) {
    const KINDS: [(&str, &str); 12] = [
        ("sk-ant-", "an API key (`sk-ant-…`)"),
        ("sk-", "an API key (`sk-…`)"),
        ("AKIA", "an access key (`AKIA…`)"),
        ("ASIA", "an access key (`ASIA…`)"),
        ("github_pat_", "an access token (`github_pat_…`)"),
        ("gh", "an access token (`gh…`)"),
        ("glpat-", "an access token (`glpat-…`)"),
        ("xox", "an access token (`xox…`)"),
        ("AIza", "an API key (`AIza…`)"),
        ("hf_", "an access token (`hf_…`)"),
        ("Bearer ", "an access token (`Bearer …`)"),
        ("eyJ", "a signed token (`eyJ…`)"),
    ];
    let kind = KINDS.iter().find(|(prefix, _)| key.starts_with(prefix));
    kind.map_or((PRIVATE_KEY, key.len()), |(prefix, kind)| (*kind, prefix.len()))
}

/// The end of a key of several lines, whose first line ends at `from`.
fn end_of_key(text: &str, from: usize) -> usize {
    const MAX_BYTES: usize = 8 * 1024;
    let rest =
        text.get(from..text.floor_char_boundary(from.saturating_add(MAX_BYTES).min(text.len()))).unwrap_or_default();
    from + rest.find("-----END").unwrap_or_else(|| rest.find("\n\n").unwrap_or(rest.len()))
}

/// Whether a text of a known form is a real key, and not a placeholder.
fn looks_random(key: &str) -> bool {
    if key.starts_with("-----BEGIN") {
        return true;
    }
    let body = key.trim_start_matches("sk-").trim_start_matches("ant-").trim_start_matches("Bearer ");
    !is_placeholder(body) && body.contains(|c: char| c.is_ascii_digit()) && distinct_bytes(body) >= MIN_DISTINCT
}

/// Whether the value after the name of a secret is one, written out: letters and digits mixed, and not a reference.
fn is_literal(value: &str) -> bool {
    /// Longer values are texts without spaces.
    const MAX_BYTES: usize = 200;
    if value.len() > MAX_BYTES {
        return false;
    }
    let reference = value.starts_with(['$', '<', '{', '*', '&', '!', '%', '(', '/', '|', '>', '`'])
        || value.contains("{{")
        || value.contains("://");
    let name = value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_' || byte.is_ascii_digit());
    let letters = value.contains(|c: char| c.is_ascii_alphabetic());
    let digits = value.contains(|c: char| c.is_ascii_digit());
    let ascii = value.bytes().all(|byte| byte.is_ascii_graphic());
    // `user.token2` and `get_token1()` are names.
    let call = value.contains(['(', ')', '[', '=']);
    // Joined words are names too: `token_of_step_2`.
    let words = value.split(['_', '-', '.']).filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())).count();
    ascii
        && letters
        && digits
        && !reference
        && !call
        && !(name && value.contains('_'))
        && words < 2
        && !is_placeholder(value)
        && distinct_bytes(value) >= MIN_DISTINCT
}

fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|placeholder| lower.contains(placeholder))
}

fn distinct_bytes(text: &str) -> usize {
    let mut seen = [false; 256];
    for byte in text.bytes() {
        if let Some(seen) = seen.get_mut(usize::from(byte)) {
            *seen = true;
        }
    }
    seen.iter().filter(|seen| **seen).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        secrets(text).iter().map(|secret| text[secret.hidden.range()].to_owned()).collect()
    }

    /// Built here, so that no scanner reports a leaked secret in this file.
    fn key(prefix: &str, length: usize) -> String {
        let letters = "q7Wm2Zr9Tk4Lp8Xv3Nb6Hd1Js5Fg0Cy".chars().cycle();
        prefix.chars().chain(letters.take(length)).collect()
    }

    #[test]
    fn secrets_are_found_anywhere_in_a_file() {
        let table = [
            (format!("a: {}\n", key("sk-", 40)), key("", 40)),
            (format!("a: 'x {} y'\n", key("sk-ant-", 60)), key("", 60)),
            (format!("# {}\n", key("ghp_", 36)), key("p_", 36)),
            (format!("a: AKIA{}\n", "Q7WM2ZR9TK4LP8XV"), "Q7WM2ZR9TK4LP8XV".to_owned()),
            (format!("a: {}\n", key("AIza", 35)), key("", 35)),
            (format!("a: {}\n", key("xoxb-", 35)), key("b-", 35)),
            (format!("a: {}\n", key("Bearer ", 35)), key("", 35)),
            (
                "a: |\n  -----BEGIN RSA PRIVATE KEY-----\n  MIIabc\n  -----END RSA PRIVATE KEY-----\n".to_owned(),
                "\n  MIIabc\n  ".to_owned(),
            ),
            ("password: Tr0ub4dor&3x\n".to_owned(), "Tr0ub4dor&3x".to_owned()),
            ("密码: \"Tr0ub4dor&3x\"\n".to_owned(), "Tr0ub4dor&3x".to_owned()),
            (format!("x-api-key: {}\n", key("", 32)), key("", 32)),
            (format!("- {{ var: api_key, type: string, value: {} }}\n", key("", 32)), key("", 32)),
            (format!("- var: token\n  value: {}\n", key("", 32)), key("", 32)),
            ("url: https://admin:Zt7Qw2Lp9Xk4@host/a\n".to_owned(), "Zt7Qw2Lp9Xk4".to_owned()),
            ("# postgres://数据:Zt7Q@w2Lp9X@127.0.0.1:5432/\n".to_owned(), "Zt7Q@w2Lp9X".to_owned()),
            ("password: \"amqp://a:Zt7Qw2Lp9Xk4@host\"\n".to_owned(), "Zt7Qw2Lp9Xk4".to_owned()),
            ("url: postgres://app:%21Zt@db redis://:qwhunter@db\n".to_owned(), "%21Zt".to_owned()),
        ];
        for (text, secret) in table {
            assert_eq!(found(&text).first(), Some(&secret), "{text}");
        }
        assert_eq!(found("url: https://a:one1@b redis://:two2@c\n"), ["one1", "two2"]);
    }

    #[test]
    fn placeholders_names_and_prose_are_not_secrets() {
        let harmless = [
            "a: sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
            "a: sk-your-key-goes-here-please-1234\n",
            "a: AKIAIOSFODNN7EXAMPLE\n",
            "a: a-risk-of-something-that-is-long-2-and-more\n",
            "a: task-3a4b5c6d7e8f9a0b1c2d3e4f\n",
            "password: ${PASSWORD_1}\n",
            "password: <your password 1>\n",
            "token: \"{{ token_1 }}\"\n",
            "api_key: OPENAI_API_KEY_2\n",
            "token: next_token_of_step_2\n",
            "password: 来访者说的密码1\n",
            "token: max_tokens\n",
            "- { var: token, type: string, define: 来访者的号码 }\n",
            "secret: ********************\n",
            "content: 您的密码是什么？\n",
            "token: https://example.org/a1b2c3d4e5\n",
            "url: https://name:your-password-12@host\n",
            "url: https://name:${PASSWORD_12}@host https://{{ name }}:{{ password12 }}@host\n",
            "url: postgres://postgres:postgres@localhost:5432/a https://host:8080/a@b7Qw2Lp9Xk4\n",
            "content: see http://localhost:8080, mail7xyz@example.org, http://localhost:8080,a7b@example.org\n",
            "content: 见 http://localhost:8080，a7b@example.org\n",
            "content: 请打开http://127.0.0.1:8080（或发邮件到help@example.org），http://localhost:8080！联系人a@b.com\n",
            "url: https://user:%s@host ftp://anonymous:guest@host\n",
        ];
        for text in harmless {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn every_pattern_compiles() {
        assert!(KNOWN.is_some() && NAMED.is_some());
    }
}
