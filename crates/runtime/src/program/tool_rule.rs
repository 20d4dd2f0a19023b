//! The rules of a script for its tools: which ones it may call, and what must hold before a call (docs/tools.md).

use std::time::Duration;

use crate::effects::tools::{ToolLimits, matches};
use bcc_lang::expr::parse::Expr;
use bcc_lang::template::text::Text;

/// One item of `tools` of a script.
#[derive(Clone, Debug, Default)]
pub struct ToolRule {
    /// The name of a tool, or with `*` at its end, the beginning of names.
    pub pattern: String,
    /// Must hold before a call.
    pub requires: Option<Expr>,
    pub approve: ToolApproval,
    /// Who may decide about a call; anybody if empty.
    pub approvers: Vec<Text>,
    pub timeout: Option<Duration>,
    pub max_bytes: Option<usize>,
    pub cache: Option<Duration>,
}

/// Whether a person decides before a call.
#[derive(Clone, Debug, Default)]
pub enum ToolApproval {
    #[default]
    Never,
    Always,
    /// If this holds.
    When(Expr),
}

impl ToolRule {
    /// The rule for the tool `name`: the one that names it, else the one with the longest pattern.
    pub fn of<'r>(rules: &'r [Self], name: &str) -> Option<&'r Self> {
        let specificity = |rule: &&Self| (!rule.pattern.ends_with('*'), rule.pattern.len());
        rules.iter().filter(|rule| matches(&rule.pattern, name)).max_by_key(specificity)
    }

    /// The limits of a call under this rule.
    pub fn limits(&self) -> ToolLimits {
        let default = ToolLimits::default();
        ToolLimits {
            timeout: self.timeout.unwrap_or(default.timeout),
            max_bytes: self.max_bytes.unwrap_or(default.max_bytes),
            cache: self.cache,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_that_names_a_tool_precedes_the_longest_pattern() {
        let rule = |pattern: &str| ToolRule { pattern: pattern.to_owned(), ..ToolRule::default() };
        let rules = ["*", "mcp.files.*", "mcp.files.read", "mcp.files.read*", "mcp.*"].map(rule);
        let pattern = |name| ToolRule::of(&rules, name).map(|rule| rule.pattern.as_str());
        assert_eq!(pattern("mcp.files.read"), Some("mcp.files.read"));
        assert_eq!(pattern("mcp.files.read_all"), Some("mcp.files.read*"));
        assert_eq!(pattern("mcp.files.write"), Some("mcp.files.*"));
        assert_eq!(pattern("mcp.web.get"), Some("mcp.*"));
        assert_eq!(pattern("graph_rag"), Some("*"));
        assert!(ToolRule::of(&rules[1..2], "graph_rag").is_none());
    }
}
