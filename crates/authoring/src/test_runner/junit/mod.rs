//! The results of a test run as JUnit XML, which GitHub, GitLab and Jenkins read.

pub mod report;
