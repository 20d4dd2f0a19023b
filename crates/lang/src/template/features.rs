//! What texts, templates and expressions may use: functions, filters, tests, and the bounds of one rendering.

/// How many steps (instructions of minijinja) one rendering may take.
pub const FUEL: u64 = 500_000;

/// How long the text of one rendering may become, in bytes.
pub const MAX_OUTPUT: usize = 4 * 1024 * 1024;

/// How many bytes of values one rendering may write, captured ones included.
pub const MAX_WRITTEN: usize = 8 * 1024 * 1024;

/// How many numbers `range()` may give.
pub const MAX_RANGE: usize = 10_000;

/// How deep macros, includes and blocks may nest.
pub const MAX_NESTING: usize = 100;

/// The functions that texts and expressions may call.
pub const FUNCTIONS: &[&str] = &["range", "dict", "namespace", "cycler", "joiner"];

/// The filters, for near misses: their names, with `|` between them.
pub const FILTERS: &str = "\
    abs|attr|batch|bool|capitalize|chain|count|d|default|dictsort|e|escape|filesizeformat|first|float|format|\
    groupby|indent|int|items|join|last|length|lines|list|lower|map|max|min|pluralize|pprint|reject|rejectattr|\
    replace|reverse|round|safe|select|selectattr|slice|sort|split|string|striptags|sum|title|tojson|trim|truncate|\
    unique|upper|zip";

/// The tests, for near misses: their names, with `|` between them.
pub const TESTS: &str = "\
    boolean|defined|divisibleby|endingwith|eq|equalto|escaped|even|false|filter|float|ge|greaterthan|gt|in|int|\
    integer|iterable|le|lessthan|lower|lt|mapping|ne|none|number|odd|regex|safe|sameas|sequence|startingwith|\
    string|test|true|undefined|upper";

/// What stands behind `|` or `is`, or in front of brackets.
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
