//! `unknown-tool`: `tools` names a tool that this release does not have.

use bcc_lang::message::message::Message;
use bcc_lang::message::msg;

use crate::rules::rule::Rule;
use crate::semantic_model::SemanticModel;
use bcc_lang::script::fields::shortened;
use bcc_lang::script::findings::Findings;
use bcc_lang::script::tools::{BUILT_IN_TOOLS, MCP_PREFIX};
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::near::near_miss;
use bcc_runtime::effects::tools::matches;

const SLUG: &str = "unknown-tool";

pub static RULE: Rule = Rule { slugs: &[SLUG], essential: false, check };

fn check(model: &SemanticModel<'_>, findings: &Findings) {
    for tool in model.script.iter().flat_map(|script| &script.tools) {
        let pattern = &tool.pattern.value;
        // The tools of MCP servers are known only when the servers run.
        let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
        let is_of_server =
            beginning.starts_with(MCP_PREFIX) || pattern.ends_with('*') && MCP_PREFIX.starts_with(beginning);
        if is_of_server || BUILT_IN_TOOLS.iter().any(|name| matches(pattern, name)) {
            continue;
        }
        let message = msg!("there is no tool `{}`", shortened(pattern));
        let near = near_miss(pattern, BUILT_IN_TOOLS);
        let help = match near {
            Some(near) => msg!("did you mean `{near}`?"),
            None => {
                msg!("tools are {}, and those of MCP servers, as in `mcp.files.read`", Message::names(BUILT_IN_TOOLS))
            }
        };
        let diagnostic = Diagnostic::warning(SLUG, message, model.file, tool.pattern.span).with_help(help);
        findings.report(diagnostic.with_replacement(near));
    }
}
