mod progress;
mod removals;
mod transitions;
