//! `kill -9` of Maestro at random moments, again and again.
//!
//! [`scaling`] looks closely at one fleet, kill by kill; [`mixed`] has everything going on at once and looks at the end.

pub mod mixed;
pub mod scaling;
