//! The monitors of the conversation kinds, one file each (LANGUAGE.md section 9, 004 "监控处理器架构").

pub mod ai_ask;
pub mod ai_say;
pub mod analysis;
