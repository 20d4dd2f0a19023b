//! Reads `tools` of a session: the tools that its actions may call, and the rules for them (docs/tools.md).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::message::msg;
use crate::script::fields::{Fields, TextField, shortened};
use crate::script::time::{ONE_DAY, time};
use crate::source::diagnostic::Diagnostic;
use crate::source::near::near_miss;
use crate::source::span::{Span, Spanned};
use crate::source::yaml::{NodeKind, YamlNode};

/// The tools that come with the program; those of MCP servers are called `mcp.<server>.<tool>`.
pub const BUILT_IN_TOOLS: [&str; 2] = ["graph_rag", "web_search"];

/// The beginning of the names of the tools of MCP servers.
pub const MCP_PREFIX: &str = "mcp.";

/// The maximum size of a result, in bytes: a variable cannot hold much more.
const MAX_RESULT_BYTES: u32 = 1024 * 1024;

const MAX_NAME_BYTES: usize = 200;

/// The longest time that a result may be used again.
const MAX_CACHE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const APPROVALS: [&str; 2] = ["always", "never"];

/// One item of `tools`.
#[derive(Clone, Debug)]
pub struct WrittenTool {
    /// The name of a tool, or with `*` at its end, the beginning of names.
    pub pattern: Spanned<String>,
    pub requires: Option<TextField>,
    pub approve: WrittenToolApproval,
    pub approvers: Vec<TextField>,
    pub timeout: Option<Duration>,
    pub max_bytes: Option<u32>,
    pub cache: Option<Duration>,
}

/// `approve` of a tool.
#[derive(Clone, Debug, Default)]
pub enum WrittenToolApproval {
    #[default]
    Never,
    Always,
    When(TextField),
}

/// Reads `tools`. Invalid items are reported and omitted.
pub fn tools(fields: &Fields<'_>) -> Vec<WrittenTool> {
    let items = fields.list("tools").unwrap_or_default();
    let mut first: BTreeMap<String, Span> = BTreeMap::new();
    let mut tools = Vec::with_capacity(items.len());
    for tool in items.iter().filter_map(|item| tool(item, fields)) {
        let Spanned { value, span } = &tool.pattern;
        match first.get(value) {
            Some(first) => {
                let message = msg!("`tools` lists `{}` twice", shortened(value));
                let diagnostic = Diagnostic::error("duplicate-id", message, fields.file(), *span);
                let diagnostic = diagnostic.with_help("write one item for each tool or pattern, with all its rules");
                fields.findings().report(diagnostic.with_related("first used here", fields.file(), *first));
            }
            None => {
                first.insert(value.clone(), *span);
                tools.push(tool);
            }
        }
    }
    tools
}

fn tool(node: &Arc<YamlNode>, fields: &Fields<'_>) -> Option<WrittenTool> {
    if !matches!(node.kind, NodeKind::Mapping(_)) {
        let pattern = node.as_scalar().map(|scalar| scalar.text.clone()).unwrap_or_default();
        let pattern = tool_pattern(Spanned { value: pattern, span: node.span }, fields)?;
        return Some(WrittenTool {
            pattern,
            requires: None,
            approve: WrittenToolApproval::Never,
            approvers: vec![],
            timeout: None,
            max_bytes: None,
            cache: None,
        });
    }
    let inner = fields.inner(node, "an item of `tools`")?;
    let name = inner.required_text("name").map(|words| Spanned { value: words.text, span: words.node.span });
    let approve = approval(&inner);
    let approvers = inner.texts("approvers");
    if !approvers.is_empty() && matches!(approve, WrittenToolApproval::Never) {
        let message = "`approvers` has no effect, because nobody is asked about a call";
        let span = inner.entry("approvers").map_or(node.span, |entry| entry.key.span);
        inner.error("missing-key", message, span, "add `approve: always`, or remove `approvers`");
    }
    let tool = WrittenTool {
        pattern: Spanned { value: String::new(), span: node.span },
        requires: inner.text("requires"),
        approve,
        approvers,
        timeout: time(&inner, "timeout", ONE_DAY),
        max_bytes: inner.integer("max_bytes", 1..=MAX_RESULT_BYTES),
        cache: time(&inner, "cache", MAX_CACHE),
    };
    inner.finish();
    Some(WrittenTool { pattern: tool_pattern(name?, fields)?, ..tool })
}

fn approval(fields: &Fields<'_>) -> WrittenToolApproval {
    let Some(node) = fields.take("approve") else { return WrittenToolApproval::Never };
    if matches!(node.kind, NodeKind::Mapping(_)) {
        let Some(inner) = fields.inner(node, "`approve`") else { return WrittenToolApproval::Always };
        let when = inner.required_text("when");
        inner.finish();
        return when.map_or(WrittenToolApproval::Always, WrittenToolApproval::When);
    }
    let text = node.as_scalar().map(|scalar| scalar.text.trim()).unwrap_or_default();
    match text {
        "always" => WrittenToolApproval::Always,
        "never" => WrittenToolApproval::Never,
        _ => {
            let message =
                msg!("`approve` must be `always`, `never` or `{{ when: … }}`, but this is {}", node.describe());
            let help = match near_miss(text, APPROVALS) {
                Some(near) => msg!("did you mean `{near}`?"),
                None => msg!("write the condition as `approve: {{ when: \"arguments.amount > 100\" }}`"),
            };
            fields.error("not-a-choice", message, node.span, help);
            WrittenToolApproval::Always
        }
    }
}

/// Checks the name of a tool or a pattern.
fn tool_pattern(pattern: Spanned<String>, fields: &Fields<'_>) -> Option<Spanned<String>> {
    let Spanned { value, span } = &pattern;
    let name = value.strip_suffix('*').unwrap_or(value);
    if name.contains('*') {
        let message = msg!("`{}` has a `*` before its end", shortened(value));
        let help = "a pattern is the beginning of names followed by one `*`, as in `mcp.files.*`";
        fields.error("invalid-name", message, *span, help);
        return None;
    }
    let is_permitted = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    if value.is_empty() || value.len() > MAX_NAME_BYTES || !name.chars().all(is_permitted) {
        let message = "this cannot be the name of a tool";
        let help = "write a name, as in `web_search`, a pattern, as in `mcp.files.*`, or a mapping with `name`";
        fields.error("invalid-name", message, *span, help);
        return None;
    }
    Some(pattern)
}
