//! The rules, one file each, and their list [`RULES`].

pub mod branches;
pub mod broken_placeholder;
pub mod budget_too_small;
pub mod cleanup_actions;
pub mod confusable_names;
pub mod dependencies;
pub mod endless_loop;
pub mod expression_types;
pub mod filter_arguments;
pub mod for_each_not_a_list;
pub mod fork_without_else;
pub mod full_width_pattern;
pub mod hidden_variable;
pub mod impossible_exit_reason;
pub mod insert_itself;
pub mod inserted_elsewhere;
pub mod loop_never_left;
pub mod never_set;
pub mod nothing_to_resume;
pub mod null_operand;
pub mod output_type_conflict;
pub mod required_output;
pub mod rule;
pub mod shadowed_variable;
pub mod shared_ids;
pub mod skill_bodies;
pub mod skill_calls;
pub mod skill_scopes;
pub mod skipped_without_route;
pub mod template_language;
pub mod text_cut_by_comment;
pub mod tool_not_permitted;
pub mod trigger_says_nothing;
pub mod unknown_exit_reason;
pub mod unknown_insert;
pub mod unknown_metadata;
pub mod unknown_model;
pub mod unknown_skill_file;
pub mod unknown_target;
pub mod unknown_tool;
pub mod unreachable;
pub mod unused_variable;
pub mod value_type_conflict;

use crate::rules::rule::Rule;

/// All rules. A new one needs a file, two lines here, a line in [`crate::diagnostics`] and a page.
pub static RULES: &[&Rule] = &[
    &branches::RULE,
    &broken_placeholder::RULE,
    &budget_too_small::RULE,
    &cleanup_actions::RULE,
    &confusable_names::RULE,
    &dependencies::RULE,
    &endless_loop::RULE,
    &expression_types::RULE,
    &filter_arguments::RULE,
    &for_each_not_a_list::RULE,
    &fork_without_else::RULE,
    &full_width_pattern::RULE,
    &hidden_variable::RULE,
    &impossible_exit_reason::RULE,
    &insert_itself::RULE,
    &inserted_elsewhere::RULE,
    &loop_never_left::RULE,
    &never_set::RULE,
    &nothing_to_resume::RULE,
    &null_operand::RULE,
    &output_type_conflict::RULE,
    &required_output::RULE,
    &shadowed_variable::RULE,
    &shared_ids::RULE,
    &skill_bodies::RULE,
    &skill_calls::RULE,
    &skill_scopes::RULE,
    &skipped_without_route::RULE,
    &template_language::RULE,
    &text_cut_by_comment::RULE,
    &tool_not_permitted::RULE,
    &trigger_says_nothing::RULE,
    &unknown_exit_reason::RULE,
    &unknown_insert::RULE,
    &unknown_metadata::RULE,
    &unknown_model::RULE,
    &unknown_skill_file::RULE,
    &unknown_target::RULE,
    &unknown_tool::RULE,
    &unreachable::RULE,
    &unused_variable::RULE,
    &value_type_conflict::RULE,
];
