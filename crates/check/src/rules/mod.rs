//! The rules, one file each, and [`RULES`], the one list of them.

pub mod broken_placeholder;
pub mod budget_too_small;
pub mod confusable_names;
pub mod endless_loop;
pub mod expression_types;
pub mod for_each_not_a_list;
pub mod hidden_variable;
pub mod impossible_exit_reason;
pub mod insert_itself;
pub mod inserted_elsewhere;
pub mod never_set;
pub mod nothing_to_resume;
pub mod output_type_conflict;
pub mod required_output;
pub mod rule;
pub mod shadowed_variable;
pub mod shared_ids;
pub mod skill_bodies;
pub mod skill_calls;
pub mod skill_scopes;
pub mod template_language;
pub mod text_cut_by_comment;
pub mod unknown_exit_reason;
pub mod unknown_insert;
pub mod unknown_metadata;
pub mod unknown_model;
pub mod unknown_skill_file;
pub mod unknown_target;
pub mod unreachable;
pub mod unused_variable;
pub mod value_type_conflict;

use crate::rules::rule::Rule;

/// Every rule. A new one is a file, two lines here, a line in [`crate::diagnostics`] and a page.
pub static RULES: &[&dyn Rule] = &[
    &broken_placeholder::BrokenPlaceholder,
    &budget_too_small::BudgetTooSmall,
    &confusable_names::ConfusableNames,
    &endless_loop::EndlessLoop,
    &expression_types::ExpressionTypes,
    &for_each_not_a_list::ForEachNotAList,
    &hidden_variable::HiddenVariable,
    &impossible_exit_reason::ImpossibleExitReason,
    &insert_itself::InsertItself,
    &inserted_elsewhere::InsertedElsewhere,
    &never_set::NeverSet,
    &nothing_to_resume::NothingToResume,
    &output_type_conflict::OutputTypeConflict,
    &required_output::RequiredOutput,
    &shadowed_variable::ShadowedVariable,
    &shared_ids::SharedIds,
    &skill_bodies::SkillBodies,
    &skill_calls::SkillCalls,
    &skill_scopes::SkillScopes,
    &template_language::TemplateLanguage,
    &text_cut_by_comment::TextCutByComment,
    &unknown_exit_reason::UnknownExitReason,
    &unknown_insert::UnknownInsert,
    &unknown_metadata::UnknownMetadata,
    &unknown_model::UnknownModel,
    &unknown_skill_file::UnknownSkillFile,
    &unknown_target::UnknownTarget,
    &unreachable::Unreachable,
    &unused_variable::UnusedVariable,
    &value_type_conflict::ValueTypeConflict,
];
