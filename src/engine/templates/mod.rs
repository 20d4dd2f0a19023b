//! Templates for those who edit them: which there are, which layer serves each, how they differ, new schemes.
