//! Kernels and a Jupyter server that run already, for tests. They end with the test, also when it panics.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::test_kernel::kernel_variables;

/// The maximum time until one of them is there. Only a broken one comes near it.
const LIMIT: Duration = Duration::from_secs(120);

/// A process that is killed at the end.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until `find` returns something.
pub fn eventually<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(start.elapsed() < LIMIT, "{what} does not come to be");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn python_command(python: &Path, home: &Path) -> Command {
    let mut command = Command::new(python);
    command.env_clear().envs(kernel_variables(python)).env("HOME", home).env("TZ", "UTC");
    command.env("JUPYTER_RUNTIME_DIR", home.join("runtime")).env("JUPYTER_DATA_DIR", home.join("data"));
    command.env("JUPYTER_CONFIG_DIR", home.join("jupyter_config")).env("IPYTHONDIR", home.join("ipython"));
    command.current_dir(home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A kernel of Python with a connection file.
pub struct LiveKernel {
    pub process: Killed,
    pub file: PathBuf,
    python: PathBuf,
    home: PathBuf,
}

impl LiveKernel {
    /// Starts one whose connection file is `file`, and waits until it answers.
    pub fn start(python: &Path, home: &Path, file: &str) -> Self {
        let file = home.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&file);
        let mut command = python_command(python, home);
        command.args(["-m", "ipykernel_launcher", "-f"]).arg(&file);
        let process = Killed(command.spawn().unwrap());
        let kernel = Self { process, file, python: python.to_path_buf(), home: home.to_path_buf() };
        eventually("the connection file", || {
            let text = std::fs::read_to_string(&kernel.file).ok()?;
            serde_json::from_str::<Value>(&text).ok()
        });
        kernel.run("pass");
        kernel
    }

    /// Runs code as another client of the kernel, and waits until it has ended.
    pub fn run(&self, code: &str) {
        let status = self.request(code, "sent").wait().unwrap();
        assert!(status.success(), "{code}");
    }

    /// Runs code as another client of the kernel. When the request is sent, the file `sent` exists. The process succeeds if the code
    /// does.
    pub fn request(&self, code: &str, sent: &str) -> Child {
        let client = "
import sys
from jupyter_client import BlockingKernelClient
client = BlockingKernelClient(connection_file=sys.argv[1])
client.load_connection_file()
client.start_channels()
request = client.execute(sys.argv[2])
# The kernel replies there while code runs: by then it has the request as well.
client.session.send(client.control_channel.socket, 'kernel_info_request')
client.get_control_msg(timeout=100)
open(sys.argv[3], 'w').close()
while True:
    reply = client.get_shell_msg(timeout=100)
    if reply['parent_header'].get('msg_id') == request:
        sys.exit(reply['content']['status'] != 'ok')
";
        let mut command = python_command(&self.python, &self.home);
        command.args(["-c", client]).arg(&self.file).args([code, sent]).spawn().unwrap()
    }

    pub fn is_running(&mut self) -> bool {
        self.process.0.try_wait().unwrap().is_none()
    }
}

/// A Jupyter server.
pub struct LiveServer {
    _process: Killed,
    pub port: u16,
}

/// The token of [`LiveServer`].
pub const TOKEN: &str = "geheim0123456789geheim";

impl LiveServer {
    /// Starts a server in `home` with more arguments, and waits until it answers.
    pub fn start(python: &Path, home: &Path, arguments: &[&str]) -> Self {
        let mut command = python_command(python, home);
        command.args(["-m", "jupyter", "server", "--ServerApp.ip=127.0.0.1", "--port=0", "--no-browser"]);
        command.args(["--ServerApp.port_retries=0", "--allow-root"]).args(arguments);
        command.env("JUPYTER_TOKEN", TOKEN);
        let process = Killed(command.spawn().unwrap());
        let runtime = home.join("runtime");
        let port = eventually("the file of the server", || {
            let entries = std::fs::read_dir(&runtime).ok()?.flatten().map(|entry| entry.path());
            let is_info = |path: &PathBuf| {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                name.starts_with("jpserver-") && name.ends_with(".json")
            };
            let info: Value =
                serde_json::from_str(&std::fs::read_to_string(entries.into_iter().find(is_info)?).ok()?).ok()?;
            u16::try_from(info["port"].as_u64()?).ok()
        });
        let server = Self { _process: process, port };
        eventually("an answer of the server", || server.try_request("GET", "/api", "").map(drop));
        server
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The kernels that run there.
    pub fn kernels(&self) -> Vec<Value> {
        self.try_kernels().expect("the list of kernels")
    }

    /// The kernels that run there; `None` if the server cannot list them now, because one of them just starts or ends.
    pub fn try_kernels(&self) -> Option<Vec<Value>> {
        self.try_request("GET", "/api/kernels", "")?.as_array().cloned()
    }

    /// Starts a kernel there, as somebody else. Returns its id.
    pub fn start_kernel(&self) -> String {
        let model = self.try_request("POST", "/api/kernels", r#"{"name": "python3"}"#).expect("a kernel");
        model["id"].as_str().unwrap().to_owned()
    }

    pub fn restart_kernel(&self, id: &str) {
        self.try_request("POST", &format!("/api/kernels/{id}/restart"), "{}").expect("a restart");
    }

    /// Connects another client to a kernel there.
    pub fn watch_kernel(&self, python: &Path, home: &Path, id: &str) -> Killed {
        let client = "
import asyncio, sys
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect
async def main():
    headers = {'Authorization': 'token ' + sys.argv[2]}
    socket = await websocket_connect(HTTPRequest(sys.argv[1], headers=headers))
    while await socket.read_message() is not None:
        pass
asyncio.run(main())
";
        let connections = || self.kernels().iter().find(|kernel| kernel["id"] == id)?["connections"].as_u64();
        let before = connections();
        let address = format!("ws://127.0.0.1:{}/api/kernels/{id}/channels?session_id=other", self.port);
        let watching = Killed(python_command(python, home).args(["-c", client, &address, TOKEN]).spawn().unwrap());
        eventually("the other client", || (connections() > before).then_some(()));
        watching
    }

    fn try_request(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nAuthorization: token {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}",
            self.port
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let is_success = head.split(' ').nth(1).is_some_and(|status| status.starts_with('2'));
        is_success.then(|| serde_json::from_str(body).unwrap_or_default())
    }
}
