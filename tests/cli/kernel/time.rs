//! Code that takes too long, waits, or is given up.

use std::time::Duration;

use bcc_runtime::notebook::cell::CellEnd;
use bcc_runtime::notebook::kernel::contract::{Kernel, KernelSettings};

use crate::kernel::bench::{Bench, LONG, SHORT, lives, until};

#[tokio::test]
async fn code_that_runs_for_ever_is_interrupted_and_the_kernel_keeps_its_memory() {
    let Some(bench) = Bench::new() else { return };
    bench.run("kept = 41").await;
    let ran = bench.run_for("while True:\n    pass", SHORT).await;
    assert_eq!((ran.ended, ran.outputs[0]["ename"].as_str()), (CellEnd::TimedOut, Some("KeyboardInterrupt")));
    assert_eq!(bench.said("print(kept + 1)").await, "42\n");
    assert_eq!(bench.kernel.ran(), 3);
}

#[tokio::test]
async fn sleep_and_processes_of_the_code_are_interrupted_too() {
    let Some(bench) = Bench::new() else { return };
    for code in ["import time\ntime.sleep(3_600)", "import subprocess\nsubprocess.run(['sleep', '3600'])"] {
        assert_eq!(bench.run_for(code, SHORT).await.ended, CellEnd::TimedOut, "{code}");
        assert_eq!(bench.said("print('on')").await, "on\n");
    }
}

#[tokio::test]
async fn code_that_ignores_the_interrupt_is_killed_and_the_next_starts_anew() {
    let Some(bench) = Bench::new() else { return };
    let code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nkept = 1\nwhile True:\n    pass";
    assert_eq!(bench.run_for(code, SHORT).await.ended, CellEnd::TimedOut);
    assert_eq!(bench.kernel.ran(), 0);
    assert_eq!(bench.said("print('kept' in globals())").await, "False\n");
    assert_eq!(bench.kernel.ran(), 1);
}

#[tokio::test]
async fn nobody_answers_input() {
    let Some(bench) = Bench::new() else { return };
    let ran = bench.run("input('你好？')").await;
    assert_eq!((ran.ended, ran.outputs[0]["ename"].as_str()), (CellEnd::Error, Some("StdinNotImplementedError")));
}

#[tokio::test]
async fn code_that_is_given_up_is_interrupted_before_anything_else_runs() {
    let Some(bench) = Bench::new() else { return };
    bench.run("kept = 'here'").await;
    let mark = bench.directory.path().join("mark");
    let code = "open('mark', 'w').close()\nwhile True:\n    pass";
    tokio::select! {
        ran = bench.run(code) => panic!("{ran:?}"),
        () = until("the mark", || mark.exists()) => {}
    }
    let ran = bench.run("print(kept)").await;
    assert_eq!((ran.ended, crate::kernel::bench::text(&ran.outputs).as_str()), (CellEnd::Ok, "here\n"));
}

#[tokio::test]
async fn a_kernel_with_nothing_to_do_is_stopped() {
    let Some(bench) = Bench::new() else { return };
    let settings = KernelSettings { idle_timeout: Duration::from_millis(200), ..bench.settings.clone() };
    let ran = bench.kernel.execute("import os\nprint(os.getpid())", LONG, &settings).await.unwrap();
    let process = crate::kernel::bench::text(&ran.outputs).trim().to_owned();
    until("the end of the kernel", || bench.kernel.ran() == 0 && !lives(&process)).await;
    assert_eq!(bench.said("print('again')").await, "again\n");
}

#[tokio::test]
async fn a_session_with_a_clock_of_its_own_does_not_hurry_its_kernel() {
    let Some(bench) = Bench::new() else { return };
    tokio::time::pause();
    let ran = bench.run_for("import time\ntime.sleep(1)\nprint('slow')", Duration::from_secs(30)).await;
    assert_eq!((ran.ended, crate::kernel::bench::text(&ran.outputs).as_str()), (CellEnd::Ok, "slow\n"));
}
