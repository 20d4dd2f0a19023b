//! `store copy`: sessions go on in the copy.

use bcc_store::plan_contract::PlanStore;
use bcc_store::plan_rows::{PlanRow, PlanTaskRow};
use bcc_store::sqlite::open::open;

use crate::database::{new_database, server};
use crate::process::Home;

const TALK: &str = "
session:
  session_id: talk
  declare: [{ var: name, type: string }, { var: likes, type: string }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - { action_type: ai_ask, action_id: a, config: { content: 'Who are you?', output: [{ get: name }] } }
            - { action_type: ai_ask, action_id: b, config: { content: 'What do you like?', output: [{ get: likes }] } }
            - { action_type: ai_say, action_id: c, config: { content: '{{ name }} likes {{ likes }}.' } }
";

/// Starts a session, copies its store there, and continues the copy.
fn copied_to(target: &str) {
    let home = Home::new();
    home.file("talk.yaml", TALK);
    let run = home.finish(["run", "talk.yaml", "--session", "s", "--store", "first.db"], "林\n");
    assert_eq!(run.code, Some(3), "{}", run.err);
    let copied = home.finish(["store", "copy", "first.db", target], "");
    assert_eq!(
        (copied.code, copied.out.as_str()),
        (Some(0), "sessions copied: 1, there already: 0; plans: 0\n"),
        "{}",
        copied.err
    );
    assert_eq!(copied.err, "copied session s\n");
    let export = |store: &str| home.finish(["sessions", "export", "s", "--store", store], "").out;
    assert_eq!(export(target), export("first.db"));
    let again = home.finish(["store", "copy", "first.db", target], "");
    assert_eq!((again.code, again.out.as_str()), (Some(0), "sessions copied: 0, there already: 1; plans: 0\n"));
    let resumed = home.finish(["sessions", "resume", "s", "--store", target], "tea\n");
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(resumed.out.contains("林 likes tea."), "{}", resumed.out);
    // The copy has gone on; it is not set back.
    let late = home.finish(["store", "copy", "first.db", target], "");
    assert_eq!(late.code, Some(1));
    assert_eq!(late.err, "session s was not copied: the other store has it in another state, and keeps it\n");
    assert!(export(target).contains("\"status\": \"completed\""));
}

#[test]
fn a_session_goes_on_in_a_copy_of_its_store() {
    copied_to("second.db");
}

#[test]
fn a_session_of_a_file_goes_on_in_a_database() {
    let Some(server) = server() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    copied_to(&runtime.block_on(new_database(&server)));
}

/// A plan of this user with the task 1, in the store of a file.
async fn put_plan(home: &Home, store: &str, plan: u64, user: &str) {
    let store = open(&home.path().join(store)).unwrap();
    let row = PlanRow { id: plan, user: user.to_owned(), title: "travel".to_owned(), ..PlanRow::default() };
    let task = PlanTaskRow { id: 1, parent: None, rank: 1, body: "{}".to_owned() };
    store.create_plan(&row, &[task], user, "made").await.unwrap();
}

/// A plan whose task the other store has in another plan does not keep the rest from being copied.
#[test]
fn a_plan_whose_place_is_taken_is_named_and_left_out() {
    let home = Home::new();
    home.file("talk.yaml", TALK);
    let run = home.finish(["run", "talk.yaml", "--session", "s", "--store", "first.db"], "林\n");
    assert_eq!(run.code, Some(3), "{}", run.err);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        put_plan(&home, "first.db", 1, "a").await;
        put_plan(&home, "second.db", 2, "b").await;
    });
    let copied = home.finish(["store", "copy", "first.db", "second.db"], "");
    assert_eq!(
        (copied.code, copied.out.as_str()),
        (Some(1), "sessions copied: 1, there already: 0; plans: 0\n"),
        "{}",
        copied.err
    );
    let note = "plan 1 was not copied: the other store has it in another state, or another plan with its tasks or its edits, and keeps that\n";
    assert_eq!(copied.err, format!("copied session s\n{note}"));
}

#[test]
fn what_cannot_be_copied_is_said() {
    let home = Home::new();
    let missing = home.finish(["store", "copy", "none.db", "second.db"], "");
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("there is no store at") && missing.err.contains("none.db"), "{}", missing.err);
    assert!(!home.path().join("second.db").exists());
    // As a process leaves it that is killed while it creates a store.
    let empty = home.put("empty.db", "");
    let missing = home.finish(["store", "copy", "empty.db", "second.db"], "");
    assert!(missing.code == Some(2) && missing.err.contains("there is no store at"), "{}", missing.err);
    assert_eq!(std::fs::metadata(empty).unwrap().len(), 0);
    assert!(!home.path().join("second.db").exists());
    let same = home.finish(["store", "copy", "a.db", "./a.db"], "");
    assert_eq!((same.code, same.err.as_str()), (Some(2), "error: the store and its copy are the same\n"));
    let url = "postgres://u:geheim@%2Fno%2Fsuch%2Fplace/db";
    for arguments in [["sessions", "list", "--store", url], ["doctor", "--json", "--store", url]] {
        let unreachable = home.finish(arguments, "");
        let all = format!("{}{}", unreachable.out, unreachable.err);
        assert!(all.contains("postgres://u@") && all.contains("no connection can be made"), "{all}");
        assert!(!all.contains("geheim"), "{all}");
    }
    let check = home.finish(["store", "check", "--store", url], "");
    assert_eq!(check.code, Some(2));
    assert!(check.err.contains("is a database, not a file") && !check.err.contains("geheim"), "{}", check.err);
}
