//! What a server is asked for beyond the words, and how it is asked for less when it refuses: token counts in a stream,
//! the limit of a reply under its newer name, and structured output.
//!
//! A refusal is no failed attempt: the request is made again at once, and what has worked is remembered for as long as
//! the provider lives. Whether a complaint is about what was asked can only be told from its words. So that an unrelated
//! one costs no more than one request, a loose hint leads only one step down, and the next step needs the field's name.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use crate::providers::http::chunk::ServerRejection;
use crate::providers::http::config::Structured;

/// Words of a complaint about this form, and whether they can mean nothing else. They are compared in lower case
/// with spaces for `_` and `-`.
const fn complaints(form: Structured) -> (&'static [&'static str], &'static [&'static str]) {
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
pub struct RequestFeatures {
    /// Token counts at the end of a stream.
    pub(crate) usage: bool,
    /// The limit of the reply as `max_completion_tokens` instead of `max_tokens`.
    pub(crate) completion_tokens: bool,
    pub(crate) form: Structured,
}

impl RequestFeatures {
    /// The request to make instead, when `refusal` is about something that this one asks for; `None` when it is about
    /// something else. `ladder` is what may be gone down (empty when the form is not to be changed), `first` whether
    /// the form of this call was not changed before.
    pub(crate) fn instead(self, refusal: &ServerRejection, ladder: &[Structured], first: bool) -> Option<Self> {
        let status = refusal.status.unwrap_or(400);
        if !matches!(status, 400 | 404 | 415 | 422 | 500 | 501) {
            return None;
        }
        let words = plain(&format!("{} {}", refusal.about, refusal.message));
        let says = |needle: &&str| words.contains(*needle);
        let client_error = matches!(status, 400 | 422);
        if client_error && self.usage && ["stream options", "include usage"].iter().any(says) {
            return Some(Self { usage: false, ..self });
        }
        if client_error && !self.completion_tokens && says(&"max completion tokens") {
            return Some(Self { completion_tokens: true, ..self });
        }
        let (certain, hints) = complaints(self.form);
        // A server in trouble says so with 500 too; only the name of the field itself tells that it is not that.
        let about_form = certain.iter().any(says) || (status != 500 && first && hints.iter().any(says));
        if about_form {
            let at = ladder.iter().position(|form| *form == self.form)?;
            return ladder.get(at + 1).map(|form| Self { form: *form, ..self });
        }
        // A server that does not say what it refuses is asked once for the words alone.
        let bare = Self { usage: false, form: if ladder.is_empty() { self.form } else { Structured::Off }, ..self };
        let silent = matches!(status, 400 | 415 | 422 | 501) && says_nothing(&words);
        (silent && first && !ladder.is_empty() && bare.form != self.form).then_some(bare)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Learned {
    no_usage: AtomicBool,
    completion_tokens: AtomicBool,
    /// How far down the ladder it takes structured output.
    rung: AtomicU8,
}

impl Learned {
    /// What to ask for now. `fixed` is the form that the settings name, `structured` whether the request has a schema.
    pub(crate) fn asking(&self, fixed: Option<Structured>, structured: bool, ladder: &[Structured]) -> RequestFeatures {
        let rung = usize::from(self.rung.load(Ordering::Relaxed));
        let form = fixed.or_else(|| ladder.get(rung).copied()).filter(|_| structured);
        RequestFeatures {
            usage: !self.no_usage.load(Ordering::Relaxed),
            completion_tokens: self.completion_tokens.load(Ordering::Relaxed),
            form: form.unwrap_or(Structured::Off),
        }
    }

    /// Keeps what has worked after something else was refused. What was given up for a call that fails all the same is not
    /// kept: it may have been innocent.
    pub(crate) fn keep(&self, asked: RequestFeatures, began: RequestFeatures, ladder: &[Structured]) {
        if began.usage && !asked.usage {
            self.no_usage.store(true, Ordering::Relaxed);
        }
        if asked.completion_tokens {
            self.completion_tokens.store(true, Ordering::Relaxed);
        }
        if asked.form != began.form {
            let rung = ladder.iter().position(|form| *form == asked.form).and_then(|rung| u8::try_from(rung).ok());
            self.rung.fetch_max(rung.unwrap_or_default(), Ordering::Relaxed);
        }
    }
}

/// A complaint in lower case, without marks, words apart by one space.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a complaint only says that something is wrong.
fn says_nothing(words: &str) -> bool {
    const EMPTY: &str = "400 415 422 501 bad request invalid error parameter parameters params argument arguments input \
                         unprocessable entity content validation not implemented unsupported supported failed";
    words.split(' ').all(|word| word.is_empty() || EMPTY.split(' ').any(|empty| empty == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LADDER: [Structured; 3] = [Structured::JsonSchema, Structured::JsonObject, Structured::Off];

    const FULL: RequestFeatures =
        RequestFeatures { usage: true, completion_tokens: false, form: Structured::JsonSchema };

    fn refusal(status: u16, message: &str) -> ServerRejection {
        ServerRejection { status: Some(status), message: message.into(), about: String::new() }
    }

    #[test]
    fn what_a_complaint_is_about_is_told_from_its_words() {
        let object = RequestFeatures { form: Structured::JsonObject, ..FULL };
        let table: [(u16, &str, Option<RequestFeatures>); 12] = [
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
            assert_eq!(FULL.instead(&refusal(status, message), &LADDER, true), expected, "{status} {message}");
        }
        let named =
            ServerRejection { about: "body.response_format.type".into(), ..refusal(422, "Input should be 'text'") };
        assert_eq!(FULL.instead(&named, &LADDER, true), Some(object));
    }

    #[test]
    fn the_second_step_needs_the_name_of_the_field() {
        let object = RequestFeatures { form: Structured::JsonObject, ..FULL };
        let off = Some(RequestFeatures { form: Structured::Off, ..FULL });
        for (message, expected) in
            [("response_format", off), ("json_object", off), ("schema", None), ("", None), ("bad request", None)]
        {
            assert_eq!(object.instead(&refusal(400, message), &LADDER, false), expected, "{message}");
        }
        let last = RequestFeatures { form: Structured::Off, ..FULL };
        assert_eq!(last.instead(&refusal(400, "response_format"), &LADDER, false), None);
        // What the settings name is not changed.
        assert_eq!(FULL.instead(&refusal(400, "response_format"), &[], true), None);
        assert_eq!(FULL.instead(&refusal(400, ""), &[], true), None);
    }

    #[test]
    fn what_has_worked_is_kept_and_nothing_is_asked_for_that_was_refused() {
        let learned = Learned::default();
        assert_eq!(learned.asking(None, true, &LADDER), FULL);
        learned.keep(FULL, FULL, &LADDER);
        assert_eq!(learned.asking(None, true, &LADDER), FULL);
        let less = RequestFeatures { usage: false, completion_tokens: true, form: Structured::Off };
        learned.keep(less, FULL, &LADDER);
        // A call that began before goes less far down, and changes nothing.
        learned.keep(RequestFeatures { form: Structured::JsonObject, ..FULL }, FULL, &LADDER);
        assert_eq!(learned.asking(None, true, &LADDER), less);
        assert_eq!(learned.asking(Some(Structured::Tool), true, &LADDER).form, Structured::Tool);
        assert_eq!(learned.asking(Some(Structured::Tool), false, &LADDER).form, Structured::Off);
    }

    #[test]
    fn a_call_without_a_schema_teaches_nothing_about_forms() {
        let learned = Learned::default();
        let none = learned.asking(None, false, &LADDER);
        learned.keep(none, none, &LADDER);
        assert_eq!(learned.asking(None, true, &LADDER), FULL);
    }
}
