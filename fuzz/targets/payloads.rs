//! Payloads of behavior servers: read as a response, as a judgement and as an observation; what is read is applied.

#![no_main]

use bcc_runtime::notebook::protocol::read_observation::read_observation;
use bcc_runtime::notebook::protocol::response::{reflection, response};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice(bytes) else { return };
    let _ = response(&value);
    if let Ok(judgement) = reflection(&value) {
        let _ = judgement.is_target_achieved();
    }
    let _ = read_observation(&value);
});
