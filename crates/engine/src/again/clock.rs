//! The clock of a session that gives the answers of an earlier one again: prompts say the times of then, so that they are the same.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bcc_lang::template::language::PromptLanguage;
use bcc_runtime::program::clock::Clock;
use bcc_runtime::run::head::SessionStatus;
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
    /// The number of the event of this session that has the place of the first of these: the last event of its newest resume.
    first: u64,
    zone: TimeZone,
}

impl Engine {
    /// The clock of a stored session, or of the copy of one, that is resumed while it has this status.
    pub(crate) async fn clock_of(
        &self,
        settings: &RunSettings,
        id: &str,
        status: Option<SessionStatus>,
    ) -> Result<Arc<dyn Clock>, EngineError> {
        let clock = self.clock(settings.clock.as_deref())?;
        let (Some(of), Some(seq)) = (&settings.retry_of, settings.retry_seq) else { return Ok(clock) };
        if !settings.repeats_answers {
            return Ok(clock);
        }
        let store = self.store().as_ref();
        // Resuming it is one event, or two if a turn was running.
        let resuming = 1 + u64::from(status == Some(SessionStatus::Running));
        let first = seq + events_of_resumes(store, id, seq).await? + resuming;
        repeated_clock(clock, store, (of, seq), first, settings.clock.is_some()).await
    }
}

/// `clock`, with the times in prompts that the session `of` had from the event `seq` on. In this session, the event `first` has the place of
/// that one; `is_utc` says whether its times are in UTC.
///
/// # Errors
/// The store cannot be read.
async fn repeated_clock(
    clock: Arc<dyn Clock>,
    store: &dyn Store,
    (of, seq): (&str, u64),
    first: u64,
    is_utc: bool,
) -> Result<Arc<dyn Clock>, EngineError> {
    let taken_back = TakenBackEvents::of(events_of(store, of, "taken_back").await?);
    let (mut times, mut repeats_question, mut resumed) = (Vec::new(), false, None);
    let mut after = seq.saturating_sub(1);
    loop {
        let rows = store.journal(of, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        for row in rows {
            let is_own = match row.kind.as_str() {
                // Only that session was resumed then, or took an answer back and asked again.
                "session_resumed" => {
                    resumed = Some(row.seq);
                    row.seq == seq
                }
                "message_discarded" if resumed.is_some_and(|resumed| row.seq == resumed + 1) => row.seq == seq,
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
    let zone = if is_utc { TimeZone::UTC } else { TimeZone::system() };
    Ok(Arc::new(RepeatedClock { clock, times, first, zone }))
}

/// How many events of the session `id` after the event `seq` say that it was resumed, which the other session does not have.
///
/// # Errors
/// The store cannot be read.
async fn events_of_resumes(store: &dyn Store, id: &str, seq: u64) -> Result<u64, EngineError> {
    let resumed = numbers_of(store, id, "session_resumed", seq).await?;
    let discarded = numbers_of(store, id, "message_discarded", seq).await?;
    let discarded = discarded.iter().filter(|seq| resumed.contains(&(*seq - 1))).count();
    Ok((resumed.len() + discarded) as u64)
}

/// The numbers of the events of this kind after the event `seq`.
async fn numbers_of(store: &dyn Store, id: &str, kind: &str, seq: u64) -> Result<BTreeSet<u64>, EngineError> {
    let (mut after, mut numbers) = (seq, BTreeSet::new());
    loop {
        let rows = store.journal_by_kind(id, kind, after, PAGE).await?;
        let Some(last) = rows.last() else { return Ok(numbers) };
        after = last.seq;
        numbers.extend(rows.iter().map(|row| row.seq));
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
        // A prompt has the time of the event before it (`SystemClock::prompt_time`), here as there.
        let place = seq.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| self.times.get(place).copied().flatten()) {
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
        // The session waited, was answered, killed and resumed, and had replied; then an answer was taken back and given anew.
        let kinds = "session_started phase_entered topic_entered waiting message session_resumed message_discarded outcome waiting message \
            outcome taken_back waiting message";
        let row = |(index, kind): (usize, &str)| {
            let seq = index as u64 + 1;
            let range = if kind == "taken_back" { ",\"from_seq\":10,\"to_seq\":11" } else { "" };
            let body = format!("{{\"seq\":{seq},\"type\":\"{kind}\"{range}}}");
            JournalRow { seq, at: time_of(seq), kind: kind.into(), body }
        };
        let first = Commit { journal: kinds.split(' ').enumerate().map(row).collect(), ..Commit::default() };
        let session = NewSessionRow { id: "earlier".into(), ..NewSessionRow::default() };
        store.create(&session, &[], &first).await.unwrap();
        let now: Arc<dyn Clock> = Arc::new(FixedClock::new("2027-01-01T00:00:00Z".parse().unwrap()));
        for resumed in [0, 3] {
            let first = 5 + resumed;
            let clock = repeated_clock(Arc::clone(&now), &store, ("earlier", 4), first, true).await.unwrap();
            let shown = |seq: u64| clock.prompt_time(seq + resumed, PromptLanguage::En);
            let at = |seq: u64| readable_time(time_of(seq).parse().unwrap(), TimeZone::UTC, PromptLanguage::En);
            // After the copied events and `session_resumed` comes the answer, then the prompt with its time.
            assert_eq!(shown(6), at(5));
            assert_eq!(shown(7), at(8), "without the pause");
            assert_eq!((shown(8), shown(9)), (at(9), at(14)), "without what was taken back");
            // From there on, it is now.
            assert_eq!(shown(10), now.prompt_time(10 + resumed, PromptLanguage::En));
        }
    }

    #[tokio::test]
    async fn what_says_that_a_session_was_resumed_is_counted() {
        let store = MemoryStore::default();
        let kinds = "session_resumed session_started session_resumed message_discarded message model_call message_discarded session_resumed";
        let row = |(index, kind): (usize, &str)| {
            let seq = index as u64 + 1;
            JournalRow {
                seq,
                at: time_of(seq),
                kind: kind.into(),
                body: format!("{{\"seq\":{seq},\"type\":\"{kind}\"}}"),
            }
        };
        let first = Commit { journal: kinds.split(' ').enumerate().map(row).collect(), ..Commit::default() };
        let session = NewSessionRow { id: "own".into(), ..NewSessionRow::default() };
        store.create(&session, &[], &first).await.unwrap();
        assert_eq!(events_of_resumes(&store, "own", 2).await.unwrap(), 3);
        assert_eq!(events_of_resumes(&store, "own", 8).await.unwrap(), 0);
    }
}
