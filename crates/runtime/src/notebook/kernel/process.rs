//! The process of a kernel: started in a process group of its own, told by a file that nobody else reads where to listen, and
//! ended with all that it started.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{Result, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;

use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::message::{Identity, random};
use crate::notebook::kernel::specs::KernelSpec;

/// So much of what the process itself says is kept: the end.
const MOST_SAID_BYTES: usize = 8 * 1024;

/// A directory of our own, gone with it.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("bcc-script-{}", random(8)?));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    /// Where code is sent.
    pub(crate) shell: u16,
    /// Where everything is told.
    pub(crate) iopub: u16,
    /// Where interrupts are sent.
    pub(crate) control: u16,
}

/// A process that is to be a kernel. When this is dropped, it is killed with its whole group.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) ports: Ports,
    group: Option<Pid>,
    said: Arc<Mutex<Vec<u8>>>,
    listening: Option<JoinHandle<()>>,
    _folder: Folder,
}

impl Process {
    pub(crate) fn start(spec: &KernelSpec, place: &KernelLocation, identity: &Identity) -> Result<Self> {
        let folder = Folder::new()?;
        let file = folder.0.join("connection.json");
        // Held until the process is there: so long, the system gives these ports to nobody else.
        let held = (0..5).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<Vec<_>>>()?;
        let mut ports = [0; 5];
        for (port, listener) in ports.iter_mut().zip(&held) {
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
            "key": identity.secret,
            "signature_scheme": "hmac-sha256",
            "kernel_name": spec.name,
        });
        write_private(&file, connection.to_string().as_bytes())?;
        let mut command = command(spec, place, &file)?;
        let mut child = command.spawn()?;
        drop(held);
        let said = Arc::default();
        let listening = child.stderr.take().map(|stderr| tokio::spawn(listen(stderr, Arc::clone(&said))));
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Self { child, ports: Ports { shell, iopub, control }, group, said, listening, _folder: folder })
    }

    /// The last line that the process itself said, for whoever cannot start it.
    pub(crate) async fn last_words(&mut self) -> String {
        if let Some(listening) = self.listening.take() {
            // It is over, but what it said may not be read yet; what it started may keep the pipe open.
            let _ = tokio::time::timeout(Duration::from_millis(300), listening).await;
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        last.chars().filter(|c| !c.is_control()).take(200).collect()
    }

    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Kills it with its group, and waits until it is gone.
    pub(crate) async fn kill(&mut self) {
        self.signal(Signal::KILL);
        // Nothing survives this signal; a process that the system itself holds is not worth waiting for.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group outlives its first process as long as another one is in it, and its number is given to nobody else
            // meanwhile.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

fn command(spec: &KernelSpec, place: &KernelLocation, file: &Path) -> Result<Command> {
    let mut parts = spec.argv.iter().map(|part| part.replace("{connection_file}", &file.to_string_lossy()));
    let program = parts.next().unwrap_or_default();
    let mut command = Command::new(program);
    command.args(parts).env_clear().envs(&place.variables).envs(&spec.variables);
    // A kernel that knows its parent ends when that is gone, also when it was killed and could say nothing.
    command.env("JPY_PARENT_PID", std::process::id().to_string());
    command.current_dir(std::path::absolute(&place.directory)?);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    Ok(command)
}

/// Reads what the process says by itself, so that it never waits for us, and keeps the end.
async fn listen(mut stderr: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut piece).await {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(piece.get(..count).unwrap_or_default());
        let over = said.len().saturating_sub(MOST_SAID_BYTES);
        said.drain(..over);
    }
}
