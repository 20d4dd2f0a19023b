//! What the owner of a lock is told by other processes, and what it tells them.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::contract::{LockNotice, LockReply, LockRequest};

/// The signals of one lock, shared by its owner and by what receives the requests of other processes.
#[derive(Debug)]
pub(crate) struct LockSignals {
    notice: watch::Sender<LockNotice>,
    is_interrupted: watch::Sender<bool>,
    is_busy: AtomicBool,
}

impl Default for LockSignals {
    fn default() -> Self {
        Self {
            notice: watch::Sender::new(LockNotice::None),
            is_interrupted: watch::Sender::new(false),
            is_busy: AtomicBool::new(false),
        }
    }
}

impl LockSignals {
    /// Receives a request. The reply is for the process that asks.
    pub(crate) fn receive(&self, request: LockRequest) -> LockReply {
        match request {
            LockRequest::ReleaseIfIdle if self.is_busy.load(Ordering::Acquire) => return LockReply::Busy,
            LockRequest::Interrupt => {
                self.is_interrupted.send_replace(true);
            }
            LockRequest::Release | LockRequest::ReleaseIfIdle => {}
        }
        self.notice.send_if_modified(|notice| {
            let is_new = *notice == LockNotice::None;
            if is_new {
                *notice = LockNotice::Wanted;
            }
            is_new
        });
        LockReply::Asked
    }

    /// The lock may be lost.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "the locks of files notice it themselves"))]
    pub(crate) fn lose(&self) {
        self.notice.send_replace(LockNotice::Lost);
    }

    /// Waits until the owner is told something.
    pub(crate) async fn notice(&self) -> LockNotice {
        let mut notice = self.notice.subscribe();
        // The sender lives as long as this does.
        notice.wait_for(|notice| *notice != LockNotice::None).await.map_or(LockNotice::Lost, |notice| *notice)
    }

    /// Waits until another process wants the turn to end.
    pub(crate) async fn interrupted(&self) {
        let mut is_interrupted = self.is_interrupted.subscribe();
        let _ = is_interrupted.wait_for(|is_interrupted| *is_interrupted).await;
    }

    pub(crate) fn set_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Ordering::Release);
    }
}
