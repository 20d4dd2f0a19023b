//! A collector of OpenTelemetry on loopback: it takes traces over HTTP, and reads what a test asks about of their protobuf.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    Text(String),
    Number(u64),
    Flag(bool),
    Texts(Vec<String>),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Attribute {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

#[derive(Clone, Debug, Default)]
pub struct ReceivedSpan {
    pub trace: String,
    pub id: String,
    /// Empty if it has none.
    pub parent: String,
    pub name: String,
    pub kind: u64,
    pub is_error: bool,
    pub attributes: BTreeMap<String, Attribute>,
}

impl ReceivedSpan {
    pub fn is(&self, name: &str, value: impl Into<Attribute>) -> bool {
        self.attributes.get(name) == Some(&value.into())
    }
}

#[derive(Default)]
struct Received {
    heads: Vec<String>,
    bodies: Vec<Vec<u8>>,
}

/// The collector, which ends with the process.
pub struct Collector {
    /// `http://127.0.0.1:<port>`
    pub url: String,
    received: Arc<(Mutex<Received>, Condvar)>,
}

impl Collector {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new((Mutex::new(Received::default()), Condvar::new()));
        let shared = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || while serve(stream.as_ref().unwrap(), &shared).is_some() {});
            }
        });
        Self { url, received }
    }

    /// The heads of the requests so far: the request line and the headers.
    pub fn heads(&self) -> Vec<String> {
        self.received.0.lock().unwrap().heads.clone()
    }

    /// Everything that was received so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.received.0.lock().unwrap().bodies.concat()
    }

    pub fn spans(&self) -> Vec<ReceivedSpan> {
        self.received.0.lock().unwrap().bodies.iter().flat_map(|body| spans(body)).collect()
    }

    /// Waits for a span that `is_wanted`.
    pub fn wait_for(&self, timeout: Duration, is_wanted: impl Fn(&ReceivedSpan) -> bool) -> ReceivedSpan {
        let (received, arrived) = &*self.received;
        let find = |received: &Received| received.bodies.iter().flat_map(|body| spans(body)).find(&is_wanted);
        let guard = received.lock().unwrap();
        let (guard, _) = arrived.wait_timeout_while(guard, timeout, |received| find(received).is_none()).unwrap();
        find(&guard).unwrap_or_else(|| panic!("the span does not come"))
    }

    /// The attributes of the program that sent the first request.
    pub fn resource(&self) -> BTreeMap<String, Attribute> {
        let received = self.received.0.lock().unwrap();
        let body = received.bodies.first().unwrap();
        let resource_spans = Fields::of(body).bytes(1);
        let resource = Fields::of(resource_spans[0]).bytes(1);
        attributes(&Fields::of(resource[0]).bytes(1))
    }
}

fn serve(stream: &TcpStream, shared: &(Mutex<Received>, Condvar)) -> Option<()> {
    // Nothing is sent before the response, so that no byte of a next request is lost in the buffer.
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (received, arrived) = shared;
    {
        let mut received = received.lock().unwrap();
        received.heads.push(head);
        received.bodies.push(body);
    }
    arrived.notify_all();
    let mut stream = stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n").ok()
}

/// The spans of an `ExportTraceServiceRequest`.
fn spans(request: &[u8]) -> Vec<ReceivedSpan> {
    let of_resources = Fields::of(request).bytes(1);
    let of_scopes = of_resources.iter().flat_map(|resource| Fields::of(resource).bytes(2));
    of_scopes.flat_map(|scope| Fields::of(scope).bytes(2)).map(span).collect()
}

fn span(bytes: &[u8]) -> ReceivedSpan {
    let fields = Fields::of(bytes);
    let hex = |number| fields.bytes(number).concat().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let status = fields.bytes(15).concat();
    ReceivedSpan {
        trace: hex(1),
        id: hex(2),
        parent: hex(4),
        name: text(&fields.bytes(5).concat()),
        kind: fields.number(6).unwrap_or_default(),
        is_error: Fields::of(&status).number(3) == Some(2),
        attributes: attributes(&fields.bytes(9)),
    }
}

fn attributes(pairs: &[&[u8]]) -> BTreeMap<String, Attribute> {
    let pair = |bytes: &&[u8]| {
        let fields = Fields::of(bytes);
        (text(&fields.bytes(1).concat()), value(&fields.bytes(2).concat()))
    };
    pairs.iter().map(pair).collect()
}

fn value(bytes: &[u8]) -> Attribute {
    let fields = Fields::of(bytes);
    if let Some(list) = fields.bytes(5).first() {
        let values = Fields::of(list).bytes(1);
        return Attribute::Texts(values.iter().map(|value| text(&Fields::of(value).bytes(1).concat())).collect());
    }
    match (fields.number(2), fields.number(3)) {
        (Some(flag), _) => Attribute::Flag(flag != 0),
        (_, Some(number)) => Attribute::Number(number),
        _ => Attribute::Text(text(&fields.bytes(1).concat())),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message of protobuf, with their numbers.
struct Fields<'a>(Vec<(u64, Field<'a>)>);

impl<'a> Fields<'a> {
    fn of(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let field = match tag & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Bytes(take(&mut bytes, 8)),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Field::Bytes(take(&mut bytes, length))
                }
                5 => Field::Bytes(take(&mut bytes, 4)),
                other => panic!("no wire type: {other}"),
            };
            fields.push((tag >> 3, field));
        }
        Self(fields)
    }

    fn bytes(&self, number: u64) -> Vec<&'a [u8]> {
        let of_number = self.0.iter().filter(|(found, _)| *found == number);
        of_number.filter_map(|(_, field)| if let Field::Bytes(bytes) = field { Some(*bytes) } else { None }).collect()
    }

    fn number(&self, number: u64) -> Option<u64> {
        let found = self.0.iter().find(|(found, _)| *found == number);
        found.and_then(|(_, field)| if let Field::Number(value) = field { Some(*value) } else { None })
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}
