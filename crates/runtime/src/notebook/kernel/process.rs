//! The process of a kernel. It starts in its own process group, receives its ports in a private connection file, and is killed
//! with all processes of its group.

use std::fs::OpenOptions;
use std::io::{Result, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;

use crate::effects::descendants::OwnChild;
use crate::notebook::kernel::directory::KernelDirectory;
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::message::random;
use crate::notebook::kernel::specs::KernelSpec;
use crate::notebook::kernel::zmq_channels::Addresses;

/// Without it, IPython adds all code to the history of the person, a file outside of the store, and syncs it for each cell.
const HISTORY_IN_MEMORY: &str = "--HistoryManager.hist_file=:memory:";

/// The maximum stored size of the standard error of the process, in bytes; the end is stored.
const MAX_STDERR_BYTES: usize = 8 * 1024;

/// A kernel process. Dropping it kills the process and its group.
pub(crate) struct Process {
    pub(crate) child: Child,
    _own: Option<OwnChild>,
    pub(crate) addresses: Addresses,
    /// The key for its messages.
    pub(crate) secret: String,
    group: Option<Pid>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_reader: Option<JoinHandle<()>>,
    _directory: KernelDirectory,
}

impl Process {
    pub(crate) fn start(spec: &KernelSpec, location: &KernelLocation) -> Result<Self> {
        let secret = random(32)?;
        let directory = KernelDirectory::new(&location.variables)?;
        let file = directory.path().join("connection.json");
        // The listeners are kept until the process has started, so that the system does not assign these ports to another
        // program before.
        let listeners = (0..5).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<Vec<_>>>()?;
        let mut ports = [0; 5];
        for (port, listener) in ports.iter_mut().zip(&listeners) {
            *port = listener.local_addr()?.port();
        }
        let [shell, iopub, control, stdin, heartbeat] = ports;
        let connection = json!({
            "transport": "tcp",
            "ip": "127.0.0.1",
            "shell_port": shell,
            "iopub_port": iopub,
            "control_port": control,
            "stdin_port": stdin,
            "hb_port": heartbeat,
            "key": secret,
            "signature_scheme": "hmac-sha256",
            "kernel_name": spec.name,
        });
        write_private(&file, connection.to_string().as_bytes())?;
        let mut command = command(spec, location, &file)?;
        let mut child = command.spawn()?;
        drop(listeners);
        let stderr = Arc::default();
        let stderr_reader = child.stderr.take().map(|pipe| tokio::spawn(read_stderr(pipe, Arc::clone(&stderr))));
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let own = OwnChild::new(group);
        Ok(Self {
            child,
            _own: own,
            addresses: Addresses { shell: local(shell), iopub: local(iopub), control: local(control) },
            secret,
            group,
            stderr,
            stderr_reader,
            _directory: directory,
        })
    }

    /// The last line of the standard error, for errors at the start.
    pub(crate) async fn last_stderr_line(&mut self) -> String {
        if let Some(reader) = self.stderr_reader.take() {
            // The process has ended, but its standard error may not be read completely; a child process may keep the pipe open.
            let _ = tokio::time::timeout(Duration::from_millis(300), reader).await;
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = String::from_utf8_lossy(&stderr);
        let last = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        last.chars().filter(|c| !c.is_control()).take(200).collect()
    }

    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Kills the process group and waits until the process has ended.
    pub(crate) async fn kill(&mut self) {
        self.signal(Signal::KILL);
        // No process survives this signal; a process that is blocked in the kernel of the system is not worth waiting for.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group exists as long as it has members, and its id is not reused meanwhile.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

fn command(spec: &KernelSpec, location: &KernelLocation, file: &Path) -> Result<Command> {
    let mut parts = spec.argv.iter().map(|part| part.replace("{connection_file}", &file.to_string_lossy()));
    let program = parts.next().unwrap_or_default();
    let mut command = Command::new(program);
    command.args(parts);
    if spec.argv.iter().any(|part| matches!(part.as_str(), "ipykernel" | "ipykernel_launcher")) {
        command.arg(HISTORY_IN_MEMORY);
    }
    command.env_clear().envs(&location.variables).envs(&spec.variables);
    // A kernel that knows its parent ends with it, even if the parent was killed.
    command.env("JPY_PARENT_PID", std::process::id().to_string());
    command.current_dir(std::path::absolute(&location.directory)?);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    Ok(command)
}

/// Reads the standard error, so that the process never blocks, and stores its end.
async fn read_stderr(mut stderr: ChildStderr, stored: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut piece).await {
        let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.extend(piece.get(..count).unwrap_or_default());
        let excess = stored.len().saturating_sub(MAX_STDERR_BYTES);
        stored.drain(..excess);
    }
}
