//! The conformance tests of stores whose processes can ask each other for sessions. Each store stands for a process.

use std::time::Duration;

use crate::contract::{LockNotice, LockReply, LockRequest, SessionLock, Store};
use crate::error::StoreError;

/// Whether the lock has been told nothing so far.
async fn is_undisturbed(lock: &dyn SessionLock) -> bool {
    tokio::time::timeout(Duration::ZERO, lock.notice()).await.is_err()
        && tokio::time::timeout(Duration::ZERO, lock.interrupted()).await.is_err()
}

pub(crate) async fn a_locked_session_can_be_asked_for(owner: &dyn Store, other: &dyn Store) {
    // What is free can be had.
    assert_eq!(other.ask_for("s", LockRequest::Release).await.unwrap(), LockReply::Asked);
    let lock = owner.lock("s", "the owner").await.unwrap();
    let kept = owner.lock("t", "the owner").await.unwrap();
    assert!(matches!(other.lock("s", "another").await, Err(StoreError::Held { .. })));
    lock.set_busy(true);
    for _ in 0..2 {
        assert_eq!(other.ask_for("s", LockRequest::ReleaseIfIdle).await.unwrap(), LockReply::Busy);
    }
    assert!(is_undisturbed(lock.as_ref()).await);
    assert_eq!(other.ask_for("s", LockRequest::Release).await.unwrap(), LockReply::Asked);
    assert_eq!(lock.notice().await, LockNotice::Wanted);
    assert!(tokio::time::timeout(Duration::ZERO, lock.interrupted()).await.is_err());
    assert_eq!(other.ask_for("s", LockRequest::Interrupt).await.unwrap(), LockReply::Asked);
    lock.interrupted().await;
    drop(lock);
    // What was asked of a lock does not concern the next one.
    let lock = owner.lock("s", "the owner").await.unwrap();
    assert!(is_undisturbed(lock.as_ref()).await && is_undisturbed(kept.as_ref()).await);
    assert_eq!(other.ask_for("s", LockRequest::ReleaseIfIdle).await.unwrap(), LockReply::Asked);
    assert_eq!(lock.notice().await, LockNotice::Wanted);
    drop(lock);
    while other.lock("s", "another").await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(is_undisturbed(kept.as_ref()).await);
}

/// A process that runs one session, as a terminal does, says at once that it keeps it.
pub(crate) async fn a_process_that_runs_one_session_keeps_it(owner: &dyn Store, other: &dyn Store) {
    let lock = owner.lock("s", "a terminal").await.unwrap();
    for request in [LockRequest::Release, LockRequest::ReleaseIfIdle, LockRequest::Interrupt] {
        assert_eq!(other.ask_for("s", request).await.unwrap(), LockReply::Impossible, "{request:?}");
    }
    assert!(is_undisturbed(lock.as_ref()).await);
    drop(lock);
    while other.lock("s", "another").await.is_err() {
        tokio::task::yield_now().await;
    }
}
