//! Tests of timeouts, waiting, and cancellation of code.

use std::time::Duration;

use bcc_runtime::notebook::cell::CellEnd;
use bcc_runtime::notebook::kernel::contract::{Kernel, KernelSettings};

use crate::kernel::bench::{Bench, LONG_TIMEOUT, SHORT_TIMEOUT, is_running, wait_until};

#[tokio::test]
async fn endless_code_is_interrupted_and_the_kernel_keeps_its_memory() {
    let Some(bench) = Bench::new() else { return };
    bench.run("kept = 41").await;
    let execution = bench.run_for("while True:\n    pass", SHORT_TIMEOUT).await;
    assert_eq!(
        (execution.ended, execution.outputs[0]["ename"].as_str()),
        (CellEnd::TimedOut, Some("KeyboardInterrupt"))
    );
    assert_eq!(bench.stdout_of("print(kept + 1)").await, "42\n");
    assert_eq!(bench.kernel.executed_cells(), 3);
}

#[tokio::test]
async fn sleep_and_processes_of_the_code_are_interrupted_too() {
    let Some(bench) = Bench::new() else { return };
    for code in ["import time\ntime.sleep(3_600)", "import subprocess\nsubprocess.run(['sleep', '3600'])"] {
        assert_eq!(bench.run_for(code, SHORT_TIMEOUT).await.ended, CellEnd::TimedOut, "{code}");
        assert_eq!(bench.stdout_of("print('on')").await, "on\n");
    }
}

#[tokio::test]
async fn code_that_ignores_the_interrupt_is_killed_and_the_next_starts_a_new_kernel() {
    let Some(bench) = Bench::new() else { return };
    let code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nkept = 1\nwhile True:\n    pass";
    assert_eq!(bench.run_for(code, SHORT_TIMEOUT).await.ended, CellEnd::TimedOut);
    assert_eq!(bench.kernel.executed_cells(), 0);
    assert_eq!(bench.stdout_of("print('kept' in globals())").await, "False\n");
    assert_eq!(bench.kernel.executed_cells(), 1);
}

#[tokio::test]
async fn nobody_answers_input() {
    let Some(bench) = Bench::new() else { return };
    let execution = bench.run("input('你好？')").await;
    assert_eq!(
        (execution.ended, execution.outputs[0]["ename"].as_str()),
        (CellEnd::Error, Some("StdinNotImplementedError"))
    );
}

#[tokio::test]
async fn canceled_code_is_interrupted_before_anything_else_runs() {
    let Some(bench) = Bench::new() else { return };
    bench.run("kept = 'here'").await;
    let marker = bench.directory.path().join("mark");
    let code = "open('mark', 'w').close()\nwhile True:\n    pass";
    tokio::select! {
        execution = bench.run(code) => panic!("{execution:?}"),
        () = wait_until("the mark", || marker.exists()) => {}
    }
    let execution = bench.run("print(kept)").await;
    assert_eq!((execution.ended, crate::kernel::bench::text(&execution.outputs).as_str()), (CellEnd::Ok, "here\n"));
}

#[tokio::test]
async fn an_idle_kernel_is_stopped() {
    let Some(bench) = Bench::new() else { return };
    let settings = KernelSettings { idle_timeout: Duration::from_millis(200), ..bench.settings.clone() };
    let execution = bench.kernel.execute("import os\nprint(os.getpid())", LONG_TIMEOUT, &settings).await.unwrap();
    let process = crate::kernel::bench::text(&execution.outputs).trim().to_owned();
    wait_until("the end of the kernel", || bench.kernel.executed_cells() == 0 && !is_running(&process)).await;
    assert_eq!(bench.stdout_of("print('again')").await, "again\n");
}

#[tokio::test]
async fn a_session_clock_does_not_affect_the_kernel_timeouts() {
    let Some(bench) = Bench::new() else { return };
    tokio::time::pause();
    let execution = bench.run_for("import time\ntime.sleep(1)\nprint('slow')", Duration::from_secs(30)).await;
    assert_eq!((execution.ended, crate::kernel::bench::text(&execution.outputs).as_str()), (CellEnd::Ok, "slow\n"));
}
