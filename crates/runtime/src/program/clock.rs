//! The clock of a session: the only source of time, so that a session can be replayed (docs/language.md).

use bcc_lang::template::language::PromptLanguage;

pub trait Clock: Send + Sync {
    /// The time of the event `seq`, as RFC 3339 in UTC with microseconds.
    fn at(&self, seq: u64) -> String;

    /// Milliseconds since some fixed moment, for measuring the duration of a call. A fixed clock returns 0.
    fn elapsed_ms(&self) -> u64;

    /// The time of the event `seq` as text for a prompt, in the local zone: `2026-11-21 20:05 (Saturday)`.
    fn prompt_time(&self, seq: u64, language: PromptLanguage) -> String;
}
