//! Compiles `tools` of a session: which tools its actions may call, and what must hold before (docs/tools.md).

use crate::checker::Checker;
use bcc_lang::script::tools::{WrittenTool, WrittenToolApproval};
use bcc_lang::value::declared::DeclaredType;
use bcc_lang::value::exact::ExactValue;
use bcc_lang::value::scopes::{Declaration, DeclarationMap, Scope};
use bcc_runtime::actions::tools::call::{ARGUMENTS, TOOL};
use bcc_runtime::program::kind::KindChecker;
use bcc_runtime::program::tool_rule::{ToolApproval, ToolRule};

impl Checker<'_> {
    /// Compiles the rules. Their expressions can use the variables of all parts, because they are evaluated where a call is made, and
    /// the names of the call. A rule that cannot be compiled is reported; then there is no result.
    pub fn tools(&mut self, tools: &[WrittenTool], variables: DeclarationMap) -> Option<Vec<ToolRule>> {
        let of_call = [(ARGUMENTS, DeclaredType::Object), (TOOL, DeclaredType::String)].map(|(name, declared)| {
            let declaration = Declaration {
                name: name.to_owned(),
                value: ExactValue::default(),
                declared: Some(declared),
                choices: vec![],
                define: None,
                sensitive: false,
                implied: true,
            };
            (name.to_owned(), declaration)
        });
        self.known.enter(Scope::Phase, variables);
        self.known.enter(Scope::Topic, DeclarationMap::from_iter(of_call));
        let rules: Vec<Option<ToolRule>> = tools.iter().map(|tool| self.tool(tool)).collect();
        self.known.leave();
        self.known.leave();
        rules.into_iter().collect()
    }

    fn tool(&mut self, written: &WrittenTool) -> Option<ToolRule> {
        let requires = written.requires.as_ref().map(|field| self.expression(field));
        let approve = match &written.approve {
            WrittenToolApproval::Never => Some(ToolApproval::Never),
            WrittenToolApproval::Always => Some(ToolApproval::Always),
            WrittenToolApproval::When(field) => self.expression(field).map(ToolApproval::When),
        };
        let approvers: Vec<_> = written.approvers.iter().map(|field| self.text(field)).collect();
        let requires = match requires {
            Some(requires) => Some(requires?),
            None => None,
        };
        Some(ToolRule {
            pattern: written.pattern.value.clone(),
            requires,
            approve: approve?,
            approvers: approvers.into_iter().collect::<Option<_>>()?,
            timeout: written.timeout,
            max_bytes: written.max_bytes.map(|bytes| bytes as usize),
            cache: written.cache,
        })
    }
}
