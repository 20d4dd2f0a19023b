//! The connection file of a kernel that runs already: where it is, and what it says.

use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde::Deserialize;

use crate::notebook::kernel::contract::KernelError;
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::message::hexadecimal;
use crate::notebook::kernel::specs::{open_regular, runtime_directory};
use crate::notebook::kernel::zmq_channels::Addresses;

/// The maximum size of a connection file, in bytes.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The only signatures that kernels use.
const SIGNATURES: &str = "hmac-sha256";

/// What a connection file says.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) addresses: Addresses,
    /// The key for signatures; empty if messages are not signed.
    pub(crate) key: String,
}

impl Connection {
    /// What stands for this kernel in a session: a digest, because it is stored and the key is a secret.
    pub(crate) fn place(&self) -> String {
        let Addresses { shell, iopub, control } = self.addresses;
        let text = format!("{shell} {iopub} {control} {}", self.key);
        format!("file-{}", hexadecimal(digest(&SHA256, text.as_bytes()).as_ref()))
    }
}

#[derive(Deserialize)]
struct ConnectionFile {
    #[serde(default)]
    transport: Option<String>,
    ip: String,
    shell_port: u16,
    iopub_port: u16,
    control_port: u16,
    #[serde(default)]
    key: String,
    #[serde(default)]
    signature_scheme: Option<String>,
}

/// The error about a connection file.
pub(crate) fn unusable(path: &Path, why: &Message, help: Message) -> KernelError {
    let path = path.display();
    let message = msg!("the kernel of the connection file {path} cannot be used: {why}");
    KernelError { code: "kernel-unreachable", message, help: Some(help) }
}

/// The path of a connection file: an absolute one, one in the project directory, or, for a bare name, one in the runtime directory
/// of Jupyter, where the file of a kernel is called `kernel-<id>.json`.
pub(crate) fn path_of(written: &str, location: &KernelLocation) -> PathBuf {
    let in_project = location.directory.join(written);
    if written.contains('/') || in_project.exists() {
        return in_project;
    }
    let Some(directory) = runtime_directory(&location.variables) else { return in_project };
    let names = [written.to_owned(), format!("kernel-{written}.json")];
    let found = names.iter().map(|name| directory.join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| directory.join(written))
}

/// Reads a connection file. No error repeats anything of it, because it contains a key.
pub(crate) fn read(path: &Path, variables: &BTreeMap<String, String>) -> Result<Connection, KernelError> {
    let text = read_text(path, variables)?;
    let invalid = |why: Message| {
        unusable(path, &why, Message::word("write the path of the connection file of a Jupyter kernel that runs"))
    };
    let file: ConnectionFile = serde_json::from_str(&text).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => {
            invalid(Message::word("it lacks `ip`, `shell_port`, `iopub_port` or `control_port`"))
        }
        _ => invalid(Message::word("it is not JSON")),
    })?;
    if file.transport.as_deref().is_some_and(|transport| transport != "tcp") {
        return Err(unusable(
            path,
            &Message::word("its `transport` is not `tcp`"),
            Message::word("start the kernel with `--transport=tcp`, which is the default of Jupyter"),
        ));
    }
    if !file.key.is_empty() && file.signature_scheme.as_deref().is_some_and(|scheme| scheme != SIGNATURES) {
        return Err(invalid(msg!("its `signature_scheme` is not `{SIGNATURES}`")));
    }
    let ip = address(&file.ip).ok_or_else(|| invalid(Message::word("its `ip` is not an IP address")))?;
    let at = |port| SocketAddr::new(ip, port);
    let addresses =
        Addresses { shell: at(file.shell_port), iopub: at(file.iopub_port), control: at(file.control_port) };
    Ok(Connection { addresses, key: file.key })
}

fn read_text(path: &Path, variables: &BTreeMap<String, String>) -> Result<String, KernelError> {
    let mut text = String::new();
    let read = open_regular(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text));
    let error = match read {
        Ok(bytes) if bytes as u64 <= MAX_FILE_BYTES => return Ok(text),
        Ok(_) => Message::word("it is too large for a connection file"),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Message::word("there is no such file"),
            ErrorKind::InvalidInput | ErrorKind::IsADirectory => Message::word("it is not a regular file"),
            ErrorKind::InvalidData => Message::word("it is not JSON"),
            _ => msg!("it cannot be read ({})", library(&error.to_string())),
        },
    };
    let help = match runtime_directory(variables) {
        Some(directory) => msg!(
            "Jupyter writes the connection files of running kernels to {}; a kernel that is stopped removes its file",
            directory.display()
        ),
        None => Message::word("write the path of the connection file of a Jupyter kernel that runs"),
    };
    Err(unusable(path, &error, help))
}

/// The address to connect to. A kernel that listens everywhere also listens here.
fn address(written: &str) -> Option<IpAddr> {
    let ip = match written {
        "localhost" | "*" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        written => written.parse().ok()?,
    };
    Some(match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLETE: &str = r#"{"transport": "tcp", "ip": "0.0.0.0", "shell_port": 1, "iopub_port": 2, "stdin_port": 3,
        "control_port": 4, "hb_port": 5, "key": "geheim", "signature_scheme": "hmac-sha256", "kernel_name": "x"}"#;

    #[test]
    fn a_connection_file_says_where_the_kernel_listens() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kernel.json");
        std::fs::write(&path, COMPLETE).unwrap();
        let connection = read(&path, &BTreeMap::new()).ok().unwrap();
        assert_eq!(
            (connection.addresses.control.to_string().as_str(), connection.key.as_str()),
            ("127.0.0.1:4", "geheim")
        );
    }

    #[test]
    fn an_unusable_file_is_reported_with_the_reason_and_without_its_key() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kernel.json");
        for (text, part) in [
            (COMPLETE.replace("tcp", "ipc"), "`transport` is not `tcp`"),
            (COMPLETE.replace("sha256", "md5"), "`signature_scheme` is not"),
            (COMPLETE.replace("0.0.0.0", "kernel.example"), "not an IP address"),
            (COMPLETE.replace("\"ip\"", "\"at\""), "it lacks `ip`"),
            (COMPLETE.replace("\"shell_port\": 1", "\"shell_port\": \"geheim\""), "it lacks"),
            (COMPLETE.replace('}', ""), "it is not JSON"),
            (" ".repeat(70_000), "too large"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = read(&path, &BTreeMap::new()).err().unwrap();
            let shown = error.message.to_string();
            assert!(shown.contains(part) && !shown.contains("geheim") && shown.contains("kernel.json"), "{shown}");
        }
        let error = read(directory.path(), &BTreeMap::new()).err().unwrap();
        assert!(error.message.to_string().contains("not a regular file"), "{error}");
        let error = read(&directory.path().join("none"), &BTreeMap::new()).err().unwrap();
        assert!(error.message.to_string().contains("there is no such file"), "{error}");
    }

    #[test]
    fn a_bare_name_is_searched_in_the_project_and_in_the_runtime_directory_of_jupyter() {
        let (project, runtime) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let variables =
            BTreeMap::from([("JUPYTER_RUNTIME_DIR".to_owned(), runtime.path().to_string_lossy().into_owned())]);
        let location =
            KernelLocation { directory: project.path().to_path_buf(), variables, ..KernelLocation::default() };
        std::fs::write(runtime.path().join("kernel-7.json"), "").unwrap();
        assert_eq!(path_of("7", &location), runtime.path().join("kernel-7.json"));
        assert_eq!(path_of("kernel-7.json", &location), runtime.path().join("kernel-7.json"));
        assert_eq!(path_of("kernels/a.json", &location), project.path().join("kernels/a.json"));
        assert_eq!(path_of("/tmp/a.json", &location), Path::new("/tmp/a.json"));
        std::fs::write(project.path().join("kernel-7.json"), "").unwrap();
        assert_eq!(path_of("kernel-7.json", &location), project.path().join("kernel-7.json"));
    }
}
