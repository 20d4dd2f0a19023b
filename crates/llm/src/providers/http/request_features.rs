//! The optional features of a request, and the alternatives if a server rejects them: token counts in a stream, the newer name of
//! the token limit, and structured output.
//!
//! A rejection does not count as a failed attempt: the request is retried immediately, and the features that worked are stored for
//! the lifetime of the provider. Whether an error is about a feature can only be determined from its message. To limit the cost of
//! an unrelated error to one request, a vague hint allows only one step down, and the next step requires the name of the field.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::providers::http::chunk::ServerRejection;
use crate::providers::http::config::Structured;

/// Phrases in errors about this form: unambiguous ones and hints. They are compared in lower case, with spaces for `_` and `-`.
const fn error_phrases(form: Structured) -> (&'static [&'static str], &'static [&'static str]) {
    match form {
        Structured::JsonSchema => (
            &["response format", "json schema"],
            &["schema", "grammar", "guided", "structured output", "json mode", "json object", "requested parameters"],
        ),
        Structured::JsonObject => (&["response format", "json object", "json mode"], &[]),
        Structured::Tool => (&["tool choice", "tools"], &["tool", "function", "requested parameters"]),
        Structured::Auto | Structured::Off => (&[], &[]),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestFeatures {
    /// Token counts at the end of a stream.
    pub(crate) usage: bool,
    /// The limit of the reply as `max_completion_tokens` instead of `max_tokens`.
    pub(crate) completion_tokens: bool,
    /// The strict mode of [`Structured::JsonSchema`].
    pub(crate) strict: bool,
    /// `minLength` in the schema.
    pub(crate) min_length: bool,
    pub(crate) form: Structured,
}

impl RequestFeatures {
    /// The features to request instead if `rejection` is about one of these; otherwise `None`. `auto_forms` are the forms to try (empty
    /// if the form is fixed), `is_first` means that the form of this call has not changed yet.
    pub(crate) fn alternative(
        self,
        rejection: &ServerRejection,
        auto_forms: &[Structured],
        is_first: bool,
    ) -> Option<Self> {
        let status = rejection.status.unwrap_or(400);
        if !matches!(status, 400 | 404 | 415 | 422 | 500 | 501) {
            return None;
        }
        let words = normalized(&format!("{} {}", rejection.field, rejection.message));
        let mentions = |needle: &&str| words.contains(*needle);
        let client_error = matches!(status, 400 | 422);
        if client_error && self.usage && ["stream options", "include usage"].iter().any(mentions) {
            return Some(Self { usage: false, ..self });
        }
        if client_error && !self.completion_tokens && mentions(&"max completion tokens") {
            return Some(Self { completion_tokens: true, ..self });
        }
        let has_schema = matches!(self.form, Structured::JsonSchema | Structured::Tool);
        if client_error && has_schema && self.min_length && mentions(&"minlength") {
            return Some(Self { min_length: false, ..self });
        }
        let strict_only = ["strict", "additionalproperties", "additional properties"];
        if client_error && self.form == Structured::JsonSchema && self.strict && strict_only.iter().any(mentions) {
            return Some(Self { strict: false, ..self });
        }
        let (names, hints) = error_phrases(self.form);
        // With status 500, which may also be a server failure, only the name of the field counts.
        let concerns_form = names.iter().any(mentions) || (status != 500 && is_first && hints.iter().any(mentions));
        if concerns_form {
            let at = auto_forms.iter().position(|form| *form == self.form)?;
            return auto_forms.get(at + 1).map(|form| Self { form: *form, ..self });
        }
        // If the server does not say what it rejects, a request without optional features is tried once.
        let minimal =
            Self { usage: false, form: if auto_forms.is_empty() { self.form } else { Structured::Off }, ..self };
        let is_unspecific = matches!(status, 400 | 415 | 422 | 501) && is_generic(&words);
        (is_unspecific && is_first && !auto_forms.is_empty() && minimal.form != self.form).then_some(minimal)
    }
}

#[derive(Debug, Default)]
pub(crate) struct LearnedFeatures {
    without_usage: AtomicBool,
    completion_tokens: AtomicBool,
    without_strict: AtomicBool,
    without_min_length: AtomicBool,
    /// The index in `auto_forms` of the form that the server supports.
    form_index: AtomicU8,
}

impl LearnedFeatures {
    /// The features to request. `configured` is the form in the settings, `structured` whether the request has a schema.
    pub(crate) fn current(
        &self,
        configured: Option<Structured>,
        structured: bool,
        auto_forms: &[Structured],
    ) -> RequestFeatures {
        let form_index = usize::from(self.form_index.load(Ordering::Relaxed));
        let form = configured.or_else(|| auto_forms.get(form_index).copied()).filter(|_| structured);
        RequestFeatures {
            usage: !self.without_usage.load(Ordering::Relaxed),
            completion_tokens: self.completion_tokens.load(Ordering::Relaxed),
            strict: !self.without_strict.load(Ordering::Relaxed),
            min_length: !self.without_min_length.load(Ordering::Relaxed),
            form: form.unwrap_or(Structured::Off),
        }
    }

    /// Stores the features of a successful call. Features that were removed from a failed call are not stored, because they may not
    /// have been the cause.
    pub(crate) fn store(&self, used: RequestFeatures, initial: RequestFeatures, auto_forms: &[Structured]) {
        if initial.usage && !used.usage {
            self.without_usage.store(true, Ordering::Relaxed);
        }
        if used.completion_tokens {
            self.completion_tokens.store(true, Ordering::Relaxed);
        }
        if !used.strict {
            self.without_strict.store(true, Ordering::Relaxed);
        }
        if !used.min_length {
            self.without_min_length.store(true, Ordering::Relaxed);
        }
        if used.form != initial.form {
            let form_index = auto_forms
                .iter()
                .position(|form| *form == used.form)
                .and_then(|form_index| u8::try_from(form_index).ok());
            self.form_index.fetch_max(form_index.unwrap_or_default(), Ordering::Relaxed);
        }
    }
}

/// A message in lower case without punctuation, with single spaces between words.
fn normalized(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a message only says that something is wrong.
fn is_generic(words: &str) -> bool {
    const GENERIC_WORDS: &str = "400 415 422 501 bad request invalid error parameter parameters params argument arguments input \
                         unprocessable entity content validation not implemented unsupported supported failed";
    words.split(' ').all(|word| word.is_empty() || GENERIC_WORDS.split(' ').any(|generic| generic == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTO_FORMS: [Structured; 3] = [Structured::JsonSchema, Structured::JsonObject, Structured::Off];

    const FULL: RequestFeatures = RequestFeatures {
        usage: true,
        completion_tokens: false,
        strict: true,
        min_length: true,
        form: Structured::JsonSchema,
    };

    fn rejection(status: u16, message: &str) -> ServerRejection {
        ServerRejection { status: Some(status), message: message.into(), field: String::new() }
    }

    #[test]
    fn the_rejected_feature_is_detected_from_the_message() {
        let object = RequestFeatures { form: Structured::JsonObject, ..FULL };
        let table: [(u16, &str, Option<RequestFeatures>); 15] = [
            (
                400,
                "Invalid schema for response_format 'reply': In context=('properties', 'content'), 'minLength' is not permitted.",
                Some(RequestFeatures { min_length: false, ..FULL }),
            ),
            (400, "json_schema.strict is not supported", Some(RequestFeatures { strict: false, ..FULL })),
            (400, "'additionalProperties' is not supported", Some(RequestFeatures { strict: false, ..FULL })),
            (400, "Unrecognized request argument: stream_options", Some(RequestFeatures { usage: false, ..FULL })),
            (422, "include-usage is unknown", Some(RequestFeatures { usage: false, ..FULL })),
            (400, "use max_completion_tokens", Some(RequestFeatures { completion_tokens: true, ..FULL })),
            (400, "Response format is not supported", Some(object)),
            (415, "JSON-Schema?", Some(object)),
            (500, "json_schema conversion failed", Some(object)),
            (500, "the schema of the database is broken", None),
            (503, "response_format is busy", None),
            (401, "response_format", None),
            (400, "prompt is too long", None),
            (404, "", None),
            (501, "Not Implemented", Some(RequestFeatures { usage: false, form: Structured::Off, ..FULL })),
        ];
        for (status, message, expected) in table {
            assert_eq!(
                FULL.alternative(&rejection(status, message), &AUTO_FORMS, true),
                expected,
                "{status} {message}"
            );
        }
        let named =
            ServerRejection { field: "body.response_format.type".into(), ..rejection(422, "Input should be 'text'") };
        assert_eq!(FULL.alternative(&named, &AUTO_FORMS, true), Some(object));
    }

    #[test]
    fn the_second_alternative_requires_the_name_of_the_field() {
        let object = RequestFeatures { form: Structured::JsonObject, ..FULL };
        let off = Some(RequestFeatures { form: Structured::Off, ..FULL });
        for (message, expected) in
            [("response_format", off), ("json_object", off), ("schema", None), ("", None), ("bad request", None)]
        {
            assert_eq!(object.alternative(&rejection(400, message), &AUTO_FORMS, false), expected, "{message}");
        }
        let last = RequestFeatures { form: Structured::Off, ..FULL };
        assert_eq!(last.alternative(&rejection(400, "response_format"), &AUTO_FORMS, false), None);
        // A configured form is not changed.
        assert_eq!(FULL.alternative(&rejection(400, "response_format"), &[], true), None);
        assert_eq!(FULL.alternative(&rejection(400, ""), &[], true), None);
    }

    #[test]
    fn successful_features_are_stored_and_rejected_ones_are_not_requested_again() {
        let features = LearnedFeatures::default();
        assert_eq!(features.current(None, true, &AUTO_FORMS), FULL);
        features.store(FULL, FULL, &AUTO_FORMS);
        assert_eq!(features.current(None, true, &AUTO_FORMS), FULL);
        let less = RequestFeatures { usage: false, completion_tokens: true, form: Structured::Off, ..FULL };
        features.store(less, FULL, &AUTO_FORMS);
        // A call that started earlier and used a stricter form changes nothing.
        features.store(RequestFeatures { form: Structured::JsonObject, ..FULL }, FULL, &AUTO_FORMS);
        assert_eq!(features.current(None, true, &AUTO_FORMS), less);
        assert_eq!(features.current(Some(Structured::Tool), true, &AUTO_FORMS).form, Structured::Tool);
        assert_eq!(features.current(Some(Structured::Tool), false, &AUTO_FORMS).form, Structured::Off);
    }

    #[test]
    fn a_call_without_a_schema_stores_no_form() {
        let features = LearnedFeatures::default();
        let none = features.current(None, false, &AUTO_FORMS);
        features.store(none, none, &AUTO_FORMS);
        assert_eq!(features.current(None, true, &AUTO_FORMS), FULL);
    }
}
