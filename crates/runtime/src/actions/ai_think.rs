//! `ai_think`: asks the model without showing anything to the person.

use async_trait::async_trait;
use bcc_lang::message::msg;
use serde_json::{Value, json};

use crate::actions::conversation::config::{ModelConfig, model_config};
use crate::actions::conversation::outputs::{hide_sensitive, write_outputs};
use crate::actions::conversation::reading::outcome;
use crate::program::action::Action;
use crate::program::exchange::Ask;
use crate::program::exchange::PROMPT_NAMES;
use crate::program::flow::{ActionError, Flow};
use crate::program::kind::{ActionProperties, Kind, KindChecker, KindInfo};
use crate::program::outcome::ExitReason;
use crate::program::output::OutputVariable;
use crate::program::prompt::PromptNames;
use crate::program::turn::Turn;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Spanned;
use bcc_lang::template::text::Text;
use bcc_lang::value::exact::{ExactValue, ExactValues};
use bcc_lang::value::quoting::quote_after_label;

const PROMPT: PromptNames = PromptNames { common: &PROMPT_NAMES, names: &["goal", "inputs"], outputs: true };

pub(crate) struct AiThink;

struct Think {
    model: ModelConfig,
    content: Text,
    goal: Option<Text>,
    inputs: Vec<String>,
}

impl Kind for AiThink {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: "ai_think",
            schema: include_str!("../../../../schemas/actions/ai_think.json"),
            page: include_str!("../../../../docs/actions/ai_think.md"),
            exits: &["exit_criteria_met"],
        }
    }

    fn prompt(&self) -> Option<PromptNames> {
        Some(PROMPT)
    }

    fn runs_in_branches(&self) -> bool {
        true
    }

    fn check(&self, fields: &Fields<'_>, checker: &mut dyn KindChecker) -> Option<Box<dyn Action>> {
        let content = fields.required_content("content").and_then(|field| checker.text(&field));
        let goal = fields.text("goal").and_then(|field| checker.text(&field));
        let mut inputs = Vec::new();
        for item in fields.list("input_variables").unwrap_or_default() {
            let Some(text) = item.as_scalar().map(|scalar| scalar.text.clone()) else {
                let message = msg!("`input_variables` must list variable names, but this is {}", item.describe());
                fields.findings().report(Diagnostic::error("wrong-type", message, fields.file(), item.span));
                continue;
            };
            checker.require_known(&Spanned { value: text.clone(), span: item.span });
            inputs.push(text);
        }
        let model = model_config(self.name(), PROMPT, None, fields, checker)?;
        checker.describe(ActionProperties { max_rounds: 1, min_calls: 1, ..ActionProperties::default() });
        Some(Box::new(Think { model, content: content?, goal, inputs }))
    }
}

#[async_trait]
impl Action for Think {
    async fn turn(&self, turn: &Turn<'_>) -> Result<Flow, ActionError> {
        turn.in_round(1);
        let mut names = turn.names(1);
        let content = turn.text(&self.content, &names.for_prompt())?;
        let goal = self.goal.as_ref().map(|goal| turn.text(goal, &names.for_prompt())).transpose()?;
        let inputs: Vec<(String, ExactValue)> =
            self.inputs.iter().map(|name| (name.clone(), turn.variable(name).unwrap_or_default())).collect();
        names.set_text("goal", goal.unwrap_or_default());
        names.set_text("tone", "");
        names.set_text("exit", "");
        names.set("understanding_threshold", Value::Null);
        let shown =
            inputs.iter().map(|(name, value)| json!({ "name": name, "value": quote_after_label(&as_text(value)) }));
        names.set("inputs", shown.collect());
        let inputs = inputs.into_iter().map(|(name, value)| (name, value.into_value())).collect();
        let mut exchange = turn.exchange(Ask { inputs, ..self.model.ask(&content, names) }).await?;
        hide_sensitive(turn, &self.model.outputs, &mut exchange);
        // There is no next round and no message to the person, so an unreadable reply ends the action with an error.
        let reason = if exchange.reading.is_ok() { ExitReason::ExitCriteriaMet } else { ExitReason::Error };
        let extracted = match &exchange.reading {
            Ok(reply) => write_outputs(turn, &self.model.outputs, reply),
            Err(_) => ExactValues::new(),
        };
        Ok(Flow::done(outcome(exchange, (1, 1), Some(reason), true, None, extracted)))
    }

    fn outputs(&self) -> &[OutputVariable] {
        &self.model.outputs
    }

    fn is_free_of_effects(&self) -> bool {
        true
    }
}

fn as_text(value: &ExactValue) -> String {
    match &**value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        _ => value.to_string(),
    }
}
