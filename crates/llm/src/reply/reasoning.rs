//! Skips the reasoning that some models write before their reply: tags, and the channels of some servers.

use memchr::{memchr, memmem};

use crate::reply::extract::{object_spans, starts_object, tail};

/// The maximum number of reasoning blocks that are skipped at the start of a text.
const MAX_BLOCKS: usize = 16;

/// The tags around reasoning, case-insensitive: opening and closing.
pub(crate) const BLOCKS: [(&str, &str); 9] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<analysis>", "</analysis>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
];

/// Precedes the name of a channel, which [`MESSAGE`] follows.
pub(crate) const CHANNEL: &str = "<|channel|>";
pub(crate) const MESSAGE: &str = "<|message|>";

/// The maximum length of the name of a channel, with its marker.
pub(crate) const MAX_CHANNEL_BYTES: usize = 128;

/// The channel of the reply; the others contain reasoning.
const FINAL_CHANNEL: &str = "final";

/// What remains of the marker of the last channel if a server removes special tokens.
const FINAL_WORDS: &str = "assistantfinal";

/// A marker in a text, outside objects.
pub(crate) enum Marker {
    /// Reasoning starts, up to this closing tag.
    Open(&'static str),
    /// Reasoning ends here; some servers remove the opening tag.
    Close,
    /// A channel of reasoning starts.
    OtherChannel,
    /// The channel of the reply starts.
    FinalChannel,
}

/// The part of `text` after its reasoning; empty if the reasoning does not end.
pub(crate) fn after_reasoning(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..MAX_BLOCKS {
        let brace = memchr(b'{', rest.as_bytes());
        let Some((at, end, marker)) = first_marker(rest) else { return rest };
        let precedes_objects = brace.is_none_or(|brace| at < brace);
        rest = match marker {
            Marker::Open(close) if precedes_objects => match find_ignoring_case(tail(rest, end), close) {
                Some(found) => tail(rest, end + found + close.len()),
                None => return "",
            },
            Marker::OtherChannel if precedes_objects => match next_channel(tail(rest, end)) {
                Some(found) => tail(rest, end + found),
                None => return "",
            },
            Marker::Close | Marker::FinalChannel
                if !brace.is_some_and(|brace| object_spans(rest, brace, at) || starts_broken_object(rest, brace)) =>
            {
                tail(rest, end)
            }
            // A marker after a brace may be part of the reply.
            _ => return rest,
        };
    }
    rest
}

/// Whether `text` starts with an object, the one at `brace`, that does not parse: a marker after it is probably inside it.
fn starts_broken_object(text: &str, brace: usize) -> bool {
    text.trim_start().starts_with(['{', '"']) && !starts_object(text, brace)
}

/// The first marker in `text`, with its start and end.
pub(crate) fn first_marker(text: &str) -> Option<(usize, usize, Marker)> {
    let tags = text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'<' | b'[' | 0xE2));
    let tag = tags.map(|(at, _)| at).find_map(|at| marker_at(text, at).map(|(end, marker)| (at, end, marker)));
    let before = tag.as_ref().and_then(|tag| text.get(..tag.0)).unwrap_or(text);
    match memmem::find(before.as_bytes(), FINAL_WORDS.as_bytes()) {
        Some(words) => Some((words, words + FINAL_WORDS.len(), Marker::FinalChannel)),
        None => tag,
    }
}

/// The marker that starts at `at`, with its end.
pub(crate) fn marker_at(text: &str, at: usize) -> Option<(usize, Marker)> {
    let rest = text.get(at..)?;
    for (open, close) in BLOCKS {
        if starts_ignoring_case(rest, open) {
            return Some((at + open.len(), Marker::Open(close)));
        }
        if starts_ignoring_case(rest, close) {
            return Some((at + close.len(), Marker::Close));
        }
    }
    let named = rest.strip_prefix(CHANNEL)?;
    let name = memmem::find(named.as_bytes().get(..named.len().min(MAX_CHANNEL_BYTES))?, MESSAGE.as_bytes())?;
    let end = at + CHANNEL.len() + name + MESSAGE.len();
    let is_final = is_final_channel(named.get(..name)?);
    Some((end, if is_final { Marker::FinalChannel } else { Marker::OtherChannel }))
}

/// Whether this is the name of the channel of the reply, after which there may be the format of its content.
pub(crate) fn is_final_channel(name: &str) -> bool {
    name.trim_start().starts_with(FINAL_CHANNEL)
}

fn next_channel(text: &str) -> Option<usize> {
    memmem::find(text.as_bytes(), CHANNEL.as_bytes())
}

/// The first position of `tag` in `text`, ignoring ASCII case.
pub(crate) fn find_ignoring_case(text: &str, tag: &str) -> Option<usize> {
    let first = *tag.as_bytes().first()?;
    memchr::memchr_iter(first, text.as_bytes()).find(|&at| starts_ignoring_case(tail(text, at), tag))
}

fn starts_ignoring_case(text: &str, tag: &str) -> bool {
    text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_before_the_reply_is_skipped_whatever_marks_it() {
        let texts = [
            "<think>{\"b\":2}</think>R",
            "<Thinking>\n{\"b\":2}\n</THINKING>R",
            "<reasoning>{\"b\":2}</reasoning>R",
            "<thought>a</thought><analysis>{\"b\":2}</analysis>R",
            "{\"b\":2} hm\n</thinking>R",
            "[THINK]{\"b\":2}[/THINK]R",
            "◁think▷{\"b\":2}◁/think▷R",
            "<|channel|>analysis<|message|>{\"b\":2}<|end|><|start|>assistant<|channel|>final<|message|>R",
            "<|channel|>analysis<|message|>{\"b\":2}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>R",
            "analysisI think {\"b\":2} assistantfinalR",
        ];
        for text in texts {
            assert_eq!(after_reasoning(text), "R", "{text}");
        }
    }

    #[test]
    fn reasoning_that_does_not_end_leaves_nothing() {
        for text in ["<thinking>{\"a\":1}", "<|channel|>analysis<|message|>{\"a\":1}", "<think>a</thinking>{\"a\":1}"] {
            assert_eq!(after_reasoning(text), "", "{text}");
        }
    }

    #[test]
    fn markers_inside_the_reply_are_part_of_it() {
        for text in [
            "{\"a\":\"</think>\"}",
            "{\"a\":\"<reasoning>\"}",
            "{\"a\":\"assistantfinal\"}",
            "{'a':'</think>'}",
            "a < b",
            "[1]",
        ] {
            assert_eq!(after_reasoning(text), text);
        }
    }
}
