//! Which language a person reads at the terminal.

use std::borrow::Cow;

use crate::message::catalogue::Catalogue;
use crate::message::pattern::fill;

/// The environment variables that choose it, the first that is set deciding: ours, then those of POSIX.
const VARIABLES: [&str; 4] = ["BCC_LANG", "LC_ALL", "LC_MESSAGES", "LANG"];

/// A language of the terminal. What programs read (JSON, SARIF, slugs, keys) is in English always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// English, in which messages are written in the source.
    #[default]
    English,
    Chinese,
}

impl Language {
    /// The language of a name such as `zh`, `zh_CN.UTF-8`, `en-US` or `C`; none for any other.
    pub fn parse(name: &str) -> Option<Self> {
        let first = name.split(['_', '-', '.', '@']).next().unwrap_or_default().to_ascii_lowercase();
        match first.as_str() {
            "zh" | "chinese" | "中文" => Some(Self::Chinese),
            "en" | "english" | "c" | "posix" => Some(Self::English),
            _ => None,
        }
    }

    /// The language that the environment asks for. `get` gives a variable that is set and not empty. A language that there is
    /// no catalogue of is English.
    pub fn of_environment<'e>(get: impl Fn(&str) -> Option<&'e str>) -> Self {
        VARIABLES.iter().find_map(|name| get(name)).and_then(Self::parse).unwrap_or_default()
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh",
        }
    }

    /// The translation of a literal of this program without arguments; the literal itself where no catalogue has it.
    pub fn said(self, literal: &str) -> Cow<'_, str> {
        self.literal(literal).map_or(Cow::Borrowed(literal), Cow::Borrowed)
    }

    /// The sentence `literal` in this language with `values` in its `{places}`, untouched whatever they say: for what holds
    /// the words of people and models.
    pub fn filled(self, literal: &str, values: &[(&str, &str)]) -> String {
        fill(self.literal(literal).unwrap_or(literal), values)
    }

    /// What stands in the catalogue for a literal.
    pub(crate) fn literal(self, literal: &str) -> Option<&'static str> {
        match self {
            Self::English => None,
            Self::Chinese => {
                let catalogue = Catalogue::chinese();
                catalogue.literal(literal).or_else(|| catalogue.literal(literal.trim()))
            }
        }
    }
}
