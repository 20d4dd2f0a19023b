//! Script + kinds → Program or diagnostics. All that is wrong is found before anything runs.

pub mod allow;
pub mod allow_comments;
pub mod check;
pub mod checker;
pub mod declarations;
pub mod diagnostics;
pub mod known;
pub mod levels;
pub mod placeholders;
