//! Earlier results of tools that only read, by tool and arguments. Bounded in number and size.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bcc_runtime::effects::tools::{ToolCall, ToolOutput};
use serde_json::Value;
use tokio::time::Instant;

use crate::truncation::json_size;

const MAX_RESULTS: usize = 256;

/// The maximum size of all results as JSON, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;

#[derive(Default)]
pub struct ResultCache {
    entries: Mutex<CachedResults>,
}

#[derive(Default)]
struct CachedResults {
    by_key: BTreeMap<String, CachedResult>,
    /// The keys, the oldest result first.
    order: VecDeque<String>,
    bytes: usize,
}

struct CachedResult {
    output: ToolOutput,
    bytes: usize,
    at: Instant,
}

impl ResultCache {
    /// The result of an earlier call with the same tool, arguments and size limit that is younger than the limits of the call say.
    pub fn get(&self, call: &ToolCall<'_>) -> Option<ToolOutput> {
        let max_age = call.limits.cache?;
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.by_key.get(&key(call)).filter(|found| is_younger(found.at, max_age))?;
        Some(ToolOutput { is_cached: true, ..found.output.clone() })
    }

    /// Keeps the result of a call that permits it, in place of the oldest ones if there are too many.
    pub fn put(&self, call: &ToolCall<'_>, output: &ToolOutput) {
        if call.limits.cache.is_none() {
            return;
        }
        let key = key(call);
        let bytes = json_size(&output.value).saturating_add(key.len());
        if bytes > MAX_BYTES {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.remove(&key);
        entries.bytes += bytes;
        entries.order.push_back(key.clone());
        entries.by_key.insert(key, CachedResult { output: output.clone(), bytes, at: Instant::now() });
        while entries.bytes > MAX_BYTES || entries.by_key.len() > MAX_RESULTS {
            let Some(oldest) = entries.order.pop_front() else { break };
            if let Some(removed) = entries.by_key.remove(&oldest) {
                entries.bytes -= removed.bytes;
            }
        }
    }
}

impl CachedResults {
    fn remove(&mut self, key: &str) {
        if let Some(removed) = self.by_key.remove(key) {
            self.bytes -= removed.bytes;
            self.order.retain(|one| one != key);
        }
    }
}

fn is_younger(at: Instant, max_age: Duration) -> bool {
    at.elapsed() < max_age
}

/// The tool, the size limit and the arguments; the order of the arguments makes no difference.
fn key(call: &ToolCall<'_>) -> String {
    let arguments = canonical(&Value::Object(call.arguments.clone()));
    format!("{}\n{}\n{arguments}", call.tool, call.limits.max_bytes)
}

/// The value with the keys of its objects in order.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Array(list) => Value::Array(list.iter().map(canonical).collect()),
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            Value::Object(sorted.into_iter().map(|(key, value)| (key.clone(), canonical(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bcc_runtime::effects::tools::ToolLimits;
    use serde_json::{Map, json};

    const MINUTE: Duration = Duration::from_secs(60);

    fn arguments(value: Value) -> Map<String, Value> {
        let Value::Object(fields) = value else { panic!() };
        fields
    }

    fn call<'a>(tool: &'a str, arguments: &'a Map<String, Value>, cache: Option<Duration>) -> ToolCall<'a> {
        ToolCall { tool, arguments, action: "a", limits: ToolLimits { cache, ..ToolLimits::default() } }
    }

    fn output(value: Value) -> ToolOutput {
        ToolOutput { value: value.into(), ..ToolOutput::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_is_used_again_for_the_same_arguments_until_it_is_too_old() {
        let cache = ResultCache::default();
        let one = arguments(json!({ "query": "a", "deep": { "x": 1, "y": 2 } }));
        let same = arguments(json!({ "deep": { "y": 2, "x": 1 }, "query": "a" }));
        let other = arguments(json!({ "query": "b" }));
        cache.put(&call("t", &one, Some(MINUTE)), &output(json!(1)));
        let found = cache.get(&call("t", &same, Some(MINUTE))).unwrap();
        assert_eq!((found.value.into_value(), found.is_cached), (json!(1), true));
        assert_eq!(cache.get(&call("t", &other, Some(MINUTE))), None);
        assert_eq!(cache.get(&call("u", &one, Some(MINUTE))), None);
        assert_eq!(cache.get(&call("t", &one, None)), None, "a call without a cache");
        tokio::time::advance(MINUTE / 2).await;
        assert!(cache.get(&call("t", &one, Some(MINUTE))).is_some());
        assert_eq!(cache.get(&call("t", &one, Some(MINUTE / 2))), None, "a call that wants a younger one");
    }

    #[test]
    fn the_number_and_the_size_of_results_are_bounded() {
        let cache = ResultCache::default();
        for number in 0..2 * MAX_RESULTS {
            let arguments = arguments(json!({ "number": number }));
            cache.put(&call("t", &arguments, Some(MINUTE)), &output(json!(number)));
        }
        let count = || cache.entries.lock().unwrap().by_key.len();
        assert_eq!(count(), MAX_RESULTS);
        let (oldest, newest) = (arguments(json!({ "number": 0 })), arguments(json!({ "number": 2 * MAX_RESULTS - 1 })));
        assert!(cache.get(&call("t", &oldest, Some(MINUTE))).is_none());
        assert!(cache.get(&call("t", &newest, Some(MINUTE))).is_some());
        let large = "x".repeat(MAX_BYTES / 4);
        for number in 0..8 {
            let arguments = arguments(json!({ "number": number }));
            cache.put(&call("large", &arguments, Some(MINUTE)), &output(json!(large)));
        }
        let entries = cache.entries.lock().unwrap();
        assert!(entries.bytes <= MAX_BYTES && entries.by_key.len() == 3, "{}", entries.by_key.len());
        assert_eq!(entries.bytes, entries.by_key.values().map(|one| one.bytes).sum::<usize>());
    }
}
