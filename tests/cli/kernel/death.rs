//! Tests of how a kernel ends, and that nothing of it remains.

use std::io::BufRead as _;
use std::process::{Command, Stdio};

use bcc_runtime::notebook::cell::CellEnd;
use bcc_runtime::notebook::kernel::contract::{Kernel, KernelSettings};
use bcc_runtime::notebook::kernel::jupyter::JupyterKernel;
use bcc_runtime::notebook::kernel::location::KernelLocation;

use crate::kernel::bench::{Bench, LONG_TIMEOUT, is_running, kernel_location, text, wait_until};
use crate::test_kernel::kernel_python;

#[tokio::test]
async fn a_kernel_that_dies_is_noticed_and_the_next_code_starts_another() {
    let Some(bench) = Bench::new() else { return };
    for code in [
        "print('last words', flush=True)\nimport os\nos._exit(3)",
        "print('last words', flush=True)\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "print('last words', flush=True)\nimport ctypes\nctypes.string_at(0)",
    ] {
        bench.run("kept = 1").await;
        let execution = bench.run(code).await;
        assert_eq!(execution.ended, CellEnd::Died, "{code}");
        assert_eq!(bench.kernel.executed_cells(), 0);
        assert_eq!(bench.stdout_of("print('kept' in globals())").await, "False\n");
    }
}

#[tokio::test]
async fn a_kernel_that_dies_while_nothing_runs_is_noticed_too() {
    let Some(bench) = Bench::new() else { return };
    bench.run("import os, threading\nthreading.Timer(0.3, os._exit, [1]).start()").await;
    wait_until("the end of the kernel", || bench.kernel.executed_cells() == 0).await;
    assert_eq!(bench.stdout_of("print('again')").await, "again\n");
}

#[tokio::test]
async fn exit_ends_the_cell_and_the_next_code_runs() {
    let Some(bench) = Bench::new() else { return };
    bench.run("exit()").await;
    assert_eq!(bench.stdout_of("print('again')").await, "again\n");
}

#[tokio::test]
async fn whatever_the_code_started_ends_with_the_kernel() {
    let Some(bench) = Bench::new() else { return };
    let output = bench
        .stdout_of("import os, subprocess\nforked = os.fork()\nif forked == 0:\n    while True: pass\nstarted = subprocess.Popen(['sleep', '3600'])\nprint(forked, started.pid)")
        .await;
    let ids: Vec<String> = output.split_whitespace().map(str::to_owned).collect();
    assert_eq!(ids.len(), 2, "{output}");
    assert!(ids.iter().all(|id| is_running(id)));
    bench.kernel.stop().await;
    wait_until("the end of what it started", || ids.iter().all(|id| !is_running(id))).await;
    assert_eq!(bench.kernel.executed_cells(), 0);
}

#[tokio::test]
async fn a_kernel_ends_with_its_session_and_leaves_no_file() {
    let Some(bench) = Bench::new() else { return };
    let code = "import os, atexit, sys\natexit.register(lambda: open('bye', 'w').close())\nprint(os.getpid())\nprint(sys.argv[sys.argv.index('-f') + 1])";
    let output = bench.stdout_of(code).await;
    let mut lines = output.lines();
    let (id, file) = (lines.next().unwrap().to_owned(), std::path::PathBuf::from(lines.next().unwrap()));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let Bench { kernel, directory, .. } = bench;
    drop(kernel);
    assert!(!is_running(&id) && !file.parent().unwrap().exists());
    assert!(directory.path().join("bye").exists(), "what the code wants to do at its end is done");
}

#[tokio::test]
async fn stopping_a_kernel_cancels_running_code() {
    let Some(bench) = Bench::new() else { return };
    bench.run("1").await;
    let marker = bench.directory.path().join("mark");
    let stop = async {
        wait_until("the mark", || marker.exists()).await;
        bench.kernel.stop().await;
    };
    let running = bench.kernel.execute("open('mark', 'w').close()\nwhile True: pass", LONG_TIMEOUT, &bench.settings);
    let (execution, ()) = tokio::join!(running, stop);
    assert_eq!(execution.unwrap_err().code, "kernel-did-not-start");
}

#[tokio::test]
async fn a_missing_kernel_and_a_broken_one_have_different_errors() {
    let directory = tempfile::tempdir().unwrap();
    let kernels = directory.path().join("kernels/broken");
    std::fs::create_dir_all(&kernels).unwrap();
    let spec = r#"{"argv": ["sh", "-c", "echo 'no such thing' >&2; exit 3", "{connection_file}"]}"#;
    std::fs::write(kernels.join("kernel.json"), spec).unwrap();
    let variables = [("JUPYTER_PATH", directory.path().display().to_string()), ("PATH", "/usr/bin:/bin".to_owned())];
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let kernel = JupyterKernel::new(KernelLocation {
        directory: directory.path().to_path_buf(),
        variables,
        ..KernelLocation::default()
    });
    for (name, code, part) in
        [("none", "no-kernel", "there is no kernel `none`"), ("broken", "kernel-did-not-start", "no such thing")]
    {
        let settings = KernelSettings { name: name.to_owned(), ..KernelSettings::default() };
        let error = kernel.execute("1", LONG_TIMEOUT, &settings).await.unwrap_err();
        assert_eq!(error.code, code);
        assert!(error.message.to_string().contains(part), "{error}");
    }
}

/// Not a test on its own: `nothing_is_left_of_a_kernel_whose_process_is_killed` starts and kills this process.
#[tokio::test]
async fn holds_a_kernel_until_it_is_killed() {
    if std::env::var_os("BCC_TEST_HOLD_KERNEL").is_none() {
        return;
    }
    let Some(bench) = Bench::new() else { return };
    println!("kernel {}", bench.stdout_of("import os\nprint(os.getpid())").await.trim());
    bench.run("while True: pass").await;
}

#[tokio::test]
async fn nothing_is_left_of_a_kernel_whose_process_is_killed() {
    let Some(_) = kernel_python() else { return };
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["kernel::death::holds_a_kernel_until_it_is_killed", "--exact", "--nocapture"])
        .env("BCC_TEST_HOLD_KERNEL", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(holder.stdout.take().unwrap()).lines();
    let id = lines.find_map(|line| Some(line.unwrap().split_once("kernel ")?.1.to_owned())).unwrap();
    assert!(is_running(&id));
    holder.kill().unwrap();
    holder.wait().unwrap();
    wait_until("the end of the kernel", || !is_running(&id)).await;
}

#[tokio::test]
async fn code_sees_the_directory_and_the_environment_that_it_is_given() {
    let Some(python) = kernel_python() else { return };
    let directory = tempfile::tempdir().unwrap();
    let kernel = JupyterKernel::new(kernel_location(&python, directory.path()));
    let code = "import os\nprint(os.getcwd())\nprint(sorted(n for n in os.environ if 'HOME' in n or 'CARGO' in n))";
    let execution = kernel.execute(code, LONG_TIMEOUT, &KernelSettings::default()).await.unwrap();
    let expected_directory = std::fs::canonicalize(directory.path()).unwrap();
    assert_eq!(text(&execution.outputs), format!("{}\n['HOME']\n", expected_directory.display()));
}
