//! How a kernel ends, and that nothing of it stays.

use std::io::BufRead as _;
use std::process::{Command, Stdio};

use bcc_runtime::notebook::cell::CellEnd;
use bcc_runtime::notebook::kernel::contract::{Kernel, KernelSettings};
use bcc_runtime::notebook::kernel::jupyter::JupyterKernel;
use bcc_runtime::notebook::kernel::location::KernelLocation;

use crate::kernel::bench::{Bench, LONG, lives, place, text, until};
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
        let ran = bench.run(code).await;
        assert_eq!(ran.ended, CellEnd::Died, "{code}");
        assert_eq!(bench.kernel.ran(), 0);
        assert_eq!(bench.said("print('kept' in globals())").await, "False\n");
    }
}

#[tokio::test]
async fn a_kernel_that_dies_while_nothing_runs_is_noticed_too() {
    let Some(bench) = Bench::new() else { return };
    bench.run("import os, threading\nthreading.Timer(0.3, os._exit, [1]).start()").await;
    until("the end of the kernel", || bench.kernel.ran() == 0).await;
    assert_eq!(bench.said("print('again')").await, "again\n");
}

#[tokio::test]
async fn exit_ends_the_cell_and_the_next_code_runs() {
    let Some(bench) = Bench::new() else { return };
    bench.run("exit()").await;
    assert_eq!(bench.said("print('again')").await, "again\n");
}

#[tokio::test]
async fn whatever_the_code_started_ends_with_the_kernel() {
    let Some(bench) = Bench::new() else { return };
    let said = bench
        .said("import os, subprocess\nforked = os.fork()\nif forked == 0:\n    while True: pass\nstarted = subprocess.Popen(['sleep', '3600'])\nprint(forked, started.pid)")
        .await;
    let ids: Vec<String> = said.split_whitespace().map(str::to_owned).collect();
    assert_eq!(ids.len(), 2, "{said}");
    assert!(ids.iter().all(|id| lives(id)));
    bench.kernel.stop().await;
    until("the end of what it started", || ids.iter().all(|id| !lives(id))).await;
    assert_eq!(bench.kernel.ran(), 0);
}

#[tokio::test]
async fn a_kernel_ends_with_its_session_and_leaves_no_file() {
    let Some(bench) = Bench::new() else { return };
    let code = "import os, atexit, sys\natexit.register(lambda: open('bye', 'w').close())\nprint(os.getpid())\nprint(sys.argv[-1])";
    let said = bench.said(code).await;
    let mut lines = said.lines();
    let (id, file) = (lines.next().unwrap().to_owned(), std::path::PathBuf::from(lines.next().unwrap()));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let Bench { kernel, directory, .. } = bench;
    drop(kernel);
    assert!(!lives(&id) && !file.parent().unwrap().exists());
    assert!(directory.path().join("bye").exists(), "what the code wants to do at its end is done");
}

#[tokio::test]
async fn a_kernel_that_is_stopped_while_code_runs_gives_that_up() {
    let Some(bench) = Bench::new() else { return };
    bench.run("1").await;
    let mark = bench.directory.path().join("mark");
    let stop = async {
        until("the mark", || mark.exists()).await;
        bench.kernel.stop().await;
    };
    let endless = bench.kernel.execute("open('mark', 'w').close()\nwhile True: pass", LONG, &bench.settings);
    let (ran, ()) = tokio::join!(endless, stop);
    assert_eq!(ran.unwrap_err().code, "kernel-did-not-start");
}

#[tokio::test]
async fn a_missing_kernel_and_a_broken_one_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let kernels = directory.path().join("kernels/broken");
    std::fs::create_dir_all(&kernels).unwrap();
    let spec = r#"{"argv": ["sh", "-c", "echo 'no such thing' >&2; exit 3", "{connection_file}"]}"#;
    std::fs::write(kernels.join("kernel.json"), spec).unwrap();
    let variables = [("JUPYTER_PATH", directory.path().display().to_string()), ("PATH", "/usr/bin:/bin".to_owned())];
    let variables = variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let kernel =
        JupyterKernel::new(KernelLocation { directory: directory.path().to_path_buf(), variables, refused: None });
    for (name, code, part) in
        [("none", "no-kernel", "there is no kernel `none`"), ("broken", "kernel-did-not-start", "no such thing")]
    {
        let settings = KernelSettings { name: name.to_owned(), ..KernelSettings::default() };
        let error = kernel.execute("1", LONG, &settings).await.unwrap_err();
        assert_eq!(error.code, code);
        assert!(error.message.to_string().contains(part), "{error}");
    }
}

/// Not a test by itself: what `nothing_is_left_of_a_kernel_whose_process_is_killed` starts and kills.
#[tokio::test]
async fn holds_a_kernel_until_it_is_killed() {
    if std::env::var_os("BCC_TEST_HOLD_KERNEL").is_none() {
        return;
    }
    let Some(bench) = Bench::new() else { return };
    println!("kernel {}", bench.said("import os\nprint(os.getpid())").await.trim());
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
    assert!(lives(&id));
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("the end of the kernel", || !lives(&id)).await;
}

#[tokio::test]
async fn code_sees_the_directory_and_the_environment_that_it_is_given() {
    let Some(python) = kernel_python() else { return };
    let directory = tempfile::tempdir().unwrap();
    let kernel = JupyterKernel::new(place(&python, directory.path()));
    let code = "import os\nprint(os.getcwd())\nprint(sorted(n for n in os.environ if 'HOME' in n or 'CARGO' in n))";
    let ran = kernel.execute(code, LONG, &KernelSettings::default()).await.unwrap();
    let here = std::fs::canonicalize(directory.path()).unwrap();
    assert_eq!(text(&ran.outputs), format!("{}\n['HOME']\n", here.display()));
}
