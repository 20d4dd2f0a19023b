//! Sessions in memory: what many callers do at the same time, while sessions leave memory as soon as they rest.

use std::sync::Arc;
use std::time::Duration;

use bcc_engine::engine::{Engine, RunRequest};
use bcc_engine::environment::Environment;
use bcc_engine::project::Project;
use bcc_store::contract::Store;
use bcc_store::memory::MemoryStore;
use bcc_store::sqlite::open::open;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use crate::live::command::{Answer, AnsweredTurn, SessionCommand, stored_key};
use crate::live::hand_over::ReplacingMessage;
use crate::live::sessions::{LiveSessions, SessionOpening};
use crate::metrics::Metrics;
use crate::problem::{Problem, ProblemKind};

/// A conversation that asks the same question again and again.
const SCRIPT: &str = "
session:
  session_id: echo
  declare: [{ var: heard, type: string }]
  phases:
    - phase_id: p
      topics:
        - topic_id: t
          actions:
            - action_type: ai_ask
              action_id: listen
              config: { content: What?, output: [{ get: heard }] }
              on_exit: { exit_criteria_met: { goto: listen } }
";

/// The sessions of a project, each of which leaves memory after this time.
fn sessions(idle_time: Duration) -> (tempfile::TempDir, Arc<LiveSessions>, RunRequest) {
    let folder = tempfile::tempdir().unwrap();
    let (sessions, request) = sessions_in(&folder, idle_time, Arc::new(MemoryStore::default()));
    (folder, sessions, request)
}

/// The sessions of a server for the project in a folder, with this store.
fn sessions_in(
    folder: &tempfile::TempDir,
    idle_time: Duration,
    store: Arc<dyn Store>,
) -> (Arc<LiveSessions>, RunRequest) {
    let file = folder.path().join("echo.yaml");
    std::fs::write(&file, SCRIPT).unwrap();
    std::fs::create_dir_all(folder.path().join(".bcc")).unwrap();
    let environment = Environment::default();
    let project = Project::of(folder.path(), None, true, &environment).unwrap();
    let engine = Engine::new(project, environment, store);
    let sessions = LiveSessions::new(engine, Arc::new(Metrics::default()), idle_time);
    (sessions, RunRequest { file, ..RunRequest::default() })
}

async fn say(sessions: &Arc<LiveSessions>, id: &str, text: &str, key: &str) -> Result<AnsweredTurn, Problem> {
    say_after(sessions, id, text, key, None).await
}

/// Says something after this number of answers.
async fn say_after(
    sessions: &Arc<LiveSessions>,
    id: &str,
    text: &str,
    key: &str,
    expected: Option<u64>,
) -> Result<AnsweredTurn, Problem> {
    let (accepted, mut after) = mpsc::channel(1);
    let command = |ended| {
        SessionCommand::Answer(Answer {
            text: text.to_owned(),
            key: Some(stored_key(key)),
            answer_id: None,
            expected_answers: expected,
            may_decide: true,
            accepted: Some(accepted.clone()),
            ended,
        })
    };
    let answered = sessions.send(id, None, command).await;
    // However often it was sent until the session took it, whoever waits learns where its turn begins.
    if let Ok(AnsweredTurn::Ended(turn)) = &answered {
        assert_eq!(after.recv().await, Some(turn.after));
    }
    answered
}

async fn said(sessions: &LiveSessions, id: &str) -> Vec<String> {
    let messages = sessions.store().messages(id, 0, 10_000).await.unwrap();
    messages.into_iter().filter(|message| message.role == "user").map(|message| message.text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sessions_that_leave_memory_at_once_lose_and_repeat_nothing() {
    let (_folder, sessions, request) = sessions(Duration::ZERO);
    sessions.start(request, "s").await.unwrap();
    let callers = (0..8).map(|caller| {
        let sessions = Arc::clone(&sessions);
        tokio::spawn(async move {
            for number in 0..25 {
                let (text, key) = (format!("{caller}-{number}"), format!("k{caller}-{number}"));
                // Twice each, as a client does that got no response.
                for _ in 0..2 {
                    loop {
                        match say(&sessions, "s", &text, &key).await {
                            Ok(_) => break,
                            Err(problem) => {
                                assert_eq!(problem.kind(), ProblemKind::Unavailable, "{}", problem.detail())
                            }
                        }
                    }
                }
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    let said = said(&sessions, "s").await;
    let mut expected: Vec<String> =
        (0..8).flat_map(|caller| (0..25).map(move |number| format!("{caller}-{number}"))).collect();
    let mut sorted = said.clone();
    sorted.sort();
    expected.sort();
    assert_eq!(sorted, expected);
    // Each caller's messages are in its order.
    for caller in 0..8 {
        let own: Vec<&String> = said.iter().filter(|text| text.starts_with(&format!("{caller}-"))).collect();
        assert_eq!(own.len(), 25);
        assert!(own.iter().enumerate().all(|(number, text)| **text == format!("{caller}-{number}")), "{own:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_that_would_rest_for_an_hour_is_given_up_to_another_process_on_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = || {
        let store = open(&folder.path().join("sessions.db")).unwrap().with_group_commits().unwrap();
        sessions_in(&folder, Duration::from_secs(3600), Arc::new(store))
    };
    let ((first, request), (second, _)) = (server(), server());
    first.start(request, "s").await.unwrap();
    for number in 0..4 {
        let sessions = if number % 2 == 0 { &second } else { &first };
        say(sessions, "s", &format!("{number}"), &format!("k{number}")).await.unwrap();
        assert_eq!(sessions.count(), 1);
    }
    assert_eq!(said(&first, "s").await, ["0", "1", "2", "3"]);
    // Many messages at both: each is in one turn.
    let callers = [Arc::clone(&first), Arc::clone(&second)].into_iter().enumerate().map(|(caller, sessions)| {
        tokio::spawn(async move {
            for number in 0..10 {
                let text = format!("{caller}-{number}");
                while say(&sessions, "s", &text, &text).await.is_err() {}
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    assert_eq!(said(&first, "s").await.len(), 24);
}

#[tokio::test]
async fn an_answer_is_not_taken_after_another_number_of_answers() {
    let (_folder, sessions, request) = sessions(Duration::from_secs(3600));
    sessions.start(request, "s").await.unwrap();
    let answers = (0..4).map(|number| {
        let sessions = Arc::clone(&sessions);
        tokio::spawn(async move {
            let text = format!("{number}");
            say_after(&sessions, "s", &text, &text, Some(0)).await.unwrap()
        })
    });
    let mut moved_on = 0;
    for answer in answers.collect::<Vec<_>>() {
        moved_on += usize::from(matches!(answer.await.unwrap(), AnsweredTurn::MovedOn));
    }
    assert_eq!(moved_on, 3);
    let taken = said(&sessions, "s").await;
    assert_eq!(taken.len(), 1);
    // The key of an answer that was taken counts more than the number.
    let again = say_after(&sessions, "s", &taken[0], &taken[0], Some(0)).await;
    assert!(matches!(again, Ok(AnsweredTurn::Repeated)), "{again:?}");
}

#[tokio::test]
async fn a_session_that_rests_leaves_memory() {
    let (_folder, sessions, request) = sessions(Duration::ZERO);
    for number in 0..50 {
        sessions.start(request.clone(), &format!("s{number}")).await.unwrap();
    }
    while sessions.count() > 0 {
        tokio::task::yield_now().await;
    }
    // It is opened again when somebody needs it.
    say(&sessions, "s7", "here", "k").await.unwrap();
    assert_eq!(said(&sessions, "s7").await, ["here"]);
}

#[tokio::test]
async fn at_the_end_all_sessions_leave_memory_and_no_other_is_opened() {
    let (_folder, sessions, request) = sessions(Duration::from_secs(3600));
    sessions.start(request.clone(), "s").await.unwrap();
    assert_eq!(sessions.count(), 1);
    assert!(sessions.end(Duration::from_secs(60)).await);
    assert_eq!(sessions.count(), 0);
    let late = say(&sessions, "s", "late", "k").await.unwrap_err();
    assert_eq!(late.kind(), ProblemKind::Unavailable);
    assert_eq!(sessions.start(request, "t").await.unwrap_err().kind(), ProblemKind::Unavailable);
    assert!(said(&sessions, "s").await.is_empty());
}

/// An answer, and what becomes of it.
fn answer(text: &str) -> (SessionCommand, oneshot::Receiver<Result<AnsweredTurn, Problem>>, mpsc::Receiver<u64>) {
    let ((ended, result), (accepted, after)) = (oneshot::channel(), mpsc::channel(1));
    let (text, accepted) = (text.to_owned(), Some(accepted));
    let answer =
        Answer { text, key: None, answer_id: None, expected_answers: None, may_decide: false, accepted, ended };
    (SessionCommand::Answer(answer), result, after)
}

#[tokio::test]
async fn a_message_that_interrupts_comes_before_those_that_wait() {
    // A model that never answers.
    let model = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}", model.local_addr().unwrap());
    let config = format!("[models.default]\nprovider = \"openai\"\nbase_url = \"{url}\"\nmodel = \"m\"\n");
    std::fs::write(folder.path().join("bcc-script.toml"), config).unwrap();
    let (sessions, request) = sessions_in(&folder, Duration::from_secs(3600), Arc::new(MemoryStore::default()));
    std::fs::write(folder.path().join("echo.yaml"), SCRIPT.replace("config: {", "config: { delivery: verbatim,"))
        .unwrap();
    sessions.start(request, "s").await.unwrap();
    let live = sessions.open("s", SessionOpening::default()).await.unwrap();
    let (first, first_result, mut stored) = answer("first");
    live.commands.send(first.caused()).await.unwrap();
    stored.recv().await.unwrap();
    // It waits for the end of that turn.
    let waiting = tokio::spawn({
        let (sessions, queued) = (Arc::clone(&sessions), live.commands.clone());
        async move {
            let (waiting, result, _stored) = answer("waits");
            queued.send(waiting.caused()).await.unwrap();
            // The session leaves memory, and whoever waits sends it again.
            assert!(result.await.unwrap().unwrap_err().is_outdated());
            let (accepted, _stored) = mpsc::channel(1);
            let command = |ended| {
                let (text, accepted) = ("waits".to_owned(), Some(accepted.clone()));
                let (key, answer_id, expected_answers) = (None, None, None);
                SessionCommand::Answer(Answer {
                    text,
                    key,
                    answer_id,
                    expected_answers,
                    may_decide: false,
                    accepted,
                    ended,
                })
            };
            sessions.send("s", None, command).await
        }
    });
    let (command, _result, mut stored) = answer("interrupts");
    let interrupting = ReplacingMessage { command, answers: 0 };
    assert!(sessions.interrupt("s", interrupting).await.unwrap());
    assert_eq!(first_result.await.unwrap().unwrap_err().kind(), ProblemKind::Interrupted);
    stored.recv().await.unwrap();
    assert_eq!(said(&sessions, "s").await, ["interrupts"]);
    waiting.abort();
}
