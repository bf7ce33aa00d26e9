//! A recipe as it comes from outside: whatever was written, checked by nothing yet.
