//! An archive under which a process dies at every commit, just before it or just after it: what a session must survive.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bcc_store::error::StoreError;
use bcc_store::rows::Commit;
use tokio::sync::Notify;

use hooked::{Birth, Hook, Hooked, Writing};

#[path = "hooked.rs"]
pub(crate) mod hooked;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Never,
    /// At each commit, before it is written: all that the turn did is lost and done again.
    Before,
    /// At each commit, after it is written: nothing in memory outlives a turn.
    After,
    /// At some of the commits, before or after, as this seed has it.
    #[allow(dead_code, reason = "conversations die at every commit")]
    Sometimes(u64),
}

/// What the deaths have come to.
#[derive(Debug, Default)]
struct Fate {
    mortal: bool,
    /// Whether the commit that comes was already tried once.
    tried: bool,
    commits: u64,
}

/// An archive in memory that tells when the process that writes to it is to die.
pub(crate) type MortalArchive = Hooked<Mortality>;

pub(crate) struct Mortality {
    death: Death,
    fate: Mutex<Fate>,
    died: Notify,
}

impl MortalArchive {
    pub(crate) fn new(death: Death) -> Arc<Self> {
        Arc::new(Self::with(Mortality { death, fate: Mutex::default(), died: Notify::new() }))
    }

    /// Runs `work` until it is done, or until it dies at a commit; then `None`, and all that it held is dropped.
    pub(crate) async fn mortal<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let _mortal = Mortal::new(&self.hook.fate);
        tokio::select! {
            biased;
            () = self.hook.died.notified() => None,
            done = work => Some(done),
        }
    }
}

impl Mortality {
    async fn die(&self) {
        self.died.notify_one();
        std::future::pending().await
    }
}

#[async_trait]
impl Hook for Mortality {
    async fn around(&self, _: Option<Birth<'_>>, _: &Commit, write: Writing<'_>) -> Result<(), StoreError> {
        let death = {
            let mut fate = self.fate.lock().unwrap();
            match self.death {
                _ if !fate.mortal => Death::Never,
                Death::Before => {
                    fate.tried = !fate.tried;
                    if fate.tried { Death::Before } else { Death::Never }
                }
                Death::Sometimes(seed) => {
                    fate.commits += 1;
                    match fastrand::Rng::with_seed(seed ^ fate.commits << 32).u8(..20) {
                        0 => Death::Before,
                        1 => Death::After,
                        _ => Death::Never,
                    }
                }
                other => other,
            }
        };
        if death == Death::Before {
            self.die().await;
        }
        write.await?;
        if death == Death::After {
            self.die().await;
        }
        Ok(())
    }
}

/// As long as it is there, commits may be deadly: also work that is given up half-way is mortal no more.
struct Mortal<'a>(&'a Mutex<Fate>);

impl<'a> Mortal<'a> {
    fn new(fate: &'a Mutex<Fate>) -> Self {
        fate.lock().unwrap().mortal = true;
        Self(fate)
    }
}

impl Drop for Mortal<'_> {
    fn drop(&mut self) {
        self.0.lock().unwrap().mortal = false;
    }
}
