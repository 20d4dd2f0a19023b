//! Reads `session.kernel`: the kernel that runs the code of a session (docs/kernel.md).

use std::time::Duration;

use crate::message::message::Message;
use crate::message::msg;
use crate::script::fields::Fields;
use crate::script::time::{ONE_DAY, time};
use crate::source::span::Span;
use crate::source::yaml::{NodeKind, YamlNode};

const MAX_NAME_BYTES: usize = 100;

const MAX_PATH_BYTES: usize = 1_000;

/// The upper limit of `start_timeout`.
const ONE_HOUR: Duration = Duration::from_secs(60 * 60);

/// The kernel settings of a session. Absent settings have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenKernel {
    pub name: Option<String>,
    /// `connection_file`: the connection file of a kernel that runs already.
    pub connection_file: Option<String>,
    /// `jupyter`: the address of the Jupyter server whose kernel is used.
    pub jupyter: Option<String>,
    /// `token_env`: the environment variable with the token of that server.
    pub token_env: Option<String>,
    /// `kernel_id`: a kernel that runs on that server already.
    pub kernel_id: Option<String>,
    /// `on_resume`: `fresh` or `rerun`.
    pub on_resume: Option<&'static str>,
    /// `exec`: `run` or `approve`.
    pub exec: Option<&'static str>,
    pub timeout: Option<Duration>,
    /// `start_timeout`: the time limit for starting the kernel.
    pub start_timeout: Option<Duration>,
    /// `idle_timeout`: how long an idle kernel keeps running.
    pub idle_timeout: Option<Duration>,
}

/// Reads `kernel`: a name, or a mapping.
pub fn kernel(fields: &Fields<'_>) -> Option<WrittenKernel> {
    let node = fields.take("kernel")?;
    if !matches!(node.kind, NodeKind::Mapping(_)) {
        return Some(WrittenKernel { name: name(fields, "kernel"), ..WrittenKernel::default() });
    }
    let inner = fields.inner(node, "`kernel`")?;
    let kernel = WrittenKernel {
        name: name(&inner, "name"),
        connection_file: connection_file(&inner),
        jupyter: server_address(&inner),
        token_env: variable(&inner),
        kernel_id: kernel_id(&inner),
        on_resume: inner.choice("on_resume", &["fresh", "rerun"]),
        exec: inner.choice("exec", &["run", "approve"]),
        timeout: time(&inner, "timeout", ONE_DAY),
        start_timeout: time(&inner, "start_timeout", ONE_HOUR),
        idle_timeout: time(&inner, "idle_timeout", ONE_DAY),
    };
    exclusive(&inner, node);
    inner.finish();
    Some(kernel)
}

/// Reports fields that do not fit together: they name several kernels, or belong to a server that is not named.
fn exclusive(fields: &Fields<'_>, node: &YamlNode) {
    let has = |key: &str| node.get(key).is_some();
    let report = |key: &'static str, message: Message, help: &'static str| {
        let Some(written) = node.get(key) else { return };
        fields.error("conflicting-fields", message, written.span, help);
    };
    if has("connection_file") {
        for key in ["name", "jupyter"].into_iter().filter(|key| has(key)) {
            let help = "a connection file is that of a kernel that runs already: keep one of the two fields";
            report(key, msg!("`connection_file` and `{key}` name different kernels"), help);
        }
    }
    if has("kernel_id") && has("name") {
        let help = "`kernel_id` is a kernel that runs already, and `name` starts a new one: keep one of them";
        report("name", msg!("`kernel_id` and `name` name different kernels"), help);
    }
    if !has("jupyter") {
        for key in ["token_env", "kernel_id"].into_iter().filter(|key| has(key)) {
            let help = "add `jupyter: URL` with the address of the server, or remove the field";
            report(key, msg!("`{key}` belongs to a Jupyter server, and there is none"), help);
        }
    }
}

/// The path of a connection file, which is text on one line.
fn connection_file(fields: &Fields<'_>) -> Option<String> {
    let written = fields.name("connection_file")?;
    let is_path =
        |path: &str| !path.trim().is_empty() && path.len() <= MAX_PATH_BYTES && !path.contains(char::is_control);
    if !is_path(&written.value) {
        let help = "write a path, or the name of a file in the runtime directory of Jupyter, as in `kernel-1234.json`";
        invalid(fields, written.span, "this cannot be the path of a connection file", help);
        return None;
    }
    Some(written.value)
}

/// The address of a Jupyter server, without a slash at its end. Findings do not repeat it, because it may contain a token.
fn server_address(fields: &Fields<'_>) -> Option<String> {
    let written = fields.name("jupyter")?;
    let address = written.value.trim().trim_end_matches('/');
    let rest = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
    let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', ':', '?', '#']));
    let has_more = address.contains(['?', '#', '@']) || address.chars().any(|c| c.is_whitespace() || c.is_control());
    if !has_host || has_more || address.len() > MAX_PATH_BYTES {
        let message = match address.contains(['?', '#', '@']) {
            true => "the address of a Jupyter server must contain no user, no token and no query",
            false => "this is not the address of a Jupyter server",
        };
        let help = "write an address as in `http://localhost:8888`, and the name of the variable with the token as `token_env`";
        invalid(fields, written.span, message, help);
        return None;
    }
    Some(address.to_owned())
}

/// The name of an environment variable.
fn variable(fields: &Fields<'_>) -> Option<String> {
    let written = fields.name("token_env")?;
    let name = written.value.as_str();
    let is_name = !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        let help = "put the token in an environment variable, and write the name of that variable here";
        invalid(fields, written.span, "this is not the name of an environment variable", help);
        return None;
    }
    Some(written.value)
}

/// The id of a kernel on a server, which becomes a part of addresses.
fn kernel_id(fields: &Fields<'_>) -> Option<String> {
    let written = fields.name("kernel_id")?;
    let id = written.value.as_str();
    let is_id = !id.is_empty()
        && id.len() <= MAX_NAME_BYTES
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !is_id {
        let help = "`GET /api/kernels` of the server lists the ids of its kernels";
        invalid(fields, written.span, "this cannot be the id of a kernel", help);
        return None;
    }
    Some(written.value)
}

fn invalid(fields: &Fields<'_>, span: Span, message: &'static str, help: &'static str) {
    fields.error("invalid-name", message, span, help);
}

/// The name of a kernel spec, never a path.
fn name(fields: &Fields<'_>, key: &'static str) -> Option<String> {
    let written = fields.name(key)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name = written.value.as_str();
    let is_name =
        !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.chars().all(allowed) && !name.starts_with('.');
    if !is_name {
        let message = "this cannot be the name of a kernel";
        let help = "write the name of an installed kernel, as in `python3`; `bcc-script doctor` lists them";
        invalid(fields, written.span, message, help);
        return None;
    }
    Some(written.value)
}
