//! The clock of a session. Time enters through here only, so that a session can be replayed (docs/language.md).

pub trait Clock: Send + Sync {
    /// The time of the event `seq`, as RFC 3339 in UTC with microseconds.
    fn at(&self, seq: u64) -> String;

    /// Milliseconds since some fixed moment, for measuring how long a call took. A clock that stands still gives 0.
    fn elapsed_ms(&self) -> u64;

    /// The moment of the event `seq` in words for a prompt, in the local zone: `2026-11-21 20:05 (Saturday)`.
    fn words(&self, seq: u64) -> String;
}
