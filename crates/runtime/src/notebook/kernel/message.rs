//! Messages of the Jupyter messaging protocol 5.3: sends and signs them, and reads them up to a size limit with a check of
//! their signatures.

use std::fmt::Write as _;
use std::io::{Error, Result};

use ring::hmac::{Context, HMAC_SHA256, Key};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use crate::notebook::kernel::zmtp::{Receiving, Sending};

/// The maximum number of frames of a message that are read. Buffers of widgets come after them.
const MAX_FRAMES: usize = 16;

const DELIMITER: &[u8] = b"<IDS|MSG>";

/// The signing key and the identity of this client.
#[derive(Clone)]
pub(crate) struct Identity {
    /// None if the kernel has no key: its messages are not signed.
    key: Option<Key>,
    /// The session id of this client.
    pub(crate) session: String,
    /// The maximum stored size of a message, in bytes. Of a longer one, only its type and its parent are stored.
    max_message_bytes: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Received {
    /// `msg_type`.
    pub(crate) kind: String,
    /// The `msg_id` of its parent.
    pub(crate) parent: Option<String>,
    /// The session of its sender: a kernel that starts again has another one.
    pub(crate) session: Option<String>,
    /// Its content; `None` if it was too long.
    pub(crate) content: Option<Value>,
    /// The size of its content in bytes.
    pub(crate) bytes: u64,
}

impl Received {
    /// Whether it was made on this side, and says nothing about the kernel.
    pub(crate) fn is_note(&self) -> bool {
        self.session.is_none() && matches!(self.kind.as_str(), "stream" | "display_data")
    }

    /// The session of the kernel that sent it, if it is neither missing nor that of the client.
    pub(crate) fn own_session(&self, client: &str) -> Option<String> {
        self.session.clone().filter(|session| !session.is_empty() && session != client)
    }
}

/// This many random bytes, as hexadecimal digits.
pub(crate) fn random(bytes: usize) -> Result<String> {
    let mut buffer = vec![0; bytes];
    SystemRandom::new().fill(&mut buffer).map_err(|_| Error::other("this machine cannot provide random numbers"))?;
    Ok(hexadecimal(&buffer))
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The header of a message of this client.
pub(crate) fn header(session: &str, id: &str, kind: &str) -> Value {
    json!({
        "msg_id": id,
        "username": "bcc-script",
        "session": session,
        // The protocol requires a date, but kernels do not use it; only the engine reads the clock.
        "date": "1970-01-01T00:00:00Z",
        "msg_type": kind,
        "version": "5.3",
    })
}

impl Identity {
    /// With the key of a kernel, which is empty if its messages are not signed.
    pub(crate) fn new(secret: &str, max_message_bytes: usize) -> Result<Self> {
        let key = (!secret.is_empty()).then(|| Key::new(HMAC_SHA256, secret.as_bytes()));
        Ok(Self { key, session: random(16)?, max_message_bytes })
    }

    /// The signature of these parts; empty without a key.
    fn signature(context: Option<Context>) -> String {
        context.map(|context| hexadecimal(context.sign().as_ref())).unwrap_or_default()
    }

    /// Sends a message with its own id.
    pub(crate) async fn send(&self, to: &mut Sending, id: &str, kind: &str, content: &Value) -> Result<()> {
        let (header, content) = (header(&self.session, id, kind).to_string(), content.to_string());
        let signed = [header.as_bytes(), b"{}", b"{}", content.as_bytes()];
        let mut context = self.key.as_ref().map(Context::with_key);
        signed.iter().for_each(|part| context.iter_mut().for_each(|context| context.update(part)));
        let signature = Self::signature(context);
        let [header, parent, metadata, content] = signed;
        to.message(&[DELIMITER, signature.as_bytes(), header, parent, metadata, content]).await
    }

    /// The next message. Its signature is also checked if its content is too long to be stored.
    pub(crate) async fn read(&self, from: &mut Receiving) -> Result<Received> {
        loop {
            let mut frames: Vec<Vec<u8>> = Vec::new();
            let mut context = self.key.as_ref().map(Context::with_key);
            let (mut stored_bytes, mut content_bytes) = (0, 0);
            loop {
                let frame = from.frame().await?;
                if frame.command {
                    // ZMTP heartbeats are requested by the side that wants them, which is never this client.
                    from.body(frame.length, |_| {}).await?;
                    continue;
                }
                // The delimiter is followed by the signature and the four frames that it covers.
                let after = frames.iter().position(|frame| frame == DELIMITER).map(|at| frames.len() - at);
                let is_signed = after.is_some_and(|after| (2..=5).contains(&after));
                if after == Some(5) {
                    content_bytes = frame.length;
                }
                let is_stored =
                    frames.len() < MAX_FRAMES && frame.length <= (self.max_message_bytes - stored_bytes) as u64;
                let mut body = Vec::new();
                from.body(frame.length, |piece| {
                    if let (true, Some(context)) = (is_signed, &mut context) {
                        context.update(piece);
                    }
                    if is_stored {
                        body.extend(piece);
                    }
                })
                .await?;
                stored_bytes += body.len();
                if frames.len() < MAX_FRAMES {
                    frames.push(body);
                }
                if !frame.more {
                    break;
                }
            }
            if let Some(received) = read(&frames, &Self::signature(context), content_bytes) {
                return Ok(received);
            }
            tracing::debug!("a message of the kernel was not understood, or not signed with its key");
        }
    }
}

/// Parses the frames if they are a message with this signature.
fn read(frames: &[Vec<u8>], signature: &str, bytes: u64) -> Option<Received> {
    let at = frames.iter().position(|frame| frame == DELIMITER)?;
    let [given, header, parent, _, content, ..] = frames.get(at + 1..)? else { return None };
    // A constant-time comparison is not needed: an attacker who can measure its time is on this machine and can read the
    // connection file.
    if given != signature.as_bytes() {
        return None;
    }
    message_of(header, parent, content, bytes)
}

/// The message with these parts. Content that is empty was too long.
pub(crate) fn message_of(header: &[u8], parent: &[u8], content: &[u8], bytes: u64) -> Option<Received> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let (header, parent) = (parse_json(header)?, parse_json(parent).unwrap_or_default());
    let content = if content.is_empty() { None } else { parse_json(content) };
    let (parent, session) = (text(&parent, "msg_id"), text(&header, "session"));
    Some(Received { kind: text(&header, "msg_type")?, parent, session, content, bytes })
}

/// Parses JSON; invalid UTF-8 in it is accepted.
fn parse_json(bytes: &[u8]) -> Option<Value> {
    let read = serde_json::from_slice(bytes);
    read.or_else(|_| serde_json::from_str(&String::from_utf8_lossy(bytes))).ok()
}
