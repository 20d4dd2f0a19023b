//! Role markers: lines of the *source* that start a message of a role (docs/templates.md). Such a line that comes
//! out of a value never does, because by then the markers are sentinels that hold an unguessable mark.

use serde::{Deserialize, Serialize};

/// How long the caller's mark must be, in bytes: 128 bits as hexadecimal digits.
pub const MIN_MARK_BYTES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptRole {
    System,
    User,
    Assistant,
}

impl PromptRole {
    pub const ALL: [Self; 3] = [Self::System, Self::User, Self::Assistant];

    /// As it stands in a marker.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// The role of a line that is exactly a marker; white space around it is allowed.
    fn of_line(line: &str) -> Option<Self> {
        let name = line.trim_matches([' ', '\t', '\r', '\n']).strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendered {
    pub role: PromptRole,
    /// What, without white space at both ends; never empty.
    pub content: String,
}

/// The sentinels of one set of templates.
#[derive(Clone, Debug)]
pub struct Sentinels {
    opening: String,
}

impl Sentinels {
    /// Sentinels around `mark`; `None` unless it is at least [`MIN_MARK_BYTES`] ASCII letters and digits.
    pub fn new(mark: &str) -> Option<Self> {
        let fine = mark.len() >= MIN_MARK_BYTES && mark.bytes().all(|byte| byte.is_ascii_alphanumeric());
        fine.then(|| Self { opening: format!("<!-- {mark} ") })
    }

    /// `source` with each marker line replaced by a sentinel line. The number of lines stays.
    pub fn place(&self, source: &str) -> String {
        let mut placed = String::with_capacity(source.len());
        for line in source.split_inclusive('\n') {
            match PromptRole::of_line(line) {
                Some(role) => {
                    placed.push_str(&self.opening);
                    placed.push_str(role.name());
                    placed.push_str(" -->");
                    placed.push_str(if line.ends_with("\r\n") {
                        "\r\n"
                    } else if line.ends_with('\n') {
                        "\n"
                    } else {
                        ""
                    });
                }
                None => placed.push_str(line),
            }
        }
        placed
    }

    /// The messages of a rendered text. What stands before the first sentinel, and a text without any, is the person's.
    pub fn split(&self, rendered: &str) -> Vec<Rendered> {
        let mut messages = Vec::new();
        let mut push = |role: PromptRole, content: &str| {
            let content = content.trim();
            if !content.is_empty() {
                messages.push(Rendered { role, content: content.to_owned() });
            }
        };
        let mut parts = rendered.split(self.opening.as_str());
        push(PromptRole::User, parts.next().unwrap_or_default());
        for part in parts {
            let role = PromptRole::ALL
                .into_iter()
                .find_map(|role| Some((role, part.strip_prefix(role.name())?.strip_prefix(" -->")?)));
            match role {
                Some((role, content)) => push(role, content),
                // Only a template that cuts its own marker in two (`{% filter truncate %}`) comes here.
                None => push(PromptRole::User, part),
            }
        }
        messages
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
        sentinels.split(&sentinels.place(source)).into_iter().map(|message| (message.role, message.content)).collect()
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
    fn placing_keeps_the_lines() {
        let source = "a\n  <!-- system -->\nb\r\n<!-- user -->\r\nc";
        assert_eq!(sentinels().place(source).lines().count(), source.lines().count());
        assert!(sentinels().place(source).contains("user -->\r\nc"));
    }

    #[test]
    fn a_mark_that_could_be_guessed_or_parsed_is_refused() {
        for mark in [
            "",
            "short",
            "0123456789abcdef0123456789abcde",
            "{{ 3456789abcdef0123456789abcdef }}",
            "0123456789abcdef 0123456789abcdef",
        ] {
            assert!(Sentinels::new(mark).is_none(), "{mark}");
        }
    }
}
