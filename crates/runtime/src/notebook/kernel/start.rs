//! Starts the kernel of a session: a process with its own connection file.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::{Error, ErrorKind};

use tokio::time::timeout;

use crate::notebook::kernel::channels::{KernelChannels, KernelDescription};
use crate::notebook::kernel::contract::{KernelError, KernelSettings};
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::message::Identity;
use crate::notebook::kernel::process::Process;
use crate::notebook::kernel::running::{KernelHost, Running};
use crate::notebook::kernel::specs::{KernelSpec, installed, missing};
use crate::notebook::kernel::variables::KnownVariables;
use crate::notebook::kernel::zmq_channels::{Addresses, PortState, open};

/// The maximum number of starts if another program took one of its ports.
const MAX_STARTS: u32 = 3;

/// Starts a kernel and waits until it replies.
/// Errors: The kernel does not exist, or does not start in time.
pub(crate) async fn start(
    location: &KernelLocation,
    settings: &KernelSettings,
    spec: &KernelSpec,
) -> Result<Running, KernelError> {
    let mut starts = 0;
    loop {
        starts += 1;
        let mut process = Process::start(spec, location).map_err(|error| start_error(spec, location, &error))?;
        let identity = Identity::new(&process.secret, location.limits.max_message_bytes())
            .map_err(|error| cannot_start(spec, &error.to_string()))?;
        let addresses = process.addresses;
        let channels = timeout(settings.start_timeout, async {
            tokio::select! {
                biased;
                ended = process.child.wait() => {
                    Err((ended.map_or_else(|error| error.to_string(), |status| status.to_string()), false))
                }
                channels = connect(addresses, &identity) => channels.map_err(|error| (error.to_string(), true)),
            }
        });
        match channels.await {
            Ok(Ok((channels, info))) => {
                let host =
                    KernelHost::Own { process: Box::new(process), interrupt_by_message: spec.interrupt_by_message };
                return Ok(Running {
                    channels,
                    info,
                    place: String::new(),
                    host,
                    limits: location.limits,
                    variables: KnownVariables::default(),
                });
            }
            Ok(Err((reason, is_running))) => {
                let stderr = process.last_stderr_line().await;
                process.kill().await;
                if stderr.contains("No module named") && stderr.contains("ipykernel") {
                    return Err(missing(&spec.name, &installed(&location.variables)));
                }
                // Or the program that took it closes the connection before the kernel finds out.
                if starts < MAX_STARTS && (is_running || stderr.contains("ddress already in use")) {
                    continue;
                }
                let stderr = if stderr.is_empty() { reason } else { format!("{reason}; {stderr}") };
                return Err(cannot_start(spec, &stderr));
            }
            Err(_) => {
                process.kill().await;
                let reason = format!("it did not answer within {:?}", settings.start_timeout);
                return Err(cannot_start(spec, &reason));
            }
        }
    }
}

async fn connect(addresses: Addresses, identity: &Identity) -> std::io::Result<(KernelChannels, KernelDescription)> {
    let mut channels = open(addresses, identity, PortState::Opening).await?;
    let info = channels.wait_until_ready().await?;
    Ok((channels, info))
}

fn cannot_start(spec: &KernelSpec, why: &str) -> KernelError {
    KernelError {
        code: "kernel-did-not-start",
        message: msg!("the kernel `{}` did not start: {why}", spec.name),
        help: Some(Message::word(
            "`bcc-script doctor` lists the installed kernels; `python3 -m pip install ipykernel` installs one for the first `python3` that is found",
        )),
    }
}

/// The error if not even its program can be started.
fn start_error(spec: &KernelSpec, location: &KernelLocation, error: &Error) -> KernelError {
    if error.kind() == ErrorKind::NotFound && location.directory.is_dir() {
        return missing(&spec.name, &installed(&location.variables));
    }
    cannot_start(spec, &error.to_string())
}
