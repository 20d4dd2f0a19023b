//! Mending of texts: the fixes of findings, and older forms brought to today's, byte by byte.
