//! Who may call what: tokens with roles, and the names under which the server may be called.

use std::fmt::Write as _;

use axum::http::{HeaderMap, header};
use bcc_lang::message::msg;
use ring::rand::{SecureRandom, SystemRandom};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::problem::{Problem, ProblemKind};

/// What a token permits. Each role permits what the ones before it permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessRole {
    /// To start sessions, and to talk in a session whose id one knows. Prompts, variables and raw replies are not shown.
    Talk,
    /// To list what sessions wait for, and to decide it.
    Decide,
    /// To read everything of all sessions, and to fork, retry and cancel them.
    Author,
    /// Everything: also to delete sessions.
    Admin,
}

impl AccessRole {
    pub const ALL: [Self; 4] = [Self::Talk, Self::Decide, Self::Author, Self::Admin];

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Talk => "talk",
            Self::Decide => "decide",
            Self::Author => "author",
            Self::Admin => "admin",
        }
    }

    /// The role with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// A token, of which only the hash is kept.
#[derive(Clone, Debug)]
pub struct AccessToken {
    /// Names its owner in logs and decisions.
    pub name: String,
    pub role: AccessRole,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
}

/// Who may call the server, and from where.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    /// Without tokens, whoever reaches the server may do everything; it must then be reachable from this machine only.
    pub tokens: Vec<AccessToken>,
    /// The names of the server in `Host`, besides those of this machine.
    pub hosts: Vec<String>,
    /// The origins of pages that may call the server: for example `https://example.org`.
    pub origins: Vec<String>,
}

/// Who sent a request.
#[derive(Clone, Debug)]
pub struct ApiCaller {
    /// The name of the token; none without tokens.
    pub name: Option<String>,
    pub role: AccessRole,
    /// A hash that only the owner of the token and the server know; zeros without tokens. It tells the conversations of callers apart.
    pub scope: [u8; 32],
}

impl ApiCaller {
    /// Refuses what the role does not permit.
    ///
    /// # Errors
    /// `Forbidden`, which names the role that is needed.
    pub fn require(&self, role: AccessRole) -> Result<(), Problem> {
        if self.role >= role {
            return Ok(());
        }
        let (needed, own) = (role.name(), self.role.name());
        Err(Problem::new(
            ProblemKind::Forbidden,
            msg!("this needs the role `{needed}`; the token has the role `{own}`"),
        ))
    }
}

/// A new token: 256 random bits. None if the system gives none.
pub fn new_token() -> Option<String> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(format!("bcc_{}", hex(&bytes)))
}

/// A new part of an address that only those can know who have the address: 160 random bits. None if the system gives none.
pub(crate) fn new_secret() -> Option<String> {
    let mut bytes = [0_u8; 20];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

/// The hash of a token, as it is configured.
pub fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A hash in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A hash from hexadecimal digits; none if it is not one of SHA-256.
pub fn hash_of_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |index: usize| text.get(2 * index..2 * index + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    bytes?.try_into().ok()
}

impl AccessRules {
    /// Who sends a request with these headers.
    ///
    /// # Errors
    /// `Unauthorized` without a valid token, if tokens are configured.
    pub fn caller(&self, headers: &HeaderMap) -> Result<ApiCaller, Problem> {
        if self.tokens.is_empty() {
            return Ok(ApiCaller { name: None, role: AccessRole::Admin, scope: [0; 32] });
        }
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token =
            given.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = token else {
            return Err(Problem::new(
                ProblemKind::Unauthorized,
                msg!("this needs a token: `Authorization: Bearer TOKEN`"),
            ));
        };
        let hash = token_hash(token.trim());
        // All of them are compared, in constant time, so that the time tells nothing.
        let mut found = None;
        for known in &self.tokens {
            if bool::from(known.sha256.ct_eq(&hash)) {
                found = Some(known);
            }
        }
        let invalid = || Problem::new(ProblemKind::Unauthorized, msg!("the token is not valid"));
        found
            .map(|known| ApiCaller { name: Some(known.name.clone()), role: known.role, scope: known.sha256 })
            .ok_or_else(invalid)
    }

    /// Refuses requests that a foreign page makes a browser send: those to another name (DNS rebinding), and those from another origin.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let text = |name| headers.get(name).map(|value: &axum::http::HeaderValue| value.to_str().unwrap_or("\u{fffd}"));
        let host = text(header::HOST).unwrap_or_default();
        if !self.is_own_host(host) {
            return Err(Problem::new(ProblemKind::Forbidden, msg!("the server is not called `{host}`"))
                .with_help("names of the server are listed in `hosts` under `[serve]` in bcc-script.toml"));
        }
        let Some(origin) = text(header::ORIGIN) else { return Ok(()) };
        let is_same = origin.split_once("://").is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(host));
        if is_same || self.origins.iter().any(|allowed| allowed == origin) {
            return Ok(());
        }
        Err(Problem::new(ProblemKind::Forbidden, msg!("pages of `{origin}` may not call this server"))
            .with_help("origins are listed in `origins` under `[serve]` in bcc-script.toml"))
    }

    fn is_own_host(&self, host: &str) -> bool {
        let name = name_of(host);
        let is_loopback = name.eq_ignore_ascii_case("localhost")
            || name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        is_loopback || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name) || own.eq_ignore_ascii_case(host))
    }
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn headers(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    fn rules() -> AccessRules {
        let token = |name: &str, role| AccessToken { name: name.into(), role, sha256: token_hash(name) };
        AccessRules {
            tokens: vec![token("front", AccessRole::Talk), token("boss", AccessRole::Admin)],
            hosts: vec!["chat.example.org".into()],
            origins: vec!["https://page.example.org".into()],
        }
    }

    #[test]
    fn a_token_gives_its_role() {
        let rules = rules();
        let caller = |value: &str| rules.caller(&headers(&[(header::AUTHORIZATION, value)]));
        assert_eq!(caller("Bearer boss").unwrap().role, AccessRole::Admin);
        assert_eq!(caller("bearer front").unwrap().name.as_deref(), Some("front"));
        for wrong in ["Bearer bos", "Bearer boss2", "Basic boss", "boss", "Bearer "] {
            assert_eq!(caller(wrong).unwrap_err().kind(), ProblemKind::Unauthorized, "{wrong}");
        }
        assert!(rules.caller(&HeaderMap::new()).is_err());
        assert!(caller("Bearer front").unwrap().require(AccessRole::Decide).is_err());
    }

    #[test]
    fn a_foreign_host_or_origin_is_rejected_on_loopback_too() {
        let rules = rules();
        let check = |host: &str, origin: Option<&str>| {
            let mut pairs = vec![(header::HOST, host)];
            pairs.extend(origin.map(|origin| (header::ORIGIN, origin)));
            rules.check_origin(&headers(&pairs)).is_ok()
        };
        for own in
            ["localhost", "localhost:8711", "127.0.0.1:1", "[::1]:8711", "chat.example.org", "chat.example.org:443"]
        {
            assert!(check(own, None), "{own}");
        }
        for foreign in ["evil.example", "localhost.evil.example:8711", "", "127.0.0.1.evil.example", "192.168.1.2"] {
            assert!(!check(foreign, None), "{foreign}");
        }
        assert!(check("localhost:8711", Some("http://localhost:8711")));
        assert!(check("localhost:8711", Some("https://page.example.org")));
        for foreign in ["http://localhost:3000", "https://evil.example", "null"] {
            assert!(!check("localhost:8711", Some(foreign)), "{foreign}");
        }
    }

    #[test]
    fn a_hash_is_read_from_hexadecimal_digits() {
        let hash = token_hash("t");
        assert_eq!(hash_of_hex(&hex(&hash)), Some(hash));
        for wrong in ["", "ab", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(hash_of_hex(wrong), None);
        }
    }
}
