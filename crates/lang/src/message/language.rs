//! The language of the output at the terminal.

use std::borrow::Cow;

use crate::message::catalogue::Catalogue;
use crate::message::pattern::fill;

/// The environment variables that select the language: ours, then those of POSIX. The first one that is set applies.
const VARIABLES: [&str; 4] = ["BCC_LANG", "LC_ALL", "LC_MESSAGES", "LANG"];

/// A language of the terminal. Output for programs (JSON, SARIF, slugs, keys) is always in English.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// The language of the messages in the source.
    #[default]
    English,
    Chinese,
    /// For tests: English, with the constant parts of every message that the catalogue contains in `⟦ ⟧`. What remains outside the
    /// brackets was inserted as a value or said without the catalogue (docs/languages.md).
    Pseudo,
}

impl Language {
    /// Parses a name such as `zh`, `zh_CN.UTF-8`, `en-US` or `C`; `None` for any other.
    pub fn parse(name: &str) -> Option<Self> {
        let first = name.split(['_', '-', '.', '@']).next().unwrap_or_default().to_ascii_lowercase();
        match first.as_str() {
            "zh" | "chinese" | "中文" => Some(Self::Chinese),
            "en" | "english" | "c" | "posix" => Some(Self::English),
            "pseudo" => Some(Self::Pseudo),
            _ => None,
        }
    }

    /// The language that the environment selects. `get` returns a variable that is set and not empty. A language without a
    /// catalogue becomes English.
    pub fn from_environment<'e>(get: impl Fn(&str) -> Option<&'e str>) -> Self {
        VARIABLES.iter().find_map(|name| get(name)).and_then(Self::parse).unwrap_or_default()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
            Self::Pseudo => "pseudo",
        }
    }

    /// The translation of a literal without arguments; the literal itself if no catalogue contains it.
    pub fn translate(self, literal: &str) -> Cow<'_, str> {
        self.literal(literal).map_or(Cow::Borrowed(literal), Cow::Borrowed)
    }

    /// The translation of `literal` with `values` in its `{placeholders}`. The values are inserted unchanged, so they may be texts of
    /// people and models.
    pub fn format(self, literal: &str, values: &[(&str, &str)]) -> String {
        fill(self.literal(literal).unwrap_or(literal), values)
    }

    /// The entry of the catalogue for a literal.
    pub(crate) fn literal(self, literal: &str) -> Option<&'static str> {
        let catalogue = match self {
            Self::English => return None,
            Self::Chinese => Catalogue::chinese(),
            Self::Pseudo => Catalogue::pseudo(),
        };
        catalogue.literal(literal).or_else(|| catalogue.literal(literal.trim()))
    }
}
