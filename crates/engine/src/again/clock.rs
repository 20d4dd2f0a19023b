//! The clock of a session that gives the answers of an earlier one again: prompts say the times of then, so that they are the same.

use std::sync::Arc;
use std::time::Duration;

use bcc_lang::template::language::PromptLanguage;
use bcc_runtime::program::clock::Clock;
use bcc_store::contract::Store;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::clock::readable_time;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::export::events_of;
use crate::settings::RunSettings;
use crate::taken_back::TakenBackEvents;

/// The number of events that are read at a time: one may contain megabytes of prompt and reply.
const PAGE: usize = 64;

/// A clock whose times in prompts are those of the events of another session, as far as that went.
struct RepeatedClock {
    clock: Arc<dyn Clock>,
    /// The times of its events, from that on at which this session begins: those that this session has as well.
    times: Vec<Option<Timestamp>>,
    /// The number of the newest `session_resumed` of this session: after it comes what came after the first of these times.
    first: u64,
    zone: TimeZone,
}

impl Engine {
    /// The clock of a stored session, or of the copy of one.
    pub(crate) async fn clock_of(&self, settings: &RunSettings, id: &str) -> Result<Arc<dyn Clock>, EngineError> {
        let clock = self.clock(settings.clock.as_deref())?;
        let (Some(of), Some(seq)) = (&settings.retry_of, settings.retry_seq) else { return Ok(clock) };
        if !settings.repeats_answers {
            return Ok(clock);
        }
        let store = self.store().as_ref();
        let resumed = times_resumed(store, id, seq).await?;
        repeated_clock(clock, store, (of, seq), resumed, settings.clock.is_some()).await
    }
}

/// `clock`, with the times in prompts that the session `of` had from the event `seq` on. That session was `resumed` so often; `is_utc`
/// says whether its times are in UTC.
///
/// # Errors
/// The store cannot be read.
async fn repeated_clock(
    clock: Arc<dyn Clock>,
    store: &dyn Store,
    (of, seq): (&str, u64),
    resumed: u64,
    is_utc: bool,
) -> Result<Arc<dyn Clock>, EngineError> {
    let taken_back = TakenBackEvents::of(events_of(store, of, "taken_back").await?);
    let (mut times, mut repeats_question) = (Vec::new(), false);
    let mut after = seq.saturating_sub(1);
    loop {
        let rows = store.journal(of, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        for row in rows {
            let is_own = match row.kind.as_str() {
                // Only that session was resumed then, or took an answer back and asked again.
                "session_resumed" => row.seq == seq,
                "taken_back" => {
                    repeats_question = true;
                    false
                }
                "waiting" if repeats_question => {
                    repeats_question = false;
                    false
                }
                _ => !taken_back.contains(row.seq),
            };
            if is_own {
                times.push(row.at.parse().ok());
            }
        }
    }
    // Each time that the session was resumed, now as well, is an event that the other one does not have.
    let first = seq + resumed + 1;
    let zone = if is_utc { TimeZone::UTC } else { TimeZone::system() };
    Ok(Arc::new(RepeatedClock { clock, times, first, zone }))
}

/// How often the session `id` was resumed after the event `seq`.
///
/// # Errors
/// The store cannot be read.
async fn times_resumed(store: &dyn Store, id: &str, seq: u64) -> Result<u64, EngineError> {
    let (mut after, mut count) = (seq, 0);
    loop {
        let rows = store.journal_by_kind(id, "session_resumed", after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(count) };
        after = last.seq;
        count += rows.len() as u64;
    }
}

impl Clock for RepeatedClock {
    fn at(&self, seq: u64) -> String {
        self.clock.at(seq)
    }

    fn elapsed_ms(&self) -> u64 {
        self.clock.elapsed_ms()
    }

    fn prompt_time(&self, seq: u64, language: PromptLanguage) -> String {
        // A prompt is written right after the event before it; the next one has the time at which the model had answered.
        let before = seq.checked_sub(self.first + 1).and_then(|place| usize::try_from(place).ok());
        match before.and_then(|place| self.times.get(place).copied().flatten()) {
            Some(moment) => readable_time(moment, self.zone.clone(), language),
            None => self.clock.prompt_time(seq, language),
        }
    }

    fn remaining(&self, due: &str) -> Option<Duration> {
        self.clock.remaining(due)
    }

    fn instant(&self, text: &str) -> Option<String> {
        self.clock.instant(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FixedClock;
    use bcc_store::memory::MemoryStore;
    use bcc_store::rows::{Commit, JournalRow, NewSessionRow};

    /// The time of an earlier event: its number is the minute.
    fn time_of(seq: u64) -> String {
        format!("2026-11-01T10:{seq:02}:00Z")
    }

    #[tokio::test]
    async fn a_pause_of_the_earlier_session_does_not_shift_the_times() {
        let store = MemoryStore::default();
        // The session waited, was answered, paused and resumed, and had replied; then an answer was taken back and given anew.
        let kinds = "session_started phase_entered topic_entered waiting message session_resumed outcome waiting message outcome taken_back \
            waiting message";
        let row = |(index, kind): (usize, &str)| {
            let seq = index as u64 + 1;
            let range = if kind == "taken_back" { ",\"from_seq\":9,\"to_seq\":10" } else { "" };
            let body = format!("{{\"seq\":{seq},\"type\":\"{kind}\"{range}}}");
            JournalRow { seq, at: time_of(seq), kind: kind.into(), body }
        };
        let first = Commit { journal: kinds.split(' ').enumerate().map(row).collect(), ..Commit::default() };
        let session = NewSessionRow { id: "earlier".into(), ..NewSessionRow::default() };
        store.create(&session, &[], &first).await.unwrap();
        let now: Arc<dyn Clock> = Arc::new(FixedClock::new("2027-01-01T00:00:00Z".parse().unwrap()));
        for resumed in [0, 2] {
            let clock = repeated_clock(Arc::clone(&now), &store, ("earlier", 4), resumed, true).await.unwrap();
            let shown = |seq: u64| clock.prompt_time(seq + resumed, PromptLanguage::En);
            let at = |seq: u64| readable_time(time_of(seq).parse().unwrap(), TimeZone::UTC, PromptLanguage::En);
            // After the copied events and `session_resumed` comes the answer, then the prompt with its time.
            assert_eq!(shown(7), at(5));
            assert_eq!(shown(8), at(7), "without the pause");
            assert_eq!((shown(9), shown(10)), (at(8), at(13)), "without what was taken back");
            // From there on, it is now.
            assert_eq!(shown(11), now.prompt_time(11 + resumed, PromptLanguage::En));
        }
    }
}
