//! The only way in which a host is changed: journal first, write, read back, and the way home.
