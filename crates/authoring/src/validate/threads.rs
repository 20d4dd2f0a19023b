//! Runs work in parallel on all processors, with a stack size that is sufficient for documents.

use bcc_lang::message::msg;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bcc_engine::error::EngineError;

/// Documents may nest 128 levels deep, and each level needs one or more calls: more than the default stack allows.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Applies `work` to each of `things` in parallel, with one thread per processor. Results are in order.
/// Errors: if threads cannot be started, or one panicked.
pub(crate) fn on_threads<T: Sync, R: Send>(things: &[T], work: impl Fn(&T) -> R + Sync) -> Result<Vec<R>, EngineError> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(things.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, thing)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|index| Some((index, things.get(index)?)))
        {
            done.push((index, work(thing)));
        }
        done
    };
    let mut results = thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let threads = (0..workers).map(spawn).collect::<Result<Vec<_>, _>>();
        let threads = threads.map_err(|error| EngineError::failed(msg!("cannot start a thread: {error}")))?;
        let mut results = Vec::with_capacity(things.len());
        for thread in threads {
            results.extend(thread.join().map_err(|_| EngineError::failed("the check of a file stopped unexpectedly"))?);
        }
        Ok::<_, EngineError>(results)
    })?;
    results.sort_unstable_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
