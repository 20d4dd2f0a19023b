//! The conformance tests of stores that concern links.

use crate::conformance::NASTY;
use crate::contract::Store;
use crate::link_rows::{LinkRow, LinkTalkRow, TalkOutcome};
use crate::rows::{Commit, VariableRow};

/// Makes a test of every case; `$open` gives `(a value that must be kept alive, a store)`.
macro_rules! links_conformance {
    ($open:expr) => {
        $crate::conformance_links::links_conformance!(@ $open;
            a_link_is_read_as_it_was_written
            a_link_is_created_once
            a_link_for_one_talk_begins_one
            a_talk_that_begins_again_is_the_same
            no_talk_begins_by_a_link_that_is_revoked
            what_is_known_of_a_talk_is_not_undone
            the_variables_of_a_user_are_forgotten
        );
    };
    (@ $open:expr; $($case:ident)+) => { $(
        #[tokio::test]
        async fn $case() {
            let (_guard, store) = $open;
            $crate::conformance_links::$case(&store).await;
        }
    )+ };
}
pub(crate) use links_conformance;

pub(crate) fn link(id: &str) -> LinkRow {
    LinkRow {
        id: id.into(),
        token_sha256: format!("token of {id}"),
        created_at: "2026-11-21T20:00:00Z".into(),
        body: r#"{"script":"谈话"}"#.into(),
        ..LinkRow::default()
    }
}

pub(crate) fn talk(link: &str, secret: &str) -> LinkTalkRow {
    LinkTalkRow {
        link: link.into(),
        secret_sha256: secret.into(),
        session: format!("session of {secret}"),
        began_at: format!("2026-11-21T20:00:01.{secret}Z"),
        ..LinkTalkRow::default()
    }
}

pub(crate) async fn a_link_is_read_as_it_was_written(store: &dyn Store) {
    let newer = LinkRow {
        created_at: "2026-11-22T20:00:00Z".into(),
        expires_at: Some("2026-12-01T00:00:00Z".into()),
        body: NASTY.into(),
        ..link("newer")
    };
    for row in [&link("b"), &newer, &link("a")] {
        assert!(store.create_link(row).await.unwrap());
    }
    assert_eq!(store.links().await.unwrap(), [newer.clone(), link("a"), link("b")]);
    assert_eq!(store.link_of_token("token of newer").await.unwrap(), Some(newer));
    assert_eq!(store.link_of_token("another").await.unwrap(), None);
}

pub(crate) async fn a_link_is_created_once(store: &dyn Store) {
    assert!(store.create_link(&link("l")).await.unwrap());
    assert!(!store.create_link(&LinkRow { body: "{}".into(), ..link("l") }).await.unwrap());
    assert!(!store.create_link(&LinkRow { id: "other".into(), ..link("l") }).await.unwrap());
    assert_eq!(store.links().await.unwrap(), [link("l")]);
}

pub(crate) async fn a_link_for_one_talk_begins_one(store: &dyn Store) {
    store.create_link(&link("l")).await.unwrap();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|secret| talk("l", secret));
    let (a, b, c, d) = tokio::join!(
        store.start_talk(&a, Some(1)),
        store.start_talk(&b, Some(1)),
        store.start_talk(&c, Some(1)),
        store.start_talk(&d, Some(1))
    );
    let outcomes = [a, b, c, d];
    let begun = outcomes.iter().filter(|outcome| **outcome == Ok(TalkOutcome::Begun)).count();
    let used_up = outcomes.iter().filter(|outcome| **outcome == Ok(TalkOutcome::UsedUp)).count();
    assert_eq!((begun, used_up), (1, 3), "{outcomes:?}");
    assert_eq!(store.links().await.unwrap().first().map(|link| link.talks), Some(1));
    // Without a limit, any number begins.
    store.create_link(&link("open")).await.unwrap();
    for number in ["1", "2", "3"] {
        assert_eq!(store.start_talk(&talk("open", number), None).await, Ok(TalkOutcome::Begun));
    }
    assert_eq!(store.talks("open").await.unwrap(), ["1", "2", "3"].map(|number| talk("open", number)));
}

pub(crate) async fn a_talk_that_begins_again_is_the_same(store: &dyn Store) {
    store.create_link(&link("l")).await.unwrap();
    let first = LinkTalkRow { consent: Some(r#"{"sha256":"…"}"#.into()), ..talk("l", "s") };
    assert_eq!(store.start_talk(&first, Some(1)).await, Ok(TalkOutcome::Begun));
    let again = LinkTalkRow { session: "another".into(), ..talk("l", "s") };
    assert_eq!(store.start_talk(&again, Some(1)).await, Ok(TalkOutcome::Repeated(first.clone())));
    assert_eq!(store.talk("l", "s").await, Ok(Some(first)));
    assert_eq!(store.talk("l", "t").await, Ok(None));
    assert_eq!(store.talk("another", "s").await, Ok(None));
}

pub(crate) async fn no_talk_begins_by_a_link_that_is_revoked(store: &dyn Store) {
    store.create_link(&link("l")).await.unwrap();
    assert_eq!(store.start_talk(&talk("l", "s"), None).await, Ok(TalkOutcome::Begun));
    assert_eq!(store.revoke_link("l", "2026-11-23T00:00:00Z").await, Ok(true));
    assert_eq!(store.revoke_link("l", "2026-11-24T00:00:00Z").await, Ok(true));
    assert_eq!(store.revoke_link("none", "2026-11-24T00:00:00Z").await, Ok(false));
    let revoked = LinkRow { revoked_at: Some("2026-11-23T00:00:00Z".into()), talks: 1, ..link("l") };
    assert_eq!(store.links().await.unwrap(), [revoked]);
    assert_eq!(store.start_talk(&talk("l", "t"), None).await, Ok(TalkOutcome::Closed));
    assert_eq!(store.start_talk(&talk("none", "t"), None).await, Ok(TalkOutcome::Closed));
    // Whoever began before comes back.
    assert_eq!(store.start_talk(&talk("l", "s"), None).await, Ok(TalkOutcome::Repeated(talk("l", "s"))));
}

pub(crate) async fn what_is_known_of_a_talk_is_not_undone(store: &dyn Store) {
    store.create_link(&link("l")).await.unwrap();
    store.start_talk(&talk("l", "s"), None).await.unwrap();
    store.update_talk(&LinkTalkRow { is_started: true, ..talk("l", "s") }).await.unwrap();
    let withdrawn = LinkTalkRow { withdrawn_at: Some("2026-11-23T00:00:00Z".into()), ..talk("l", "s") };
    store.update_talk(&withdrawn).await.unwrap();
    let later = LinkTalkRow { withdrawn_at: Some("2026-11-24T00:00:00Z".into()), ..talk("l", "s") };
    store.update_talk(&later).await.unwrap();
    store.update_talk(&talk("l", "s")).await.unwrap();
    store.update_talk(&talk("l", "none")).await.unwrap();
    assert_eq!(store.talk("l", "s").await, Ok(Some(LinkTalkRow { is_started: true, ..withdrawn })));
}

pub(crate) async fn the_variables_of_a_user_are_forgotten(store: &dyn Store) {
    let variable =
        VariableRow { scope: "global".into(), name: "n".into(), value: "1".into(), ..VariableRow::default() };
    for id in ["anna", "ben"] {
        let first = Commit { user_variables_put: vec![variable.clone()], ..crate::conformance::commit_at(0) };
        let session = crate::rows::NewSessionRow { user: id.into(), ..crate::conformance::new_session(id) };
        store.create(&session, &[], &first).await.unwrap();
    }
    store.forget_user("anna").await.unwrap();
    assert_eq!(store.user_variables("anna").await, Ok(vec![]));
    assert_eq!(store.user_variables("ben").await, Ok(vec![variable]));
}
