//! The times in prompts (`{{ time }}`), which differ between two runs of the same conversation.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// A time as the engine writes it, in English and in Chinese.
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\d{4}-\d\d-\d\d \d\d:\d\d(?: \((?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\)|（星期[一二三四五六日]）)")
        .ok()
});

/// A prompt in which all times are equal. So prompts of different times can be compared.
pub fn without_times(prompt: &str) -> Cow<'_, str> {
    match &*TIME {
        Some(time) => time.replace_all(prompt, "time"),
        None => Cow::Borrowed(prompt),
    }
}
