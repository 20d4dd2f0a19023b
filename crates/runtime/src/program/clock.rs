//! The clock of a session: the only source of time, so that a session can be replayed (docs/language.md).

use std::time::Duration;

use bcc_lang::template::language::PromptLanguage;

pub trait Clock: Send + Sync {
    /// The time of the event `seq`, as RFC 3339 in UTC with microseconds.
    fn at(&self, seq: u64) -> String;

    /// Milliseconds since some fixed moment, for measuring the duration of a call. A fixed clock returns 0.
    fn elapsed_ms(&self) -> u64;

    /// The time of the event `seq` as text for a prompt, in the local zone: `2026-11-21 20:05 (Saturday)`.
    fn prompt_time(&self, seq: u64, language: PromptLanguage) -> String;

    /// How long it is until `due` (RFC 3339), zero if it has come. `None` if time does not pass: then nothing becomes due, and an
    /// action that would only wait for a time goes on at once.
    fn remaining(&self, due: &str) -> Option<Duration> {
        let _ = due;
        None
    }

    /// The point in time that an author wrote, as [`bcc_lang::value::instant::instant`] reads it, in the zone of this clock.
    fn instant(&self, text: &str) -> Option<String>;
}
