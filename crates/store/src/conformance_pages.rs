//! The conformance tests of stores for the list of sessions, which run against each implementation.

use crate::conformance::{commit_at, new_session};
use crate::contract::Store;
use crate::rows::{Commit, NewSessionRow, SessionCursor, SessionFilter, SessionRow};

pub(crate) async fn sessions_are_listed_by_their_last_change(store: &dyn Store) {
    let times =
        [("b", "20:00:00Z"), ("a", "20:00:00Z"), ("c", "20:00:00.5Z"), ("d", "20:00:00.25Z"), ("e", "19:59:59Z")];
    for (id, time) in times {
        let first = Commit { updated_at: format!("2026-11-21T{time}"), ..commit_at(0) };
        store.create(&new_session(id), &[], &first).await.unwrap();
    }
    let ids: Vec<_> = store.sessions().await.unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, ["c", "d", "a", "b", "e"]);
}

pub(crate) async fn sessions_are_listed_by_page_script_status_user_time_and_id(store: &dyn Store) {
    let mut all = Vec::new();
    for number in 0..60_u32 {
        let id = format!("{}-{number:02}", ["a_%", "a_x", "é", "A"][number as usize % 4]);
        let user = if number % 3 == 0 { "ann" } else { "ben" };
        let script = if number % 5 == 0 { "intake" } else { "review" };
        let session = NewSessionRow { user: user.into(), script: script.into(), ..new_session(&id) };
        // Several of one time, of one period of ten minutes, and of periods of their own.
        let updated_at = format!("2026-11-2{}T2{}:{:02}:00Z", number % 2, number % 3, number / 6 * 6);
        store.create(&session, &[], &Commit { updated_at, ..commit_at(0) }).await.unwrap();
        if number % 7 == 0 {
            // It moves to another period.
            let updated_at = format!("2026-11-23T00:{number:02}:00.5Z");
            store.commit(&id, &Commit { updated_at, status: "completed".into(), ..commit_at(1) }).await.unwrap();
        }
    }
    store.delete("a_x-01").await.unwrap();
    all.extend(store.sessions().await.unwrap());
    assert_eq!(all.len(), 59);
    let text = |text: &str| Some(text.to_owned());
    let filters = [
        SessionFilter::default(),
        SessionFilter { id: text("a_%"), ..SessionFilter::default() },
        SessionFilter { id: text("a"), ..SessionFilter::default() },
        SessionFilter { id: text("é-0"), user: text("ann"), ..SessionFilter::default() },
        SessionFilter { id: text(""), ..SessionFilter::default() },
        SessionFilter { script: text("intake"), ..SessionFilter::default() },
        SessionFilter { status: text("completed"), ..SessionFilter::default() },
        SessionFilter { user: text("ann"), ..SessionFilter::default() },
        SessionFilter {
            user: text("ann"),
            script: text("intake"),
            status: text("completed"),
            ..SessionFilter::default()
        },
        SessionFilter { since: text("2026-11-21T21:12:00Z"), ..SessionFilter::default() },
        SessionFilter { user: text("nobody"), ..SessionFilter::default() },
    ];
    for filter in filters {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let wanted = all.iter().filter(|row| {
            is(&filter.script, &row.script)
                && is(&filter.status, &row.status)
                && is(&filter.user, &row.user)
                && filter.id.as_ref().is_none_or(|start| row.id.starts_with(start))
                && filter
                    .since
                    .as_ref()
                    .is_none_or(|since| row.updated_at.trim_end_matches('Z') >= since.trim_end_matches('Z'))
        });
        let wanted: Vec<&SessionRow> = wanted.collect();
        for limit in [1, 7, 100] {
            let mut found = Vec::new();
            let mut after = None;
            loop {
                let page = store.sessions_page(&filter, after.as_ref(), limit).await.unwrap();
                assert!(page.len() <= limit);
                let Some(last) = page.last() else { break };
                after = Some(SessionCursor::after(last));
                found.extend(page);
            }
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{filter:?} by {limit}");
        }
    }
}
