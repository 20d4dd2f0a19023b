//! Messages between a kernel and us (the Jupyter messaging protocol 5.3): made, signed, read within a bound, and their signatures
//! looked at.

use std::fmt::Write as _;
use std::io::{Error, Result};

use ring::hmac::{Context, HMAC_SHA256, Key};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use crate::notebook::kernel::zmtp::{Receiving, Sending};

/// So many bytes of a message are kept; of a longer one, only what it is and what it answers.
pub(crate) const MOST_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// So many frames of a message are looked at. Buffers of widgets come after them.
const MOST_FRAMES: usize = 16;

const DELIMITER: &[u8] = b"<IDS|MSG>";

/// What both sides sign with, and who we are.
#[derive(Clone)]
pub(crate) struct Identity {
    key: Key,
    /// The key as the kernel is told it.
    pub(crate) secret: String,
    /// The name of our side of the talk.
    pub(crate) session: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Received {
    /// `msg_type`.
    pub(crate) kind: String,
    /// `msg_id` of what it answers.
    pub(crate) parent: Option<String>,
    /// Its content; none when it was too long.
    pub(crate) content: Option<Value>,
    /// How long its content was.
    pub(crate) bytes: u64,
}

/// So many random bytes, as hexadecimal digits.
pub(crate) fn random(bytes: usize) -> Result<String> {
    let mut made = vec![0; bytes];
    SystemRandom::new().fill(&mut made).map_err(|_| Error::other("this machine cannot provide random numbers"))?;
    Ok(hexadecimal(&made))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Identity {
    pub(crate) fn new() -> Result<Self> {
        let secret = random(32)?;
        Ok(Self { key: Key::new(HMAC_SHA256, secret.as_bytes()), secret, session: random(16)? })
    }

    /// Sends a message, with an id of its own.
    pub(crate) async fn send(&self, to: &mut Sending, id: &str, kind: &str, content: &Value) -> Result<()> {
        let header = json!({
            "msg_id": id,
            "username": "bcc-script",
            "session": self.session,
            // The protocol wants one, and no kernel looks at it: the clock stays with the engine.
            "date": "1970-01-01T00:00:00Z",
            "msg_type": kind,
            "version": "5.3",
        });
        let (header, content) = (header.to_string(), content.to_string());
        let signed = [header.as_bytes(), b"{}", b"{}", content.as_bytes()];
        let mut context = Context::with_key(&self.key);
        signed.iter().for_each(|part| context.update(part));
        let signature = hexadecimal(context.sign().as_ref());
        let [header, parent, metadata, content] = signed;
        to.message(&[DELIMITER, signature.as_bytes(), header, parent, metadata, content]).await
    }

    /// The next message. Its signature is looked at also where its content is too long to be kept.
    pub(crate) async fn read(&self, from: &mut Receiving) -> Result<Received> {
        loop {
            let mut frames: Vec<Vec<u8>> = Vec::new();
            let mut context = Context::with_key(&self.key);
            let (mut kept, mut content_bytes) = (0, 0);
            loop {
                let frame = from.frame().await?;
                if frame.command {
                    // Heartbeats of the wire are asked for by the side that wants them, which we never are.
                    from.body(frame.length, |_| {}).await?;
                    continue;
                }
                // What follows the delimiter: the signature, and four frames that it signs.
                let after = frames.iter().position(|frame| frame == DELIMITER).map(|at| frames.len() - at);
                let is_signed = after.is_some_and(|after| (2..=5).contains(&after));
                if after == Some(5) {
                    content_bytes = frame.length;
                }
                let keep = frames.len() < MOST_FRAMES && frame.length <= (MOST_MESSAGE_BYTES - kept) as u64;
                let mut body = Vec::new();
                from.body(frame.length, |piece| {
                    if is_signed {
                        context.update(piece);
                    }
                    if keep {
                        body.extend(piece);
                    }
                })
                .await?;
                kept += body.len();
                if frames.len() < MOST_FRAMES {
                    frames.push(body);
                }
                if !frame.more {
                    break;
                }
            }
            if let Some(received) = read(&frames, &hexadecimal(context.sign().as_ref()), content_bytes) {
                return Ok(received);
            }
            tracing::debug!("a message of the kernel was not understood, or not signed with its key");
        }
    }
}

/// What the frames say, when they are a message with this signature.
fn read(frames: &[Vec<u8>], signature: &str, bytes: u64) -> Option<Received> {
    let at = frames.iter().position(|frame| frame == DELIMITER)?;
    let [given, header, parent, _, content, ..] = frames.get(at + 1..)? else { return None };
    // Whoever could measure how long this takes is on this machine, and reads the connection file.
    if given != signature.as_bytes() {
        return None;
    }
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let (header, parent) = (json_of(header)?, json_of(parent).unwrap_or_default());
    let content = if content.is_empty() { None } else { json_of(content) };
    Some(Received { kind: text(&header, "msg_type")?, parent: text(&parent, "msg_id"), content, bytes })
}

/// JSON, also where a text in it is no UTF-8.
fn json_of(bytes: &[u8]) -> Option<Value> {
    let read = serde_json::from_slice(bytes);
    read.or_else(|_| serde_json::from_str(&String::from_utf8_lossy(bytes))).ok()
}
