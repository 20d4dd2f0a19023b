//! Makes text of people, models, scripts and files safe to show: what would move the cursor, change the order of the characters or
//! hide something becomes visible. Writing systems and emoji that need invisible characters keep them.

use std::borrow::Cow;
use std::fmt::Write;

/// The longest tag sequence of an emoji flag, such as the flag of Scotland, with its end.
const MAX_FLAG_TAGS: u8 = 7;

/// The text for a terminal. Line ends and tabs stay; `\r\n` is a line end.
pub fn visible(text: &str) -> String {
    let mut stream = VisibleStream::default();
    let mut shown = stream.push(text);
    shown += &stream.finish();
    shown
}

/// The text on one line: line ends become spaces.
pub fn visible_line(text: &str) -> String {
    visible(text.trim_end_matches(['\n', '\r'])).replace('\n', " ")
}

/// The text for a terminal, and where these byte positions of the text are in it.
pub(crate) fn visible_at(text: &str, positions: &[usize]) -> (String, Vec<usize>) {
    let mut shown = String::with_capacity(text.len());
    let mut context = Context::default();
    let mut moved: Vec<Option<usize>> = vec![None; positions.len()];
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        for (position, moved) in positions.iter().zip(&mut moved) {
            if moved.is_none() && *position <= at {
                *moved = Some(shown.len());
            }
        }
        context.push(&mut shown, c, characters.peek().map(|(_, next)| *next));
    }
    let end = shown.len();
    (shown, moved.into_iter().map(|moved| moved.unwrap_or(end)).collect())
}

/// A JSON document with the same content, in which the characters that [`visible`] replaces are escape sequences of JSON.
pub fn visible_json(document: &str) -> Cow<'_, str> {
    // What stands outside of strings is ASCII, and strings contain no control characters of ASCII except for DEL.
    let is_exact = |c: char| c == '\u{7f}' || !c.is_ascii();
    if !document.contains(is_exact) {
        return Cow::Borrowed(document);
    }
    let mut shown = String::with_capacity(document.len());
    let mut context = Context::default();
    let mut characters = document.chars().peekable();
    while let Some(c) = characters.next() {
        let kept = context.take(c, characters.peek().copied()) == Shown::Unchanged;
        if kept || !is_exact(c) {
            shown.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    Cow::Owned(shown)
}

/// [`visible`] for a text that arrives in pieces, wherever it is divided.
#[derive(Clone, Debug, Default)]
pub struct VisibleStream {
    context: Context,
    /// A character at the end of the last piece, which is shown according to the next one.
    pending: Option<char>,
}

impl VisibleStream {
    /// What can be shown after the next piece.
    pub fn push(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for c in piece.chars() {
            if let Some(previous) = self.pending.take() {
                self.context.push(&mut shown, previous, Some(c));
            }
            if is_decided_by_next(c) {
                self.pending = Some(c);
            } else {
                self.context.push(&mut shown, c, None);
            }
        }
        shown
    }

    /// The end of the text.
    pub fn finish(&mut self) -> String {
        let mut shown = String::new();
        if let Some(last) = self.pending.take() {
            self.context.push(&mut shown, last, None);
        }
        shown
    }
}

/// What is known of the text before a character.
#[derive(Clone, Copy, Debug, Default)]
struct Context {
    /// The last character, unless it was replaced.
    previous: Option<char>,
    /// The tags since the flag that they belong to; none outside of a flag.
    flag_tags: Option<u8>,
}

/// How a character is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Unchanged,
    /// Only the line end that follows is shown.
    LineEnd,
    Symbol(char),
    Escape,
}

impl Context {
    fn push(&mut self, shown: &mut String, c: char, next: Option<char>) {
        match self.take(c, next) {
            Shown::Unchanged => shown.push(c),
            Shown::LineEnd => {}
            Shown::Symbol(symbol) => shown.push(symbol),
            Shown::Escape => {
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }

    fn take(&mut self, c: char, next: Option<char>) -> Shown {
        let shown = self.decide(c, next);
        self.flag_tags = match (c, self.flag_tags) {
            ('🏴', _) => Some(0),
            ('\u{e0020}'..='\u{e007e}', Some(tags)) if shown == Shown::Unchanged => Some(tags + 1),
            _ => None,
        };
        self.previous = Some(c).filter(|_| shown == Shown::Unchanged);
        shown
    }

    fn decide(&self, c: char, next: Option<char>) -> Shown {
        let shown_if = |kept: bool| if kept { Shown::Unchanged } else { Shown::Escape };
        match c {
            '\n' | '\t' => Shown::Unchanged,
            '\r' if next == Some('\n') => Shown::LineEnd,
            // The symbols for control characters are in the same order.
            '\0'..='\u{1f}' => Shown::Symbol(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\u{7f}' => Shown::Symbol('␡'),
            // Most characters need no further question.
            ' '..='~' => Shown::Unchanged,
            // Marks of direction order the punctuation of Arabic and Hebrew. In a word of ASCII they only make it another one.
            '\u{61c}' | '\u{200e}' | '\u{200f}' => {
                let is_ascii = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
                shown_if(!(is_ascii(self.previous) && is_ascii(next)))
            }
            // Joiners form letters of Persian and Indic scripts, and emoji.
            '\u{200c}' | '\u{200d}' => shown_if(self.previous.is_some_and(is_joined)),
            // Thai, Lao, Tibetan, Burmese and Khmer write no spaces between words.
            '\u{200b}' => shown_if(matches!(self.previous, Some('\u{e00}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'))),
            // Variants of Mongolian letters, and of emoji, digits in a frame, and Chinese characters.
            '\u{180b}'..='\u{180f}' => shown_if(matches!(self.previous, Some('\u{1800}'..='\u{18aa}'))),
            '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
                shown_if(self.previous.is_some_and(|c| is_joined(c) || matches!(c, '0'..='9' | '#' | '*')))
            }
            '\u{e0020}'..='\u{e007f}' => shown_if(self.flag_tags.is_some_and(|tags| tags < MAX_FLAG_TAGS)),
            c => shown_if(!is_hidden(c)),
        }
    }
}

/// Whether the next character decides how this one is shown.
fn is_decided_by_next(c: char) -> bool {
    matches!(c, '\r' | '\u{61c}' | '\u{200e}' | '\u{200f}')
}

/// Whether an invisible character may belong to this one.
fn is_joined(c: char) -> bool {
    !c.is_ascii() && !c.is_whitespace() && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{61c}')
        // An emoji with a variant is joined to the next one, other variants only once.
        && !matches!(c, '\u{fe00}'..='\u{fe0e}' | '\u{e0100}'..='\u{e01ef}')
}

/// Controls, and characters that are invisible or change the order of others, and belong to no writing system.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{80}'..='\u{9f}'
        // Line and paragraph separators, and embeddings and overrides of the direction.
        | '\u{2028}'..='\u{202e}'
        // Invisible operators, isolates of the direction, and obsolete controls.
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        // Invalid in XML, and in browsers.
        | '\u{fffe}' | '\u{ffff}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_or_hide_is_visible() {
        let table = [
            ("a\u{1b}[31m\u{7}\u{8}\0b", "a␛[31m␇␈␀b"),
            ("a\u{7f}\u{9b}31m", "a␡\\u{9b}31m"),
            ("a\r\nb\rc\n\td\n", "a\nb␍c\n\td\n"),
            ("a\r\r\n", "a␍\n"),
            ("a\r", "a␍"),
            ("abc\u{202e}fdp.exe\u{202c}", "abc\\u{202e}fdp.exe\\u{202c}"),
            ("\u{2066}x\u{2069}\u{2028}", "\\u{2066}x\\u{2069}\\u{2028}"),
            ("con\u{200b}tent\u{feff}\u{2060}", "con\\u{200b}tent\\u{feff}\\u{2060}"),
            ("con\u{200d}tent 张\u{200b}三", "con\\u{200d}tent 张\\u{200b}三"),
            ("con\u{200f}tent", "con\\u{200f}tent"),
            ("\u{200d}\u{fe0f}a\u{fe0f}", "\\u{200d}\\u{fe0f}a\\u{fe0f}"),
            ("家\u{200d}\u{200d}", "家\u{200d}\\u{200d}"),
            ("家\u{e0101}\u{e0102}", "家\u{e0101}\\u{e0102}"),
            ("a\u{e0041}\u{e0042}", "a\\u{e0041}\\u{e0042}"),
            ("\u{fffe}\u{e0001}", "\\u{fffe}\\u{e0001}"),
        ];
        for (text, expected) in table {
            assert_eq!(visible(text), expected, "{text:?}");
        }
        assert_eq!(visible_line("a\r\nb\n\nc\n"), "a b  c");
        let flag = format!("🏴{}", "\u{e0061}".repeat(20));
        assert_eq!(visible(&flag).matches("\\u{e0061}").count(), 13, "{flag:?}");
    }

    #[test]
    fn writing_systems_and_emoji_keep_what_they_need() {
        let texts = [
            "中文，标点。「引号」 全角　空格",
            "葛\u{e0100}城",
            "👩\u{200d}👩\u{200d}👧\u{200d}👦 ❤\u{fe0f}\u{200d}🔥 1\u{fe0f}\u{20e3} 👍🏽 🏳\u{fe0f}\u{200d}🌈",
            "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
            "שלום, עולם! (HTML\u{200f}!) \u{200f}1. C++\u{200e} \u{61c}",
            "مرحبا بالعالم ٢٠٢٦",
            "می\u{200c}خواهم ه\u{200d}.ق",
            "क्\u{200d}ष न्\u{200c}",
            "ภาษา\u{200b}ไทย",
            "ᠮᠣᠩᠭᠣᠯ\u{180b}",
            "naïve café e\u{301} \u{a0} soft\u{ad}hyphen",
        ];
        for text in texts {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn positions_follow_their_characters() {
        let (shown, moved) = visible_at("a\u{1b}b\u{202e}c\r\n", &[0, 1, 2, 3, 6, 7, 9, 99]);
        assert_eq!(shown, "a␛b\\u{202e}c\n");
        let at = |part: &str| shown.find(part).unwrap();
        assert_eq!(moved, [0, at("␛"), at("b"), at("\\"), at("c"), at("\n"), shown.len(), shown.len()]);
    }

    fn harmful(c: char) -> bool {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    }

    fn nasty() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            any::<char>(),
            proptest::char::range('\0', '\u{9f}'),
            proptest::char::range('\u{2000}', '\u{2070}'),
            proptest::sample::select(vec![
                '\r',
                '\n',
                '\u{1b}',
                '\u{200d}',
                '\u{fe0f}',
                '\u{e0061}',
                '🏴',
                '👩',
                'a',
                'ש'
            ]),
        ];
        proptest::collection::vec(character, 0..40).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left_and_pieces_give_the_same_text(text in nasty(), cut in 0usize..40) {
            let shown = visible(&text);
            prop_assert!(!shown.contains(harmful), "{shown:?}");
            prop_assert_eq!(visible(&shown), shown.as_str());
            let at = text.char_indices().nth(cut).map_or(text.len(), |(at, _)| at);
            let mut stream = VisibleStream::default();
            let mut pieces = stream.push(&text[..at]);
            pieces += &stream.push(&text[at..]);
            pieces += &stream.finish();
            prop_assert_eq!(&pieces, &shown);
            prop_assert_eq!(visible_at(&text, &[]).0, shown);
        }

        #[test]
        fn a_json_document_keeps_its_content(text in nasty()) {
            let document = serde_json::to_string(&[&text, "二"]).unwrap();
            let shown = visible_json(&document);
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), vec![text, "二".to_owned()]);
            prop_assert!(!shown.contains(harmful), "{shown:?}");
        }
    }
}
