//! The clock of a session that gives the answers of an earlier one again: prompts say the times of then, so that they are the same.

use std::collections::BTreeMap;
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
use crate::settings::RunSettings;

/// The number of events that are read at a time: one may contain megabytes of prompt and reply.
const PAGE: usize = 64;

/// A clock whose times in prompts are those of the events of another session, as far as that went.
struct RepeatedClock {
    clock: Arc<dyn Clock>,
    /// By the number of the event.
    times: BTreeMap<u64, Timestamp>,
    /// How much larger the numbers of the same events are in this session.
    shift: u64,
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
    let mut times = BTreeMap::new();
    let mut after = seq.saturating_sub(1);
    loop {
        let rows = store.journal(of, after, PAGE).await?;
        let Some(last) = rows.last() else { break };
        after = last.seq;
        times.extend(rows.iter().filter_map(|row| Some((row.seq, row.at.parse().ok()?))));
    }
    // Each time that the session was resumed, now as well, is an event that the other one does not have.
    let shift = resumed + 1;
    let zone = if is_utc { TimeZone::UTC } else { TimeZone::system() };
    Ok(Arc::new(RepeatedClock { clock, times, shift, zone }))
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
        match seq.checked_sub(self.shift + 1).and_then(|before| self.times.get(&before)) {
            Some(moment) => readable_time(*moment, self.zone.clone(), language),
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
