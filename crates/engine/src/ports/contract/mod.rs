//! One suite per port: a function over any implementation, called by each adapter's tests.

pub mod runtime;
