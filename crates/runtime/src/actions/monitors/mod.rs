//! The monitors of the conversation kinds (LANGUAGE.md section 9, 004 "监控处理器架构").

pub mod analysis;
pub mod conversation;
