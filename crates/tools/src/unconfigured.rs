//! A tool that the project does not configure, or may not use: a call is told what is missing.

use async_trait::async_trait;
use bcc_lang::message::message::Message;
use bcc_runtime::effects::tools::{ToolCall, ToolDescription, ToolError, ToolOutput, ToolProgress, Tools};

pub(crate) struct Unconfigured {
    pub name: &'static str,
    pub why: Message,
}

impl Unconfigured {
    fn error(&self) -> ToolError {
        ToolError::Unavailable { tool: self.name.to_owned(), why: self.why.clone() }
    }
}

#[async_trait]
impl Tools for Unconfigured {
    /// Only who names the tool is told that it is missing: a pattern such as `*` means those that exist.
    async fn describe(&self, patterns: &[String]) -> (Vec<ToolDescription>, Vec<ToolError>) {
        let is_named = patterns.iter().any(|pattern| pattern == self.name);
        (vec![], if is_named { vec![self.error()] } else { vec![] })
    }

    async fn call(&self, call: &ToolCall<'_>, _: &dyn ToolProgress) -> Result<ToolOutput, ToolError> {
        match call.tool == self.name {
            true => Err(self.error()),
            false => Err(ToolError::Unknown { name: call.tool.to_owned() }),
        }
    }
}
