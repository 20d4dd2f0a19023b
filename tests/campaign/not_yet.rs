//! Attacks that the program does not withstand yet. One that `BCC_CAMPAIGN_ATTACK` names is carried out all the same.

/// The name of an attack, and why it is left out.
pub const NOT_YET: &[(&str, &str)] = &[];
