//! Requests in a kernel that others use at the same time, with a kernel whose messages are written here.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;

use crate::effects::output::NoOutputObserver;
use crate::notebook::cell::CellEnd;
use crate::notebook::kernel::channels::KernelDescription;
use crate::notebook::kernel::contract::Execution;
use crate::notebook::kernel::execution::{CellInterrupts, CellWatch, RequestLimits, run_cell};
use crate::notebook::kernel::limits::OutputLimits;
use crate::notebook::kernel::message::Received;
use crate::notebook::kernel::running::KernelHost;
use crate::notebook::kernel::running::Running;
use crate::notebook::kernel::variables::KnownVariables;
use crate::notebook::kernel::websocket::ScriptedKernel;

const LIMITS: RequestLimits = RequestLimits { start: Duration::from_secs(10), run: Duration::from_secs(2) };

fn shared() -> (Running, ScriptedKernel) {
    let (channels, kernel) = ScriptedKernel::connected();
    let (info, place) = (KernelDescription::default(), String::new());
    (
        Running {
            channels,
            info,
            place,
            host: KernelHost::Foreign,
            limits: OutputLimits::default(),
            variables: KnownVariables::default(),
        },
        kernel,
    )
}

fn message(kind: &str, parent: &str, content: Value) -> Received {
    let parent = Some(parent.to_owned());
    Received { kind: kind.to_owned(), parent, session: None, content: Some(content), bytes: 10 }
}

fn status(parent: &str, state: &str) -> Received {
    message("status", parent, json!({ "execution_state": state }))
}

/// Runs a cell while `kernel` does something. Returns how it ended, and all requests of the client that the kernel did not read.
async fn ran<F: Future<Output = ScriptedKernel>>(mut running: Running, kernel: F) -> (Execution, Vec<String>) {
    let (mut answer, _result) = oneshot::channel();
    let (asked, cells) = (watch::Sender::new(0), AtomicU64::new(0));
    let interrupts = CellInterrupts { asked: asked.subscribe(), cell: 1 };
    let mut watch = CellWatch::new(interrupts, &cells, &NoOutputObserver);
    let ((execution, _), mut kernel) =
        tokio::join!(run_cell(&mut running, "x", LIMITS, &mut answer, &mut watch), kernel);
    drop(running);
    let mut requests = vec![];
    while let Some((kind, _)) = kernel.request().await {
        requests.push(kind);
    }
    (execution, requests)
}

#[tokio::test(start_paused = true)]
async fn code_that_waits_for_code_of_others_is_not_interrupted_and_counts_as_queued() {
    let (running, mut kernel) = shared();
    let (execution, requests) = ran(running, async move {
        assert_eq!(kernel.request().await.unwrap().0, "execute_request");
        kernel
    })
    .await;
    assert!(execution.is_queued);
    assert_eq!(execution.ended, CellEnd::Interrupted);
    assert_eq!(requests, Vec::<String>::new(), "the code of others is not interrupted");
}

#[tokio::test(start_paused = true)]
async fn a_note_about_the_connection_is_no_sign_that_the_code_has_started() {
    let (running, mut kernel) = shared();
    let (execution, requests) = ran(running, async move {
        let (_, id) = kernel.request().await.unwrap();
        let note = message("stream", &id, json!({ "name": "stderr", "text": "a note" }));
        kernel.iopub.send(note).await.unwrap();
        kernel
    })
    .await;
    assert!(execution.is_queued);
    assert_eq!(requests, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_code_counts_from_its_start() {
    let (running, mut kernel) = shared();
    let (execution, requests) = ran(running, async move {
        let (_, id) = kernel.request().await.unwrap();
        sleep(Duration::from_secs(9)).await;
        kernel.iopub.send(status(&id, "busy")).await.unwrap();
        sleep(Duration::from_millis(1_900)).await;
        kernel.shell.send(message("execute_reply", &id, json!({ "status": "ok" }))).await.unwrap();
        kernel.iopub.send(status(&id, "idle")).await.unwrap();
        kernel
    })
    .await;
    assert_eq!((execution.ended, execution.is_queued), (CellEnd::Ok, false));
    assert_eq!(requests, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn code_that_has_started_is_interrupted_after_its_time() {
    let (running, mut kernel) = shared();
    let (execution, requests) = ran(running, async move {
        let (_, id) = kernel.request().await.unwrap();
        kernel.iopub.send(status(&id, "busy")).await.unwrap();
        assert_eq!(kernel.request().await.unwrap().0, "interrupt_request");
        kernel.shell.send(message("execute_reply", &id, json!({ "status": "error" }))).await.unwrap();
        kernel.iopub.send(status(&id, "idle")).await.unwrap();
        kernel
    })
    .await;
    assert_eq!((execution.ended, execution.is_queued), (CellEnd::TimedOut, false));
    assert_eq!(requests, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn code_of_a_foreign_kernel_that_ignores_the_interrupt_may_go_on_and_its_cell_says_so() {
    let (running, mut kernel) = shared();
    let (execution, _) = ran(running, async move {
        let (_, id) = kernel.request().await.unwrap();
        kernel.iopub.send(status(&id, "busy")).await.unwrap();
        kernel
    })
    .await;
    assert_eq!((execution.ended, execution.ignored_interrupt), (CellEnd::TimedOut, true));
    let note = execution.outputs[0]["text"].as_str().unwrap();
    assert!(note.contains("may still run"), "{note}");
}

#[tokio::test(start_paused = true)]
async fn code_that_has_ended_is_not_interrupted_even_if_its_reply_is_missing() {
    let (running, mut kernel) = shared();
    let (execution, requests) = ran(running, async move {
        let (_, id) = kernel.request().await.unwrap();
        for state in ["busy", "idle"] {
            kernel.iopub.send(status(&id, state)).await.unwrap();
        }
        kernel
    })
    .await;
    assert_eq!(execution.ended, CellEnd::TimedOut);
    assert_eq!(requests, Vec::<String>::new(), "the next code may be that of others");
}

#[tokio::test(start_paused = true)]
async fn code_that_the_kernel_dropped_because_of_an_error_of_others_is_sent_again() {
    let (running, mut kernel) = shared();
    let (execution, requests) = ran(running, async move {
        for answer in ["aborted", "ok"] {
            let (kind, id) = kernel.request().await.unwrap();
            assert_eq!(kind, "execute_request");
            kernel.iopub.send(status(&id, "busy")).await.unwrap();
            kernel.shell.send(message("execute_reply", &id, json!({ "status": answer }))).await.unwrap();
            kernel.iopub.send(status(&id, "idle")).await.unwrap();
        }
        kernel
    })
    .await;
    assert_eq!(execution.ended, CellEnd::Ok);
    assert_eq!(requests, Vec::<String>::new());
}
