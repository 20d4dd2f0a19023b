//! The settings of a behavior server, and their checks before anything is sent.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::fmt;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;

use bcc_llm::http::timeouts::TimeoutLimits;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndpointPaths {
    /// `/v1/actions` and `/v1/reflection`.
    #[default]
    V1,
    /// `/generating` for actions and `/planning` for the reflection.
    Planning,
    /// `/planning` for plans, `/generating` for actions and `/reflecting` for the reflection.
    Reflecting,
}

impl EndpointPaths {
    pub const ALL: [Self; 3] = [Self::V1, Self::Planning, Self::Reflecting];

    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::Planning => "planning",
            Self::Reflecting => "reflecting",
        }
    }

    const fn segments(self, endpoint: Endpoint) -> &'static [&'static str] {
        match (self, endpoint) {
            (Self::V1, Endpoint::Actions) => &["v1", "actions"],
            (Self::V1, Endpoint::Reflection) => &["v1", "reflection"],
            (Self::Planning | Self::Reflecting, Endpoint::Actions) => &["generating"],
            (Self::Reflecting, Endpoint::Reflection) => &["reflecting"],
            (Self::Planning, Endpoint::Reflection) | (_, Endpoint::Plan) => &["planning"],
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProtocolForm {
    /// The form of docs/protocol.md, section 4.
    #[default]
    New,
    /// The form of docs/notebook.md, with the legacy names.
    Legacy,
}

impl ProtocolForm {
    pub const ALL: [Self; 2] = [Self::New, Self::Legacy];

    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Legacy => "older",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Actions,
    Reflection,
    /// Only [`EndpointPaths::Reflecting`] has it.
    Plan,
}

/// The settings of one server. The debug form shows neither its address nor its token.
#[derive(Clone)]
pub struct ServerSettings {
    pub name: String,
    pub url: String,
    pub paths: EndpointPaths,
    pub form: ProtocolForm,
    pub token: Option<SecretString>,
    pub connect_timeout: Duration,
    /// The maximum time from the request to the first byte of the answer.
    pub first_byte_timeout: Duration,
    /// The maximum pause within an answer after its first byte.
    pub idle_timeout: Duration,
    /// The maximum total time of an answer.
    pub timeout: Duration,
    /// The maximum number of requests for one question while nothing was received.
    pub max_attempts: u32,
    /// The maximum pause before the first retry; the maximum doubles with each retry.
    pub first_backoff: Duration,
}

impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Settings");
        shown.field("name", &self.name).field("paths", &self.paths).field("form", &self.form);
        shown.field("has_token", &self.token.is_some()).finish_non_exhaustive()
    }
}

impl ServerSettings {
    /// The settings of the server at `url`, with the defaults for everything else: 10 s for a connection, 60 s for the first
    /// byte, 60 s of silence, 300 s in all, 3 attempts, no token.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            paths: EndpointPaths::default(),
            form: ProtocolForm::default(),
            token: None,
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(60),
            timeout: Duration::from_mins(5),
            max_attempts: 3,
            first_backoff: Duration::from_millis(500),
        }
    }

    pub(crate) fn limits(&self) -> TimeoutLimits {
        TimeoutLimits { total: self.timeout, first: self.first_byte_timeout, idle: self.idle_timeout }
    }

    /// The URL of an endpoint: `url` followed by the path of the endpoint. If `url` already ends with `v1`, it is not added again.
    ///
    /// # Errors
    /// Why `url` is not a usable URL. The message does not repeat it, because it may contain a password.
    pub fn endpoint(&self, endpoint: Endpoint) -> Result<Url, Message> {
        let mut url = Url::parse(self.url.trim()).map_err(|error| msg!("`url` is not a valid URL ({error})"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(Message::word("`url` must start with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Message::word("`url` contains a user name or a password; use `token_env`"));
        }
        url.set_fragment(None);
        let mut rest = self.paths.segments(endpoint);
        let last = url.path_segments().and_then(|mut segments| segments.rfind(|segment| !segment.is_empty()));
        if let Some((first, after)) = rest.split_first()
            && last == Some(*first)
            && !after.is_empty()
        {
            rest = after;
        }
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(rest);
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoints_are_found_for_each_spelling_of_the_url() {
        for (url, paths, actions, reflection) in [
            ("http://h:1", EndpointPaths::V1, "http://h:1/v1/actions", "http://h:1/v1/reflection"),
            (" http://h/v1/ ", EndpointPaths::V1, "http://h/v1/actions", "http://h/v1/reflection"),
            (
                "https://h/api?key=1#x",
                EndpointPaths::V1,
                "https://h/api/v1/actions?key=1",
                "https://h/api/v1/reflection?key=1",
            ),
            ("http://h/v1", EndpointPaths::Planning, "http://h/v1/generating", "http://h/v1/planning"),
            ("http://h", EndpointPaths::Planning, "http://h/generating", "http://h/planning"),
            ("http://h/", EndpointPaths::Reflecting, "http://h/generating", "http://h/reflecting"),
        ] {
            let settings = ServerSettings { paths, ..ServerSettings::new("n", url) };
            assert_eq!(settings.endpoint(Endpoint::Actions).unwrap().as_str(), actions);
            assert_eq!(settings.endpoint(Endpoint::Reflection).unwrap().as_str(), reflection);
        }
    }

    #[test]
    fn an_unusable_url_is_rejected_without_repeating_it() {
        for url in ["", "secret", "ftp://secret/", "http://", "http://ann:secret@h/"] {
            let error = ServerSettings::new("n", url).endpoint(Endpoint::Actions).unwrap_err();
            assert!(error.to_string().contains("`url`") && !error.to_string().contains("secret"), "{error}");
        }
        let settings =
            ServerSettings { token: Some("secret".into()), ..ServerSettings::new("n", "http://h/?key=secret") };
        assert!(!msg!("{settings:?}").to_string().contains("secret"));
    }
}
