//! `command`: runs a program (docs/actions/command.md). [`config`] reads it, [`run`] runs it, [`result`] reports what it gave.

pub mod config;
pub mod result;
pub mod run;
