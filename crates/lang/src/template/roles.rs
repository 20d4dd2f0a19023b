//! Role markers: lines of the *source* that start a message of a role (docs/templates.md). Such a line in a value does not start a
//! message, because before rendering the markers are replaced by sentinels with an unguessable nonce. Sentinels consist of
//! noncharacters, which Unicode reserves for such internal use: no filter for text, such as `upper` or `replace`, changes them.

use std::borrow::Cow;

use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

/// The minimum length of the caller's nonce, in bytes: 128 bits as hexadecimal digits.
pub(crate) const MIN_NONCE_BYTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptRole {
    System,
    User,
    Assistant,
}

impl PromptRole {
    pub const ALL: [Self; 3] = [Self::System, Self::User, Self::Assistant];

    /// The name in a marker.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// The last character of its sentinel.
    const fn sign(self) -> char {
        match self {
            Self::System => '\u{fde1}',
            Self::User => '\u{fde2}',
            Self::Assistant => '\u{fde3}',
        }
    }

    /// The role of a line that consists of a marker, with optional surrounding white space.
    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let name = line.trim_matches([' ', '\t', '\r', '\n']).strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendered {
    pub role: PromptRole,
    /// The text, without surrounding white space; never empty.
    pub content: String,
}

/// The first character of every sentinel.
const START: char = '\u{fde0}';

/// The noncharacters that represent the digits 0 to 15.
const DIGITS: u32 = 0xfdd0;

/// The minimum length, in characters, of a part of a sentinel that is removed wherever it is; a shorter one could belong to a value.
const MIN_PART: usize = 4;

/// The sentinels that replace the role markers in one set of templates.
#[derive(Clone, Debug)]
pub(crate) struct Sentinels {
    opening: String,
    finder: Finder<'static>,
}

const fn is_sentinel_char(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}')
}

impl Sentinels {
    /// Sentinels with `nonce`; `None` unless it has at least [`MIN_NONCE_BYTES`] ASCII letters and digits and nothing else.
    pub(crate) fn new(nonce: &str) -> Option<Self> {
        let is_valid = nonce.len() >= MIN_NONCE_BYTES && nonce.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_valid.then(|| {
            let digits = nonce.bytes().flat_map(|byte| [byte >> 4, byte & 15]);
            let digits = digits.filter_map(|digit| char::from_u32(DIGITS + u32::from(digit)));
            let opening: String = std::iter::once(START).chain(digits).collect();
            Self { finder: Finder::new(&opening).into_owned(), opening }
        })
    }

    /// Replaces each marker line of `source` by a sentinel line. The number of lines does not change.
    pub(crate) fn insert(&self, source: &str) -> String {
        let mut output = String::with_capacity(source.len());
        for line in source.split_inclusive('\n') {
            match PromptRole::from_line(line) {
                Some(role) => {
                    output.push_str(&self.opening);
                    output.push(role.sign());
                    output.push_str(if line.ends_with("\r\n") {
                        "\r\n"
                    } else if line.ends_with('\n') {
                        "\n"
                    } else {
                        ""
                    });
                }
                None => output.push_str(line),
            }
        }
        output
    }

    /// Splits a rendered text into messages. The text before the first sentinel, or a text without sentinels, has the user role.
    pub(crate) fn split(&self, rendered: &str) -> Vec<Rendered> {
        let mut messages = Vec::new();
        let mut push = |role: PromptRole, content: &str| {
            let content = self.without_parts(content);
            let content = content.trim();
            if !content.is_empty() {
                messages.push(Rendered { role, content: content.to_owned() });
            }
        };
        let mut starts = self.finder.find_iter(rendered.as_bytes()).peekable();
        let text = |from: usize, until: Option<&usize>| rendered.get(from..until.copied().unwrap_or(rendered.len()));
        push(PromptRole::User, text(0, starts.peek()).unwrap_or_default());
        while let Some(start) = starts.next() {
            let part = text(start + self.opening.len(), starts.peek()).unwrap_or_default();
            let role = PromptRole::ALL.into_iter().find_map(|role| Some((role, part.strip_prefix(role.sign())?)));
            match role {
                Some((role, content)) => push(role, content),
                // Only happens if a template truncates its own marker (`{% filter truncate %}`).
                None => push(PromptRole::User, part),
            }
        }
        messages
    }

    /// `content` without the parts of a sentinel that a filter has truncated or reversed: the nonce must not reach a model.
    fn without_parts<'c>(&self, content: &'c str) -> Cow<'c, str> {
        // A search for bytes, as prompts are long: the noncharacters and a few rare letters begin with these two.
        if memchr::memmem::find(content.as_bytes(), b"\xef\xb7").is_none() {
            return Cow::Borrowed(content);
        }
        let reversed: String = self.opening.chars().rev().collect();
        let is_part = |run: &str| {
            let run = run.trim_matches(|c| PromptRole::ALL.iter().any(|role| role.sign() == c));
            run.chars().count() >= MIN_PART && (self.opening.contains(run) || reversed.contains(run))
        };
        let mut output = String::with_capacity(content.len());
        let mut rest = content;
        while let Some(start) = rest.find(is_sentinel_char) {
            let (before, after) = rest.split_at(start);
            let end = after.find(|c| !is_sentinel_char(c)).unwrap_or(after.len());
            let (run, after) = after.split_at(end);
            output.push_str(before);
            if !is_part(run) {
                output.push_str(run);
            }
            rest = after;
        }
        output.push_str(rest);
        Cow::Owned(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentinels() -> Sentinels {
        Sentinels::new("0123456789abcdef0123456789abcdef").unwrap()
    }

    fn split(source: &str) -> Vec<(PromptRole, String)> {
        let sentinels = sentinels();
        sentinels.split(&sentinels.insert(source)).into_iter().map(|message| (message.role, message.content)).collect()
    }

    #[test]
    fn marker_lines_start_messages() {
        use PromptRole::{Assistant, System, User};
        let table: [(&str, &[(PromptRole, &str)]); 10] = [
            ("just text\n", &[(User, "just text")]),
            (
                "<!-- system -->\n规则\n<!-- user -->\n问\n<!-- assistant -->\n答",
                &[(System, "规则"), (User, "问"), (Assistant, "答")],
            ),
            ("before\n<!-- system -->\nrules", &[(User, "before"), (System, "rules")]),
            (" \n\t\n<!-- system -->\nrules", &[(System, "rules")]),
            ("  <!-- system -->\t\r\nrules\r\n<!-- user -->\r\nask\r\n", &[(System, "rules"), (User, "ask")]),
            ("<!-- system -->\n\n \n<!-- user -->\nask", &[(User, "ask")]),
            ("<!-- user -->\na\n<!-- user -->\nb", &[(User, "a"), (User, "b")]),
            ("text <!-- system --> text", &[(User, "text <!-- system --> text")]),
            (
                "<!--system-->\n<!-- System -->\n<!-- tool -->",
                &[(User, "<!--system-->\n<!-- System -->\n<!-- tool -->")],
            ),
            ("<!-- system -->", &[]),
        ];
        for (source, expected) in table {
            let found = split(source);
            let found: Vec<_> = found.iter().map(|(role, content)| (*role, content.as_str())).collect();
            assert_eq!(found, expected, "{source:?}");
        }
    }

    #[test]
    fn sentinels_do_not_change_the_lines() {
        let source = "a\n  <!-- system -->\nb\r\n<!-- user -->\r\nc";
        assert_eq!(sentinels().insert(source).lines().count(), source.lines().count());
        assert!(sentinels().insert(source).ends_with("\u{fde2}\r\nc"));
    }

    #[test]
    fn parts_of_a_sentinel_are_removed_and_other_noncharacters_stay() {
        let sentinels = sentinels();
        let sentinel = sentinels.insert("<!-- system -->");
        let truncated: String = sentinel.chars().take(20).collect();
        let reversed: String = sentinel.chars().rev().collect();
        for part in [truncated, reversed] {
            assert_eq!(sentinels.without_parts(&format!("a{part}…\u{fdd0}b")), "a…\u{fdd0}b");
        }
        let other = Sentinels::new("fedcba98765432100123456789abcdef").unwrap().insert("<!-- user -->");
        assert_eq!(sentinels.without_parts(&other), other);
    }

    #[test]
    fn a_nonce_that_could_be_guessed_or_parsed_is_rejected() {
        for nonce in [
            "",
            "short",
            "0123456789abcdef0123456789abcde",
            "{{ 3456789abcdef0123456789abcdef }}",
            "0123456789abcdef 0123456789abcdef",
        ] {
            assert!(Sentinels::new(nonce).is_none(), "{nonce}");
        }
    }
}
