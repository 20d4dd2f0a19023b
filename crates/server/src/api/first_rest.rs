//! Where a session rested first after an event: the end of a turn, also when the session has gone on since.

use bcc_engine::settings::copied_session;
use bcc_runtime::run::head::SessionStatus;
use bcc_store::contract::Store;
use bcc_store::error::StoreError;
use bcc_store::rows::{JournalRow, SessionRow};
use serde_json::Value;

/// The most commits of a turn that are looked at after its first question. For a longer turn, nothing is found.
const MAX_COMMITS: u64 = 1000;

/// Where a session rested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    pub(crate) status: SessionStatus,
    /// The number of its last event then.
    pub(crate) last_seq: u64,
}

/// The status and the last event of a session at one of its revisions; none if the store does not keep it.
async fn state_at(store: &dyn Store, row: &SessionRow, revision: u64) -> Result<Option<(String, u64)>, StoreError> {
    if revision == row.revision {
        return Ok(Some((row.status.clone(), row.last_seq)));
    }
    let earlier = store.earlier_state(&row.id, revision).await?;
    Ok(earlier.map(|earlier| (earlier.status, earlier.last_seq)))
}

/// The first revision with the event `seq`, which is looked for from the newest one on: the older a state is, the more it costs to read it.
/// None if the store does not keep the states around it.
async fn revision_with_event(store: &dyn Store, row: &SessionRow, seq: u64) -> Result<Option<u64>, StoreError> {
    let (mut without, mut with, mut step) = (0, row.revision, 1);
    while with - without > 1 {
        // Once one without the event is known, the middle.
        let probe = if without == 0 { with.saturating_sub(step).max(1) } else { without + (with - without) / 2 };
        let Some((_, last_seq)) = state_at(store, row, probe).await? else { return Ok(None) };
        if last_seq < seq {
            without = probe;
        } else {
            with = probe;
            step *= 2;
        }
    }
    Ok(Some(with))
}

/// Whether a time was over already for which a session began to wait with this event, so that it did not rest.
async fn goes_on_at_once(store: &dyn Store, id: &str, last_seq: u64) -> Result<bool, StoreError> {
    let answered = store.journal_by_kind(id, "request_answered", last_seq, 1).await?;
    let event: Value = answered.first().and_then(|row| serde_json::from_str(&row.body).ok()).unwrap_or_default();
    let Some(request) = event.get("request_id").and_then(Value::as_str) else { return Ok(false) };
    if event.get("decision").is_some_and(|decision| !decision.is_null()) {
        return Ok(false);
    }
    let due = store.requests(id).await?.into_iter().find(|row| row.id == request).and_then(|row| row.due_at);
    let last = store.journal(id, last_seq.saturating_sub(1), 1).await?;
    // Times in UTC are in order as texts, without the `Z`.
    let is_over = |(due, last): (String, &JournalRow)| due.trim_end_matches('Z') <= last.at.trim_end_matches('Z');
    Ok(due.zip(last.first()).is_some_and(is_over))
}

/// Where a session rested first after the event `after`, before it went on at all after `until`. None if it has not rested since, if its turn
/// asked nothing, or if the store does not keep that. A turn that has stopped is not over.
pub(crate) async fn first_rest(
    store: &dyn Store,
    row: &SessionRow,
    after: u64,
    until: u64,
) -> Result<Option<Rest>, StoreError> {
    // It rests only after it has asked for something.
    let asked = store.journal_by_kind(&row.id, "waiting", after, 1).await?;
    let Some(asked) = asked.first().filter(|asked| asked.seq <= until) else { return Ok(None) };
    let Some(first) = revision_with_event(store, row, asked.seq).await? else { return Ok(None) };
    if first == 1 && copied_session(&row.settings).is_some() {
        // The states before the copy are those of another session.
        return Ok(None);
    }
    for revision in first..=row.revision.min(first.saturating_add(MAX_COMMITS)) {
        let Some((status, last_seq)) = state_at(store, row, revision).await? else { return Ok(None) };
        if last_seq > until {
            return Ok(None);
        }
        match SessionStatus::parse(&status) {
            Some(SessionStatus::Running | SessionStatus::Stopped) | None => {}
            Some(status) if status.is_waiting() && goes_on_at_once(store, &row.id, last_seq).await? => {}
            Some(status) => return Ok(Some(Rest { status, last_seq })),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use bcc_store::memory::MemoryStore;
    use bcc_store::rows::{Commit, NewSessionRow, RequestRow};

    use super::*;

    /// A session with commits that have these statuses, and one event of this kind each.
    async fn stored(commits: &[(&str, &str)]) -> (MemoryStore, SessionRow) {
        let store = MemoryStore::default();
        for (number, (status, kind)) in commits.iter().enumerate() {
            let number = number as u64;
            let event = JournalRow {
                seq: number + 1,
                kind: (*kind).to_owned(),
                body: "{}".to_owned(),
                ..JournalRow::default()
            };
            let commit =
                Commit { revision: number, status: (*status).to_owned(), journal: vec![event], ..Commit::default() };
            match number {
                0 => {
                    let new = NewSessionRow { id: "s".to_owned(), ..NewSessionRow::default() };
                    store.create(&new, &[], &commit).await.unwrap();
                }
                _ => store.commit("s", &commit).await.unwrap(),
            }
        }
        let row = store.session("s").await.unwrap().unwrap();
        (store, row)
    }

    #[tokio::test]
    async fn a_session_rests_when_nothing_of_it_runs_and_not_when_a_branch_asks() {
        let commits = [
            ("waiting_input", "waiting"),
            ("running", "message"),
            ("running", "waiting"),
            ("running", "request_answered"),
            ("stopped", "session_stopped"),
            ("running", "session_resumed"),
            ("waiting_approval", "effect"),
            ("waiting_approval", "monitor_feedback"),
            ("running", "request_answered"),
            ("waiting_input", "waiting"),
            ("cancelled", "session_cancelled"),
        ];
        let (store, row) = stored(&commits).await;
        let rest = |status, last_seq| Some(Rest { status, last_seq });
        for (after, until, expected) in [
            (0, 11, rest(SessionStatus::WaitingInput, 1)),
            (1, 11, rest(SessionStatus::WaitingApproval, 7)),
            (2, 11, rest(SessionStatus::WaitingApproval, 7)),
            // The next answer came before it rested.
            (2, 6, None),
            (3, 11, rest(SessionStatus::WaitingInput, 10)),
            (10, 11, None),
        ] {
            assert_eq!(first_rest(&store, &row, after, until).await.unwrap(), expected, "{after}..{until}");
        }
        let copy = SessionRow { settings: r#"{"copy_of":"other"}"#.to_owned(), ..row };
        assert_eq!(first_rest(&store, &copy, 0, 11).await.unwrap(), None);
        assert_eq!(first_rest(&store, &copy, 1, 11).await.unwrap(), rest(SessionStatus::WaitingApproval, 7));
    }

    #[tokio::test]
    async fn a_session_does_not_rest_for_a_time_that_is_over() {
        for (due, expected) in [("2026-11-30T10:00:00Z", 3), ("2026-11-30T10:00:00.5Z", 1)] {
            let store = MemoryStore::default();
            let event = |seq: u64, kind: &str, body: &str| JournalRow {
                seq,
                kind: kind.to_owned(),
                body: body.to_owned(),
                at: "2026-11-30T10:00:00.2Z".to_owned(),
            };
            let commit = |revision, status: &str, event| Commit {
                revision,
                status: status.to_owned(),
                journal: vec![event],
                ..Commit::default()
            };
            let request = RequestRow { id: "r1".to_owned(), due_at: Some(due.to_owned()), ..RequestRow::default() };
            let first = Commit { requests_put: vec![request], ..commit(0, "waiting_time", event(1, "waiting", "{}")) };
            let new = NewSessionRow { id: "s".to_owned(), ..NewSessionRow::default() };
            store.create(&new, &[], &first).await.unwrap();
            let over = event(2, "request_answered", r#"{"request_id":"r1","decision":null}"#);
            store.commit("s", &commit(1, "running", over)).await.unwrap();
            store.commit("s", &commit(2, "waiting_input", event(3, "waiting", "{}"))).await.unwrap();
            let row = store.session("s").await.unwrap().unwrap();
            let rest = first_rest(&store, &row, 0, 3).await.unwrap().unwrap();
            assert_eq!(rest.last_seq, expected, "{due}");
        }
    }
}
