//! The configuration shared by all kinds that call a model: template version, fallback, outputs, reply shape and reply policy.

use crate::actions::conversation::outputs::{read_outputs, read_slots};
use crate::actions::monitors::analysis::VERSION;
use crate::program::action::WatchedConfig;
use crate::program::analysis::MonitorTarget;
use crate::program::exchange::Ask;
use crate::program::kind::KindChecker;
use crate::program::monitor::Monitor;
use crate::program::output::{OutputVariable, Outputs};
use crate::program::prompt::PromptNames;
use bcc_lang::message::msg;
use bcc_lang::script::fields::Fields;
use bcc_lang::source::diagnostic::Diagnostic;
use bcc_lang::source::span::Span;
use bcc_lang::source::yaml::YamlNode;
use bcc_lang::template::front_matter::FallbackTexts;
use bcc_lang::template::language::PromptLanguage;
use bcc_lang::template::names::TemplateNames;
use bcc_lang::template::text::Text;
use bcc_llm::reply::shape::{OutputField, ReplyShape, ShapeError};

/// The configuration of a kind that asks a model.
pub struct ModelConfig {
    /// The name of the kind, which is also the name of its template and of its reply schema.
    pub kind: &'static str,
    /// The language of its template.
    pub language: PromptLanguage,
    /// `version`: the `N` of `<kind>_v<N>.md`.
    pub version: u32,
    pub outputs: Outputs,
    /// The places where outputs are marked as required.
    pub required: Vec<Span>,
    pub shape: ReplyShape,
    /// `fallback`: messages to send instead of a reply that cannot be used.
    pub fallback: Vec<Text>,
    /// The texts of the template that are sent instead of a reply if there is no `fallback`.
    pub fallbacks: FallbackTexts,
    /// `repair`: whether JSON with errors is repaired; `None` uses the configuration of the model.
    pub repair: Option<bool>,
    /// `reask`: how often the model is asked again after an unusable reply; `None` uses the configuration of the model.
    pub reask: Option<u32>,
    /// The monitor and the shape of its reply; `None` if the action is not monitored.
    pub monitor: Option<(&'static dyn Monitor, ReplyShape)>,
}

/// What is extracted from the replies of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extracted {
    Nothing,
    /// The list `output`.
    Output,
    /// The list `output`, and what the `hear` lists around the action name.
    OutputAndHeard,
    /// The list `slots`, and what the `hear` lists around the action name.
    SlotsAndHeard,
}

/// Reads `version`, `fallback`, `repair`, `reask`, `monitor`, and `output` if the kind has outputs; checks the template against
/// the names that the kind provides.
pub(crate) fn model_config(
    kind: &'static str,
    prompt: PromptNames,
    monitor: Option<&'static dyn Monitor>,
    fields: &Fields<'_>,
    checker: &mut dyn KindChecker,
) -> Option<ModelConfig> {
    let extracted = if prompt.outputs { Extracted::Output } else { Extracted::Nothing };
    config_with(kind, (prompt, extracted), monitor, fields, checker)
}

/// [`model_config`] with another list of what is extracted.
pub(crate) fn config_with(
    kind: &'static str,
    (prompt, extracted): (PromptNames, Extracted),
    monitor: Option<&'static dyn Monitor>,
    fields: &Fields<'_>,
    checker: &mut dyn KindChecker,
) -> Option<ModelConfig> {
    let version = fields.integer("version", 1..=999).unwrap_or(1);
    let fallback = fields.texts("fallback").iter().filter_map(|field| checker.text(field)).collect();
    let is_monitored = fields.choice("monitor", &["on", "off"]) != Some("off");
    let repair = fields.choice("repair", &["on", "off"]).map(|repair| repair == "on");
    let reask = fields.integer("reask", 0..=5);
    checker.template(kind, version, prompt, fields);
    let base = checker.reply_schema(kind, version, fields);
    // Without a schema that can be used, the outputs are read all the same: the variables exist, and other errors in them are reported.
    let reserved = base.as_ref().map(|base| base.names()).unwrap_or_default();
    let outputs = match extracted {
        Extracted::Nothing => Some(vec![]),
        Extracted::Output | Extracted::OutputAndHeard => read_outputs(fields, reserved, checker),
        Extracted::SlotsAndHeard => read_slots(fields, reserved, checker),
    };
    let (base, mut outputs) = (base?, outputs?);
    if matches!(extracted, Extracted::OutputAndHeard | Extracted::SlotsAndHeard) {
        let is_own = |heard: &OutputVariable| outputs.iter().any(|output| output.get == heard.get);
        let heard: Vec<OutputVariable> = checker.hear_outputs().into_iter().filter(|heard| !is_own(heard)).collect();
        outputs.extend(heard);
    }
    let output_fields: Vec<OutputField> = outputs
        .iter()
        .map(|output| OutputField {
            name: output.get.clone(),
            declared: output.declared,
            choices: output.choices.clone(),
            // A prompt for slots says what each of them means next to where it stands.
            define: output.define.clone().filter(|_| extracted != Extracted::SlotsAndHeard),
            optional: output.heard,
        })
        .collect();
    let shape = match ReplyShape::with_base(&base, output_fields) {
        Ok(shape) => shape,
        Err(error) => {
            let message = msg!("the reply schema for this action cannot be built: {error}");
            let (field, help) = match &error {
                ShapeError::Choice { .. } => ("output", "change the `type` or `enum` of the output or its variable"),
                _ => ("version", "fix the schema that the template specifies as its `output_schema`"),
            };
            let span = fields.take(field).map_or(fields.span(), |node| node.span);
            fields.findings().report(Diagnostic::error("reply-shape", message, fields.file(), span).with_help(help));
            return None;
        }
    };
    let required_span = |item: &std::sync::Arc<YamlNode>| {
        item.get("required").filter(|node| node.to_json() == true).map(|node| node.span)
    };
    let output_node = match extracted {
        Extracted::Nothing => None,
        Extracted::Output | Extracted::OutputAndHeard => fields.take("output"),
        Extracted::SlotsAndHeard => fields.take("slots"),
    };
    let required = output_node.and_then(|node| node.as_sequence()).unwrap_or_default();
    let required: Vec<Span> = required.iter().filter_map(required_span).collect();
    let monitor = if is_monitored { monitor_shape(monitor, fields, checker) } else { None };
    let fallbacks = checker.template_fallbacks(kind, version);
    let language = checker.template_language(kind, version);
    let outputs = Outputs::new(outputs);
    Some(ModelConfig { kind, language, version, outputs, required, shape, fallback, fallbacks, repair, reask, monitor })
}

impl ModelConfig {
    /// The request to the model, for a single round and without showing the reply while it is received.
    pub fn ask<'a>(&'a self, content: &'a str, names: TemplateNames) -> Ask<'a> {
        let ask = Ask::new((self.kind, self.version), &self.shape, &self.outputs, content, names);
        Ask { repair: self.repair, reask: self.reask, ..ask }
    }
}

/// The data that the monitor needs about an action with this configuration.
pub fn watched(model: &ModelConfig, exit: Option<&Text>, max_rounds: u32) -> Option<WatchedConfig> {
    let target = |output: &OutputVariable| MonitorTarget {
        get: output.get.clone(),
        define: output.define.clone().unwrap_or_default(),
        required: output.required,
    };
    let targets = model.outputs.iter().filter(|output| !output.heard).map(target).collect();
    let (monitor, shape) = model.monitor.clone()?;
    Some(WatchedConfig { monitor, max_rounds, targets, exit: exit.cloned(), language: model.language, shape })
}

/// The monitor and the shape of its replies; its template is checked like that of the kind. `None` without a monitor, and for
/// sessions that were started by an earlier release without monitor templates.
fn monitor_shape(
    monitor: Option<&'static dyn Monitor>,
    fields: &Fields<'_>,
    checker: &mut dyn KindChecker,
) -> Option<(&'static dyn Monitor, ReplyShape)> {
    let monitor = monitor.filter(|monitor| checker.has_template(monitor.name(), VERSION))?;
    checker.template(monitor.name(), VERSION, monitor.prompt(), fields);
    let base = checker.reply_schema(monitor.name(), VERSION, fields)?;
    // Errors in a schema that the template names are reported there; the built-in schemas are valid.
    Some((monitor, ReplyShape::with_base(&base, vec![]).ok()?))
}
