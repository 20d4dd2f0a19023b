//! The functions, filters and tests of texts, templates and expressions, and the limits of one rendering.

/// The maximum number of steps (instructions of minijinja) of one rendering.
pub(crate) const FUEL: u64 = 500_000;

/// The maximum length of the output of one rendering, in bytes.
pub const MAX_OUTPUT: usize = 4 * 1024 * 1024;

/// The maximum number of bytes of values that one rendering writes, including captured ones.
pub(crate) const MAX_WRITTEN: usize = 8 * 1024 * 1024;

/// The maximum number of items of `range()`.
pub(crate) const MAX_RANGE: usize = 10_000;

/// The maximum nesting depth of macros, includes and blocks.
pub(crate) const MAX_NESTING: usize = 100;

/// The functions that texts and expressions may call.
pub const FUNCTIONS: &[&str] = &["range", "dict", "namespace", "cycler", "joiner"];

/// The names of the filters, for suggestions, separated by `|`.
pub(crate) const FILTERS: &str = "\
    abs|attr|batch|bool|capitalize|chain|count|d|default|dictsort|e|escape|filesizeformat|first|float|format|\
    groupby|indent|int|items|join|last|length|lines|list|lower|map|max|min|pluralize|pprint|reject|rejectattr|\
    replace|reverse|round|safe|select|selectattr|slice|sort|split|string|striptags|sum|title|tojson|trim|truncate|\
    unique|upper|zip";

/// The names of the tests, for suggestions, separated by `|`.
pub(crate) const TESTS: &str = "\
    boolean|defined|divisibleby|endingwith|eq|equalto|escaped|even|false|filter|float|ge|greaterthan|gt|in|int|\
    integer|iterable|le|lessthan|lower|lt|mapping|ne|none|number|odd|regex|safe|sameas|sequence|startingwith|\
    string|test|true|undefined|upper";

/// A filter (after `|`), a test (after `is`) or a function (before brackets).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureKind {
    Filter,
    Test,
    Function,
}

impl FeatureKind {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Test => "test",
            Self::Function => "function",
        }
    }
}
