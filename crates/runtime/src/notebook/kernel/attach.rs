//! Connects to a kernel that runs already. It is never started, restarted or ended here.

use bcc_lang::message::library::library;
use bcc_lang::message::message::Message;
use bcc_lang::message::msg;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use crate::notebook::kernel::channels::{KernelChannels, KernelDescription, RequestChannel};
use crate::notebook::kernel::connection_file::{path_of, read, unusable};
use crate::notebook::kernel::contract::{KernelError, KernelSettings};
use crate::notebook::kernel::location::KernelLocation;
use crate::notebook::kernel::message::Identity;
use crate::notebook::kernel::running::{KernelHost, Running};
use crate::notebook::kernel::variables::KnownVariables;
use crate::notebook::kernel::zmq_channels::{PortState, open};

/// The maximum time until a kernel accepts a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to the kernel of a connection file, and waits until it replies.
/// Errors: The file cannot be used, nobody listens there, or the kernel does not answer in time.
pub(crate) async fn attach_file(
    written: &str,
    location: &KernelLocation,
    settings: &KernelSettings,
) -> Result<Running, KernelError> {
    let path = path_of(written, location);
    let (mut channels, place) = connect(&path, location).await?;
    let limit = settings.start_timeout;
    match timeout(limit, ready(&mut channels)).await {
        Ok(Ok(info)) => Ok(Running {
            channels,
            info,
            place,
            host: KernelHost::Foreign,
            limits: location.limits,
            variables: KnownVariables::default(),
        }),
        Ok(Err(error)) => Err(not_reached(&path, &error)),
        Err(_) if channels.has_replied_on_control() => Err(busy(limit)),
        Err(_) => Err(silent(&path, limit)),
    }
}

/// Waits until a kernel replies to code requests.
pub(crate) async fn ready(channels: &mut KernelChannels) -> std::io::Result<KernelDescription> {
    // A kernel whose code runs replies there at once.
    channels.ask_info(RequestChannel::Control).await?;
    channels.wait_until_ready().await
}

/// Whether the kernel of a connection file answers. It may be busy.
/// Errors: As [`attach_file`].
pub(crate) async fn check_file(
    written: &str,
    location: &KernelLocation,
    settings: &KernelSettings,
) -> Result<(), KernelError> {
    let path = path_of(written, location);
    let (mut channels, _) = connect(&path, location).await?;
    let limit = settings.start_timeout;
    match timeout(limit, channels.wait_until_it_replies()).await {
        Ok(replied) => replied.map_err(|error| not_reached(&path, &error)),
        Err(_) => Err(silent(&path, limit)),
    }
}

/// The channels of the kernel of a connection file, and what stands for this kernel.
async fn connect(path: &Path, location: &KernelLocation) -> Result<(KernelChannels, String), KernelError> {
    let connection = read(path, &location.variables)?;
    let identity = Identity::new(&connection.key, location.limits.max_message_bytes())
        .map_err(|error| not_reached(path, &error))?;
    match timeout(CONNECT_TIMEOUT, open(connection.addresses, &identity, PortState::Open)).await {
        Ok(Ok(channels)) => Ok((channels, connection.place())),
        Ok(Err(error)) => Err(not_reached(path, &error)),
        Err(_) => Err(not_reached(path, &ErrorKind::TimedOut.into())),
    }
}

fn silent(path: &Path, limit: Duration) -> KernelError {
    unusable(
        path,
        &msg!("it did not answer within {}", humantime::format_duration(limit)),
        Message::word(
            "the key in the file may be that of another kernel, or the kernel hangs: start it again, or use another one",
        ),
    )
}

/// The error of a kernel that runs code of somebody else.
pub(crate) fn busy(waited: Duration) -> KernelError {
    KernelError {
        code: "kernel-busy",
        message: msg!(
            "the kernel runs code of another program, and was not free within {}",
            humantime::format_duration(waited)
        ),
        help: Some(Message::word(
            "resume the session when that code has ended; `start_timeout` of `session.kernel` sets how long to wait",
        )),
    }
}

fn not_reached(path: &Path, error: &std::io::Error) -> KernelError {
    let why = match error.kind() {
        ErrorKind::ConnectionRefused => Message::word("nothing listens at its address"),
        ErrorKind::TimedOut => Message::word("its address does not answer"),
        _ => msg!("the connection failed ({})", library(&error.to_string())),
    };
    unusable(path, &why, Message::word("start the kernel again, or write the connection file of one that runs"))
}
