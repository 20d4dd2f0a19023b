//! The two forms of messages on the websocket of a Jupyter server: `v1.kernel.websocket.jupyter.org`, in which their parts are binary,
//! and the older one, in which a message is JSON.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message as SocketMessage;

use crate::notebook::kernel::message::{Received, message_of};

/// The name of the first form, as a subprotocol.
pub(crate) const V1: &str = "v1.kernel.websocket.jupyter.org";

/// The maximum number of parts of a message that are read. Buffers of widgets come after them.
const MAX_PARTS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketForm {
    V1,
    Json,
}

/// A channel by its name on the websocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketChannel {
    Shell,
    Control,
    Iopub,
    Other,
}

impl SocketChannel {
    fn of(name: &[u8]) -> Self {
        match name {
            b"shell" => Self::Shell,
            b"control" => Self::Control,
            b"iopub" => Self::Iopub,
            _ => Self::Other,
        }
    }
}

impl SocketForm {
    /// A message for the server.
    pub(crate) fn written(self, channel: &str, header: &Value, content: &Value) -> SocketMessage {
        if self == Self::Json {
            let message = json!({
                "channel": channel,
                "header": header,
                "parent_header": {},
                "metadata": {},
                "content": content,
                "buffers": [],
            });
            return SocketMessage::text(message.to_string());
        }
        let (header, content) = (header.to_string(), content.to_string());
        let parts = [channel.as_bytes(), header.as_bytes(), b"{}", b"{}", content.as_bytes()];
        let count = parts.len() as u64 + 1;
        let mut at = 8 * (count + 1);
        let mut bytes = count.to_le_bytes().to_vec();
        bytes.extend(at.to_le_bytes());
        for part in parts {
            at += part.len() as u64;
            bytes.extend(at.to_le_bytes());
        }
        parts.iter().for_each(|part| bytes.extend(*part));
        SocketMessage::binary(bytes)
    }

    /// A message of the server; `None` if it cannot be read. Content of more than `max_bytes` is dropped.
    pub(crate) fn read(self, message: &SocketMessage, max_bytes: usize) -> Option<(SocketChannel, Received)> {
        match (self, message) {
            (Self::V1, SocketMessage::Binary(bytes)) => read_parts(bytes, max_bytes),
            (Self::Json, SocketMessage::Text(text)) => read_json(text.as_bytes(), max_bytes),
            // With buffers: their number, where each begins, and then all of them, of which the first is the message.
            (Self::Json, SocketMessage::Binary(bytes)) => {
                let number = |at: usize| {
                    let four = bytes.get(at..at + 4)?.first_chunk::<4>()?;
                    usize::try_from(u32::from_be_bytes(*four)).ok()
                };
                let end = if number(0)? > 1 { number(8)? } else { bytes.len() };
                read_json(bytes.get(number(4)?..end)?, max_bytes)
            }
            _ => None,
        }
    }
}

fn read_parts(bytes: &[u8], max_bytes: usize) -> Option<(SocketChannel, Received)> {
    let number = |at: usize| {
        let eight = bytes.get(8 * at..8 * at + 8)?.first_chunk::<8>()?;
        usize::try_from(u64::from_le_bytes(*eight)).ok()
    };
    let count = number(0)?.min(MAX_PARTS);
    let part = |index: usize| match index + 1 < count {
        true => bytes.get(number(index + 1)?..number(index + 2)?),
        false => None,
    };
    let (channel, header, parent, content) = (part(0)?, part(1)?, part(2)?, part(4)?);
    let stored = if content.len() <= max_bytes { content } else { &[] };
    Some((SocketChannel::of(channel), message_of(header, parent, stored, content.len() as u64)?))
}

fn read_json(bytes: &[u8], max_bytes: usize) -> Option<(SocketChannel, Received)> {
    let mut message: Value = serde_json::from_slice(bytes).ok()?;
    let text = |part: Option<&Value>, name: &str| Some(part?.get(name)?.as_str()?.to_owned());
    let (header, parent) = (message.get("header"), message.get("parent_header"));
    let (kind, session, parent) = (text(header, "msg_type")?, text(header, "session"), text(parent, "msg_id"));
    let channel = SocketChannel::of(message.get("channel")?.as_str()?.as_bytes());
    let content = message.get_mut("content").map(Value::take).filter(|_| bytes.len() <= max_bytes);
    Some((channel, Received { kind, parent, session, content, bytes: bytes.len() as u64 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (Value, Value) {
        (json!({ "msg_id": "1", "msg_type": "execute_request", "session": "s" }), json!({ "code": "变量 = 1" }))
    }

    #[test]
    fn a_message_is_read_as_it_was_written_in_both_forms() {
        let (header, content) = example();
        for form in [SocketForm::V1, SocketForm::Json] {
            let written = form.written("control", &header, &content);
            let (channel, received) = form.read(&written, 10_000).unwrap();
            assert_eq!(channel, SocketChannel::Control);
            assert_eq!((received.kind.as_str(), received.session.as_deref()), ("execute_request", Some("s")));
            assert_eq!(received.content, Some(content.clone()));
            let (_, received) = form.read(&written, 5).unwrap();
            assert!(received.content.is_none() && received.bytes > 5, "{received:?}");
        }
    }

    #[test]
    fn the_message_before_its_buffers_is_read() {
        let (header, content) = example();
        let SocketMessage::Text(text) = SocketForm::Json.written("iopub", &header, &content) else { unreachable!() };
        let (first, second) = (12_u32, 12 + u32::try_from(text.len()).unwrap());
        let mut bytes = [2, first, second].map(u32::to_be_bytes).concat();
        bytes.extend(text.as_bytes());
        bytes.extend(b"a buffer");
        let (channel, received) = SocketForm::Json.read(&SocketMessage::binary(bytes), 10_000).unwrap();
        assert_eq!((channel, received.content), (SocketChannel::Iopub, Some(content)));
    }

    #[test]
    fn damaged_messages_are_not_read() {
        let (header, content) = example();
        for form in [SocketForm::V1, SocketForm::Json] {
            let SocketMessage::Binary(bytes) = SocketForm::V1.written("shell", &header, &content) else {
                unreachable!()
            };
            for end in 0..bytes.len() {
                let damaged = SocketMessage::binary(bytes.get(..end).unwrap().to_vec());
                assert_eq!(form.read(&damaged, 10_000), None, "{end}");
            }
            assert_eq!(form.read(&SocketMessage::binary(vec![0xff; 64]), 10_000), None);
            assert_eq!(form.read(&SocketMessage::text("<html>"), 10_000), None);
        }
    }
}
