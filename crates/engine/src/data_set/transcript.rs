//! The transcript of an interview as plain text, with the range of each message in it.

use std::ops::Range;

use crate::data_set::interview::Interview;

/// A text and where its messages are, in Unicode code points, as tools of qualitative analysis count.
#[derive(Clone, Debug, Default)]
pub(crate) struct TranscriptText {
    pub(crate) text: String,
    /// For each message of the interview.
    pub(crate) ranges: Vec<Range<usize>>,
}

impl TranscriptText {
    pub(crate) fn of(interview: &Interview) -> Self {
        let mut transcript = Self::default();
        let mut length = 0;
        let title = interview.script_name.as_deref().filter(|name| !name.trim().is_empty());
        transcript.push(&mut length, &one_line(title.unwrap_or(&interview.script)));
        let facts = [interview.id.as_str(), &interview.participant, &interview.status];
        transcript.push(&mut length, &format!("\n{}\n", one_line(&facts.join(" · "))));
        transcript
            .push(&mut length, &format!("{} – {} UTC\n", minute(&interview.started_at), minute(&interview.updated_at)));
        let mut place = None;
        for message in &interview.messages {
            if place != Some(&message.place) && !message.place.is_empty() {
                transcript.push(&mut length, &format!("\n## {}\n", one_line(&message.place)));
            }
            place = Some(&message.place);
            let time = message.at.get(11..19).unwrap_or_default();
            transcript.push(&mut length, &format!("\n{} ({time}):\n", one_line(&message.speaker)));
            let start = length;
            transcript.push(&mut length, &printable(&message.text));
            transcript.ranges.push(start..length);
            transcript.push(&mut length, "\n");
        }
        transcript
    }

    fn push(&mut self, length: &mut usize, text: &str) {
        *length += text.chars().count();
        self.text.push_str(text);
    }
}

fn minute(stamp: &str) -> String {
    stamp.get(..16).unwrap_or(stamp).replace('T', " ")
}

fn one_line(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// A text with one kind of line ends, and without characters that XML cannot hold or that change how a terminal shows a text.
pub(crate) fn printable(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let is_harmful = |character: char| {
        (character.is_control() && !matches!(character, '\n' | '\t')) || matches!(character, '\u{fffe}' | '\u{ffff}')
    };
    text.replace(is_harmful, "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_set::interview::{InterviewMessage, MessageRole};

    #[test]
    fn the_range_of_a_message_is_its_text() {
        let message = |text: &str| InterviewMessage {
            number: 1,
            at: "2026-11-21T20:00:00.000000Z".into(),
            role: MessageRole::Answer,
            speaker: "来访者".into(),
            phase_id: "p".into(),
            topic_id: "t".into(),
            action_id: "a".into(),
            path: "t/a".into(),
            round: 1,
            place: "第一段".into(),
            text: text.into(),
        };
        let messages = vec![message("你好 😀"), message("two\r\nlines\u{1b}[31m")];
        let interview = Interview { id: "one".into(), script: "s".into(), messages, ..Interview::default() };
        let transcript = TranscriptText::of(&interview);
        let characters: Vec<char> = transcript.text.chars().collect();
        let texts = transcript.ranges.iter().map(|range| characters[range.clone()].iter().collect::<String>());
        assert_eq!(texts.collect::<Vec<_>>(), ["你好 😀", "two\nlines\u{fffd}[31m"]);
    }
}
