//! `write_file`: writes a file of the project, completely or not at all.

use bcc_lang::message::ToMessage;
use bcc_lang::message::msg;

use async_trait::async_trait;
use serde_json::Map;

use crate::actions::failure::failed_flow;
use crate::actions::file_path::{file_path, permission_error};
use crate::effects::files::WriteMode;
use crate::program::action::Action;
use crate::program::assigned::Assigned;
use crate::program::assignments::{evaluate, read_value};
use crate::program::flow::{ActionError, EffectAnnouncement, Flow};
use crate::program::interrupted_effects::{Decision, decide, interrupted_error};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::outcome::{ExitReason, Outcome};
use crate::program::turn::Turn;
use bcc_lang::script::fields::Fields;
use bcc_lang::script::project_path::PathUse;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::template::text::Text;

/// The permission that it needs, and the kind of its effect.
const PERMISSION: &str = "write_file";

pub(crate) struct WriteFileKind;

enum Content {
    Text(Text),
    /// Written as JSON.
    Value(Assigned),
}

struct WriteFile {
    path: Text,
    content: Content,
    mode: WriteMode,
}

impl Kind for WriteFileKind {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "write_file",
            schema: include_str!("../../../../schemas/actions/write_file.json"),
            page: include_str!("../../../../docs/actions/write_file.md"),
            exits: &["exit_criteria_met", "failed"],
        }
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let before = fields.findings().author_errors();
        let path = fields
            .required_content("path")
            .and_then(|words| file_path(&words, ("path", PathUse::Written), fields, checker));
        let text = fields.has("content").then(|| fields.text("content").and_then(|words| checker.code(&words)));
        let value = fields.take("value").map(|node| read_value(node, checker));
        let _ = fields.take("content");
        let mode = match fields.choice("mode", &["replace", "append", "create"]) {
            Some("append") => WriteMode::Append,
            Some("create") => WriteMode::Create,
            _ => WriteMode::Replace,
        };
        let content = match (text, value) {
            (Some(_), Some(_)) => {
                let message =
                    msg!("{} has both `{one}` and `{other}`", fields.subject(), one = "content", other = "value");
                fields.error(
                    "conflicting-fields",
                    message,
                    fields.span(),
                    "keep `content` for text, or `value` for a value that is written as JSON",
                );
                None
            }
            (Some(text), None) => text.map(Content::Text),
            (None, Some(value)) => value.map(Content::Value),
            (None, None) => {
                let message = msg!("{} does not specify what to write", fields.subject());
                let diagnostic = Diagnostic::error("missing-key", message, fields.file(), fields.span());
                fields.report_missing(&["content", "value"], diagnostic.with_help("add `content:` or `value:`"));
                None
            }
        };
        checker.describe(ActionProperties {
            max_rounds: 1,
            needs: vec![PERMISSION.to_owned()],
            ..ActionProperties::default()
        });
        if fields.findings().author_errors() > before {
            return None;
        }
        Some(Box::new(WriteFile { path: path?, content: content?, mode }))
    }
}

#[async_trait]
impl Action for WriteFile {
    fn asks_model(&self) -> bool {
        false
    }

    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        if let Some(denied) = permission_error(turn, PERMISSION) {
            if turn.effect_is_due {
                turn.close_effect("no longer allowed; it was not run");
            }
            return Ok(failed_flow(turn, &denied));
        }
        // What cannot be evaluated ends the action before anything is announced.
        let path = turn.exact_text(&self.path, &turn.names(1))?;
        let content = self.content(turn)?;
        let action = turn.place.action_id.as_deref().unwrap_or_default();
        let summary = msg!("`{action}`: writes a file");
        match decide(turn, || EffectAnnouncement { kind: PERMISSION, summary }) {
            Decision::First(flow) => Ok(flow),
            Decision::Run => Ok(self.write(turn, &path, content.as_bytes())),
            Decision::Skip => {
                let mut outcome = Outcome::done(ExitReason::ExitCriteriaMet);
                outcome.metadata.insert("skipped".into(), true.into());
                Ok(Flow::done(outcome))
            }
            Decision::Fail => Ok(failed_flow(turn, &interrupted_error().to_message())),
        }
    }
}

impl WriteFile {
    fn content(&self, turn: &Turn<'_>) -> Result<String, ActionError> {
        let value = match &self.content {
            Content::Text(text) => return turn.exact_text(text, &turn.names(1)),
            Content::Value(value) => evaluate(turn, std::iter::once(("", value)))?.pop().map(|(_, value)| value),
        };
        let json = serde_json::to_string_pretty(&value.unwrap_or_default()).map_err(|error| {
            ActionError::failed("value-not-json", msg!("the value cannot be written as JSON: {error}"))
        })?;
        Ok(json + "\n")
    }

    fn write(&self, turn: &Turn<'_>, path: &str, bytes: &[u8]) -> Flow {
        let host = &turn.services.host;
        if let Err(error) = host.files.write(&host.permissions.directory, path, bytes, self.mode) {
            turn.close_effect("it failed");
            let failure = msg!(
                "the file `{source}` cannot be written: {error}",
                source = self.path.source(),
                error = error.message
            );
            turn.warn("file-not-written", failure.clone(), error.help);
            return failed_flow(turn, &failure);
        }
        turn.close_effect("it is done");
        let mut metadata = Map::new();
        metadata.insert("bytes".into(), bytes.len().into());
        metadata.insert("success".into(), true.into());
        Flow::done(Outcome { metadata, ..Outcome::done(ExitReason::ExitCriteriaMet) })
    }
}
