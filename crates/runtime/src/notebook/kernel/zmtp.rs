//! The wire protocol of ZeroMQ (ZMTP 3.0, mechanism NULL), as far as a kernel client needs it: connects to a port,
//! performs the handshake as DEALER or SUB, and sends and receives frames.
//!
//! Frames are read in pieces, so that the caller decides how much of a frame is stored: a kernel may send a gigabyte as one frame.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

const MORE: u8 = 0b001;
const LONG: u8 = 0b010;
const COMMAND: u8 = 0b100;

/// The maximum size of a command that is read, in bytes; those of a handshake are below 100 bytes.
const MAX_COMMAND_BYTES: u64 = 4096;

/// The number of bytes that are read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The role of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZmtpRole {
    /// Sends requests and receives replies: for the shell and control channels.
    Dealer,
    /// Receives broadcast messages: for the iopub channel.
    Subscriber,
}

impl ZmtpRole {
    const fn name(self) -> &'static [u8] {
        match self {
            Self::Dealer => b"DEALER",
            Self::Subscriber => b"SUB",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Sending(OwnedWriteHalf);

#[derive(Debug)]
pub(crate) struct Receiving {
    reads: BufReader<OwnedReadHalf>,
    received_bytes: Arc<AtomicU64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZmtpFrame {
    /// Whether another frame of the same message follows.
    pub(crate) more: bool,
    /// Whether it is a command of the wire protocol and not part of a message.
    pub(crate) command: bool,
    /// The number of bytes that follow.
    pub(crate) length: u64,
}

pub(crate) async fn connect(address: SocketAddr, role: ZmtpRole) -> Result<(Sending, Receiving)> {
    let stream = TcpStream::connect(address).await?;
    // If the port is closed, the system may choose the same port for this side and connect the socket to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    let (reads, writes) = stream.into_split();
    let (mut sending, mut receiving) = (Sending(writes), Receiving::new(reads));
    sending.0.write_all(&greeting()).await?;
    receiving.greeting().await?;
    sending.0.write_all(&ready(role)).await?;
    receiving.ready().await?;
    if role == ZmtpRole::Subscriber {
        // A subscription is a byte 1 and a topic; the empty topic matches all messages.
        sending.message(&[&[1]]).await?;
    }
    Ok((sending, receiving))
}

fn greeting() -> [u8; 64] {
    let mut greeting = [0; 64];
    let known = [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, b'N', b'U', b'L', b'L'];
    greeting.iter_mut().zip(known).for_each(|(byte, known)| *byte = known);
    greeting
}

fn ready(role: ZmtpRole) -> Vec<u8> {
    let mut body = b"\x05READY".to_vec();
    for (name, value) in [(b"Socket-Type".as_slice(), role.name()), (b"Identity", b"")] {
        body.push(name.len() as u8);
        body.extend(name);
        body.extend((value.len() as u32).to_be_bytes());
        body.extend(value);
    }
    let mut frame = vec![COMMAND, body.len() as u8];
    frame.append(&mut body);
    frame
}

impl Sending {
    pub(crate) async fn message(&mut self, frames: &[&[u8]]) -> Result<()> {
        let mut bytes = Vec::with_capacity(frames.iter().map(|frame| frame.len() + 9).sum());
        for (number, frame) in frames.iter().enumerate() {
            let more = if number + 1 < frames.len() { MORE } else { 0 };
            match u8::try_from(frame.len()) {
                Ok(short) => bytes.extend([more, short]),
                Err(_) => {
                    bytes.push(more | LONG);
                    bytes.extend((frame.len() as u64).to_be_bytes());
                }
            }
            bytes.extend(*frame);
        }
        self.0.write_all(&bytes).await
    }
}

impl Receiving {
    fn new(reads: OwnedReadHalf) -> Self {
        Self { reads: BufReader::with_capacity(PIECE_BYTES, reads), received_bytes: Arc::default() }
    }

    /// The counter of received bytes, which is also updated within a frame.
    pub(crate) fn received_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.received_bytes)
    }

    async fn greeting(&mut self) -> Result<()> {
        let mut greeting = [0; 64];
        self.reads.read_exact(&mut greeting).await?;
        match greeting {
            [0xff, _, _, _, _, _, _, _, _, 0x7f, 3..=9, _, b'N', b'U', b'L', b'L', 0, ..] => Ok(()),
            _ => Err(Error::new(ErrorKind::InvalidData, "the peer does not support ZMTP 3 without encryption")),
        }
    }

    async fn ready(&mut self) -> Result<()> {
        let frame = self.frame().await?;
        let mut body = Vec::new();
        self.body(frame.length, |piece| {
            if body.len() < MAX_COMMAND_BYTES as usize {
                body.extend(piece);
            }
        })
        .await?;
        if frame.command && body.starts_with(b"\x05READY") {
            return Ok(());
        }
        Err(Error::new(ErrorKind::InvalidData, "the peer refused the connection"))
    }

    /// Reads the head of the next frame. Its body must be read before the next head.
    pub(crate) async fn frame(&mut self) -> Result<ZmtpFrame> {
        let flags = self.reads.read_u8().await?;
        let length =
            if flags & LONG != 0 { self.reads.read_u64().await? } else { u64::from(self.reads.read_u8().await?) };
        Ok(ZmtpFrame { more: flags & MORE != 0, command: flags & COMMAND != 0, length })
    }

    /// Reads the body of a frame in pieces.
    pub(crate) async fn body(&mut self, length: u64, mut take: impl FnMut(&[u8])) -> Result<()> {
        let mut remaining = length;
        let mut buffer = vec![0; PIECE_BYTES.min(usize::try_from(remaining).unwrap_or(PIECE_BYTES))];
        while remaining > 0 {
            let limit = buffer.len().min(usize::try_from(remaining).unwrap_or(usize::MAX));
            let piece = buffer.get_mut(..limit).unwrap_or_default();
            let count = self.reads.read(piece).await?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.received_bytes.fetch_add(count as u64, Ordering::Relaxed);
            take(piece.get(..count).unwrap_or_default());
            remaining -= count as u64;
        }
        Ok(())
    }
}
