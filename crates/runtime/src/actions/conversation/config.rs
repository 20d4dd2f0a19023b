//! The part of a configuration that every kind which calls a model has: template version, fallback, outputs, reply shape, how
//! replies are read.

use crate::actions::conversation::outputs::read_outputs;
use crate::actions::monitors::analysis::VERSION;
use crate::program::action::WatchedConfig;
use crate::program::exchange::Ask;
use crate::program::kind::KindChecker;
use crate::program::monitor::Monitor;
use crate::program::output::Outputs;
use crate::program::prompt::PromptOf;
use bcc_lang::message::msg;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;
use bcc_llm::reply::shape::{OutputField, ReplyShape, ShapeError};

/// What a kind needs to ask a model.
pub struct ModelConfig {
    /// The kind's name, which also names its template and its reply schema.
    pub kind: &'static str,
    /// `version`: which `N` of `<kind>_v<N>.md`.
    pub version: u32,
    pub outputs: Outputs,
    /// Where outputs say that they are required.
    pub required: Vec<Span>,
    pub shape: ReplyShape,
    /// `fallback`: what the author wants said when a reply cannot be read.
    pub fallback: Option<Text>,
    /// The apology of the template, said before the question again when the author gave no `fallback`.
    pub apology: String,
    /// `repair`: whether near-JSON is mended; `None` leaves it to the model's configuration.
    pub repair: Option<bool>,
    /// `reask`: how often the model is asked again when its reply cannot be used; `None` leaves it to the model's configuration.
    pub reask: Option<u32>,
    /// The reply that is expected of the kind's monitor; `None` when none looks at the action.
    pub monitor: Option<(&'static dyn Monitor, ReplyShape)>,
}

/// Reads `version`, `fallback`, `repair`, `reask`, `monitor`, and `output` where the kind has outputs; checks the template against what the kind
/// gives it.
pub fn model_config(
    kind: &'static str,
    prompt: PromptOf,
    monitor: Option<&'static dyn Monitor>,
    fields: &Fields<'_>,
    checking: &mut dyn KindChecker,
) -> Option<ModelConfig> {
    let version = fields.integer("version", 1..=999).unwrap_or(1);
    let fallback = fields.words("fallback").and_then(|words| checking.text(&words));
    let watch = fields.choice("monitor", &["on", "off"]) != Some("off");
    let repair = fields.choice("repair", &["on", "off"]).map(|repair| repair == "on");
    let reask = fields.integer("reask", 0..=5);
    checking.template(kind, version, prompt, fields);
    let base = checking.reply_schema(kind, version, fields)?;
    let outputs = if prompt.outputs { read_outputs(fields, base.names(), checking)? } else { vec![] };
    let wanted: Vec<OutputField> = outputs
        .iter()
        .map(|output| OutputField {
            name: output.get.clone(),
            declared: output.declared,
            choices: output.choices.clone(),
            define: output.define.clone(),
        })
        .collect();
    let shape = match ReplyShape::over(&base, wanted) {
        Ok(shape) => shape,
        Err(error) => {
            let message = msg!("the reply schema for this action cannot be built: {error}");
            let (place, help) = match &error {
                ShapeError::Choice { .. } => ("output", "change the `type` or `enum` of the output or its variable"),
                _ => ("version", "fix the schema that the template specifies as its `output_schema`"),
            };
            let span = fields.take(place).map_or(fields.span(), |node| node.span);
            fields.findings().report(Diagnostic::error("reply-shape", message, fields.file(), span).with_help(help));
            return None;
        }
    };
    let marks = |item: &std::sync::Arc<YamlNode>| {
        item.get("required").filter(|node| node.to_json() == true).map(|node| node.span)
    };
    let written = if prompt.outputs { fields.take("output") } else { None };
    let required = written.and_then(|node| node.as_sequence()).unwrap_or_default();
    let required: Vec<Span> = required.iter().filter_map(marks).collect();
    let monitor = if watch { monitor_shape(monitor, fields, checking) } else { None };
    let apology = checking.template_fallback(kind, version).unwrap_or_default();
    let outputs = Outputs::new(outputs);
    Some(ModelConfig { kind, version, outputs, required, shape, fallback, apology, repair, reask, monitor })
}

impl ModelConfig {
    /// What is asked of the model: by itself in one round, with nothing shown while it arrives.
    pub fn ask<'a>(&'a self, content: &'a str, names: TemplateNames) -> Ask<'a> {
        Ask {
            kind: self.kind,
            template: self.kind,
            version: self.version,
            shape: &self.shape,
            content,
            outputs: &self.outputs,
            names,
            answer: None,
            inputs: vec![],
            round: 1,
            opening: false,
            live: false,
            repair: self.repair,
            reask: self.reask,
        }
    }
}

/// What the monitor must know of an action with this configuration.
pub fn watched(model: &ModelConfig, max_rounds: u32) -> Option<WatchedConfig> {
    let targets = model.outputs.iter().map(|output| output.get.clone()).collect();
    let (monitor, shape) = model.monitor.clone()?;
    Some(WatchedConfig { monitor, max_rounds, targets, shape })
}

/// The shape of the replies of a monitor, whose template is checked like the kind's own. `None` without a monitor, and where a
/// session began with an earlier release, which had none.
fn monitor_shape(
    monitor: Option<&'static dyn Monitor>,
    fields: &Fields<'_>,
    checking: &mut dyn KindChecker,
) -> Option<(&'static dyn Monitor, ReplyShape)> {
    let monitor = monitor.filter(|monitor| checking.has_template(monitor.name(), VERSION))?;
    checking.template(monitor.name(), VERSION, monitor.prompt(), fields);
    let base = checking.reply_schema(monitor.name(), VERSION, fields)?;
    // What is wrong with a schema that the template names is reported there; the shipped ones are sound.
    Some((monitor, ReplyShape::over(&base, vec![]).ok()?))
}
